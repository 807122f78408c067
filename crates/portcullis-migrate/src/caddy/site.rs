//! A site: its addresses, and the routes that its directives make.

use super::address::{self, Address};
use super::matcher::{self, Matcher, Named};
use super::scope;
use super::syntax::Directive;
use super::{Context, left, proxy};
use crate::model::{Action, Certificate, PathMatch, Route, Settings, Site};
use crate::site::{finish, push, root};
use crate::sources::absolute;
use crate::text;

/// Directives that `scope` reads.
const SCOPE: &[&str] = &["coraza_waf", "header", "request_header", "encode", "request_body"];

fn addresses(item: &Directive, cx: &Context<'_>) -> (Vec<Address>, Vec<String>) {
    let mut left = Vec::new();
    let mut found = Vec::new();
    for text in item.words.iter().flat_map(|word| word.split(',')).filter(|text| !text.is_empty()) {
        match address::parse(text, &cx.options) {
            Some(address) => found.push(address),
            None => left.push(text.to_owned()),
        }
    }
    (found, left)
}

/// Hosts that sites serve in clear text of their own.
pub(crate) fn claim_plain(sites: &[&Directive], cx: &mut Context<'_>) {
    for site in sites {
        let (addresses, _) = addresses(site, cx);
        let plain = addresses.iter().filter(|address| !address.tls && address.port == cx.options.http_port);
        cx.plain.extend(plain.map(|address| address.host.clone()).collect::<Vec<_>>());
    }
}

/// Reads the site of `item` with these directives.
pub(crate) fn read(item: &Directive, items: &[Directive], cx: &mut Context<'_>) {
    let (addresses, left) = addresses(item, cx);
    let bind = items.iter().find(|item| item.name() == "bind").map(|item| item.arg(0).to_owned());
    let bind = bind.filter(|ip| ip.parse::<std::net::IpAddr>().is_ok());
    let own = certificate(items, cx);
    let mut site = Site::default();
    for wanted in &addresses {
        address_of(wanted, bind.as_deref(), own.as_ref(), &mut site, item, cx);
    }
    if site.hosts.is_empty() || site.listeners.is_empty() {
        return cx.leave(item, "no address of this site can be said here, or another site has it");
    }
    match left.is_empty() {
        true => cx.ledger.taken(item.entry, format!("site for {}", site.hosts.join(", "))),
        false => cx
            .ledger
            .changed(item.entry, format!("site for {}, without {}", site.hosts.join(", "), left.join(" "))),
    }
    let mut named = Named::new();
    let settings = scope::enter(&Settings::default(), items, &mut named, cx);
    let mut reader = Reader { site: &mut site, named };
    reader.block(items, &settings, None, cx);
    finish(site, settings, cx.reading, cx.ledger, cx.model);
}

/// The files of `tls CERT KEY`.
fn certificate(items: &[Directive], cx: &mut Context<'_>) -> Option<Certificate> {
    let item = items.iter().find(|item| item.name() == "tls")?;
    match item.args() {
        [cert, key] if !cert.contains('{') && !key.contains('{') => {
            cx.ledger.taken(item.entry, "tls.certificates of the listener");
            Some(Certificate { cert: absolute(&cx.folder, cert), key: absolute(&cx.folder, key) })
        }
        [contact] if text::is_contact(contact) => {
            cx.options.acme.contact.get_or_insert_with(|| contact.clone());
            cx.ledger.taken(item.entry, "acme.contact");
            None
        }
        _ => {
            cx.leave(
                item,
                "certificates are files, or ordered with `acme`; its other settings are in docs/tls.md",
            );
            None
        }
    }
}

fn address_of(
    wanted: &Address,
    bind: Option<&str>,
    own: Option<&Certificate>,
    site: &mut Site,
    item: &Directive,
    cx: &mut Context<'_>,
) {
    let ip = bind.unwrap_or("0.0.0.0");
    let socket = |port: u16| if ip.contains(':') { format!("[{ip}]:{port}") } else { format!("{ip}:{port}") };
    let mut port = wanted.port;
    let mut tls = wanted.tls;
    let orders = own.is_none() && cx.options.certificates && !wanted.local && text::is_domain(&wanted.host);
    if tls && own.is_none() && !orders {
        tls = false;
        if port == cx.options.https_port {
            port = cx.options.http_port;
        }
        let why = format!(
            "{} is served in clear text: there is no certificate for it that could be taken over or ordered",
            wanted.host
        );
        cx.ledger.changed(item.entry, why);
    }
    let address = socket(port);
    if !cx.hosts.claim(&[&address], &wanted.host, &mut site.hosts) && !site.hosts.contains(&wanted.host) {
        return;
    }
    let listener = cx.model.listener(&address);
    let name = listener.name.clone();
    if tls {
        let listener_tls = listener.tls.get_or_insert_default();
        match own {
            Some(own) if !listener_tls.certificates.contains(own) => {
                listener_tls.certificates.push(own.clone())
            }
            Some(_) => {}
            None => listener_tls.acme = true,
        }
        if orders {
            cx.model.acme = Some(cx.options.acme.clone());
            cx.ledger.changed(item.entry, "certificates are ordered with `acme`; terms_agreed = true says that you agree to the terms of the authority");
        }
    }
    if !site.listeners.contains(&name) {
        site.listeners.push(name);
    }
    // Clear text is redirected, where no site of its own is there.
    let plain = socket(cx.options.http_port);
    if tls && cx.options.redirects && !cx.plain.contains(&wanted.host) {
        let mut hosts = Vec::new();
        if cx.hosts.claim(&[&plain], &wanted.host, &mut hosts) {
            let name = cx.model.listener(&plain).name.clone();
            if !site.listeners.contains(&name) {
                site.listeners.push(name);
            }
            site.redirect_to_tls = true;
        }
    }
}

