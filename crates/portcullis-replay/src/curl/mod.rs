//! A curl command line to the request that it would send: what browsers' developer tools copy, and what
//! reports of false positives contain. Nothing is sent and no file is read.

mod form;
mod words;

use std::fmt;

use crate::message::Message;

/// The longest command line, in bytes.
const LINE_BYTES_MAX: usize = 1 << 20;

/// The reason why a command line stands for no request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CurlError {
    /// It is longer than 1 MiB.
    TooLong,
    /// A quotation has no end.
    OpenQuote(char),
    /// It does not begin with `curl`.
    NotCurl,
    /// It names no URL, or more than one.
    Urls(usize),
    /// The scheme of the URL is neither `http` nor `https`.
    Scheme(String),
    /// An option lacks its value.
    NoValue(String),
    /// An option is not known here.
    UnknownOption(String),
    /// An option reads a file.
    ReadsFile(String),
    /// A character ends the command: `|`, `;`, `&`, `<`, `>` outside of quotation marks.
    Shell(char),
    /// The URL holds a space, which curl refuses.
    Space,
    /// A text that goes into the head holds a line end.
    LineEnd(&'static str),
}

impl fmt::Display for CurlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CurlError::TooLong => write!(f, "the command line is longer than 1 MiB"),
            CurlError::OpenQuote(mark) => write!(f, "the quotation that begins with {mark} has no end"),
            CurlError::NotCurl => write!(f, "the line does not begin with `curl`"),
            CurlError::Urls(0) => write!(f, "the command names no URL"),
            CurlError::Urls(count) => write!(f, "the command names {count} URLs; give one"),
            CurlError::Scheme(url) => write!(f, "`{url}` is no URL of HTTP; write http:// or https://"),
            CurlError::NoValue(option) => write!(f, "the option {option} needs a value"),
            CurlError::UnknownOption(option) => {
                write!(
                    f,
                    "the option {option} is not known here; remove it if the request is the same without"
                )
            }
            CurlError::ReadsFile(option) => {
                write!(
                    f,
                    "the option {option} reads a file, which is not done here; write the content in its place"
                )
            }
            CurlError::Shell(sign) => {
                write!(f, "`{sign}` outside of quotation marks ends the command; quote it")
            }
            CurlError::Space => write!(f, "the URL holds a space; write %20"),
            CurlError::LineEnd(part) => write!(f, "{part} holds a line end; a head cannot"),
        }
    }
}

impl std::error::Error for CurlError {}

/// The request that a curl command line stands for, as curl sends it over HTTP/1.1.
///
/// ```
/// let request = portcullis_replay::read_curl("curl 'http://shop.example/search?q=1' -H 'Accept: text/html'")?;
/// assert!(request.bytes.starts_with(b"GET /search?q=1 HTTP/1.1\r\nHost: shop.example\r\n"));
/// # Ok::<(), portcullis_replay::CurlError>(())
/// ```
pub fn read_curl(line: &str) -> Result<Message, CurlError> {
    if line.len() > LINE_BYTES_MAX {
        return Err(CurlError::TooLong);
    }
    let words = words::split(line)?;
    let mut words = words.into_iter();
    let first = words.next().unwrap_or_default();
    let is_curl = |name: &[u8]| name.eq_ignore_ascii_case(b"curl") || name.eq_ignore_ascii_case(b"curl.exe");
    if !first.rsplit(|&b| matches!(b, b'/' | b'\\')).next().is_some_and(is_curl) {
        return Err(CurlError::NotCurl);
    }
    let mut command = Command::default();
    while let Some(word) = words.next() {
        command.take(word, &mut words)?;
    }
    command.request()
}

/// The kinds of options.
#[derive(Clone, Copy)]
enum Sort {
    /// Does not change the request; has no value.
    Aside,
    /// Does not change the request; has a value.
    AsideOf,
    Method,
    Head,
    Get,
    Header,
    Data(Data),
    Form,
    FormText,
    Json,
    Agent,
    Referer,
    Cookie,
    User,
    Url,
    Compressed,
    AsIs,
    Http10,
    RequestTarget,
}

/// The ways in which data are given.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Data {
    /// A text; `@` names a file.
    Text,
    /// A text in any case.
    Raw,
    /// A text that curl percent-encodes.
    Encoded,
}

