//! The plan (compiled rules) and its executor.
//!
//! ```text
//!   portcullis-compile --> Plan (immutable, shared) --+
//!                                                     v
//!   request, response --> Transaction: values -> forms -> rules in order -> matches, interruption
//! ```
//!
//! * [`Plan`]: rules with everything resolved that can be resolved at load time. It never sees SecLang text.
//! * [`Transaction`]: one request with its response. Phases go in ([`Transaction::request_head`] and its
//!   siblings), a [`Progress`] comes out: an [`Interruption`], nothing, or questions;
//!   [`Transaction::finish`] runs the logging phase.
//! * [`Question`]: what an operator wants to know of the outside. The phase stops with [`Progress::Ask`] and
//!   resumes once the caller has answered.
//! * [`Match`]: one rule that matched one value, with what is needed to explain it.
//! * [`Strategies`]: cheaper ways to run rules than looking at every value for each. They change no verdict.
//!
//! Inside, a transaction is a *message* (values, bodies, connection), *vars* (what rules set) and a *journal*
//! (what they did). An *execution* borrows these and walks the steps of a phase. Before it does, the values
//! that are new are looked at, and only rules that could match one of them are left ([`Candidates`]). Each
//! value of the message is stored once, with its name; each transformation chain is applied to it at most
//! once and remembered as a *form*; a transformation that cannot act costs a byte-class test. The engine
//! reads no clock, opens no socket and allocates from buffers that the caller may reuse ([`Scratch`]).
//!
//! Rule semantics are those of ModSecurity 2.9 on Apache; `docs/` lists where engines disagree.
//!
//! # Example
//!
//! Two rules, one of which denies a request:
//!
//! ```
//! use std::sync::Arc;
//!
//! use portcullis_engine::{
//!     Connection, Interruption, NoCollections, Progress, RequestLine, Scratch, Transaction,
//! };
//! use portcullis_seclang::{MemoryFiles, Root, parse};
//!
//! let rules = r#"SecRuleEngine On
//! SecRule ARGS "@rx (?i)union\s+select" "id:1,phase:1,pass,log,t:urlDecodeUni,setvar:tx.score=+5"
//! SecRule TX:score "@ge 5" "id:2,phase:1,deny,status:403""#;
//! let files = MemoryFiles::default();
//! let parsed = parse(&[Root::Text { name: "example.conf".into(), text: rules.into() }], &files);
//! let compiled = portcullis_compile::compile(&parsed.document, &parsed.sources, &files);
//! let plan = Arc::new(compiled.plan.expect("rules without a mistake"));
//!
//! let connection = Connection {
//!     client: "192.0.2.7:4711".parse()?,
//!     server: "192.0.2.1:80".parse()?,
//!     unique_id: "example".to_owned(),
//!     epoch_seconds: 1_000_000_000,
//!     utc_offset_seconds: 0,
//! };
//! let mut transaction = Transaction::new(plan, Arc::new(NoCollections), Scratch::default(), &connection);
//! let line = RequestLine {
//!     line: b"GET /?q=1+UNION+SELECT+2 HTTP/1.1",
//!     method: b"GET",
//!     target: b"/?q=1+UNION+SELECT+2",
//!     protocol: b"HTTP/1.1",
//! };
//! let progress = transaction.request_head(line, [(&b"Host"[..], &b"example.com"[..])]);
//! assert_eq!(progress, Progress::Done(Some(Interruption::Deny { status: 403 })));
//! transaction.finish();
//! let rules: Vec<_> = transaction.matches().iter().map(|found| transaction.view(found).rule.id.0).collect();
//! assert_eq!(rules, [1, 2]);
//! # Ok::<(), std::net::AddrParseError>(())
//! ```

#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod actions;
mod arguments;
mod audit;
mod body;
mod candidates;
mod charges;
mod collect;
mod collections;
mod disrupt;
mod dump;
mod execution;
mod exempt;
mod expansion;
mod geo;
mod journal;
mod judge;
mod login;
mod message;
mod open;
mod operator;
mod patterns;
mod plan;
mod prepare;
mod processors;
mod questions;
mod rbl;
mod record;
mod rewrite;
mod rule_set;
mod scalars;
mod scanner;
mod settings;
mod strategy;
mod template;
mod trace;
mod transaction;
mod tx;
mod uploads;
mod vars;
mod work;
mod xml;

pub use arguments::BodyArguments;
pub use audit::{
    AuditAct, AuditEngine, AuditLogFormat, AuditLogType, AuditParts, AuditSettings, AuditState, Hidden,
    HiddenBytes, HiddenIn, ReachableParts, StatusSet,
};
pub use candidates::Candidates;
pub use charges::{Charge, RateLimit};
pub use collections::{
    Change, Collections, EXPIRE_PREFIX, IS_NEW, NoCollections, RecordId, Sum, Value, VariableChange,
    new_record,
};
pub use disrupt::{Diversion, Origin};
pub use exempt::Exempt;
pub use geo::GeoDb;
pub use judge::{Judge, TransactionView};
pub use operator::{Number, NumberKind, Operator, Pattern};
pub use plan::{
    Act, AllowScope, Copies, CtlTarget, Dead, DeadCause, Disruption, Exclusion, HeadParts, HeadReads,
    KeyFilter, Link, Metadata, Open, Outcome, Plan, Removed, Rule, RuleIndex, SetVar, SetVarOperation,
    SourcePlace, Step, Target, TargetList, Update, XmlPath,
};
pub use portcullis_prefilter::{Memo, Stages};
pub use portcullis_values::{ChainId, Chains, Class};
pub use questions::{Answer, Progress, Question, QuestionId};
pub use rbl::Rbl;
pub use record::{Match, MatchView, ScoreChange};
pub use rewrite::{Find, ResponseEdits, Substitution};
pub use rule_set::RuleSet;
pub use scanner::Scanner;
pub use settings::{BodyLimitAction, BodyProcessor, RuleEngine, Settings, XmlArgs};
pub use strategy::Strategies;
pub use template::{LogText, Part, Template};
pub use trace::{NotRun, Note, Trace};
pub use transaction::{BodyPlan, Connection, Interruption, RequestLine, Scratch, Transaction};
pub use tx::{
    LinkTests, TxBlocks, TxIndex, TxRules, TxSlot, addend, canonical_int, is_set_by_engine, to_int,
};
pub use uploads::{KeepFiles, KeptFile};
pub use xml::{Name as XmlName, NodeTest, Predicate, Step as XPathStep, XPath};
