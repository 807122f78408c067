//! What the tests of rules have in common.

use std::sync::Arc;

use portcullis_compile::compile;
use portcullis_engine::{Connection, Plan};
use portcullis_seclang::{MemoryFiles, Root, parse};

/// A client of documentation's networks (RFC 5737) at a moment that is told from others.
pub fn connection() -> Connection {
    Connection {
        client: "192.0.2.7:4711".parse().unwrap(),
        server: "192.0.2.1:80".parse().unwrap(),
        unique_id: "id-1".to_owned(),
        epoch_seconds: 1_000_000_000,
        utc_offset_seconds: 7_200,
    }
}

/// The plan of rules without a mistake.
pub fn plan(rules: &str) -> Arc<Plan> {
    let plan = plan_with(rules, &MemoryFiles::default());
    Arc::new(plan.unwrap_or_else(|mistakes| panic!("{mistakes}\n{rules}")))
}

/// The plan of rules that may name these files, or what is wrong with them.
pub fn plan_with(rules: &str, files: &MemoryFiles) -> Result<Plan, String> {
    let (plan, said) = plan_and_said(rules, files);
    plan.ok_or(said)
}

/// The plan of rules that may name these files, if they load, and the errors and warnings.
pub fn plan_and_said(rules: &str, files: &MemoryFiles) -> (Option<Plan>, String) {
    let parsed = parse(&[Root::Text { name: "test.conf".into(), text: rules.into() }], files);
    let compiled = compile(&parsed.document, &parsed.sources, files);
    let diagnostics = parsed.diagnostics.iter().chain(&compiled.diagnostics);
    let shown: Vec<_> = diagnostics.map(|diagnostic| diagnostic.render(&parsed.sources)).collect();
    (compiled.plan.filter(|_| !parsed.has_errors()), shown.join("\n"))
}
