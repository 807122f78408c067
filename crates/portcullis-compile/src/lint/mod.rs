//! Rules that are right as text and cannot do what they were written for.
//!
//! | file | what it looks for |
//! |---|---|
//! | `data.rs` | variables that have no value where a rule reads them |
//! | `paths.rs` | `REQUEST_URI` compared with a path, where the query is part of it |
//! | `json.rs` | arguments of JSON bodies under the name that ModSecurity 3 gives them |
//! | `work.rs` | values that rules copy so often that the allowance of work may not suffice |
//! | `exclusions.rs` | removals and exclusions of what is not there, and of the rule that makes the decision |
//!
//! Nothing here changes the plan.

mod data;
mod exclusions;
mod json;
mod paths;
mod work;

use portcullis_engine::{Plan, Settings};
use portcullis_seclang::ast::{Action, Document, Spanned};
use portcullis_seclang::{Diagnostic, SourceSpan, Sources};
use portcullis_types::Phase;

use crate::draft::{Draft, DraftLink, Entry};

pub(crate) use exclusions::{described, missing_ids, useless_exclusions};

/// Everything that rules are judged by.
pub(crate) struct Rules<'r, 'a> {
    /// The rules that run, each with its place in the load order.
    running: Vec<(usize, &'r Draft<'a>)>,
    /// The rules that were removed.
    removed: Vec<&'r Draft<'a>>,
    document: &'r Document,
    settings: &'r Settings,
    sources: &'r Sources,
}

/// The place of a rule in the order in which rules run.
type Position = (Phase, usize);

/// Looks at all rules of a document; `plan` is what they were compiled to.
pub(crate) fn lint(
    entries: &[Entry<'_>],
    document: &Document,
    plan: &Plan,
    sources: &Sources,
) -> Vec<Diagnostic> {
    let drafts = entries.iter().enumerate().filter_map(|(at, entry)| match entry {
        Entry::Rule(draft) => Some((at, draft)),
        Entry::Marker(_) => None,
    });
    let (running, removed): (Vec<_>, Vec<_>) = drafts.partition(|(_, draft)| draft.removed.is_none());
    let removed = removed.into_iter().map(|(_, draft)| draft).collect();
    let rules = Rules { running, removed, document, settings: &plan.settings, sources };
    let mut found = Vec::new();
    data::look(&rules, &mut found);
    paths::look(&rules, &mut found);
    json::look(&rules, &mut found);
    work::look(&rules, plan, &mut found);
    exclusions::look(&rules, &mut found);
    found
}

impl<'a> Rules<'_, 'a> {
    /// Each link of each rule that runs, with the place of its rule.
    fn links(&self) -> impl Iterator<Item = (Position, &Draft<'a>, &DraftLink<'a>)> {
        self.running.iter().flat_map(|&(at, draft)| {
            let position = (draft.phase, at);
            draft.links.iter().map(move |link| (position, draft, link))
        })
    }
}

/// The actions of a link, the default ones first.
fn actions<'d>(draft: &'d Draft<'_>, link: &'d DraftLink<'_>) -> impl Iterator<Item = &'d Spanned<Action>> {
    draft.defaults.iter().chain(link.actions.iter())
}

/// Diagnostics of which one stands for all that have the same reason.
#[derive(Default)]
struct Grouped(Vec<(Diagnostic, usize)>);

impl Grouped {
    /// Adds one; a second of the same message is only counted.
    fn add(&mut self, diagnostic: Diagnostic) {
        let same = |(known, _): &&mut (Diagnostic, usize)| known.message == diagnostic.message;
        match self.0.iter_mut().find(same) {
            Some((_, more)) => *more += 1,
            None => self.0.push((diagnostic, 0)),
        }
    }

    fn into_diagnostics(self) -> impl Iterator<Item = Diagnostic> {
        self.0.into_iter().map(|(mut diagnostic, more)| {
            match more {
                0 => {}
                1 => diagnostic.message += " (and 1 more place)",
                more => diagnostic.message += &format!(" (and {more} more places)"),
            }
            diagnostic
        })
    }
}

/// A warning with its hint.
fn warning(span: SourceSpan, message: String, hint: String) -> Diagnostic {
    Diagnostic::warning(span, message).with_hint(hint)
}
