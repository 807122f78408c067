//! The semantic detector's actions for single classes, and its exclusions.

use portcullis_types::{Class, Place};

use crate::checked::policy::{ClassAction, Exclusion, Semantic};
use crate::hint;
use crate::mistakes::Mistakes;
use crate::raw;
use crate::spanned::Spanned;

pub(crate) fn check(mistakes: &mut Mistakes<'_>, raw: &raw::Semantic) -> Semantic {
    let mut classes = Vec::new();
    for (name, action) in &raw.classes {
        let Some(class) = Class::from_name(name) else {
            let message = format!("there is no class `{name}`");
            mistakes.wrong_with_hint(action.span.clone(), message, hint::suggest(name, Class::NAMES));
            continue;
        };
        match action.value {
            // The defaults of the detector. Leaks are logged, most of them, and redirects where
            // no hosts are listed.
            raw::ClassAction::Block if !matches!(class, Class::Leak | Class::Redirect) => {}
            raw::ClassAction::Block => classes.push((class, ClassAction::Block)),
            raw::ClassAction::Log => classes.push((class, ClassAction::Log)),
            raw::ClassAction::Off => classes.push((class, ClassAction::Off)),
        }
    }
    let exclude = raw.exclude.iter().map(|each| exclusion(mistakes, each)).collect();
    let response_wait = raw.response_wait.map_or(Semantic::default().response_wait, |time| time.0);
    let hosts = raw.hosts.iter().filter_map(|name| host(mistakes, name)).collect();
    Semantic { classes, hosts, exclude, response_wait }
}

/// A host's name, or `*.` and the name below which all are meant.
fn host(mistakes: &mut Mistakes<'_>, text: &Spanned<String>) -> Option<String> {
    let name = text.strip_prefix("*.").unwrap_or(text);
    let is_part = |b: u8| {
        b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b':' | b'[' | b']') || b >= 0x80
    };
    let is_name =
        !name.is_empty() && name.bytes().all(is_part) && !name.contains("..") && !name.starts_with('.');
    if !is_name || name.contains(':') && !name.starts_with('[') {
        let message = format!("`{}` is no host", text.value);
        let hint =
            "a name without scheme, port and path: `shop.example.com`, or `*.example.com` for all below it"
                .to_string();
        mistakes.wrong_with_hint(text.span.clone(), message, hint);
        return None;
    }
    Some(text.to_ascii_lowercase())
}

fn exclusion(mistakes: &mut Mistakes<'_>, raw: &Spanned<raw::Exclude>) -> Exclusion {
    if raw.class.is_none() && raw.kind.is_none() && raw.location.is_none() && raw.path.is_none() {
        let message = "this exclusion matches everything".to_string();
        let hint =
            "say what it is for: `class`, `kind`, `location` or `path`; `mode` switches the detector off"
                .to_string();
        mistakes.wrong_with_hint(raw.span.clone(), message, hint);
    }
    let class = raw.class.as_ref().and_then(|name| {
        let class = Class::from_name(name);
        if class.is_none() {
            let message = format!("there is no class `{}`", name.value);
            mistakes.wrong_with_hint(name.span.clone(), message, hint::suggest(name, Class::NAMES));
        }
        class
    });
    let (place, name) = raw.location.as_ref().map_or((None, None), |text| location(mistakes, text));
    if let Some(path) = raw.path.as_ref().filter(|path| !path.starts_with('/') && !path.starts_with('*')) {
        mistakes.wrong(path.span.clone(), "a path must begin with `/`".to_string());
    }
    let kind = raw.kind.as_ref().map(|kind| kind_of(mistakes, kind, class));
    let path = raw.path.as_ref().map(|path| {
        if !has_whole_braces(path) {
            let message = "braces stand for one segment of a path: `/posts/{id}`".to_string();
            mistakes.wrong(path.span.clone(), message);
        }
        path.value.clone()
    });
    let until = raw.until.as_ref().and_then(|text| {
        let until = end(text);
        if until.is_none() {
            let message = format!("`{}` is neither a day nor a time", text.value);
            let hint = "write 2026-12-31, or 2026-12-31T18:00:00Z".to_string();
            mistakes.wrong_with_hint(text.span.clone(), message, hint);
        }
        until
    });
    Exclusion { class, kind, place, name, path, until, reason: raw.reason.clone() }
}

/// The end of a day in UTC, or a time; milliseconds since 1970.
fn end(text: &str) -> Option<u64> {
    let day = text.parse::<jiff::civil::Date>().ok().filter(|_| text.len() == "2026-12-31".len());
    let time = match day {
        Some(day) => day.tomorrow().ok()?.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp(),
        None => text.parse().ok()?,
    };
    u64::try_from(time.as_millisecond()).ok()
}

/// A kind is named `class.what`, and is one of the class that the exclusion names.
fn kind_of(mistakes: &mut Mistakes<'_>, kind: &Spanned<String>, class: Option<Class>) -> String {
    let of = kind.split_once('.').and_then(|(class, _)| Class::from_name(class));
    match (of, class) {
        (None, _) => {
            let message = format!("`{}` is no kind of finding", kind.value);
            let hint = "events show kinds as `findings.kind`: `sqli.union`".to_string();
            mistakes.wrong_with_hint(kind.span.clone(), message, hint);
        }
        (Some(of), Some(class)) if of != class => {
            let message = format!(
                "the kind `{}` is of the class `{}`, not of `{}`",
                kind.value,
                of.name(),
                class.name()
            );
            mistakes.wrong(kind.span.clone(), message);
        }
        (Some(_), _) => {}
    }
    kind.value.clone()
}

/// Every brace that opens closes in its segment.
fn has_whole_braces(path: &str) -> bool {
    path.split('/').all(|segment| {
        let mut open = false;
        let ordered = segment.chars().all(|sign| match sign {
            '{' => !std::mem::replace(&mut open, true),
            '}' => std::mem::replace(&mut open, false),
            _ => true,
        });
        ordered && !open
    })
}

/// `PLACE`, `PLACE:NAME` or `*:NAME`.
fn location(mistakes: &mut Mistakes<'_>, text: &Spanned<String>) -> (Option<Place>, Option<String>) {
    let (place, name) = match text.split_once(':') {
        Some((place, name)) => (place, Some(name.to_string())),
        None => (text.value.as_str(), None),
    };
    if place == "*" {
        return (None, name);
    }
    let known = Place::from_name(place);
    if known.is_none() {
        let names: Vec<&str> = Place::ALL.iter().map(|place| place.name()).collect();
        let message = format!("there is no place `{place}`");
        mistakes.wrong_with_hint(text.span.clone(), message, hint::suggest(place, &names));
    }
    (known, name)
}
