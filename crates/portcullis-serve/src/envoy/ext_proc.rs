//! External processing: request and response, head, body and trailers, as far as Envoy is configured to send
//! them.

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};

use portcullis_event::BlindSpot;
use portcullis_http::h1::{Limits, assemble_response};
use portcullis_http::message::{BodyFraming, Version};

use super::grpc::{Call, Code, End};
use super::reply::{self, Field, Told};
use super::wire::{
    Empty, HeaderMap, HeaderMutation, HttpBody, HttpHeaders, HttpStatus, HttpTrailers, ImmediateResponse,
    Kind, ProcessingRequest, ProcessingResponse, ProtocolConfiguration, Reply, Shown, Struct,
};
use portcullis_exchange::Unanswered;
use portcullis_exchange::{Arrival, Conversation, Cut};

/// The name under which Envoy keeps our metadata.
const NAMESPACE: &str = "portcullis";
/// Values of `ProcessingMode.BodySendMode`.
const NONE: i32 = 0;
const STREAMED: i32 = 1;
const BUFFERED_PARTIAL: i32 = 3;
const FULL_DUPLEX_STREAMED: i32 = 4;

/// Answers one stream: one exchange.
pub(super) async fn process(call: &mut Call, peer: SocketAddr) -> Result<(), End> {
    let mut stream = Stream {
        exchange: None,
        protocol: None,
        request: Part::default(),
        response: Part::default(),
        told: None,
    };
    while let Some(message) = call.next::<ProcessingRequest>().await? {
        let answer = stream.answer(call, peer, message)?;
        if !call.send(&answer).await {
            break;
        }
        if matches!(answer.reply, Some(Reply::Immediate(_))) {
            break;
        }
    }
    stream.end();
    Ok(())
}

/// The parts of a message that have been shown.
#[derive(Debug, Default)]
struct Part {
    has_head: bool,
    has_body: bool,
    is_over: bool,
}

struct Stream {
    exchange: Option<Conversation>,
    /// The modes in which Envoy sends bodies; none: it does not say.
    protocol: Option<ProtocolConfiguration>,
    request: Part,
    response: Part,
    /// The metadata that Envoy has. It keeps them, so they are sent again only when they have changed.
    told: Option<Struct>,
}

const OUT_OF_ORDER: End = (Code::InvalidArgument, "a message came out of order");

impl Stream {
    fn answer(
        &mut self,
        call: &Call,
        peer: SocketAddr,
        message: ProcessingRequest,
    ) -> Result<ProcessingResponse, End> {
        let ProcessingRequest { shown, attributes, observability_mode: _, protocol } = message;
        if let (None, Some(protocol)) = (self.protocol, protocol) {
            let is_duplex = |mode| mode >= FULL_DUPLEX_STREAMED;
            if is_duplex(protocol.request_body_mode) || is_duplex(protocol.response_body_mode) {
                call.service.unanswered(Unanswered::Malformed);
                return Err((Code::Unimplemented, "bodies are not processed in full duplex here"));
            }
            self.protocol = Some(protocol);
        }
        let malformed = |end: End| {
            call.service.unanswered(Unanswered::Malformed);
            end
        };
        let go_on = match shown.ok_or(OUT_OF_ORDER).map_err(malformed)? {
            Shown::RequestHeaders(headers) if !self.request.has_head => {
                self.request_headers(call, peer, &headers, &attributes);
                Reply::RequestHeaders(Empty {})
            }
            Shown::RequestBody(body) => {
                self.request_body(&body).map_err(malformed)?;
                Reply::RequestBody(Empty {})
            }
            Shown::RequestTrailers(trailers) => {
                self.request_trailers(&trailers).map_err(malformed)?;
                Reply::RequestTrailers(Empty {})
            }
            Shown::ResponseHeaders(headers) if !self.response.has_head => {
                self.response_headers(&headers).map_err(malformed)?;
                Reply::ResponseHeaders(Empty {})
            }
            Shown::ResponseBody(body) => {
                self.response_body(&body).map_err(malformed)?;
                Reply::ResponseBody(Empty {})
            }
            Shown::ResponseTrailers(_) => {
                self.end_response(None).map_err(malformed)?;
                Reply::ResponseTrailers(Empty {})
            }
            Shown::RequestHeaders(_) | Shown::ResponseHeaders(_) => return Err(malformed(OUT_OF_ORDER)),
        };
        let exchange = self.exchange.as_mut().ok_or(OUT_OF_ORDER).map_err(malformed)?;
        let told = Some(reply::metadata(exchange)).filter(|told| self.told.as_ref() != Some(told));
        let dynamic_metadata = told.map(|told| {
            self.told = Some(told.clone());
            Struct { fields: HashMap::from([(NAMESPACE.to_owned(), Kind::Struct(told).into())]) }
        });
        let reply = match exchange.block() {
            None => go_on,
            Some(block) => Reply::Immediate(ImmediateResponse {
                status: Some(HttpStatus { code: block.status.into() }),
                headers: Some(HeaderMutation { set: reply::headers(block, exchange.request_id()) }),
                body: block.page.body.clone().into_bytes(),
                details: "blocked_by_portcullis".to_owned(),
            }),
        };
        Ok(ProcessingResponse { reply: Some(reply), dynamic_metadata })
    }

