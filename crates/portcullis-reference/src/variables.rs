//! The values of variables.

use bstr::BString;
use portcullis_types::{Phase, Variable, reason_phrase};

use crate::rules::{Chain, Select};
use crate::text::escape_key;
use crate::transaction::{File, Pair, Transaction, Value};

/// Every value that a target stands for, in order. Follows the `var_..._generate` functions of
/// `re_variables.c`.
///
/// `chain` is the rule that asks, for `RULE:...`. `None`: the variable is not evaluated here.
#[expect(clippy::wildcard_enum_match_arm, reason = "every other variable is a scalar")]
pub(crate) fn values(
    transaction: &Transaction<'_>,
    variable: Variable,
    select: &Select,
    chain: &Chain,
) -> Option<Vec<Value>> {
    if let Some(pairs) = collection(transaction, variable) {
        return Some(selected(variable, select, pairs));
    }
    match variable {
        Variable::MatchedVars => {
            return Some(matched(transaction, select, |value| value.value.clone()));
        }
        Variable::MatchedVarsNames => {
            return Some(matched(transaction, select, |value| value.name.clone()));
        }
        Variable::Xml => return Some(xml(transaction, select)),
        Variable::Rule => return Some(rule(select, chain)),
        _ => {}
    }
    let value = scalar(transaction, variable)?;
    Some(value.into_iter().map(|value| Value { name: variable.name().into(), value }).collect())
}

/// Returns the readings of a variable's values by other applications, beside [`values`]. Nothing counts them.
#[expect(clippy::wildcard_enum_match_arm, reason = "only arguments and XML have second readings")]
pub(crate) fn second_readings(
    transaction: &Transaction<'_>,
    variable: Variable,
    select: &Select,
) -> Vec<Value> {
    let (query, body) = (&transaction.query_readings, &transaction.body_readings);
    let pairs = match variable {
        Variable::Args => [query.args.as_slice(), &body.args].concat(),
        Variable::ArgsGet => query.args.clone(),
        Variable::ArgsPost => body.args.clone(),
        Variable::ArgsNames => [query.names.as_slice(), &body.names].concat(),
        Variable::ArgsGetNames => query.names.clone(),
        Variable::ArgsPostNames => body.names.clone(),
        Variable::Xml if matches!(select, Select::XmlText) => {
            let named = |value: &BString| Value { name: "XML".into(), value: value.clone() };
            return transaction.xml_readings.iter().map(named).collect();
        }
        _ => return Vec::new(),
    };
    selected(variable, select, pairs)
}

/// True if [`values`] knows the variable.
pub(crate) fn is_evaluated(variable: Variable) -> bool {
    let request = crate::Request::get("/");
    let settings = crate::load::Settings::default();
    let transaction = Transaction::new(&request, &settings);
    matches!(variable, Variable::MatchedVars | Variable::MatchedVarsNames | Variable::Xml | Variable::Rule)
        || collection(&transaction, variable).is_some()
        || scalar(&transaction, variable).is_some()
}

fn selected(variable: Variable, select: &Select, pairs: Vec<Pair>) -> Vec<Value> {
    let wanted = pairs.into_iter().filter(|(key, _)| match select {
        Select::All => true,
        Select::Key(wanted) => key.eq_ignore_ascii_case(wanted),
        Select::Regex(regex) => regex.is_match(key),
        Select::XmlText | Select::XmlAttributes | Select::XPath(..) => false,
    });
    let name = |key: &[u8]| [variable.name().as_bytes(), b":", &escape_key(key)].concat().into();
    wanted.map(|(key, value)| Value { name: name(&key), value }).collect()
}

