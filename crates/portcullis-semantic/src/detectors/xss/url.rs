//! The scheme of an address, as browsers find it: white space and control characters do not count.

/// A scheme that runs something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scheme {
    /// `javascript:` and what old browsers knew beside it.
    Script,
    /// `data:` with a type that is a document or a script.
    Data,
    /// `data:` with an image that may have scripts, which most elements do not run.
    Image,
}

/// Bytes over which a scheme may be spread.
const SCHEME_BYTES_MAX: usize = 96;

/// Places in a list of addresses (`srcset`, `values`, `content`) that are tried.
const PLACES_MAX: usize = 12;

/// Bytes of the type of a data URL that are read.
const TYPE_BYTES_MAX: usize = 80;

/// Bytes of the parameters of a data URL that are searched.
const PARAMETERS_BYTES_MAX: usize = 64;

/// The scheme that `value` begins with, and where what it runs begins.
pub(super) fn scheme(value: &[u8]) -> Option<(Scheme, usize)> {
    let mut name = [0u8; 16];
    let mut len = 0;
    for (at, &b) in value.iter().enumerate().take(SCHEME_BYTES_MAX) {
        match b {
            0..=0x20 | 0x7F.. => {}
            b':' if len > 0 => return known(&name[..len], &value[at + 1..]).map(|scheme| (scheme, at + 1)),
            // What old filters and old browsers took for the colon, where code follows and no name of a place
            // in a page.
            b'#' if &name[..len] == b"javascript"
                && memchr::memchr2(b'(', b'=', &value[at + 1..]).is_some() =>
            {
                return Some((Scheme::Script, at + 1));
            }
            b'a'..=b'z' | b'A'..=b'Z' | b'-' | b'.' | b'+' if len < name.len() => {
                name[len] = b.to_ascii_lowercase();
                len += 1;
            }
            _ => return None,
        }
    }
    None
}

fn known(name: &[u8], rest: &[u8]) -> Option<Scheme> {
    match name {
        b"javascript" | b"vbscript" | b"vbs" | b"livescript" | b"mocha" | b"jscript" | b"x-javascript" => {
            Some(Scheme::Script)
        }
        b"feed" | b"view-source" | b"jar" => scheme(rest).map(|(inner, _)| inner),
        // A document in an archive, for Internet Explorer.
        b"mhtml" => Some(Scheme::Data),
        b"data" => data(rest),
        _ => None,
    }
}

/// The content of a data URL, by its media type. Without a comma there is no content, tabs and line ends do
/// not count, and a type has no spaces (URL, Fetch and MIME Sniffing Standards): `data: text/html is a type`.
fn data(rest: &[u8]) -> Option<Scheme> {
    memchr::memchr(b',', rest)?;
    let end = rest
        .iter()
        .take(TYPE_BYTES_MAX)
        .position(|&b| matches!(b, b',' | b';'))
        .unwrap_or(rest.len().min(TYPE_BYTES_MAX));
    let (mut buffer, mut len) = ([0u8; TYPE_BYTES_MAX], 0);
    for &b in rest[..end].iter().filter(|b| !matches!(b, b'\t' | b'\n' | b'\r')) {
        buffer[len] = b;
        len += 1;
    }
    let media_type = buffer[..len].trim_ascii();
    if media_type.contains(&b' ') {
        return None;
    }
    let has = |wanted: &[u8]| media_type.windows(wanted.len()).any(|part| part.eq_ignore_ascii_case(wanted));
    if has(b"svg") {
        Some(Scheme::Image)
    } else if has(b"html") || has(b"xml") || has(b"script") || is_packed_script(&rest[end..]) {
        Some(Scheme::Data)
    } else {
        None
    }
}

