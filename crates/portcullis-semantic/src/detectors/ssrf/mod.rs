//! Server-side request forgery: URLs that a server should not fetch.
//!
//! The host of each URL is brought to an address as C libraries and browsers would ([`portcullis_lex::url`]).
//! An address of the machine, of a private network or of a cloud's metadata service is what such a request is
//! after; an address that is disguised, or an authority that two readers read differently, has no legitimate
//! use. URLs of public hosts are not looked at twice. Browsers report pages of development machines and
//! intranets in headers and in parameters that say where to return to: there a plain local URL is only a
//! note.

mod judge;
mod names;
mod page;
#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use portcullis_lex::url::{Address, Host, Url, scheme_before};
use portcullis_types::Span;

use super::linked::Links;
use super::purpose;
use crate::{ByteGroups, Class, Detector, Found, Hint, Input, KindId, Layer, Place, Profile, kinds};
use judge::{
    embedded, inner_scheme, is_database_port, is_metadata_path, is_number, is_oddly_written, is_outer,
    is_own_port, is_service_port, is_setting, is_short, is_socket, is_web, is_web_port, scheme_kind,
    speaks_http, v4_kind, v6_kind,
};
use names::{Group, Names};
use page::{is_as_browsers_write, is_callback, is_of_token, is_page};

kinds! {
    reference "https://owasp.org/Top10/A10_2021-Server-Side_Request_Forgery_%28SSRF%29/";
    METADATA "ssrf.metadata" Critical Quotable "a URL of the service that hands out a cloud's credentials";
    METADATA_PATH "ssrf.metadata-path" Error Quotable
        "a path of the service that hands out a cloud's credentials";
    METADATA_ADDRESS "ssrf.metadata-address" Warning Quotable
        "the address of the service that hands out a cloud's credentials";
    LOOPBACK "ssrf.loopback" Error Quotable "a URL of the machine itself";
    PRIVATE "ssrf.private" Error Quotable "a URL of a private network";
    LOCAL_PAGE "ssrf.local-page" Notice Quotable "a page of a development machine or a private network";
    DISGUISED "ssrf.disguised" Critical Quotable "a URL whose address is written in a notation that hides it";
    MAPPED "ssrf.mapped" Critical Quotable "a URL with an internal IPv4 address inside an IPv6 address";
    EMBEDDED "ssrf.embedded" Critical Quotable "a host name with an internal address in it";
    EMBEDDING "ssrf.embedding" Error Quotable "a service that answers with any address one wants";
    INTERNAL_NAME "ssrf.internal-name" Error Quotable "a URL of a host that only a private network knows";
    SHORT_NAME "ssrf.short-name" Notice Quotable "a URL of a host without a domain";
    COLLECTOR "ssrf.collector" Error Quotable "a URL of a service that records who asks for it";
    PORT "ssrf.port" Warning Quotable "an internal URL with a port other than those of the web";
    SERVICE_PORT "ssrf.service-port" Warning Quotable
        "a URL with the port of a database, cache or management service";
    USER_HOST "ssrf.user-host" Error Quotable "a URL with a host in place of the user's name";
    CONFUSED "ssrf.confused" Error Quotable "readers of this URL disagree about its host";
    SCHEME "ssrf.scheme" Critical Quotable "a scheme that lets a URL speak to any service";
    SCHEME_RARE "ssrf.scheme-rare" Warning Quotable "a scheme that browsers do not fetch";
}

/// See the module.
#[derive(Debug)]
pub struct Ssrf {
    names: Names,
}

impl Ssrf {
    /// The detector with its data.
    pub fn new() -> Ssrf {
        Ssrf { names: Names::new() }
    }
}

impl Default for Ssrf {
    fn default() -> Self {
        Ssrf::new()
    }
}

/// Bytes of the shortest address, `1.1.1.1`: shorter hosts of schemes that no browser knows are numbers of
/// something else.
const ADDRESS_BYTES_MIN: usize = 7;

