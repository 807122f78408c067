//! The state of a request while its phases run.

use bstr::BString;
use portcullis_http::body::content_type::Processor;
use portcullis_http::body::{
    MultipartFlags, XmlArgs, overrides_url, overriding_query, parse_query, parse_query_twice, path_parameters,
};
use portcullis_http::cookie::{self, CookieFormat};
use portcullis_match::Pcre;
use portcullis_seclang::ast::{AllowScope, IdRange};
use portcullis_seclang::settings::RuleEngine;
use portcullis_types::{Phase, Variable};

use crate::Request;
use crate::body::{Args, Readings};
use crate::collections::{Database, Open, new_record};
use crate::load::Settings;
use crate::rules::LoadedTarget;
use crate::xpath::Document;

/// A key and a value of a collection.
pub(crate) type Pair = (BString, BString);

/// A file of a multipart body.
#[derive(Clone, Debug, Default)]
pub(crate) struct File {
    pub(crate) field: BString,
    pub(crate) name: BString,
    pub(crate) content: BString,
    pub(crate) size: u64,
}

/// A value with the name of its variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Value {
    pub(crate) name: BString,
    pub(crate) value: BString,
}

/// Rules that a `ctl` speaks of.
pub(crate) enum Chosen {
    Ids(Vec<IdRange>),
    Tag(Pcre),
    Msg(Pcre),
}

/// The state of a transaction. Collections are lists in the order in which their values came.
pub(crate) struct Transaction<'r> {
    pub(crate) request: &'r Request,
    pub(crate) phase: Phase,
    pub(crate) engine: RuleEngine,
    /// As in `SecCompatibility ModSecurity3`.
    pub(crate) modsecurity3: bool,
    pub(crate) allowed: Option<AllowScope>,
    /// An interruption came before there was a response.
    pub(crate) no_response: bool,
    /// The status of the answer to an interrupted transaction.
    pub(crate) answered: Option<u16>,
    pub(crate) request_body_access: bool,
    pub(crate) response_body_access: bool,
    pub(crate) force_request_body: bool,
    pub(crate) processor: Option<Processor>,
    pub(crate) xml_args: Option<XmlArgs>,

    pub(crate) query_args: Vec<Pair>,
    pub(crate) body_args: Vec<Pair>,
    pub(crate) query_readings: Readings,
    pub(crate) body_readings: Readings,
    pub(crate) xml_readings: Vec<BString>,
    /// Known once the body has been read, if there is one.
    pub(crate) ambiguities: Option<BString>,
    pub(crate) cookies: Vec<Pair>,
    pub(crate) files: Vec<File>,
    pub(crate) part_headers: Vec<Pair>,
    pub(crate) part_names: Vec<(BString, BString)>,
    pub(crate) part_filenames: Vec<(BString, BString)>,
    /// The text of an XML body, its attribute values and its nodes, once its root has started.
    pub(crate) xml: Option<(BString, Vec<BString>, Document)>,
    pub(crate) request_body: Option<BString>,
    pub(crate) request_body_length: usize,
    pub(crate) response_body: Option<BString>,
    /// `STREAM_INPUT_BODY` and `STREAM_OUTPUT_BODY`.
    pub(crate) request_stream: Option<BString>,
    pub(crate) response_stream: Option<BString>,
    /// `@rsub` has been at work on them.
    pub(crate) streams_changed: (bool, bool),
    /// `prepend` and `append`.
    pub(crate) around_response: (BString, BString),
    pub(crate) multipart: MultipartFlags,
    pub(crate) urlencoded_error: bool,
    pub(crate) body_error: Option<BString>,

    pub(crate) tx: Vec<Pair>,
    /// Collections that `initcol` and its kin opened.
    pub(crate) collections: Vec<(Variable, Open)>,
    /// The data that earlier transactions left.
    pub(crate) database: Database,
    /// `SecWebAppId`.
    pub(crate) web_app_id: &'r BString,
    /// `SecCollectionTimeout`.
    pub(crate) collection_timeout: i64,
    pub(crate) env: Vec<Pair>,
    pub(crate) geo: Vec<Pair>,
    pub(crate) session_id: Option<BString>,
    pub(crate) user_id: Option<BString>,
    pub(crate) matched: Option<Value>,
    pub(crate) matched_list: Vec<Value>,
    /// 255 until a rule with a severity matches.
    pub(crate) highest_severity: u8,
    pub(crate) removed: Vec<Chosen>,
    pub(crate) removed_targets: Vec<(Chosen, LoadedTarget)>,
}