/// `;base64,PHNjcmlwdD4...`: whatever the type says, Base64 of a script element.
fn is_packed_script(parameters: &[u8]) -> bool {
    let head = &parameters[..parameters.len().min(PARAMETERS_BYTES_MAX)];
    let Some(comma) = memchr::memchr(b',', head) else { return false };
    let has_base64 = head[..comma].windows(6).any(|part| part.eq_ignore_ascii_case(b"base64"));
    let data = parameters[comma + 1..].trim_ascii_start();
    has_base64 && [&b"PHNjcmlwd"[..], b"PFNDUklQV", b"PFNjcmlwd"].iter().any(|start| data.starts_with(start))
}

/// True if `value` is the beginning of a script's scheme, of four letters or more, and nothing else.
pub(super) fn begins_scheme(value: &[u8]) -> bool {
    let begins = |name: &[u8]| {
        (4..=name.len()).contains(&value.len()) && name[..value.len()].eq_ignore_ascii_case(value)
    };
    begins(b"javascript") || begins(b"vbscript")
}

/// The first scheme in a list of addresses: after its beginning, `;`, `,`, `=`, `(`, a quote or white space.
pub(super) fn scheme_in_list(value: &[u8]) -> Option<(Scheme, usize)> {
    if let Some(found) = scheme(value) {
        return Some(found);
    }
    let mut places = 0;
    for (at, &b) in value.iter().enumerate() {
        let begins = matches!(b, b';' | b',' | b'=' | b'(' | b'\'' | b'"' | b' ' | b':');
        let letter = value.get(at + 1).is_some_and(|b| matches!(b | 0x20, b'j' | b'v' | b'l' | b'm' | b'd'));
        if begins && letter {
            places += 1;
            if places > PLACES_MAX {
                return None;
            }
            if let Some((scheme, used)) = scheme(&value[at + 1..]) {
                return Some((scheme, at + 1 + used));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(value: &[u8], want: Option<Scheme>) {
        assert_eq!(scheme_in_list(value).map(|(scheme, _)| scheme), want, "{}", value.escape_ascii());
    }

    #[test]
    fn schemes() {
        check(b"javascript:alert(1)", Some(Scheme::Script));
        check(b" \x01\x1fJaVa\tsc\nript\r:alert(1)", Some(Scheme::Script));
        check(b"\xE2\x80\x84vbscript:x", Some(Scheme::Script));
        check(b"0;url=javascript:alert(1)", Some(Scheme::Script));
        check(b"http://a/;javascript:b", Some(Scheme::Script));
        check(b"data:text/html,<b>", Some(Scheme::Data));
        check(b"data: image/svg+xml;base64,x", Some(Scheme::Image));
        check(b"feed:javascript:x", Some(Scheme::Script));
        check(b"javascript#alert(1)", Some(Scheme::Script));
        check(
            b"data:application/x-x509-user-cert;\nbase64\n,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==",
            Some(Scheme::Data),
        );
    }

    #[test]
    fn others() {
        check(b"https://javascript:80/", None);
        check(b"java\xC3script:javascript:x", Some(Scheme::Script));
        assert!(begins_scheme(b"JavaSc") && !begins_scheme(b"jav") && !begins_scheme(b"javax"));
        check(b"data:image/png;base64,x", None);
        check(b"/javascript:x", None);
        check(b"java script", None);
        check(b"mailto:a@b", None);
        check(b"javascript#arrays", None);
        check(b"data:application/pdf;base64,JVBERi0x", None);
    }

    /// A data URL has a comma before its content, and a type without spaces.
    #[test]
    fn data_urls_have_a_type_and_content() {
        for content in ["text/html", "text/html;charset=utf-8", "image/svg+xml;base64", "\ttext/ht\nml"] {
            let value = format!("data:{content},<b>x</b>");
            assert!(scheme(value.as_bytes()).is_some(), "{value}");
            let value = format!("data:{content}");
            assert!(scheme(value.as_bytes()).is_none(), "{value}");
        }
        check(b"data: text/html is a media type; text, too", None);
    }
}
