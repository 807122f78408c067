//! The request body on its way into values.

mod flags;
mod query;
mod sink;

use portcullis_http::body::{
    Ambiguities, BodyErrorKind, BodyParser, Doctype, JsonNames, Limits, MultipartError, MultipartFlags,
    Options, Report, Undeclared, XmlArgs,
};
use portcullis_types::{ByteBuf, Span, Variable};
use portcullis_values::{ValueId, Values};

use crate::Class;
use crate::settings::{BodyProcessor, Settings};
use crate::xml::{Builder, Tree, XPath};

use flags::{set_error, set_flag, set_flags};
pub(crate) use query::{parse_query, read_elsewhere};
use sink::{BODY, Files, Readings, Sink};

/// State of the request body.
#[derive(Debug, Default)]
pub(crate) struct RequestBody {
    content_type: Vec<u8>,
    /// The head announces a body, which may be empty.
    announced: bool,
    begun: bool,
    ended: bool,
    processor: Option<BodyProcessor>,
    forced: bool,
    /// The setting that a rule made of `SecParseXmlIntoArgs`.
    xml_args: Option<XmlArgs>,
    /// The body as it was shown, taken apart at its end, so that a body that is still coming takes no more
    /// memory than its bytes.
    shown: ByteBuf,
    /// A form with the frame that is not around the body itself.
    as_sent: ByteBuf,
    /// Someone reads `shown`.
    is_read: bool,
    /// It is kept to guess what the body is.
    is_guessed: bool,
    /// Others read it after its end.
    lent: bool,
    /// The audit log may want it.
    audited: bool,
    files: Files,
    length: u64,
    error: Option<String>,
    /// True if the body without its files has `SecRequestBodyNoFilesLimit` bytes or more.
    over_no_files_limit: bool,
    /// An XML body, where rules search it.
    tree: Option<Box<StoredTree>>,
    ambiguities: Ambiguities,
    /// It is taken apart as [`Options`] say by default, but for limits on how much.
    is_usual: bool,
    /// Its parser came to its end, and nothing was wrong.
    is_plain: bool,
    /// Arguments of the query that are not among the values.
    other_arguments: usize,
}

/// A tree whose texts are in the store, and where they begin there.
#[derive(Debug)]
struct StoredTree {
    tree: Tree,
    text: u32,
    bytes: u32,
}

impl RequestBody {
    /// Bytes that the names and values of a body's arguments may take, as a multiple of its length, beside
    /// [`TEXTS_SPARE`](Self::TEXTS_SPARE). The name of a value of JSON is its path, which may be much longer
    /// than what stands for it in the body. More of them are an error of the body.
    pub(crate) const TEXTS_FACTOR: usize = 4;
    /// See [`TEXTS_FACTOR`](Self::TEXTS_FACTOR).
    pub(crate) const TEXTS_SPARE: usize = 1 << 20;

    /// `audited`: the body itself stays, for the audit log.
    pub(crate) fn new(audited: bool) -> RequestBody {
        RequestBody { audited, ..RequestBody::default() }
    }

    /// The body as it came; `None` if it was not kept or there was none.
    pub(crate) fn kept(&self) -> Option<&[u8]> {
        (self.audited && self.begun).then_some(&*self.shown)
    }

    /// Others read the body after its end, until it is [released](RequestBody::release).
    pub(crate) fn lend(&mut self) {
        self.lent = true;
    }

    /// See [`lend`](RequestBody::lend).
    pub(crate) fn is_lent(&self) -> bool {
        self.lent
    }

    /// The body as it was shown, if anybody reads it.
    pub(crate) fn shown(&self) -> &[u8] {
        &self.shown
    }

    /// Drops what has been shown.
    pub(crate) fn forget(&mut self) {
        (self.shown, self.as_sent) = (ByteBuf::new(), ByteBuf::new());
    }

    /// Those who read the body after its end have done so.
    pub(crate) fn release(&mut self) {
        self.lent = false;
        if !self.audited {
            self.shown = ByteBuf::new();
        }
    }

    /// Files are kept under names that begin so.
    pub(crate) fn name_files(&mut self, name: String) {
        self.files.name = Some(name);
    }

