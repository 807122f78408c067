//! Finished exchanges for the inventory of the site's interfaces, in every mode.

use portcullis_discovery::{Authentication, Details, Observation, ParameterPlace};
use portcullis_event::Action;

use crate::exchange::Outcome;
use crate::inspection::Inspection;

impl Inspection {
    /// Shows the exchange to discovery, if the site has it.
    pub(crate) fn discover(&self, action: Action, outcome: &Outcome) {
        let Some(site) = &self.inspector.discovery else { return };
        // What the upstream did not answer says nothing about the site.
        let Some(status) = outcome.status.filter(|_| outcome.upstream_error.is_none()) else { return };
        let is_refused = !matches!(action, Action::Pass | Action::Detect)
            || self.would_interrupt().is_some()
            || self.semantic.as_ref().is_some_and(|semantic| {
                // What deviates from the declared API, and is only reported, is what discovery is asked for.
                semantic.decision().is_some() && !semantic.has_deviations_alone()
            });
        let observation = Observation {
            network: portcullis_learn::network(self.connection.client.ip()),
            at_s: self.connection.epoch_millis / 1_000,
            method: self.seen.method(),
            path: self.seen.path(),
            status,
            is_refused,
            took_us: outcome.duration.as_micros().try_into().unwrap_or(u64::MAX),
        };
        // Of errors nothing but the status is kept.
        let wants = !is_refused && status < 400 && site.wants_details(observation.method, observation.path);
        site.observe(&observation, wants.then(|| self.details(site)));
    }

    fn details(&self, site: &portcullis_discovery::Site) -> Details {
        let view = self.transaction.as_view();
        let mut details = Details::default();
        details.request_type = media_type(view.request_fields());
        details.response_type = media_type(view.response_fields());
        let has_certificate = self
            .connection
            .environment
            .iter()
            .any(|(name, value)| *name == "SSL_CLIENT_VERIFY" && value != "NONE");
        details.authentication = Authentication::of(view.request_fields(), has_certificate);
        for (name, value) in view.query_arguments() {
            details.note(ParameterPlace::Query, name, value);
        }
        let place = match view.has_json() {
            true => ParameterPlace::Json,
            false => ParameterPlace::Form,
        };
        for (name, value) in view.body_arguments() {
            details.note(place, name, value);
        }
        if self.response.shown > 0 && site.wants_answer() {
            let of_semantic = self.semantic.as_ref().map(|semantic| semantic.response_shown());
            let body = of_semantic.filter(|body| !body.is_empty()).unwrap_or_else(|| view.response_body());
            details.note_answer(body);
        }
        details
    }
}

/// The media type that header fields tell.
fn media_type<'h>(mut fields: impl Iterator<Item = (&'h [u8], &'h [u8])>) -> Option<String> {
    let field = fields.find(|(name, _)| name.eq_ignore_ascii_case(b"content-type"));
    field.and_then(|(_, value)| Details::media_type(value))
}