/// What looking up a host counts as.
const HOST_BYTES: usize = 32;

/// A file that is no longer than this may be a field to the application.
const FIELD_BYTES_MAX: usize = 96;

static PROFILE: Profile = Profile::new(Class::Ssrf, KINDS)
    .needs(ByteGroups::of(b"/\\:."))
    .weights(include_str!("../../../weights/ssrf.tsv"));

impl Detector for Ssrf {
    fn profile(&self) -> &'static Profile {
        &PROFILE
    }

    fn hints(&self) -> &[Hint] {
        &HINTS
    }

    fn detect(&self, input: &Input<'_>, found: &mut Found<'_>) {
        let is_file = input.location.place == Place::FileContent && input.text.len() > FIELD_BYTES_MAX;
        if input.is_json || is_file {
            return;
        }
        let text = input.text;
        if !input.groups.intersects(ByteGroups::of(b"/\\:")) {
            return self.bare_host(input, found);
        }
        let mut start = text.iter().position(|b| !b.is_ascii_whitespace()).unwrap_or(text.len());
        let is_service = purpose::names_own_service(input.location);
        let is_page = is_page(input) || is_of_token(input) || purpose::is_of_report(input.location);
        let names_address = purpose::names_address(input.location);
        let mut urls = 0u32;
        let mut links = Links::new(text);
        for colon in memchr::memchr_iter(b':', text) {
            let next = text.get(colon + 1).copied();
            let begin = scheme_before(text, colon);
            let scheme = &text[begin..colon];
            // `::/0`: an IPv6 network.
            if scheme.is_empty() && text[..colon].ends_with(b":") {
                continue;
            }
            let has_slash = matches!(next, Some(b'/' | b'\\'));
            // A URL in a URL: `jar:http://`, `url:http://`.
            if !has_slash && begin == start && is_outer(scheme) {
                start = colon + 1;
                continue;
            }
            // `http:127.0.0.1` has no slashes, and clients take it all the same.
            let scheme = inner_scheme(scheme);
            let is_bare = begin == start && is_web(scheme);
            if !has_slash && !is_bare {
                continue;
            }
            let ends = if begin == start { ends_value } else { ends_token };
            let Some(url) = Url::read(text, begin, colon, ends) else { continue };
            // Text after a host is not part of it.
            let has_text = url.authority.of(text).iter().any(u8::is_ascii_whitespace) && !url.is_confused;
            let url = if has_text { Url::read(text, begin, colon, ends_token).unwrap_or(url) } else { url };
            if !found.may_read(url.span.len() + HOST_BYTES) {
                return;
            }
            let is_mention = begin != start || is_web(scheme) && is_sentence(&text[begin..]);
            // Where a page is, a browser says in one way; a setting may say it in any.
            let may_be_local = if is_service {
                Some("own-address")
            } else if is_page && is_web(scheme) && is_as_browsers_write(text, &url) {
                Some("reported-address")
            } else if begin == start && names_address && is_setting(text, &url) {
                Some("service-address")
            } else {
                None
            };
            self.note(input, &url, may_be_local, is_mention, &mut links, found);
            urls += 1;
        }
        if urls == 0 && input.location.place != Place::Header {
            let row = match is_service {
                true => Some("own-address"),
                false => is_page.then_some("reported-address"),
            };
            self.without_scheme(input, start, row, found);
        }
    }
}