    /// Rules search XML bodies.
    pub(crate) fn make_tree(&mut self) {
        self.files.tree = Some(Box::new(Builder::new()));
    }

    /// The nodes that `path` selects, with their values.
    pub(crate) fn search(&self, path: &XPath) -> Vec<(u32, Span)> {
        let Some(StoredTree { tree, text, bytes }) = self.tree.as_deref() else { return Vec::new() };
        let selected = tree.select(path).into_iter().map(|node| {
            let (_, span, in_text) = tree.value(node);
            let base = if in_text { text } else { bytes };
            (node, Span { start: base + span.start, end: base + span.end })
        });
        selected.collect()
    }

    /// The document, where rules search it.
    pub(crate) fn tree(&self) -> Option<&Tree> {
        self.tree.as_deref().map(|stored| &stored.tree)
    }

    /// Bytes of memory that it takes beside the store.
    pub(crate) fn held_bytes(&self) -> usize {
        self.shown.held_bytes()
            + self.files.held_bytes()
            + self.files.tree.as_ref().map_or(0, |tree| tree.held_bytes())
            + self.tree.as_ref().map_or(0, |stored| stored.tree.held_bytes())
            + self.as_sent.held_bytes()
    }

    pub(crate) fn is_over_no_files_limit(&self) -> bool {
        self.over_no_files_limit
    }

    fn store_tree(&mut self, store: &mut Values) {
        match self.files.tree.take().map(|tree| tree.finish()) {
            None | Some(Ok(None)) => {}
            Some(Ok(Some(tree))) => {
                let (text, bytes) = (store.push(&tree.text).start, store.push(&tree.bytes).start);
                self.tree = Some(Box::new(StoredTree { tree, text, bytes }));
            }
            Some(Err(why)) => drop(self.error.get_or_insert_with(|| why.message().to_owned())),
        }
    }

    pub(crate) fn set_content_type(&mut self, value: &[u8]) {
        if self.content_type.is_empty() {
            self.content_type = value.to_vec();
        }
    }

    pub(crate) fn content_type(&self) -> &[u8] {
        &self.content_type
    }

    /// The query has so many arguments that are not among the values.
    pub(crate) fn count_arguments(&mut self, count: usize) {
        self.other_arguments = count;
    }

    pub(crate) fn announce(&mut self) {
        self.announced = true;
    }

    pub(crate) fn choose_processor(&mut self) {
        self.processor = BodyProcessor::native(&self.content_type);
    }

    pub(crate) fn set_processor(&mut self, processor: BodyProcessor) {
        self.processor = Some(processor);
    }

    pub(crate) fn make_xml_args(&mut self, args: XmlArgs) {
        self.xml_args = Some(args);
    }

    pub(crate) fn force_variable(&mut self, on: bool) {
        self.forced = on;
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended
    }

    pub(crate) fn processor(&self) -> Option<BodyProcessor> {
        self.processor
    }

    /// The parser of the body, if the body is a form or JSON, has no error, and any other parser would have
    /// read it the same way.
    pub(crate) fn plain_processor(&self) -> Option<BodyProcessor> {
        let is_shared = |processor: &BodyProcessor| {
            self.is_usual
                && self.is_plain
                && matches!(processor, BodyProcessor::UrlEncoded | BodyProcessor::Json)
        };
        self.processor.filter(is_shared)
    }

    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    pub(crate) fn files_combined_size(&self) -> u64 {
        self.files.combined_size
    }

    /// The bytes of the file that an entry of `FILES_TMPNAMES` stands for.
    pub(crate) fn file_content(&self, name: ValueId) -> Option<Span> {
        self.files.contents.iter().find(|(known, _)| *known == name).map(|(_, content)| *content)
    }

