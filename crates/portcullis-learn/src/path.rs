//! Paths and names of fields, in the one form under which what is known of them is kept: whatever spelling a
//! sender chooses that a server takes for the same, it is the same here.

use std::borrow::Cow;

use portcullis_types::{Place, percent_decode};

use crate::value::{is_date, is_uuid};

/// Segments of a path that are distinguished; deeper ones are not read.
pub const DEPTH_MAX: usize = 12;
/// Bytes of a segment that is kept as it is.
const SEGMENT_BYTES_MAX: usize = 64;
/// Bytes of the name of a field that is learned.
pub const NAME_BYTES_MAX: usize = 128;
/// The segment that stands for all others of its place in a path.
pub const ANY: &str = "{any}";

/// The path as servers read it, see [`spelled`], in lower case.
pub(crate) fn canonical(path: &[u8]) -> Cow<'_, [u8]> {
    let mut path = spelled(path);
    if path.iter().any(u8::is_ascii_uppercase) {
        path.to_mut().make_ascii_lowercase();
    }
    path
}

/// The path as servers read it, in the case in which it was sent: decoded, without empty segments, parameters
/// behind semicolons and steps up and down.
pub fn spelled(path: &[u8]) -> Cow<'_, [u8]> {
    if is_plain(path) {
        return Cow::Borrowed(path);
    }
    let decoded = decoded(path);
    let mut path = Vec::with_capacity(decoded.len());
    decoded.split(is_slash).for_each(|segment| step(&mut path, segment));
    Cow::Owned(path)
}

/// What servers read in an encoded text: what is encoded twice, some decode twice.
fn decoded(text: &[u8]) -> Vec<u8> {
    let once = percent_decode(text, false);
    if once.contains(&b'%') { percent_decode(&once, false) } else { once }
}

fn is_slash(byte: &u8) -> bool {
    matches!(byte, b'/' | b'\\')
}

/// Goes from `path` to the segment below it.
fn step(path: &mut Vec<u8>, segment: &[u8]) {
    match segment.split(|b| *b == b';').next().unwrap_or_default().trim_ascii() {
        b"" | b"." => {}
        b".." => path.truncate(path.iter().rposition(|b| *b == b'/').unwrap_or(0)),
        segment => {
            path.push(b'/');
            path.extend_from_slice(segment);
        }
    }
}

/// The segments of a path as it was sent that some servers hand to the application as one value, where others
/// take them apart: those with encoded slashes, and those with something behind a semicolon that is no
/// parameter. Each with the path above it, in its one form.
pub(crate) fn undivided(path: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut found = Vec::new();
    if !path.iter().any(|b| matches!(b, b'%' | b';' | b'\\')) {
        return found;
    }
    let mut above = Vec::new();
    for segment in path.split(|b| *b == b'/').map(decoded) {
        let mut parts = segment.split(is_slash).filter(|part| !matches!(*part, b"" | b"." | b".."));
        let is_divided = parts.nth(1).is_some();
        // What stands below a longer path is known to nobody.
        if (is_divided || has_odd_parameters(&segment)) && above.len() <= UNDIVIDED_BYTES_MAX {
            let above = if above.is_empty() { b"/".to_vec() } else { above.to_ascii_lowercase() };
            found.push((above, segment.clone()));
        }
        segment.split(is_slash).for_each(|part| step(&mut above, part));
    }
    found
}

/// Bytes of a path below which segments are looked at as a whole.
const UNDIVIDED_BYTES_MAX: usize = 2_048;

/// There is something behind a semicolon that no parameter of a path is: `;jsessionid=1f` is one.
fn has_odd_parameters(segment: &[u8]) -> bool {
    let is_plain = |b: &u8| b.is_ascii_alphanumeric() || b"-_.~=,!:".contains(b);
    segment.split(|b| *b == b';').skip(1).any(|parameter| !parameter.iter().all(is_plain))
}

/// True for a path as most are, of plain segments.
fn is_plain(path: &[u8]) -> bool {
    let mut before = 0;
    for b in path {
        let is_plain = match b {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => true,
            b'/' => before != b'/',
            b'.' => before != b'/' && before != b'.',
            _ => false,
        };
        if !is_plain {
            return false;
        }
        before = *b;
    }
    path.first() == Some(&b'/') && (path.len() == 1 || before != b'/')
}