impl Ssrf {
    /// Notes what `url` names; by exception `local` it may be a plain page of the network.
    fn note(
        &self,
        input: &Input<'_>,
        url: &Url,
        local: Option<&'static str>,
        is_mention: bool,
        links: &mut Links<'_>,
        found: &mut Found<'_>,
    ) {
        let text = input.text;
        let names_database = local.is_some() && purpose::names_database(input.location);
        // A service that makes a document or a preview of a text loads its images and frames. Those of a
        // machine's own pages stand in many notes; those of services and of keys in none.
        let begin = url.scheme.start as usize;
        let is_loaded = is_mention && links.is_loaded(begin) && !links.is_shown(begin);
        let has_service = |host: &Host| host.port.is_some_and(is_service_port);
        let serves = is_loaded && url.hosts(text).any(|host| has_service(&Host::read(host)));
        let add = |found: &mut Found<'_>, kind: KindId| match is_mention
            && !(is_loaded && is_never_shown(kind) || serves && matches!(kind, LOOPBACK | SERVICE_PORT))
        {
            true => found.mention(kind, url.span),
            false => found.add(kind, url.span),
        };
        // `ssh://-oProxyCommand=...`: to the program that is called with it the host is an option.
        if url.authority.of(text).starts_with(b"-") {
            add(found, CONFUSED);
        }
        let scheme = inner_scheme(url.scheme.of(text));
        match scheme_kind(scheme) {
            Some(kind) => add(found, kind),
            None if !is_web(scheme) && !scheme.is_empty() => {
                return self.note_of_other_scheme(input, url, local, is_mention, found);
            }
            None => {}
        }
        if is_socket(text, url) {
            add(found, SCHEME);
        }
        if url.is_confused {
            add(found, CONFUSED);
        }
        let mut hosts = 0;
        for bytes in url.hosts(text).filter(|bytes| !bytes.is_empty()) {
            let host = Host::read(bytes);
            hosts += 1;
            let is_first = hosts == 1;
            let is_service = |port| is_service_port(port) && !is_own_port(scheme, port);
            let kind = self.host_kind(&host);
            // The address of a search engine or a queue's console in the network, where a setting asks for
            // it.
            let is_own = local.is_some()
                && is_web(scheme)
                && host.port.is_some_and(speaks_http)
                && matches!(kind, Some(PRIVATE | INTERNAL_NAME | SHORT_NAME))
                && is_setting(text, url);
            if is_first && host.port.is_some_and(is_service) {
                match names_database || is_own {
                    true => found.suppress(SERVICE_PORT, url.span, "own-service"),
                    false => add(found, SERVICE_PORT),
                }
            }
            let Some(kind) = kind else {
                let is_host =
                    |name: &[u8]| name.contains(&b'.') && host.port.is_none() && !name.contains(&b':');
                if !is_first && url.has_user && is_host(host.name()) {
                    add(found, USER_HOST);
                }
                continue;
            };
            if !is_first && matches!(kind, SHORT_NAME) {
                continue;
            }
            let is_odd = || matches!(kind, LOOPBACK | METADATA) && is_oddly_written(text, url, bytes);
            let is_disguised = host.is_disguised
                || matches!(host.address, Some(Address::V4 { is_odd: true, .. }))
                || is_first && is_odd();
            let is_plain = !is_disguised && matches!(kind, LOOPBACK | PRIVATE | SHORT_NAME | INTERNAL_NAME);
            let is_callback = host.port.is_some_and(is_web_port) && is_callback(url.path.of(text));
            let local = local.or(is_callback.then_some("login-callback"));
            if let Some(row) = local.filter(|_| is_plain && !url.is_confused) {
                add(found, LOCAL_PAGE);
                found.suppress(kind, url.span, row);
                continue;
            }
            add(found, kind);
            if is_disguised {
                add(found, DISGUISED);
            }
            if kind != COLLECTOR && host.port.is_some_and(|port| !is_web_port(port)) {
                add(found, PORT);
            }
        }
        if is_metadata_path(url.path.of(text)) {
            add(found, METADATA_PATH);
        }
    }

