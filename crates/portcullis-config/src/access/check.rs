use std::time::Duration;

use portcullis_access::Code;

use super::checked::{Access, Clients, KeyPart, LimitStore, Prefixes, RateLimit, RefuseAction, Unavailable};
use super::raw;
use crate::checked::network::Network;
use crate::hint;
use crate::lists;
use crate::mistakes::Mistakes;
use crate::spanned::Spanned;

/// Buckets of a limit unless told otherwise.
const KEYS: u32 = 65_536;
const KEYS_MAX: u32 = 1 << 24;
/// The longest time in which a bucket may fill.
const FILL_MAX: Duration = Duration::from_secs(366 * 24 * 3600);

/// The parts of the document that access controls may need.
#[derive(Default)]
pub(crate) struct Available {
    /// Databases that say where clients are.
    pub geo: bool,
    /// A store that nodes share limits in.
    pub limit_store: bool,
    /// Lists that are kept up to date.
    pub lists: Vec<String>,
}

/// Checks who may ask at a site or route.
pub(crate) fn access(
    mistakes: &mut Mistakes<'_>,
    raw: &Spanned<raw::Access>,
    available: &Available,
) -> Access {
    let raw::Access { bypass, allow, deny, others, action, status } = &raw.value;
    let access = Access {
        bypass: clients(mistakes, bypass, available),
        allow: clients(mistakes, allow, available),
        deny: clients(mistakes, deny, available),
        deny_others: others.as_ref().is_some_and(|others| others.value == raw::Others::Deny),
        action: self::action(*action),
        status: self::status(mistakes, status.as_ref(), *action, 403),
    };
    let none = Clients::default();
    if let Some(others) = others
        && access.deny_others
        && access.allow == none
        && access.bypass == none
    {
        let message = "these lists deny every client: all others are denied, and `allow` is empty";
        let hint = "name clients in `allow`".to_string();
        mistakes.wrong_with_hint(others.span.clone(), message.to_string(), hint);
    }
    access
}

/// Checks the limits of a site or route. `names` are those that the site has so far.
pub(crate) fn rate_limits(
    mistakes: &mut Mistakes<'_>,
    raw: &[raw::RateLimit],
    names: &mut Vec<String>,
    available: &Available,
) -> Vec<RateLimit> {
    raw.iter().map(|limit| rate_limit(mistakes, limit, names, available)).collect()
}

fn rate_limit(
    mistakes: &mut Mistakes<'_>,
    raw: &raw::RateLimit,
    names: &mut Vec<String>,
    available: &Available,
) -> RateLimit {
    name(mistakes, &raw.name);
    if names.contains(&raw.name.value) {
        let message = format!("there are two rate limits `{}` in this site", raw.name.value);
        mistakes.wrong(raw.name.span.clone(), message);
    }
    names.push(raw.name.value.clone());
    let burst = raw.burst.as_ref().unwrap_or(&raw.rate);
    for (key, number) in [("rate", Some(&raw.rate)), ("burst", raw.burst.as_ref())] {
        if let Some(number) = number.filter(|number| number.value == 0) {
            mistakes.wrong(number.span.clone(), format!("{key} must be at least 1"));
        }
    }
    let per = raw.per.as_ref().map_or(Duration::from_secs(1), |per| per.value.0);
    if let Some(given) = &raw.per
        && per.checked_mul(burst.value).is_none_or(|fill| fill / raw.rate.value.max(1) > FILL_MAX)
    {
        mistakes
            .wrong(given.span.clone(), "refilling the burst at this rate takes more than a year".to_string());
    }
    let key = match &raw.key {
        None => vec![KeyPart::Client],
        Some(parts) => parts.iter().filter_map(|part| key_part(mistakes, part, available)).collect(),
    };
    for (name, prefix) in [("ipv4_prefix", &raw.ipv4_prefix), ("ipv6_prefix", &raw.ipv6_prefix)] {
        if let Some(prefix) = prefix.as_ref().filter(|_| !key.contains(&KeyPart::Client)) {
            mistakes.wrong(prefix.span.clone(), format!("{name} requires a limit with the key `client`"));
        }
    }
    RateLimit {
        name: raw.name.value.clone(),
        key,
        rate: raw.rate.value,
        per,
        burst: burst.value,
        methods: raw.methods.iter().filter_map(|method| self::method(mistakes, method)).collect(),
        prefixes: prefixes(mistakes, &raw.ipv4_prefix, &raw.ipv6_prefix),
        only: raw.only.as_ref().map(|only| {
            let clients = clients(mistakes, &only.value, available);
            if clients == Clients::default() {
                mistakes.wrong(only.span.clone(), "`only` is empty, so no request is counted".to_string());
            }
            clients
        }),
        except: networks(mistakes, &raw.except),
        shared: shared(mistakes, raw, available),
        action: action(raw.action),
        status: status(mistakes, raw.status.as_ref(), raw.action, 429),
        keys_max: match &raw.keys {
            Some(keys) if !(8..=KEYS_MAX).contains(&keys.value) => {
                mistakes.wrong(keys.span.clone(), format!("keys must be 8 to {KEYS_MAX}"));
                8
            }
            keys => keys.as_ref().map_or(KEYS, |keys| keys.value) as usize,
        },
    }
}

