//! Errors as clients see them: problem details (RFC 9457).

use axum::response::{IntoResponse, Response};
use http::header::{CONTENT_TYPE, HeaderName, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, StatusCode};
use portcullis_config::Mistake;
use portcullis_identity::IdentityError;
use portcullis_revisions::RevisionError;
use serde::Serialize;
use utoipa::ToSchema;

/// The media type of problem details.
pub const PROBLEM_JSON: &str = "application/problem+json";

/// Declares the kinds of problems: variant, status, end of the type's name, title.
macro_rules! kinds {
    ($($variant:ident $status:literal $name:literal $title:literal;)*) => {
        /// Kinds of problems of a request.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Kind { $(#[doc = $title] $variant,)* }

        impl Kind {
            fn parts(self) -> (u16, &'static str, &'static str) {
                match self { $(Kind::$variant => ($status, concat!("urn:portcullis:problem:", $name), $title),)* }
            }
        }
    };
}

kinds! {
    Malformed 400 "malformed" "The request cannot be read";
    Filter 400 "filter" "The filter has a mistake";
    Cursor 400 "cursor" "The cursor is not one of this list";
    Unauthenticated 401 "unauthenticated" "Authentication is needed";
    WrongLogin 401 "wrong-login" "Name, password or code are wrong";
    CodeNeeded 401 "code-needed" "A one-time code is needed";
    OidcLogin 401 "oidc-login" "The login at the provider does not count";
    Forbidden 403 "forbidden" "The role does not suffice";
    OtherOrigin 403 "other-origin" "Requests of pages of other sites are refused";
    OtherName 403 "other-name" "The API is not asked for under this name";
    CsrfToken 403 "csrf-token" "The session's token is missing";
    SetupCode 403 "setup-code" "The setup code is not valid";
    NoRole 403 "no-role" "No group of the user has a role";
    NotFound 404 "not-found" "There is no such object";
    MethodNotAllowed 405 "method-not-allowed" "The object does not have this method";
    BodyTimeout 408 "body-timeout" "The body did not come in time";
    Conflict 409 "conflict" "The request conflicts with what is there";
    NoDocument 409 "no-document" "There is no document to look at or change";
    NoProvider 409 "no-provider" "No provider for logins is configured";
    PreconditionFailed 412 "precondition-failed" "The object was changed since it was read";
    BodyTooLarge 413 "body-too-large" "The body is too large";
    MediaType 415 "media-type" "The body is not JSON";
    Invalid 422 "invalid" "A value is not allowed";
    ReadOnly 403 "read-only" "The document is not changed here";
    ReloadFailed 422 "reload-failed" "The new settings cannot be used; the old ones serve";
    Document 422 "document" "The document has mistakes";
    PreconditionRequired 428 "precondition-required" "The version is missing";
    TooManyLogins 429 "too-many-logins" "Too many logins have failed";
    Internal 500 "internal" "The request cannot be answered";
    NotSupported 501 "not-supported" "This program cannot do it";
    EventsUnavailable 502 "events-unavailable" "The database of events cannot be asked";
    Provider 502 "provider" "The provider cannot be asked";
    Busy 503 "busy" "Too many requests at a time";
    Draining 503 "draining" "The program is ending";
    EventsLate 504 "events-late" "The database of events has not answered in time";
}

/// Problem details (RFC 9457).
#[derive(Debug, Serialize, ToSchema)]
pub struct Problem {
    /// Name of the kind, which does not change.
    r#type: &'static str,
    /// Title of the kind, in words.
    title: &'static str,
    /// The status of the response.
    status: u16,
    /// Explanation for this request.
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
    /// The character of the filter at which the mistake begins, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<usize>,
    /// The mistakes of a document, in the order of its text.
    #[serde(skip_serializing_if = "<[Diagnostic]>::is_empty")]
    #[schema(value_type = Vec<Diagnostic>, required = false)]
    diagnostics: Box<[Diagnostic]>,
    #[serde(skip)]
    #[schema(ignore)]
    headers: Vec<(HeaderName, HeaderValue)>,
}

/// A mistake of a document.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Diagnostic {
    /// The file.
    pub(crate) file: String,
    /// The line, from 1; null if the mistake has no place in a text.
    pub(crate) line: Option<usize>,
    /// The character in the line, from 1.
    pub(crate) column: Option<usize>,
    /// The error.
    pub(crate) message: String,
    /// A suggestion or a fix.
    pub(crate) hint: Option<String>,
    /// The value that it is about, or the table that lacks one, as a JSON Pointer: `/sites/0/hosts`.
    pub(crate) pointer: Option<String>,
}

