//! Arguments of the query string, and those that some applications find elsewhere in the head.

use portcullis_http::body::{overriding_query, parse_query_twice, path_parameters};
use portcullis_types::{Span, Variable};
use portcullis_values::Values;

use crate::settings::Settings;

use super::flags::set_error;
use super::limits;
use super::sink::{QUERY, Sink};

/// Parses the query string, which stands at `place`, into `ARGS_GET`. True if [`parse_query_twice`] would
/// find the same in it between ampersands, without an error.
pub(crate) fn parse_query(query: &[u8], place: Span, settings: &Settings, store: &mut Values) -> bool {
    let limits = limits(settings, 0);
    let parse = match settings.second_readings {
        true => parse_query_twice,
        false => portcullis_http::body::parse_query,
    };
    let mut sink = Sink { at: Some(place), ..Sink::new(store, QUERY, false) };
    let report = parse(query, settings.argument_separator, &limits, &mut sink);
    if report.invalid_encodings > 0 {
        store.set_scalar(Variable::UrlencodedError, b"1");
    }
    let is_usual = settings.second_readings && settings.argument_separator == b'&';
    match report.error {
        None => is_usual && report.ambiguities.is_empty(),
        Some(error) => {
            set_error(store, &error.to_string());
            false
        }
    }
}

/// Arguments that some applications find in the path and in headers that carry a URL.
pub(crate) fn read_elsewhere(path: &[u8], urls: &[&[u8]], settings: &Settings, store: &mut Values) {
    let limits = limits(settings, 0);
    let mut sink = Sink::new(store, QUERY, false);
    path_parameters(path, &limits, &mut sink);
    for url in urls {
        overriding_query(url, settings.argument_separator, &limits, &mut sink);
    }
}
