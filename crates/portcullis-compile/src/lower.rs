//! Drafts to plan.

mod acts;
mod effects;
mod outcome;

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use portcullis_decode::UnicodeMap;
use portcullis_engine::{
    ChainId, GeoDb, KeepFiles, KeyFilter, Link, LogText, Operator, Plan, Removed, Rule, RuleIndex, Settings,
    SourcePlace, Step, Target, TargetList, Template, Update, XmlPath,
};
use portcullis_seclang::ast::{Action, Directive, Document, Spanned};
use portcullis_seclang::settings::Setting;
use portcullis_seclang::{Diagnostic, FileId, Files, Level, SourceSpan, Sources};
use portcullis_types::{Phase, Variable};

use crate::draft::{Draft, DraftLink, Entry, drafts, is_exclusion};
use crate::fold::fold;
use crate::lint::lint;
use crate::names::Names;
use crate::operator::Operators;
use crate::patterns::Patterns;
use crate::template::template;
use crate::{audit, settings, targets};

/// Largest factor by which transformations may lengthen a value.
const GROWTH_MAX: u32 = 64;

/// Seconds: 30 days, as ModSecurity has it.
const COLLECTION_TIMEOUT_MAX: u64 = 2_592_000;

/// The result of [`compile`].
#[derive(Debug)]
pub struct Compiled {
    /// The plan; `None` if a diagnostic is an error.
    pub plan: Option<Plan>,
    /// Errors and warnings in document order of discovery.
    pub diagnostics: Vec<Diagnostic>,
}

/// Compiles `document`. `files` gives the data files that operators name, relative to their rule file.
pub fn compile(document: &Document, sources: &Sources, files: &dyn Files) -> Compiled {
    compile_sharing(document, sources, files, &Patterns::default())
}

/// As [`compile`], with patterns that other plans may have, too.
pub fn compile_sharing(
    document: &Document,
    sources: &Sources,
    files: &dyn Files,
    patterns: &Patterns,
) -> Compiled {
    let mut diagnostics = Vec::new();
    let settings = compile_settings(document, sources, &mut diagnostics);
    let entries = drafts(document, settings.modsecurity3, &mut diagnostics);
    let mut lowering = Lowering {
        names: Names::new(),
        operators: Operators::new(files, patterns, settings.modsecurity3),
        plan: Plan { settings, ..Plan::default() },
        sources,
        diagnostics,
    };
    lowering.plan.files =
        sources.files().map(|file| Arc::from(sources.path(file).to_string_lossy().as_ref())).collect();
    lowering.unicode_map(document, files);
    lowering.upload_folder(document);
    lowering.lookups(document, files);
    lowering.lower(&entries);
    let advice = lint(&entries, document, &lowering.plan, sources);
    lowering.diagnostics.extend(advice);
    let Lowering { mut plan, names, mut diagnostics, .. } = lowering;
    (plan.tx_names, plan.tx_spellings) = (names.tx, names.spellings);
    audit::finish(&mut plan, document, &mut diagnostics);
    if plan.settings.audit.reachable.rule_text {
        plan.rule_texts = audit::rule_texts(&entries);
    }
    patterns.tidy();
    let failed = diagnostics.iter().any(|diagnostic| diagnostic.severity == Level::Error);
    if !failed {
        fold(&mut plan);
    }
    plan.reads_file_content = reads(&plan, Variable::FilesTmpContent)
        || reads(&plan, Variable::FilesTmpnames)
        || plan.settings.keep_files != KeepFiles::Off;
    plan.searches_xml = plan.links.iter().any(searches_xml)
        || plan.ctl_targets.iter().any(|target| is_search(&target.filter));
    plan.streams_request = plan.settings.stream_request_body && reads(&plan, Variable::StreamInputBody);
    plan.streams_response = plan.settings.stream_response_body && reads(&plan, Variable::StreamOutputBody);
    plan.reads_response_body = !plan.steps[3].is_empty() || reads(&plan, Variable::ResponseBody);
    plan.finish();
    Compiled { plan: (!failed).then_some(plan), diagnostics }
}