    pub(crate) fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }

    pub(crate) fn ambiguities(&self) -> Ambiguities {
        self.ambiguities
    }

    /// The next bytes. `streamed`: `STREAM_INPUT_BODY` has a value.
    pub(crate) fn feed(&mut self, chunk: &[u8], settings: &Settings, streamed: bool) {
        if chunk.is_empty() {
            return;
        }
        if !self.begun {
            self.begun = true;
            self.is_read = self.processor.is_some()
                || self.lent
                || self.audited
                || streamed
                || self.has_variable(settings);
            self.is_guessed = !self.is_read
                && settings.second_readings
                && Undeclared::applies(self.processor, &self.content_type);
        }
        self.length += chunk.len() as u64;
        if self.is_read || self.is_guessed {
            self.shown.extend_from_slice(chunk);
        }
        if self.is_guessed && Undeclared::is_settled(self.processor, &self.shown) {
            self.is_guessed = false;
            self.forget();
        }
    }

    /// The next bytes of the body with the frame that [`feed`](RequestBody::feed) does not show. They count
    /// where it is a form, whose parser would read on behind a part of the frame.
    pub(crate) fn feed_as_sent(&mut self, chunk: &[u8]) {
        if matches!(self.processor, Some(BodyProcessor::UrlEncoded | BodyProcessor::Multipart)) {
            self.as_sent.extend_from_slice(chunk);
        }
    }

    /// `REQUEST_BODY` may have a value.
    fn has_variable(&self, settings: &Settings) -> bool {
        settings.modsecurity3 || self.forced || self.processor == Some(BodyProcessor::UrlEncoded)
    }

    /// Takes the body apart. The report is that of the parser, if there is one.
    fn parse(&mut self, settings: &Settings, store: &mut Values, keep_files: bool) -> Option<Report> {
        let options = self.options(settings, store);
        let usual = Options::default();
        self.is_usual = options.second_readings
            && options.separator == usual.separator
            && options.json_names == usual.json_names
            && options.boundary_parameters == usual.boundary_parameters
            && options.limits.json_depth_max == usual.limits.json_depth_max;
        self.files.texts_max = store
            .bytes()
            .len()
            .saturating_add(self.shown.len().saturating_mul(RequestBody::TEXTS_FACTOR))
            .saturating_add(RequestBody::TEXTS_SPARE);
        // The values of a form are mostly parts of its text, which is stored once.
        let at = (self.processor == Some(BodyProcessor::UrlEncoded)).then(|| {
            if self.shown.len() >= LARGE_BYTES_MIN {
                let separators = self.shown.iter().filter(|byte| **byte == options.separator).count();
                let arguments = (separators + 1).min(options.limits.arguments_max);
                store.expect_pairs((Class::ArgsPost, Class::ArgsPostNames), arguments, self.shown.len());
            }
            store.push(&self.shown)
        });
        if let Some(at) = at {
            store.set_scalar_span(Variable::RequestBody, at);
        }
        let report = self.processor.map(|processor| {
            let parser = BodyParser::new(processor, &self.content_type, &options);
            let mut sink = Sink { at, ..Sink::with_files(store, &mut self.files, keep_files) };
            parser.whole(&self.shown, &mut sink)
        });
        if settings.second_readings
            && let Some(mut undeclared) = Undeclared::new(self.processor, &self.content_type, &options)
        {
            let mut sink = Sink::with_files(store, &mut self.files, keep_files);
            undeclared.feed(&self.shown, &mut sink);
            undeclared.finish(&mut sink);
        }
        report
    }

    /// `truncated`: the rest of the body was not shown; that its end is missing is no error then.
    pub(crate) fn finish(
        &mut self,
        access: bool,
        truncated: bool,
        settings: &Settings,
        store: &mut Values,
        keep_files: bool,
    ) {
        self.ended = true;
        // An announced body is parsed even if it is empty, as in ModSecurity 2.
        self.begun |= self.announced && access;
        let report = match self.begun {
            true => self.parse(settings, store, keep_files),
            false => None,
        };
        let as_sent = std::mem::take(&mut self.as_sent);
        if let Some(processor) = self.processor.filter(|_| settings.second_readings && !as_sent.is_empty()) {
            let options = self.options(settings, store);
            let parser = BodyParser::new(processor, &self.content_type, &options);
            // Its errors are not those of the body.
            parser.whole(&as_sent, &mut Readings(Sink::new(store, BODY, false)));
        }
        self.files.store_xml(store);
        let mut flags = MultipartFlags::default();
        if let Some(report) = report {
            self.is_plain = !truncated && report.error.is_none() && report.ambiguities.is_empty();
            flags = self.report(report, truncated, store);
        }
        if self.files.is_full {
            self.is_plain = false;
            self.error.get_or_insert_with(|| {
                "The names and values of the arguments take more than four times the length of the body."
                    .to_owned()
            });
        }
        // As in ModSecurity 2, REQUEST_BODY is there for forms and, by force, where nothing else took the
        // body apart, be it that its parser failed (modsecurity_request_body_end).
        let is_form = self.processor == Some(BodyProcessor::UrlEncoded);
        let parsed = !settings.modsecurity3 && self.processor.is_some() && self.error.is_none();
        if self.begun && !is_form && !parsed && self.has_variable(settings) {
            store.set_scalar(Variable::RequestBody, &self.shown);
        }
        self.store_tree(store);
        // As in ModSecurity 2: bodies without a parser count only where a rule wants to see them.
        let counts = match self.processor {
            Some(BodyProcessor::Multipart) => false,
            Some(_) => true,
            None => self.forced,
        };
        let limit = settings.request_body_no_files_limit.unwrap_or(u64::MAX);
        if counts && self.length > 0 && self.length >= limit {
            self.over_no_files_limit = true;
        }
        if self.over_no_files_limit && self.error.is_none() {
            self.error = Some(format!(
                "Request body no files data length is larger than the configured limit ({limit})."
            ));
        }
        let names: Vec<&str> = self.ambiguities.iter().map(|ambiguity| ambiguity.name()).collect();
        if !names.is_empty() {
            store.set_scalar(Variable::ReqbodyAmbiguity, names.join(" ").as_bytes());
        }
        set_flag(store, Variable::InboundDataError, truncated || self.over_no_files_limit);
        set_flags(store, &flags);
        if settings.modsecurity3 && flags.unmatched_boundary() {
            store.set_scalar(Variable::MultipartUnmatchedBoundary, b"2");
        }
        if let Some(error) = &self.error {
            set_error(store, error);
        }
    }

    /// How it is to be read, by the settings and the rules that changed them.
    fn options(&self, settings: &Settings, store: &Values) -> Options {
        Options {
            limits: limits(settings, store.class_len(Class::ArgsGet) + self.other_arguments),
            separator: settings.argument_separator,
            json_names: if settings.modsecurity3 { JsonNames::ModSecurity3 } else { JsonNames::ModSecurity2 },
            boundary_parameters: settings.modsecurity3,
            second_readings: settings.second_readings,
            xml_args: self.xml_args.unwrap_or(settings.xml_args),
            doctype: if settings.xml_external_dtd { Doctype::SkipExternal } else { Doctype::Refuse },
        }
    }

    fn report(&mut self, report: Report, truncated: bool, store: &mut Values) -> MultipartFlags {
        if report.invalid_encodings > 0 {
            store.set_scalar(Variable::UrlencodedError, b"1");
        }
        let is_limit =
            |kind: &BodyErrorKind| matches!(kind, BodyErrorKind::Multipart(MultipartError::NoFilesLimit(_)));
        self.over_no_files_limit = report.error.as_ref().is_some_and(|error| is_limit(&error.kind));
        if !truncated || self.over_no_files_limit {
            self.error = report.error.map(|error| error.to_string());
        }
        self.ambiguities = report.ambiguities;
        let mut flags = report.multipart;
        flags.error &= !truncated;
        flags
    }
}

/// Memory for the values of a body of this length is reserved at once: what grows by doubling would take up
/// to three times as much.
const LARGE_BYTES_MIN: usize = 64 << 10;

/// ModSecurity counts query and body arguments together; `used` is what the query took.
fn limits(settings: &Settings, used: usize) -> Limits {
    Limits {
        arguments_max: match settings.arguments_max() {
            usize::MAX => usize::MAX,
            limit => limit.saturating_sub(used),
        },
        json_depth_max: settings.json_depth_limit as usize,
        multipart_files_max: settings.upload_file_limit as usize,
        no_files_bytes_max: settings.request_body_no_files_limit.unwrap_or(u64::MAX),
        ..Limits::default()
    }
}