/// The pairs of a collection; `None` if the variable is no collection of pairs.
#[expect(clippy::wildcard_enum_match_arm, reason = "every other variable is not a collection")]
fn collection(transaction: &Transaction<'_>, variable: Variable) -> Option<Vec<Pair>> {
    let request = transaction.request;
    let names = |pairs: &[Pair]| pairs.iter().map(|(key, _)| (key.clone(), key.clone())).collect();
    let all_args = || [transaction.query_args.as_slice(), &transaction.body_args].concat();
    let response = request.response.as_ref().filter(|_| !transaction.no_response);
    let response_headers = || response.map_or(&[][..], |r| &r.headers);
    Some(match variable {
        Variable::Args => all_args(),
        Variable::ArgsGet => transaction.query_args.clone(),
        Variable::ArgsPost => transaction.body_args.clone(),
        Variable::ArgsNames => names(&all_args()),
        Variable::ArgsGetNames => names(&transaction.query_args),
        Variable::ArgsPostNames => names(&transaction.body_args),
        Variable::RequestHeaders => request.headers.clone(),
        Variable::RequestHeadersNames => names(&request.headers),
        Variable::RequestCookies => transaction.cookies.clone(),
        Variable::RequestCookiesNames => names(&transaction.cookies),
        Variable::ResponseHeaders => response_headers().to_vec(),
        Variable::ResponseHeadersNames => names(response_headers()),
        Variable::Files => transaction.files.iter().map(|f| (f.field.clone(), f.name.clone())).collect(),
        Variable::FilesNames => {
            transaction.files.iter().map(|f| (f.field.clone(), f.field.clone())).collect()
        }
        Variable::MultipartName => transaction.part_names.clone(),
        Variable::MultipartFilename => transaction.part_filenames.clone(),
        Variable::FilesSizes => {
            transaction.files.iter().map(|f| (f.field.clone(), f.size.to_string().into())).collect()
        }
        Variable::FilesTmpContent => {
            kept(transaction).map(|f| (f.field.clone(), f.content.clone())).collect()
        }
        Variable::MultipartPartHeaders => transaction.part_headers.clone(),
        Variable::Tx => transaction.tx.clone(),
        Variable::Env => transaction.env.clone(),
        Variable::Global | Variable::Ip | Variable::Resource | Variable::Session | Variable::User => {
            let open = transaction.collections.iter().find(|(v, _)| *v == variable);
            open.map(|(_, open)| open.pairs.clone()).unwrap_or_default()
        }
        Variable::FilesTmpnames => {
            kept(transaction).zip(1..).map(|(f, n)| (f.field.clone(), format!("upload-{n}").into())).collect()
        }
        Variable::Geo => transaction.geo.clone(),
        Variable::PerfRules => Vec::new(),
        _ => return None,
    })
}

/// The files whose content is kept: not those beyond `SecUploadFileLimit`.
fn kept<'t>(transaction: &'t Transaction<'_>) -> impl Iterator<Item = &'t File> {
    transaction.files.iter().filter(|file| file.size == 0 || !file.content.is_empty())
}

/// `MATCHED_VARS`: the names are those of the variables that matched.
fn matched(transaction: &Transaction<'_>, select: &Select, what: fn(&Value) -> BString) -> Vec<Value> {
    let wanted = transaction.matched_list.iter().filter(|value| match select {
        Select::All => true,
        Select::Key(wanted) => value.name.eq_ignore_ascii_case(wanted),
        Select::Regex(regex) => regex.is_match(&value.name),
        Select::XmlText | Select::XmlAttributes | Select::XPath(..) => false,
    });
    wanted.map(|value| Value { name: value.name.clone(), value: what(value) }).collect()
}

fn xml(transaction: &Transaction<'_>, select: &Select) -> Vec<Value> {
    let named = |value: &BString| Value { name: "XML".into(), value: value.clone() };
    let Some((text, attributes, document)) = &transaction.xml else { return Vec::new() };
    match select {
        Select::All => vec![named(&"[XML document tree]".into())],
        Select::XmlText => vec![named(text)],
        Select::XmlAttributes => attributes.iter().map(named).collect(),
        Select::XPath(path, spaces) => {
            document.select(path, spaces).unwrap_or_default().iter().map(named).collect()
        }
        Select::Key(_) | Select::Regex(_) => Vec::new(),
    }
}

