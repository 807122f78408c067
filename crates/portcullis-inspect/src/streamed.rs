//! Uploads that are forwarded while they are inspected: which bodies may be one, and how they are read where
//! only rules inspect.

use portcullis_engine::{BodyLimitAction, BodyPlan, BodyProcessor, Interruption, Progress};
use portcullis_http::body::{Arg, BodyErrorKind, BodyParser, BodySink, Limits, MultipartError, Options};
use portcullis_semantic::{Unreadable, Upload};

use crate::exchange::Step;
use crate::inspection::Inspection;

/// Uploads may be so many times as long as what is held of a body.
const UPLOAD_FACTOR: u64 = 10;

/// The upload of an inspection.
#[derive(Debug, Default)]
pub(crate) struct Streamed {
    /// The body may be one, by its type.
    pub(crate) is_of_type: bool,
    /// Bytes of it that phase 2 saw.
    held_bytes: u64,
    /// The form that it is, where only rules inspect.
    form: Option<Box<Form>>,
}

impl Streamed {
    /// For a request with this `Content-Type`.
    pub(crate) fn of_type(content_type: &[u8]) -> Streamed {
        Streamed { is_of_type: Upload::is_of_type(content_type), ..Streamed::default() }
    }
}

/// A form behind the part that rules saw. The rest of the file in which that part ended may follow; rules
/// would have to see the fields and files that begin later.
#[derive(Debug)]
struct Form {
    parser: BodyParser,
    parts: Parts,
}

/// True if a part has begun or ended since it was last reset.
#[derive(Debug, Default)]
struct Parts {
    any: bool,
}

impl BodySink for Parts {
    fn part(&mut self, _name: &[u8], _filename: Option<&[u8]>) {
        self.any = true;
    }

    fn arg(&mut self, _arg: Arg<'_>) {
        self.any = true;
    }
}

impl Form {
    /// For a form that begins so.
    fn new(content_type: &[u8], held: &[u8]) -> Form {
        let limits = Limits {
            arguments_max: usize::MAX,
            multipart_parts_max: usize::MAX,
            multipart_files_max: usize::MAX,
            no_files_bytes_max: held.len() as u64,
            ..Limits::default()
        };
        let options = Options { limits, ..Options::default() };
        let mut parser = BodyParser::new(BodyProcessor::Multipart, content_type, &options);
        parser.feed(held, &mut Parts::default());
        Form { parser, parts: Parts::default() }
    }

    /// Reads the next piece; true if a part begins or a field ends in it.
    fn feed(&mut self, piece: &[u8]) -> bool {
        self.parser.feed(piece, &mut self.parts);
        self.parts.any
    }

    fn finish(mut self) -> Result<(), Unreadable> {
        let report = self.parser.finish(&mut self.parts);
        match report.error {
            _ if self.parts.any => Err(Unreadable::FieldsTooLong),
            Some(error) => {
                Err(if let BodyErrorKind::Multipart(MultipartError::NoFilesLimit(_)) = error.kind {
                    Unreadable::FieldsTooLong
                } else {
                    Unreadable::Malformed
                })
            }
            None => Ok(()),
        }
    }
}

impl Inspection {
    /// Returns the size limit of a streamed upload, if the request's body may be one: its type is that of a
    /// file or of a form with files, no rule has a parser take it apart, and neither rules nor settings
    /// refuse bodies longer than what is held.
    pub fn upload_limit(&self) -> Option<u64> {
        let BodyPlan::Hold { limit_bytes, over_limit } = self.request_body_plan() else { return None };
        let is_file =
            matches!(self.transaction.request_body_processor(), None | Some(BodyProcessor::Multipart));
        // Forms in a frame are read as sent, too, where that is all of them.
        let is_readable = self.request_coded.streams()
            && (!self.request_coded.is_framed() || self.transaction.request_body_processor().is_none());
        if !self.streamed.is_of_type || !is_file || !is_readable {
            return None;
        }
        let limit = match self.inspector.upload_limit {
            Some(limit) => limit,
            None if self.refuses_longer_bodies() => return None,
            None => limit_bytes.saturating_mul(UPLOAD_FACTOR),
        };
        // What passes in any case needs no limit of its own, unless the semantic detector looks at it.
        let is_limited = over_limit == BodyLimitAction::Reject || self.semantic.is_some();
        (limit > limit_bytes && is_limited).then_some(limit)
    }