    fn request_headers(
        &mut self,
        call: &Call,
        peer: SocketAddr,
        headers: &HttpHeaders,
        attributes: &HashMap<String, Struct>,
    ) {
        self.request.has_head = true;
        let all = fields(headers.headers.as_ref());
        let pseudo =
            |name: &[u8]| all.iter().find(|(known, _)| *known == name).map_or(&b""[..], |(_, value)| *value);
        let protocol = attribute(attributes, "request.protocol");
        let told = Told {
            method: pseudo(b":method"),
            target: pseudo(b":path"),
            host: pseudo(b":authority"),
            version: protocol.map_or(Version::Http11, reply::version),
            fields: without_pseudo(&all),
            has_body: Some(!headers.end_of_stream),
        };
        let source = attribute(attributes, "source.address").and_then(|text| text.parse().ok());
        let server = attribute(attributes, "destination.address").and_then(|text| text.parse().ok());
        let arrival = Arrival {
            client: source.unwrap_or_else(|| reply::client(&call.service, peer, &all)),
            peer,
            server: server.unwrap_or(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0))),
            tls: pseudo(b":scheme") == b"https",
        };
        self.exchange = Some(Conversation::begin(&call.service.exchanges, arrival, told.head()));
        let is_without_body = self.protocol.is_some_and(|modes| modes.request_body_mode == NONE);
        if headers.end_of_stream || is_without_body {
            self.end_request(None);
        }
    }

    fn request_body(&mut self, body: &HttpBody) -> Result<(), End> {
        let mode = self.protocol.map_or(STREAMED, |modes| modes.request_body_mode);
        let exchange = self.exchange.as_mut().filter(|_| !self.request.is_over).ok_or(OUT_OF_ORDER)?;
        self.request.has_body = true;
        exchange.request_body(&body.body);
        if mode == STREAMED && !body.end_of_stream {
            exchange.blind(BlindSpot::RequestBodyStreamed);
        }
        let missing_bytes = match (exchange.head().framing(), mode, body.end_of_stream) {
            (_, BUFFERED_PARTIAL, true) => 0,
            (BodyFraming::Length(length), BUFFERED_PARTIAL, false) => {
                length.saturating_sub(exchange.request_bytes())
            }
            (_, BUFFERED_PARTIAL, false) => 1,
            _ => 0,
        };
        // Behind a body that was buffered there may be trailers, which may not be shown: it is the end all
        // the same.
        if body.end_of_stream || mode != STREAMED {
            self.end_request((missing_bytes > 0).then_some(Cut { missing_bytes }));
        }
        Ok(())
    }

    fn request_trailers(&mut self, trailers: &HttpTrailers) -> Result<(), End> {
        let exchange = self.exchange.as_mut().ok_or(OUT_OF_ORDER)?;
        let fields = fields(trailers.trailers.as_ref());
        if self.request.is_over {
            // Phase 2 has run: they are a rest of the request that was not inspected.
            let bytes: usize = fields.iter().map(|(name, value)| name.len() + value.len()).sum();
            exchange.not_shown(bytes as u64);
            exchange.blind(BlindSpot::RequestBodyCut);
        } else {
            exchange.request_trailers(fields.into_iter());
            self.end_request(None);
        }
        Ok(())
    }

    /// Phase 2, once.
    fn end_request(&mut self, cut: Option<Cut>) {
        let Some(exchange) = self.exchange.as_mut().filter(|_| !self.request.is_over) else { return };
        self.request.is_over = true;
        if !self.request.has_body {
            exchange.no_request_body();
        }
        exchange.request_end(cut);
    }

    fn response_headers(&mut self, headers: &HttpHeaders) -> Result<(), End> {
        // Envoy may not send the end of a request that it was not told to buffer.
        self.end_request(None);
        self.response.has_head = true;
        let exchange = self.exchange.as_mut().ok_or(OUT_OF_ORDER)?;
        let all = fields(headers.headers.as_ref());
        let status = all.iter().find(|(name, _)| *name == b":status");
        let status = status.and_then(|(_, value)| std::str::from_utf8(value).ok()?.parse().ok()).unwrap_or(0);
        let fields: Vec<Field<'_>> = without_pseudo(&all);
        let is_of_connection =
            |name: &[u8]| matches!(name, b"transfer-encoding" | b"connection" | b"upgrade" | b"keep-alive");
        let fields: Vec<Field<'_>> = fields.into_iter().filter(|(name, _)| !is_of_connection(name)).collect();
        let Ok(head) = assemble_response(status, &fields, headers.end_of_stream, &Limits::default()) else {
            exchange.reject(502, "The application's answer is not valid.");
            return Ok(());
        };
        exchange.response_head(&head);
        let is_without_body = self.protocol.is_some_and(|modes| modes.response_body_mode == NONE);
        if headers.end_of_stream {
            self.end_response(None)?;
        } else if is_without_body {
            if exchange.wants_response_body() {
                exchange.blind(BlindSpot::ResponseBody);
            }
            self.end_response(None)?;
        }
        Ok(())
    }

    fn response_body(&mut self, body: &HttpBody) -> Result<(), End> {
        let mode = self.protocol.map_or(STREAMED, |modes| modes.response_body_mode);
        let exchange = self.exchange.as_mut().filter(|_| self.response.has_head && !self.response.is_over);
        let exchange = exchange.ok_or(OUT_OF_ORDER)?;
        self.response.has_body = true;
        exchange.response_body(&body.body);
        if mode == STREAMED && !body.end_of_stream {
            exchange.blind(BlindSpot::ResponseBodyStreamed);
        }
        let cut = (mode == BUFFERED_PARTIAL && !body.end_of_stream).then_some(Cut { missing_bytes: 1 });
        match body.end_of_stream || mode != STREAMED {
            true => self.end_response(cut),
            false => Ok(()),
        }
    }

    /// Phase 4, once.
    fn end_response(&mut self, cut: Option<Cut>) -> Result<(), End> {
        let exchange = self.exchange.as_mut().ok_or(OUT_OF_ORDER)?;
        if self.response.has_head && !std::mem::replace(&mut self.response.is_over, true) {
            exchange.response_end(cut);
        }
        Ok(())
    }

    /// The stream has ended: what has not come will not.
    fn end(&mut self) {
        if !self.request.is_over {
            if let Some(exchange) = self.exchange.as_mut().filter(|_| self.request.has_body) {
                exchange.blind(BlindSpot::RequestBodyCut);
            }
            self.end_request(None);
        }
        if let Some(exchange) = self.exchange.as_mut().filter(|exchange| exchange.block().is_none()) {
            match self.response.has_head {
                false => exchange.blind(BlindSpot::Response),
                true if !self.response.is_over => exchange.blind(BlindSpot::ResponseBodyCut),
                true => {}
            }
        }
    }
}

fn fields(map: Option<&HeaderMap>) -> Vec<Field<'_>> {
    let headers = map.iter().flat_map(|map| &map.headers);
    headers.map(|header| (header.key.as_bytes(), header.bytes())).collect()
}

fn without_pseudo<'a>(fields: &[Field<'a>]) -> Vec<Field<'a>> {
    fields.iter().copied().filter(|(name, _)| !name.starts_with(b":") && *name != b"host").collect()
}

/// An attribute that Envoy is configured to send (`request_attributes`).
fn attribute<'a>(attributes: &'a HashMap<String, Struct>, name: &str) -> Option<&'a str> {
    attributes.values().find_map(|filter| match filter.fields.get(name)?.kind.as_ref()? {
        Kind::Text(text) => Some(text.as_str()),
        Kind::Number(_) | Kind::Struct(_) | Kind::List(_) => None,
    })
}
