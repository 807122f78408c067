//! The API that a site declares, beside one request: its head, then its body.

use std::sync::Arc;

use portcullis_declared::{Api, Aspects, Deviation, Head, Kind, OperationId, Sent};
use portcullis_http::message::{BodyFraming, RequestHead};
use portcullis_semantic::detectors::api;
use portcullis_semantic::limits::NAME_BYTES_MAX;
use portcullis_semantic::{Analysis, Detectors, KindId, Location};
use portcullis_types::Place;

use crate::semantic_policy::ClassAction;

/// What happens to requests that differ from the declaration, by what differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviationActions {
    /// Paths and methods that are not declared.
    pub unknown_path: ClassAction,
    /// Parameters of the query that are not declared.
    pub unknown_parameter: ClassAction,
    /// Parameters that are not as declared.
    pub parameters: ClassAction,
    /// Bodies that are not as declared.
    pub body: ClassAction,
    /// Credentials that are not there.
    pub security: ClassAction,
}

/// The API that a site declares.
#[derive(Clone, Debug)]
pub struct SiteApi {
    /// What is declared.
    pub api: Arc<Api>,
    /// What happens to deviations.
    pub actions: DeviationActions,
}

/// One request beside the declaration.
#[derive(Debug)]
pub(crate) struct DeclaredRun {
    site: SiteApi,
    operation: Option<OperationId>,
    content_types: Vec<Vec<u8>>,
    /// The head announces a body.
    has_body: bool,
}

impl DeclaredRun {
    pub(crate) fn new(site: &SiteApi) -> DeclaredRun {
        DeclaredRun { site: site.clone(), operation: None, content_types: Vec::new(), has_body: false }
    }

    pub(crate) fn request_head(
        &mut self,
        head: &RequestHead,
        analysis: &mut Analysis,
        detectors: &Detectors,
    ) {
        let asked = self.aspects();
        let mut found = Vec::new();
        let shown =
            Head { method: head.method(), path: head.path(), query: head.query(), fields: head.fields() };
        self.operation = self.site.api.head(&shown, asked, &mut found);
        self.has_body = !matches!(head.framing(), BodyFraming::None | BodyFraming::Length(0));
        if self.operation.is_some() && asked.body {
            self.content_types = head.header("content-type").take(2).map(<[u8]>::to_vec).collect();
        }
        note(found, analysis, detectors);
    }

    /// The body has come as far as it will; none where it is not shown.
    pub(crate) fn request_end(
        &mut self,
        body: Option<&[u8]>,
        analysis: &mut Analysis,
        detectors: &Detectors,
    ) {
        let Some(operation) = self.operation.take().filter(|_| self.aspects().body) else { return };
        let mut found = Vec::new();
        let types = self.content_types.iter().map(Vec::as_slice);
        let sent = match body {
            Some(body) => Sent::Whole(body),
            None if self.has_body => Sent::Unseen,
            None => Sent::Whole(b""),
        };
        self.site.api.body(operation, types, sent, &mut found);
        note(found, analysis, detectors);
    }

    fn aspects(&self) -> Aspects {
        let DeviationActions { unknown_path, unknown_parameter, parameters, body, security } =
            self.site.actions;
        Aspects {
            unknown_path: unknown_path != ClassAction::Off,
            unknown_parameter: unknown_parameter != ClassAction::Off,
            parameters: parameters != ClassAction::Off,
            body: body != ClassAction::Off,
            security: security != ClassAction::Off,
        }
    }

    /// Whether a finding of this kind in this place is to refuse the request.
    pub(crate) fn blocks(&self, kind: &str, place: Place) -> bool {
        let actions = &self.site.actions;
        let number = api::KINDS.iter().position(|known| known.id == kind);
        let action = match number.and_then(|number| u16::try_from(number).ok()).map(KindId) {
            Some(api::UNKNOWN_PATH | api::METHOD) => actions.unknown_path,
            Some(api::UNKNOWN_PARAMETER) => actions.unknown_parameter,
            Some(api::PARAMETER) => actions.parameters,
            Some(api::SECURITY) => actions.security,
            Some(api::MISSING) if place == Place::RawBody => actions.body,
            Some(api::MISSING) => actions.parameters,
            Some(api::CONTENT_TYPE | api::BODY | api::READ_ONLY) => actions.body,
            // Counted and shown: whether such bodies pass is what the limits say.
            _ => ClassAction::Log,
        };
        action == ClassAction::Block
    }
}

fn note(found: Vec<Deviation>, analysis: &mut Analysis, detectors: &Detectors) {
    for mut deviation in found {
        deviation.name.truncate(NAME_BYTES_MAX);
        let evidence = deviation.to_string();
        let location = Location::new(deviation.place, &deviation.name);
        analysis.note(detectors, location, api::KINDS, kind(deviation.kind), evidence.as_bytes());
    }
}

fn kind(kind: Kind) -> KindId {
    match kind {
        Kind::UnknownPath => api::UNKNOWN_PATH,
        Kind::Method => api::METHOD,
        Kind::UnknownParameter => api::UNKNOWN_PARAMETER,
        Kind::Parameter => api::PARAMETER,
        Kind::Missing => api::MISSING,
        Kind::ContentType => api::CONTENT_TYPE,
        Kind::Body => api::BODY,
        Kind::ReadOnly => api::READ_ONLY,
        Kind::Security => api::SECURITY,
        Kind::Unchecked => api::UNCHECKED,
    }
}
