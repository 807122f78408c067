//! The plainest evaluator of the AST: a test oracle, never shipped.
