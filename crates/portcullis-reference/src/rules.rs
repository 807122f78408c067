//! Rules with their actions written out.

use bstr::BString;
use portcullis_decode::Transformation;
use portcullis_match::Pcre;
use portcullis_seclang::ast::{Action, AllowScope, IdRange, Selector, Target, TargetKind};
use portcullis_types::{Phase, RuleId, Variable};

use crate::operator::Test;

/// The items that the phases run over, in the order of the files.
pub(crate) enum Item {
    Chain(Chain),
    Marker(BString),
    /// The place of a rule that was taken out, which `skipAfter` still finds.
    Removed(RuleId, Phase),
}

/// A rule: one link, or several.
pub(crate) struct Chain {
    pub(crate) id: RuleId,
    pub(crate) phase: Phase,
    pub(crate) links: Vec<Link>,
    /// The action when the last link matches.
    pub(crate) disruptive: Disruptive,
    /// The action that `block` stands for.
    pub(crate) default_disruptive: Disruptive,
}

/// One `SecRule` or `SecAction`.
pub(crate) struct Link {
    pub(crate) targets: Vec<LoadedTarget>,
    pub(crate) negated: bool,
    pub(crate) test: Test,
    /// Those of the default action, then its own.
    pub(crate) actions: Vec<Action>,
}

/// The disruptive actions that are evaluated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Disruptive {
    Pass,
    Deny,
    Drop,
    Redirect(BString),
    Proxy(BString),
    Allow(AllowScope),
}

/// A target with its regex built.
pub(crate) struct LoadedTarget {
    pub(crate) kind: TargetKind,
    pub(crate) variable: Variable,
    pub(crate) select: Select,
    /// As it was written, to compare with.
    pub(crate) written: Target,
}

/// The selected values of a variable.
pub(crate) enum Select {
    All,
    Key(BString),
    Regex(Pcre),
    /// `/*`: the text of the document.
    XmlText,
    /// `//@*`: the attributes.
    XmlAttributes,
    /// Any other XPath expression, and the prefixes that the rule declares.
    XPath(String, Vec<(BString, BString)>),
}

impl Disruptive {
    /// The last disruptive action of a list that is not `block`.
    #[expect(clippy::wildcard_enum_match_arm, reason = "the other actions are not disruptive")]
    pub(crate) fn last_of(actions: &[Action]) -> Option<Disruptive> {
        actions.iter().rev().find_map(|action| match action {
            Action::Pass => Some(Disruptive::Pass),
            Action::Deny => Some(Disruptive::Deny),
            Action::Drop => Some(Disruptive::Drop),
            Action::Redirect(to) => Some(Disruptive::Redirect(to.clone())),
            Action::Proxy(to) => Some(Disruptive::Proxy(to.clone())),
            Action::Allow(scope) => Some(Disruptive::Allow(*scope)),
            _ => None,
        })
    }
}

impl Chain {
    /// The link with the metadata.
    pub(crate) fn starter(&self) -> &Link {
        &self.links[0]
    }

    /// The status of the first link, or for libmodsecurity of the first that has one.
    pub(crate) fn status(&self, modsecurity3: bool) -> u16 {
        let links = if modsecurity3 { &self.links[..] } else { &self.links[..1] };
        let status = |a: &Action| if let Action::Status(status) = a { Some(*status) } else { None };
        links.iter().find_map(|link| link.last(status)).unwrap_or(403)
    }

    pub(crate) fn pause(&self) -> Option<&BString> {
        self.starter().last(|a| if let Action::Pause(time) = a { Some(time) } else { None })
    }

    pub(crate) fn skip(&self) -> u32 {
        self.starter().last(|a| if let Action::Skip(count) = a { Some(*count) } else { None }).unwrap_or(0)
    }

    pub(crate) fn skip_after(&self) -> Option<&BString> {
        self.starter().last(|a| if let Action::SkipAfter(label) = a { Some(label) } else { None })
    }

    /// `nolog` also takes the match from the audit log, `log` does not bring it back there.
    pub(crate) fn logged(&self) -> bool {
        let log = |action: &Action| {
            if let Action::Log = action {
                Some(true)
            } else if let Action::NoLog = action {
                Some(false)
            } else {
                None
            }
        };
        self.starter().last(log).unwrap_or(true)
    }
}

impl Link {
    /// The last action that `pick` picks.
    pub(crate) fn last<'a, T>(&'a self, pick: impl Fn(&'a Action) -> Option<T>) -> Option<T> {
        self.actions.iter().rev().find_map(pick)
    }

    pub(crate) fn has(&self, action: &Action) -> bool {
        self.actions.contains(action)
    }

    pub(crate) fn tags(&self) -> impl Iterator<Item = &BString> {
        self.actions.iter().filter_map(|action| if let Action::Tag(tag) = action { Some(tag) } else { None })
    }

    pub(crate) fn msg(&self) -> Option<&BString> {
        self.last(|action| if let Action::Msg(msg) = action { Some(msg) } else { None })
    }

    pub(crate) fn id(&self) -> Option<RuleId> {
        self.last(|action| if let Action::Id(id) = action { Some(*id) } else { None })
    }

    /// The transformations in order; `t:none` forgets those before it.
    pub(crate) fn transformations(&self) -> Vec<Transformation> {
        let mut out = Vec::new();
        for action in &self.actions {
            if let Action::TransformNone = action {
                out.clear()
            } else if let Action::Transform(transformation) = action {
                out.push(*transformation)
            }
        }
        out
    }
}

/// True if one of the ranges has the id.
pub(crate) fn in_ranges(ranges: &[IdRange], id: RuleId) -> bool {
    ranges.iter().any(|range| (range.first..=range.last).contains(&id.0))
}

/// Returns true if two targets are the same as far as `SecRuleUpdateTarget...` is concerned: keys compare in
/// any ASCII case.
pub(crate) fn same_target(a: &Target, b: &Target) -> bool {
    let text = |selector: &Option<Selector>| match selector {
        None => None,
        Some(Selector::Key(text)) => Some(text.to_ascii_lowercase()),
        Some(Selector::XPath(text)) => Some(text.to_ascii_lowercase()),
        Some(Selector::Regex(regex)) => Some([b"/", regex.as_slice(), b"/"].concat().to_ascii_lowercase()),
    };
    a.kind == b.kind && a.variable == b.variable && text(&a.selector) == text(&b.selector)
}
