//! Answers of our own: block pages, redirects, refusals, gateway errors.

use portcullis_event::Action;
use portcullis_http::h1::{ClientConnection, write_answer};
use portcullis_http::message::{RequestHead, Version};
use portcullis_inspect::Interruption;

use crate::access::Denial;
use crate::block_page::{self, Form, Page};
use crate::connection::Connection;
use crate::exchange::Next;
use crate::generation::Generation;
use crate::https::Https;
use crate::sink::Sink;
use crate::transaction::Transaction;

/// Answers `status` with a page that says `text`. `reusable`: nothing of the request is left to read.
pub(crate) async fn error(
    connection: &mut Connection,
    generation: &Generation,
    head: &RequestHead,
    transaction: &mut Transaction,
    status: u16,
    text: &str,
    reusable: bool,
) -> Next {
    let page = block_page::page(status, text, &transaction.request_id, Form::of(head));
    let page = page.told(head, status, &transaction.request_id);
    send(connection, generation, head, transaction, status, &[], page, reusable).await
}

/// Refuses a client.
pub(crate) async fn denial(
    connection: &mut Connection,
    generation: &Generation,
    head: &RequestHead,
    transaction: &mut Transaction,
    denial: &Denial,
    reusable: bool,
) -> Next {
    let status = denial.status;
    let page = match denial.text {
        Some(text) => block_page::page(status, text, &transaction.request_id, Form::of(head)),
        None => generation.block_page.denied(status, &transaction.request_id, Form::of(head)),
    };
    let page = page.told(head, status, &transaction.request_id);
    let fields: Vec<(&str, &[u8])> =
        denial.fields.iter().map(|(name, value)| (*name, value.as_bytes())).collect();
    send(connection, generation, head, transaction, status, &fields, page, reusable).await
}

/// Answers with the redirect of a route.
pub(crate) async fn redirect(
    connection: &mut Connection,
    generation: &Generation,
    head: &RequestHead,
    transaction: &mut Transaction,
    status: u16,
    to: &[u8],
    reusable: bool,
) -> Next {
    let page = block_page::page(status, "It is elsewhere.", &transaction.request_id, Form::of(head));
    transaction.changes_own_headers = true;
    send(connection, generation, head, transaction, status, &[("Location", to)], page, reusable).await
}

/// Answers with the text of a route, or our page if it has none.
pub(crate) async fn fixed(
    connection: &mut Connection,
    generation: &Generation,
    head: &RequestHead,
    transaction: &mut Transaction,
    status: u16,
    text: Option<&(String, String)>,
    reusable: bool,
) -> Next {
    let page = match text {
        Some((body, media_type)) => Page::new(media_type.clone(), body.clone()),
        None => block_page::page(status, "", &transaction.request_id, Form::of(head)),
    };
    transaction.changes_own_headers = true;
    send(connection, generation, head, transaction, status, &[], page, reusable).await
}

/// Does what the rules ask for.
pub(crate) async fn interruption(
    connection: &mut Connection,
    generation: &Generation,
    head: &RequestHead,
    transaction: &mut Transaction,
    what: Interruption,
    reusable: bool,
) -> Next {
    match what {
        Interruption::Drop => {
            transaction.action = Action::Drop;
            transaction.status = None;
            Next::Gone
        }
        Interruption::Deny { .. } | Interruption::Proxy { .. } => {
            // The compiler lets no rule divert a request that is on its way already; if one did, it is a fault of ours.
            let status = if let Interruption::Deny { status } = what { status } else { 500 };
            transaction.action = Action::Deny;
            let page = generation.block_page.blocked(status, &transaction.request_id, Form::of(head));
            let page = page.told(head, status, &transaction.request_id);
            send(connection, generation, head, transaction, status, &[], page, reusable).await
        }
        Interruption::Redirect { status, location } => {
            transaction.action = Action::Redirect;
            let text = "The request was redirected by the web application firewall.";
            let page = block_page::page(status, text, &transaction.request_id, Form::of(head));
            let page = page.told(head, status, &transaction.request_id);
            let fields: [(&str, &[u8]); 1] = [("Location", &location)];
            send(connection, generation, head, transaction, status, &fields, page, reusable).await
        }
    }
}

/// Sends a whole answer.
#[allow(clippy::too_many_arguments)] // the parts of one answer, from two callers just above
async fn send(
    connection: &mut Connection,
    generation: &Generation,
    head: &RequestHead,
    transaction: &mut Transaction,
    status: u16,
    more: &[(&str, &[u8])],
    page: Page,
    reusable: bool,
) -> Next {
    let keep = reusable && head.keep_alive() && !connection.worker.draining.get();
    let id = transaction.request_id.clone();
    let mut fields: Vec<(&str, &[u8])> = vec![
        ("Content-Type", page.media_type.as_bytes()),
        ("Cache-Control", b"no-store"),
        ("X-Request-Id", id.as_bytes()),
    ];
    let signature = transaction.server_signature().unwrap_or_default().to_vec();
    if !signature.is_empty() {
        fields.push(("Server", &signature));
    }
    if status == 405 {
        fields.push(("Allow", b"GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"));
    }
    let retry_after = transaction.retry_after.filter(|_| status == 503).map(|seconds| seconds.to_string());
    fields.extend(retry_after.as_ref().map(|seconds| ("Retry-After", seconds.as_bytes())));
    let hsts = transaction.hsts.clone();
    fields.extend(hsts.as_deref().and_then(Https::field));
    let alt_svc = transaction.alt_svc.take();
    fields.extend(alt_svc.as_ref().map(|value| ("Alt-Svc", value.as_bytes())));
    fields.extend_from_slice(more);
    fields.extend(page.fields.iter().map(|(name, value)| (*name, value.as_bytes())));
    let changed = transaction.response_headers.take().filter(|_| transaction.changes_own_headers);
    if let Some(changed) = &changed {
        let named = |field: &str, name: &str| field.eq_ignore_ascii_case(name);
        let goes = |field: &str| {
            changed.remove.iter().any(|name| named(field, name))
                || changed.set.iter().any(|(name, _)| named(field, name))
        };
        fields.retain(|(field, _)| !goes(field));
        fields.extend(crate::route::fields(&changed.set, ""));
        fields.extend(crate::route::fields(&changed.add, ""));
    }
    let mut output = std::mem::take(&mut connection.output);
    output.clear();
    let body = page.body.as_bytes();
    if head.version() == Version::Http09 && transaction.refusal.is_none() {
        // A simple request knows no head.
        output.extend_from_slice(body);
    } else {
        let client = ClientConnection::of(head.version(), keep);
        write_answer(status, &fields, body, client, head.method() == b"HEAD", &mut output);
    }
    transaction.status = Some(status);
    transaction.own_body_bytes = body.len() as u64;
    if transaction.is_recorded() {
        let length = body.len().to_string();
        let shown = fields.iter().copied().chain([("Content-Length", length.as_bytes())]);
        transaction.own_headers =
            Some(shown.map(|(name, value)| (name.as_bytes().to_vec(), value.to_vec())).collect());
    }
    connection.output = output;
    match Sink::new(connection, generation.timeouts.write, false).send_composed().await {
        Err(_) => Next::Gone,
        Ok(()) if keep => Next::Request,
        Ok(()) => Next::Close,
    }
}
