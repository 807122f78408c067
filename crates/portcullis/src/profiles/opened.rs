//! What an attacker gains by a profile: attacks of every class, in the places that it opens.
//!
//! Each field of a profile is tried by itself, in mode `semantic` for its kinds and in mode `crs` for its
//! rules. An attack that is stopped without it and passes with it is one that the field opens the site for:
//! its class has to stand in `lets_pass`, and no other.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use portcullis_advise::probes::{Probe, Spot, probes};
use portcullis_config::{Policy, Profile, ProfileField, ProfileRequest};

use super::tester::{Tester, with, without_values};
use crate::outcome::Failure;

/// Attacks of a class that are tried in one place, at most: of each kind the shortest text.
const KINDS_MAX: usize = 12;

/// What no profile opens a field for: classes of attacks, and addresses that hand out a cloud's credentials.
const NEVER: [&str; 3] = ["deserialization", "log4j", METADATA];
const METADATA: &str = "metadata";

/// What the fields of a profile were seen to let pass.
#[derive(Default)]
pub(super) struct Opened {
    /// Of each field the classes of attacks, with an example.
    fields: Vec<Vec<(&'static str, String)>>,
    /// Attacks of [`NEVER`] that the semantic detector stops in a place of the profile: others of them, such
    /// as lookups that read a variable, are none by themselves.
    severe: BTreeSet<Vec<u8>>,
}

/// Adds what the fields of a profile let pass under this policy, without values of their own excluded by it.
pub(super) fn measure(
    tester: &mut Tester,
    profile: &Profile,
    policy: &Policy,
    opened: &mut Opened,
) -> Result<(), Failure> {
    let whole = with(policy, profile, "");
    opened.fields.resize_with(profile.fields().count(), Vec::new);
    if policy.mode.has_semantic() {
        let mut before = tester.trial(&without_values(policy, &whole))?;
        let place = profile.requests.iter().find(|request| request.value.is_some());
        let severe = |probe: &Probe| probe.change.is_empty() && NEVER.contains(&class_of(probe));
        for probe in probes(Spot::Value).filter(severe) {
            let text = String::from_utf8_lossy(&probe.text);
            if place.is_some_and(|place| tester.ask(&mut before, &place.bytes("", Some(&text))).0) {
                opened.severe.insert(probe.text);
            }
        }
    }
    for (number, field) in profile.fields().enumerate() {
        let excludes = match policy.mode.has_semantic() {
            true => !field.kinds.is_empty() || !field.classes.is_empty(),
            false => !field.all_rules.is_empty(),
        };
        if !excludes || !field.is_of_value() {
            continue;
        }
        let mut before = tester.trial(&without_field(&whole, &field))?;
        let mut after = tester.trial(&whole)?;
        for request in places(profile, &field) {
            // What stops it without any value there says nothing about values.
            if tester.ask(&mut before, &request.bytes("", Some(""))).0 {
                continue;
            }
            for probe in attacks(&field, policy.mode.has_semantic()) {
                let class = class_of(&probe);
                if opened.fields[number].iter().any(|(seen, _)| *seen == class)
                    || NEVER.contains(&class) && !opened.severe.contains(&probe.text)
                {
                    continue;
                }
                let text = String::from_utf8_lossy(&probe.text);
                let bytes = request.bytes("", Some(&text));
                if !tester.ask(&mut after, &bytes).0 && tester.ask(&mut before, &bytes).0 {
                    opened.fields[number].push((class, format!("{}: {}: {text}", request.what, probe.kind)));
                }
            }
        }
    }
    Ok(())
}

/// The policy without what one field of a profile has added to it.
fn without_field(whole: &Policy, field: &ProfileField<'_>) -> Policy {
    let mut policy = whole.clone();
    let is_of_path = |path: &Option<String>| path.as_ref().is_some_and(|path| field.paths.contains(path));
    policy.semantic.exclude.retain(|each| {
        let is_of_kinds = each.kind.as_ref().is_some_and(|kind| field.kinds.contains(kind));
        let is_of_languages =
            each.kind.is_none() && each.class.is_some_and(|class| field.classes.contains(&class));
        each.location.as_deref() != field.location
            || !(is_of_kinds || is_of_languages)
            || !is_of_path(&each.terms.path)
    });
    policy.rule_exclude.retain(|each| {
        each.target_text.as_deref() != field.target
            || each.rules != field.all_rules
            || !is_of_path(&each.terms.path)
    });
    policy
}

/// The differences between what was seen and what the profile says, one a line.
pub(super) fn differences(profile: &Profile, opened: &Opened) -> String {
    let mut text = String::new();
    for (field, opened) in profile.fields().zip(&opened.fields) {
        let seen: BTreeSet<&str> = opened.iter().map(|(class, _)| *class).collect();
        let said: BTreeSet<&str> = field.lets_pass.iter().map(String::as_str).collect();
        if seen != said {
            let list: Vec<_> = seen.iter().map(|class| format!("{class:?}")).collect();
            let place = field.place();
            let _ = writeln!(text, "  {place}: lets_pass = [{}] was seen", list.join(", "));
            for (class, example) in opened.iter().filter(|(class, _)| !said.contains(class)) {
                let _ = writeln!(text, "    {class} passes: {}", example.escape_debug());
            }
        }
    }
    text
}

/// The class in `lets_pass`. That of addresses which hand out a cloud's credentials is none that a file may
/// name.
fn class_of(probe: &Probe) -> &'static str {
    if probe.kind.starts_with("ssrf.metadata") { METADATA } else { probe.class.name() }
}

/// The requests with a value that may be one of this field, each shape once.
fn places<'p>(profile: &'p Profile, field: &ProfileField<'_>) -> Vec<&'p ProfileRequest> {
    let name = field.place().rsplit([':', '.']).next().unwrap_or_default().trim_matches('*').to_owned();
    let starts: Vec<&str> =
        field.paths.iter().filter_map(|path| path.split(['*', '{', '$']).next()).collect();
    let mut shapes = BTreeSet::new();
    let is_place = |request: &&ProfileRequest| {
        request.value.is_some()
            && starts.iter().any(|start| request.uri.starts_with(start))
            && String::from_utf8_lossy(&request.bytes("", Some(""))).contains(&name)
            && shapes.insert(request.bytes("", Some("")))
    };
    profile.requests.iter().filter(is_place).collect()
}

/// The attacks to try: in mode `semantic` all of the kinds that the field excludes, in mode `crs` of every
/// class the shortest of its kinds, and all of [`NEVER`].
fn attacks(field: &ProfileField<'_>, is_semantic: bool) -> Vec<Probe> {
    let mut all: Vec<Probe> = probes(Spot::Value).filter(|probe| probe.change.is_empty()).collect();
    if is_semantic {
        all.retain(|probe| {
            field.kinds.iter().any(|kind| kind == probe.kind) || field.classes.contains(&probe.class)
        });
        return all;
    }
    all.sort_by_key(|probe| (probe.class.name(), probe.text.len()));
    let (mut kinds, mut taken): (BTreeSet<&str>, Vec<Probe>) = (BTreeSet::new(), Vec::new());
    for probe in all {
        let of_class = taken.iter().filter(|other| class_of(other) == class_of(&probe)).count();
        let is_tried = NEVER.contains(&class_of(&probe)) || of_class < KINDS_MAX && kinds.insert(probe.kind);
        if is_tried {
            taken.push(probe);
        }
    }
    taken
}
