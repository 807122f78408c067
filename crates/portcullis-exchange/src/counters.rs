//! The metrics that are not counted by route, with the names of their labels.

use portcullis_event::{Action, FindingOutcome, NotInspected, UpstreamError};
use portcullis_http::body::Ambiguity;
use portcullis_http::message::Refusal;
use portcullis_metrics::{DataPlane, DataPlaneNames, Registry};
use portcullis_types::Class;

/// The metrics that are not counted by route.
pub fn data_plane(registry: &Registry) -> DataPlane {
    let ambiguities = Ambiguity::ALL.map(|ambiguity| ambiguity.name());
    let refusals: Vec<&'static str> = Refusal::ALL.iter().map(|refusal| refusal.name()).collect();
    let names = DataPlaneNames {
        verdicts: Action::NAMES,
        not_inspected: NotInspected::NAMES,
        upstream_errors: UpstreamError::NAMES,
        refusals: &refusals,
        ambiguities: &ambiguities,
        classes: Class::NAMES,
        finding_outcomes: FindingOutcome::NAMES,
    };
    DataPlane::new(registry, env!("CARGO_PKG_VERSION"), names)
}
