//! The engine over a [`Request`] of the reference, and what differs.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::UNIX_EPOCH;

use bstr::{BString, ByteSlice};
use portcullis_compile::compile;
use portcullis_engine::{
    Answer, Collections, Connection, HeadParts, Interruption, Memo, NoCollections, Plan, Progress, Question,
    RequestLine, Scratch, Stages, Strategies, Transaction,
};
use portcullis_reference::{Database, Outcome, Reference, Request};
use portcullis_seclang::{Files, Root, parse};
use portcullis_store::Store;
use portcullis_types::{Phase, RuleId};

/// Rule, phase, variable without its key, value: of each match of a whole rule, in order.
type Matches = Vec<(RuleId, Phase, BString, BString)>;

/// The same rules in both evaluators.
pub struct Pair {
    reference: Reference,
    plan: Arc<Plan>,
}

impl Pair {
    /// The rules of `roots`, or what is wrong with them.
    pub fn load(roots: &[Root], files: &dyn Files) -> Result<Pair, String> {
        let parsed = parse(roots, files);
        if parsed.has_errors() {
            return Err(format!("{:?}", parsed.diagnostics));
        }
        let compiled = compile(&parsed.document, &parsed.sources, files);
        let plan = Arc::new(compiled.plan.ok_or_else(|| format!("{:?}", compiled.diagnostics))?);
        let reference = Reference::new(&parsed.document, &parsed.sources, files)
            .map_err(|problems| format!("{problems:?}"))?;
        Ok(Pair { reference, plan })
    }

    /// The same where the engine's prefilter has these stages only.
    pub fn with_stages(mut self, stages: Stages) -> Pair {
        let plan = Arc::get_mut(&mut self.plan).expect("nobody else has it yet");
        plan.prefilter_stages = stages;
        plan.finish();
        self
    }

    /// Returns the outcome of the reference, and the difference of the engine, if there is one.
    pub fn compare(&self, request: &Request) -> (Outcome, Option<String>) {
        let outcome = self.reference.run(request);
        let difference = difference(&reference(&outcome), &engine(&self.plan, request));
        (outcome, difference)
    }

    /// The same over what earlier requests left.
    pub fn compare_after(
        &self,
        request: &Request,
        database: &mut Database,
        collections: Arc<dyn Collections>,
    ) -> (Outcome, Option<String>) {
        let outcome = self.reference.run_after(request, database);
        let way = Way { quiet: true, strategies: Strategies::ALL };
        let theirs = run(&self.plan, request, collections, way).0;
        let difference = difference(&reference(&outcome), &theirs);
        (outcome, difference)
    }
}

/// Runs the engine with and without strategies; the number of logged matches.
pub fn survive(plan: &Arc<Plan>, request: &Request) -> usize {
    let with =
        |strategies| run(plan, request, Arc::new(Store::default()), Way { quiet: false, strategies }).1.len();
    with(Strategies::ALL);
    with(Strategies::NONE)
}

/// Bytes that a transaction may hold: the limits on texts that rules make, of which that of `@rsub` is the
/// largest, twice over, since buffers double as they grow.
const HELD_BYTES_MAX: usize = 2 * (Transaction::REWRITTEN_BYTES_MAX + (32 << 20));

/// The results by which both evaluators are compared.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    matches: Matches,
    tx: BTreeMap<BString, BString>,
    /// Phase, rule, status; 0 for `drop`, 1 for `proxy`.
    interruption: Option<(Phase, RuleId, u16)>,
    pause_ms: i64,
    request_body: Option<BString>,
    response_body: Option<BString>,
    around_response: (BString, BString),
}

/// A memo that all requests share: entries of one request must be right for those that follow.
static MEMO: LazyLock<Memo> = LazyLock::new(Memo::default);

/// Runs the engine without any strategy; with all of them, once so that it remembers all matches, and once as
/// it runs where those that are not logged are not requested; and with one or the other missing. They must
/// differ in nothing but keys that no rule reads.
fn engine(plan: &Arc<Plan>, request: &Request) -> Seen {
    let (plain, loud) =
        run(plan, request, Arc::new(NoCollections), Way { quiet: true, strategies: Strategies::NONE });
    let with = |quiet, strategies| {
        let (seen, own) = run(plan, request, Arc::new(NoCollections), Way { quiet, strategies });
        // Of more matches those that are kept may be others.
        if plain.matches.len() < Transaction::MATCHES_MAX {
            assert_eq!(own, loud, "{strategies:?} {request:?}");
        }
        check_alike(plan, &plain, seen, quiet, strategies, request);
    };
    with(true, Strategies::ALL);
    with(false, Strategies::ALL);
    let (_, one) = Strategies::EACH[TURN.fetch_add(1, Ordering::Relaxed) % Strategies::EACH.len()];
    with(false, Strategies::ALL.without(one));
    with(false, one | Strategies::PREFILTER);
    plain
}