/// Options of curl by their long and short names.
const OPTIONS: &[(&str, Option<u8>, Sort)] = &[
    ("request", Some(b'X'), Sort::Method),
    ("head", Some(b'I'), Sort::Head),
    ("get", Some(b'G'), Sort::Get),
    ("header", Some(b'H'), Sort::Header),
    ("data", Some(b'd'), Sort::Data(Data::Text)),
    ("data-ascii", None, Sort::Data(Data::Text)),
    ("data-binary", None, Sort::Data(Data::Text)),
    ("data-raw", None, Sort::Data(Data::Raw)),
    ("data-urlencode", None, Sort::Data(Data::Encoded)),
    ("json", None, Sort::Json),
    ("form", Some(b'F'), Sort::Form),
    ("form-string", None, Sort::FormText),
    ("user-agent", Some(b'A'), Sort::Agent),
    ("referer", Some(b'e'), Sort::Referer),
    ("cookie", Some(b'b'), Sort::Cookie),
    ("user", Some(b'u'), Sort::User),
    ("url", None, Sort::Url),
    ("compressed", None, Sort::Compressed),
    ("http1.0", Some(b'0'), Sort::Http10),
    ("request-target", None, Sort::RequestTarget),
    ("insecure", Some(b'k'), Sort::Aside),
    ("silent", Some(b's'), Sort::Aside),
    ("show-error", Some(b'S'), Sort::Aside),
    ("include", Some(b'i'), Sort::Aside),
    ("verbose", Some(b'v'), Sort::Aside),
    ("location", Some(b'L'), Sort::Aside),
    ("fail", Some(b'f'), Sort::Aside),
    ("globoff", Some(b'g'), Sort::Aside),
    ("no-buffer", Some(b'N'), Sort::Aside),
    ("path-as-is", None, Sort::AsIs),
    ("http1.1", None, Sort::Aside),
    ("http2", None, Sort::Aside),
    ("http2-prior-knowledge", None, Sort::Aside),
    ("http3", None, Sort::Aside),
    ("ipv4", Some(b'4'), Sort::Aside),
    ("ipv6", Some(b'6'), Sort::Aside),
    ("output", Some(b'o'), Sort::AsideOf),
    ("write-out", Some(b'w'), Sort::AsideOf),
    ("max-time", Some(b'm'), Sort::AsideOf),
    ("connect-timeout", None, Sort::AsideOf),
    ("retry", None, Sort::AsideOf),
    ("resolve", None, Sort::AsideOf),
    ("connect-to", None, Sort::AsideOf),
    ("cacert", None, Sort::AsideOf),
    ("cookie-jar", Some(b'c'), Sort::AsideOf),
    ("proxy", Some(b'x'), Sort::AsideOf),
    ("interface", None, Sort::AsideOf),
];

type Words = std::vec::IntoIter<Vec<u8>>;

/// Meaning of the options.
#[derive(Default)]
struct Command {
    urls: Vec<Vec<u8>>,
    method: Option<Vec<u8>>,
    head: bool,
    get: bool,
    http10: bool,
    target: Option<Vec<u8>>,
    /// Lines as given; those of options come behind.
    headers: Vec<Vec<u8>>,
    agent: Option<Vec<u8>>,
    referer: Option<Vec<u8>>,
    cookies: Vec<Vec<u8>>,
    user: Option<Vec<u8>>,
    compressed: bool,
    as_is: bool,
    data: Option<Vec<u8>>,
    json: bool,
    parts: Vec<form::Part>,
}

impl Command {
    /// Takes a word, and the values that it needs.
    fn take(&mut self, word: Vec<u8>, rest: &mut Words) -> Result<(), CurlError> {
        let show = |word: &[u8]| String::from_utf8_lossy(word).chars().take(60).collect::<String>();
        if let Some(name) = word.strip_prefix(b"--").filter(|name| !name.is_empty()) {
            let known = OPTIONS.iter().find(|(long, ..)| long.as_bytes() == name);
            let (.., sort) = known.ok_or_else(|| CurlError::UnknownOption(show(&word)))?;
            return self.option(&show(&word), *sort, None, rest);
        }
        let Some(letters) = word.strip_prefix(b"-").filter(|letters| !letters.is_empty()) else {
            self.urls.push(word);
            return Ok(());
        };
        // Several letters may share a dash; the first that has a value takes the rest.
        for (at, letter) in letters.iter().enumerate() {
            let option = show(&[b'-', *letter]);
            let known = OPTIONS.iter().find(|(_, short, _)| *short == Some(*letter));
            let (.., sort) = known.ok_or_else(|| CurlError::UnknownOption(option.clone()))?;
            let behind = &letters[at + 1..];
            let value = (!behind.is_empty()).then(|| behind.to_vec());
            if sort.has_value() {
                return self.option(&option, *sort, value, rest);
            }
            self.option(&option, *sort, None, rest)?;
        }
        Ok(())
    }

