//! `POST /sinks/{sink}/test`: a test event through a sink.

use std::sync::Arc;

use axum::extract::State;
use axum::{Extension, Json};
use serde::Serialize;
use utoipa::ToSchema;

use crate::access::Principal;
use crate::changes;
use crate::context::Context;
use crate::extract::Parameter;
use crate::problem::{Kind, Problem};
use crate::supplies::{SinkOrder, SinkTestError};

/// Result of a test event.
#[derive(Serialize, ToSchema)]
pub(crate) struct SinkTest {
    /// `confirmed`: the receiver has said that it has the event; `sent`: it was sent, and receivers of this
    /// kind (syslog) say nothing; `failed`.
    outcome: &'static str,
    /// The time that it took, in milliseconds.
    milliseconds: u64,
    /// Why it failed, in words; null if it did not.
    error: Option<String>,
}

/// Sends a test event to the receiver of a sink of the document as it is stored, whether the sink runs yet or
/// not: once, beside the events of the sink and whatever its filter. The event says that it is a test.
#[utoipa::path(post, path = "/sinks/{sink}/test", tag = "configuration", operation_id = "test_sink",
    params(("sink" = String, Path, description = "The name of the sink.")),
    responses((status = 200, body = SinkTest, description = "What became of the event."),
        (status = 404, body = Problem, content_type = "application/problem+json",
            description = "The document has no such sink."),
        (status = 409, body = Problem, content_type = "application/problem+json",
            description = "The settings come from the command line."),
        (status = 422, body = Problem, content_type = "application/problem+json",
            description = "The document has mistakes.")))]
pub(crate) async fn test(
    State(context): State<Arc<Context>>,
    Extension(principal): Extension<Principal>,
    Parameter(sink): Parameter<String>,
) -> Result<Json<SinkTest>, Problem> {
    let (name, by, now) = (sink.clone(), principal.actor().name, context.now_ms());
    let order = changes::with(&context, move |revisions| {
        let text = revisions.current(now)?.text.as_str().to_owned();
        let (format, file) = (revisions.document().format(), revisions.document().name());
        Ok(SinkOrder { text, format, file, sink: name, by })
    });
    let order = order.await?;
    // The event is sent even if the client leaves, and then stands in the audit trail, too.
    let work = tokio::spawn(async move {
        let tested = context.sink_test(move |trials| trials.test_sink(order)).await?.map_err(problem)?;
        let outcome = match (&tested.error, tested.is_confirmed) {
            (Some(_), _) => "failed",
            (None, true) => "confirmed",
            (None, false) => "sent",
        };
        let milliseconds = u64::try_from(tested.time.as_millis()).unwrap_or(u64::MAX);
        let detail = match &tested.error {
            Some(why) => format!("{outcome} after {milliseconds} ms: {why}"),
            None => format!("{outcome} in {milliseconds} ms"),
        };
        let (actor, now) = (principal.actor(), context.now());
        context.identities(move |log| log.record(&actor, "sink.test", &sink, &detail, now)).await?;
        Ok(Json(SinkTest { outcome, milliseconds, error: tested.error }))
    });
    work.await.map_err(|_| Problem::of(Kind::Internal))?
}

fn problem(error: SinkTestError) -> Problem {
    match error {
        SinkTestError::Document(mistakes) => {
            let lines: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
            Problem::with(Kind::Document, lines.join("\n\n")).about(&mistakes)
        }
        SinkTestError::NoSink(names) => {
            let detail = match names.is_empty() {
                true => "the document has no sinks".to_owned(),
                false => format!("the document has the sinks {}", names.join(", ")),
            };
            Problem::with(Kind::NotFound, detail)
        }
    }
}
