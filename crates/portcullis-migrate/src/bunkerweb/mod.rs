//! BunkerWeb: its settings as environment variables, and folders of custom rules.

mod left;
mod routes;
mod rules;
mod service;
mod variables;

use std::collections::BTreeSet;

use crate::error::Error;
use crate::model::{Model, RuleKind};
use crate::report::{Entry, Ledger};
use crate::rules::Reading;
use crate::site::Hosts;
use crate::sources::{Place, Sources, folder};
use variables::Variables;

/// What the readers share.
pub(crate) struct Context<'a> {
    pub ledger: &'a mut Ledger,
    pub model: &'a mut Model,
    pub reading: Reading<'a>,
    pub variables: Variables,
    /// Files of custom rules.
    pub custom: Vec<Custom>,
    pub hosts: Hosts,
}

/// Rules of one's own.
#[derive(Clone, Debug)]
pub(crate) struct Custom {
    /// The service that they are for, or an empty text for all.
    pub service: String,
    /// They come before the CRS.
    pub before: bool,
    pub kind: RuleKind,
    pub entry: Entry,
}

/// Reads `variables.env` or a file of Docker Compose into the model.
pub(crate) fn read(
    names: &[String],
    sources: &mut Sources,
    ledger: &mut Ledger,
    model: &mut Model,
    reading: Reading<'_>,
) -> Result<(), Error> {
    let mut variables = Variables::default();
    let mut custom = Vec::new();
    let mut seen = BTreeSet::new();
    for name in names {
        variables.file(name, sources, ledger)?;
        if seen.insert(folder(name)) {
            custom.extend(folders(folder(name), sources, ledger)?);
        }
    }
    let services = variables.services();
    custom.extend(variables.custom(&services));
    let mut cx = Context { ledger, model, reading, variables, custom, hosts: Hosts::default() };
    for (service, hosts) in &services {
        service::read(service, hosts, &mut cx);
    }
    for custom in &cx.custom {
        cx.ledger.left_if_unsettled(custom.entry, "no service is inspected by it");
    }
    for (key, _, entry) in cx.variables.all() {
        cx.ledger.left_if_unsettled(*entry, left::why(key));
    }
    Ok(())
}

/// Custom rules in `configs/modsec` and `configs/modsec-crs`, for all services or below the name of one.
fn folders(base: &str, sources: &mut Sources, ledger: &mut Ledger) -> Result<Vec<Custom>, Error> {
    let mut found = Vec::new();
    for (kind, before) in [("modsec-crs", true), ("modsec", false)] {
        for pattern in [format!("{base}/configs/{kind}/*.conf"), format!("{base}/configs/{kind}/*/*.conf")] {
            for name in sources.matching(&pattern) {
                // It is opened for its place in the report; its rules are read by `portcullis check`.
                let file = sources.open(&name)?;
                let entry = ledger.enter(sources, Place { file, line: 1 }, &format!("configs/{kind}"))?;
                let parent = folder(&name).rsplit('/').next().unwrap_or_default();
                let service = if parent == kind { String::new() } else { parent.to_owned() };
                found.push(Custom {
                    service,
                    before,
                    kind: RuleKind::File { path: name, optional: false },
                    entry,
                });
            }
        }
    }
    for kind in ["http", "server-http", "default-server-http", "stream", "server-stream"] {
        for name in sources.matching(&format!("{base}/configs/{kind}/*.conf")) {
            let file = sources.open(&name)?;
            let entry = ledger.enter(sources, Place { file, line: 1 }, &format!("configs/{kind}"))?;
            ledger.left(
                entry,
                "directives of nginx: give them to `portcullis migrate nginx`, or say them in the document",
            );
        }
    }
    Ok(found)
}