impl From<&Mistake> for Diagnostic {
    fn from(mistake: &Mistake) -> Diagnostic {
        Diagnostic {
            file: mistake.file.clone(),
            line: mistake.place.map(|(line, _)| line),
            column: mistake.place.map(|(_, column)| column),
            message: mistake.message.clone(),
            hint: mistake.hint.clone(),
            pointer: mistake.pointer.clone(),
        }
    }
}

impl Problem {
    /// A problem that its kind says all about.
    pub(crate) fn of(kind: Kind) -> Problem {
        let (status, r#type, title) = kind.parts();
        let mut headers = Vec::new();
        if let Kind::Unauthenticated | Kind::WrongLogin | Kind::CodeNeeded | Kind::OidcLogin = kind {
            headers.push((WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"portcullis\"")));
        } else if let Kind::Busy = kind {
            headers.push((RETRY_AFTER, HeaderValue::from_static("1")))
        }
        Problem { r#type, title, status, detail: None, column: None, diagnostics: Box::default(), headers }
    }

    /// With what is wrong with this request.
    pub(crate) fn with(kind: Kind, detail: impl Into<String>) -> Problem {
        Problem { detail: Some(detail.into()), ..Problem::of(kind) }
    }

    /// With the part of the request that it is about.
    pub(crate) fn within(self, part: &str) -> Problem {
        let detail = format!("{part}: {}", self.summary());
        Problem { detail: Some(detail), ..self }
    }

    /// With the place in the filter.
    pub(crate) fn at(self, column: usize) -> Problem {
        Problem { column: Some(column), ..self }
    }

    /// With the mistakes of a document.
    pub(crate) fn about(self, mistakes: &[Mistake]) -> Problem {
        Problem { diagnostics: mistakes.iter().map(Diagnostic::from).collect(), ..self }
    }

    /// With the seconds to wait.
    pub(crate) fn retry_after(mut self, seconds: u64) -> Problem {
        self.set_header(RETRY_AFTER, HeaderValue::from(seconds));
        self
    }

    /// Its subject, in words.
    pub(crate) fn summary(&self) -> &str {
        self.detail.as_deref().unwrap_or(self.title)
    }

    /// Sets a header of the response.
    pub(crate) fn set_header(&mut self, name: HeaderName, value: HeaderValue) {
        self.headers.retain(|(other, _)| *other != name);
        self.headers.push((name, value));
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = serde_json::to_vec(&self).unwrap_or_default();
        let mut response =
            (status, [(CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON))], body).into_response();
        response.headers_mut().extend(self.headers);
        response
    }
}

/// Failures of the program are logged for the operator, not sent to the client.
pub(crate) fn of_identity(error: IdentityError, say: &dyn Fn(&str)) -> Problem {
    let kind = match &error {
        IdentityError::NotFound(_) => Kind::NotFound,
        IdentityError::Exists
        | IdentityError::ViewExists
        | IdentityError::LastAdmin
        | IdentityError::Provided => Kind::Conflict,
        IdentityError::Disabled => Kind::Forbidden,
        IdentityError::Invalid(_) | IdentityError::Password(_) | IdentityError::Code => Kind::Invalid,
        IdentityError::Changed => Kind::PreconditionFailed,
        IdentityError::File(..)
        | IdentityError::Open(_)
        | IdentityError::TooNew(_)
        | IdentityError::Sqlite(_)
        | IdentityError::Random => {
            say(&format!("admin API: {error}"));
            return Problem::of(Kind::Internal);
        }
    };
    Problem::with(kind, error.to_string())
}

/// Failures of the program are logged for the operator, not sent to the client.
pub(crate) fn of_revision(error: RevisionError, say: &dyn Fn(&str)) -> Problem {
    let kind = match &error {
        RevisionError::NotFound => Kind::NotFound,
        RevisionError::Changed(_) => Kind::PreconditionFailed,
        RevisionError::Unfit(_) => Kind::Conflict,
        RevisionError::Forbidden(_) => Kind::Forbidden,
        RevisionError::Refused(_) => Kind::ReloadFailed,
        RevisionError::ReadOnly => Kind::ReadOnly,
        RevisionError::Ending => return Problem::of(Kind::Draining),
        RevisionError::Invalid(mistakes) => {
            return Problem::with(Kind::Document, mistakes.to_string()).about(mistakes.mistakes());
        }
        RevisionError::Document(_) | RevisionError::History(_) => {
            say(&format!("admin API: {error}"));
            return Problem::of(Kind::Internal);
        }
    };
    Problem::with(kind, error.to_string())
}