fn searches_xml(link: &Link) -> bool {
    link.targets.include.iter().any(|target| is_search(&target.filter))
        || link.targets.exclude.iter().any(|exclusion| is_search(&exclusion.filter))
}

fn is_search(filter: &KeyFilter) -> bool {
    matches!(filter, KeyFilter::Xml(XmlPath::Search(_)))
}

fn reads(plan: &Plan, variable: Variable) -> bool {
    plan.links.iter().any(|link| link.targets.include.iter().any(|target| target.variable == variable))
}

fn compile_settings(document: &Document, sources: &Sources, diagnostics: &mut Vec<Diagnostic>) -> Settings {
    let mut compiled = Settings::default();
    let mut mime_types_named = false;
    for directive in &document.directives {
        let Directive::Setting(setting) = &directive.node else { continue };
        if let Setting::DataDir(path) = setting {
            let folder = sources.path(directive.span.file).parent().unwrap_or(Path::new(""));
            compiled.data_dir = Some(folder.join(&*String::from_utf8_lossy(path)));
            continue;
        }
        if let Setting::EventSocket(path) = setting {
            match settings::event_socket(path) {
                Ok(socket) => compiled.event_socket = socket,
                Err(message) => diagnostics.push(Diagnostic::error(directive.span, message)),
            }
            continue;
        }
        if let Setting::CollectionTimeout(seconds) = setting
            && *seconds > COLLECTION_TIMEOUT_MAX
        {
            let message = format!("SecCollectionTimeout is 0 to {COLLECTION_TIMEOUT_MAX} seconds (30 days)");
            diagnostics.push(Diagnostic::error(directive.span, message));
        }
        // The first list of types replaces the default one, later lists add to it.
        if matches!(setting, Setting::ResponseBodyMimeTypes(_))
            && !std::mem::replace(&mut mime_types_named, true)
        {
            compiled.response_body_mime_types.clear();
        }
        if let Some(done) = audit::apply(&mut compiled.audit, setting, directive.span) {
            diagnostics.extend(done.err());
        } else if let Err(warning) = settings::apply(&mut compiled, setting) {
            diagnostics.push(Diagnostic::warning(directive.span, warning));
        }
    }
    compiled
}

/// A place that `skipAfter` can name.
struct Label<'d> {
    /// The position of its entry.
    order: usize,
    name: Cow<'d, [u8]>,
    /// By phase: the step at which execution continues; [`NO_STEP`] where the label is not known.
    steps: [usize; 5],
}

const NO_STEP: usize = usize::MAX;

pub(crate) struct Lowering<'a> {
    pub(crate) plan: Plan,
    names: Names,
    operators: Operators<'a>,
    sources: &'a Sources,
    diagnostics: Vec<Diagnostic>,
}

