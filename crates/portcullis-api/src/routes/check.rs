//! `POST /check`: all that is wrong with a text for the document.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use portcullis_revisions::DOCUMENT_BYTES_MAX;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::changes;
use crate::context::Context;
use crate::extract::DocumentBody;
use crate::problem::{Diagnostic, Kind, Problem};
use crate::supplies::CheckedDocument;

/// A text to check.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CheckOrder {
    /// The whole text, in the format of the document.
    #[schema(max_length = 1_048_576)]
    text: String,
}

/// All that is wrong with a text.
#[derive(Serialize, ToSchema)]
pub(crate) struct CheckAnswer {
    /// The program would serve by it.
    valid: bool,
    /// The mistakes of the document and of the files that it names.
    mistakes: Vec<Diagnostic>,
    /// Settings that the program would take and that are hardly meant.
    warnings: Vec<Diagnostic>,
    /// The rules of each policy, in the order of the document.
    rules: Vec<RuleReport>,
}

/// The rules of a policy.
#[derive(Serialize, ToSchema)]
pub(crate) struct RuleReport {
    /// Rules that would be loaded; 0 if they have a mistake.
    rules: usize,
    /// Mistakes, each a text of several lines with its place.
    errors: Vec<String>,
    /// Directives that are hardly meant, likewise.
    warnings: Vec<String>,
}

/// Checks a text for the document as a start would: its settings, the files that it names, its rules. Nothing
/// is changed. Rules are compiled, which takes seconds for many policies.
#[utoipa::path(post, path = "/check", tag = "configuration", operation_id = "check_config",
    request_body = CheckOrder,
    responses((status = 200, body = CheckAnswer, description = "What is wrong with it, if anything is."),
        (status = 409, body = Problem, content_type = "application/problem+json",
            description = "The settings come from the command line."),
        (status = 413, body = Problem, content_type = "application/problem+json",
            description = "The text is too long.")))]
pub(crate) async fn check(
    State(context): State<Arc<Context>>,
    DocumentBody(order): DocumentBody<CheckOrder>,
) -> Result<Json<CheckAnswer>, Problem> {
    if order.text.len() > DOCUMENT_BYTES_MAX {
        let detail = format!("a document has at most {DOCUMENT_BYTES_MAX} bytes");
        return Err(Problem::with(Kind::BodyTooLarge, detail));
    }
    let revisions = changes::revisions(&context)?;
    let (format, file) = (revisions.document().format(), revisions.document().name());
    let checked = context.trial(move |trials| trials.check(order.text, format, file)).await?;
    let CheckedDocument { mistakes, warnings, rules } = checked;
    let valid = mistakes.is_empty() && rules.iter().all(|set| set.errors.is_empty());
    let report = |set: crate::supplies::CheckedRules| RuleReport {
        rules: set.rules,
        errors: set.errors,
        warnings: set.warnings,
    };
    Ok(Json(CheckAnswer {
        valid,
        mistakes: mistakes.iter().map(Diagnostic::from).collect(),
        warnings: warnings.iter().map(Diagnostic::from).collect(),
        rules: rules.into_iter().map(report).collect(),
    }))
}
