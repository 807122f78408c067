//! Coverage of an exchange: how much of it was inspected, and the reason why the rest was not.

use portcullis_engine::{BodyPlan, RuleEngine};
use portcullis_event::{Coverage, NotInspected};

use crate::coded::CodedBody;
use crate::exchange::Outcome;
use crate::inspection::Inspection;
use crate::response::Response;

impl Inspection {
    pub(crate) fn coverage(&self, outcome: &Outcome) -> Coverage {
        let mut coverage = Coverage { bytes_inspected: self.head_bytes, ..Coverage::default() };
        let mut body = |seen: u64, total: u64, coded: &CodedBody, reason: NotInspected| {
            let hidden = coded.error().is_some();
            let (inspected, reason) = if hidden { (0, NotInspected::ContentCoding) } else { (seen, reason) };
            coverage.bytes_inspected += inspected;
            coverage.not_inspected(reason, total.saturating_sub(inspected));
        };
        let reason = self.request_reason();
        body(self.request_body_seen, outcome.request_body_bytes, &self.request_coded, reason);
        let Response { seen, coded, skip, .. } = &self.response;
        body(*seen, outcome.response_body_bytes, coded, *skip);
        coverage.not_inspected(NotInspected::Upgraded, outcome.upgraded_bytes);
        if let Some(semantic) = &self.semantic {
            let left_out = [
                (NotInspected::FileRest, semantic.bytes_left_out()),
                (NotInspected::FileTexts, semantic.bytes_of_files()),
                (NotInspected::ContentCoding, semantic.bytes_of_codings()),
                (NotInspected::WorkLimit, semantic.bytes_cut()),
            ];
            for (reason, bytes) in left_out {
                // Values overlap: what is left out of two of them is counted once.
                let bytes = bytes.min(coverage.bytes_inspected);
                coverage.bytes_inspected -= bytes;
                coverage.not_inspected(reason, bytes);
            }
        }
        coverage
    }

    fn request_reason(&self) -> NotInspected {
        if self.transaction.rule_engine() == RuleEngine::Off {
            NotInspected::EngineOff
        } else if self.transaction.request_body_plan() == BodyPlan::Skip {
            NotInspected::BodyAccessOff
        } else if self.interruption.is_some() || self.refusal.is_some() {
            NotInspected::AfterVerdict
        } else if self.request_body_forgotten {
            NotInspected::Released
        } else {
            NotInspected::OverLimit
        }
    }
}
