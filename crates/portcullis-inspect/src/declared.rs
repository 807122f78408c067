//! The API that a site declares, beside one exchange: head and body of the request, head and body of the
//! answer.

use std::sync::Arc;

use portcullis_declared::{
    AnswerId, Api, Aspects, Deviation, Field, FieldType, Head, Kind, OperationId, Sent,
};
use portcullis_http::message::{BodyFraming, RequestHead, ResponseHead};
use portcullis_learn::{DeclaredField, DeclaredFields, FieldPlace, TypeSet, ValueType};
use portcullis_semantic::detectors::api;
use portcullis_semantic::limits::NAME_BYTES_MAX;
use portcullis_semantic::{Analysis, Detectors, KindId, Location, MessageNames};
use portcullis_types::Place;

use crate::semantic_policy::ClassAction;

/// Treatment of requests that differ from the declaration, by the kind of difference.
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
    /// Answers that are not as declared.
    pub responses: ClassAction,
}

/// The API that a site declares.
#[derive(Clone, Debug)]
pub struct SiteApi {
    api: Arc<Api>,
    actions: DeviationActions,
    /// By the number of the operation, the fields that are known by their declared types.
    fields: Arc<[Option<Arc<DeclaredFields>>]>,
}

impl SiteApi {
    /// An API, and what happens to deviations from it.
    pub fn new(api: Arc<Api>, actions: DeviationActions) -> SiteApi {
        let is_compared = |field: &&Field| {
            if let Place::Query = field.place {
                actions.parameters != ClassAction::Off
            } else {
                actions.body != ClassAction::Off
            }
        };
        let of_operation = |fields: &[Field]| {
            let mut known = DeclaredFields::default();
            for field in fields.iter().filter(is_compared) {
                if let Some(place) = FieldPlace::of(field.place) {
                    known.add(place, field.name.as_bytes(), known_field(field));
                }
            }
            (!known.is_empty()).then(|| Arc::new(known))
        };
        let fields = api.fields().map(of_operation).collect();
        SiteApi { api, actions, fields }
    }

    /// The same where nobody judges the values of fields.
    pub fn without_fields(self) -> SiteApi {
        SiteApi { fields: Arc::default(), ..self }
    }
}

/// Contents of fields of such a schema.
fn known_field(field: &Field) -> DeclaredField {
    if field.form.is_text {
        return DeclaredField::open();
    }
    let types = field.form.types.iter().map(|kind| match kind {
        // `1.0` is a whole number in JSON.
        FieldType::Whole if field.place != Place::Json => TypeSet::of(&[ValueType::Whole]),
        FieldType::Whole | FieldType::Number => TypeSet::of(&[ValueType::Whole, ValueType::Decimal]),
        FieldType::Boolean => TypeSet::of(&[ValueType::Boolean]),
        FieldType::Uuid => TypeSet::of(&[ValueType::Uuid]),
        FieldType::Date => TypeSet::of(&[ValueType::Date]),
    });
    let types = types.fold(TypeSet::default(), |all, kind| all | kind);
    let mut titles: Vec<String> = field.form.types.iter().map(|kind| kind.title().to_owned()).collect();
    match field.form.values.as_slice() {
        [] => {}
        [only] => titles.push(only.clone()),
        values => titles.push(format!("one of {} values", values.len())),
    }
    let evidence = format!("declared as {} ({})", titles.join(" or "), field.pointer);
    DeclaredField::of_types(types, &evidence).with_values(field.form.values.iter().map(String::as_bytes))
}

/// One exchange beside the declaration.
#[derive(Debug)]
pub(crate) struct DeclaredRun {
    site: SiteApi,
    operation: Option<OperationId>,
    /// Deviations that are not noted yet.
    found: Vec<Deviation>,
    content_types: Vec<Vec<u8>>,
    /// The head announces a body.
    has_body: bool,
    is_head: bool,
    is_judged: bool,
    /// The schema for the body of the answer.
    answer: Option<AnswerId>,
}

impl DeclaredRun {
    pub(crate) fn new(site: &SiteApi) -> DeclaredRun {
        DeclaredRun {
            site: site.clone(),
            operation: None,
            found: Vec::new(),
            content_types: Vec::new(),
            has_body: false,
            is_head: false,
            is_judged: false,
            answer: None,
        }
    }

    /// Compares the head; what is found is noted by [`note_head`](Self::note_head).
    pub(crate) fn request_head(&mut self, head: &RequestHead) {
        let asked = self.aspects();
        let shown =
            Head { method: head.method(), path: head.path(), query: head.query(), fields: head.fields() };
        self.operation = self.site.api.head(&shown, asked, &mut self.found);
        self.has_body = !matches!(head.framing(), BodyFraming::None | BodyFraming::Length(0));
        self.is_head = head.method() == b"HEAD";
        if self.operation.is_some() && self.site.api.asks_for_bodies(asked) {
            self.content_types = head.header("content-type").take(2).map(<[u8]>::to_vec).collect();
        }
    }

    /// The names of what the messages of the body have in them, where the API declares such.
    pub(crate) fn message_names(&self) -> Option<Arc<dyn MessageNames>> {
        let operation = self.operation.filter(|_| self.site.api.has_messages())?;
        Some(Arc::new(CallNames { api: Arc::clone(&self.site.api), operation }))
    }

