//! What an engine is built from.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use portcullis_config::{Config, Engine, Failure, Mode, OpenOrClosed, Policy};
use portcullis_event::Event;
use portcullis_types::Level;

use crate::error::BuildError;
use crate::waf::Waf;

/// Bytes of memory for the bodies of all exchanges, unless told otherwise.
const HELD_BYTES_MAX: usize = 256 << 20;

/// What the policy comes from.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// A document, its site and route.
    Document { path: PathBuf, site: Option<String>, route: Option<String> },
    /// A policy in code.
    Policy { policy: Box<Policy>, failure: Failure, block_page: Option<PathBuf> },
}

/// Takes a finished event. Called by the thread that ends the exchange, so it must not wait.
pub(crate) type OnEvent = Arc<dyn Fn(Event) + Send + Sync>;

/// The settings of an engine: a policy in code, or one of a document.
///
/// Setters of a policy have no effect on a document, and [`build`](Builder::build) says so.
#[derive(Clone)]
pub struct Builder {
    pub(crate) source: Source,
    pub(crate) on_event: Option<OnEvent>,
    pub(crate) name: Option<String>,
    pub(crate) held_bytes_max: Option<usize>,
    /// The setters that the document has no room for.
    misplaced: Vec<&'static str>,
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder").field("source", &self.source).finish_non_exhaustive()
    }
}

impl Builder {
    /// The semantic detector, without rules.
    pub fn semantic() -> Builder {
        Builder::policy(Policy { mode: Mode::Semantic, ..Policy::default() })
    }

    /// The CRS in `folder`, which holds `rules/` and `crs-setup.conf`; [`mode`](Builder::mode) adds the
    /// semantic detector.
    pub fn crs(folder: impl Into<PathBuf>) -> Builder {
        Builder::policy(Policy { mode: Mode::Crs, crs: Some(folder.into()), ..Policy::default() })
    }

    /// This policy.
    pub fn policy(policy: Policy) -> Builder {
        let policy = Box::new(policy);
        Builder::of(Source::Policy { policy, failure: Failure::default(), block_page: None })
    }

    /// A policy of the document at `path`: that of its only inspected site, or of [`site`](Builder::site). Of
    /// the document, policy, `failure`, `block_page`, redaction and limits of bodies hold; its listeners,
    /// upstreams and files of events do not.
    pub fn document(path: impl AsRef<Path>) -> Builder {
        Builder::of(Source::Document { path: path.as_ref().to_owned(), site: None, route: None })
    }

    fn of(source: Source) -> Builder {
        Builder { source, on_event: None, name: None, held_bytes_max: None, misplaced: Vec::new() }
    }

    /// The site of a document whose policy it is, or the name of the site in events.
    pub fn site(mut self, name: impl Into<String>) -> Builder {
        match &mut self.source {
            Source::Document { site, .. } => *site = Some(name.into()),
            Source::Policy { .. } => self.name = Some(name.into()),
        }
        self
    }

    /// The route of the document's site; by default the first one with a policy.
    pub fn route(mut self, name: impl Into<String>) -> Builder {
        match &mut self.source {
            Source::Document { route, .. } => *route = Some(name.into()),
            Source::Policy { .. } => self.misplaced.push("route"),
        }
        self
    }

    /// The detection mode.
    pub fn mode(self, mode: Mode) -> Builder {
        self.change("mode", |policy| policy.mode = mode)
    }

    /// How sure the semantic detector must be.
    pub fn level(self, level: Level) -> Builder {
        self.change("level", |policy| policy.level = level)
    }

    /// The paranoia level of the CRS, 1 to 4.
    pub fn paranoia(self, level: u8) -> Builder {
        self.change("paranoia", |policy| policy.paranoia = Some(level))
    }

    /// A file of rules behind the CRS; its name may hold `*`.
    pub fn rules(self, file: impl Into<PathBuf>) -> Builder {
        self.change("rules", |policy| policy.include.push(file.into()))
    }

    /// SecLang directives behind all files.
    pub fn directives(self, text: &str) -> Builder {
        self.change("directives", |policy| {
            let all = policy.directives.get_or_insert_default();
            all.push_str(text);
            all.push('\n');
        })
    }

