//! `portcullis profiles diff`: what one profile has and another has not; and what a site has learned that a
//! profile has not.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::PathBuf;

use portcullis_config::{Profile, ProfileExclusion};
use portcullis_types::Class;

use super::draft::{Carried, Carrier, carried, learned_by};
use super::find;
use crate::outcome::Failure;

/// Arguments of `portcullis profiles diff`.
#[derive(Debug, clap::Args)]
pub struct DiffArgs {
    /// A profile of the program, or a file with one (.toml)
    #[arg(value_name = "NAME")]
    name: String,
    /// Another one, or with --data a site; by default, for a file, the profile of the program with its name
    #[arg(long, value_name = "NAME|FILE|SITE")]
    with: Option<String>,
    /// The data folder of the instance whose site has learned
    #[arg(long, value_name = "DIR", requires = "with")]
    data: Option<PathBuf>,
}

/// The lines, and whether there is no difference.
pub(super) fn run(args: &DiffArgs) -> Result<(String, bool), Failure> {
    let profile = find(&args.name)?;
    let text = match (&args.with, &args.data) {
        (Some(site), Some(data)) => with_learned(&profile, &carried(&learned_by(site, Some(data))?)),
        (Some(other), None) => between(&profile, &find(other)?),
        (None, _) if args.name.ends_with(".toml") => between(&find(&profile.name)?, &profile),
        (None, _) => {
            return Err(Failure::usage(
                "name what to compare it with: --with NAME, FILE or (with --data) SITE",
            ));
        }
    };
    let is_same = text.is_empty();
    Ok((if is_same { "no difference\n".to_owned() } else { text }, is_same))
}

/// `-` has the first one, `+` the second one, `~` both, with other words.
fn between(first: &Profile, second: &Profile) -> String {
    let (mut text, (first, second)) = (String::new(), (lines(first), lines(second)));
    let keys: BTreeSet<&String> = first.keys().chain(second.keys()).collect();
    for key in keys {
        match (first.get(key), second.get(key)) {
            (Some(a), Some(b)) if a == b => {}
            (Some(a), Some(b)) => {
                let _ = writeln!(text, "~ {key}\n    {a}\n    {b}");
            }
            (only, _) => {
                let _ = writeln!(text, "{} {key}", if only.is_some() { '-' } else { '+' });
            }
        }
    }
    text
}

/// What a profile has, each thing with what is said of it.
fn lines(profile: &Profile) -> BTreeMap<String, String> {
    let Profile { application, about, versions, version, signs, requests, .. } = profile;
    let mut lines = BTreeMap::new();
    lines.insert("profile".to_owned(), format!("{application} {versions}: {about}; version {version}"));
    for each in profile.exclusions("") {
        let said = format!("why: {}; opens: {} [{}]", each.reason, each.opens, each.lets_pass.join(", "));
        let mut add = |what: &str, place: &str| {
            lines.insert(format!("exclusion of {what} in {place} of {}", each.path), said.clone());
        };
        if let (Some(what), Some(location)) = (each.kind.or(each.class.map(Class::name)), each.location) {
            add(what, location);
        }
        for rule in each.rules {
            add(&format!("rule {rule}"), each.target.unwrap_or_default());
        }
    }
    for sign in signs {
        lines.insert(format!("sign {:?}", sign.kind), format!("weight {}", sign.weight));
    }
    for request in requests {
        let head = format!("request {} {}", request.uri, request.what);
        let number = (1..).map(|number| format!("{head} ({number})"));
        let key = number.into_iter().find(|key| !lines.contains_key(key)).unwrap_or(head);
        let value = request.value.as_deref().unwrap_or_default().escape_debug();
        lines.insert(key, format!("{value}; {} attacks", request.attacks.len()));
    }
    lines
}

/// `+` has the site learned that the profile has not, `-` excludes the profile for which the site has learned
/// nothing.
fn with_learned(profile: &Profile, learned: &Carried) -> String {
    let mut text = String::new();
    let mut used = BTreeSet::new();
    for (carrier, kinds) in learned {
        for (kind, evidence) in kinds {
            let class = kind.split_once('.').and_then(|(class, _)| Class::from_name(class));
            let is_of = |each: &ProfileExclusion<'_>| {
                each.kind == Some(kind) || each.class.is_some() && each.class == class
            };
            let mut of_kind = profile.exclusions("").filter(is_of);
            match of_kind.find(|each| is_for(each.location, &each.path, carrier)) {
                Some(each) => {
                    let what = each.kind.or(each.class.map(Class::name)).unwrap_or_default();
                    used.insert((what.to_owned(), each.location.map(str::to_owned), each.path));
                }
                None => {
                    let _ = writeln!(
                        text,
                        "+ {kind} in {} of {}: {evidence}",
                        carrier.location(),
                        carrier.path()
                    );
                }
            }
        }
    }
    for each in profile.exclusions("") {
        let (Some(kind), location) = (each.kind.or(each.class.map(Class::name)), each.location) else {
            continue;
        };
        if !used.contains(&(kind.to_owned(), location.map(str::to_owned), each.path.clone())) {
            let _ = writeln!(text, "- {kind} in {} of {}", location.unwrap_or_default(), each.path);
        }
    }
    text
}

/// True if an exclusion with this place and path may be for what was learned of a field. Of paths only what
/// stands before a placeholder is compared, in lower case, as they are learned.
fn is_for(location: Option<&str>, path: &str, carrier: &Carrier) -> bool {
    let start = |path: &str| path.split(['*', '{', '$']).next().unwrap_or_default().to_ascii_lowercase();
    let (pattern, template) = (start(path), start(&carrier.template));
    location.is_some_and(|location| location.eq_ignore_ascii_case(&carrier.location()))
        && (template.starts_with(&pattern)
            || (template.len() < carrier.template.len() && pattern.starts_with(&template)))
}
