//! Settings of an engine by name, as other languages pass them.

use std::path::PathBuf;

use portcullis_embed::{Builder, Level, Mode, Policy, Waf};

use crate::events::Events;

/// Settings of an engine; those that are `None` have their default. A `document` contains the policy, so most
/// others contradict it.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Path of a configuration document.
    pub document: Option<PathBuf>,
    /// The site of the document whose policy it is; without a document, the name of the site in events.
    pub site: Option<String>,
    /// The route of that site.
    pub route: Option<String>,
    /// `semantic`, `crs` or `both`.
    pub mode: Option<String>,
    /// `balanced` or `strict`.
    pub level: Option<String>,
    /// The folder of the CRS.
    pub crs: Option<PathBuf>,
    /// Paranoia level, 1 to 4.
    pub paranoia: Option<u8>,
    /// Rule files behind the CRS.
    pub rules: Vec<PathBuf>,
    /// SecLang directives behind all files.
    pub directives: Option<String>,
    /// Report what would be blocked, block nothing.
    pub detect_only: bool,
    /// Bytes of a request body that are inspected; longer ones are refused.
    pub request_body_limit: Option<u64>,
    /// Inspect bodies of responses.
    pub response_bodies: Option<bool>,
    /// Let pass what cannot be inspected.
    pub fail_open: bool,
    /// The HTML file of the block page.
    pub block_page: Option<PathBuf>,
    /// Bytes of memory for all bodies.
    pub held_bytes_max: Option<usize>,
}

impl Settings {
    /// Builds the engine and the queue of its events. The error is the text to show.
    pub fn open(self) -> Result<(Waf, Events), String> {
        let events = Events::default();
        let sink = events.clone();
        let builder = self.builder()?.on_event(move |event| {
            let mut line = event.json_line();
            line.truncate(line.trim_end().len());
            sink.push(line);
        });
        let waf = builder.build().map_err(|error| error.to_string())?;
        Ok((waf, events))
    }

    fn builder(self) -> Result<Builder, String> {
        let has_rules = self.crs.is_some() || !self.rules.is_empty() || self.directives.is_some();
        let mode = match self.mode.as_deref() {
            None if has_rules => Mode::Crs,
            None | Some("semantic") => Mode::Semantic,
            Some("crs") => Mode::Crs,
            Some("both") => Mode::Both,
            Some(other) => return Err(format!("mode: `{other}` is not semantic, crs or both")),
        };
        let level = match self.level.as_deref() {
            None => None,
            Some(name) => match Level::from_name(name) {
                Some(level) => Some(level),
                None => return Err(format!("level: `{name}` is not balanced or strict")),
            },
        };
        let mut builder = match &self.document {
            Some(path) if has_rules || self.mode.is_some() => {
                return Err(format!(
                    "{}: the document says mode and rules; leave them out here",
                    path.display()
                ));
            }
            Some(path) => Builder::document(path),
            None => Builder::policy(Policy { mode, crs: self.crs, ..Policy::default() }),
        };
        if let Some(name) = self.site {
            builder = builder.site(name);
        }
        if let Some(name) = self.route {
            builder = builder.route(name);
        }
        if let Some(level) = level {
            builder = builder.level(level);
        }
        if let Some(level) = self.paranoia {
            builder = builder.paranoia(level);
        }
        for file in self.rules {
            builder = builder.rules(file);
        }
        if let Some(text) = &self.directives {
            builder = builder.directives(text);
        }
        if self.detect_only {
            builder = builder.detect_only();
        }
        if let Some(bytes) = self.request_body_limit {
            builder = builder.request_body_limit(bytes);
        }
        if let Some(inspected) = self.response_bodies {
            builder = builder.response_bodies(inspected);
        }
        if self.fail_open {
            builder = builder.fail_open();
        }
        if let Some(file) = self.block_page {
            builder = builder.block_page(file);
        }
        if let Some(bytes) = self.held_bytes_max {
            builder = builder.held_bytes_max(bytes);
        }
        Ok(builder)
    }
}
