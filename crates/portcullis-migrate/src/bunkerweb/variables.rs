//! The settings, by service: from files of variables, or from the environment and labels in a Compose file.

use std::collections::{BTreeMap, BTreeSet};

use super::Custom;
use crate::error::Error;
use crate::model::RuleKind;
use crate::report::{Entry, Ledger};
use crate::sources::{FileId, Place, Sources, absolute, folder};
use crate::text;
use crate::yaml::{self, Node};

/// Settings as they are written, `NAME` or `service_NAME`.
#[derive(Debug, Default)]
pub(crate) struct Variables {
    said: BTreeMap<String, (String, Entry)>,
    order: Vec<(String, String, Entry)>,
    seen: BTreeSet<(Place, String)>,
}

impl Variables {
    /// Reads a file.
    pub fn file(&mut self, name: &str, sources: &mut Sources, ledger: &mut Ledger) -> Result<(), Error> {
        let file = sources.open(name)?;
        if !name.ends_with(".yml") && !name.ends_with(".yaml") {
            return self.environment(file, sources, ledger);
        }
        for document in yaml::parse(sources, file)? {
            for (_, _, service) in document.get("services").map_or(&[][..], Node::members) {
                self.compose(service, name, file, sources, ledger)?;
            }
        }
        Ok(())
    }

