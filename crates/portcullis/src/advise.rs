//! `portcullis advise`: false positives of the event store, and the exclusions that would end them with what
//! each would cost.

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;

use portcullis_advise::{Advice, Case, Cluster, Measured, NoAdvice, advise, clusters};
use portcullis_event_store::{Store, StoredEvent};
use portcullis_query::parse;
use portcullis_revisions::Exclusion;
use serde_json::{Value, json};

use crate::edited::Edited;
use crate::event_text::text;
use crate::events::{source, stored};
use crate::outcome::{Failure, print};

/// Arguments of `portcullis advise`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The id of a request that was blocked wrongly; without it the groups of events that look like false
    /// positives are listed, with advice for those of several clients
    #[arg(value_name = "REQUEST_ID")]
    request_id: Option<String>,
    /// The data folder
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// The configuration document that the exclusions are for; without it groups are only listed
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Events that are looked at, as a filter
    #[arg(long, value_name = "FILTER", default_value = "time >= -7d")]
    events: String,
    /// The newest events that are looked at, at most
    #[arg(long, value_name = "N", default_value_t = 5000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit: u32,
    /// As JSON
    #[arg(long)]
    json: bool,
}

/// Clients from which on a group gets advice without being asked for.
const CLIENTS_MIN: usize = 3;
/// Groups that are listed.
const CLUSTERS_TOLD: usize = 20;
/// Groups that get advice.
const CLUSTERS_ADVISED: usize = 5;

/// Exit code 1 if the event store or the document cannot be read, or there is nothing to exclude.
pub fn run(args: &Args) -> ExitCode {
    match answer(args) {
        Ok(text) => print(&text),
        Err(failure) => failure.exit(),
    }
}

fn answer(args: &Args) -> Result<String, Failure> {
    let store = source::store(&args.data)?;
    let filter = parse(&args.events, stored::now()).map_err(|mistake| {
        Failure::usage(format_args!("filter `{}`: {mistake}", args.events.escape_debug()))
    })?;
    let read = stored::read_newest(&store, &filter, args.limit as usize).map_err(Failure::failed)?;
    let (events, mut skipped) = read;
    let sample = source::sample(&args.data).map(|sample| {
        let limit = (args.limit as usize).saturating_sub(events.len());
        stored::read_newest(&sample, &filter, limit).map_err(Failure::failed)
    });
    let (sample, not_read) = sample.transpose()?.unwrap_or_default();
    skipped.extend(not_read);
    stored::tell_skipped(&mut skipped);
    let bench = Bench { args, store: &store, events, sample };
    match &args.request_id {
        Some(id) => bench.one(id),
        None => bench.groups(),
    }
}

/// The events, and the document that is advised on.
struct Bench<'a> {
    args: &'a Args,
    store: &'a Store,
    events: Vec<StoredEvent>,
    /// Requests that passed.
    sample: Vec<StoredEvent>,
}

impl Bench<'_> {
    fn one(&self, id: &str) -> Result<String, Failure> {
        let event = self.store.event(id).map_err(Failure::failed)?.ok_or_else(|| stored::no_event(id))?;
        let advice = self.advice(&event)?.map_err(Failure::failed)?;
        if self.args.json {
            return Ok(format!("{}\n", serde_json::to_value(&advice).map_err(Failure::failed)?));
        }
        Ok(told(&advice))
    }

    fn groups(&self) -> Result<String, Failure> {
        let values: Vec<Value> = self
            .events
            .iter()
            .map(|event| serde_json::from_str(&event.json).map_err(Failure::failed))
            .collect::<Result<_, _>>()?;
        let each = values.iter().zip(&self.events);
        let mut found = clusters(each.map(|(value, event)| (value, event.count, event.request.is_some())));
        found.truncate(CLUSTERS_TOLD);
        let (mut out, mut list) = (String::new(), Vec::new());
        let mut advised = 0;
        for cluster in &found {
            let is_alarm = cluster.clients_with_nothing_else >= CLIENTS_MIN;
            let wanted = is_alarm && advised < CLUSTERS_ADVISED && self.args.config.is_some();
            let event = match wanted && !cluster.newest.is_empty() {
                true => self.store.event(&cluster.newest).map_err(Failure::failed)?,
                false => None,
            };
            advised += usize::from(event.is_some());
            let advice = event.map(|event| self.advice(&event)).transpose()?;
            let _ = write!(out, "{}", line(cluster));
            match &advice {
                Some(Ok(advice)) => out.push_str(&told(advice)),
                Some(Err(none)) => drop(writeln!(out, "    {none}")),
                None => {}
            }
            let advice = advice.map(|advice| advice.map_err(|none| none.to_string()));
            list.push(match advice {
                Some(Ok(advice)) => json!({ "cluster": of(cluster), "advice": advice }),
                Some(Err(none)) => json!({ "cluster": of(cluster), "no_advice": none }),
                None => json!({ "cluster": of(cluster) }),
            });
        }
        if self.args.json {
            return Ok(format!("{}\n", Value::Array(list)));
        }
        if found.is_empty() {
            out.push_str("no event has a finding or a rule to exclude\n");
        }
        Ok(out)
    }

    /// The document, at a route of a site.
    fn document(&self, site: &str, route: &str) -> Result<Edited, Failure> {
        let path = self.args.config.as_deref();
        let path = path.ok_or_else(|| Failure::usage("exclusions are for a document: `--config FILE`"))?;
        Edited::of_document(path, site, route).map_err(Failure::failed)
    }

    /// Measures what there is for an event.
    fn advice(&self, event: &StoredEvent) -> Result<Result<Advice, NoAdvice>, Failure> {
        let value: Value = serde_json::from_str(&event.json).map_err(Failure::failed)?;
        let kept = event.request.as_ref().ok_or_else(|| {
            Failure::failed(format_args!(
                "no request is kept with the event {}: nothing can be tried (`events.keep_request`)",
                text(&value, "/request_id")
            ))
        })?;
        let (site, route) = (text(&value, "/site"), text(&value, "/route"));
        let edited = self.document(site, route)?;
        let all = self.events.iter().chain(&self.sample);
        let cases: Vec<Stored> = all.filter_map(|event| Stored::of(event, site)).collect();
        let others: Vec<Case<'_>> = cases.iter().map(Stored::case).collect();
        let case = Case {
            id: text(&value, "/request_id"),
            request: &kept.bytes,
            client: client(&value),
            epoch_millis: stored::now(),
        };
        let inspector = edited.inspector().map_err(Failure::failed)?;
        Ok(advise(&inspector, &edited, &case, &others))
    }
}