impl Lowering<'_> {
    /// `SecUnicodeMapFile`, the last one, with the code page that it or `SecUnicodeCodePage` names; looked
    /// for beside the file that names it.
    fn unicode_map(&mut self, document: &Document, files: &dyn Files) {
        let wanted = document.directives.iter().rev().find_map(|directive| {
            if let Directive::Setting(Setting::UnicodeCodePage(page)) = directive.node {
                Some(page)
            } else {
                None
            }
        });
        for directive in &document.directives {
            let Directive::Setting(Setting::UnicodeMapFile { path, code_page }) = &directive.node else {
                continue;
            };
            let code_page = code_page.or(wanted).unwrap_or(20127);
            let place = self.folder(directive.span.file).join(&*String::from_utf8_lossy(path));
            let text = match files.read(&place) {
                Ok(text) => text,
                Err(error) => {
                    let message = format!("cannot read {}: {error}", place.display());
                    self.error(directive.span, message, None);
                    continue;
                }
            };
            match UnicodeMap::parse(&String::from_utf8_lossy(&text), code_page) {
                Ok(map) => self.plan.chains.unicode_map = Some(Arc::new(map)),
                Err(error) => self.warn(directive.span, format!("{error}: t:urlDecodeUni has no map"), None),
            }
        }
    }

    /// Reads the settings that `@rbl` and `@geoLookup` need beside their rules: the last `SecHttpBlKey` and
    /// `SecGeoLookupDb`.
    fn lookups(&mut self, document: &Document, files: &dyn Files) {
        for directive in &document.directives {
            match &directive.node {
                Directive::Setting(Setting::HttpBlKey(key)) => {
                    self.operators.http_bl_key = Some(key.to_string());
                }
                Directive::Setting(Setting::GeoLookupDb(path)) => {
                    let place = self.folder(directive.span.file).join(&*String::from_utf8_lossy(path));
                    let read = files.read(&place);
                    // ModSecurity 2 looks into the file when a request comes, and reads the old format only.
                    let loads = read.is_ok() || is_old_geo_database(&place);
                    match read.map_err(|error| error.to_string()).and_then(GeoDb::new) {
                        Ok(database) => self.operators.geo = Some(Arc::new(database)),
                        Err(why) => {
                            let hint = "databases of the old GeoIP format (.dat) are no longer made; take one in MaxMind's \
                                        format (.mmdb), such as GeoLite2 or DB-IP Lite"
                                .to_owned();
                            let message = format!("cannot use {}: {why}", place.display());
                            match loads {
                                true => self.warn(directive.span, message, Some(hint)),
                                false => self.error(directive.span, message, Some(hint)),
                            }
                        }
                    }
                }
                Directive::Rule(_)
                | Directive::Script { .. }
                | Directive::Marker(_)
                | Directive::DefaultAction(_)
                | Directive::RemoveById(_)
                | Directive::RemoveByTag(_)
                | Directive::RemoveByMsg(_)
                | Directive::UpdateTarget { .. }
                | Directive::UpdateAction { .. }
                | Directive::Setting(_) => {}
            }
        }
    }

    fn lower(&mut self, entries: &[Entry<'_>]) {
        let running: Vec<&Draft<'_>> = entries
            .iter()
            .filter_map(|entry| {
                if let Entry::Rule(draft) = entry
                    && draft.removed.is_none()
                {
                    Some(draft)
                } else {
                    None
                }
            })
            .collect();
        let mut labels: Vec<Label<'_>> = Vec::new();
        for (order, entry) in entries.iter().enumerate() {
            match entry {
                Entry::Marker(label) => {
                    let steps = std::array::from_fn(|phase| self.plan.steps[phase].len());
                    labels.push(Label { order, name: Cow::Borrowed(label), steps });
                }
                Entry::Rule(draft) => {
                    if !self.plan.settings.modsecurity3 {
                        labels.push(self.label_of_rule(order, draft));
                    }
                    if let Some((directive, by)) = draft.removed {
                        let (place, by) = (self.place(draft.span), self.place(by));
                        let (id, phase) = (draft.id, draft.phase);
                        self.plan.removed.push(Removed { id, phase, place, directive, by });
                        continue;
                    }
                    let rule = RuleIndex(self.plan.rules.len() as u32);
                    for &(directive, by) in &draft.updates {
                        let by = self.place(by);
                        self.plan.updates.push(Update { rule, directive, by });
                    }
                    self.rule(draft, &running);
                    self.plan.steps[usize::from(draft.phase.number()) - 1].push(Step::new(rule));
                }
            }
        }
        self.resolve_skips(entries, &labels);
    }

    /// The place behind a rule, for `skipAfter` with its id: in ModSecurity 2 also where the rule was
    /// removed.
    fn label_of_rule<'d>(&self, order: usize, draft: &Draft<'_>) -> Label<'d> {
        let phase = usize::from(draft.phase.number()) - 1;
        let mut steps = [NO_STEP; 5];
        steps[phase] = self.plan.steps[phase].len() + usize::from(draft.removed.is_none());
        Label { order, name: Cow::Owned(draft.id.to_string().into_bytes()), steps }
    }

    /// `skipAfter`: the first marker of that name after the rule, or the first rule of its phase with that
    /// id; without one, the end of the phase. `skip`: so many rules further on in the phase.
    fn resolve_skips(&mut self, entries: &[Entry<'_>], labels: &[Label<'_>]) {
        let mut next = [0; 5];
        for (order, entry) in entries.iter().enumerate() {
            let Entry::Rule(draft) = entry else { continue };
            if draft.removed.is_some() {
                continue;
            }
            let phase = usize::from(draft.phase.number()) - 1;
            let at = next[phase];
            next[phase] += 1;
            let end = self.plan.steps[phase].len();
            let actions = || draft.links[0].actions.iter().rev();
            let skip_after = actions().find_map(|action| {
                if let Action::SkipAfter(label) = &action.node { Some((label, action.span)) } else { None }
            });
            let Some((label, span)) = skip_after else {
                let count = actions().find_map(|action| {
                    if let Action::Skip(count) = action.node { Some(count as usize) } else { None }
                });
                if let Some(count) = count.filter(|&count| count > 0) {
                    self.plan.steps[phase][at].skip_to = end.min(at.saturating_add(1 + count)) as u32;
                }
                continue;
            };
            let target = labels
                .iter()
                .find(|known| known.order > order && *known.name == **label && known.steps[phase] != NO_STEP);
            if target.is_none() {
                let or_rule = if self.plan.settings.modsecurity3 { "" } else { ", or rule of this phase," };
                let message = format!(
                    "skipAfter: no SecMarker{or_rule} {label:?} follows; the rest of the phase is skipped"
                );
                self.diagnostics.push(Diagnostic::warning(span, message));
            }
            self.plan.steps[phase][at].skip_to = target.map_or(end, |label| label.steps[phase]) as u32;
        }
    }

    fn rule(&mut self, draft: &Draft<'_>, running: &[&Draft<'_>]) {
        let first_link = self.plan.links.len() as u32;
        for link in &draft.links {
            let link = self.link(draft, link, running);
            self.plan.links.push(link);
        }
        if !matches!(draft.phase, Phase::RequestHeaders | Phase::RequestBody) {
            self.too_late_to_count(draft);
        }
        let actions = &draft.links[0].actions;
        let (log, audit_log) = outcome::logging(draft.defaults, actions);
        let rule = Rule {
            id: draft.id,
            phase: draft.phase,
            first_link,
            link_count: draft.links.len() as u32,
            disruption: self.disruption(draft),
            pause: self.pause(draft.defaults, actions),
            log,
            audit_log,
            metadata: self.metadata(draft),
        };
        self.plan.rules.push(rule);
    }

    fn link(&mut self, draft: &Draft<'_>, link: &DraftLink<'_>, running: &[&Draft<'_>]) -> Link {
        let mut list = TargetList::default();
        let mut operator = Operator::UnconditionalMatch;
        let mut operator_text = String::new();
        let mut negated = false;
        if let Some(condition) = &link.condition {
            let spaces = effects::namespaces(draft.defaults, &link.actions);
            let far = self.plan.settings.modsecurity3;
            for target in &condition.targets {
                match targets::add(&mut list, &target.node, &mut self.names, &spaces, far) {
                    Ok(None) => {}
                    Ok(Some((message, hint))) => self.warn(target.span, message, hint),
                    Err((message, hint)) => self.error(target.span, message, hint),
                }
            }
            for target in targets::too_early(&condition.targets).filter(|_| !far) {
                let message = "this takes nothing away: what it names stands behind it";
                let warning = Diagnostic::warning(target.span, message);
                self.diagnostics.push(warning.with_hint("move it to the end of the targets"));
            }
            if condition.targets.iter().all(|target| is_exclusion(&target.node)) {
                let message = "the rule has only exclusions: it finds nothing".to_owned();
                self.warn(link.span, message, Some("name first what they are taken from".to_owned()));
            }
            let written = &condition.operator;
            negated = written.node.negated;
            let argument = String::from_utf8_lossy(&written.node.argument);
            operator_text = ["@", written.node.name.name(), " ", &argument].concat();
            let folder = self.folder(written.span.file);
            self.check_rewriting(condition);
            match self.operators.compile(&written.node, &folder, &mut self.names) {
                Ok(compiled) => operator = compiled,
                Err((message, hint)) => self.error(written.span, message, hint),
            }
            self.tell_of_macros(written.span);
            for (message, hint) in self.operators.take_warnings() {
                self.warn(written.span, message, hint);
                // Failing to look does not count as "not found": the rule is silent either way.
                if negated && self.operators.take_never_matches() {
                    operator = Operator::UnconditionalMatch;
                }
            }
        }
        if link.condition.is_none() {
            let remote = Target {
                variable: Variable::RemoteAddr,
                filter: KeyFilter::All,
                slot: None,
                slots: Box::default(),
                count: false,
            };
            list.include.push(remote);
        }
        let mut chain = self.chain(draft.defaults, &link.actions);
        if self.growth(chain) > GROWTH_MAX {
            let message = format!(
                "the transformations make texts more than {GROWTH_MAX} times as long: this rule never matches"
            );
            self.warn(link.span, message, Some("leave out those that encode what is encoded".to_owned()));
            list.include.clear();
            chain = ChainId::IDENTITY;
        }
        if let Err((message, hint)) = targets::fit(&list, &operator, chain) {
            self.error(link.span, message, Some(hint));
        }
        // Every link has the default actions (msre_actionset_merge).
        let actions = || draft.defaults.iter().chain(&*link.actions);
        let has = |wanted: fn(&Action) -> bool| actions().any(|action| wanted(&action.node));
        let acts = actions().filter_map(|action| self.act(action, running)).collect();
        Link {
            targets: list,
            unconditional: link.condition.is_none(),
            chain,
            multi_match: has(|action| matches!(action, Action::MultiMatch)),
            operator,
            negated,
            operator_text: operator_text.into(),
            capture: has(|action| matches!(action, Action::Capture)),
            acts,
        }
    }

    fn chain(&mut self, defaults: &[Spanned<Action>], actions: &[Spanned<Action>]) -> ChainId {
        let mut transformations = Vec::new();
        for action in defaults.iter().chain(actions) {
            if let Action::TransformNone = action.node {
                transformations.clear()
            } else if let Action::Transform(transformation) = action.node {
                transformations.push(transformation)
            }
        }
        self.plan.chains.intern(&transformations)
    }

    /// Largest length of a form, as a multiple of its value.
    fn growth(&self, chain: ChainId) -> u32 {
        let transformations = self.plan.chains.transformations(chain);
        transformations.iter().fold(1, |growth, one| growth.saturating_mul(one.growth()))
    }

    pub(crate) fn text(&mut self, text: &[u8]) -> Template {
        template(text, &mut self.names)
    }

    fn text_at(&mut self, text: &[u8], span: SourceSpan) -> Template {
        let template = self.text(text);
        self.tell_of_macros(span);
        template
    }

    /// A text for logs, in which the texts of the rule itself stand for nothing.
    fn log_text(&mut self, text: &[u8], span: SourceSpan) -> LogText {
        self.names.in_log_text = true;
        let template = self.text_at(text, span);
        self.names.in_log_text = false;
        LogText::new(template, text)
    }

    /// Macros that stand for nothing, in the text at `span` that was read last.
    fn tell_of_macros(&mut self, span: SourceSpan) {
        for error in std::mem::take(&mut self.names.untold) {
            self.warn(span, error.message, error.hint);
        }
    }

    fn place(&self, span: SourceSpan) -> SourcePlace {
        let line = u32::try_from(self.sources.position(span).line).unwrap_or(u32::MAX);
        SourcePlace { file: u32::from(span.file.0), line }
    }

    fn folder(&self, file: FileId) -> std::path::PathBuf {
        self.sources.path(file).parent().unwrap_or(Path::new("")).to_owned()
    }

    fn error(&mut self, span: SourceSpan, message: String, hint: Option<String>) {
        self.tell(Diagnostic { hint, ..Diagnostic::error(span, message) });
    }

    /// For what ModSecurity 2.9.7 loads and what does not work.
    pub(crate) fn warn(&mut self, span: SourceSpan, message: String, hint: Option<String>) {
        self.tell(Diagnostic { hint, ..Diagnostic::warning(span, message) });
    }

    fn tell(&mut self, diagnostic: Diagnostic) {
        // A default action is read again for each rule.
        let is_known =
            |known: &Diagnostic| known.span == diagnostic.span && known.message == diagnostic.message;
        if !self.diagnostics.iter().any(is_known) {
            self.diagnostics.push(diagnostic);
        }
    }
}

fn is_old_geo_database(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("dat"))
}
