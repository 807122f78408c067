//! Messages and documents of the admin API, tried without serving by them.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use portcullis_advise::{Case, advise};
use portcullis_api::{
    AdviceOrder, CheckedDocument, CheckedRules, Explained, ReplayChange, ReplayError, ReplayOrder,
    ReplayRequest, Replayed, SinkOrder, SinkTestError, SinkTested, StoredRequest, Trial, TrialError, Trials,
};
use portcullis_config::{Config, Format, Survey};
use portcullis_event::{Action, Event, Timestamp};
use portcullis_exchange::LocalTime;
use portcullis_http::message::RequestHead;
use portcullis_inspect::Inspector;
use portcullis_load::{LoadError, Loaded};
use portcullis_proxy::{RouteChoice, Serving, Status};
use portcullis_replay::{Exchange, Message, parse, parse_response};
use portcullis_sinks::{Delivery, Sinks};

use crate::checked::{self, Checked};
use crate::edited::Edited;
use crate::explain;
use crate::outcome::Failure;
use crate::replay::{Change, Counts, Request, Side, compare};

/// The policies of the proxy.
pub struct Bench(pub Status);

impl Trials for Bench {
    fn explain(&self, trial: Trial) -> Result<Explained, TrialError> {
        let serving = self.0.serving();
        let (head, _) = parse(&trial.request);
        let (site, route, inspector) = place(&serving, &trial, &head)?;
        let rule = |id| explain::rule(inspector.plan(), id).ok_or(TrialError::NoRule(id));
        let watched = trial.rule.map(rule).transpose()?;
        let response = trial.response.map(|bytes| {
            let head = parse_response(&bytes).map_err(TrialError::Response)?;
            Ok((head, Message { bytes, notes: Vec::new() }))
        });
        let epoch_millis = Timestamp::from(SystemTime::now()).epoch_millis();
        let exchange = Exchange {
            request: Message { bytes: trial.request, notes: trial.notes },
            response: response.transpose()?,
            client: SocketAddr::new(trial.client, 50_000),
            dns: &[],
            epoch_millis,
            utc_offset_seconds: LocalTime::of_process().utc_offset_seconds((epoch_millis / 1000) as i64),
        };
        let mut explanation = portcullis_replay::explain(&inspector, exchange, watched);
        if !trial.all {
            explanation = explanation.without_bookkeeping();
        }
        let explanation =
            serde_json::to_string(&explanation).map_err(|error| TrialError::Failed(error.to_string()))?;
        Ok(Explained { site, route, generation: serving.number(), explanation })
    }

    fn advise(&self, order: AdviceOrder) -> Result<String, String> {
        let AdviceOrder { text, format, file, site, route, request, others } = order;
        let edited = Edited::new(text, format, file, &site, &route)?;
        let epoch_millis = Timestamp::from(SystemTime::now()).epoch_millis();
        let others: Vec<Case<'_>> = others.iter().map(|other| case(other, epoch_millis)).collect();
        let inspector = edited.inspector()?;
        let advice = advise(&inspector, &edited, &case(&request, epoch_millis), &others);
        serde_json::to_string(&advice.map_err(|none| none.to_string())?).map_err(|error| error.to_string())
    }

    fn replay(&self, order: ReplayOrder) -> Result<Replayed, ReplayError> {
        let ReplayOrder { text, against, format, file, site, requests, changes_max, patience } = order;
        let unfit = |failure: Failure| ReplayError::Unfit(failure.to_string());
        let side = |text: &str| {
            let config = Config::parse(text, format, &file)
                .map_err(|error| ReplayError::Document(error.mistakes().to_vec()))?;
            Side::of(config, file.clone(), site.as_deref()).map_err(unfit)
        };
        let (mut after, mut before) = (side(&text)?, side(&against)?);
        let requests: Vec<Request> = requests.into_iter().map(request).collect();
        let mut changes = Vec::new();
        let mut told = |change: Change, request: &Request, why: &str| {
            if changes.len() < changes_max {
                changes.push(ReplayChange {
                    is_lost: change == Change::Lost,
                    id: request.id.clone(),
                    site: request.site.clone(),
                    client: request.client.ip(),
                    line: request.line(),
                    reason: why.to_owned(),
                });
            }
        };
        let deadline = Instant::now() + patience;
        let counts = compare(&requests, &mut after, Some(&mut before), Some(deadline), &mut told);
        let Counts { requests, stopped, lost, new, not_inspected, incomplete, untried } =
            counts.map_err(unfit)?;
        Ok(Replayed { requests, stopped, lost, new, not_inspected, incomplete, untried, changes })
    }