/// The number of the strategy to leave out next.
static TURN: AtomicUsize = AtomicUsize::new(0);

/// The way to run a transaction.
#[derive(Clone, Copy)]
struct Way {
    quiet: bool,
    strategies: Strategies,
}

/// Panics if `seen` says anything else than `all`, which ran without strategies.
fn check_alike(
    plan: &Plan,
    all: &Seen,
    mut few: Seen,
    quiet: bool,
    strategies: Strategies,
    request: &Request,
) {
    if !quiet {
        few.matches.clone_from(&all.matches);
    }
    let unwritten: Vec<&[u8]> = plan.candidates.unwritten().collect();
    for (key, value) in &all.tx {
        if unwritten.iter().any(|prefix| key.starts_with(prefix)) {
            few.tx.entry(key.clone()).or_insert_with(|| value.clone());
        }
    }
    assert_eq!(few, *all, "{strategies:?} {request:?}");
}

/// Returns the result, and its matches that are not quiet.
fn run(plan: &Arc<Plan>, request: &Request, collections: Arc<dyn Collections>, way: Way) -> (Seen, Matches) {
    let connection = Connection {
        client: SocketAddr::new(request.client, request.client_port),
        server: SocketAddr::new(request.server, request.server_port),
        unique_id: request.unique_id.to_string(),
        epoch_seconds: request.time.duration_since(UNIX_EPOCH).unwrap().as_secs() as i64,
        utc_offset_seconds: 0,
    };
    let scratch = Scratch::sharing(&MEMO);
    let mut transaction = Transaction::new(Arc::clone(plan), collections, scratch, &connection);
    transaction.limit_strategies(way.strategies);
    transaction.keep_what_is_read(HeadParts::NONE);
    if way.quiet {
        transaction.keep_quiet_matches();
    }
    let interruption = phases(&mut transaction, request);
    let progress = transaction.logging();
    settle(&mut transaction, request, progress);
    transaction.finish();
    assert!(transaction.held_bytes() < HELD_BYTES_MAX, "{} bytes held", transaction.held_bytes());
    let pause_ms = i64::try_from(transaction.take_pause_ms()).unwrap_or(i64::MAX);
    let edits = transaction.response_edits();
    let by = transaction.interrupted_by();
    let all = || {
        transaction.matches().iter().map(|found| {
            let view = transaction.view(found);
            let is_loud = found.log || found.audit_log || found.disruptive;
            (is_loud, (view.rule.id, found.phase, variable(&view.target), view.value.into()))
        })
    };
    let loud = all().filter(|(is_loud, _)| *is_loud).map(|(_, found)| found).collect();
    let seen = Seen {
        matches: all().map(|(_, found)| found).collect(),
        tx: transaction.tx_values().into_iter().map(|(key, value)| (key.into(), value.into())).collect(),
        interruption: interruption.and_then(|interruption| {
            let (rule, phase) = by?;
            let status = match interruption {
                Interruption::Deny { status } | Interruption::Redirect { status, .. } => status,
                Interruption::Drop => 0,
                Interruption::Proxy { .. } => 1,
            };
            Some((phase, plan.rule(rule).id, status))
        }),
        pause_ms,
        request_body: transaction.rewritten_request_body().map(BString::from),
        response_body: edits.body.map(BString::from),
        around_response: (edits.before.into(), edits.after.into()),
    };
    (seen, loud)
}