/// The nodes that the values of `XML` with a path are the texts of, one for each.
pub(crate) fn xml_nodes(transaction: &Transaction<'_>, select: &Select) -> Vec<usize> {
    let Some((_, _, document)) = &transaction.xml else { return Vec::new() };
    let nodes = match select {
        Select::XmlText => document.nodes("/*", &[]),
        Select::XmlAttributes => document.nodes("//@*", &[]),
        Select::XPath(path, spaces) => document.nodes(path, spaces),
        Select::All | Select::Key(_) | Select::Regex(_) => return Vec::new(),
    };
    nodes.unwrap_or_default()
}

fn rule(select: &Select, chain: &Chain) -> Vec<Value> {
    use portcullis_seclang::ast::Action;
    let Select::Key(key) = select else { return Vec::new() };
    let starter = chain.starter();
    let value: Option<BString> = match key.to_ascii_lowercase().as_slice() {
        b"id" => Some(chain.id.to_string().into()),
        b"msg" => starter.msg().cloned(),
        b"rev" => starter.last(|a| if let Action::Rev(text) = a { Some(text.clone()) } else { None }),
        b"ver" => starter.last(|a| if let Action::Ver(text) = a { Some(text.clone()) } else { None }),
        b"logdata" => starter.last(|a| if let Action::LogData(text) = a { Some(text.clone()) } else { None }),
        b"severity" => starter
            .last(|a| if let Action::Severity(s) = a { Some(s.number().to_string().into()) } else { None }),
        b"maturity" => {
            starter.last(|a| if let Action::Maturity(n) = a { Some(n.to_string().into()) } else { None })
        }
        b"accuracy" => {
            starter.last(|a| if let Action::Accuracy(n) = a { Some(n.to_string().into()) } else { None })
        }
        _ => None,
    };
    value.into_iter().map(|value| Value { name: "RULE".into(), value }).collect()
}