    pub(crate) fn note_head(&mut self, analysis: &mut Analysis, detectors: &Detectors) {
        note(std::mem::take(&mut self.found), analysis, detectors);
    }

    /// True once if the values of fields are to be judged: where the site does not learn.
    pub(crate) fn judges(&mut self) -> bool {
        !std::mem::replace(&mut self.is_judged, true)
    }

    /// The fields of the operation that are known by their declared types.
    pub(crate) fn fields(&self) -> Option<&Arc<DeclaredFields>> {
        self.site.fields.get(self.operation?.number())?.as_ref()
    }

    /// False if the values of the fields are known to be as they are declared: there is no body, and nothing
    /// is wrong with the query.
    pub(crate) fn may_be_unusual(&self) -> bool {
        let Aspects { parameters, unknown_parameter, .. } = self.aspects();
        self.has_body || !self.found.is_empty() || !parameters || !unknown_parameter
    }

    /// The body has come as far as it will; none where it is not shown.
    pub(crate) fn request_end(
        &mut self,
        body: Option<&[u8]>,
        analysis: &mut Analysis,
        detectors: &Detectors,
    ) {
        let asked = self.aspects();
        let Some(operation) = self.operation.filter(|_| self.site.api.asks_for_bodies(asked)) else { return };
        let mut found = Vec::new();
        let types = self.content_types.iter().map(Vec::as_slice);
        let sent = match body {
            Some(body) => Sent::Whole(body),
            None if self.has_body => Sent::Unseen,
            None => Sent::Whole(b""),
        };
        self.site.api.body(operation, types, sent, asked, &mut found);
        note(found, analysis, detectors);
    }

    /// Compares the head of the answer.
    pub(crate) fn response_head(
        &mut self,
        head: &ResponseHead,
        analysis: &mut Analysis,
        detectors: &Detectors,
    ) {
        let is_asked = self.site.actions.responses != ClassAction::Off;
        let Some(operation) = self.operation.filter(|_| is_asked) else { return };
        let has_body = !self.is_head && head.status() != 204 && head.content_length() != Some(0);
        let (types, mut found) = (head.header("content-type"), Vec::new());
        self.answer = self.site.api.answer(operation, head.status(), has_body, types, &mut found);
        note(found, analysis, detectors);
    }

    /// The body of the answer is to be shown.
    pub(crate) fn wants_answer(&self) -> bool {
        self.answer.is_some()
    }

    /// Compares the body of the answer; none where it is not there as a whole.
    pub(crate) fn response_end(
        &mut self,
        body: Option<&[u8]>,
        analysis: &mut Analysis,
        detectors: &Detectors,
    ) {
        let Some(answer) = self.answer.take() else { return };
        let mut found = Vec::new();
        let body = body.map_or(Sent::Unseen, Sent::Whole);
        self.site.api.answer_body(answer, body, &mut found);
        note(found, analysis, detectors);
    }

    fn aspects(&self) -> Aspects {
        let DeviationActions { unknown_path, unknown_parameter, parameters, body, security, .. } =
            self.site.actions;
        Aspects {
            unknown_path: unknown_path != ClassAction::Off,
            unknown_parameter: unknown_parameter != ClassAction::Off,
            parameters: parameters != ClassAction::Off,
            body: body != ClassAction::Off,
            security: security != ClassAction::Off,
        }
    }

    /// True if a finding of this kind in this place is to refuse the request.
    pub(crate) fn blocks(&self, kind: &str, place: Place) -> bool {
        let actions = &self.site.actions;
        let number = api::KINDS.iter().position(|known| known.id == kind);
        let action = match number.and_then(|number| u16::try_from(number).ok()).map(KindId) {
            Some(api::UNKNOWN_PATH | api::METHOD) => actions.unknown_path,
            Some(api::UNKNOWN_PARAMETER) => actions.unknown_parameter,
            Some(api::PARAMETER) => actions.parameters,
            Some(api::SECURITY) => actions.security,
            Some(api::MISSING) if matches!(place, Place::RawBody | Place::Json) => actions.body,
            Some(api::MISSING) => actions.parameters,
            Some(api::CONTENT_TYPE | api::BODY | api::LIMIT | api::READ_ONLY) => actions.body,
            Some(api::STATUS | api::RESPONSE | api::WRITE_ONLY) => actions.responses,
            // Counted and shown: whether such bodies pass is what the limits say.
            _ => ClassAction::Log,
        };
        action == ClassAction::Block
    }
}

/// The names of the fields of one call.
#[derive(Debug)]
struct CallNames {
    api: Arc<Api>,
    operation: OperationId,
}

impl MessageNames for CallNames {
    fn name(&self, path: &[u64]) -> Option<String> {
        self.api.message_field(self.operation, path)
    }

    fn is_message(&self, path: &[u64]) -> bool {
        self.api.is_message_field(self.operation, path)
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
        Kind::Limit => api::LIMIT,
        Kind::ReadOnly => api::READ_ONLY,
        Kind::Security => api::SECURITY,
        Kind::Status => api::STATUS,
        Kind::Response => api::RESPONSE,
        Kind::WriteOnly => api::WRITE_ONLY,
        Kind::Unchecked => api::UNCHECKED,
    }
}
