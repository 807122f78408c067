//! From the tree to rules with their actions written out, directive by directive, in the order of the files.

use std::path::Path;

use bstr::{BString, ByteSlice};
use portcullis_decode::UnicodeMap;
use portcullis_http::body::{Doctype, JsonNames, Options, XmlArgs};
use portcullis_http::cookie::CookieFormat;
use portcullis_match::{Pcre, RegexFlags};
use portcullis_seclang::ast::{
    Action, Ctl, Directive, Document, Rule, RuleSelector, Selector, Spanned, Target, TargetKind,
};
use portcullis_seclang::settings::{self, RuleEngine, Setting};
use portcullis_seclang::{Files, SourceSpan, Sources};
use portcullis_types::{Phase, RuleId, Variable};

use crate::operator::Test;
use crate::rules::{Chain, Disruptive, Item, Link, LoadedTarget, Select, in_ranges, same_target};
use crate::transaction::Chosen;
use crate::variables::is_evaluated;
use crate::xpath;
use crate::{Reference, Unsupported};

/// Settings that change what a rule sees.
pub(crate) struct Settings {
    pub(crate) engine: RuleEngine,
    pub(crate) request_body_access: bool,
    pub(crate) response_body_access: bool,
    pub(crate) content_injection: bool,
    pub(crate) stream_request_body: bool,
    pub(crate) stream_response_body: bool,
    pub(crate) mime_types: Vec<BString>,
    pub(crate) separator: u8,
    pub(crate) cookie_format: CookieFormat,
    pub(crate) body: Options,
    /// `SecCompatibility ModSecurity3`.
    pub(crate) modsecurity3: bool,
    pub(crate) unicode_map: Option<UnicodeMap>,
    pub(crate) web_app_id: BString,
    pub(crate) collection_timeout: i64,
    pub(crate) http_bl_key: BString,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            engine: RuleEngine::Off,
            request_body_access: false,
            response_body_access: false,
            content_injection: false,
            stream_request_body: false,
            stream_response_body: false,
            mime_types: vec!["text/plain".into(), "text/html".into()],
            separator: b'&',
            cookie_format: CookieFormat::V0,
            body: Options::default(),
            modsecurity3: false,
            unicode_map: None,
            web_app_id: "default".into(),
            collection_timeout: 3_600,
            http_bl_key: BString::default(),
        }
    }
}

pub(crate) fn load(
    document: &Document,
    sources: &Sources,
    files: &dyn Files,
) -> Result<Reference, Vec<Unsupported>> {
    let mut loader = Loader {
        sources,
        files,
        settings: Settings::default(),
        mime_types_set: false,
        items: Vec::new(),
        defaults: Default::default(),
        chain_open: false,
        problems: Vec::new(),
    };
    let initial = [Action::Phase(Phase::RequestBody), Action::Log, Action::AuditLog, Action::Pass];
    loader.defaults.fill(initial.to_vec());
    // The version of ModSecurity counts for every rule, wherever it is set.
    for directive in &document.directives {
        if let Directive::Setting(Setting::Compatibility(compatibility)) = directive.node {
            loader.settings.modsecurity3 = compatibility == settings::Compatibility::ModSecurity3;
        }
    }
    let modsecurity3 = loader.settings.modsecurity3;
    // In version 3 it makes no difference where a change of rules stands.
    let is_change = |directive: &Directive| {
        use Directive::{RemoveById, RemoveByMsg, RemoveByTag, UpdateAction, UpdateTarget};
        matches!(
            directive,
            RemoveById(_) | RemoveByTag(_) | RemoveByMsg(_) | UpdateTarget { .. } | UpdateAction { .. }
        )
    };
    let is_later = |directive: &&Spanned<Directive>| modsecurity3 && is_change(&directive.node);
    let (changes, others): (Vec<_>, Vec<_>) = document.directives.iter().partition(is_later);
    for directive in others.into_iter().chain(changes) {
        loader.directive(directive);
    }
    if loader.problems.is_empty() {
        Ok(Reference { settings: loader.settings, items: loader.items })
    } else {
        Err(loader.problems)
    }
}

struct Loader<'l> {
    sources: &'l Sources,
    files: &'l dyn Files,
    settings: Settings,
    mime_types_set: bool,
    items: Vec<Item>,
    /// The default actions of the next rules, for each phase. In version 2 all are the same: the last
    /// `SecDefaultAction` counts, whatever phase it names (`cmd_default_action`). In version 3 it counts for
    /// the phase it names.
    defaults: [Vec<Action>; 5],
    /// The last link has `chain`.
    chain_open: bool,
    problems: Vec<Unsupported>,
}

