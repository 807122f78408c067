//! Rules that make so many values of one that benign messages meet the allowance of work.

use portcullis_engine::Plan;
use portcullis_seclang::Diagnostic;

use super::{Rules, warning};

/// Looks at copies up to which the allowance was measured to suffice: those of the CRS with its plugin that
/// makes 42 copies of an argument, and a reserve (docs/limits.md).
const MEASURED: usize = 10_000;

pub(super) fn look(rules: &Rules<'_, '_>, plan: &Plan, found: &mut Vec<Diagnostic>) {
    let Some(copies) = plan.copies().filter(|copies| copies.looks() > MEASURED) else { return };
    let Some((_, draft)) = rules.running.get(copies.first.0 as usize) else { return };
    let message = format!(
        "{} rules copy values into TX and {} look at the copies: a value may be looked at {} times, and benign requests may \
         take more work than is allowed (failure.pattern_limit)",
        copies.copying,
        copies.looking,
        copies.looks()
    );
    let hint = "copy fewer values, or let fewer rules look at the copies; failure.pattern_limit = \"open\" lets such requests \
                pass with what was found by then";
    found.push(warning(draft.span, message, hint.to_owned()));
}