    fn test_sink(&self, order: SinkOrder) -> Result<SinkTested, SinkTestError> {
        let SinkOrder { text, format, file, sink, by } = order;
        let config = Config::parse(&text, format, &file)
            .map_err(|error| SinkTestError::Document(error.mistakes().to_vec()))?;
        let Some(sink) = config.event_sinks.iter().find(|known| known.name == sink) else {
            return Err(SinkTestError::NoSink(
                config.event_sinks.into_iter().map(|sink| sink.name).collect(),
            ));
        };
        let Delivery { time, error, is_confirmed } = Sinks::send_once(sink, test_event(&sink.name, &by));
        Ok(SinkTested { time, error, is_confirmed })
    }

    fn check(&self, text: String, format: Format, file: String) -> CheckedDocument {
        let survey = match Survey::of_text(text, format, file) {
            Ok(survey) => survey,
            Err(error) => {
                return CheckedDocument { mistakes: error.mistakes().to_vec(), ..CheckedDocument::default() };
            }
        };
        let Checked { mistakes, warnings, sites: _, sets } = checked::document(&survey);
        let rules = |set: Result<Loaded, LoadError>| match set {
            Ok(loaded) => {
                CheckedRules { rules: loaded.plan.rules.len(), errors: Vec::new(), warnings: loaded.warnings }
            }
            Err(error) => CheckedRules { errors: vec![error.to_string()], ..CheckedRules::default() },
        };
        CheckedDocument { mistakes, warnings, rules: sets.into_iter().map(rules).collect() }
    }
}

/// An event that looks like those of requests and says what it is wherever a receiver shows it.
fn test_event(sink: &str, by: &str) -> Event {
    let now = Timestamp::from(SystemTime::now());
    let mut event = Event::new(format!("test-{}", now.epoch_millis()), now);
    event.site = "test".into();
    event.route = "test".into();
    // An address for documentation (RFC 5737).
    event.client = SocketAddr::from(([192, 0, 2, 1], 50_000)).into();
    event.server.host = "test.invalid".into();
    event.request.method = "GET".into();
    event.request.target = "/test-event".into();
    event.verdict.action = Action::Detect;
    event.verdict.reason = format!("test event of the sink {sink}, sent by {by}; no request was made");
    event
}

fn request(of: ReplayRequest) -> Request {
    let ReplayRequest { id, request: bytes, omitted, site, route, client } = of;
    let client = SocketAddr::new(client, 50_000);
    Request { id, site, route, client, time: None, bytes, omitted, recorded: None }
}

fn case(stored: &StoredRequest, epoch_millis: u64) -> Case<'_> {
    let StoredRequest { id, request, client } = stored;
    Case { id, request, client: SocketAddr::new(*client, 50_000), epoch_millis }
}

/// The names of site and route that a request belongs to, and what inspects it.
fn place(
    serving: &Serving,
    trial: &Trial,
    head: &RequestHead,
) -> Result<(String, String, Arc<Inspector>), TrialError> {
    let config = serving.config();
    let site = match &trial.site {
        Some(name) => config.sites.iter().position(|site| site.name == *name),
        None => serving.site_of(head.header("host").next().unwrap_or_default()),
    };
    let index = site.ok_or(TrialError::NoSite)?;
    let site = config.sites.get(index).ok_or(TrialError::NoSite)?;
    let route = match &trial.route {
        Some(name) => site.routes.iter().position(|route| route.name == *name),
        None => match serving.route_of(index, head) {
            RouteChoice::Route(route) => Some(route),
            RouteChoice::Nowhere => None,
            RouteChoice::Ambiguous => return Err(TrialError::Ambiguous),
        },
    };
    let route = route.and_then(|route| site.routes.get(route)).ok_or(TrialError::NoRoute)?;
    let (site, route_name) = (site.name.clone(), route.name.clone());
    match route.policy.and_then(|policy| serving.inspectors().get(policy)) {
        Some(inspector) => Ok((site, route_name, Arc::clone(inspector))),
        None => Err(TrialError::NotInspected { site, route: route_name }),
    }
}
