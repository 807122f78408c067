//! `POST /explain`: a message through the policies that serve, without being served.

use std::net::IpAddr;
use std::sync::Arc;

use axum::Extension;
use axum::Json;
use axum::extract::State;
use portcullis_replay::{Message, read_message};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::access::Principal;
use crate::context::Context;
use crate::extract::DocumentBody;
use crate::message::{self, Given};
use crate::problem::{Kind, Problem};
use crate::routes::events;
use crate::stored::CLIENT;
use crate::supplies::{Explained, Trial, TrialError};

/// A message to explain: one of `request`, `request_base64`, `curl` and `request_id`.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExplainOrder {
    /// The request as it would be sent: head, empty line, body. Line ends of the head may be LF.
    #[schema(max_length = 1_048_576)]
    request: Option<String>,
    /// The same in base64, for bodies that are no text.
    #[schema(max_length = 1_048_576)]
    request_base64: Option<String>,
    /// A command line of curl. Nothing is sent, and no file is read.
    #[schema(max_length = 1_048_576)]
    curl: Option<String>,
    /// The id of a request that is kept with its event.
    request_id: Option<String>,
    /// The response: head, empty line, body.
    #[schema(max_length = 1_048_576)]
    response: Option<String>,
    /// The site. Default: that of the event, or the one that serves the host.
    site: Option<String>,
    /// The route of the site. Default: that of the event, or the one that takes the request.
    route: Option<String>,
    /// The client's address. Default: that of the event, or 192.0.2.1.
    #[schema(value_type = Option<String>, format = "ip")]
    client: Option<IpAddr>,
    /// The id of a rule of which every test is reported, or why it did not run.
    #[serde(default, deserialize_with = "rule_id")]
    #[schema(value_type = Option<u32>, minimum = 0, maximum = 4_294_967_295_i64)]
    rule: Option<u32>,
    /// Also matches of rules that neither log nor score. Default: false.
    #[serde(default)]
    all: bool,
}

fn rule_id<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    let number = crate::extract::whole(deserializer, 0..=u64::from(u32::MAX), "rule")?;
    Ok(number.and_then(|number| u32::try_from(number).ok()))
}

/// The explanation of a message.
#[derive(Serialize, ToSchema)]
pub(crate) struct ExplainAnswer {
    /// The number of the settings.
    generation: u64,
    /// The site.
    site: String,
    /// The route.
    route: String,
    /// The explanation; its members are those of `portcullis explain --json`.
    #[schema(value_type = Object)]
    explanation: Box<RawValue>,
}

/// Explains what the settings that serve would do with a message. Nothing is sent, counted or recorded;
/// collections start empty.
#[utoipa::path(post, path = "/explain", tag = "rules", operation_id = "explain", request_body = ExplainOrder,
    responses((status = 200, body = ExplainAnswer, description = "The explanation."),
        (status = 404, body = Problem, content_type = "application/problem+json",
            description = "There is no such site, route, rule or event."),
        (status = 409, body = Problem, content_type = "application/problem+json",
            description = "The route's requests are not inspected."),
        (status = 413, body = Problem, content_type = "application/problem+json",
            description = "The message is too long."),
        (status = 422, body = Problem, content_type = "application/problem+json",
            description = "The message cannot be read.")))]
pub(crate) async fn explain(
    State(context): State<Arc<Context>>,
    Extension(principal): Extension<Principal>,
    DocumentBody(order): DocumentBody<ExplainOrder>,
) -> Result<Json<ExplainAnswer>, Problem> {
    let ExplainOrder { request, request_base64, curl, request_id, response, .. } = order;
    let texts = [&request, &request_base64, &curl, &response];
    message::bound(texts.into_iter().flatten())?;
    let (mut site, mut route, mut client) = (order.site, order.route, order.client);
    let given = Given { request, request_base64, curl };
    let message = match (given.is_none(), request_id) {
        (false, None) => given.read()?,
        (true, Some(id)) => {
            let kept = events::kept(&context, &principal.sites, id).await?;
            site = site.or(kept.site);
            route = route.or(kept.route);
            client = client.or(kept.client);
            let mut notes = Vec::new();
            if kept.omitted_bytes > 0 {
                notes.push(format!("{} bytes of the body were not kept", kept.omitted_bytes));
            }
            Message { bytes: kept.bytes, notes }
        }
        _ => {
            let detail = "give one of request, request_base64, curl and request_id";
            return Err(Problem::with(Kind::Invalid, detail));
        }
    };
    let trial = Trial {
        site,
        route,
        request: message.bytes,
        notes: message.notes,
        response: response.map(|text| read_message(text.as_bytes()).bytes),
        client: client.unwrap_or(CLIENT),
        all: order.all,
        rule: order.rule,
    };
    let is_asked = trial.site.as_deref().is_some_and(|site| principal.sites.admit(site));
    let explained = context.trial(move |trials| trials.explain(trial)).await?;
    let site = match &explained {
        Ok(Explained { site, .. }) | Err(TrialError::NotInspected { site, .. }) => Some(site),
        Err(_) => None,
    };
    // The host of a request may lead to any site.
    let is_own = site.map_or(principal.sites.is_all() || is_asked, |site| principal.sites.admit(site));
    let explained = match explained {
        Err(error) if is_own => return Err(problem(&context, error)),
        Ok(explained) if is_own => explained,
        Ok(_) | Err(_) => return Err(problem(&context, TrialError::NoSite)),
    };
    let Explained { site, route, generation, explanation } = explained;
    let explanation = RawValue::from_string(explanation).map_err(|_| Problem::of(Kind::Internal))?;
    Ok(Json(ExplainAnswer { generation, site, route, explanation }))
}

fn problem(context: &Context, error: TrialError) -> Problem {
    let (kind, detail) = match error {
        TrialError::NoSite => (Kind::NotFound, "there is no such site, or none that serves this host".to_owned()),
        TrialError::NoRoute => {
            (Kind::NotFound, "the site has no such route, or none that takes this request".to_owned())
        }
        TrialError::Ambiguous => (
            Kind::Conflict,
            "the path as written and as servers resolve it lead to different routes: the proxy refuses the request; \
             name a route to explain it there"
                .to_owned(),
        ),
        TrialError::NotInspected { site, route } => {
            (Kind::Conflict, format!("requests of the route `{route}` of the site `{site}` are not inspected"))
        }
        TrialError::NoRule(id) => (Kind::NotFound, format!("the rules of the route have no rule {id}")),
        TrialError::Response(error) => (Kind::Invalid, format!("response: {error}")),
        TrialError::Failed(error) => {
            context.say(&format!("admin API: {error}"));
            return Problem::of(Kind::Internal);
        }
    };
    Problem::with(kind, detail)
}