impl Loader<'_> {
    fn problem(&mut self, span: SourceSpan, what: impl Into<String>) {
        self.problems.push(Unsupported { span, what: what.into() });
    }

    fn directive(&mut self, directive: &Spanned<Directive>) {
        let span = directive.span;
        match &directive.node {
            Directive::Rule(rule) => self.rule(rule, span),
            Directive::Script { .. } => self.problem(span, "SecRuleScript"),
            Directive::Marker(label) => self.items.push(Item::Marker(label.clone())),
            Directive::DefaultAction(actions) => {
                let actions: Vec<Action> = actions.iter().map(|action| action.node.clone()).collect();
                if self.settings.modsecurity3 {
                    let phase = phase_of(&actions).unwrap_or(Phase::RequestBody);
                    self.defaults[usize::from(phase.number()) - 1] = actions;
                } else {
                    self.defaults.fill(actions);
                }
            }
            Directive::RemoveById(ids) => self.remove(&Chosen::Ids(ids.clone())),
            Directive::RemoveByTag(pattern) => {
                if let Some(regex) = self.regex(pattern, span) {
                    self.remove(&Chosen::Tag(regex));
                }
            }
            Directive::RemoveByMsg(pattern) => {
                if let Some(regex) = self.regex(pattern, span) {
                    self.remove(&Chosen::Msg(regex));
                }
            }
            Directive::UpdateTarget { rules, targets, replaced } => {
                let chosen = match rules {
                    RuleSelector::Ids(ids) => Some(Chosen::Ids(ids.clone())),
                    RuleSelector::Tag(pattern) => self.regex(pattern, span).map(Chosen::Tag),
                    RuleSelector::Msg(pattern) => self.regex(pattern, span).map(Chosen::Msg),
                };
                if let Some(chosen) = chosen {
                    self.update_targets(&chosen, targets, replaced.as_deref());
                }
            }
            Directive::UpdateAction { id, link, actions } => self.update_actions(*id, *link, actions),
            Directive::Setting(setting) => self.setting(setting, span),
        }
    }

    fn regex(&mut self, pattern: &[u8], span: SourceSpan) -> Option<Pcre> {
        let regex = Pcre::new(pattern, RegexFlags::default());
        if let Err(error) = &regex {
            self.problem(span, format!("regex: {}", error.message));
        }
        regex.ok()
    }

    /// Follows `add_rule` and `msre_actionset_merge`.
    fn rule(&mut self, rule: &Rule, span: SourceSpan) {
        let own: Vec<Action> = rule.actions.iter().map(|action| action.node.clone()).collect();
        for action in &rule.actions {
            self.check_action(action);
        }
        let folder = self.sources.path(span.file).parent().unwrap_or(Path::new("")).to_owned();
        let (targets, negated, test) = match &rule.condition {
            None => {
                let always =
                    Target { kind: TargetKind::Values, variable: Variable::RemoteAddr, selector: None };
                (self.targets(&[Spanned { node: always, span }], &[]), false, Ok(Test::Always))
            }
            Some(condition) => {
                let operator = &condition.operator.node;
                let multi_line = self.settings.modsecurity3;
                let test = Test::new(operator.name, &operator.argument, &folder, self.files, multi_line);
                (self.targets(&condition.targets, &own), operator.negated, test)
            }
        };
        let test = match test {
            Ok(test) => test,
            Err(what) => return self.problem(span, what),
        };
        // Before the merge the phase is only known in version 3, where the default actions hang on it.
        // A link is in the phase of its chain.
        let own_phase = match self.items.last() {
            Some(Item::Chain(chain)) if self.chain_open => chain.phase,
            _ => phase_of(&own).unwrap_or(Phase::RequestBody),
        };
        let defaults = self.defaults[usize::from(own_phase.number()) - 1].clone();
        let actions = [defaults.as_slice(), &own].concat();
        let continues = std::mem::replace(&mut self.chain_open, own.contains(&Action::Chain));
        let link = Link { targets, negated, test, actions };
        if continues {
            if let Some(Item::Chain(chain)) = self.items.last_mut() {
                return chain.links.push(link);
            }
            return self.problem(span, "a link without its chain");
        }
        let Some(id) = link.id() else { return self.problem(span, "a rule without an id") };
        let phase = phase_of(&link.actions);
        let default_disruptive = Disruptive::last_of(&defaults).unwrap_or(Disruptive::Pass);
        let inherits = !self.settings.modsecurity3 || own.contains(&Action::Block);
        let inherited = if inherits { default_disruptive.clone() } else { Disruptive::Pass };
        let disruptive = Disruptive::last_of(&own).unwrap_or(inherited);
        let phase = phase.unwrap_or(Phase::RequestBody);
        self.items.push(Item::Chain(Chain { id, phase, links: vec![link], disruptive, default_disruptive }));
    }

    fn check_action(&mut self, action: &Spanned<Action>) {
        let what = if let Action::Exec(_) = &action.node {
            "exec"
        } else if let Action::Ctl(Ctl::HashEngine(true) | Ctl::HashEnforcement(true)) = &action.node {
            "hashes"
        } else {
            return;
        };
        self.problem(action.span, what);
    }

    fn targets(&mut self, targets: &[Spanned<Target>], actions: &[Action]) -> Vec<LoadedTarget> {
        let spaces: Vec<(BString, BString)> = actions
            .iter()
            .filter_map(|action| {
                if let Action::XmlNs { prefix, uri } = action {
                    Some((prefix.clone(), uri.clone()))
                } else {
                    None
                }
            })
            .collect();
        let mut out = Vec::new();
        for target in targets {
            match load_target(&target.node, &spaces) {
                Ok(loaded) => out.push(loaded),
                Err(what) => self.problem(target.span, what),
            }
        }
        out
    }

    fn remove(&mut self, chosen: &Chosen) {
        for item in &mut self.items {
            if let Item::Chain(chain) = item
                && is_chosen(chosen, chain.starter())
            {
                *item = Item::Removed(chain.id, chain.phase);
            }
        }
    }

    /// Follows `msre_ruleset_phase_rule_update_target_matching_exception`: every link of the chain is
    /// changed.
    fn update_targets(
        &mut self,
        chosen: &Chosen,
        targets: &[Spanned<Target>],
        replaced: Option<&[Spanned<Target>]>,
    ) {
        // Built anew for each link, since a regex cannot be copied.
        for index in 0..self.items.len() {
            let Some(Item::Chain(chain)) = self.items.get(index) else { continue };
            if !is_chosen(chosen, chain.starter()) {
                continue;
            }
            for link in 0..chain.links.len() {
                let Some(Item::Chain(chain)) = self.items.get(index) else { continue };
                let actions = chain.links[link].actions.clone();
                let added = self.targets(targets, &actions);
                let Some(Item::Chain(chain)) = self.items.get_mut(index) else { continue };
                update_link(&mut chain.links[link], added, replaced);
            }
        }
    }

    /// Follows `update_rule_action`: the new actions come after those that are there.
    fn update_actions(&mut self, id: RuleId, link: u32, actions: &[Spanned<Action>]) {
        for action in actions {
            self.check_action(action);
        }
        let own: Vec<Action> = actions.iter().map(|action| action.node.clone()).collect();
        let chain = self.items.iter_mut().find_map(|item| {
            if let Item::Chain(chain) = item
                && chain.id == id
            {
                Some(chain)
            } else {
                None
            }
        });
        // One that is not there, or not any more, is not changed.
        let Some(chain) = chain.filter(|chain| (link as usize) < chain.links.len()) else { return };
        // `block` goes back to the default action, unlike in a rule, where it only leaves it in place.
        let block = own.iter().rposition(|action| *action == Action::Block);
        match Disruptive::last_of(&own[block.map_or(0, |at| at + 1)..]) {
            Some(disruptive) => chain.disruptive = disruptive,
            None if block.is_some() => chain.disruptive = chain.default_disruptive.clone(),
            None => {}
        }
        chain.links[link as usize].actions.extend(own);
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "the rest is about logs, files and limits of whole bodies"
    )]
    fn setting(&mut self, setting: &Setting, span: SourceSpan) {
        let limits = &mut self.settings.body.limits;
        let size = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        match setting {
            Setting::Compatibility(settings::Compatibility::ModSecurity3) => {
                self.settings.body.json_names = JsonNames::ModSecurity3;
                self.settings.body.boundary_parameters = true;
            }
            Setting::Compatibility(settings::Compatibility::ModSecurity2) => {
                self.settings.body.json_names = JsonNames::ModSecurity2;
                self.settings.body.boundary_parameters = false;
            }
            Setting::XmlExternalDtd(true) => self.settings.body.doctype = Doctype::SkipExternal,
            Setting::XmlExternalDtd(false) => self.settings.body.doctype = Doctype::Refuse,
            Setting::SecondReadings(on) => self.settings.body.second_readings = *on,
            Setting::RuleEngine(engine) => self.settings.engine = *engine,
            Setting::RequestBodyAccess(on) => self.settings.request_body_access = *on,
            Setting::ResponseBodyAccess(on) => self.settings.response_body_access = *on,
            Setting::ContentInjection(on) => self.settings.content_injection = *on,
            Setting::StreamInBodyInspection(on) => self.settings.stream_request_body = *on,
            Setting::StreamOutBodyInspection(on) => self.settings.stream_response_body = *on,
            Setting::ResponseBodyMimeTypes(types) => {
                if !std::mem::replace(&mut self.mime_types_set, true) {
                    self.settings.mime_types.clear();
                }
                self.settings.mime_types.extend(types.iter().cloned());
            }
            Setting::ResponseBodyMimeTypesClear => {
                self.mime_types_set = true;
                self.settings.mime_types.clear();
            }
            Setting::HttpBlKey(key) => self.settings.http_bl_key = key.clone(),
            Setting::ArgumentSeparator(byte) => {
                self.settings.separator = *byte;
                self.settings.body.separator = *byte;
            }
            Setting::CookieFormat(settings::CookieFormat::Netscape) => {
                self.settings.cookie_format = CookieFormat::V0;
            }
            Setting::CookieFormat(settings::CookieFormat::Version1) => {
                self.settings.cookie_format = CookieFormat::V1;
            }
            Setting::ArgumentsLimit(n) => limits.arguments_max = size(*n),
            Setting::RequestBodyJsonDepthLimit(n) => limits.json_depth_max = size(*n),
            Setting::UploadFileLimit(n) => limits.multipart_files_max = size(*n),
            Setting::RequestBodyNoFilesLimit(n) => limits.no_files_bytes_max = *n,
            Setting::UnicodeMapFile { path, code_page } => {
                let file = path.to_path_lossy();
                let folder = self.sources.path(span.file).parent().unwrap_or(Path::new(""));
                let text = self.files.read(&folder.join(file));
                let map = text.ok().and_then(|text| {
                    UnicodeMap::parse(&text.to_str_lossy(), code_page.unwrap_or(20127)).ok()
                });
                match map {
                    Some(map) => self.settings.unicode_map = Some(map),
                    None => self.problem(span, "a Unicode map that cannot be read"),
                }
            }
            Setting::ParseXmlIntoArgs(args) => self.settings.body.xml_args = xml_args(*args),
            Setting::WebAppId(text) => self.settings.web_app_id = text.clone(),
            Setting::CollectionTimeout(seconds) => {
                self.settings.collection_timeout = i64::try_from(*seconds).unwrap_or(i64::MAX);
            }
            // The rest is about logs, files and limits of whole bodies.
            _ => {}
        }
    }
}

