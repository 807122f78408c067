//! Exclusions: findings of the semantic detector and matches of rules that do not count.

use portcullis_types::{Class, Place, Variable};

use crate::checked::policy::{AutoEnforce, Exclusion, RuleExclusion, RuleTarget, Terms};
use crate::hint;
use crate::mistakes::Mistakes;
use crate::raw;
use crate::spanned::Spanned;

/// An entry of `semantic.exclude`.
pub(crate) fn semantic(mistakes: &mut Mistakes<'_>, raw: &Spanned<raw::Exclude>) -> Exclusion {
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
    let kind = raw.kind.as_ref().map(|kind| kind_of(mistakes, kind, class));
    let location = raw.location.as_ref().map(|text| text.value.clone());
    let raw::Exclude { path, until, reason, author, trial, auto_enforce, .. } = &raw.value;
    let terms = terms(mistakes, &Said { path, until, reason, author, trial: *trial, auto_enforce });
    Exclusion { class, kind, place, name, location, profile: None, terms }
}

/// An entry of `rules.exclude`.
pub(crate) fn rule(mistakes: &mut Mistakes<'_>, raw: &Spanned<raw::ExcludeRule>) -> RuleExclusion {
    if raw.rules.is_empty() {
        let hint = "name their ids: `rules = [942100]`".to_string();
        mistakes.wrong_with_hint(raw.span.clone(), "this exclusion is of no rule".to_string(), hint);
    }
    let target = raw.target.as_ref().and_then(|text| target(mistakes, text));
    let target_text = raw.target.as_ref().map(|text| text.value.clone());
    let raw::ExcludeRule { path, until, reason, author, trial, auto_enforce, .. } = &raw.value;
    let terms = terms(mistakes, &Said { path, until, reason, author, trial: *trial, auto_enforce });
    RuleExclusion { rules: raw.rules.clone(), target, target_text, profile: None, terms }
}

/// `VARIABLE` or `VARIABLE:NAME`.
fn target(mistakes: &mut Mistakes<'_>, text: &Spanned<String>) -> Option<RuleTarget> {
    let (variable, name) = match text.split_once(':') {
        Some((variable, name)) => (variable, Some(name.to_string())),
        None => (text.value.as_str(), None),
    };
    let known = Variable::from_name(variable);
    if known.is_none() {
        let message = format!("there is no variable `{variable}`");
        let hint = "events show what a rule matched as `matches.target`: `ARGS:comment`".to_string();
        mistakes.wrong_with_hint(text.span.clone(), message, hint);
    }
    Some(RuleTarget { variable: known?, name })
}

/// What exclusions of both sorts say.
struct Said<'r> {
    path: &'r Option<Spanned<String>>,
    until: &'r Option<Spanned<String>>,
    reason: &'r Option<String>,
    author: &'r Option<String>,
    trial: bool,
    auto_enforce: &'r Option<Spanned<raw::AutoEnforce>>,
}

fn terms(mistakes: &mut Mistakes<'_>, said: &Said<'_>) -> Terms {
    let (path, until) = (said.path.as_ref(), said.until.as_ref());
    if let Some(auto) = said.auto_enforce.as_ref().filter(|_| !said.trial) {
        let message = "`auto_enforce` ends a trial, and this exclusion is not on trial".to_string();
        mistakes.wrong_with_hint(auto.span.clone(), message, "add `trial = true`, or drop it".to_string());
    }
    if let Some(path) = path.filter(|path| !path.starts_with('/') && !path.starts_with('*')) {
        mistakes.wrong(path.span.clone(), "a path must begin with `/`".to_string());
    }
    let path = path.map(|path| {
        if !has_whole_braces(path) {
            let message = "braces stand for one segment of a path: `/posts/{id}`".to_string();
            mistakes.wrong(path.span.clone(), message);
        }
        path.value.clone()
    });
    let until = until.and_then(|text| {
        let until = exclusion_end(text);
        if until.is_none() {
            let message = format!("`{}` is neither a day nor a time", text.value);
            let hint = "write 2026-12-31, or 2026-12-31T18:00:00Z".to_string();
            mistakes.wrong_with_hint(text.span.clone(), message, hint);
        }
        until
    });
    Terms {
        path,
        until,
        reason: said.reason.clone(),
        author: said.author.clone(),
        trial: said.trial,
        auto_enforce: said
            .auto_enforce
            .as_ref()
            .map(|auto| AutoEnforce { after: auto.after.0, requests: auto.requests.get() }),
    }
}

/// The end of an exclusion whose `until` is this text: the end of a day in UTC, or a time; in milliseconds
/// since 1970. None if it is neither.
pub fn exclusion_end(text: &str) -> Option<u64> {
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
