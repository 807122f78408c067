//! What becomes of a request body by mode, settings, kind and length: every cell of one table, over every
//! framing, and the same table in docs/limits.md.

use std::fmt::Write as _;

use http::Request;
use portcullis_testkit::random::Random;

use crate::common::http2::Peer;
use crate::common::*;

/// Bytes of `SecRequestBodyNoFilesLimit`, where rules set it.
const NO_FILES: usize = 2_500;
/// Bytes held of a body.
const LIMIT: usize = 4_096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Semantic,
    Crs,
    Both,
    DetectionOnly,
    Off,
}
use Mode::*;

impl Mode {
    const ALL: [Mode; 5] = [Semantic, Both, Crs, DetectionOnly, Off];

    fn name(self) -> &'static str {
        match self {
            Semantic => "`semantic`",
            Crs => "`crs`",
            Both => "`both`",
            DetectionOnly => "`detection_only`",
            Off => "`off`",
        }
    }

    fn line(self) -> &'static str {
        match self {
            Semantic => "mode = \"semantic\"",
            Crs => "mode = \"crs\"",
            Both => "mode = \"both\"",
            DetectionOnly => "mode = \"both\"\nengine = \"detection_only\"",
            Off => "mode = \"off\"",
        }
    }
}

/// What settings or rules say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Says {
    Nothing,
    PassUninspected,
    Reject,
    LargerLimit,
    NoFilesLimit,
    ActionReject,
    ActionPartial,
}
use Says::*;

impl Says {
    const ALL: [Says; 7] =
        [Nothing, PassUninspected, Reject, LargerLimit, NoFilesLimit, ActionReject, ActionPartial];

    fn name(self) -> &'static str {
        match self {
            Nothing => "nothing",
            PassUninspected => "`over_limit = \"pass_uninspected\"`",
            Reject => "`over_limit = \"reject\"`",
            LargerLimit => "a larger `limit`",
            NoFilesLimit => "rules: `SecRequestBodyNoFilesLimit`",
            ActionReject => "rules: `SecRequestBodyLimitAction Reject`",
            ActionPartial => "rules: `SecRequestBodyLimitAction ProcessPartial`",
        }
    }

    /// The same as keys of the site, and as rules.
    fn lines(self) -> (String, String) {
        match self {
            Nothing => (String::new(), String::new()),
            PassUninspected => ("over_limit = \"pass_uninspected\"".into(), String::new()),
            Reject => ("over_limit = \"reject\"".into(), String::new()),
            LargerLimit => ("limit = \"1MiB\"".into(), String::new()),
            NoFilesLimit => (String::new(), format!("SecRequestBodyNoFilesLimit {NO_FILES}")),
            ActionReject => (String::new(), "SecRequestBodyLimitAction Reject".into()),
            ActionPartial => (String::new(), "SecRequestBodyLimitAction ProcessPartial".into()),
        }
    }

    fn is_of_rules(self) -> bool {
        matches!(self, NoFilesLimit | ActionReject | ActionPartial)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Bytes,
    Image,
    Untyped,
    FormWithFile,
    Form,
    FormOfFields,
    Json,
    Xml,
}
use Kind::*;

/// Kinds with the same row.
const ROWS: [(&str, &[Kind]); 3] = [
    ("a file: no type, or one that no parser takes", &[Bytes, Image, Untyped]),
    ("a form with files", &[FormWithFile]),
    ("a form without files, JSON, XML", &[Form, FormOfFields, Json, Xml]),
];

impl Kind {
    fn media_type(self) -> Option<&'static str> {
        match self {
            Bytes => Some("application/octet-stream"),
            Image => Some("image/jpeg"),
            Untyped => None,
            FormWithFile | FormOfFields => Some("multipart/form-data; boundary=B"),
            Form => Some("application/x-www-form-urlencoded"),
            Json => Some("application/json"),
            Xml => Some("text/xml"),
        }
    }

    /// A benign body of so many bytes.
    fn body(self, bytes: usize) -> Vec<u8> {
        let (start, end): (&str, &str) = match self {
            Bytes | Image | Untyped => return Random::new(bytes as u64).bytes(bytes),
            FormWithFile => (
                "--B\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--B\r\n\
                 Content-Disposition: form-data; name=\"f\"; filename=\"n.bin\"\r\n\r\n",
                "\r\n--B--\r\n",
            ),
            FormOfFields => ("--B\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n", "\r\n--B--\r\n"),
            Form => ("a=1&b=", ""),
            Json => ("{\"a\":\"", "\"}"),
            Xml => ("<a>", "</a>"),
        };
        let filler = match self {
            FormWithFile => Random::new(bytes as u64).bytes(bytes),
            _ => b"words ".iter().copied().cycle().take(bytes).collect(),
        };
        [start.as_bytes(), &filler[..bytes - start.len() - end.len()], end.as_bytes()].concat()
    }

    fn is_upload(self) -> bool {
        matches!(self, Bytes | Image | Untyped | FormWithFile)
    }
}

