//! Bodies into the collections.

use bstr::BString;
use portcullis_http::body::content_type::Processor;
use portcullis_http::body::{Arg, BodyParser, BodySink, Undeclared};
use portcullis_seclang::ast::AllowScope;

use crate::load::Settings;
use crate::transaction::{File, Pair, Transaction};
use crate::xpath::Document;

/// The readings of arguments by other applications: values and counts of rules see only the values.
#[derive(Clone, Default)]
pub(crate) struct Readings {
    pub(crate) args: Vec<Pair>,
    pub(crate) names: Vec<Pair>,
}

/// Collects arguments only.
#[derive(Default)]
pub(crate) struct Args(pub(crate) Vec<Pair>, pub(crate) Readings);

impl BodySink for Args {
    fn arg(&mut self, arg: Arg<'_>) {
        self.0.push((arg.name.into(), arg.value.into()));
    }

    fn arg_reading(&mut self, name: &[u8], value: &[u8]) {
        self.1.args.push((name.into(), value.into()));
    }

    fn name_reading(&mut self, name: &[u8]) {
        self.1.names.push((name.into(), name.into()));
    }
}

/// Collects everything that variables show.
#[derive(Default)]
struct Parts {
    args: Vec<Pair>,
    files: Vec<File>,
    headers: Vec<Pair>,
    /// Names of parts, and their names of files, both by name.
    names: Vec<Pair>,
    filenames: Vec<Pair>,
    xml: Option<(BString, Vec<BString>, Document)>,
    readings: Readings,
    xml_readings: Vec<BString>,
}

impl BodySink for Parts {
    fn arg(&mut self, arg: Arg<'_>) {
        self.args.push((arg.name.into(), arg.value.into()));
    }

    fn arg_reading(&mut self, name: &[u8], value: &[u8]) {
        self.readings.args.push((name.into(), value.into()));
    }

    fn name_reading(&mut self, name: &[u8]) {
        self.readings.names.push((name.into(), name.into()));
    }

    fn xml_reading(&mut self, text: &[u8]) {
        self.xml_readings.push(text.into());
    }

    fn part(&mut self, name: &[u8], filename: Option<&[u8]>) {
        self.names.push((name.into(), name.into()));
        if let Some(filename) = filename {
            self.filenames.push((name.into(), filename.into()));
        }
    }

    fn part_header(&mut self, part_name: &[u8], line: &[u8]) {
        self.headers.push((part_name.into(), line.into()));
    }

    fn file_begin(&mut self, field_name: &[u8], filename: &[u8]) {
        self.files.push(File { field: field_name.into(), name: filename.into(), ..File::default() });
    }

    fn file_data(&mut self, data: &[u8]) {
        if let Some(file) = self.files.last_mut() {
            file.content.extend_from_slice(data);
        }
    }

    fn file_end(&mut self, size: u64) {
        if let Some(file) = self.files.last_mut() {
            file.size = size;
        }
    }

    fn xml_start(&mut self, name: &[u8]) {
        self.xml.get_or_insert_default().2.start(name);
    }

    fn xml_end(&mut self, _: &[u8]) {
        self.xml.get_or_insert_default().2.end();
    }

    fn xml_comment(&mut self, _: &[u8]) {
        if let Some((_, _, document)) = &mut self.xml {
            document.other();
        }
    }

    fn xml_instruction(&mut self, _: &[u8], _: &[u8]) {
        if let Some((_, _, document)) = &mut self.xml {
            document.other();
        }
    }

    fn xml_attribute(&mut self, name: &[u8], value: &[u8]) {
        self.xml.get_or_insert_default().2.attribute(name, value);
        if name == b"xmlns" || name.starts_with(b"xmlns:") {
            return;
        }
        self.xml.get_or_insert_default().1.push(value.into());
    }

    fn xml_text(&mut self, text: &[u8]) {
        let (all, _, document) = self.xml.get_or_insert_default();
        all.extend_from_slice(text);
        document.text(text);
    }
}

