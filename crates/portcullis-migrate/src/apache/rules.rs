//! ModSecurity's directives: where the rules of a site come from.

use super::Context;
use super::include::RULES;
use super::syntax::Directive;
use crate::model::{RuleKind, RuleSource, Waf};
use crate::rules::unfit_for_a_place;

/// Adds what these directives say of rules, with the sections for places in them.
pub(crate) fn read(items: &[Directive], waf: &mut Waf, cx: &mut Context<'_>) {
    for item in items {
        let Some(entry) = item.entry else { continue };
        let kind = match item.name.as_str() {
            RULES => RuleKind::File { path: item.arg(0).to_owned(), optional: false },
            "secruleengine" => {
                waf.on = !item.arg(0).eq_ignore_ascii_case("off");
                RuleKind::Inline(item.text.clone())
            }
            "secremoterules" => RuleKind::Inline(item.text.clone()),
            "location" | "locationmatch" => match section(item, cx) {
                Some(text) => RuleKind::Inline(text),
                None => continue,
            },
            _ if item.is_rule() => RuleKind::Inline(item.text.clone()),
            _ => continue,
        };
        match item.name.as_str() {
            "secruleengine" => {}
            RULES => waf.on = true,
            // Rules without a word on the engine are inspected by it here; Apache would not.
            _ => waf.on |= waf.rules.is_empty(),
        }
        waf.rules.push(RuleSource { kind, entry });
    }
}

/// The text of the rules in a section for a place, as SecLang here has it, too.
fn section(item: &Directive, cx: &mut Context<'_>) -> Option<String> {
    let (rules, unfit): (Vec<&Directive>, Vec<&Directive>) = item
        .children()
        .iter()
        .filter(|inner| inner.is_rule())
        .partition(|inner| unfit_for_a_place(&inner.text).is_empty());
    for rule in &rules {
        cx.taken(rule, "rules of the site, for this place");
    }
    for rule in unfit {
        cx.left(rule, "this cannot be said of a part of the site: say it of the whole site");
    }
    for inner in item.children().iter().filter(|inner| inner.name == RULES) {
        cx.left(
            inner,
            "a file of rules for a place: include it for the whole site, or move its rules into the section",
        );
    }
    let name = if item.name == "location" { "Location" } else { "LocationMatch" };
    let lines: Vec<&str> = rules.iter().map(|rule| rule.text.as_str()).collect();
    (!lines.is_empty()).then(|| format!("{}\n{}\n</{name}>", item.text, lines.join("\n")))
}