/// Lengths, and what the page calls them.
const SIZES: [(&str, usize); 4] =
    [("short", 1_500), ("up to `limit`", 3_500), ("longer", 9_000), ("over 10 times `limit`", 12 * LIMIT)];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comes {
    /// To the upstream, all of it inspected.
    Inspected,
    /// To the upstream, what is beyond the limit counted as not inspected.
    Counted,
    /// To the upstream; the route is not inspected at all.
    Unread,
    /// 413, and never whole to the upstream.
    Refused,
}

impl Comes {
    fn name(self) -> &'static str {
        match self {
            Comes::Inspected => "inspected",
            Comes::Counted => "passes, counted",
            Comes::Unread => "passes",
            Comes::Refused => "413",
        }
    }
}

/// The table.
fn expected(mode: Mode, says: Says, kind: Kind, bytes: usize) -> Comes {
    if mode == Off {
        return Comes::Unread;
    }
    let (is_blocking, is_semantic) = (mode != DetectionOnly, mode != Crs);
    // What counts is what a parser takes apart, and what a rule has shown as REQUEST_BODY.
    if says == NoFilesLimit && is_blocking && bytes >= NO_FILES && kind != FormWithFile {
        return Comes::Refused;
    }
    if bytes <= LIMIT || says == LargerLimit {
        return Comes::Inspected;
    }
    let passes = !is_blocking || matches!(says, PassUninspected | ActionPartial);
    let seen = if kind.is_upload() && is_semantic { Comes::Inspected } else { Comes::Counted };
    match kind.is_upload() {
        _ if passes => seen,
        true if matches!(says, Reject | ActionReject) || bytes > 10 * LIMIT => Comes::Refused,
        true => seen,
        false => Comes::Refused,
    }
}

/// The table as the page has it: modes with equal rows share one.
fn page() -> String {
    let mut text = String::from("| settings | body | mode |");
    SIZES.iter().for_each(|(name, _)| write!(text, " {name} |").unwrap());
    text.push_str("\n|---|---|---|---|---|---|---|\n");
    for says in Says::ALL {
        for (row, kinds) in ROWS {
            let mut groups: Vec<(Vec<Comes>, Vec<&str>)> = Vec::new();
            for mode in Mode::ALL.into_iter().filter(|mode| is_cell(*mode, says) && *mode != Off) {
                let cells: Vec<Comes> =
                    SIZES.iter().map(|(_, bytes)| expected(mode, says, kinds[0], *bytes)).collect();
                match groups.iter_mut().find(|(known, _)| *known == cells) {
                    Some((_, modes)) => modes.push(mode.name()),
                    None => groups.push((cells, vec![mode.name()])),
                }
            }
            for (cells, modes) in groups {
                let cells: Vec<&str> = cells.iter().map(|comes| comes.name()).collect();
                let says = says.name();
                writeln!(text, "| {says} | {row} | {} | {} |", modes.join(", "), cells.join(" | ")).unwrap();
            }
        }
    }
    text
}

/// Only modes with rules have what rules say.
fn is_cell(mode: Mode, says: Says) -> bool {
    !says.is_of_rules() || matches!(mode, Crs | Both | DetectionOnly)
}

#[test]
fn the_page_has_the_table() {
    let limits = include_str!("../../../../docs/limits.md");
    assert!(limits.contains(&page()), "docs/limits.md should have:\n\n{}", page());
}

/// What the CRS does (rule 901340): bodies that no parser takes are shown as `REQUEST_BODY`.
const FORCE: &str = "SecRule REQBODY_PROCESSOR \"!@rx (?:URLENCODED|MULTIPART|XML|JSON)\" \
    \"id:1,phase:1,pass,nolog,ctl:forceRequestBodyVariable=On\"";

fn front(mode: Mode, says: Says, backend: &Backend) -> Front {
    let (keys, rules) = says.lines();
    let has_rules = matches!(mode, Crs | Both | DetectionOnly);
    // The limit is that of rules where there are some.
    let limit = match has_rules || says == LargerLimit {
        true => String::new(),
        false => format!("limit = {LIMIT}"),
    };
    let keys: Vec<&str> =
        [&limit, &keys].into_iter().map(String::as_str).filter(|key| !key.is_empty()).collect();
    let rules = match has_rules {
        true => {
            format!("rules = {{ directives = '''\nSecRequestBodyLimit {LIMIT}\n{FORCE}\n{rules}\n''' }}\n")
        }
        false => String::new(),
    };
    let site = format!("{}\n{rules}request_body = {{ {} }}\n", mode.line(), keys.join(", "));
    Front::start(&document(backend.address, "", "http2 = { cleartext = true }\n", &site, ""))
}

