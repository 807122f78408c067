//! `sites`.

use std::collections::HashMap;

use super::Checker;
use crate::access;
use crate::access_log;
use crate::checked::{Listener, Site};
use crate::cookies;
use crate::hint;
use crate::host::HostPattern;
use crate::https;
use crate::raw;
use crate::spanned::Spanned;

impl Checker<'_> {
    pub(super) fn sites(&mut self, raw: Vec<raw::Site>, listeners: &mut [Listener]) -> Vec<Site> {
        if raw.is_empty() {
            self.mistakes.wrong_with_hint(
                0..0,
                "there is no site".to_string(),
                "add `[[sites]]` with a name, hosts and an upstream".to_string(),
            );
        }
        let mut sites: Vec<Site> = Vec::new();
        let mut seen: HashMap<(usize, HostPattern), usize> = HashMap::new();
        for (index, mut site) in raw.into_iter().enumerate() {
            if site.name.contains('/') {
                let message =
                    format!("the name of the site `{}` has a `/`, as names of routes do", site.name.value);
                self.mistakes.wrong(site.name.span.clone(), message);
            }
            if sites.iter().any(|other| other.name == site.name.value) {
                self.mistakes
                    .wrong(site.name.span.clone(), format!("there are two sites `{}`", site.name.value));
            }
            let on = self.listeners_of(&site, listeners);
            let mut hosts = Vec::new();
            if site.hosts.is_empty() {
                self.mistakes.wrong_with_hint(
                    site.hosts.span.clone(),
                    format!("the site `{}` has no host", site.name.value),
                    "`*` takes every host that no other site names".to_string(),
                );
            }
            for text in std::mem::take(&mut site.hosts.value) {
                let Some(host) = HostPattern::parse(&text) else {
                    self.mistakes.wrong_with_hint(
                        text.span.clone(),
                        format!("`{}` is not a host name", text.value),
                        "write `shop.example`, `*.shop.example` or `*`, without scheme and port".to_string(),
                    );
                    continue;
                };
                for listener in &on {
                    if let Some(first) = seen.insert((*listener, host.clone()), index)
                        && let Some(other) = sites.get(first).map(|site: &Site| site.name.clone())
                    {
                        self.mistakes.wrong(
                            text.span.clone(),
                            format!("the host `{}` also belongs to the site `{other}`", text.value),
                        );
                        break;
                    }
                }
                hosts.push(host);
            }
            for listener in on {
                listeners[listener].sites.push(index);
            }
            let mut limit_names = Vec::new();
            let rate_limits =
                access::rate_limits(&mut self.mistakes, &site.rate_limits, &mut limit_names, &self.available);
            let routes = self.routes(&site, &mut limit_names);
            let log = self.access_log.clone();
            let access_log = access_log::check(&mut self.mistakes, site.access_log.as_ref(), log.as_ref());
            let https = https::check(&mut self.mistakes, &site.https);
            let sticky: Vec<(&str, &str)> = self
                .upstreams
                .iter()
                .filter_map(|upstream| Some((upstream.sticky_cookie.as_deref()?, upstream.name.as_str())))
                .collect();
            let cookies = cookies::check(&mut self.mistakes, &site.cookies, &sticky);
            sites.push(Site {
                name: site.name.value,
                hosts,
                https,
                cookies,
                routes,
                rate_limits,
                access_log,
                profiles: site.profiles.into_iter().map(|each| each.value.name).collect(),
            });
        }
        sites
    }

    fn listeners_of(&mut self, site: &raw::Site, listeners: &[Listener]) -> Vec<usize> {
        let Some(names) = &site.listeners else { return (0..listeners.len()).collect() };
        let mut found = Vec::new();
        for name in names {
            match listeners.iter().position(|listener| listener.name == name.value) {
                Some(index) => found.push(index),
                None => {
                    let known: Vec<&str> = listeners.iter().map(|listener| listener.name.as_str()).collect();
                    self.mistakes.wrong_with_hint(
                        name.span.clone(),
                        format!("there is no listener `{}`", name.value),
                        hint::suggest(name, &known),
                    );
                }
            }
        }
        found
    }

    pub(super) fn upstream(&mut self, name: &Spanned<String>) -> usize {
        match self.upstreams.iter().position(|upstream| upstream.name == name.value) {
            Some(index) => index,
            None => {
                let known: Vec<String> = self.upstreams.iter().map(|known| known.name.clone()).collect();
                self.mistakes.wrong_with_hint(
                    name.span.clone(),
                    format!("there is no upstream `{}`", name.value),
                    hint::suggest(name, &known),
                );
                0
            }
        }
    }
}
