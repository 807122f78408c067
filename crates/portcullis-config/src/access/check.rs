use std::time::Duration;

use super::checked::{Access, Clients, KeyPart, Prefixes, RateLimit, RefuseAction};
use super::raw;
use crate::check::Checker;
use crate::checked::Network;
use crate::hint;
use crate::spanned::Spanned;

/// Buckets of a limit unless told otherwise.
const KEYS: u32 = 65_536;
const KEYS_MAX: u32 = 1 << 24;
/// The longest time in which a bucket may fill.
const FILL_MAX: Duration = Duration::from_secs(366 * 24 * 3600);

/// Checks who may ask at a site or route.
pub(crate) fn access(checker: &mut Checker<'_>, raw: &Spanned<raw::Access>) -> Access {
    let raw::Access { bypass, allow, deny, others, action, status } = &raw.value;
    let clients = |checker: &mut Checker<'_>, networks: &[_], files: &[String]| Clients {
        networks: self::networks(checker, networks),
        files: files.iter().map(|file| checker.path(file)).collect(),
    };
    let access = Access {
        bypass: clients(checker, &bypass.networks, &bypass.files),
        allow: clients(checker, &allow.networks, &allow.files),
        deny: clients(checker, &deny.networks, &deny.files),
        deny_others: others.as_ref().is_some_and(|others| others.value == raw::Others::Deny),
        action: self::action(*action),
        status: self::status(checker, status.as_ref(), *action, 403),
    };
    let none = Clients::default();
    if let Some(others) = others
        && access.deny_others
        && access.allow == none
        && access.bypass == none
    {
        let message = "nobody may ask: all others are denied, and nobody is allowed";
        let hint = "name clients in `allow`".to_string();
        checker.wrong_with_hint(others.span.clone(), message.to_string(), hint);
    }
    access
}

/// Checks the limits of a site or route. `names` are those that the site has so far.
pub(crate) fn rate_limits(
    checker: &mut Checker<'_>,
    raw: &[raw::RateLimit],
    names: &mut Vec<String>,
) -> Vec<RateLimit> {
    raw.iter().map(|limit| rate_limit(checker, limit, names)).collect()
}

fn rate_limit(checker: &mut Checker<'_>, raw: &raw::RateLimit, names: &mut Vec<String>) -> RateLimit {
    name(checker, &raw.name);
    if names.contains(&raw.name.value) {
        let message = format!("there are two rate limits `{}` in this site", raw.name.value);
        checker.wrong(raw.name.span.clone(), message);
    }
    names.push(raw.name.value.clone());
    let burst = raw.burst.as_ref().unwrap_or(&raw.rate);
    for (key, number) in [("rate", Some(&raw.rate)), ("burst", raw.burst.as_ref())] {
        if let Some(number) = number.filter(|number| number.value == 0) {
            checker.wrong(number.span.clone(), format!("{key} must be at least 1"));
        }
    }
    let per = raw.per.as_ref().map_or(Duration::from_secs(1), |per| per.value.0);
    if let Some(given) = &raw.per
        && per.checked_mul(burst.value).is_none_or(|fill| fill / raw.rate.value.max(1) > FILL_MAX)
    {
        checker.wrong(given.span.clone(), "the burst would take more than a year to come again".to_string());
    }
    let key = match &raw.key {
        None => vec![KeyPart::Client],
        Some(parts) => parts.iter().filter_map(|part| key_part(checker, part)).collect(),
    };
    for (name, prefix, bits) in
        [("ipv4_prefix", &raw.ipv4_prefix, 32), ("ipv6_prefix", &raw.ipv6_prefix, 128)]
    {
        let Some(prefix) = prefix else { continue };
        if !(1..=bits).contains(&prefix.value) {
            checker.wrong(prefix.span.clone(), format!("{name} must be 1 to {bits}"));
        } else if !key.contains(&KeyPart::Client) {
            checker.wrong(prefix.span.clone(), format!("{name} is for limits with the key `client`"));
        }
    }
    let default = Prefixes::default();
    RateLimit {
        name: raw.name.value.clone(),
        key,
        rate: raw.rate.value,
        per,
        burst: burst.value,
        methods: raw.methods.iter().filter_map(|method| self::method(checker, method)).collect(),
        prefixes: Prefixes {
            ipv4: raw.ipv4_prefix.as_ref().map_or(default.ipv4, |prefix| prefix.value),
            ipv6: raw.ipv6_prefix.as_ref().map_or(default.ipv6, |prefix| prefix.value),
        },
        except: networks(checker, &raw.except),
        action: action(raw.action),
        status: status(checker, raw.status.as_ref(), raw.action, 429),
        keys_max: match &raw.keys {
            Some(keys) if !(8..=KEYS_MAX).contains(&keys.value) => {
                checker.wrong(keys.span.clone(), format!("keys must be 8 to {KEYS_MAX}"));
                8
            }
            keys => keys.as_ref().map_or(KEYS, |keys| keys.value) as usize,
        },
    }
}