/// The value of a variable that has one at most. `None`: not evaluated here; `Some(None)`: there is no value
/// now.
#[expect(clippy::wildcard_enum_match_arm, reason = "every other variable has no value here")]
fn scalar(transaction: &Transaction<'_>, variable: Variable) -> Option<Option<BString>> {
    let request = transaction.request;
    let (raw_path, query) = request.path_and_query();
    // Apache takes the percent signs off the path between phase 1 and phase 2
    // (`ap_process_request_internal`).
    let path = if transaction.phase.number() > 1 { unescape(raw_path) } else { raw_path.to_vec() };
    // libmodsecurity takes all up to the first question mark, and unescapes it at once (from 3.0.12 on in
    // this order).
    let whole_path = unescape(request.uri.split(|&b| b == b'?').next().unwrap_or_default());
    let path = if transaction.modsecurity3 { whole_path.as_slice() } else { path.as_slice() };
    let flag = |on: bool| Some(BString::from(if on { "1" } else { "0" }));
    let number = |n: u64| Some(BString::from(n.to_string()));
    let response =
        request.response.as_ref().filter(|_| transaction.phase.number() >= 3 && !transaction.no_response);
    // The answer to an interrupted transaction is known when it is logged.
    let answered = transaction.answered.filter(|_| transaction.phase == Phase::Logging);
    let multipart = &transaction.multipart;
    Some(match variable {
        Variable::ArgsCombinedSize => {
            let all = transaction.query_args.iter().chain(&transaction.body_args);
            number(all.map(|(key, value)| (key.len() + value.len()) as u64).sum())
        }
        Variable::FilesCombinedSize => number(transaction.files.iter().map(|file| file.size).sum()),
        Variable::HighestSeverity => number(transaction.highest_severity.into()),
        Variable::MatchedVar => transaction.matched.as_ref().map(|value| value.value.clone()),
        Variable::MatchedVarName => transaction.matched.as_ref().map(|value| value.name.clone()),
        Variable::MultipartBoundaryQuoted => flag(multipart.boundary_quoted),
        Variable::MultipartBoundaryWhitespace => flag(multipart.boundary_whitespace),
        Variable::MultipartCrlfLfLines => flag(multipart.crlf_lf_lines()),
        Variable::MultipartDataAfter => flag(multipart.data_after),
        Variable::MultipartDataBefore => flag(multipart.data_before),
        Variable::MultipartFileLimitExceeded => flag(multipart.file_limit_exceeded),
        Variable::MultipartHeaderFolding => flag(multipart.header_folding),
        Variable::MultipartInvalidHeaderFolding => flag(multipart.invalid_header_folding),
        Variable::MultipartInvalidPart => flag(multipart.invalid_part),
        Variable::MultipartInvalidQuoting => flag(multipart.invalid_quoting),
        Variable::MultipartLfLine => flag(multipart.lf_line),
        Variable::MultipartMissingSemicolon => flag(multipart.missing_semicolon),
        Variable::MultipartStrictError => flag(multipart.strict_error()),
        Variable::MultipartUnmatchedBoundary if transaction.modsecurity3 => {
            number(if multipart.unmatched_boundary() { 2 } else { 0 })
        }
        Variable::MultipartUnmatchedBoundary => flag(multipart.unmatched_boundary()),
        Variable::InboundDataError | Variable::OutboundDataError => flag(false),
        Variable::UrlencodedError => flag(transaction.urlencoded_error),
        Variable::QueryString => query.map(BString::from),
        Variable::RemoteAddr | Variable::RemoteHost | Variable::UseragentIp => {
            Some(request.client.to_string().into())
        }
        Variable::RemotePort => number(request.client_port.into()),
        Variable::ServerAddr => Some(request.server.to_string().into()),
        Variable::ServerPort => number(request.server_port.into()),
        Variable::ServerName => transaction.header("Host").map(|host| host_name(host).into()),
        Variable::UniqueId => Some(request.unique_id.clone()),
        Variable::ReqbodyAmbiguity => transaction.ambiguities.clone(),
        Variable::ReqbodyError | Variable::ReqbodyProcessorError => flag(transaction.body_error.is_some()),
        Variable::ReqbodyErrorMsg | Variable::ReqbodyProcessorErrorMsg => {
            Some(transaction.body_error.clone().unwrap_or_default())
        }
        Variable::ReqbodyProcessor => Some(transaction.processor.map_or("", |p| p.name()).into()),
        Variable::RequestBasename => {
            let start = path.iter().rposition(|b| b"/\\".contains(b)).map_or(0, |at| at + 1);
            Some(path[start..].into())
        }
        Variable::RequestBody => transaction.request_body.clone(),
        Variable::RequestBodyLength => number(transaction.request_body_length as u64),
        Variable::RequestFilename => Some(path.into()),
        Variable::RequestLine => Some(request.line.clone()),
        Variable::RequestMethod => Some(request.method.clone()),
        Variable::RequestProtocol => Some(request.protocol.clone()),
        Variable::RequestUri if transaction.modsecurity3 => {
            let uri = query.map_or(raw_path.to_vec(), |query| [raw_path, b"?", query].concat());
            Some(unescape(&uri).into())
        }
        Variable::RequestUri => Some(query.map_or(path.into(), |query| [path, b"?", query].concat().into())),
        Variable::RequestUriRaw => Some(request.uri.clone()),
        Variable::StreamInputBody => transaction.request_stream.clone(),
        Variable::StreamOutputBody => transaction.response_stream.clone(),
        Variable::ResponseBody => transaction.response_body.clone(),
        Variable::ResponseStatus => match answered {
            Some(status) => number(status.into()),
            None => number(response.map_or(0, |r| r.status.into())),
        },
        Variable::StatusLine => {
            let status = answered.or_else(|| response.map(|r| r.status));
            status.map(|status| match transaction.modsecurity3 {
                true => status.to_string().into(),
                false => format!("{status} {}", reason_phrase(status)).into(),
            })
        }
        Variable::ResponseProtocol => {
            let own = answered.map(|_| request.protocol.clone());
            response.map(|r| r.protocol.clone()).or(own)
        }
        Variable::ResponseContentType => response.and_then(|r| {
            let mut headers = r.headers.iter();
            headers
                .find(|(name, _)| name.eq_ignore_ascii_case(b"Content-Type"))
                .map(|(_, value)| value.clone())
        }),
        Variable::ResponseContentLength => response.map(|r| r.body.len().to_string().into()),
        Variable::Sessionid => transaction.session_id.clone(),
        Variable::Userid => transaction.user_id.clone(),
        Variable::Webappid => Some(transaction.web_app_id.clone()),
        Variable::Time
        | Variable::TimeDay
        | Variable::TimeEpoch
        | Variable::TimeHour
        | Variable::TimeMin
        | Variable::TimeMon
        | Variable::TimeSec
        | Variable::TimeWday
        | Variable::TimeYear => Some(time(request.time, variable)),
        Variable::SdbmDeleteError => flag(false),
        Variable::PathInfo => Some(path.into()),
        Variable::ModsecBuild => Some("020907900".into()),
        Variable::MultipartCrlfLine => flag(multipart.crlf_line),
        Variable::FullRequestLength => {
            let headers = request.headers.iter().map(|(name, value)| name.len() + value.len() + 3);
            number((headers.sum::<usize>() + 1 + transaction.request_body_length + 1) as u64)
        }
        Variable::FullRequest => {
            let mut text = [request.line.as_slice(), b"\n\n"].concat();
            for (name, value) in &request.headers {
                text.extend([name.as_slice(), b": ", value, b"\n"].concat());
            }
            text.push(b'\n');
            text.extend(transaction.request_body.iter().flat_map(|body| body.iter()));
            Some(text.into())
        }
        _ => return None,
    })
}

