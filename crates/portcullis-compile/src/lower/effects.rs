//! Compilation of actions that rewrite, proxy or delay a message; and of the storage of uploaded files.

use std::sync::Arc;

use bstr::ByteSlice;
use portcullis_engine::{Act, Disruption, Diversion, KeepFiles, RateLimit, Template};
use portcullis_seclang::ast::{self, Action, Ctl, Directive, Document, Spanned};
use portcullis_seclang::operators::OperatorName;
use portcullis_seclang::settings::Setting;
use portcullis_seclang::{Diagnostic, SourceSpan};
use portcullis_types::{Phase, Variable};

use super::Lowering;
use crate::draft::Draft;
use crate::proxy_url;

impl Lowering<'_> {
    /// `SecUploadDir`, the last one; a relative path is beside the file that names it.
    pub(super) fn upload_folder(&mut self, document: &Document) {
        let mut keeping = None;
        for directive in &document.directives {
            if let Directive::Setting(Setting::UploadDir(path)) = &directive.node {
                let folder = self.folder(directive.span.file).join(&*String::from_utf8_lossy(path));
                self.plan.settings.upload_folder = Some(Arc::new(folder));
            } else if let Directive::Setting(Setting::UploadKeepFiles(_)) = &directive.node {
                keeping = Some(directive.span)
            }
        }
        let settings = &self.plan.settings;
        if let Some(span) = keeping
            && settings.keep_files != KeepFiles::Off
            && settings.upload_folder.is_none()
        {
            let hint = "add SecUploadDir with the folder that uploaded files go to";
            self.warn(
                span,
                "SecUploadKeepFiles has no folder: no file is kept".to_owned(),
                Some(hint.to_owned()),
            );
            self.plan.settings.keep_files = KeepFiles::Off;
        }
    }

    pub(super) fn injection(&mut self, action: &str, text: &[u8], span: SourceSpan) -> Template {
        if !self.plan.settings.content_injection {
            self.without(span, action, "SecContentInjection");
        }
        self.text(text)
    }

    /// `@rsub` changes a body in place of the variable, so it takes no other one; and both need their switch.
    #[expect(clippy::wildcard_enum_match_arm, reason = "only the two streams can be changed")]
    pub(super) fn check_rewriting(&mut self, condition: &ast::Condition) {
        let operator = &condition.operator;
        let changes = operator.node.name == OperatorName::Rsub;
        if changes && operator.node.negated {
            let hint = "remove the !; @rsub matches whatever there is to change";
            self.warn(operator.span, "@rsub with ! matches nothing".to_owned(), Some(hint.to_owned()));
        }
        let settings = &self.plan.settings;
        let (input, output, inject) =
            (settings.stream_request_body, settings.stream_response_body, settings.content_injection);
        for target in &condition.targets {
            let name = target.node.variable.name();
            match target.node.variable {
                Variable::StreamInputBody if !input => {
                    self.without(target.span, name, "SecStreamInBodyInspection")
                }
                Variable::StreamOutputBody if !output => {
                    self.without(target.span, name, "SecStreamOutBodyInspection");
                }
                Variable::StreamOutputBody if changes && !inject => {
                    self.without(target.span, "@rsub on STREAM_OUTPUT_BODY", "SecContentInjection");
                }
                Variable::StreamInputBody | Variable::StreamOutputBody => {}
                _ if changes => {
                    let hint = "look at STREAM_INPUT_BODY or STREAM_OUTPUT_BODY";
                    let message = format!("@rsub cannot change {name}: it does nothing");
                    self.warn(target.span, message, Some(hint.to_owned()));
                }
                _ => {}
            }
        }
    }

    fn without(&mut self, span: SourceSpan, what: &str, directive: &str) {
        let warning = Diagnostic::warning(span, format!("{what} has no effect while {directive} is Off"));
        self.diagnostics.push(warning.with_hint(format!("write {directive} On")));
    }

    /// `proxy:URL`. The server is fixed here, so that the loader can look it up among the upstreams.
    pub(super) fn proxy(&mut self, url: &[u8], span: SourceSpan, phase: Phase) -> Disruption {
        if !matches!(phase, Phase::RequestHeaders | Phase::RequestBody) {
            let message = format!(
                "proxy works in phases 1 and 2; in phase {} the answer is there, and the rule denies with 500",
                phase.number()
            );
            self.warn(span, message, Some("use phase:2, or deny".to_owned()));
            return Disruption::Deny { status: 500 };
        }
        match proxy_url::parse(url) {
            Ok((origin, target)) => {
                let target = self.text_at(target, span);
                Disruption::Proxy(Diversion { origin: Arc::new(origin), target })
            }
            Err((message, hint)) => {
                self.warn(span, format!("{message}; the rule denies with 500"), Some(hint));
                Disruption::Deny { status: 500 }
            }
        }
    }

    /// `ctl:rateLimit`.
    pub(super) fn rate_limit(&mut self, limit: &[u8], key: &[u8]) -> Result<Act, String> {
        let name = limit.to_str().map_err(|_| "the name of a rate limit is UTF-8".to_owned())?;
        Ok(Act::RateLimit(RateLimit { name: name.into(), key: self.text(key) }))
    }

    /// Reports a `ctl:rateLimit` that runs after phase 2: it cannot refuse the request any more.
    pub(super) fn too_late_to_count(&mut self, draft: &Draft<'_>) {
        let actions = draft.links.iter().flat_map(|link| draft.defaults.iter().chain(&*link.actions));
        let counts = |action: &&Spanned<Action>| matches!(action.node, Action::Ctl(Ctl::RateLimit { .. }));
        let late: Vec<SourceSpan> = actions.filter(counts).map(|action| action.span).collect();
        for span in late {
            let message =
                format!("ctl:rateLimit works in phases 1 and 2, not in phase {}", draft.phase.number());
            self.error(span, message, Some("use phase:2".to_owned()));
        }
    }

    /// The last `pause`. It delays whatever else the rule does.
    pub(super) fn pause(
        &mut self,
        defaults: &[Spanned<Action>],
        own: &[Spanned<Action>],
    ) -> Option<Template> {
        let pause = defaults.iter().chain(own).rev().find_map(|action| {
            if let Action::Pause(text) = &action.node { Some((text, action.span)) } else { None }
        });
        let (text, span) = pause?;
        let template = self.text_at(text, span);
        if template
            .as_literal()
            .is_some_and(|text| !text.to_str().is_ok_and(|text| text.parse::<u32>().is_ok()))
        {
            let hint = "write pause:2000 for two seconds, or a macro such as pause:%{tx.pause}";
            let message = format!("pause takes milliseconds, not {text:?}: it does not wait");
            self.warn(span, message, Some(hint.to_owned()));
            return None;
        }
        Some(template)
    }
}

/// The prefixes of `xmlns` actions.
pub(super) fn namespaces<'a>(
    defaults: &'a [Spanned<Action>],
    own: &'a [Spanned<Action>],
) -> Vec<(&'a [u8], &'a [u8])> {
    let spaces = defaults.iter().chain(own).filter_map(|action| {
        if let Action::XmlNs { prefix, uri } = &action.node {
            Some((prefix.as_slice(), uri.as_slice()))
        } else {
            None
        }
    });
    spaces.collect()
}