    fn option(
        &mut self,
        name: &str,
        sort: Sort,
        value: Option<Vec<u8>>,
        rest: &mut Words,
    ) -> Result<(), CurlError> {
        let value = match sort.has_value() {
            true => value.or_else(|| rest.next()).ok_or_else(|| CurlError::NoValue(name.to_owned()))?,
            false => Vec::new(),
        };
        let reads_file = || CurlError::ReadsFile(name.to_owned());
        match sort {
            Sort::Aside | Sort::AsideOf => {}
            Sort::Method => self.method = Some(value),
            Sort::Head => self.head = true,
            Sort::Get => self.get = true,
            Sort::Compressed => self.compressed = true,
            Sort::AsIs => self.as_is = true,
            Sort::Http10 => self.http10 = true,
            Sort::RequestTarget => self.target = Some(value),
            Sort::Header if value.starts_with(b"@") => return Err(reads_file()),
            Sort::Header => self.headers.push(value),
            Sort::Agent => self.agent = Some(value),
            Sort::Referer => self.referer = Some(value),
            Sort::Cookie if !value.contains(&b'=') => return Err(reads_file()),
            Sort::Cookie => self.cookies.push(value),
            Sort::User => self.user = Some(value),
            Sort::Url => self.urls.push(value),
            Sort::Data(Data::Text) | Sort::Json if value.starts_with(b"@") => return Err(reads_file()),
            Sort::Data(Data::Encoded) => {
                let data = form::encoded(&value).ok_or_else(reads_file)?;
                self.add_data(&data, b"&");
            }
            Sort::Data(_) => self.add_data(&value, b"&"),
            Sort::Json => {
                self.json = true;
                self.add_data(&value, b"");
            }
            Sort::Form => self.parts.push(form::Part::of(&value).ok_or_else(reads_file)?),
            Sort::FormText => self.parts.push(form::Part::text(&value)),
        }
        Ok(())
    }

    fn add_data(&mut self, more: &[u8], between: &[u8]) {
        match &mut self.data {
            Some(data) => {
                data.extend_from_slice(between);
                data.extend_from_slice(more);
            }
            None => self.data = Some(more.to_vec()),
        }
    }

    fn request(mut self) -> Result<Message, CurlError> {
        let url = match self.urls.as_slice() {
            [url] => Url::of(url, self.as_is)?,
            urls => return Err(CurlError::Urls(urls.len())),
        };
        let mut target = self.target.take().unwrap_or(url.target);
        let mut body = None;
        if !self.parts.is_empty() {
            self.headers.push(format!("Content-Type: {}", form::CONTENT_TYPE).into_bytes());
            body = Some(form::body(&self.parts));
        } else if let Some(data) = self.data.take() {
            match self.get {
                true => {
                    target.push(if target.contains(&b'?') { b'&' } else { b'?' });
                    target.extend_from_slice(&data);
                }
                false => body = Some(data),
            }
        }
        let method = self.method.clone().unwrap_or_else(|| match (&body, self.head) {
            (_, true) => b"HEAD".to_vec(),
            (Some(_), _) => b"POST".to_vec(),
            (None, _) => b"GET".to_vec(),
        });
        let version: &[u8] = if self.http10 { b"1.0" } else { b"1.1" };
        let mut bytes = [&method, &b" "[..], &target, b" HTTP/", version, b"\r\n"].concat();
        if target.contains(&b' ') {
            return Err(CurlError::Space);
        }
        if bytes[..bytes.len() - 2].iter().any(|b| matches!(b, b'\r' | b'\n')) {
            return Err(CurlError::LineEnd("the method or the URL"));
        }
        for line in self.fields(&url.host, url.user, body.as_deref()) {
            if line.iter().any(|b| matches!(b, b'\r' | b'\n')) {
                return Err(CurlError::LineEnd("a header"));
            }
            bytes.extend_from_slice(&line);
            bytes.extend_from_slice(b"\r\n");
        }
        bytes.extend_from_slice(b"\r\n");
        bytes.extend_from_slice(&body.unwrap_or_default());
        Ok(Message { bytes, notes: Vec::new() })
    }

