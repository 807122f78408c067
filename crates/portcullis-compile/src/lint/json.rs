//! Arguments of JSON bodies: ModSecurity 3 names them `json.a.b`, ModSecurity 2 `a.b`.

use portcullis_seclang::ast::{Action, Ctl, Selector, Target, TargetKind};
use portcullis_seclang::{Diagnostic, SourceSpan};
use portcullis_types::Variable;

use super::{Rules, actions, warning};

/// A target with its place, and whether it is taken away.
type Placed<'t> = (&'t Target, SourceSpan, bool);

/// Targets that a directive added to rules are looked at as targets of the rules.
pub(super) fn look(rules: &Rules<'_, '_>, found: &mut Vec<Diagnostic>) {
    if rules.settings.modsecurity3 {
        return;
    }
    for (_, draft, link) in rules.links() {
        let targets = link.condition.iter().flat_map(|condition| &condition.targets);
        among(
            &targets
                .map(|target| (&target.node, target.span, target.node.kind == TargetKind::Exclude))
                .collect::<Vec<_>>(),
            found,
        );
        let excluded =
            actions(draft, link).filter_map(|action| Some((excluded(&action.node)?, action.span, true)));
        among(&excluded.collect::<Vec<_>>(), found);
    }
}

fn excluded(action: &Action) -> Option<&Target> {
    if let Action::Ctl(
        Ctl::RuleRemoveTargetById { target, .. }
        | Ctl::RuleRemoveTargetByTag { target, .. }
        | Ctl::RuleRemoveTargetByMsg { target, .. },
    ) = action
    {
        Some(target)
    } else {
        None
    }
}

/// Targets by the names of ModSecurity 3, of which those of ModSecurity 2 are not named beside them.
fn among(targets: &[Placed<'_>], found: &mut Vec<Diagnostic>) {
    for &(target, span, is_exclusion) in targets {
        let Some(name) = name_of_2(target) else { continue };
        let is_that = |other: &Target| matches!(&other.selector, Some(Selector::Key(key)) if key.eq_ignore_ascii_case(&name));
        if targets.iter().any(|(other, ..)| other.variable == target.variable && is_that(other)) {
            continue;
        }
        let (variable, name) = (target.variable.name(), name.escape_ascii());
        let message = format!("{variable}: arguments of JSON bodies have no `json.` before their name here");
        let hint = format!(
            "write {variable}:{name}, or SecCompatibility ModSecurity3 for the names of ModSecurity 3"
        );
        // A rule finds nothing for it, and an exclusion takes nothing away, which is the safe side.
        let one = match is_exclusion {
            true => Diagnostic::note(span, message).with_hint(hint),
            false => warning(span, message, hint),
        };
        // A target that a directive added stands in each rule.
        if !found.contains(&one) {
            found.push(one);
        }
    }
}

/// The name that ModSecurity 2 has for an argument that is named as in ModSecurity 3.
fn name_of_2(target: &Target) -> Option<Vec<u8>> {
    use Variable::{Args, ArgsNames, ArgsPost, ArgsPostNames};
    let (Some(Selector::Key(key)), Args | ArgsNames | ArgsPost | ArgsPostNames) =
        (&target.selector, target.variable)
    else {
        return None;
    };
    let (head, path) = key.split_at_checked(b"json.".len())?;
    if !head.eq_ignore_ascii_case(b"json.") || path.is_empty() {
        return None;
    }
    let mut name: Vec<&[u8]> = Vec::new();
    for part in path.split(|&byte| byte == b'.') {
        // The elements of `a` are all `a.a`, those of the text itself `array.array`.
        let is_element =
            part.strip_prefix(b"array_").is_some_and(|number| number.iter().all(u8::is_ascii_digit));
        match name.last() {
            Some(last) if is_element => name.push(last),
            None if is_element => name.extend([b"array".as_slice(), b"array"]),
            _ => name.push(part),
        }
    }
    Some(name.join(&b'.'))
}
