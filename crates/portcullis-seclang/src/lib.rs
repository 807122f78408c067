//! SecLang front end: lexer, parser, AST, printer, diagnostics.

pub mod actions;
pub mod ast;
pub mod diagnostic;
pub mod directives;
pub mod operators;
pub mod settings;
pub mod source;

pub use diagnostic::{Diagnostic, Level};
pub use source::{FileId, Position, SourceSpan, Sources};