/// Names stand in labels and in structured header fields.
fn name(checker: &mut Checker<'_>, name: &Spanned<String>) {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if name.is_empty() || name.len() > 64 || !name.bytes().all(fits) {
        let message = format!("`{}` is not a name: 1 to 64 letters, digits, `-`, `_`, `.`", name.value);
        checker.wrong(name.span.clone(), message);
    }
}

fn key_part(checker: &mut Checker<'_>, text: &Spanned<String>) -> Option<KeyPart> {
    let token = |name: &str| !name.is_empty() && name.bytes().all(is_token);
    match text.split_once(':') {
        None if text.value == "client" => return Some(KeyPart::Client),
        None if text.value == "path" => return Some(KeyPart::Path),
        Some(("header", name)) if token(name) => return Some(KeyPart::Header(name.to_ascii_lowercase())),
        Some(("cookie", name)) if token(name) => return Some(KeyPart::Cookie(name.to_string())),
        _ => {}
    }
    let kind = text.split(':').next().unwrap_or_default();
    let known = ["client", "path", "header:NAME", "cookie:NAME"];
    checker.wrong_with_hint(
        text.span.clone(),
        format!("`{}` is not a part of a key", text.value),
        match kind {
            "header" | "cookie" => format!("write `{kind}:NAME`"),
            _ => hint::suggest(kind, &known),
        },
    );
    None
}

fn method(checker: &mut Checker<'_>, text: &Spanned<String>) -> Option<String> {
    if !text.is_empty() && text.bytes().all(|byte| is_token(byte) && !byte.is_ascii_lowercase()) {
        return Some(text.value.clone());
    }
    checker.wrong_with_hint(
        text.span.clone(),
        format!("`{}` is not a method", text.value),
        "methods are upper case, for example `POST`".to_string(),
    );
    None
}

fn action(raw: Option<raw::RefuseAction>) -> RefuseAction {
    match raw {
        Some(raw::RefuseAction::Log) => RefuseAction::Log,
        Some(raw::RefuseAction::Block) | None => RefuseAction::Block,
    }
}

fn status(
    checker: &mut Checker<'_>,
    given: Option<&Spanned<u16>>,
    action: Option<raw::RefuseAction>,
    default: u16,
) -> u16 {
    let Some(status) = given else { return default };
    if !(400..=599).contains(&status.value) {
        checker.wrong(status.span.clone(), "status must be 400 to 599".to_string());
    } else if action == Some(raw::RefuseAction::Log) {
        checker.wrong(status.span.clone(), "what only logs answers nothing: drop `status`".to_string());
    }
    status.value
}

fn networks(checker: &mut Checker<'_>, raw: &[Spanned<String>]) -> Vec<Network> {
    let mut networks = Vec::with_capacity(raw.len());
    for text in raw {
        match text.parse() {
            Ok(network) => networks.push(network),
            Err(message) => checker.wrong(text.span.clone(), message),
        }
    }
    networks
}

/// `tchar` of RFC 9110, section 5.6.2.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}