/// A stored request.
struct Stored {
    id: String,
    client: SocketAddr,
    request: Vec<u8>,
}

impl Stored {
    /// The request that is kept with an event of this site.
    fn of(event: &StoredEvent, site: &str) -> Option<Stored> {
        let request = event.request.as_ref()?.bytes.clone();
        let value: Value = serde_json::from_str(&event.json).ok()?;
        let id = text(&value, "/request_id").to_owned();
        (text(&value, "/site") == site).then(|| Stored { id, client: client(&value), request })
    }

    fn case(&self) -> Case<'_> {
        Case { id: &self.id, request: &self.request, client: self.client, epoch_millis: stored::now() }
    }
}

/// The address of an event's client.
pub fn client(event: &Value) -> SocketAddr {
    // An address for documentation (RFC 5737) stands for one that is not told.
    let unknown = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
    SocketAddr::new(text(event, "/client/addr").parse().unwrap_or(unknown), 50_000)
}

fn of(cluster: &Cluster) -> Value {
    json!({
        "site": cluster.site, "objection": cluster.objection, "location": cluster.location,
        "path": cluster.path, "events": cluster.events, "clients": cluster.clients,
        "clients_with_nothing_else": cluster.clients_with_nothing_else, "request_id": cluster.newest,
    })
}

fn line(cluster: &Cluster) -> String {
    let Cluster { site, objection, location, path, events, clients, .. } = cluster;
    let mut line = format!(
        "{objection} in {location} at {site}{path}: {events} events of {clients} clients, of {} of them nothing else",
        cluster.clients_with_nothing_else
    );
    if !cluster.newest.is_empty() {
        let _ = write!(line, " (last {})", cluster.newest);
    }
    line.replace(char::is_control, " ") + "\n"
}

/// Advice for a person.
fn told(advice: &Advice) -> String {
    let mut out = String::new();
    for (number, one) in advice.candidates.iter().enumerate() {
        let Measured { stored, probed, clears, recommended, .. } = one;
        let head = match (recommended, clears) {
            (true, _) => ", recommended",
            (false, true) => "",
            (false, false) => ", which does not clear it",
        };
        let _ = writeln!(out, "  {}{head}:", number + 1);
        for exclusion in &one.exclusions {
            let _ = writeln!(out, "      {}", words(exclusion).replace(char::is_control, " "));
        }
        if !clears {
            let _ = writeln!(out, "    still stopped: {}", one.still.replace(char::is_control, " "));
        }
        let _ = writeln!(
            out,
            "    of {} stored requests it would have let {} through, of {} clients",
            stored.requests, stored.let_through, stored.clients
        );
        let _ = writeln!(
            out,
            "    attacks put there: {} of {} of what it excludes are lost, {} of {} others",
            probed.own.lost, probed.own.stopped, probed.others.lost, probed.others.stopped
        );
        for lost in probed.lost.iter().take(3) {
            let _ = writeln!(out, "      lost: {} {}", lost.kind, lost.text.replace(char::is_control, " "));
        }
    }
    if advice.probes == 0 {
        out.push_str("    no attack could be put into its fields, so none of them is recommended\n");
    }
    if advice.fields_without_probes > 0 {
        let _ = writeln!(out, "    {} fields cannot carry attacks", advice.fields_without_probes);
    }
    out
}

fn words(exclusion: &Exclusion) -> String {
    let part = |name: &str, value: &Option<String>| match value {
        Some(value) => format!("{name} {value} "),
        None => String::new(),
    };
    let text = match exclusion {
        Exclusion::Semantic(term) => format!(
            "{}{}{}{}",
            part("class", &term.class),
            part("kind", &term.kind),
            part("location", &term.location),
            part("path", &term.path)
        ),
        Exclusion::Rule(term) => {
            format!("rule {} {}{}", term.rule_id, part("target", &term.target), part("path", &term.path))
        }
    };
    text.trim_end().to_owned()
}