/// Reads the request body before phase 2. Follows `modsecurity_request_body_start` and `..._end`.
pub(crate) fn read_request(transaction: &mut Transaction<'_>, settings: &Settings) {
    transaction.ambiguities = Some(BString::default());
    let Some(body) = &transaction.request.body else { return };
    if !transaction.request_body_access {
        return;
    }
    transaction.request_body_length = body.len();
    if settings.stream_request_body && !body.is_empty() {
        transaction.request_stream = Some(body.clone());
    }
    // Only forms are kept as a whole and, by force, bodies that no parser reads; see below for those whose
    // parser fails.
    let keep = settings.modsecurity3
        || match transaction.processor {
            Some(processor) => processor == Processor::UrlEncoded,
            None => transaction.force_request_body,
        };
    if keep {
        transaction.request_body = Some(body.clone());
    }
    let content_type = transaction.header("Content-Type").unwrap_or_default();
    let mut parts = Parts::default();
    let undeclared = Undeclared::new(transaction.processor, content_type, &settings.body);
    if let Some(mut undeclared) = undeclared.filter(|_| settings.body.second_readings && !body.is_empty()) {
        undeclared.feed(body, &mut parts);
        undeclared.finish(&mut parts);
    }
    let seen_twice = std::mem::take(&mut parts);
    transaction.body_readings = seen_twice.readings;
    transaction.xml_readings = seen_twice.xml_readings;
    let Some(processor) = transaction.processor else { return };
    if processor == Processor::Json && body.is_empty() {
        return;
    }
    let mut options = settings.body.clone();
    options.xml_args = transaction.xml_args.unwrap_or(options.xml_args);
    options.limits.arguments_max = options.limits.arguments_max.saturating_sub(transaction.query_args.len());
    let mut parser = BodyParser::new(processor, content_type, &options);
    parser.feed(body, &mut parts);
    let report = parser.finish(&mut parts);
    transaction.body_args = parts.args;
    // Those of the declared reading came first.
    parts.readings.args.append(&mut transaction.body_readings.args);
    parts.readings.names.append(&mut transaction.body_readings.names);
    transaction.body_readings = parts.readings;
    parts.xml_readings.append(&mut transaction.xml_readings);
    transaction.xml_readings = parts.xml_readings;
    let ambiguities: Vec<&str> = report.ambiguities.iter().map(|ambiguity| ambiguity.name()).collect();
    transaction.ambiguities = Some(ambiguities.join(" ").into());
    transaction.files = parts.files;
    transaction.part_headers = parts.headers;
    transaction.part_names = parts.names;
    transaction.part_filenames = parts.filenames;
    transaction.xml = parts.xml;
    transaction.multipart = report.multipart;
    transaction.urlencoded_error |= report.invalid_encodings > 0;
    if let Some(error) = report.error {
        transaction.body_error = Some(error.to_string().into());
        if transaction.force_request_body {
            transaction.request_body = Some(body.clone());
        }
    } else if processor != Processor::Multipart
        && body.len() as u64 >= settings.body.limits.no_files_bytes_max
    {
        transaction.body_error = Some("no files limit".into());
    }
}

/// Keeps the response body before phase 4, if its type is one that is inspected. Follows
/// `output_filter_should_run`.
pub(crate) fn read_response(transaction: &mut Transaction<'_>, settings: &Settings) {
    let Some(response) = &transaction.request.response else { return };
    // One that is not looked at is empty, not absent. An allowed one is not held for the last phase, by our
    // own choice.
    transaction.response_body = Some(BString::default());
    if !transaction.response_body_access || transaction.allowed == Some(AllowScope::Transaction) {
        return;
    }
    let mut headers = response.headers.iter();
    let content_type = headers.find(|(name, _)| name.eq_ignore_ascii_case(b"Content-Type"));
    let content_type = content_type.map_or(&b"null"[..], |(_, value)| value);
    let media_type = content_type.split(|&b| b == b';').next().unwrap_or_default();
    // The manual writes the missing type in brackets, the source without them.
    let is_inspected = |known: &BString| {
        known.eq_ignore_ascii_case(media_type.trim_ascii_end())
            || (media_type == b"null" && known == "(null)")
    };
    if settings.mime_types.iter().any(is_inspected) {
        transaction.response_body = Some(response.body.clone());
        transaction.response_stream = settings.stream_response_body.then(|| response.body.clone());
    }
}