/// The last phase of a list of actions.
fn phase_of(actions: &[Action]) -> Option<Phase> {
    actions
        .iter()
        .rev()
        .find_map(|action| if let Action::Phase(phase) = action { Some(*phase) } else { None })
}

/// Builds a target; the error says what is not evaluated.
pub(crate) fn load_target(target: &Target, spaces: &[(BString, BString)]) -> Result<LoadedTarget, String> {
    if !is_evaluated(target.variable) {
        return Err(target.variable.name().to_owned());
    }
    let select = match &target.selector {
        None => Select::All,
        Some(Selector::Key(key)) => Select::Key(key.clone()),
        Some(Selector::Regex(pattern)) => {
            let flags = RegexFlags { case_insensitive: true, ..RegexFlags::default() };
            Select::Regex(Pcre::new(pattern, flags).map_err(|error| format!("regex: {}", error.message))?)
        }
        Some(Selector::XPath(path)) if path == "/*" => Select::XmlText,
        Some(Selector::XPath(path)) if path == "//@*" => Select::XmlAttributes,
        Some(Selector::XPath(path)) => {
            xpath::Document::default().select(&path.to_string(), spaces)?;
            Select::XPath(path.to_string(), spaces.to_vec())
        }
    };
    Ok(LoadedTarget { kind: target.kind, variable: target.variable, select, written: target.clone() })
}