    /// A URL of a scheme that no browser knows: `redis://127.0.0.1:6379/`, `rtsp://169.254.169.254/`.
    /// Addresses count, local ones where they are all of the value; names do not, for such URLs name parts of
    /// applications, too: `capacitor://localhost`, `redis://cache`.
    fn note_of_other_scheme(
        &self,
        input: &Input<'_>,
        url: &Url,
        local: Option<&'static str>,
        is_mention: bool,
        found: &mut Found<'_>,
    ) {
        let text = input.text;
        let has_slashes = text[url.scheme.end as usize..].starts_with(b"://");
        if !has_slashes || input.location.place == Place::Header {
            return;
        }
        let add = |found: &mut Found<'_>, kind: KindId| match is_mention {
            true => found.mention(kind, url.span),
            false => found.add(kind, url.span),
        };
        let local = local.or(purpose::names_database(input.location).then_some("own-service"));
        // In lists of settings, in notes and in what is packed such URLs are the application's own.
        let is_packed = input.layers.iter().any(|layer| layer == Layer::Base64);
        let is_asked = !is_mention && !is_packed && url.span.end as usize == text.trim_ascii_end().len();
        let scheme = url.scheme.of(text);
        for bytes in
            url.hosts(text).filter(|bytes| bytes.len() >= ADDRESS_BYTES_MIN || bytes.starts_with(b"["))
        {
            let host = Host::read(bytes);
            let is_odd = matches!(host.address, Some(Address::V4 { is_odd: true, .. }));
            // `ssh://git@localhost:3035/a/b.git` is where a repository is cloned from.
            let is_clone = inner_scheme(scheme).eq_ignore_ascii_case(b"ssh") && url.has_user;
            let is_local_port = || !is_clone && host.port.is_some_and(|port| !is_web_port(port));
            match self.host_kind(&host) {
                Some(kind @ (LOOPBACK | PRIVATE))
                    if is_asked && (host.address.is_some() || is_local_port()) =>
                {
                    if let Some(row) = local.filter(|_| !is_odd) {
                        add(found, LOCAL_PAGE);
                        found.suppress(kind, url.span, row);
                        continue;
                    }
                    // Cameras, printers and brokers of an office have such URLs.
                    let is_service =
                        host.port.is_some_and(|port| is_service_port(port) && !is_own_port(scheme, port));
                    if kind == PRIVATE && !is_service {
                        add(found, LOCAL_PAGE);
                        continue;
                    }
                    add(found, kind);
                    if is_service {
                        add(found, SERVICE_PORT);
                    }
                }
                Some(kind @ (METADATA | MAPPED | EMBEDDED)) => add(found, kind),
                _ => {}
            }
        }
        if is_metadata_path(url.path.of(text)) {
            add(found, METADATA_PATH);
        }
    }

    /// `168.63.129.16`: a host and nothing else says little, but where a host or an address is asked for
    /// nobody means the service that hands out keys.
    fn bare_host(&self, input: &Input<'_>, found: &mut Found<'_>) {
        let is_asked_for = purpose::takes_host(input.location)
            || purpose::names_address(input.location)
            || names_host_asked(input);
        if is_asked_for && self.host_kind(&Host::read(input.text.trim_ascii())) == Some(METADATA) {
            found.add(METADATA, Span::new(0, input.text.len()));
        }
    }

    /// What the host is, `None` for a public one.
    fn host_kind(&self, host: &Host) -> Option<KindId> {
        if let Some(address) = host.address {
            let kind = match address.to_v4() {
                Some(inner) => v4_kind(inner),
                None => v6_kind(address),
            };
            return match address {
                Address::V6(_) if kind.is_some() && address.to_v4().is_some() => Some(MAPPED),
                Address::V4 { is_odd: true, .. } => kind.or(Some(DISGUISED)),
                Address::V4 { .. } | Address::V6(_) => kind,
            };
        }
        let name = host.name();
        match self.names.get(name) {
            Some(Group::Local) => Some(LOOPBACK),
            Some(Group::Metadata) => Some(METADATA),
            Some(Group::Internal) => Some(INTERNAL_NAME),
            Some(Group::Collector) => Some(COLLECTOR),
            Some(Group::Embedding) if embedded(name).is_none() => Some(EMBEDDING),
            Some(Group::Embedding) => Some(EMBEDDED),
            None if embedded(name).is_some_and(|inner| v4_kind(inner).is_some()) => Some(EMBEDDED),
            None if host.is_disguised => Some(DISGUISED),
            None if is_short(name) => Some(SHORT_NAME),
            None => None,
        }
    }

    /// `169.254.169.254/latest/meta-data`, `//127.0.0.1/`, `127.0.0.1:6379`, `localhost:8080/`: clients and
    /// libraries put the scheme before it. A host alone, and a network (`10.0.0.0/8`), is what people write
    /// in many a field.
    fn without_scheme(
        &self,
        input: &Input<'_>,
        start: usize,
        local: Option<&'static str>,
        found: &mut Found<'_>,
    ) {
        let text = input.text;
        let slashes = text[start..].iter().take_while(|b| matches!(b, b'/' | b'\\')).count();
        let from = start + slashes;
        let end = text[from..].iter().position(|&b| ends_token(b)).map_or(text.len(), |at| from + at);
        let bytes = &text[from..end];
        let stop = bytes.iter().position(|b| matches!(b, b'/' | b'\\' | b'?' | b'#')).unwrap_or(bytes.len());
        if stop == 0 || slashes == 1 {
            return;
        }
        let is_whole = end == text.trim_ascii_end().len();
        let span = Span::new(start, end);
        let host = Host::read(&bytes[..stop]);
        let tail = &bytes[stop..];
        let kind = self.host_kind(&host);
        match kind {
            Some(METADATA) if host.address.is_some() => found.add(METADATA_ADDRESS, span),
            Some(kind @ (LOOPBACK | PRIVATE | MAPPED)) if slashes > 1 && is_whole => found.add(kind, span),
            Some(EMBEDDED) if is_whole => found.add(EMBEDDED, span),
            _ => {}
        }
        if is_metadata_path(tail) {
            found.add(METADATA_PATH, span);
        }
        let is_network = tail
            .strip_prefix(b"/")
            .is_some_and(|bits| !bits.is_empty() && bits.len() <= 3 && bits.iter().all(u8::is_ascii_digit));
        let is_plain = matches!(kind, Some(LOOPBACK | PRIVATE | INTERNAL_NAME)) && slashes == 0;
        // The strings of a binary message have no names by which to tell. An address and a port is where
        // metrics and traces come from, in each of them.
        let is_origin = input.location.place == Place::Text && input.location.name.is_empty();
        let is_asked = host.port.is_some() && !is_origin || !tail.is_empty();
        // `server=127.0.0.1:3306`: which server a page is about, where the parameter is for that.
        let is_server = tail.is_empty()
            && host.port.is_none_or(|port| !is_service_port(port) || is_database_port(port))
            && purpose::names_server(input.location);
        let is_expected = purpose::takes_host(input.location) || is_server;
        let Some(kind) = kind.filter(|_| is_plain && is_asked && !is_network && is_whole) else { return };
        // What people look for; an attacker who makes a server send a request writes a scheme.
        let is_said = purpose::is_search(input.location)
            && tail.is_empty()
            && host.port.is_some_and(|port| !is_service_port(port));
        // `10.1000/xyz`, `10.50/hour`, `10.15.7/Safari`
        let is_number = host.port.is_none() && is_number(&bytes[..stop], tail);
        if is_expected {
            found.suppress(kind, span, "own-host");
        } else if is_number && !purpose::may_name_host(input.location) {
            found.suppress(kind, span, "numbers");
        } else if let Some(row) = local.or(is_said.then_some("address-said")) {
            found.add(LOCAL_PAGE, span);
            found.suppress(kind, span, row);
        } else {
            found.add(kind, span);
            if host.port.is_some_and(is_service_port) {
                found.add(SERVICE_PORT, span);
            }
        }
    }
}