    /// `NAME=value` in each line.
    fn environment(&mut self, file: FileId, sources: &Sources, ledger: &mut Ledger) -> Result<(), Error> {
        for (index, line) in sources.text(file).lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let place = Place { file, line: index + 1 };
            let line = line.strip_prefix("export ").unwrap_or(line);
            let Some((name, value)) = line.split_once('=') else {
                return Err(sources.error(place, "this is not NAME=value"));
            };
            self.add(name.trim(), unquoted(value.trim()), place, sources, ledger)?;
        }
        Ok(())
    }

    /// The environment of a service, and the labels by which an application names its settings.
    fn compose(
        &mut self,
        service: &Node,
        name: &str,
        file: FileId,
        sources: &mut Sources,
        ledger: &mut Ledger,
    ) -> Result<(), Error> {
        let image = service.text_at(&["image"]).unwrap_or_default();
        let environment = pairs(service.get("environment"));
        let is_ours = image.contains("bunker")
            || environment.iter().any(|(name, _, _)| name == "SERVER_NAME" || name == "MULTISITE");
        if is_ours {
            for (name, value, line) in environment {
                self.add(&name, &value, Place { file, line }, sources, ledger)?;
            }
            let files = service.get("env_file");
            let listed = files.map_or(&[][..], Node::items).iter();
            let names: Vec<String> =
                files.into_iter().chain(listed).filter_map(|node| node.text().map(str::to_owned)).collect();
            for other in names {
                let other = absolute(folder(name), &other);
                let file = sources.open(&other)?;
                self.environment(file, sources, ledger)?;
            }
        }
        let labels = pairs(service.get("labels"));
        let own = labels
            .iter()
            .find(|(name, _, _)| name == "bunkerweb.SERVER_NAME")
            .map(|(_, value, _)| value.clone());
        let Some(own) = own.as_deref().and_then(|names| names.split_whitespace().next()) else {
            return Ok(());
        };
        for (name, value, line) in &labels {
            if let Some(setting) = name.strip_prefix("bunkerweb.") {
                self.add(&format!("{own}_{setting}"), value, Place { file, line: *line }, sources, ledger)?;
            }
        }
        Ok(())
    }

    fn add(
        &mut self,
        name: &str,
        value: &str,
        place: Place,
        sources: &Sources,
        ledger: &mut Ledger,
    ) -> Result<(), Error> {
        // What several services take from one place stands there once.
        if !self.seen.insert((place, name.to_owned())) {
            return Ok(());
        }
        let entry = ledger.enter(sources, place, &format!("{name}={value}"))?;
        match self.said.insert(name.to_owned(), (value.to_owned(), entry)) {
            Some((same, old)) if same == value => ledger.taken(old, "the same setting stands again below"),
            Some((_, old)) => ledger.left(old, "the setting has another value below"),
            None => {}
        }
        self.order.push((name.to_owned(), value.to_owned(), entry));
        Ok(())
    }

    /// All settings, in their order.
    pub fn all(&self) -> &[(String, String, Entry)] {
        &self.order
    }

    /// A setting of all services.
    pub fn global(&self, name: &str) -> Option<(&str, Entry)> {
        self.said.get(name).map(|(value, entry)| (value.as_str(), *entry))
    }

    /// A setting of a service: its own, or that of all.
    pub fn of(&self, service: &str, name: &str) -> Option<(&str, Entry)> {
        self.global(&format!("{service}_{name}")).or_else(|| self.global(name))
    }

    /// A setting that may stand several times, with `_1`, `_2`, ... behind its name, by what is behind it.
    pub fn numbered(&self, service: &str, name: &str) -> Vec<(String, String, Entry)> {
        let mut found: BTreeMap<String, (String, Entry)> = BTreeMap::new();
        for prefix in [String::new(), format!("{service}_")] {
            let whole = format!("{prefix}{name}");
            let range = self.said.range(whole.clone()..).take_while(|(key, _)| key.starts_with(&whole));
            for (key, (value, entry)) in range {
                let suffix = &key[whole.len()..];
                let is_number = suffix.strip_prefix('_').is_some_and(|number| {
                    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
                });
                if suffix.is_empty() || is_number {
                    found.insert(suffix.to_owned(), (value.clone(), *entry));
                }
            }
        }
        found.into_iter().map(|(suffix, (value, entry))| (suffix, value, entry)).collect()
    }

    /// The services by their first names, each with its hosts.
    pub fn services(&self) -> Vec<(String, Vec<String>)> {
        let words = |text: &str| text.split_whitespace().map(str::to_ascii_lowercase).collect::<Vec<_>>();
        let names = self.global("SERVER_NAME").map_or_else(Vec::new, |(names, _)| words(names));
        let mut services = Vec::new();
        match self.global("MULTISITE") {
            Some(("yes", _)) => {
                for name in names {
                    let own = self.global(&format!("{name}_SERVER_NAME")).map(|(names, _)| words(names));
                    services.push((name.clone(), own.unwrap_or_else(|| vec![name])));
                }
            }
            _ => {
                if let Some(first) = names.first() {
                    services.push((first.clone(), names));
                }
            }
        }
        // Applications that say it of themselves, in labels.
        for (key, value, _) in &self.order {
            let Some(service) = key.strip_suffix("_SERVER_NAME") else { continue };
            if text::is_host(service) && !services.iter().any(|(known, _)| known == service) {
                services.push((service.to_owned(), words(value)));
            }
        }
        services.truncate(crate::model::SITES_MAX + 1);
        services
    }

    /// Rules in `CUSTOM_CONF_MODSEC_CRS_name` and `CUSTOM_CONF_MODSEC_name`.
    pub fn custom(&self, services: &[(String, Vec<String>)]) -> Vec<Custom> {
        let mut found = Vec::new();
        // Of a setting that stands twice the last one holds.
        let holds = |key: &str, entry: Entry| self.global(key).is_some_and(|(_, last)| last == entry);
        for (key, value, entry) in self.order.iter().filter(|(key, _, entry)| holds(key, *entry)) {
            let owner = services.iter().find(|(service, _)| {
                key.strip_prefix(service.as_str()).is_some_and(|rest| rest.starts_with('_'))
            });
            let service = owner.map_or("", |(service, _)| service);
            let name = if service.is_empty() { key } else { &key[service.len() + 1..] };
            let before = name.starts_with("CUSTOM_CONF_MODSEC_CRS_");
            if before || name.starts_with("CUSTOM_CONF_MODSEC_") {
                let kind = RuleKind::Inline(value.clone());
                found.push(Custom { service: service.to_owned(), before, kind, entry: *entry });
            }
        }
        found
    }
}

/// `environment` or `labels`: a table, or a list of `NAME=value`, with the lines.
fn pairs(node: Option<&Node>) -> Vec<(String, String, usize)> {
    let Some(node) = node else { return Vec::new() };
    let members = node
        .members()
        .iter()
        .map(|(name, line, value)| (name.clone(), value.text().unwrap_or_default().to_owned(), *line));
    let items = node.items().iter().filter_map(|item| {
        let (name, value) = item.text()?.split_once('=')?;
        Some((name.to_owned(), value.to_owned(), item.line))
    });
    members.chain(items).collect()
}

fn unquoted(text: &str) -> &str {
    ['"', '\''].iter().find_map(|quote| text.strip_prefix(*quote)?.strip_suffix(*quote)).unwrap_or(text)
}
