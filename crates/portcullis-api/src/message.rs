//! Messages as a client of the API gives them.

use data_encoding::BASE64;
use portcullis_replay::{Message, read_curl, read_message};

use crate::problem::{Kind, Problem};

/// The longest message, in bytes, however it is given.
pub(crate) const MESSAGE_BYTES_MAX: usize = 1 << 20;

/// A message, given in one of these ways.
pub(crate) struct Given {
    pub(crate) request: Option<String>,
    pub(crate) request_base64: Option<String>,
    pub(crate) curl: Option<String>,
}

impl Given {
    /// True if it is not given in any of them.
    pub(crate) fn is_none(&self) -> bool {
        self.request.is_none() && self.request_base64.is_none() && self.curl.is_none()
    }

    /// The message as it would be sent.
    pub(crate) fn read(self) -> Result<Message, Problem> {
        match (self.request, self.request_base64, self.curl) {
            (Some(text), None, None) => Ok(read_message(text.as_bytes())),
            (None, Some(text), None) => {
                let invalid = |_| Problem::with(Kind::Invalid, "request_base64 is not base64");
                Ok(read_message(&BASE64.decode(text.trim().as_bytes()).map_err(invalid)?))
            }
            (None, None, Some(line)) => {
                read_curl(&line).map_err(|error| Problem::with(Kind::Invalid, format!("curl: {error}")))
            }
            _ => Err(Problem::with(Kind::Invalid, "give one of request, request_base64 and curl")),
        }
    }
}

/// Refuses a text that is longer than a message may be.
pub(crate) fn bound<'t>(mut texts: impl Iterator<Item = &'t String>) -> Result<(), Problem> {
    match texts.any(|text| text.len() > MESSAGE_BYTES_MAX) {
        true => {
            let detail = format!("a message has at most {MESSAGE_BYTES_MAX} bytes");
            Err(Problem::with(Kind::BodyTooLarge, detail))
        }
        false => Ok(()),
    }
}
