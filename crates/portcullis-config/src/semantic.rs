//! The semantic detector's actions for single classes, and its hosts.

use portcullis_types::Class;

use crate::checked::policy::{ClassAction, Semantic};
use crate::exclusion;
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
            raw::ClassAction::Block
                if !matches!(class, Class::Leak | Class::Redirect | Class::Field | Class::Api) => {}
            raw::ClassAction::Block => classes.push((class, ClassAction::Block)),
            raw::ClassAction::Log => classes.push((class, ClassAction::Log)),
            raw::ClassAction::Off => classes.push((class, ClassAction::Off)),
        }
    }
    let exclude = raw.exclude.iter().map(|each| exclusion::semantic(mistakes, each)).collect();
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
