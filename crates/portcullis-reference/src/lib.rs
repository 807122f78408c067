//! The plainest evaluator of the SecLang tree: a test oracle, never shipped.
//!
//! ```text
//! Document ──Reference::new──> links with their actions written out ──┐
//!                                                                     ├──run──> Outcome: matches, TX, interruption
//! Request (plain bytes, all of it at once) ──> lists of values ───────┘
//! ```
//!
//! It loops rules × targets × transformations and keeps every collection as a list. Nothing is cached,
//! ordered, skipped or decided ahead of time, so that it is easy to see that it does what the rules say; the
//! engine, which does all of that, is compared with it. It shares no code with the engine or the compiler:
//! only the tree, the transformations, libinjection, regular expressions and the parsers of bodies, query
//! strings and cookies.
//!
//! The meaning is ModSecurity 2.9.7 on Apache; each test in `tests/` names the function of its source that it
//! follows. Known differences, all on purpose:
//! - `skipAfter` with a rule id continues after the whole chain of that rule, not in the middle of it.
//! - `pause` delays what its rule does and lets the rules after it run. The original lets the transaction
//!   pass if `pause` comes last, does not wait if another action comes last, and crashes if there is no
//!   other.
//! - `ctl:ruleRemoveTarget...` takes `/regex/` selectors, as version 3 does.
//! - An exclusion of `XML` with a path takes away the nodes that the path selects; version 2 compares names.
//! - A counter that one transaction sets and then adds to is stored as it was left; ModSecurity stores what
//!   was there before, plus the addition.
//! - Bodies are whole: what happens above a body limit is not a matter of rules.
//!
//! Rules that it cannot evaluate are an error of [`Reference::new`], never left out.
//!
//! ```
//! use portcullis_reference::{Reference, Request};
//! use portcullis_seclang::{MemoryFiles, Root, parse};
//!
//! let text = br#"
//! SecRuleEngine On
//! SecRule ARGS "@rx (?i)<script" "id:1,phase:1,t:urlDecodeUni,deny,setvar:tx.score=+5"
//! "#;
//! let files = MemoryFiles::default();
//! let parsed = parse(&[Root::Text { name: "rules.conf".into(), text: text.to_vec() }], &files);
//! let reference = Reference::new(&parsed.document, &parsed.sources, &files).unwrap();
//!
//! let outcome = reference.run(&Request::get("/?q=%253Cscript"));
//! assert_eq!(outcome.matches[0].variable, "ARGS:q");
//! assert_eq!(outcome.matches[0].value, "<script");
//! assert_eq!(outcome.tx[&b"score"[..]], "5");
//! assert_eq!(outcome.interruption.unwrap().status, 403);
//! ```

#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod actions;
pub mod anything;
mod body;
mod collections;
mod load;
mod numbers;
mod operator;
mod outside;
mod request;
mod rsub;
mod rules;
mod run;
mod text;
mod transaction;
mod variables;
mod xpath;

use std::collections::BTreeMap;

use bstr::BString;
use portcullis_seclang::ast::Document;
use portcullis_seclang::{Files, SourceSpan, Sources};
use portcullis_types::{Phase, RuleId};

pub use collections::Database;
pub use request::{Request, Response, World};

/// Rules, ready to be run.
pub struct Reference {
    settings: load::Settings,
    items: Vec<rules::Item>,
}

impl Reference {
    /// Takes a document; `files` are for the data files of operators, by paths relative to the rule's own
    /// file.
    pub fn new(
        document: &Document,
        sources: &Sources,
        files: &dyn Files,
    ) -> Result<Reference, Vec<Unsupported>> {
        load::load(document, sources, files)
    }

    /// Runs all phases over a request, as if it were the first one.
    pub fn run(&self, request: &Request) -> Outcome {
        self.run_after(request, &mut Database::default())
    }

    /// Runs all phases over a request that comes after those that `database` has seen.
    pub fn run_after(&self, request: &Request, database: &mut Database) -> Outcome {
        run::run(self, request, database)
    }
}

/// Something that this evaluator does not do, or that makes no sense.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsupported {
    /// Its place.
    pub span: SourceSpan,
    /// Its description.
    pub what: String,
}

/// The outcome of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Every value that made a link match, in order.
    pub matches: Vec<Match>,
    /// The `TX` collection at the end; keys in lower case.
    pub tx: BTreeMap<BString, BString>,
    /// The first interruption; rules of phase 5 ran after it.
    pub interruption: Option<Interruption>,
    /// The request body after `@rsub`, where a rule asked for that.
    pub request_body: Option<BString>,
    /// The response body after `@rsub`, where a rule asked for that.
    pub response_body: Option<BString>,
    /// `prepend` and `append`.
    pub around_response: (BString, BString),
    /// Milliseconds that `pause` asked for, all rules together.
    pub pause_ms: i64,
}

impl Outcome {
    /// Ids of the rules that matched as a whole, in order, each as often as it matched.
    pub fn rule_ids(&self) -> Vec<RuleId> {
        self.matches.iter().filter(|m| m.complete).map(|m| m.rule).collect()
    }
}

/// A value that the operator of a link matched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Match {
    /// Id of the rule; of the first link in a chain.
    pub rule: RuleId,
    /// Place in the chain, from 0.
    pub link: usize,
    /// The phase.
    pub phase: Phase,
    /// The variable as `ARGS:name`; `&ARGS:name` if it was counted. Keys are escaped as in logs.
    pub variable: BString,
    /// The value after the transformations.
    pub value: BString,
    /// True at the last link: the rule as a whole matched, and its disruptive action was done.
    pub complete: bool,
    /// True if the rule writes its matches to the error log.
    pub logged: bool,
}

/// An end of the transaction that a rule asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interruption {
    /// The phase.
    pub phase: Phase,
    /// The status of the answer; 403 for `drop`.
    pub status: u16,
    /// The rule; of a chain, the first link.
    pub rule: RuleId,
    /// For `redirect` and `proxy`: where to.
    pub location: Option<BString>,
    /// True for `drop`.
    pub drop: bool,
    /// True for `proxy`: the request is forwarded to another server.
    pub proxy: bool,
}
