//! Answers beside the description.

use portcullis_http::body::content_type::{self, Processor};
use portcullis_types::Place;

use super::body::{NOT_WHOLE, Sent};
use super::deviation::{Deviation, Kind, json_name, of_answer, shown};
use super::plan::{Answer, Status};
use super::{Api, OperationId};
use crate::json;
use crate::limits::DEVIATIONS_MAX;
use crate::schema::Violation;

/// The declared answer that a response is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnswerId {
    operation: usize,
    answer: usize,
    media: usize,
}

impl Api {
    /// Compares status and media type of an answer to a request for `operation`. Returns what its body is to
    /// be compared with, if it has a schema. Without `has_body` there is none, as in answers to `HEAD`.
    pub fn answer<'r>(
        &self,
        operation: OperationId,
        status: u16,
        has_body: bool,
        content_types: impl Iterator<Item = &'r [u8]>,
        found: &mut Vec<Deviation>,
    ) -> Option<AnswerId> {
        let number = operation.0;
        let operation = self.operations.get(number)?;
        // Parts of an answer, and one that has not changed, are the client's wish.
        if operation.answers.is_empty() || matches!(status, 100..=199 | 206 | 304) {
            return None;
        }
        let fits = |answer: &Answer| match answer.status {
            Status::One(code) => code == status,
            Status::Class(class) => class == status / 100,
            Status::Any => true,
        };
        let Some((at, answer)) = operation.answers.iter().enumerate().find(|(_, answer)| fits(answer)) else {
            let rule = format!("the status {status} is not declared");
            let pointer = format!("{}/responses", operation.pointer);
            found.push(of_answer(Kind::Status, Place::ResponseHeader, "", rule, pointer));
            return None;
        };
        if !has_body || answer.body.media.is_empty() {
            return None;
        }
        let types: Vec<&[u8]> = content_types.take(2).collect();
        let media = match types.as_slice() {
            [one] => answer.body.media_at(&content_type::media_type(one).to_ascii_lowercase()),
            _ => None,
        };
        let Some(media) = media else {
            let rule = format!("must be {}", answer.body.types());
            let pointer = format!("{}/content", answer.body.pointer);
            found.push(of_answer(Kind::Response, Place::ResponseHeader, "content-type", rule, pointer));
            return None;
        };
        let media_type = types.first().copied().unwrap_or_default();
        let is_compared = answer.body.media[media].schema.is_some()
            && Processor::by_media_type(media_type) == Some(Processor::Json);
        is_compared.then_some(AnswerId { operation: number, answer: at, media })
    }

    /// Compares the body of an answer.
    pub fn answer_body(&self, answer: AnswerId, body: Sent<'_>, found: &mut Vec<Deviation>) {
        let media = self.operations.get(answer.operation).and_then(|operation| {
            let declared = operation.answers.get(answer.answer)?;
            declared.body.media.get(answer.media)
        });
        let Some(schema) = media.and_then(|media| media.schema.as_ref()) else { return };
        let of_body =
            |kind, rule: String| of_answer(kind, Place::ResponseBody, "", rule, schema.pointer.clone());
        let Sent::Whole(body) = body else {
            return found.push(of_body(Kind::Unchecked, NOT_WHOLE.to_owned()));
        };
        let value = match json::read(body) {
            Ok(value) => value,
            Err(rule) => return found.push(of_body(Kind::Response, rule)),
        };
        for violation in schema.violations(&value, DEVIATIONS_MAX.saturating_sub(found.len())) {
            let Violation { path, rule, pointer, is_hidden } = violation;
            let shown = shown(&path);
            let shown = if shown.is_empty() { "the body".to_owned() } else { format!("`{shown}`") };
            let kind = if is_hidden { Kind::WriteOnly } else { Kind::Response };
            let (name, rule) = (json_name(&path), format!("{shown} {rule}"));
            found.push(of_answer(kind, Place::ResponseBody, &name, rule, pointer));
        }
    }
}