/// A header field that tells proxies the requested host. Machines of a network may be called
/// `metadata`, but no site stands at the address.
fn names_host_asked(input: &Input<'_>) -> bool {
    const NAMES: &[&[u8]] =
        &[b"host", b"x-forwarded-host", b"x-host", b"x-http-host-override", b"x-forwarded-server"];
    input.location.place == Place::Header
        && memchr::memchr(b'.', input.text).is_some()
        && NAMES.iter().any(|known| input.location.name.eq_ignore_ascii_case(known))
}

/// No page or picture that people would show stands at such an address.
fn is_never_shown(kind: KindId) -> bool {
    matches!(kind, METADATA | METADATA_PATH | METADATA_ADDRESS | MAPPED | DISGUISED | EMBEDDED)
}

/// `http://localhost:8080 doesn't work`, `... returns 404`: an address and at least two words after it.
fn is_sentence(text: &[u8]) -> bool {
    let mut words = text.split(|&b| b == b' ').skip(1).filter(|word| !word.is_empty());
    let is_word = |word: &[u8]| word.iter().all(|b| b.is_ascii_alphanumeric() || b"',.?!".contains(b));
    let begins_with_letter = words.clone().next().is_some_and(|word| word[0].is_ascii_alphabetic());
    begins_with_letter && words.clone().nth(1).is_some() && words.all(is_word)
}