fn phases(transaction: &mut Transaction, request: &Request) -> Option<Interruption> {
    fn fields(list: &[(BString, BString)]) -> impl Iterator<Item = (&[u8], &[u8])> {
        list.iter().map(|(name, value)| (name.as_slice(), value.as_slice()))
    }
    let line = RequestLine {
        line: &request.line,
        method: &request.method,
        target: &request.uri,
        protocol: &request.protocol,
    };
    let progress = transaction.request_head(line, fields(&request.headers));
    if let Some(interruption) = settle(transaction, request, progress) {
        return Some(interruption);
    }
    // In two pieces, so that what parsers keep between them is tested, too.
    let body = request.body.as_ref().map_or(b"".as_slice(), |body| body.as_slice());
    let (first, second) = body.split_at(body.len() / 2);
    transaction.request_body(first);
    transaction.request_body(second);
    let progress = transaction.request_end(false);
    if let Some(interruption) = settle(transaction, request, progress) {
        return Some(interruption);
    }
    let response = request.response.as_ref()?;
    let headers = fields(&response.headers);
    let progress = transaction.response_head(&response.protocol, response.status, headers);
    if let Some(interruption) = settle(transaction, request, progress) {
        return Some(interruption);
    }
    transaction.response_body(&response.body);
    let progress = transaction.response_end(false);
    settle(transaction, request, progress)
}

/// Answers what rules ask from the request's world.
fn settle(transaction: &mut Transaction, request: &Request, mut progress: Progress) -> Option<Interruption> {
    loop {
        match progress {
            Progress::Done(interruption) => return interruption,
            Progress::Ask => {
                let world = &request.world;
                let told = |question| match question {
                    Question::Address(name) => match world.dns.get(name.as_bytes().as_bstr()) {
                        None => Answer::Nothing,
                        Some(None) => Answer::Unknown,
                        Some(Some(address)) => Answer::Address(*address),
                    },
                    Question::Scan { content, .. } => match world.scans.get(content.as_bstr()) {
                        None => Answer::Nothing,
                        Some(None) => Answer::Unknown,
                        Some(Some(name)) => Answer::Found(name.to_string()),
                    },
                };
                let answers: Vec<_> =
                    transaction.questions().map(|(id, question)| (id, told(question))).collect();
                for (id, answer) in answers {
                    transaction.answer(id, answer);
                }
                progress = transaction.resume();
            }
        }
    }
}

/// The reference's outcome in the form that is compared.
fn reference(outcome: &Outcome) -> Seen {
    let matches = outcome.matches.iter().filter(|found| found.complete).take(Transaction::MATCHES_MAX);
    Seen {
        matches: matches.map(|m| (m.rule, m.phase, variable(&m.variable), m.value.clone())).collect(),
        tx: outcome.tx.clone(),
        interruption: outcome.interruption.as_ref().map(|i| {
            (
                i.phase,
                i.rule,
                if i.drop {
                    0
                } else if i.proxy {
                    1
                } else {
                    i.status
                },
            )
        }),
        pause_ms: outcome.pause_ms,
        request_body: outcome.request_body.clone(),
        response_body: outcome.response_body.clone(),
        around_response: outcome.around_response.clone(),
    }
}

/// The first difference, in words.
fn difference(reference: &Seen, engine: &Seen) -> Option<String> {
    if reference == engine {
        return None;
    }
    if reference.interruption != engine.interruption {
        return Some(format!(
            "interruption: reference {:?}, engine {:?}",
            reference.interruption, engine.interruption
        ));
    }
    if reference.pause_ms != engine.pause_ms {
        return Some(format!("pause: reference {}, engine {}", reference.pause_ms, engine.pause_ms));
    }
    let bodies =
        |seen: &Seen| (seen.request_body.clone(), seen.response_body.clone(), seen.around_response.clone());
    if bodies(reference) != bodies(engine) {
        return Some(format!("bodies: reference {:?}, engine {:?}", bodies(reference), bodies(engine)));
    }
    let count = reference.matches.len().max(engine.matches.len());
    for at in 0..count {
        let (ours, theirs) = (reference.matches.get(at), engine.matches.get(at));
        // The engine names no value where the rule writer named no target.
        let action = |found: &&(RuleId, Phase, BString, BString)| found.2.is_empty();
        if theirs.filter(action).is_some_and(|theirs| {
            ours.is_some_and(|ours| {
                (ours.0, ours.1, ours.2.as_slice()) == (theirs.0, theirs.1, b"REMOTE_ADDR".as_slice())
            })
        }) {
            continue;
        }
        if ours != theirs {
            return Some(format!("match {at}: reference {ours:?}, engine {theirs:?}"));
        }
    }
    let keys = reference.tx.keys().chain(engine.tx.keys());
    keys.map(|key| (key, reference.tx.get(key), engine.tx.get(key)))
        .find(|(_, ours, theirs)| ours != theirs)
        .map(|(key, ours, theirs)| format!("tx.{key}: reference {ours:?}, engine {theirs:?}"))
}

fn variable(target: &[u8]) -> BString {
    target.split_str(":").next().unwrap_or_default().into()
}