/// The segments of such a path that are distinguished.
pub fn segments(canonical: &[u8]) -> impl Iterator<Item = &[u8]> {
    canonical.split(|b| *b == b'/').filter(|segment| !segment.is_empty()).take(DEPTH_MAX)
}

/// The segment of such a path that stands below the path `above`.
pub(crate) fn below<'p>(canonical: &'p [u8], above: &[u8]) -> Option<&'p [u8]> {
    let above = if above == b"/" { &b""[..] } else { above };
    let rest = canonical.strip_prefix(above)?.strip_prefix(b"/")?;
    rest.split(|b| *b == b'/').next().filter(|segment| !segment.is_empty())
}

/// What stands in a template in place of a segment that is a value, or nothing for one that may be a name.
pub fn placeholder(segment: &[u8]) -> Option<&'static str> {
    // Most segments are words.
    if segment.len() <= SEGMENT_BYTES_MAX && segment.iter().all(|b| b.is_ascii_lowercase()) {
        return None;
    }
    let is_name = |b: &u8| b.is_ascii_alphanumeric() || b"-_.~".contains(b);
    let has = |is: fn(&u8) -> bool| segment.iter().any(is);
    match () {
        () if segment.iter().all(u8::is_ascii_digit) => Some("{number}"),
        () if is_uuid(segment) => Some("{uuid}"),
        () if is_date(segment) => Some("{date}"),
        () if segment.len() >= 16 && has(u8::is_ascii_digit) && segment.iter().all(u8::is_ascii_hexdigit) => {
            Some("{hash}")
        }
        () if segment.len() > SEGMENT_BYTES_MAX || !segment.iter().all(is_name) => Some(ANY),
        () => None,
    }
}

/// The method under which fields are kept: HEAD is answered as GET is.
pub(crate) fn method(method: &[u8]) -> &[u8] {
    match method {
        b"HEAD" => b"GET",
        other => &other[..other.len().min(16)],
    }
}

/// Puts the name of a field in its one form into `out`: servers ignore case, spaces around it and what
/// follows a zero byte, and some take a dot or a space for an underscore; elements of an array are one field.
/// False if it has none.
pub(crate) fn name(place: Place, name: &[u8], out: &mut Vec<u8>) -> bool {
    out.clear();
    if name.len() <= NAME_BYTES_MAX && name.iter().all(|b| b.is_ascii_lowercase() || *b == b'_') {
        out.extend_from_slice(name);
        return !name.is_empty();
    }
    let end = name.iter().position(|b| *b == 0).unwrap_or(name.len());
    let name = name[..end].trim_ascii();
    let is_json = place == Place::Json;
    let mut rest = name;
    while let Some((byte, after)) = rest.split_first() {
        let digits = after.iter().take_while(|b| b.is_ascii_digit()).count();
        let close = after.get(digits).copied();
        rest = match byte {
            // `id[7]`, and `id.7` in JSON.
            b'[' if close == Some(b']') => &after[digits + 1..],
            b'.' if is_json && digits > 0 && matches!(close, None | Some(b'.')) => &after[digits..],
            b'.' | b' ' if !is_json => {
                out.push(b'_');
                after
            }
            byte => {
                out.push(byte.to_ascii_lowercase());
                after
            }
        };
    }
    if is_json {
        without_repetition(out);
    }
    !out.is_empty() && out.len() <= NAME_BYTES_MAX
}

/// `id` of `id.id`, as elements of an array are called: one value and a list of one are the same to many
/// applications.
fn without_repetition(name: &mut Vec<u8>) {
    let (mut kept, mut component, mut at) = (0, 0..0, 0);
    while at < name.len() {
        let end = name[at..].iter().position(|b| *b == b'.').map_or(name.len(), |dot| at + dot);
        if kept == 0 || name[component.clone()] != name[at..end] {
            if kept > 0 {
                name[kept] = b'.';
                kept += 1;
            }
            name.copy_within(at..end, kept);
            component = kept..kept + (end - at);
            kept = component.end;
        }
        at = end + 1;
    }
    name.truncate(kept);
}