    /// Detection only: events tell what would be blocked.
    pub fn detect_only(self) -> Builder {
        self.change("detect_only", |policy| policy.engine = Some(Engine::DetectionOnly))
    }

    /// Bytes of a request body that are held and inspected. Longer ones are refused.
    pub fn request_body_limit(self, bytes: u64) -> Builder {
        self.change("request_body_limit", |policy| policy.request_body.limit_bytes = Some(bytes))
    }

    /// Bodies of responses are inspected, or not.
    pub fn response_bodies(self, inspected: bool) -> Builder {
        self.change("response_bodies", |policy| policy.response_body.inspect = Some(inspected))
    }

    /// What is not known passes: a caught bug, a body in an unknown content coding, a pattern that used up
    /// its steps, a lookup. By default all but lookups are refused.
    pub fn fail_open(mut self) -> Builder {
        match &mut self.source {
            Source::Document { .. } => self.misplaced.push("fail_open"),
            Source::Policy { failure, .. } => {
                let open = OpenOrClosed::Open;
                *failure =
                    Failure { engine_error: open, undecodable: open, pattern_limit: open, lookup: open };
            }
        }
        self
    }

    /// The page of a blocked request, an HTML file.
    pub fn block_page(mut self, file: impl Into<PathBuf>) -> Builder {
        match &mut self.source {
            Source::Document { .. } => self.misplaced.push("block_page"),
            Source::Policy { block_page, .. } => *block_page = Some(file.into()),
        }
        self
    }

    /// Takes finished events. It is called by the thread that ends the exchange, so it must not wait; what it
    /// cannot keep it has to count.
    pub fn on_event(mut self, sink: impl Fn(Event) + Send + Sync + 'static) -> Builder {
        self.on_event = Some(Arc::new(sink));
        self
    }

    /// Bytes of memory for the bodies of all exchanges at one time, 256 MiB by default. Exchanges that have
    /// no room are refused with 503, and counted.
    pub fn held_bytes_max(mut self, bytes: usize) -> Builder {
        self.held_bytes_max = Some(bytes);
        self
    }

    /// Reads, checks and compiles all of it. With the CRS that takes a good part of a second.
    pub fn build(self) -> Result<Waf, BuildError> {
        Waf::build(self)
    }

    fn change(mut self, setter: &'static str, change: impl FnOnce(&mut Policy)) -> Builder {
        match &mut self.source {
            Source::Document { .. } => self.misplaced.push(setter),
            Source::Policy { policy, .. } => change(policy),
        }
        self
    }

    /// Refuses settings that would have no effect, or contradict each other.
    pub(crate) fn check(&self) -> Result<(), BuildError> {
        let wrong = |text: String| Err(BuildError::Setting(text));
        match (&self.source, self.misplaced.first()) {
            (Source::Document { .. }, Some(setter)) => {
                wrong(format!("{setter}: the policy comes from a document, which has to say it"))
            }
            (Source::Policy { .. }, Some(setter)) => wrong(format!("{setter}: only a document has it")),
            (Source::Document { .. }, None) => Ok(()),
            (Source::Policy { policy, .. }, None) => {
                let has_rules =
                    policy.crs.is_some() || !policy.include.is_empty() || policy.directives.is_some();
                if policy.mode == Mode::Semantic && (policy.crs.is_some() || policy.paranoia.is_some()) {
                    return wrong("mode semantic does not read the CRS; mode both does".to_owned());
                }
                if policy.mode != Mode::Semantic && !has_rules {
                    return wrong(
                        "this mode needs rules: a folder of the CRS, files or directives".to_owned(),
                    );
                }
                if policy.paranoia.is_some_and(|level| !(1..=4).contains(&level)) {
                    return wrong("paranoia is 1 to 4".to_owned());
                }
                Ok(())
            }
        }
    }

    /// The limit of memory: as told, as the document says, or by default.
    pub(crate) fn held_bytes(&self, config: Option<&Config>) -> usize {
        let of_document = config.map(|config| config.limits.held_body_bytes_max);
        let of_document = of_document.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
        self.held_bytes_max.or(of_document).unwrap_or(HELD_BYTES_MAX)
    }
}
