//! SecLang front end: lexer, parser, AST, printer, diagnostics.
