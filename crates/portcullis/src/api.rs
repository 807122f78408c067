//! `portcullis api`: the interfaces of sites that were discovered, as a list and as OpenAPI, and compared;
//! and descriptions of APIs, checked.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use portcullis_discovery::{
    Change, Deviation, DeviationKind, Difference, Endpoint, Found, Interface, Inventory, Limits, compare,
    deviations, openapi,
};
use portcullis_load::LoadedApi;
use serde_json::{Value, json};

use crate::discovery_files as files;
use crate::outcome::{Failure, print};
use crate::{learned_files, new_file};

/// Arguments of `portcullis api`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List the endpoints of a site, or of all
    List {
        /// Only this site
        #[arg(value_name = "SITE")]
        site: Option<String>,
        /// The data folder of the instance
        #[arg(long, value_name = "DIR")]
        data: PathBuf,
        /// As JSON, one endpoint a line
        #[arg(long)]
        json: bool,
    },
    /// Write the endpoints of a site as an OpenAPI document
    Export {
        /// The site
        #[arg(value_name = "SITE")]
        site: String,
        /// The data folder of the instance
        #[arg(long, value_name = "DIR")]
        data: PathBuf,
        /// The file, in YAML if it is called so; by default standard output, in JSON
        #[arg(long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Load the description of an API, as `api = { schema = "FILE" }` does: report what is wrong with it and
    /// what of it is not enforced. Exit code 1 if it cannot be loaded
    Check {
        /// OpenAPI, OpenRPC, tools of an MCP server, a schema of GraphQL, or file descriptors of gRPC
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Compare two OpenAPI documents, or a document with what was discovered: new and vanished endpoints,
    /// changed parameters. Exit code 1 if they differ
    Diff {
        /// The document that is compared with, in JSON or YAML
        #[arg(value_name = "OLD")]
        old: PathBuf,
        /// Another document; without it, what was discovered at --site
        #[arg(value_name = "NEW", conflicts_with_all = ["site", "data"], required_unless_present = "site")]
        new: Option<PathBuf>,
        /// The site whose endpoints are compared
        #[arg(long, value_name = "SITE", requires = "data")]
        site: Option<String>,
        /// The data folder of the instance
        #[arg(long, value_name = "DIR", requires = "site")]
        data: Option<PathBuf>,
        /// As JSON, one difference a line
        #[arg(long)]
        json: bool,
    },
}

/// Exit code 1 if there is nothing to show, a file cannot be read or written, or two documents differ.
pub fn run(args: &Args) -> ExitCode {
    let answer = match &args.command {
        Command::List { site, data, json } => list(site.as_deref(), data, *json),
        Command::Export { site, data, output } => export(site, data, output.as_deref()),
        Command::Check { file } => check(file),
        Command::Diff { old, new, site, data, json } => {
            let of_site = site.as_deref().zip(data.as_deref());
            return match diff(old, new.as_deref(), of_site, *json) {
                Ok(text) if text.is_empty() => ExitCode::SUCCESS,
                Ok(text) => {
                    print(&text);
                    ExitCode::FAILURE
                }
                Err(failure) => failure.exit(),
            };
        }
    };
    match answer {
        Ok(text) => print(&text),
        Err(failure) => failure.exit(),
    }
}

/// The inventory of a site, as it was last written.
fn kept(data: &Path, site: &str) -> Result<Inventory, Failure> {
    let path = files::file(data, site);
    let failed = |error: &dyn std::fmt::Display| Failure::failed(format_args!("{}: {error}", path.display()));
    let text = learned_files::read(&path).map_err(|error| failed(&error))?;
    let text = text.ok_or_else(|| {
        Failure::failed(format_args!(
            "nothing was discovered at site {site} in {}\n  help: `discovery = true` in the site turns discovery on; what is \
             found is written each minute",
            files::folder(data).display()
        ))
    })?;
    let limits = Limits { endpoints_max: usize::MAX, ..Limits::default() };
    Inventory::from_text(&text, limits).map_err(|error| failed(&error))
}

fn list(site: Option<&str>, data: &Path, json: bool) -> Result<String, Failure> {
    let failed = |error| Failure::failed(format_args!("{}: {error}", files::folder(data).display()));
    let sites = match site {
        Some(site) => vec![site.to_owned()],
        None => files::sites(data).map_err(failed)?,
    };
    let mut text = String::new();
    for site in sites {
        let inventory = kept(data, &site)?;
        if !json {
            let _ = writeln!(text, "{site}: {} endpoints", inventory.len());
            let beyond = inventory.beyond().endpoints;
            if beyond > 0 {
                let _ =
                    writeln!(text, "  {beyond} requests of endpoints beyond the limits are not in the list");
            }
        }
        for found in inventory.endpoints() {
            match json {
                true => {
                    let _ = writeln!(text, "{}", as_json(&site, &found));
                }
                false => line(&mut text, &found),
            }
        }
    }
    Ok(text)
}

fn line(text: &mut String, found: &Found<'_>) {
    let Found { method, path, endpoint } = found;
    let plural = |count: u64, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    let mut facts = vec![
        plural(endpoint.requests, "request"),
        plural(endpoint.networks.count(), "network"),
        endpoint.statuses.keys().map(u16::to_string).collect::<Vec<_>>().join("/"),
    ];
    if endpoint.refused > 0 {
        facts.push(format!("{} refused", endpoint.refused));
    }
    facts.push(endpoint.authentication.keys().map(|kind| kind.name()).collect::<Vec<_>>().join("/"));
    let names = endpoint.parameters().map(|own| {
        let mark = if endpoint.is_required(own) { "" } else { "?" };
        format!("{}{mark}", own.name)
    });
    let names: Vec<String> = names.collect();
    if !names.is_empty() {
        facts.push(format!("({})", names.join(", ")));
    }
    let sensitive: Vec<&str> = endpoint.sensitive.keys().map(|kind| kind.name()).collect();
    if !sensitive.is_empty() {
        facts.push(format!("answers with {}", sensitive.join(", ")));
    }
    facts.retain(|fact| !fact.is_empty());
    let _ = writeln!(text, "  {method:<6} {path}  {}", facts.join(", "));
}

fn as_json(site: &str, found: &Found<'_>) -> Value {
    let endpoint: &Endpoint = found.endpoint;
    let parameters: Vec<Value> = endpoint
        .parameters()
        .map(|own| {
            let types: Vec<&str> = own.types.keys().map(|kind| kind.name()).collect();
            json!({
                "place": own.place.name(), "name": own.name, "required": endpoint.is_required(own),
                "requests": own.requests, "types": types, "bytes_min": own.bytes.0, "bytes_max": own.bytes.1,
            })
        })
        .collect();
    let statuses: serde_json::Map<String, Value> =
        endpoint.statuses.iter().map(|(status, answers)| (status.to_string(), (*answers).into())).collect();
    json!({
        "id": found.id(site), "site": site, "method": found.method, "path": found.path,
        "requests": endpoint.requests, "refused": endpoint.refused, "networks": endpoint.networks.count(),
        "days": endpoint.days.count(), "first_s": endpoint.first_s, "last_s": endpoint.last_s,
        "statuses": statuses, "parameters": parameters,
        "authentication": endpoint.authentication.keys().map(|kind| kind.name()).collect::<Vec<_>>(),
        "sensitive": endpoint.sensitive.keys().map(|kind| kind.name()).collect::<Vec<_>>(),
        "p50_ms": endpoint.latency_ms(50), "p95_ms": endpoint.latency_ms(95),
    })
}

fn export(site: &str, data: &Path, output: Option<&Path>) -> Result<String, Failure> {
    let document = openapi(&kept(data, site)?, site);
    let is_yaml = output.is_some_and(is_yaml);
    let mut text = match is_yaml {
        true => serde_saphyr::to_string(&document).map_err(Failure::failed)?,
        false => serde_json::to_string_pretty(&document).map_err(Failure::failed)?,
    };
    if !text.ends_with('\n') {
        text.push('\n');
    }
    let Some(output) = output else { return Ok(text) };
    new_file::write(&text, output, false)?;
    Ok(String::new())
}

fn check(file: &Path) -> Result<String, Failure> {
    let LoadedApi { api, warnings } = portcullis_load::check_api(file).map_err(Failure::failed)?;
    let mut text: String = warnings.iter().map(|warning| format!("{warning}\n")).collect();
    let unenforced = match api.warnings().len() {
        0 => "all of it is enforced".to_owned(),
        1 => "1 part is not enforced".to_owned(),
        count => format!("{count} parts are not enforced"),
    };
    let _ = writeln!(text, "{}: {}, {unenforced}", file.display(), api.summary());
    Ok(text)
}

fn is_yaml(path: &Path) -> bool {
    path.extension().is_some_and(|kind| kind == "yaml" || kind == "yml")
}

fn diff(
    old: &Path,
    new: Option<&Path>,
    of_site: Option<(&str, &Path)>,
    json: bool,
) -> Result<String, Failure> {
    let old = interface(old, &read(old)?)?;
    let (new, is_seen) = match (new, of_site) {
        (Some(new), _) => (interface(new, &read(new)?)?, false),
        (None, Some((site, data))) => {
            (Interface::of(&openapi(&kept(data, site)?, site)).map_err(Failure::failed)?, true)
        }
        (None, None) => return Err(Failure::usage("name another document, or `--site SITE --data DIR`")),
    };
    let mut text = String::new();
    if is_seen {
        for deviation in deviations(&old, &new) {
            match json {
                true => {
                    let _ = writeln!(text, "{}", deviation_json(&deviation));
                }
                false => deviation_text(&mut text, &deviation),
            }
        }
        return Ok(text);
    }
    for change in compare(&old, &new) {
        match json {
            true => {
                let _ = writeln!(text, "{}", change_json(&change));
            }
            false => change_text(&mut text, &change),
        }
    }
    Ok(text)
}

fn deviation_text(text: &mut String, deviation: &Deviation) {
    let Deviation { kind, method, path, differences } = deviation;
    let (sign, what) = match kind {
        DeviationKind::Shadow => ('+', "shadow: answers, and is not declared"),
        DeviationKind::Drifted => ('~', "drifted"),
        DeviationKind::Unseen => ('-', "declared, and not seen to answer"),
        DeviationKind::Zombie => ('!', "zombie: deprecated, and still answers"),
    };
    let _ = writeln!(text, "{sign} {method} {path}  {what}");
    lines(text, differences);
}

fn deviation_json(deviation: &Deviation) -> Value {
    let Deviation { kind, method, path, differences } = deviation;
    let mut value = json!({ "change": kind.name(), "method": method, "path": path });
    if *kind == DeviationKind::Drifted {
        value["differences"] = differences_json(differences);
    }
    value
}

fn change_text(text: &mut String, change: &Change) {
    let _ = match change {
        Change::New { method, path } => writeln!(text, "+ {method} {path}"),
        Change::Gone { method, path } => writeln!(text, "- {method} {path}"),
        Change::Changed { method, path, .. } => writeln!(text, "~ {method} {path}"),
    };
    if let Change::Changed { differences, .. } = change {
        lines(text, differences);
    }
}

fn lines(text: &mut String, differences: &[Difference]) {
    for difference in differences {
        let _ = writeln!(text, "    {difference}");
    }
}

fn change_json(change: &Change) -> Value {
    match change {
        Change::New { method, path } => json!({ "change": "new", "method": method, "path": path }),
        Change::Gone { method, path } => json!({ "change": "gone", "method": method, "path": path }),
        Change::Changed { method, path, differences } => json!({
            "change": "changed", "method": method, "path": path, "differences": differences_json(differences),
        }),
    }
}

fn differences_json(differences: &[Difference]) -> Value {
    let one = |each: &Difference| json!({ "what": each.what, "old": each.old, "new": each.new });
    differences.iter().map(one).collect()
}

fn interface(path: &Path, document: &Value) -> Result<Interface, Failure> {
    Interface::of(document).map_err(|error| Failure::failed(format_args!("{}: {error}", path.display())))
}

/// A document in JSON or, by its name, YAML.
pub fn read(path: &Path) -> Result<Value, Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::failed(format_args!("{}: {error}", path.display()));
    let text = learned_files::read(path).map_err(|error| failed(&error))?;
    let text = text.ok_or_else(|| failed(&"there is no such file"))?;
    match is_yaml(path) {
        true => {
            let text = std::str::from_utf8(&text).map_err(|error| failed(&error))?;
            serde_saphyr::from_str(text).map_err(|error| failed(&error))
        }
        false => serde_json::from_slice(&text).map_err(|error| failed(&error)),
    }
}