    /// The lines of the head in curl's order: its own, unless a header says otherwise, the given ones, and
    /// those of the body.
    fn fields(&mut self, host: &[u8], user: Option<Vec<u8>>, body: Option<&[u8]>) -> Vec<Vec<u8>> {
        let mut given = std::mem::take(&mut self.headers);
        if self.json {
            let own = ["Content-Type: application/json", "Accept: application/json"];
            let missing =
                own.iter().filter(|line| !names(&given, line.split(':').next().unwrap_or_default()));
            let missing: Vec<Vec<u8>> = missing.map(|line| line.as_bytes().to_vec()).collect();
            given.extend(missing);
        }
        let mut own: Vec<(&str, Vec<u8>)> = vec![("Host", host.to_vec())];
        if let Some(mut user) = self.user.take().or(user) {
            // curl asks for the password that is missing.
            if !user.contains(&b':') {
                user.push(b':');
            }
            own.push(("Authorization", [&b"Basic "[..], form::base64(&user).as_bytes()].concat()));
        }
        own.push(("User-Agent", self.agent.take().unwrap_or_else(|| b"curl/8.0".to_vec())));
        own.push(("Accept", b"*/*".to_vec()));
        own.extend(self.compressed.then(|| ("Accept-Encoding", b"deflate, gzip, br, zstd".to_vec())));
        own.extend(self.referer.take().map(|referer| ("Referer", referer)));
        if !self.cookies.is_empty() {
            own.push(("Cookie", self.cookies.join(&b';')));
        }
        let of_body = body.map(|body| {
            let length = ("Content-Length", body.len().to_string().into_bytes());
            [length, ("Content-Type", b"application/x-www-form-urlencoded".to_vec())]
        });
        let line = |(name, value): (&str, Vec<u8>)| {
            let is_sent = !names(&given, name) && (!value.is_empty() || name == "Host");
            is_sent.then(|| [name.as_bytes(), b": ", &value].concat())
        };
        let own: Vec<Vec<u8>> = own.into_iter().filter_map(line).collect();
        let behind: Vec<Vec<u8>> = of_body.into_iter().flatten().filter_map(line).collect();
        // `Name:` takes a header of curl's own away, `Name;` sends one without a value.
        let given =
            given.iter().filter_map(|line| match line.iter().position(|b| matches!(b, b':' | b';')) {
                Some(at) if line[at] == b':' && line[at + 1..].trim_ascii().is_empty() => None,
                Some(at) if line[at] == b';' && at + 1 == line.len() => Some([&line[..at], b":"].concat()),
                _ => Some(line.clone()),
            });
        own.into_iter().chain(given).chain(behind).collect()
    }
}

/// True if one of these header lines has this name.
fn names(lines: &[Vec<u8>], name: &str) -> bool {
    lines.iter().any(|line| {
        let end = line.iter().position(|b| matches!(b, b':' | b';')).unwrap_or(line.len());
        line[..end].trim_ascii().eq_ignore_ascii_case(name.as_bytes())
    })
}

impl Sort {
    fn has_value(self) -> bool {
        !matches!(self, Sort::Aside | Sort::Head | Sort::Get | Sort::Compressed | Sort::AsIs | Sort::Http10)
    }
}

/// The parts of a URL.
struct Url {
    host: Vec<u8>,
    user: Option<Vec<u8>>,
    target: Vec<u8>,
}

impl Url {
    fn of(text: &[u8], as_is: bool) -> Result<Url, CurlError> {
        let wrong = || CurlError::Scheme(String::from_utf8_lossy(text).chars().take(60).collect());
        let rest = match text.windows(3).position(|part| part == b"://") {
            Some(at)
                if text[..at].eq_ignore_ascii_case(b"http") || text[..at].eq_ignore_ascii_case(b"https") =>
            {
                &text[at + 3..]
            }
            // As curl guesses it: a text that begins with a host.
            Some(at) if text[..at].iter().any(|b| matches!(b, b'/' | b'?')) => text,
            Some(_) => return Err(wrong()),
            None => text,
        };
        let end = rest.iter().position(|b| matches!(b, b'/' | b'?' | b'#')).unwrap_or(rest.len());
        let (authority, target) = rest.split_at(end);
        let (user, host) = match authority.iter().rposition(|&b| b == b'@') {
            Some(at) => (Some(authority[..at].to_vec()), &authority[at + 1..]),
            None => (None, authority),
        };
        if host.is_empty() {
            return Err(wrong());
        }
        // A fragment is not sent.
        let target = target.split(|&b| b == b'#').next().unwrap_or_default();
        let slash: &[u8] = if target.starts_with(b"/") { b"" } else { b"/" };
        let target = [slash, target].concat();
        let path_end = target.iter().position(|&b| b == b'?').unwrap_or(target.len());
        let (path, query) = target.split_at(path_end);
        let path = if as_is { path.to_vec() } else { without_dots(path) };
        let target = [&path, query].concat();
        Ok(Url { host: host.to_vec(), user, target })
    }
}

/// A path without dot segments, as curl sends it unless told otherwise (RFC 3986, 5.2.4).
fn without_dots(path: &[u8]) -> Vec<u8> {
    let mut kept: Vec<&[u8]> = Vec::new();
    let mut segments = path.split(|&b| b == b'/').skip(1).peekable();
    while let Some(segment) = segments.next() {
        let is_last = segments.peek().is_none();
        match segment {
            b"." => kept.extend(is_last.then_some(&b""[..])),
            b".." => {
                kept.pop();
                kept.extend(is_last.then_some(&b""[..]));
            }
            other => kept.push(other),
        }
    }
    [b"/", kept.join(&b'/').as_slice()].concat()
}
