//! Helpers that the tests of rules share.

use std::sync::Arc;

use portcullis_compile::compile;
use portcullis_engine::{
    Connection, HeadParts, NoCollections, Plan, Progress, RequestLine, Scratch, Strategies, Transaction,
};
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

/// A message as the engine takes it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Message<'m> {
    /// Method, target and protocol, with blanks between them.
    pub line: &'m str,
    pub headers: Headers<'m>,
    pub body: &'m [u8],
    pub response: Option<Response<'m>>,
}

pub type Headers<'m> = &'m [(&'m [u8], &'m [u8])];

#[derive(Clone, Copy, Debug, Default)]
pub struct Response<'m> {
    pub status: u16,
    pub headers: Headers<'m>,
    pub body: &'m [u8],
}

/// All that a transaction shows: its matches, `TX`, and whether it was interrupted.
#[derive(Debug, PartialEq, Eq)]
pub struct Seen {
    pub matches: Vec<Match>,
    pub tx: Vec<(Vec<u8>, Vec<u8>)>,
    pub progress: Vec<Progress>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Match {
    pub rule: u32,
    pub is_logged: bool,
    /// Kept even where matches that are not logged are not requested.
    is_loud: bool,
    shown: String,
}

impl Seen {
    /// Ids of the rules whose matches are logged, in the order of the matches.
    pub fn logged(&self) -> Vec<u32> {
        self.matches.iter().filter(|found| found.is_logged).map(|found| found.rule).collect()
    }
}

/// Runs the rules over the message in the plainest way, with a trace, with all strategies, and with each of
/// them missing, where the transaction keeps of the heads what rules read. All must come to the same. What
/// earlier messages left in `scratch` is used, but not by the first two.
#[track_caller]
pub fn assert_equivalent(plan: &Arc<Plan>, scratch: &mut Scratch, message: &Message<'_>) -> Seen {
    let quiet = Transaction::keep_quiet_matches;
    let mut plain = run(plan, &mut Scratch::default(), message, Strategies::NONE, quiet);
    let traced = run(plan, &mut Scratch::default(), message, Strategies::ALL, |transaction| {
        transaction.keep_trace(None);
    });
    assert_eq!(traced, plain, "left: with a trace, right: the plainest way; {message:?}");
    // Keys that no rule reads are not written.
    let is_read =
        |(key, _): &(Vec<u8>, Vec<u8>)| !plan.candidates.unwritten().any(|prefix| key.starts_with(prefix));
    plain.tx.retain(is_read);
    let mut all = run(plan, scratch, message, Strategies::ALL, quiet);
    all.tx.retain(is_read);
    assert_eq!(all, plain, "left: with all strategies, right: the plainest way; {message:?}");
    let loud = Seen {
        matches: plain.matches.iter().filter(|found| found.is_loud).cloned().collect(),
        tx: plain.tx.clone(),
        progress: plain.progress.clone(),
    };
    let missing = Strategies::EACH.into_iter().map(|(name, one)| (name, Strategies::ALL.without(one)));
    for (name, strategies) in missing.chain([("none", Strategies::ALL)]) {
        let mut production = run(plan, scratch, message, strategies, |transaction| {
            transaction.keep_what_is_read(HeadParts::NONE);
        });
        production.tx.retain(is_read);
        assert_eq!(
            production, loud,
            "left: without the strategy `{name}`, right: the plainest way; {message:?}"
        );
    }
    plain
}

fn run(
    plan: &Arc<Plan>,
    scratch: &mut Scratch,
    message: &Message<'_>,
    strategies: Strategies,
    keep: fn(&mut Transaction),
) -> Seen {
    let mut transaction =
        Transaction::new(Arc::clone(plan), Arc::new(NoCollections), std::mem::take(scratch), &connection());
    transaction.limit_strategies(strategies);
    keep(&mut transaction);
    let mut parts = message.line.split_ascii_whitespace().map(str::as_bytes);
    let mut part = || parts.next().unwrap_or_default();
    let line =
        RequestLine { line: message.line.as_bytes(), method: part(), target: part(), protocol: part() };
    let mut progress = vec![transaction.request_head(line, message.headers.iter().copied())];
    transaction.request_body(message.body);
    progress.push(transaction.request_end(false));
    if let Some(response) = message.response {
        let headers = response.headers.iter().copied();
        progress.push(transaction.response_head(b"HTTP/1.1", response.status, headers));
        transaction.response_body(response.body);
        progress.push(transaction.response_end(false));
    }
    transaction.finish();
    let matches = transaction.matches().iter().map(|found| {
        let view = transaction.view(found);
        let changes: Vec<_> =
            view.changes.iter().map(|(key, by)| format!("{}+{by}", key.escape_ascii())).collect();
        let shown = format!(
            "{:?} {} = {} raw {} msg {} {changes:?} {} {:?}",
            found.phase,
            view.target.escape_ascii(),
            view.value.escape_ascii(),
            view.raw.escape_ascii(),
            view.msg.escape_ascii(),
            found.link,
            found.found,
        );
        let is_loud = found.log || found.audit_log || found.disruptive;
        Match { rule: view.rule.id.0, is_logged: found.log, is_loud, shown }
    });
    let (matches, tx) = (matches.collect(), transaction.tx_values());
    *scratch = transaction.into_scratch();
    Seen { matches, tx, progress }
}