/// The status by which a framing of the body is answered.
fn send(front: &Front, framing: &str, kind: Kind, body: &[u8]) -> u16 {
    if framing == "http2" {
        let mut request = Request::put("http://a.example/file");
        if let Some(media_type) = kind.media_type() {
            request = request.header("content-type", media_type);
        }
        return Peer::connect(front.address()).ask(request.body(()).unwrap(), body).map_or(0, |it| it.status);
    }
    let media_type = kind.media_type().map(|name| format!("Content-Type: {name}\r\n")).unwrap_or_default();
    let head = format!("PUT /file HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{media_type}");
    let wire = match framing {
        "length" => [format!("{head}Content-Length: {}\r\n\r\n", body.len()).as_bytes(), body].concat(),
        _ => {
            let mut wire = format!("{head}Transfer-Encoding: chunked\r\n\r\n").into_bytes();
            for piece in body.chunks(1_777) {
                wire.extend([format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat());
            }
            [&wire[..], b"0\r\n\r\n"].concat()
        }
    };
    status(&front.once(wire))
}

#[test]
fn each_cell_of_the_table() {
    const NOT_INSPECTED: &str = "portcullis_bytes_not_inspected_total{reason=\"over_limit\"}";
    let (mut cells, mut wrong) = (0, Vec::new());
    for mode in Mode::ALL {
        for says in Says::ALL.into_iter().filter(|says| is_cell(mode, *says)) {
            let backend = Backend::start(|request| ok(&request.body.len().to_string()));
            let front = front(mode, says, &backend);
            for kind in ROWS.iter().flat_map(|(_, kinds)| kinds.iter().copied()) {
                for (_, bytes) in SIZES {
                    let body = kind.body(bytes);
                    for framing in ["length", "chunks", "http2"] {
                        let expected = expected(mode, says, kind, bytes);
                        let (reached, uninspected) = (backend.seen().len(), front.metric(NOT_INSPECTED));
                        let answered = front.metric("portcullis_requests_total");
                        let status = send(&front, framing, kind, &body);
                        until(|| front.metric("portcullis_requests_total") > answered);
                        let whole = backend.seen().get(reached).is_some_and(|request| request.body == body);
                        let more = (front.metric(NOT_INSPECTED) - uninspected) as usize;
                        let is_well = match expected {
                            Comes::Inspected => (status, whole, more) == (200, true, 0),
                            Comes::Counted => (status, whole, more) == (200, true, bytes - LIMIT),
                            Comes::Unread => (status, whole) == (200, true),
                            Comes::Refused => (status, whole) == (413, false),
                        };
                        cells += 1;
                        if !is_well {
                            wrong.push(format!(
                                "{mode:?} {says:?} {kind:?} {bytes} {framing}: {expected:?}, but {status}, whole {whole}, \
                                 not inspected {more}"
                            ));
                        }
                    }
                }
            }
        }
    }
    // Three modes have all seven settings, two have four: for eight kinds, four lengths and three framings.
    assert_eq!(cells, (3 * 7 + 2 * 4) * 8 * 4 * 3);
    assert!(wrong.is_empty(), "{} of {cells}:\n{}", wrong.len(), wrong.join("\n"));
}

/// Where only rules inspect, the rest of a file may follow what they saw, but no part that they did not see.
#[test]
fn parts_behind_what_rules_see() {
    let backend = Backend::start(|request| ok(&request.body.len().to_string()));
    let front = front(Crs, Nothing, &backend);
    let form = |parts: &[(&str, usize)]| {
        let mut body = Vec::new();
        for (disposition, bytes) in parts {
            let head = format!("--B\r\nContent-Disposition: form-data; {disposition}\r\n\r\n");
            body.extend([head.as_bytes(), &Random::new(1).bytes(*bytes), b"\r\n"].concat());
        }
        [&body[..], b"--B--\r\n"].concat()
    };
    let (file, other) = ("name=\"f\"; filename=\"a.bin\"", "name=\"g\"; filename=\"b.php\"");
    for (parts, expected) in [
        (&[(file, 9_000)][..], 200),
        (&[("name=\"a\"", 10), (file, 9_000)], 200),
        (&[(file, 9_000), ("name=\"a\"", 10)], 413),
        (&[(file, 9_000), (other, 10)], 413),
        (&[(file, 3_900), ("name=\"a\"", 300)], 413),
        (&[("name=\"a\"", 9_000), (file, 10)], 413),
        (&[(file, 3_000), ("name=\"a\"", 10)], 200),
    ] {
        for framing in ["length", "chunks", "http2"] {
            let reached = backend.seen().len();
            let body = form(parts);
            assert_eq!(send(&front, framing, FormWithFile, &body), expected, "{parts:?} {framing}");
            let whole = backend.seen().get(reached).is_some_and(|request| request.body == body);
            assert_eq!(whole, expected == 200, "{parts:?} {framing}");
        }
    }
    // A form that never ends, and one whose end is not its own.
    let open = &form(&[(file, 9_000)])[..8_000];
    assert_eq!(send(&front, "chunks", FormWithFile, open), 400);
}
