//! External authorization: the request, with as much of its body as Envoy is configured to buffer.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use portcullis_event::BlindSpot;
use portcullis_http::message::BodyFraming;

use super::grpc::{Call, Code, End};
use super::reply::{self, Field, Told};
use super::wire::{
    Attributes, CheckRequest, CheckResponse, DeniedResponse, HeaderValueOption, HttpRequest, HttpStatus,
    OkResponse, Peer, RpcStatus,
};
use portcullis_exchange::Unanswered;
use portcullis_exchange::{Arrival, Conversation, Cut};

/// `PERMISSION_DENIED` of `google.rpc.Code`.
const PERMISSION_DENIED: i32 = 7;
/// The header by which Envoy tells that it sends a part of the body.
const PARTIAL: &[u8] = b"x-envoy-auth-partial-body";

/// Answers one call.
pub(super) async fn check(call: &mut Call, peer: SocketAddr) -> Result<(), End> {
    let Some(request) = call.next::<CheckRequest>().await? else { return Ok(()) };
    let attributes = request.attributes.unwrap_or_default();
    let Some(http) = attributes.request.as_ref().and_then(|request| request.http.as_ref()) else {
        call.service.unanswered(Unanswered::Malformed);
        return Err((Code::InvalidArgument, "there is no HTTP request in it"));
    };
    let response = inspect(call, &attributes, http, peer);
    call.send(&response).await;
    Ok(())
}

fn inspect(call: &Call, attributes: &Attributes, http: &HttpRequest, peer: SocketAddr) -> CheckResponse {
    let fields = fields(http);
    let is_partial = fields.iter().any(|(name, value)| *name == PARTIAL && *value == b"true");
    let body = if http.raw_body.is_empty() { &http.body } else { &http.raw_body };
    let arrival = Arrival {
        client: address(attributes.source.as_ref()).unwrap_or(peer),
        peer,
        server: address(attributes.destination.as_ref())
            .unwrap_or(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0))),
        tls: http.scheme == "https",
    };
    let told = Told {
        method: &http.method,
        target: &http.path,
        host: &http.host,
        version: reply::version(&http.protocol),
        fields: fields.into_iter().filter(|(name, _)| *name != PARTIAL).collect(),
        has_body: (!body.is_empty()).then_some(true),
    };
    let mut conversation = Conversation::begin(&call.service.exchanges, arrival, told.head());
    conversation.blind(BlindSpot::Response);
    let mut cut = None;
    if body.is_empty() {
        conversation.no_request_body();
    } else {
        conversation.request_body(body);
        let missing_bytes = match conversation.head().framing() {
            BodyFraming::Length(length) => length.saturating_sub(body.len() as u64),
            BodyFraming::None | BodyFraming::Chunked | BodyFraming::UntilClose => u64::from(is_partial),
        };
        cut = (is_partial || missing_bytes > 0).then_some(Cut { missing_bytes: missing_bytes.max(1) });
    }
    conversation.request_end(cut);
    let dynamic_metadata = Some(reply::metadata(&mut conversation));
    match conversation.block() {
        None => {
            let (status, ok) = (Some(RpcStatus { code: 0 }), Some(OkResponse {}));
            CheckResponse { status, ok, denied: None, dynamic_metadata }
        }
        Some(block) => {
            let denied = DeniedResponse {
                status: Some(HttpStatus { code: block.status.into() }),
                headers: plain(reply::headers(block, conversation.request_id())),
                body: block.page.body.clone(),
            };
            let status = Some(RpcStatus { code: PERMISSION_DENIED });
            CheckResponse { status, denied: Some(denied), ok: None, dynamic_metadata }
        }
    }
}

/// The same headers as texts: Envoy does not look at `raw_value` here, as it does in external processing.
fn plain(mut headers: Vec<HeaderValueOption>) -> Vec<HeaderValueOption> {
    for header in headers.iter_mut().filter_map(|option| option.header.as_mut()) {
        header.value = std::mem::take(&mut header.raw_value);
    }
    headers
}

/// The fields of the request; those of a map come in no order, and fields of one name are one there.
fn fields(http: &HttpRequest) -> Vec<Field<'_>> {
    let raw = http.header_map.iter().flat_map(|map| &map.headers);
    let mut fields: Vec<Field<'_>> = raw.map(|header| (header.key.as_bytes(), header.bytes())).collect();
    if fields.is_empty() {
        fields = http.headers.iter().map(|(name, value)| (name.as_bytes(), &value[..])).collect();
        fields.sort_unstable();
    }
    fields.retain(|(name, _)| !name.starts_with(b":") && *name != b"host");
    fields
}

fn address(peer: Option<&Peer>) -> Option<SocketAddr> {
    let address = peer?.address.as_ref()?.socket_address.as_ref()?;
    let ip: IpAddr = address.address.parse().ok()?;
    Some(SocketAddr::new(ip.to_canonical(), u16::try_from(address.port).unwrap_or(0)))
}