fn ends_value(b: u8) -> bool {
    matches!(b, b'\n' | b'\r' | b'<' | b'>' | b'"')
}

fn ends_token(b: u8) -> bool {
    matches!(
        b,
        b'\t' | b'\n' | b'\r' | b' ' | b'<' | b'>' | b'"' | b'\'' | b'|' | b'(' | b')' | b',' | b'`' | b';'
    )
}

/// The beginnings of what is looked for. Ordinary URLs have none of them.
static HINTS: LazyLock<Vec<Hint>> = LazyLock::new(|| {
    const MORE: &[&str] = &[
        "://0",
        "://1",
        "://2",
        "://3",
        "://4",
        "://5",
        "://6",
        "://7",
        "://8",
        "://9",
        "://[",
        "://%",
        "://\\",
        ":/\\",
        ":\\",
        ":/0",
        ":/1",
        ":/2",
        ":6379",
        ":2375",
        ":9200",
        ":8500",
        ":11211",
        ":27017",
        ":5432",
        ":3306",
        ":10250",
        ":22/",
        ":25/",
        ":///",
        "127.",
        "localhost",
        "192.168.",
        "0.0.0.0",
        "10.",
        "172.1",
        "172.2",
        "172.3",
        "//127.",
        "//10.",
        "//192.168.",
        "//169.254",
        "//172.",
        "//[",
        "\\\\127.",
        "http:0",
        "http:1",
        "http:2",
        "@1",
        "@0",
        "@2",
        "@[",
        "#@",
        "\\@",
        "?@",
        "://-",
        ".com@",
        ".org@",
        ".net@",
        ".io@",
        ".example@",
        "168.63.129.16",
        "://\u{FF10}",
        "://\u{FF11}",
        "://\u{FF12}",
        "://\u{FF4C}",
        "://\u{FF2C}",
        "://\u{2460}",
        "://\u{2461}",
        "://\u{24DB}",
        "://\u{24BA}",
        "\u{3002}",
        "\u{FF61}",
        "//unix:/",
        "gopher:",
        "dict:",
        "tftp:",
        "netdoc:",
        "local_file:",
        "ldap:",
        "ldaps:",
        "rmi:",
        "sftp:",
        "ftps:",
        "smb:",
        "imap:",
        "pop3:",
        "smtp:",
        "telnet:",
        "jar:",
        "jdbc:",
        "meta-data",
        "user-data",
        "computemetadata",
        "/metadata/",
        "/opc/v",
        "openstack/latest",
        "security-credentials",
        "127-0-0-1",
        "169-254-",
        "169.254.169.254",
        "100.100.100.200",
    ];
    MORE.iter().copied().chain(names::hints()).map(Hint::text).collect()
});
