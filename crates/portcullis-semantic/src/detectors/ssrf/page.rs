//! Fields that say where a page, a service or the way back is: there a plain local URL is only a note.

use portcullis_lex::url::Url;

use crate::{Input, Layer, Place};

/// Bytes of a path that are looked at for the word of a login.
const CALLBACK_BYTES_MAX: usize = 512;

/// The path where logins come back to, as developers have it on their machine.
pub(super) fn is_callback(path: &[u8]) -> bool {
    let path = &path[..path.len().min(CALLBACK_BYTES_MAX)];
    [&b"callback"[..], b"oauth", b"signin", b"login"]
        .iter()
        .any(|word| path.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word)))
}

/// The value is where a page stands or to return to, or a header in which browsers say where they are.
pub(super) fn is_page(input: &Input<'_>) -> bool {
    let name = input.location.name;
    if input.location.place == Place::Header {
        // Where WebDAV moves a file to is a URL of the site itself.
        return ["referer", "origin", "host", "user-agent", "x-forwarded-host", "destination"]
            .iter()
            .any(|known| name.eq_ignore_ascii_case(known.as_bytes()));
    }
    const WORDS: &[&[u8]] = words!("ssrf", "page-words");
    let name = &name[..name.len().min(64)];
    WORDS.iter().any(|word| name.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word)))
        || PAGE_NAMES.iter().any(|known| name.eq_ignore_ascii_case(known))
}

/// Where a page stands and where its visitor came from, as the scripts that count visits name it.
const PAGE_NAMES: &[&[u8]] = words!("ssrf", "page-names");

/// Slashes after the scheme, no user before the host, an IPv6 address with its zeros left out.
pub(super) fn is_as_browsers_write(text: &[u8], url: &Url) -> bool {
    let rest = &text[url.scheme.end as usize..url.span.end as usize];
    let host = url.hosts(text).next().unwrap_or_default();
    let inner = host.strip_prefix(b"[").and_then(|host| host.split(|b| *b == b']').next());
    let is_long = inner.is_some_and(|address| address.split(|b| *b == b':').count() == 8);
    rest.starts_with(b"://") && !url.has_user && !is_long
}

/// A token or an assertion of SAML that was decoded names the service that made it:
/// `{"iss": "http://localhost:8080/realms/a"}`.
pub(super) fn is_of_token(input: &Input<'_>) -> bool {
    let name = input.location.name;
    let name = &name[..name.len().min(64)];
    input.layers.iter().any(|layer| layer == Layer::Base64)
        && (name.eq_ignore_ascii_case(b"authorization")
            || name.windows(4).any(|part| part.eq_ignore_ascii_case(b"saml"))
            || name.windows(5).any(|part| part.eq_ignore_ascii_case(b"token")))
}