struct Reader<'a> {
    site: &'a mut Site,
    named: Named,
}

impl Reader<'_> {
    /// Reads a block for `path`, or for all requests; those of `handle` inside each other are bounded by the
    /// parser.
    fn block(
        &mut self,
        items: &[Directive],
        settings: &Settings,
        part: Option<(&PathMatch, Option<&str>)>,
        cx: &mut Context<'_>,
    ) {
        let settings = &self.guards(items, settings, cx);
        for item in items {
            match item.name() {
                "respond" | "abort" | "error" if cx.ledger.is_settled(item.entry) => {}
                "reverse_proxy" => self.proxy(item, settings, part, cx),
                "handle" | "handle_path" | "route" => self.handle(item, settings, part, cx),
                "redir" => self.redirect(item, settings, part, cx),
                "respond" | "abort" => self.respond(item, settings, part, cx),
                "tls" | "bind" if part.is_none() => {
                    cx.ledger.taken_if_unsettled(item.entry, "addresses of the listeners")
                }
                name if left::GUARDS.contains(&name) => {}
                "uri" => cx.ledger.left_if_unsettled(item.entry, left::directive("uri")),
                name if name.starts_with('@') || SCOPE.contains(&name) => {}
                name => cx.leave(item, left::directive(name)),
            }
        }
    }

    /// What holds in a block where logins, or refusals of some clients, keep others out. They come before
    /// what forwards, wherever they stand.
    fn guards(&mut self, items: &[Directive], settings: &Settings, cx: &mut Context<'_>) -> Settings {
        let mut settings = settings.clone();
        for item in items {
            let (matcher, args) = matcher::of(item, &self.named);
            let refuses = match item.name() {
                "abort" => true,
                "respond" | "error" => {
                    args.iter().any(|arg| arg.parse::<u16>().is_ok_and(|status| (400..500).contains(&status)))
                }
                _ => false,
            };
            let asks = left::GUARDS.contains(&item.name());
            match matcher {
                Matcher::Clients { networks, others } if refuses => {
                    let access = settings.access.get_or_insert_default();
                    match others {
                        true => access.allow.extend(networks),
                        false => access.deny.extend(networks),
                    }
                    access.others_denied |= others;
                    cx.ledger.changed(item.entry, "access, whose refusals are answered 403");
                }
                Matcher::Paths(paths) if asks => {
                    cx.leave(item, left::directive(item.name()));
                    cx.ledger.closed(item.entry, "its paths are refused: it cannot be said here who may");
                    let action = Action::Respond { status: 403, body: None };
                    self.push(item, paths, action, &settings, cx);
                }
                Matcher::Other if refuses => {
                    cx.leave(item, "routes ask for one path, or for this condition not at all");
                    settings.closed.push(item.entry);
                }
                _ if asks => {
                    cx.leave(item, left::directive(item.name()));
                    settings.closed.push(item.entry);
                }
                Matcher::All | Matcher::Paths(_) | Matcher::Clients { .. } | Matcher::Other => {}
            }
        }
        settings
    }

    /// The paths of a directive in a block for `part`; `None` if they cannot be said, which is settled.
    fn paths<'i>(
        &self,
        item: &'i Directive,
        part: Option<(&PathMatch, Option<&str>)>,
        cx: &mut Context<'_>,
    ) -> Option<(Vec<PathMatch>, &'i [String])> {
        let (matcher, args) = matcher::of(item, &self.named);
        let paths = match (matcher, part) {
            (Matcher::All, Some((path, _))) => vec![path.clone()],
            (Matcher::All, None) => vec![root()],
            (Matcher::Paths(paths), None) => paths,
            (Matcher::Paths(paths), Some((PathMatch::Prefix(prefix), None)))
                if paths.iter().all(|path| is_below(path, prefix)) =>
            {
                paths
            }
            _ => {
                cx.leave(item, "routes ask for one path, or for this condition not at all");
                return None;
            }
        };
        Some((paths, args))
    }

    fn push(
        &mut self,
        item: &Directive,
        paths: Vec<PathMatch>,
        action: Action,
        settings: &Settings,
        cx: &mut Context<'_>,
    ) {
        for path in paths {
            if !push(self.site, Route::new(path, action.clone(), settings.clone())) {
                cx.ledger
                    .left(item.entry, "another directive of this site answers requests for the same path");
            }
        }
    }

    fn proxy(
        &mut self,
        item: &Directive,
        settings: &Settings,
        part: Option<(&PathMatch, Option<&str>)>,
        cx: &mut Context<'_>,
    ) {
        let Some((paths, addresses)) = self.paths(item, part, cx) else { return };
        let mut own = settings.clone();
        let found = proxy::read(item, addresses, &mut own.request_headers, &mut own.response_headers, cx);
        let action = match found {
            Some(upstream) => Action::Forward {
                upstream,
                rewrite: part.and_then(|(_, rewrite)| rewrite).map(str::to_owned),
            },
            None => {
                self.site.lost.push(item.entry);
                Action::Respond { status: 404, body: None }
            }
        };
        self.push(item, paths, action, &own, cx);
    }

    fn handle(
        &mut self,
        item: &Directive,
        settings: &Settings,
        part: Option<(&PathMatch, Option<&str>)>,
        cx: &mut Context<'_>,
    ) {
        let Some((paths, _)) = self.paths(item, part, cx) else { return };
        let strips =
            item.children().iter().find(|inner| inner.name() == "uri" && inner.arg(0) == "strip_prefix");
        for path in paths {
            let rewrite = match (&path, strips) {
                (PathMatch::Prefix(prefix), _) if item.name() == "handle_path" && prefix != "/" => Some("/"),
                (PathMatch::Prefix(prefix), Some(strip))
                    if strip
                        .args()
                        .get(1)
                        .is_some_and(|own| own.trim_end_matches('/') == prefix.trim_end_matches('/')) =>
                {
                    Some("/")
                }
                _ => part.and_then(|(_, rewrite)| rewrite),
            };
            if let (Some("/"), Some(strip)) = (rewrite, strips) {
                cx.ledger.taken(strip.entry, "rewrite of the route");
            }
            let inner = scope::enter(settings, item.children(), &mut self.named, cx);
            let all = path == root() && part.is_none();
            let before = self.site.routes.len();
            self.block(item.children(), &inner, if all { None } else { Some((&path, rewrite)) }, cx);
            if self.site.routes.len() == before && !item.children().is_empty() && !all {
                let action = Action::Respond { status: 404, body: None };
                self.push(item, vec![path.clone()], action, &inner, cx);
                cx.ledger.left(item.entry, "nothing here can be forwarded: a route answers 404, so that no other takes these requests");
            }
        }
        cx.ledger.taken_if_unsettled(item.entry, "route");
    }

    fn redirect(
        &mut self,
        item: &Directive,
        settings: &Settings,
        part: Option<(&PathMatch, Option<&str>)>,
        cx: &mut Context<'_>,
    ) {
        let Some((paths, args)) = self.paths(item, part, cx) else { return };
        let status = match args.get(1).map(String::as_str) {
            None | Some("temporary") => Some(302),
            Some("permanent") => Some(301),
            Some(code) => code.parse().ok().filter(|code| [301, 302, 303, 307, 308].contains(code)),
        };
        let to = args.first().and_then(|to| scope::value_of(to));
        let to = to.filter(|to| {
            !to.contains('$') && ["https://", "http://", "/"].iter().any(|start| to.starts_with(start))
        });
        match (to, status) {
            (Some(to), Some(status)) => {
                cx.ledger.taken(item.entry, "redirect");
                self.push(item, paths, Action::Redirect { to, status }, settings, cx);
            }
            _ => cx.leave(item, "this redirect cannot be one of a route"),
        }
    }

    fn respond(
        &mut self,
        item: &Directive,
        settings: &Settings,
        part: Option<(&PathMatch, Option<&str>)>,
        cx: &mut Context<'_>,
    ) {
        let Some((paths, args)) = self.paths(item, part, cx) else { return };
        if item.name() == "abort" {
            cx.ledger.changed(item.entry, "answered with 403; the connection stays");
            return self.push(item, paths, Action::Respond { status: 403, body: None }, settings, cx);
        }
        let (body, status) = match args {
            [status] if status.parse::<u16>().is_ok() => (None, status.parse().unwrap_or(200)),
            [body] => (Some(body.clone()), 200),
            [body, status] => (Some(body.clone()), status.parse().unwrap_or(0)),
            _ => (None, 200_u16),
        };
        if !(200..600).contains(&status) || !item.children().is_empty() {
            return cx.leave(item, "an answer has a status of 200 to 599 and a text");
        }
        match body.as_ref().is_some_and(|body| body.contains('{')) {
            true => cx.ledger.changed(item.entry, "respond; placeholders in the text are not replaced"),
            false => cx.ledger.taken(item.entry, "respond"),
        }
        self.push(item, paths, Action::Respond { status, body }, settings, cx);
    }
}

fn is_below(path: &PathMatch, prefix: &str) -> bool {
    match path {
        PathMatch::Prefix(path) | PathMatch::Exact(path) => path.starts_with(prefix) && text::is_path(path),
        PathMatch::Pattern(_) => false,
    }
}