fn shared(mistakes: &mut Mistakes<'_>, raw: &raw::RateLimit, available: &Available) -> Option<Unavailable> {
    let is_shared = raw.shared.as_ref().filter(|shared| shared.value);
    if let (Some(shared), false) = (is_shared, available.limit_store) {
        let hint = "add `limit_store = { url = \"redis://10.0.0.9:6379\" }` to the document".to_string();
        mistakes.wrong_with_hint(
            shared.span.clone(),
            "`shared = true` requires `limit_store`".to_string(),
            hint,
        );
    }
    if let (None, Some(given)) = (is_shared, &raw.unavailable) {
        mistakes.wrong(given.span.clone(), "`unavailable` requires `shared = true`".to_string());
    }
    is_shared.map(|_| match raw.unavailable.as_ref().map(|given| given.value) {
        Some(raw::Unavailable::Open) => Unavailable::Open,
        Some(raw::Unavailable::Closed) => Unavailable::Closed,
        Some(raw::Unavailable::Local) | None => Unavailable::Local,
    })
}

/// Checks where nodes share rate limits.
pub(crate) fn limit_store(mistakes: &mut Mistakes<'_>, raw: Option<raw::LimitStore>) -> Option<LimitStore> {
    let raw = raw?;
    let schemes = ["redis://", "rediss://", "memcached://"];
    if !schemes.iter().any(|scheme| raw.url.strip_prefix(scheme).is_some_and(|host| !host.is_empty())) {
        // Not shown: it may have a password.
        let message = "it is `redis://host:port`, with TLS `rediss://host:port`, or `memcached://host:port`";
        mistakes.wrong(raw.url.span.clone(), message.to_string());
    }
    let prefix = raw.prefix.map_or_else(
        || "portcullis:".to_string(),
        |prefix| {
            if prefix.len() > 64 || !prefix.bytes().all(|byte| byte.is_ascii_graphic()) {
                let message = "a prefix has at most 64 characters and no spaces".to_string();
                mistakes.wrong(prefix.span.clone(), message);
            }
            prefix.value
        },
    );
    Some(LimitStore { url: raw.url.value, prefix })
}

/// Returns the prefix lengths by which addresses count as one client.
pub(super) fn prefixes(
    mistakes: &mut Mistakes<'_>,
    ipv4: &Option<Spanned<u8>>,
    ipv6: &Option<Spanned<u8>>,
) -> Prefixes {
    for (name, prefix, bits) in [("ipv4_prefix", ipv4, 32), ("ipv6_prefix", ipv6, 128)] {
        if let Some(prefix) = prefix.as_ref().filter(|prefix| !(1..=bits).contains(&prefix.value)) {
            mistakes.wrong(prefix.span.clone(), format!("{name} must be 1 to {bits}"));
        }
    }
    let default = Prefixes::default();
    Prefixes {
        ipv4: ipv4.as_ref().map_or(default.ipv4, |prefix| prefix.value),
        ipv6: ipv6.as_ref().map_or(default.ipv6, |prefix| prefix.value),
    }
}

/// Names stand in labels and in structured header fields.
fn name(mistakes: &mut Mistakes<'_>, name: &Spanned<String>) {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if name.is_empty() || name.len() > 64 || !name.bytes().all(fits) {
        let message = format!("`{}` is not a name: 1 to 64 letters, digits, `-`, `_`, `.`", name.value);
        mistakes.wrong(name.span.clone(), message);
    }
}

