//! SecLang AST to plan.
