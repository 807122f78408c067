//! Caddy with the Coraza module: a Caddyfile.

mod address;
mod import;
mod left;
mod matcher;
mod proxy;
mod scope;
mod site;
mod syntax;

use std::collections::BTreeSet;

use crate::error::Error;
use crate::model::{Acme, Model};
use crate::report::Ledger;
use crate::rules::Reading;
use crate::site::Hosts;
use crate::sources::Sources;
use crate::text;
use syntax::Directive;

/// What the readers of blocks share.
pub(crate) struct Context<'a> {
    pub ledger: &'a mut Ledger,
    pub model: &'a mut Model,
    pub reading: Reading<'a>,
    /// Relative names of files start here.
    pub folder: String,
    pub options: Options,
    pub hosts: Hosts,
    /// Hosts whose requests in clear text another site answers.
    pub plain: BTreeSet<String>,
}

impl Context<'_> {
    /// Leaves a directive and what is in its block.
    pub fn leave(&mut self, item: &Directive, why: &str) {
        self.ledger.left(item.entry, why);
        for inner in item.children() {
            self.leave(inner, why);
        }
    }
}

/// Global options.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub http_port: u16,
    pub https_port: u16,
    /// Certificates are ordered.
    pub certificates: bool,
    /// Clear text is redirected.
    pub redirects: bool,
    pub acme: Acme,
}

/// Reads a Caddyfile into the model.
pub(crate) fn read(
    names: &[String],
    sources: &mut Sources,
    ledger: &mut Ledger,
    model: &mut Model,
    reading: Reading<'_>,
) -> Result<(), Error> {
    let folder = names.first().map_or("/", |name| crate::sources::folder(name)).to_owned();
    let mut imports = import::Imports::new(sources, ledger);
    let mut items = Vec::new();
    for name in names {
        items.extend(imports.file(name, &mut Vec::new())?);
    }
    let options = Options {
        http_port: 80,
        https_port: 443,
        certificates: true,
        redirects: true,
        acme: Acme::default(),
    };
    let mut cx =
        Context { ledger, model, reading, folder, options, hosts: Hosts::default(), plain: BTreeSet::new() };
    for item in items.iter().filter(|item| item.words.is_empty()) {
        global(item, &mut cx);
    }
    let braced: Vec<&Directive> =
        items.iter().filter(|item| !item.words.is_empty() && item.block.is_some()).collect();
    // One site may stand without braces: its addresses in the first line.
    let bare: Vec<Directive> = items.iter().filter(|item| !item.words.is_empty()).cloned().collect();
    match bare.split_first() {
        Some((first, rest)) if first.block.is_none() => {
            site::read(first, rest, &mut cx);
        }
        _ => {
            site::claim_plain(&braced, &mut cx);
            for item in braced {
                if item.name().starts_with('&') {
                    cx.leave(item, "named routes are not read");
                } else {
                    site::read(item, item.children(), &mut cx);
                }
            }
        }
    }
    Ok(())
}

fn global(item: &Directive, cx: &mut Context<'_>) {
    cx.ledger.taken(item.entry, "global options");
    for option in item.children() {
        let value = option.arg(0);
        match option.name() {
            "order" => cx.ledger.taken(option.entry, "inspection comes first"),
            "email" if text::is_contact(value) => {
                cx.options.acme.contact = Some(value.to_owned());
                cx.ledger.taken(option.entry, "acme.contact");
            }
            "acme_ca" if is_directory(value) => {
                cx.options.acme.directory = Some(value.to_owned());
                cx.ledger.taken(option.entry, "acme.directory");
            }
            "http_port" | "https_port" => match value.parse::<u16>().ok().filter(|port| *port > 0) {
                Some(port) if option.name() == "http_port" => {
                    cx.options.http_port = port;
                    cx.ledger.taken(option.entry, "addresses of the listeners");
                }
                Some(port) => {
                    cx.options.https_port = port;
                    cx.ledger.taken(option.entry, "addresses of the listeners");
                }
                None => cx.ledger.left(option.entry, "this is not a port"),
            },
            "auto_https" => {
                cx.options.certificates = !["off", "disable_certs"].contains(&value);
                cx.options.redirects = !["off", "disable_redirects"].contains(&value);
                cx.ledger.taken(option.entry, "tls of the listeners and https.redirect");
            }
            "servers" => servers(option, cx),
            _ => cx.leave(option, left::option(option.name())),
        }
    }
}

fn servers(item: &Directive, cx: &mut Context<'_>) {
    cx.ledger.taken(item.entry, "what is in it, where it has a counterpart");
    for option in item.children() {
        match option.name() {
            "trusted_proxies" if option.arg(0) == "static" => {
                let mut other = Vec::new();
                for network in option.args().iter().skip(1) {
                    let networks: Vec<String> = match network.as_str() {
                        "private_ranges" => PRIVATE.iter().map(|network| (*network).to_owned()).collect(),
                        network if text::is_network(network) => vec![network.to_owned()],
                        network => {
                            other.push(network.to_owned());
                            Vec::new()
                        }
                    };
                    for network in networks {
                        if !cx.model.trusted_proxies.contains(&network) {
                            cx.model.trusted_proxies.push(network);
                        }
                    }
                }
                cx.model.client_header = Some("x-forwarded-for");
                match other.is_empty() {
                    true => cx.ledger.taken(option.entry, "client_address"),
                    false => cx
                        .ledger
                        .changed(option.entry, format!("client_address, without {}", other.join(" "))),
                }
            }
            "client_ip_headers" if option.arg(0).eq_ignore_ascii_case("x-forwarded-for") => {
                cx.ledger.taken(option.entry, "client_address.header");
            }
            _ => cx.leave(option, left::option(option.name())),
        }
    }
}

/// The URL of an authority's directory.
fn is_directory(url: &str) -> bool {
    let rest = url.strip_prefix("https://").unwrap_or_default();
    !rest.is_empty() && !rest.starts_with('/') && rest.bytes().all(|byte| byte.is_ascii_graphic())
}

/// What Caddy calls `private_ranges`.
const PRIVATE: &[&str] = &["192.168.0.0/16", "172.16.0.0/12", "10.0.0.0/8", "127.0.0.1/8", "fd00::/8", "::1"];
