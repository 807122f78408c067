//! Events as texts.

use portcullis_config::EventForm;
use portcullis_event::Event;

/// The version of the product.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The event in one line, without a line break.
pub(crate) fn text(event: &Event, form: EventForm) -> String {
    let mut out = Vec::with_capacity(2048);
    match form {
        EventForm::Json => event.write_json_line(&mut out),
        EventForm::Cef => event.write_cef_line(VERSION, &mut out),
        EventForm::Ocsf => event.write_ocsf_line(VERSION, &mut out),
    }
    while out.last() == Some(&b'\n') {
        out.pop();
    }
    // All of them are UTF-8.
    String::from_utf8(out).unwrap_or_default()
}