    /// `SecRequestBodyLimitAction Reject` is said, not just the default, and in force.
    fn refuses_longer_bodies(&self) -> bool {
        self.is_blocking()
            && self.inspector.plan.settings.request_body_limit_action == Some(BodyLimitAction::Reject)
    }

    /// Declares the body shown so far, which is all that is held, the beginning of a streamed upload: phase 2
    /// is to run over it, then the rest is shown. Returns false if nothing looks at the content of the rest.
    pub fn begin_upload(&mut self, held: &[u8]) -> bool {
        let BodyPlan::Hold { limit_bytes, .. } = self.request_body_plan() else { return false };
        self.streamed.held_bytes = self.request_body_seen;
        match &mut self.semantic {
            Some(semantic) => {
                // The held part may be shorter than the limit where there is no memory for more.
                let fields_max = limit_bytes.min(held.len() as u64);
                semantic.begin_upload(self.transaction.shown_request_body(), fields_max);
            }
            None if self.transaction.request_body_processor().is_some() => {
                let content_type = self.transaction.request_content_type();
                self.streamed.form = Some(Box::new(Form::new(content_type, held)));
            }
            None => {}
        }
        if let Some(shown) = &mut self.shown {
            shown.more();
        }
        self.semantic.is_some()
    }

    /// A piece of an upload behind phase 2. It may be forwarded if nothing interrupts.
    pub fn upload(&mut self, piece: &[u8]) -> Step {
        let Inspection { request_coded, kept_body, semantic, streamed, .. } = self;
        let mut is_new_part = false;
        request_coded.feed(piece, u64::MAX, &mut |data| {
            kept_body.take(data);
            if let Some(semantic) = semantic {
                semantic.upload(data);
            }
            is_new_part |= streamed.form.as_mut().is_some_and(|form| form.feed(data));
        });
        if self.semantic.is_some() {
            self.request_body_seen += piece.len() as u64;
        }
        match self.step(Progress::Done(None)) {
            Step::Continue if self.request_coded.error().is_some() => {
                self.refuse_upload(Unreadable::Malformed)
            }
            Step::Continue if is_new_part => self.refuse_upload(Unreadable::FieldsTooLong),
            step @ (Step::Continue | Step::Ask | Step::Interrupt(_)) => step,
        }
    }

    /// The upload has been shown to its end.
    pub fn end_upload(&mut self) -> Step {
        let Inspection { request_coded, semantic, .. } = self;
        request_coded.finish(&mut |data| {
            if let Some(semantic) = semantic {
                semantic.upload(data);
            }
        });
        let ended = match (&mut self.semantic, self.streamed.form.take()) {
            _ if self.request_coded.error().is_some() => Err(Unreadable::Malformed),
            (Some(semantic), _) => semantic.end_upload(),
            (None, Some(form)) => form.finish(),
            (None, None) => Ok(()),
        };
        match (self.step(Progress::Done(None)), ended) {
            (Step::Continue, Err(why)) => self.refuse_upload(why),
            (step, _) => step,
        }
    }

    fn refuse_upload(&mut self, why: Unreadable) -> Step {
        let is_over = why == Unreadable::FieldsTooLong;
        let passes = matches!(
            self.request_body_plan(),
            BodyPlan::Hold { over_limit: BodyLimitAction::ProcessPartial, .. }
        );
        if is_over && passes {
            // Where its field became too long, reading ended.
            self.request_body_seen = self.streamed.held_bytes;
        }
        match self.is_blocking() && !(is_over && passes) {
            true => self.interrupt(Interruption::Deny { status: if is_over { 413 } else { 400 } }),
            false => Step::Continue,
        }
    }

    /// Bytes of memory for what is read of an upload.
    pub(crate) fn streamed_bytes(&self) -> usize {
        self.streamed.form.as_ref().map_or(0, |form| form.parser.held_bytes())
    }
}
