//! Configurations of other servers and WAFs, read and written as a document of Portcullis.
//!
//! Each syntax has a reader (`nginx`, ...); all of them fill one `model`, and `write` makes a document of it:
//!
//! ```text
//!   files > reader of the syntax > model > rules > document
//!                     |
//!                     +--> ledger: what became of each directive > report
//! ```
//!
//! The *ledger* knows every directive that was read. One that no reader settles is reported as not taken
//! over, so that nothing is dropped in silence. Files are only read, within limits (`sources`); nothing is
//! asked over a network, and rules are named, not read: `portcullis check` reads them.
//!
//! ```no_run
//! let options = portcullis_migrate::Options::default();
//! let paths = [std::path::PathBuf::from("/etc/nginx/nginx.conf")];
//! let migrated = portcullis_migrate::migrate(portcullis_migrate::From::Nginx, &paths, &options)?;
//! println!("{}", migrated.document);
//! eprintln!("{}", migrated.report.text());
//! # Ok::<(), portcullis_migrate::Error>(())
//! ```

#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod apache;
mod bunkerweb;
mod caddy;
mod error;
mod ingress;
mod inline;
mod model;
mod nginx;
mod report;
mod rules;
mod site;
mod sources;
mod text;
mod units;
mod write;
mod yaml;

use std::path::{Path, PathBuf};

use portcullis_config::{Config, Format};

pub use error::Error;
use model::{Model, SITES_MAX};
use report::Ledger;
pub use report::{Fate, Item, Report};
use rules::Reading;
use sources::Sources;
pub use sources::{BYTES_MAX, FILE_BYTES_MAX, FILES_MAX, INCLUDE_DEPTH_MAX};

/// What a configuration was written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// nginx, with or without ModSecurity.
    Nginx,
    /// Apache httpd, with or without ModSecurity.
    Apache,
    /// Kubernetes with ingress-nginx.
    IngressNginx,
    /// Caddy with the Coraza module.
    CorazaCaddy,
    /// BunkerWeb.
    BunkerWeb,
}

impl From {
    /// All of them.
    pub const ALL: [From; 5] =
        [From::Nginx, From::Apache, From::IngressNginx, From::CorazaCaddy, From::BunkerWeb];

    /// The one of this name.
    pub fn named(name: &str) -> Option<From> {
        From::ALL.into_iter().find(|from| from.name() == name)
    }

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            From::Nginx => "nginx",
            From::Apache => "apache",
            From::IngressNginx => "ingress-nginx",
            From::CorazaCaddy => "coraza-caddy",
            From::BunkerWeb => "bunkerweb",
        }
    }
}

/// How to read a configuration.
#[derive(Clone, Debug)]
pub struct Options {
    /// The folder that stands for `/`: a copy of the files of another machine.
    pub root: PathBuf,
    /// Folder of the CRS, in place of one that the other program had built in.
    pub crs: PathBuf,
}

impl Default for Options {
    fn default() -> Options {
        Options { root: "/".into(), crs: "/var/lib/portcullis/crs/current".into() }
    }
}

/// A configuration as a document.
#[derive(Clone, Debug)]
pub struct Migrated {
    /// TOML.
    pub document: String,
    /// What became of each directive.
    pub report: Report,
}

/// Reads the files and folders `paths`.
pub fn migrate(from: From, paths: &[PathBuf], options: &Options) -> Result<Migrated, Error> {
    let mut sources = Sources::new(&options.root)?;
    let mut ledger = Ledger::default();
    let mut model = Model::default();
    let crs = options.crs.display().to_string();
    let setup = ["crs-setup.conf", "crs-setup.conf.example"].map(|name| options.crs.join(name));
    let setup = setup.iter().find(|path| path.is_file()).unwrap_or(&setup[1]).display().to_string();
    let reading = Reading { modsecurity3: from != From::Apache, crs: &crs, crs_setup: &setup };
    let mut names = Vec::new();
    for path in paths {
        for path in if path.is_dir() { files(from, path)? } else { vec![path.clone()] } {
            names.push(sources.name_of(&path)?);
        }
    }
    match from {
        From::Nginx => nginx::read(&names, &mut sources, &mut ledger, &mut model, reading)?,
        From::Apache => apache::read(&names, &mut sources, &mut ledger, &mut model, reading)?,
        From::IngressNginx => ingress::read(&names, &mut sources, &mut ledger, &mut model, reading)?,
        From::CorazaCaddy => caddy::read(&names, &mut sources, &mut ledger, &mut model, reading)?,
        From::BunkerWeb => bunkerweb::read(&names, &mut sources, &mut ledger, &mut model, reading)?,
    }
    let place = names.first().map_or("", |name| name);
    if model.is_too_large() {
        return Err(Error::new(place, format!("more than {SITES_MAX} sites, upstreams or listeners")));
    }
    if model.sites.is_empty() {
        return Err(Error::new(place, "no site was found in it that could be served")
            .with_help("name the main file of the configuration, or the files with its sites"));
    }
    rules::unused(&model.sites, &mut ledger);
    let document = write::document(&model, from.name());
    ledger.hold_against(&model.carried(), &report::Keys::of(&document));
    // What this program writes it must be able to read.
    Config::parse(&document, Format::Toml, "portcullis.toml").map_err(|error| {
        Error::new(place, format!("the result is not a valid configuration, which is a bug:\n{error}"))
    })?;
    Ok(Migrated { document, report: ledger.into_report(&sources) })
}

/// The files of a folder with which a configuration begins.
fn files(from: From, folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let names: &[&str] = match from {
        From::Nginx => &["nginx.conf"],
        From::Apache => &["apache2.conf", "httpd.conf", "conf/httpd.conf"],
        From::IngressNginx => return manifests(folder),
        From::CorazaCaddy => &["Caddyfile"],
        From::BunkerWeb => &["variables.env", "docker-compose.yml", "compose.yaml", "compose.yml", ".env"],
    };
    let mut paths = names.iter().map(|name| folder.join(name));
    let first = folder.join(names.first().copied().unwrap_or_default());
    Ok(vec![paths.find(|path| path.is_file()).unwrap_or(first)])
}

/// All manifests of a folder, in the order of their names.
fn manifests(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let shown = folder.display().to_string();
    let entries = folder.read_dir().map_err(|error| Error::new(&shown, error.to_string()))?;
    let is_yaml =
        |path: &PathBuf| path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml");
    let paths = entries.flatten().map(|entry| entry.path()).filter(is_yaml);
    let mut paths: Vec<PathBuf> = paths.take(FILES_MAX + 1).collect();
    paths.sort();
    match paths.is_empty() {
        true => Err(Error::new(shown, "no file in it ends in .yaml or .yml")),
        false => Ok(paths),
    }
}
