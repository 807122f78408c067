//! Single settings from their raw to their checked form, where nothing but the value itself can be wrong.

use portcullis_types::Level;

use crate::checked::*;
use crate::declared::DeclaredApi;
use crate::raw;

/// The mode of a site's routes that name none.
pub(crate) fn site_mode(site: &raw::Site) -> raw::Mode {
    site.mode.unwrap_or(if site.rules.is_some() { raw::Mode::Crs } else { raw::Mode::Semantic })
}

/// The policy of a route; `semantic` is what it says of the semantic detector itself.
pub(crate) fn route_policy(
    route: &raw::Route,
    site: &raw::Site,
    base: &Policy,
    semantic: Option<Semantic>,
    api: Option<DeclaredApi>,
) -> Option<Policy> {
    let policy = Policy {
        semantic: semantic.unwrap_or_else(|| base.semantic.clone()),
        api: api.or_else(|| base.api.clone()),
        level: route.level.as_ref().map_or(base.level, |given| level(given.value)),
        engine: route.engine.map(engine).or(base.engine),
        request_body: route.request_body.as_ref().map_or_else(|| base.request_body.clone(), request_body),
        response_body: route.response_body.as_ref().map_or_else(|| base.response_body.clone(), response_body),
        ..base.clone()
    };
    in_mode(route.mode.unwrap_or(site_mode(site)), policy)
}

/// `policy` with what `mode` uses of it, so that policies which do the same are equal.
pub(crate) fn in_mode(mode: raw::Mode, policy: Policy) -> Option<Policy> {
    match mode {
        raw::Mode::Off => None,
        raw::Mode::Crs => {
            // Settings of the detector alone make no other policy. What the API declares has its exclusions.
            let level = Level::default();
            let semantic = if policy.api.is_some() { policy.semantic } else { Semantic::default() };
            Some(Policy { mode: Mode::Crs, level, semantic, fields: None, ..policy })
        }
        raw::Mode::Both => Some(Policy { mode: Mode::Both, ..policy }),
        raw::Mode::Semantic => {
            let Policy {
                level, semantic, fields, api, discovery, engine, request_body, response_body, ..
            } = policy;
            let own =
                Policy { mode: Mode::Semantic, level, semantic, fields, api, discovery, ..Policy::default() };
            Some(Policy { engine, request_body, response_body, ..own })
        }
    }
}

pub(crate) fn level(raw: raw::Level) -> Level {
    match raw {
        raw::Level::Balanced => Level::Balanced,
        raw::Level::Strict => Level::Strict,
    }
}

pub(crate) fn engine(raw: raw::Engine) -> Engine {
    match raw {
        raw::Engine::Blocking => Engine::Blocking,
        raw::Engine::DetectionOnly => Engine::DetectionOnly,
    }
}

pub(crate) fn request_body(raw: &raw::RequestBody) -> Body {
    let raw::RequestBody {
        inspect,
        limit,
        upload_limit,
        over_limit: over,
        unreadable,
        decoded_ratio,
        uninspected_codings,
        ambiguous,
        second_readings,
    } = raw;
    Body {
        inspect: *inspect,
        limit_bytes: limit.map(|size| size.0),
        over_limit: over.map(over_limit),
        upload_limit_bytes: upload_limit.map(|size| size.0),
        unreadable_refused: unreadable.map(|what| what == raw::Unreadable::Refuse),
        decoded_ratio: decoded_ratio.map(std::num::NonZeroU32::get),
        uninspected_codings: uninspected_codings.iter().map(|name| name.0.clone()).collect(),
        ambiguous_pass: *ambiguous == Some(raw::Ambiguous::Pass),
        second_readings: *second_readings,
    }
}

pub(crate) fn response_body(raw: &raw::ResponseBody) -> Body {
    let raw::ResponseBody { inspect, limit, over_limit: over } = raw;
    Body {
        inspect: *inspect,
        limit_bytes: limit.map(|size| size.0),
        over_limit: over.map(over_limit),
        ..Body::default()
    }
}

pub(crate) fn over_limit(raw: raw::OverLimit) -> OverLimit {
    match raw {
        raw::OverLimit::Reject => OverLimit::Reject,
        raw::OverLimit::PassUninspected => OverLimit::PassUninspected,
    }
}

pub(crate) fn failure(raw: &raw::Failure) -> Failure {
    let checked = |raw: Option<raw::OpenOrClosed>, default| match raw {
        Some(raw::OpenOrClosed::Open) => OpenOrClosed::Open,
        Some(raw::OpenOrClosed::Closed) => OpenOrClosed::Closed,
        None => default,
    };
    let default = Failure::default();
    Failure {
        engine_error: checked(raw.engine_error, default.engine_error),
        undecodable: checked(raw.undecodable, default.undecodable),
        pattern_limit: checked(raw.pattern_limit, default.pattern_limit),
        lookup: checked(raw.lookup, default.lookup),
    }
}

pub(crate) fn timeouts(raw: &raw::Timeouts) -> Timeouts {
    let default = Timeouts::default();
    Timeouts {
        header: raw.header.map_or(default.header, |time| time.0),
        body: raw.body.map_or(default.body, |time| time.0),
        body_total: raw.body_total.map_or(default.body_total, |time| time.0),
        idle: raw.idle.map_or(default.idle, |time| time.0),
        write: raw.write.map_or(default.write, |time| time.0),
        drain: raw.drain.map_or(default.drain, |time| time.0),
        linger: raw.linger.map_or(default.linger, |time| time.0),
    }
}
