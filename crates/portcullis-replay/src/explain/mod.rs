//! Why a message is blocked or let through: everything that rules and detectors found in it, and what did
//! not run.

mod inspect;
mod not_run;
mod print;
mod semantic;

use serde::Serialize;

pub use inspect::{Exchange, explain};

/// The explanation of a request.
#[derive(Debug, Serialize)]
pub struct Explanation {
    /// The request line as received.
    request: String,
    /// The status line of the response, if one was given and the request let it come to that.
    #[serde(skip_serializing_if = "Option::is_none")]
    response: Option<String>,
    /// The detection mode.
    mode: portcullis_event::DetectionMode,
    /// Body bytes shown to it.
    body_bytes_inspected: u64,
    /// Body bytes that it did not see.
    body_bytes_not_inspected: u64,
    /// Bytes of the response's body shown to it.
    response_body_bytes_inspected: u64,
    /// Bytes of the response's body that it did not see.
    response_body_bytes_not_inspected: u64,
    /// Remarks on the file and on the body.
    notes: Vec<String>,
    /// The proxy's own answer: the request is not acceptable HTTP, or its body is over a limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    refusal: Option<Refused>,
    /// Matches in order.
    matches: Vec<Match>,
    /// Matches left out because they only keep the rule set's own books; `--all` shows them.
    matches_not_shown: usize,
    /// The result of the semantic detector, where it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    semantic: Option<semantic::Semantic>,
    /// Rules that did not run in the phases shown, by reason.
    not_run: Vec<not_run::Group>,
    /// Values that rules were not shown.
    left_out: Vec<not_run::LeftOut>,
    /// The rule that `--rule` names.
    #[serde(skip_serializing_if = "Option::is_none")]
    watched: Option<not_run::Watched>,
    /// Anomaly scores at the end.
    scores: portcullis_event::Scores,
    /// The engine mode: whether verdicts are enforced.
    engine: portcullis_event::EngineMode,
    /// The decision.
    verdict: portcullis_event::Verdict,
}

/// A refusal that no rule asked for.
#[derive(Debug, Serialize)]
struct Refused {
    name: &'static str,
    status: u16,
    explanation: &'static str,
}

/// One match of a rule.
#[derive(Debug, Serialize)]
struct Match {
    rule_id: u32,
    phase: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    severity: Option<&'static str>,
    message: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    data: String,
    /// The target that matched: `ARGS:q`.
    target: String,
    /// The value that the operator saw.
    value: String,
    /// The value as sent, where it differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    value_as_sent: Option<String>,
    /// Matched bytes of the value: first, one past the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    span: Option<[u32; 2]>,
    transformations: Vec<&'static str>,
    operator: String,
    /// The points added to each score.
    points: Vec<Points>,
    tags: Vec<String>,
    file: String,
    line: u32,
    /// The rule asks for its matches to be logged.
    logged: bool,
    /// It interrupted the request, or would have.
    disruptive: bool,
}

impl Explanation {
    /// Leaves out the matches of rules that only keep the rule set's own books.
    pub fn without_bookkeeping(mut self) -> Explanation {
        let before = self.matches.len();
        self.matches.retain(Match::is_telling);
        self.matches_not_shown = before - self.matches.len();
        self
    }

    /// The whole report, for a person.
    pub fn to_text(&self) -> String {
        print::print(self)
    }
}

impl Match {
    /// False for what rule sets do to keep their books: rules without a message that neither log nor block.
    fn is_telling(&self) -> bool {
        self.logged || self.disruptive || (!self.points.is_empty() && !self.message.is_empty())
    }
}

#[derive(Debug, Serialize)]
struct Points {
    score: String,
    added: i64,
}
