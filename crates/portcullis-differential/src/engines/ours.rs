//! Our engine and the reference, in this process.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use bstr::BString;
use portcullis_compile::compile;
use portcullis_engine::{
    BodyLimitAction, BodyPlan, Connection, HeadParts, NoCollections, Plan, RequestLine, Scratch, Transaction,
};
use portcullis_reference::{Reference, Request};
use portcullis_seclang::{MemoryFiles, Root, parse};

use crate::seen::{Interruption, Seen};

/// A rule set, loaded by both.
pub struct Ours {
    plan: Arc<Plan>,
    reference: Reference,
}

impl Ours {
    /// Loads a text. The error is for people.
    pub fn load(text: &str) -> Result<Ours, String> {
        let files = MemoryFiles::default();
        let root = Root::Text { name: "generated.conf".into(), text: text.as_bytes().to_vec() };
        let parsed = parse(&[root], &files);
        let show = |list: &[portcullis_seclang::Diagnostic]| {
            list.iter().map(|d| d.render(&parsed.sources)).collect::<Vec<_>>().join("\n")
        };
        if parsed.has_errors() {
            return Err(show(&parsed.diagnostics));
        }
        let compiled = compile(&parsed.document, &parsed.sources, &files);
        let plan = compiled.plan.ok_or_else(|| show(&compiled.diagnostics))?;
        let reference = Reference::new(&parsed.document, &parsed.sources, &files)
            .map_err(|problems| format!("the reference: {problems:?}"))?;
        Ok(Ours { plan: Arc::new(plan), reference })
    }

    /// The reference over a request, of which the engine made `ours`. `None`: the body is over a limit, which
    /// is not a matter of rules, so that the reference knows nothing of it.
    pub fn reference(&self, request: &Request, ours: &Seen) -> Option<Seen> {
        if ours.over_limit {
            return None;
        }
        let outcome = self.reference.run(request);
        let interruption = outcome.interruption.map(|i| match i.drop {
            true => Interruption::Drop,
            false => Interruption::Status(i.status),
        });
        Some(Seen::new(Some(outcome.tx), interruption))
    }

    /// The engine over a request.
    pub fn engine(&self, request: &Request) -> Seen {
        let connection = Connection {
            client: SocketAddr::new(request.client, request.client_port),
            server: SocketAddr::new(request.server, request.server_port),
            unique_id: request.unique_id.to_string(),
            utc_offset_seconds: 0,
            epoch_seconds: request.time.duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs() as i64),
        };
        let mut transaction = Transaction::new(
            Arc::clone(&self.plan),
            Arc::new(NoCollections),
            Scratch::default(),
            &connection,
        );
        // All of TX is compared, also keys that no rule reads.
        transaction.keep_quiet_matches();
        transaction.keep_what_is_read(HeadParts::NONE);
        let mut over_limit = false;
        let interruption = phases(&mut transaction, request, &mut over_limit);
        transaction.finish();
        let tx: BTreeMap<BString, BString> =
            transaction.tx_values().into_iter().map(|(key, value)| (key.into(), value.into())).collect();
        let body_error = transaction.body_error().is_some();
        let seen = Seen::new(
            Some(tx),
            interruption.map(|interruption| match interruption {
                portcullis_engine::Interruption::Deny { status } => Interruption::Status(status),
                portcullis_engine::Interruption::Redirect { status, .. } => Interruption::Status(status),
                portcullis_engine::Interruption::Drop => Interruption::Drop,
                portcullis_engine::Interruption::Proxy { .. } => Interruption::Proxy,
            }),
        );
        Seen { body_error, over_limit, ..seen }
    }
}

/// The request as Apache shows it to ModSecurity 2: fields of one name are one, their values joined. `None`:
/// it has no such fields.
pub fn joined(request: &Request) -> Option<Request> {
    let mut headers: Vec<(BString, BString)> = Vec::new();
    for (name, value) in &request.headers {
        match headers.iter_mut().find(|(known, _)| known.eq_ignore_ascii_case(name)) {
            Some((_, known)) => {
                known.extend_from_slice(b", ");
                known.extend_from_slice(value);
            }
            None => headers.push((name.clone(), value.clone())),
        }
    }
    (headers.len() < request.headers.len()).then(|| Request { headers, ..request.clone() })
}

/// What no rule refuses is answered all the same.
fn refuse(transaction: &mut Transaction, status: u16) -> Option<portcullis_engine::Interruption> {
    transaction.answered(status);
    Some(portcullis_engine::Interruption::Deny { status })
}

/// As the proxy does it: bodies up to their limits, and what is refused for its length by no rule.
fn phases(
    transaction: &mut Transaction,
    request: &Request,
    over_limit: &mut bool,
) -> Option<portcullis_engine::Interruption> {
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
    if let Some(interruption) = transaction.unanswered(progress) {
        return Some(interruption);
    }
    let body = request.body.as_ref().map_or(b"".as_slice(), |body| body.as_slice());
    let (body, cut) = match within(transaction.request_body_plan(), body) {
        Within::Refused => {
            *over_limit = true;
            return refuse(transaction, 413);
        }
        Within::Part(part) => (part, true),
        Within::Whole => (body, false),
    };
    // In two pieces, so that what parsers keep between them is tested, too.
    let (first, second) = body.split_at(body.len() / 2);
    transaction.request_body(first);
    transaction.request_body(second);
    let progress = transaction.request_end(cut);
    *over_limit |= cut;
    if let Some(interruption) = transaction.unanswered(progress) {
        return Some(interruption);
    }
    if transaction.refuses_request_body() {
        *over_limit = true;
        return refuse(transaction, 413);
    }
    let response = request.response.as_ref()?;
    let headers = fields(&response.headers);
    let progress = transaction.response_head(&response.protocol, response.status, headers);
    if let Some(interruption) = transaction.unanswered(progress) {
        return Some(interruption);
    }
    let (body, cut) = match within(transaction.response_body_plan(), &response.body) {
        Within::Refused => {
            *over_limit = true;
            return refuse(transaction, 500);
        }
        Within::Part(part) => (part, true),
        Within::Whole => (response.body.as_slice(), false),
    };
    transaction.response_body(body);
    let progress = transaction.response_end(cut);
    *over_limit |= cut;
    transaction.unanswered(progress)
}

enum Within<'b> {
    Whole,
    Part(&'b [u8]),
    Refused,
}

fn within(plan: BodyPlan, body: &[u8]) -> Within<'_> {
    let BodyPlan::Hold { limit_bytes, over_limit } = plan else { return Within::Whole };
    let limit = usize::try_from(limit_bytes).unwrap_or(usize::MAX);
    match over_limit {
        _ if body.len() <= limit => Within::Whole,
        BodyLimitAction::Reject => Within::Refused,
        BodyLimitAction::ProcessPartial => Within::Part(&body[..limit]),
    }
}