impl<'r> Transaction<'r> {
    /// The state before phase 1. Follows `modsecurity_tx_init`.
    pub(crate) fn new(request: &'r Request, settings: &'r Settings) -> Self {
        let mut transaction = Transaction {
            request,
            phase: Phase::RequestHeaders,
            engine: settings.engine,
            modsecurity3: settings.modsecurity3,
            allowed: None,
            no_response: false,
            answered: None,
            request_body_access: settings.request_body_access,
            response_body_access: settings.response_body_access,
            force_request_body: false,
            processor: None,
            xml_args: None,
            query_args: Vec::new(),
            body_args: Vec::new(),
            query_readings: Readings::default(),
            body_readings: Readings::default(),
            xml_readings: Vec::new(),
            ambiguities: None,
            cookies: Vec::new(),
            files: Vec::new(),
            part_headers: Vec::new(),
            part_names: Vec::new(),
            part_filenames: Vec::new(),
            xml: None,
            request_body: None,
            request_body_length: 0,
            response_body: None,
            request_stream: None,
            response_stream: None,
            streams_changed: (false, false),
            around_response: (BString::default(), BString::default()),
            multipart: MultipartFlags::default(),
            urlencoded_error: false,
            body_error: None,
            tx: Vec::new(),
            collections: Vec::new(),
            database: Database::default(),
            web_app_id: &settings.web_app_id,
            collection_timeout: settings.collection_timeout,
            env: Vec::new(),
            geo: Vec::new(),
            session_id: None,
            user_id: None,
            matched: None,
            matched_list: Vec::new(),
            highest_severity: 255,
            removed: Vec::new(),
            removed_targets: Vec::new(),
        };
        if let Some(content_type) = transaction.header("Content-Type") {
            transaction.processor = Processor::native(content_type);
        }
        if let (_, Some(query)) = request.path_and_query() {
            let mut args = Args::default();
            let parse = if settings.body.second_readings { parse_query_twice } else { parse_query };
            let report = parse(query, settings.separator, &settings.body.limits, &mut args);
            transaction.query_args = args.0;
            transaction.query_readings = args.1;
            transaction.urlencoded_error = report.invalid_encodings > 0;
            transaction.body_error = report.error.map(|error| error.to_string().into());
        }
        if settings.body.second_readings {
            let mut args = Args::default();
            let limits = &settings.body.limits;
            path_parameters(request.path_and_query().0, limits, &mut args);
            for (_, url) in request.headers.iter().filter(|(name, _)| overrides_url(name)) {
                overriding_query(url, settings.separator, limits, &mut args);
            }
            transaction.query_readings.args.extend(args.1.args);
            transaction.query_readings.names.extend(args.1.names);
        }
        for (name, value) in &request.headers {
            if name.eq_ignore_ascii_case(b"Cookie") {
                // libmodsecurity knows one format and one separator.
                let (format, separator) = match settings.modsecurity3 {
                    true => (CookieFormat::V0, Some(b';')),
                    false => (settings.cookie_format, None),
                };
                for cookie in cookie::parse(value, format, separator).cookies {
                    let pair = (cookie.full_name(value).into_owned().into(), cookie.value(value).into());
                    transaction.cookies.push(pair);
                }
            }
        }
        transaction
    }

    /// The first request header of that name.
    pub(crate) fn header(&self, name: &str) -> Option<&'r [u8]> {
        let mut headers = self.request.headers.iter();
        headers.find(|(n, _)| n.eq_ignore_ascii_case(name.as_bytes())).map(|(_, value)| value.as_slice())
    }

    /// Seconds since 1970 when the request came.
    pub(crate) fn now(&self) -> i64 {
        let since = self.request.time.duration_since(std::time::UNIX_EPOCH);
        since.map_or(0, |time| i64::try_from(time.as_secs()).unwrap_or(i64::MAX))
    }

    /// The collection to write to, if it is open.
    pub(crate) fn collection_mut(&mut self, variable: Variable) -> Option<&mut Vec<Pair>> {
        if let Variable::Tx = variable {
            Some(&mut self.tx)
        } else {
            let (_, open) = self.collections.iter_mut().find(|(v, _)| *v == variable)?;
            open.changed = true;
            Some(&mut open.pairs)
        }
    }

    /// Opens a persistent collection under a key. Follows `init_collection`. `application`: the record is
    /// that of this application only.
    pub(crate) fn open_collection(&mut self, variable: Variable, key: BString, application: bool) {
        if self.collections.iter().any(|(v, _)| *v == variable) {
            return;
        }
        let name: BString = match application {
            true => format!("{}_{}", self.web_app_id, variable.name()).into(),
            false => variable.name().to_ascii_lowercase().into(),
        };
        let now = self.now();
        let stored = self.database.retrieve(&name, &key, now);
        let pairs = stored.unwrap_or_else(|| new_record(&name, &key, self.collection_timeout, now));
        self.collections.push((variable, Open { record: (name, key), pairs, changed: false }));
    }

    /// Follows `modsecurity_persist_data`.
    pub(crate) fn persist(&mut self) {
        let now = self.now();
        for (_, open) in self.collections.drain(..).filter(|(_, open)| open.changed) {
            self.database.store(open.record, open.pairs, now);
        }
    }
}

/// The value under a key, in any ASCII case.
pub(crate) fn get<'p>(pairs: &'p [Pair], key: &[u8]) -> Option<&'p BString> {
    pairs.iter().find(|(name, _)| name.eq_ignore_ascii_case(key)).map(|(_, value)| value)
}

/// Sets a value in its place, or at the end; other values under the key vanish. As `apr_table_setn` does.
pub(crate) fn set(pairs: &mut Vec<Pair>, key: BString, value: BString) {
    match pairs.iter().position(|(name, _)| name.eq_ignore_ascii_case(&key)) {
        None => pairs.push((key, value)),
        Some(at) => {
            let mut index = 0;
            pairs.retain(|(name, _)| {
                index += 1;
                index <= at + 1 || !name.eq_ignore_ascii_case(&key)
            });
            pairs[at] = (key, value);
        }
    }
}

/// Removes every value under a key.
pub(crate) fn unset(pairs: &mut Vec<Pair>, key: &[u8]) {
    pairs.retain(|(name, _)| !name.eq_ignore_ascii_case(key));
}
