//! One call: the request is held and judged, the application asked, its response held and judged.

use std::pin::Pin;
use std::time::Duration;

use bytes::BytesMut;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body::Body;
use portcullis_embed::{Broken, Exchange};
use tokio::time::Instant;
use tower_service::Service;

use crate::beside::{ShuttingDown, beside};
use crate::layer::Shared;
use crate::read::{Part, next};
use crate::replay::Replay;
use crate::response_body::ResponseBody;

/// The part that may continue, or the answer in its place.
type Judged<T, R> = Result<T, Box<Response<ResponseBody<R>>>>;

pub(crate) async fn serve<S, B, R>(
    shared: Shared,
    mut inner: S,
    request: Request<B>,
) -> Result<Response<ResponseBody<R>>, S::Error>
where
    S: Service<Request<Replay<B>>, Response = Response<R>>,
    B: Body,
    R: Body,
{
    let (parts, body) = request.into_parts();
    let exchange = shared.waf.begin(&parts, body.is_end_stream(), shared.client(&parts));
    let (exchange, body) = match judge_request(&shared, exchange, body).await {
        Ok(passed) => passed,
        Err(answer) => return Ok(*answer),
    };
    let answered = inner.call(Request::from_parts(parts, body)).await?;
    Ok(judge_response(exchange, answered).await.unwrap_or_else(|answer| *answer))
}

/// Holds and judges the body of a request.
async fn judge_request<B: Body, R: Body>(
    shared: &Shared,
    mut exchange: Exchange,
    body: B,
) -> Judged<(Exchange, Replay<B>), R> {
    let is_bodiless = body.is_end_stream();
    let mut body = Box::pin(body);
    let (mut held, mut end) = (BytesMut::new(), None);
    if !is_bodiless && exchange.wants_request_body() {
        let deadline = Instant::now() + shared.body_timeout;
        end = hold_request(&mut exchange, &mut body, &mut held, deadline, shared.idle_timeout).await;
    }
    let exchange = beside(exchange, held.len(), |exchange| exchange.request_end()).await;
    let exchange = judged(exchange)?;
    let replay = Replay::new(body, exchange.request_passed()).behind(held.freeze());
    let replay = match end {
        Some(trailers) => replay.ended(trailers, None),
        None => replay,
    };
    Ok((exchange, replay))
}

/// Shows a request body as it comes. Its trailers, if it came to its end; none if there is more of it.
async fn hold_request<B: Body>(
    exchange: &mut Exchange,
    body: &mut Pin<Box<B>>,
    held: &mut BytesMut,
    deadline: Instant,
    idle: Duration,
) -> Option<Option<HeaderMap>> {
    loop {
        match next(body, Some(deadline.min(Instant::now() + idle))).await {
            Part::Data(piece) => {
                // Copied together, since pieces may be small and keep large buffers alive.
                held.extend_from_slice(&piece);
                if !exchange.request_body(&piece) {
                    return None;
                }
            }
            Part::Trailers(trailers) => {
                exchange.request_trailers(&trailers);
                return Some(Some(trailers));
            }
            Part::End => return Some(None),
            Part::Failed(_) => {
                exchange.request_broken(Broken::Unreadable);
                return None;
            }
            Part::Late => {
                exchange.request_broken(Broken::Late);
                return None;
            }
        }
    }
}

/// Holds and judges a response.
async fn judge_response<R: Body>(
    mut exchange: Exchange,
    response: Response<R>,
) -> Judged<Response<ResponseBody<R>>, R> {
    let (parts, body) = response.into_parts();
    let is_bodiless = body.is_end_stream() || parts.status == StatusCode::SWITCHING_PROTOCOLS;
    let fields = parts.headers.iter().map(|(name, value)| (name.as_str().as_bytes(), value.as_bytes()));
    exchange.response_head(parts.status.as_u16(), fields, is_bodiless);
    let (mut body, mut held, mut end) = (Box::pin(body), BytesMut::new(), Ended::More);
    let is_held = !is_bodiless && exchange.wants_response_body();
    if is_held {
        end = hold_response(&mut exchange, &mut body, &mut held).await;
    }
    let is_whole = !matches!(end, Ended::More) || !is_held;
    let exchange = beside(exchange, held.len(), move |exchange| exchange.response_end(is_whole)).await;
    let exchange = judged(exchange)?;
    let replay = Replay::new(body, exchange.response_passed()).behind(held.freeze());
    let replay = match end {
        Ended::Whole(trailers) => replay.ended(trailers, None),
        Ended::Failed(error) => replay.ended(None, Some(error)),
        Ended::More => replay,
    };
    Ok(Response::from_parts(parts, ResponseBody::application(replay, exchange)))
}

/// The end of what was held of a response.
enum Ended<E> {
    Whole(Option<HeaderMap>),
    Failed(E),
    /// The rest goes on as it comes.
    More,
}

/// Shows a response body as it comes.
async fn hold_response<R: Body>(
    exchange: &mut Exchange,
    body: &mut Pin<Box<R>>,
    held: &mut BytesMut,
) -> Ended<R::Error> {
    let deadline = exchange.response_wait_max().map(|wait| Instant::now() + wait);
    loop {
        match next(body, deadline).await {
            Part::Data(piece) => {
                held.extend_from_slice(&piece);
                if !exchange.response_body(&piece) {
                    return Ended::More;
                }
            }
            Part::Trailers(trailers) => return Ended::Whole(Some(trailers)),
            Part::End => return Ended::Whole(None),
            Part::Failed(error) => return Ended::Failed(error),
            // Only the semantic detector looks at it: the rest does not wait.
            Part::Late => return Ended::More,
        }
    }
}

/// The exchange, if it may go on.
fn judged<R: Body>(exchange: Result<Exchange, ShuttingDown>) -> Judged<Exchange, R> {
    let exchange = exchange.map_err(|ShuttingDown| unavailable())?;
    match exchange.answer() {
        None => Ok(exchange),
        Some(answer) => Err(Box::new(answer.map(ResponseBody::ours))),
    }
}

fn unavailable<R: Body>() -> Box<Response<ResponseBody<R>>> {
    let mut response = Response::new(ResponseBody::ours(Vec::new()));
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    Box::new(response)
}
