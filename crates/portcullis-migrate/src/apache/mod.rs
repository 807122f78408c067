//! Apache httpd, with or without ModSecurity.

mod include;
mod left;
mod macros;
mod proxy;
mod redirect;
mod rewrite;
mod rules;
mod scope;
mod syntax;
mod tls;
mod vhost;

use std::collections::BTreeMap;

use crate::error::Error;
use crate::model::{Model, Upstream};
use crate::report::Ledger;
use crate::rules::Reading;
use crate::sources::{Sources, folder};
use crate::text;
use scope::Scope;
use syntax::Directive;

/// What the readers of sections share.
pub(crate) struct Context<'a> {
    pub ledger: &'a mut Ledger,
    pub model: &'a mut Model,
    /// `ServerRoot`.
    pub folder: String,
    /// `balancer://` by name.
    pub balancers: BTreeMap<String, Upstream>,
    pub reading: Reading<'a>,
}

impl Context<'_> {
    pub fn taken(&mut self, item: &Directive, note: impl Into<String>) {
        if let Some(entry) = item.entry {
            self.ledger.taken(entry, note);
        }
    }

    pub fn changed(&mut self, item: &Directive, note: impl Into<String>) {
        if let Some(entry) = item.entry {
            self.ledger.changed(entry, note);
        }
    }

    pub fn left(&mut self, item: &Directive, note: impl Into<String>) {
        if let Some(entry) = item.entry {
            self.ledger.left(entry, note);
        }
    }

    /// Leaves a section and what is in it.
    pub fn leave(&mut self, item: &Directive, why: &str) {
        self.left(item, why);
        for inner in item.children() {
            self.leave(inner, why);
        }
    }
}

/// Reads `httpd.conf`, `apache2.conf`, or files with virtual hosts, into the model.
pub(crate) fn read(
    names: &[String],
    sources: &mut Sources,
    ledger: &mut Ledger,
    model: &mut Model,
    reading: Reading<'_>,
) -> Result<(), Error> {
    let base = names.first().map_or("/", |name| folder(name)).to_owned();
    let mut includes = include::Includes::new(sources, ledger, &base);
    let mut items = Vec::new();
    for name in names {
        items.extend(includes.file(name, &mut Vec::new())?);
    }
    let folder = includes.finish();
    let mut cx = Context { ledger, model, folder, balancers: BTreeMap::new(), reading };
    main(&items, &mut cx);
    Ok(())
}

fn main(items: &[Directive], cx: &mut Context<'_>) {
    for item in items {
        match item.name.as_str() {
            "remoteipinternalproxy" | "remoteiptrustedproxy" => trusted(item, cx),
            "remoteipheader" => client_header(item, cx),
            "proxy" => proxy::balancer(item, cx),
            _ => {}
        }
    }
    // A balancer may stand in the virtual host that uses it.
    for item in items.iter().filter(|item| item.name == "virtualhost").flat_map(Directive::children) {
        if item.name == "proxy" {
            proxy::balancer(item, cx);
        }
    }
    let scope = Scope::default().enter(items, cx);
    vhost::all(items, &scope, cx);
    for item in items {
        match item.name.as_str() {
            "directory" | "directorymatch" | "files" | "filesmatch" => cx.leave(item, left::FILES),
            "if" | "elseif" | "else" => cx.leave(item, left::CONDITIONS),
            _ => {}
        }
    }
}

fn trusted(item: &Directive, cx: &mut Context<'_>) {
    let networks: Vec<&String> = item.args.iter().filter(|network| text::is_network(network)).collect();
    if networks.is_empty() {
        return cx.left(item, "trusted proxies are addresses and networks");
    }
    for network in networks {
        if !cx.model.trusted_proxies.contains(network) {
            cx.model.trusted_proxies.push(network.clone());
        }
    }
    cx.taken(item, "client_address.trusted_proxies");
}

fn client_header(item: &Directive, cx: &mut Context<'_>) {
    match item.arg(0).to_ascii_lowercase().as_str() {
        "x-forwarded-for" => {
            cx.model.client_header = Some("x-forwarded-for");
            match cx.model.trusted_proxies.is_empty() {
                true => cx.changed(
                    item,
                    "only trusted proxies are believed: name them in client_address.trusted_proxies",
                ),
                false => cx.taken(item, "client_address.header"),
            }
        }
        _ => {
            cx.left(item, "the client's address comes from X-Forwarded-For, Forwarded or the PROXY protocol")
        }
    }
}