fn key_part(mistakes: &mut Mistakes<'_>, text: &Spanned<String>, available: &Available) -> Option<KeyPart> {
    let token = |name: &str| !name.is_empty() && name.bytes().all(is_token);
    match text.split_once(':') {
        None if text.value == "client" => return Some(KeyPart::Client),
        None if text.value == "rule" => return Some(KeyPart::Rule),
        None if text.value == "path" => return Some(KeyPart::Path),
        None if text.value == "country" => return located(mistakes, text, KeyPart::Country, available),
        None if text.value == "continent" => return located(mistakes, text, KeyPart::Continent, available),
        None if text.value == "asn" => return located(mistakes, text, KeyPart::Asn, available),
        Some(("header", name)) if token(name) => return Some(KeyPart::Header(name.to_ascii_lowercase())),
        Some(("cookie", name)) if token(name) => return Some(KeyPart::Cookie(name.to_string())),
        _ => {}
    }
    let kind = text.split(':').next().unwrap_or_default();
    let known = ["client", "path", "rule", "header:NAME", "cookie:NAME", "country", "continent", "asn"];
    mistakes.wrong_with_hint(
        text.span.clone(),
        format!("`{}` is not a part of a key", text.value),
        match kind {
            "header" | "cookie" => format!("write `{kind}:NAME`"),
            _ => hint::suggest(kind, &known),
        },
    );
    None
}

fn located(
    mistakes: &mut Mistakes<'_>,
    text: &Spanned<String>,
    part: KeyPart,
    available: &Available,
) -> Option<KeyPart> {
    needs_geo(mistakes, &text.span, available);
    Some(part)
}

/// A set of clients.
fn clients(mistakes: &mut Mistakes<'_>, raw: &raw::Clients, available: &Available) -> Clients {
    let mut code = |text: &Spanned<String>, is_known: fn(Code) -> bool, what: &str, hint: &str| {
        needs_geo(mistakes, &text.span, available);
        let code = Code::new(text).filter(|code| is_known(*code));
        if code.is_none() {
            let message = format!("`{}` is not {what}", text.value);
            mistakes.wrong_with_hint(text.span.clone(), message, hint.to_string());
        }
        code
    };
    let country = "two letters of ISO 3166-1, for example `DE`; the United Kingdom is `GB`, Greece `GR`";
    let continent = "AF, AN, AS, EU, NA, OC or SA";
    let countries = raw.countries.iter();
    let countries =
        countries.filter_map(|text| code(text, |code| code.continent().is_some(), "a country", country));
    let countries = countries.collect();
    let continents = raw.continents.iter();
    let continents =
        continents.filter_map(|text| code(text, Code::is_continent, "a continent", continent)).collect();
    for number in &raw.asns {
        needs_geo(mistakes, &number.span, available);
    }
    Clients {
        networks: networks(mistakes, &raw.networks),
        files: raw.files.iter().map(|file| mistakes.path(file)).collect(),
        lists: lists::named(mistakes, &raw.lists, &available.lists),
        countries,
        continents,
        asns: raw.asns.iter().map(|number| number.value).collect(),
    }
}

fn needs_geo(mistakes: &mut Mistakes<'_>, at: &std::ops::Range<usize>, available: &Available) {
    if !available.geo {
        let message = "country rules require a GeoIP database".to_string();
        let hint = "add `geo = { files = [\"country.mmdb\"] }` to the document".to_string();
        mistakes.wrong_with_hint(at.clone(), message, hint);
    }
}

fn method(mistakes: &mut Mistakes<'_>, text: &Spanned<String>) -> Option<String> {
    if !text.is_empty() && text.bytes().all(|byte| is_token(byte) && !byte.is_ascii_lowercase()) {
        return Some(text.value.clone());
    }
    mistakes.wrong_with_hint(
        text.span.clone(),
        format!("`{}` is not a method", text.value),
        "write methods in upper case, for example `POST`".to_string(),
    );
    None
}

pub(super) fn action(raw: Option<raw::RefuseAction>) -> RefuseAction {
    match raw {
        Some(raw::RefuseAction::Log) => RefuseAction::Log,
        Some(raw::RefuseAction::Block) | None => RefuseAction::Block,
    }
}

pub(super) fn status(
    mistakes: &mut Mistakes<'_>,
    given: Option<&Spanned<u16>>,
    action: Option<raw::RefuseAction>,
    default: u16,
) -> u16 {
    let Some(status) = given else { return default };
    if !(400..=599).contains(&status.value) {
        mistakes.wrong(status.span.clone(), "status must be 400 to 599".to_string());
    } else if action == Some(raw::RefuseAction::Log) {
        mistakes
            .wrong(status.span.clone(), "`status` has no effect with a log-only action: drop it".to_string());
    }
    status.value
}

pub(super) fn networks(mistakes: &mut Mistakes<'_>, raw: &[Spanned<String>]) -> Vec<Network> {
    let mut networks = Vec::with_capacity(raw.len());
    for text in raw {
        match text.parse() {
            Ok(network) => networks.push(network),
            Err(message) => mistakes.wrong(text.span.clone(), message),
        }
    }
    networks
}

/// `tchar` of RFC 9110, section 5.6.2.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}