/// Follows `update_rule_target_ex`.
fn update_link(link: &mut Link, added: Vec<LoadedTarget>, replaced: Option<&[Spanned<Target>]>) {
    if let Some(replaced) = replaced {
        let before = link.targets.len();
        let is_replaced =
            |target: &LoadedTarget| replaced.iter().any(|r| same_target(&r.node, &target.written));
        link.targets.retain(|target| !is_replaced(target));
        if link.targets.len() < before {
            link.targets.extend(added);
        }
        return;
    }
    for target in added {
        if !link.targets.iter().any(|known| same_target(&known.written, &target.written)) {
            link.targets.push(target);
        }
    }
}

/// True if a link is one of the chosen; only its own metadata count. Follows
/// `msre_ruleset_rule_matches_exception`.
pub(crate) fn is_chosen(chosen: &Chosen, link: &Link) -> bool {
    match chosen {
        Chosen::Ids(ranges) => link.id().is_some_and(|id| in_ranges(ranges, id)),
        Chosen::Tag(regex) => link.tags().any(|tag| regex.is_match(tag)),
        Chosen::Msg(regex) => link.msg().is_some_and(|msg| regex.is_match(msg)),
    }
}

/// The parser's word for it.
pub(crate) fn xml_args(args: settings::XmlArgs) -> XmlArgs {
    match args {
        settings::XmlArgs::On => XmlArgs::On,
        settings::XmlArgs::Off => XmlArgs::Off,
        settings::XmlArgs::OnlyArgs => XmlArgs::OnlyArgs,
    }
}