/// With `%hh` decoded; a percent sign without two hex digits stays.
fn unescape(path: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut at = 0;
    while at < path.len() {
        let digits =
            path.get(at + 1..at + 3).filter(|_| path[at] == b'%').and_then(|d| std::str::from_utf8(d).ok());
        let byte =
            digits.filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit())).map(|d| u8::from_str_radix(d, 16));
        if let Some(Ok(byte)) = byte {
            out.push(byte);
            at += 3;
        } else {
            out.push(path[at]);
            at += 1;
        }
    }
    out
}

/// A `Host` field without its port.
fn host_name(host: &[u8]) -> &[u8] {
    let end = match host.iter().position(|&b| b == b']') {
        Some(bracket) => bracket + 1,
        None => host.iter().position(|&b| b == b':').unwrap_or(host.len()),
    };
    &host[..end]
}

/// The clock in UTC.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the caller passes the variables of time, of which TIME is left"
)]
fn time(at: std::time::SystemTime, variable: Variable) -> BString {
    let seconds = at.duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_secs());
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Counting days from 1 January 1970, one year and one month at a time: dull, and right.
    let is_leap =
        |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let (mut year, mut day) = (1970, days);
    while day >= if is_leap(year) { 366 } else { 365 } {
        day -= if is_leap(year) { 366 } else { 365 };
        year += 1;
    }
    let lengths = [31, if is_leap(year) { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while day >= lengths[month] {
        day -= lengths[month];
        month += 1;
    }
    let (month, day) = (month + 1, day + 1);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    match variable {
        Variable::TimeDay => format!("{day:02}"),
        Variable::TimeEpoch => format!("{seconds}"),
        Variable::TimeHour => format!("{hour:02}"),
        Variable::TimeMin => format!("{minute:02}"),
        Variable::TimeMon => format!("{month:02}"),
        Variable::TimeSec => format!("{second:02}"),
        Variable::TimeWday => format!("{}", (days + 4) % 7),
        Variable::TimeYear => format!("{year}"),
        _ => format!("{year:04}{month:02}{day:02}{hour:02}{minute:02}{second:02}"),
    }
    .into()
}
