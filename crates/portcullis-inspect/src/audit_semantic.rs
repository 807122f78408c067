//! Messages of the semantic detector in audit records, in the form of matches of a built-in rule.

use portcullis_audit::Message;
use portcullis_event::{FindingOutcome, SEMANTIC_ID, Verdict, modsecurity_message, semantic_match};
use portcullis_types::Phase;

use crate::inspection::Inspection;

impl Inspection {
    /// A message for each score that passes its threshold and counts. They name places and kinds, and no
    /// bytes of the request.
    pub(crate) fn semantic_messages(&self, verdict: &Verdict) -> Vec<Message> {
        let Some(semantic) = &self.semantic else { return Vec::new() };
        let phase = semantic.decision().map(|(_, phase)| phase);
        let values = semantic.explain().into_iter().filter(|value| value.score.outcome.passes());
        let message = |value: crate::ScoredValue| {
            let found = semantic_match(&value.score, phase, value.findings.iter());
            let decided = value.score.outcome == FindingOutcome::Blocked;
            Message { text: modsecurity_message(Some(verdict), decided, &found), found }
        };
        values.map(message).collect()
    }

    /// The message that stands for the findings which blocked, the worst of them, and the phase, if they did.
    pub(crate) fn semantic_interruption<'m>(
        &self,
        messages: &'m [Message],
    ) -> Option<(Option<&'m Message>, Phase)> {
        let semantic = self.semantic.as_ref().filter(|semantic| semantic.has_blocked())?;
        let (_, phase) = semantic.decision()?;
        Some((messages.iter().find(|message| message.found.rule.rule_id == SEMANTIC_ID), phase))
    }
}
