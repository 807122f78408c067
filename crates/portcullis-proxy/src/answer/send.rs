//! Sends an answer of the proxy itself.

use portcullis_event::Action;
use portcullis_exchange::{Form, Page, page};
use portcullis_http::h1::{ClientConnection, write_answer};
use portcullis_http::message::Version;

use super::{Answer, Cause, Content};
use crate::clock;
use crate::cookies::Sender;
use crate::exchange::{Exchange, Next};
use crate::facts;
use crate::header_changes;
use crate::https::Https;
use crate::sink::Sink;

impl Content {
    fn page(self, status: u16, form: Form, exchange: &Exchange<'_>) -> Page {
        let id = &exchange.transaction.request_id;
        match self {
            Content::Message(text) => page(status, &text, id, form),
            Content::Blocked => exchange.generation.block_page.blocked(status, id, form),
            Content::Denied => exchange.generation.block_page.denied(status, id, form),
            Content::Text(page) => *page,
        }
    }
}

/// Sends an answer, and notes in the transaction what was sent and why.
pub(crate) async fn send(exchange: &mut Exchange<'_>, mut answer: Answer) -> Next {
    if let Cause::Verdict(Action::Deny) = answer.cause {
        answer.fields.extend(expired(exchange).into_iter().map(|field| ("Set-Cookie", field)));
    }
    answer.note(&mut exchange.transaction);
    let Some(status) = answer.status else { return Next::Gone };
    let keep = answer.reusable && exchange.head.keep_alive() && !exchange.connection.worker.draining.get();
    let form = match (&answer.cause, Form::of(exchange.head)) {
        // What a route answers is no error of a call.
        (Cause::Route, Form::Grpc(_)) => Form::Html,
        (_, form) => form,
    };
    let page = answer.content.page(status, form, exchange);
    write(exchange, status, &answer.fields, &page, keep);
    match Sink::new(exchange.connection, exchange.generation.timeouts.write, false).send_composed().await {
        Err(_) => Next::Gone,
        Ok(()) if keep => Next::Request,
        Ok(()) => Next::Close,
    }
}

/// The fields that expire the cookies for which the request was refused, as others of the client were.
fn expired(exchange: &mut Exchange<'_>) -> Vec<Vec<u8>> {
    let Exchange { connection, head, transaction, generation, route, .. } = exchange;
    let Some(cookies) = route.filter(|route| route.expires_cookies).and_then(|route| route.cookies.as_ref())
    else {
        return Vec::new();
    };
    let Some(inspection) = transaction.life.running() else { return Vec::new() };
    let names = inspection.blocked_cookies();
    if names.is_empty() {
        return Vec::new();
    }
    let (tls, peer) = (connection.tls, connection.peer.ip());
    let by = Sender {
        client: transaction.client().ip(),
        is_secure: facts::is_secure(tls, peer, &generation.client_address, head),
        now: transaction.began.epoch_millis(),
    };
    let fields = cookies.expire(&names, head, &by);
    if !fields.is_empty() {
        transaction.life.call(|inspection| inspection.note_expired());
    }
    fields
}

/// Writes the whole answer into the connection's scratch buffer.
fn write(
    exchange: &mut Exchange<'_>,
    status: u16,
    more: &[(&'static str, Vec<u8>)],
    page: &Page,
    keep: bool,
) {
    let Exchange { connection, head, transaction, .. } = exchange;
    let (alt_svc, changed) = (transaction.alt_svc.take(), transaction.response_headers.take());
    let date = clock::http_date();
    let mut fields: Vec<(&str, &[u8])> = vec![
        ("Content-Type", page.media_type.as_bytes()),
        ("Cache-Control", b"no-store"),
        ("X-Request-Id", transaction.request_id.as_bytes()),
        ("Date", date.as_bytes()),
    ];
    let signature = transaction.server_signature().filter(|signature| !signature.is_empty());
    fields.extend(signature.map(|signature| ("Server", signature)));
    if status == 405 {
        fields.push(("Allow", b"GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"));
    }
    fields.extend(transaction.hsts.as_deref().and_then(Https::field));
    fields.extend(alt_svc.as_ref().map(|value| ("Alt-Svc", value.as_bytes())));
    fields.extend(more.iter().map(|(name, value)| (*name, &value[..])));
    fields.extend(page.fields.iter().map(|(name, value)| (*name, value.as_bytes())));
    if let Some(changed) = &changed {
        fields.retain(|(field, _)| !changed.replaces(field));
        fields.extend(header_changes::fields(&changed.set, ""));
        fields.extend(header_changes::fields(&changed.add, ""));
    }
    let body = page.body.as_bytes();
    let output = &mut connection.output;
    output.clear();
    if head.version() == Version::Http09 && transaction.life.refusal.is_none() {
        // A simple request knows no head.
        output.extend_from_slice(body);
    } else {
        let client = ClientConnection::of(head.version(), keep);
        write_answer(status, &fields, body, client, head.method() == b"HEAD", output);
    }
    let recorded = transaction.is_recorded().then(|| {
        let length = body.len().to_string();
        let shown = fields.iter().copied().chain([("Content-Length", length.as_bytes())]);
        shown.map(|(name, value)| (name.as_bytes().to_vec(), value.to_vec())).collect()
    });
    transaction.life.outcome.own_body_bytes = body.len() as u64;
    transaction.life.outcome.own_headers = recorded;
}
