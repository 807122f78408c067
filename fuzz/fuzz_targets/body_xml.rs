//! Byte 0: document types refused or skipped; byte 1: chunk sizes; the rest: XML. Any chunking gives the same
//! events and error.

#![no_main]

use libfuzzer_sys::fuzz_target;
use portcullis_fuzz::same_in_any_chunks;
use portcullis_http::body::{Doctype, Limits, Xml};

fuzz_target!(|data: &[u8]| {
    let [options, seed, body @ ..] = data else { return };
    let doctype = [Doctype::Refuse, Doctype::SkipExternal, Doctype::Skip][usize::from(*options) % 3];
    let limits = Limits { xml_depth_max: 9, xml_attributes_max: 9, xml_markup_bytes_max: 90, ..Limits::default() };
    same_in_any_chunks(body, *seed, || Xml::with_doctype(limits.clone(), doctype), Xml::feed, Xml::finish);
});
