//! The disruptive action of a rule, its metadata and what it logs.

use portcullis_engine::{AllowScope, Disruption, Metadata};
use portcullis_seclang::ast::{self, Action, Spanned};

use super::Lowering;
use crate::draft::Draft;

impl Lowering<'_> {
    #[expect(clippy::wildcard_enum_match_arm, reason = "the other actions are not disruptive")]
    pub(super) fn disruption(&mut self, draft: &Draft<'_>) -> Disruption {
        let (defaults, own, phase) = (draft.defaults, &*draft.links[0].actions, draft.phase);
        let status_of = |actions: &[Spanned<Action>]| {
            actions
                .iter()
                .rev()
                .find_map(|action| if let Action::Status(status) = action.node { Some(status) } else { None })
        };
        let chosen = disruptive_of(draft, self.plan.settings.modsecurity3).cloned();
        let mut status = status_of(own).or_else(|| status_of(defaults));
        let redirects: &[u16] = match self.plan.settings.modsecurity3 {
            true => {
                status = status.or_else(|| draft.links[1..].iter().find_map(|link| status_of(&link.actions)));
                &[301, 302, 303, 304, 305, 306, 307]
            }
            false => &[301, 302, 303, 307],
        };
        let Some(action) = chosen else { return Disruption::Pass };
        match &action.node {
            Action::Deny => Disruption::Deny { status: status.unwrap_or(403) },
            Action::Drop => Disruption::Drop,
            Action::Allow(scope) => Disruption::Allow(match scope {
                ast::AllowScope::Transaction => AllowScope::Transaction,
                ast::AllowScope::Phase => AllowScope::Phase,
                ast::AllowScope::Request => AllowScope::Request,
            }),
            Action::Redirect(location) => {
                let location = self.text_at(location, action.span);
                let status = status.filter(|status| redirects.contains(status)).unwrap_or(302);
                Disruption::Redirect { status, location }
            }
            Action::Proxy(url) => self.proxy(url, action.span, phase),
            _ => Disruption::Pass,
        }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "the other actions are no metadata")]
    pub(super) fn metadata(&mut self, draft: &Draft<'_>) -> Metadata {
        let mut metadata = Metadata { place: self.place(draft.span), ..Metadata::default() };
        for action in draft.defaults.iter().chain(&*draft.links[0].actions) {
            match &action.node {
                Action::Msg(text) => metadata.msg = Some(self.log_text(text, action.span)),
                Action::LogData(text) => metadata.log_data = Some(self.log_text(text, action.span)),
                Action::Tag(text) => {
                    let tag = self.log_text(text, action.span).template;
                    metadata.tags.push(tag);
                }
                Action::Severity(severity) => metadata.severity = Some(*severity),
                Action::Ver(text) => metadata.ver = Some(text.to_string().into()),
                Action::Rev(text) => metadata.rev = Some(text.to_string().into()),
                Action::Maturity(number) => metadata.maturity = Some(*number),
                Action::Accuracy(number) => metadata.accuracy = Some(*number),
                _ => {}
            }
        }
        metadata
    }
}

/// The disruptive action of a rule. In a rule, `block` stands for the default and is replaced by any other
/// one, in either order; in a later `SecRuleUpdateActionById` it goes back to the default. A rule without any
/// has the default's, but for libmodsecurity none.
fn disruptive_of<'d>(draft: &'d Draft<'_>, modsecurity3: bool) -> Option<&'d Spanned<Action>> {
    let last = |actions: &'d [Spanned<Action>]| {
        actions.iter().rev().find(|action| is_disruptive(&action.node) && action.node != Action::Block)
    };
    let default = last(draft.defaults);
    let own = &*draft.links[0].actions;
    let ends = draft.update_starts.iter().skip(1).copied().chain([own.len()]);
    let first = draft.update_starts.first().copied().unwrap_or(own.len());
    let inherits = !modsecurity3 || own[..first].iter().any(|action| action.node == Action::Block);
    let mut chosen = last(&own[..first]).or(default.filter(|_| inherits));
    for (start, end) in draft.update_starts.iter().zip(ends) {
        let update = &own[*start..end];
        let block = update.iter().rposition(|action| action.node == Action::Block);
        let back = if block.is_some() { default } else { chosen };
        chosen = last(&update[block.map_or(0, |at| at + 1)..]).or(back);
    }
    chosen
}

fn is_disruptive(action: &Action) -> bool {
    matches!(
        action,
        Action::Block
            | Action::Deny
            | Action::Drop
            | Action::Pass
            | Action::Allow(_)
            | Action::Redirect(_)
            | Action::Proxy(_)
    )
}

/// `log` and `auditlog` after all words for and against them; without any, both. `nolog` takes both away, and
/// `log` gives only itself back (`msre_action_log_init`).
#[expect(clippy::wildcard_enum_match_arm, reason = "the other actions log nothing")]
pub(super) fn logging(defaults: &[Spanned<Action>], own: &[Spanned<Action>]) -> (bool, bool) {
    let (mut log, mut audit) = (true, true);
    for action in defaults.iter().chain(own) {
        match action.node {
            Action::Log => log = true,
            Action::NoLog => (log, audit) = (false, false),
            Action::AuditLog => audit = true,
            Action::NoAuditLog => audit = false,
            _ => {}
        }
    }
    (log, audit)
}
