//! What a profile does to requests: those of its file, or recorded ones.
//!
//! A profile of the program has to let its own requests pass in every mode, stop the attacks in the same
//! places, and have no exclusion that none of its requests needs.

use std::collections::BTreeSet;
use std::fmt::{self, Write as _};
use std::path::PathBuf;

use portcullis_config::{Mode, Policy, PolicyFlags, Profile, ProfileRequest};
use portcullis_event::{Event, Finding};
use portcullis_load::SharedDetectors;

use super::opened::{self, Opened};
use super::tester::{Tester, with, without_values};
use super::{TestArgs, draft, find};
use crate::init::document::crs_on_this_machine;
use crate::outcome::Failure;
use crate::replay::{Request, requests};

/// Recorded requests that are read, at most.
const REQUESTS_MAX: usize = 10_000;
/// The host of the requests of a profile: with one that is known, links to others are looked at.
const HOST: &str = "app.example";

/// The report, and whether the profiles do what they say.
pub fn run(args: &TestArgs) -> Result<(String, bool), Failure> {
    let cases = cases(args)?;
    let crs = args.crs.clone().or_else(crs_on_this_machine);
    let modes: Vec<&str> = match args.mode.as_slice() {
        [] if crs.is_some() => vec!["semantic", "both", "crs"],
        [] => vec!["semantic"],
        modes => modes.iter().map(String::as_str).collect(),
    };
    let recorded_requests = requests::of_files(&args.requests, REQUESTS_MAX)?;
    let mut detectors = SharedDetectors::default();
    let mut reports: Vec<Report> = cases.iter().map(|_| Report::default()).collect();
    for mode in &modes {
        let policy = policy(mode, crs.as_ref())?;
        let mut tester = Tester::new(&policy, detectors)?;
        for (case, report) in cases.iter().zip(&mut reports) {
            let whole =
                case.others.iter().fold(policy.clone(), |policy, other| with(&policy, other, &args.path));
            let whole = with(&whole, &case.profile, &args.path);
            if args.opens {
                if *mode != "both" {
                    opened::measure(&mut tester, &case.profile, &policy, &mut report.opened)?;
                }
            } else if args.requests.is_empty() {
                own(&mut tester, args, &case.profile, (&policy, &whole), report)?;
                // Beside others, what one of them has, too, is needed by none.
                if modes.len() == 3 && case.others.is_empty() {
                    report.needed.extend(needed(&mut tester, args, &case.profile, &policy)?);
                }
            } else {
                recorded(&mut tester, (&policy, &whole), &recorded_requests, report)?;
            }
        }
        detectors = tester.detectors;
    }
    let (mut text, mut good) = (String::new(), true);
    for (Case { profile, others }, report) in cases.iter().zip(reports) {
        let Report { text: lines, is_wrong, needed, opened } = report;
        for missing in draft::unfinished(profile) {
            good = false;
            let _ = writeln!(text, "still to be written: {missing}");
        }
        let beside: Vec<&str> = others.iter().map(|other| other.name.as_str()).collect();
        let beside = if beside.is_empty() { String::new() } else { format!(" with {}", beside.join(", ")) };
        let _ = write!(text, "{}{beside}\n{lines}", profile.name);
        if args.opens {
            let differences = opened::differences(profile, &opened);
            good &= differences.is_empty();
            text.push_str(&differences);
            continue;
        }
        good &= !is_wrong;
        if args.requests.is_empty() && modes.len() == 3 && others.is_empty() {
            for unneeded in parts(profile).difference(&needed) {
                good = false;
                let _ = writeln!(text, "no request needs {unneeded}");
            }
        }
    }
    Ok((text, good))
}

/// A profile, and those that the site takes beside it.
struct Case {
    profile: Profile,
    others: Vec<Profile>,
}

/// Each named profile; with `--with` each of those as well, beside all others of its site. Recorded requests
/// are shown to each site once.
fn cases(args: &TestArgs) -> Result<Vec<Case>, Failure> {
    let others = args.others.iter().map(|name| find(name)).collect::<Result<Vec<_>, _>>()?;
    let mut cases = Vec::new();
    for name in &args.names {
        let mut site = vec![find(name)?];
        for other in &others {
            if site.iter().all(|known| known.name != other.name) {
                site.push(other.clone());
            }
        }
        let tested = if args.requests.is_empty() { site.len() } else { 1 };
        for at in 0..tested {
            let mut others = site.clone();
            let profile = others.remove(at);
            cases.push(Case { profile, others });
        }
    }
    Ok(cases)
}

/// What was found about a profile so far.
#[derive(Default)]
struct Report {
    text: String,
    is_wrong: bool,
    needed: BTreeSet<Part>,
    opened: Opened,
}

/// Shows the requests of a profile to policies without and with all that the site takes.
fn own(
    tester: &mut Tester,
    args: &TestArgs,
    profile: &Profile,
    (policy, whole): (&Policy, &Policy),
    report: &mut Report,
) -> Result<(), Failure> {
    let mut without = tester.trial(policy)?;
    let mut allowed = tester.trial(&without_values(policy, whole))?;
    let mut with = tester.trial(whole)?;
    let (mut refused, mut stopped, mut unknown, mut wrong) = (0usize, 0usize, 0usize, Vec::new());
    for request in &profile.requests {
        let ProfileRequest { what, attacks, .. } = request;
        let bytes = request.bytes(&args.path, None);
        refused += usize::from(tester.ask(&mut without, &bytes).0);
        let (is_stopped, event) = tester.ask(&mut with, &bytes);
        if is_stopped {
            let found: Vec<_> = event.iter().flat_map(|event| found(event)).collect();
            wrong.push(format!("  refused with the profile: {what}\n    {}\n", found.join("\n    ")));
        }
        for attack in attacks {
            let bytes = request.bytes(&args.path, Some(attack));
            let is_known = tester.ask(&mut allowed, &bytes).0;
            match (is_known, tester.ask(&mut with, &bytes).0) {
                (true, true) => stopped += 1,
                (true, false) => wrong.push(format!("  passes with the profile: {what}: {attack}\n")),
                // What the CRS misses is no fault of a profile.
                (false, _) if !policy.mode.has_semantic() => unknown += 1,
                (false, _) => wrong.push(format!("  passes without the profile, too: {what}: {attack}\n")),
            }
        }
    }
    let Report { text, is_wrong, .. } = report;
    let _ = writeln!(
        text,
        "  {}: {} requests, {refused} refused without the profile, {} wrong with it; {stopped} attacks stopped, {unknown} \
         not stopped either way",
        mode(policy),
        profile.requests.len(),
        wrong.len()
    );
    *is_wrong |= !wrong.is_empty();
    wrong.iter().for_each(|each| text.push_str(each));
    Ok(())
}

/// Shows recorded requests of benign users to policies without and with a profile.
fn recorded(
    tester: &mut Tester,
    (policy, whole): (&Policy, &Policy),
    requests: &[Request],
    report: &mut Report,
) -> Result<(), Failure> {
    let mut without = tester.trial(policy)?;
    let mut with = tester.trial(whole)?;
    let (mut refused, mut still) = (0usize, Vec::new());
    for request in requests {
        refused += usize::from(tester.ask(&mut without, &request.bytes).0);
        let (stopped, event) = tester.ask(&mut with, &request.bytes);
        if stopped {
            let found: Vec<_> = event.iter().flat_map(|event| found(event)).collect();
            still.push(format!("  {}\n    {}\n", request.line(), found.join("\n    ")));
        }
    }
    let (all, with) = (requests.len(), still.len());
    let Report { text, is_wrong, .. } = report;
    let mode = mode(policy);
    let _ =
        writeln!(text, "  {mode}: of {all} requests {refused} refused without the profile, {with} with it");
    *is_wrong |= !still.is_empty();
    still.iter().for_each(|each| text.push_str(each));
    Ok(())
}

fn mode(policy: &Policy) -> &'static str {
    match policy.mode {
        Mode::Crs => "crs",
        Mode::Semantic => "semantic",
        Mode::Both => "both",
    }
}

/// A part of what a profile excludes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    /// A kind of finding in a place.
    Kind(String, String),
    /// A rule in a target.
    Rule(u32, String),
    /// A language that the field of this number carries, and its place.
    Language(usize, String, String),
    /// All that is excluded on a path.
    Path(String),
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Part::Kind(kind, place) => write!(f, "{kind} in {place}"),
            Part::Rule(rule, target) => write!(f, "{rule} in {target}"),
            Part::Language(_, language, place) => write!(f, "`{language}` in {place}"),
            Part::Path(path) => write!(f, "what is excluded on {path}"),
        }
    }
}

/// The parts of what a profile excludes.
fn parts(profile: &Profile) -> BTreeSet<Part> {
    let mut parts = BTreeSet::new();
    for (number, field) in profile.fields().enumerate() {
        let [location, target] =
            [field.location, field.target].map(|place| place.unwrap_or_default().to_owned());
        parts.extend(field.kinds.iter().map(|kind| Part::Kind(kind.clone(), location.clone())));
        parts.extend(field.rules.iter().map(|rule| Part::Rule(*rule, target.clone())));
        let language = |name: &String| Part::Language(number, name.clone(), field.place().to_owned());
        parts.extend(field.carries.iter().map(language));
        parts.extend(field.paths.iter().cloned().map(Part::Path));
    }
    parts
}

/// The parts that a request needs in this mode: without the part, and with all others, one is refused; of a
/// rule it is enough that it matches.
fn needed(
    tester: &mut Tester,
    args: &TestArgs,
    profile: &Profile,
    policy: &Policy,
) -> Result<BTreeSet<Part>, Failure> {
    let whole = with(policy, profile, &args.path);
    let requests: Vec<_> = profile.requests.iter().map(|request| request.bytes(&args.path, None)).collect();
    let mut is_needed = |part: &Part| {
        let mut trial = tester.trial(&without((policy, &whole), profile, part, &args.path))?;
        Ok(requests.iter().any(|bytes| match (tester.ask(&mut trial, bytes), part) {
            ((_, Some(event)), Part::Rule(rule, _)) => {
                event.matches.iter().any(|found| found.rule.rule_id.0 == *rule)
                    || event.also_matched.iter().any(|found| found.rule_id.0 == *rule)
            }
            ((stopped, _), Part::Kind(..) | Part::Language(..) | Part::Path(_)) => stopped,
            ((_, None), Part::Rule(..)) => false,
        }))
    };
    let mut needed = BTreeSet::new();
    for part in parts(profile) {
        if is_needed(&part)? {
            needed.insert(part);
        }
    }
    Ok(needed)
}

/// The policy `whole` without a part of what the profile has added to `policy`.
fn without((policy, whole): (&Policy, &Policy), profile: &Profile, part: &Part, at: &str) -> Policy {
    let mut policy = match part {
        Part::Language(field, language, _) => {
            return with(policy, &profile.without_language(*field, language), at);
        }
        Part::Kind(..) | Part::Rule(..) | Part::Path(_) => whole.clone(),
    };
    match part {
        Part::Kind(kind, place) => policy
            .semantic
            .exclude
            .retain(|each| each.kind.as_deref() != Some(kind) || each.location.as_deref() != Some(place)),
        Part::Rule(rule, target) => {
            let same = policy.rule_exclude.iter_mut();
            same.filter(|each| each.target_text.as_deref() == Some(target))
                .for_each(|each| each.rules.retain(|other| other != rule));
        }
        Part::Language(..) => {}
        Part::Path(path) => {
            let path = Some(format!("{at}{path}"));
            policy.semantic.exclude.retain(|each| each.terms.path != path);
            policy.rule_exclude.retain(|each| each.terms.path != path);
        }
    }
    policy
}

/// What was found in a request: kinds of findings with their places, rules with their targets.
fn found(event: &Event) -> BTreeSet<String> {
    // What is below its threshold did not stop it, and is reported only where nothing else is.
    let stops = |found: &&Finding| !found.below && found.points > 0.0;
    let is_any = event.findings.iter().any(|found| stops(&found));
    let findings = event.findings.iter().filter(|found| !is_any || stops(found));
    let findings = findings.map(|found| format!("{} in {}:{}", found.kind, found.place.name(), found.name));
    let rules = event.matches.iter().filter(|found| found.points > 0);
    let rules = rules.map(|found| format!("rule {} in {}", found.rule.rule_id.0, found.target));
    let also = event.also_matched.iter().map(|found| format!("rule {} in {}", found.rule_id.0, found.target));
    findings.chain(rules).chain(also).collect()
}

/// A policy in this mode, with nothing excluded.
fn policy(mode: &str, crs: Option<&PathBuf>) -> Result<Policy, Failure> {
    let crs = crs.filter(|_| mode != "semantic").cloned();
    if crs.is_none() && mode != "semantic" {
        return Err(Failure::usage(format_args!(
            "mode {mode} needs the CRS, and none is installed; name its folder with --crs DIR"
        )));
    }
    let flags = PolicyFlags { mode: Some(mode.to_owned()), crs, ..PolicyFlags::default() };
    let mut policy =
        flags.policy().map_err(Failure::usage)?.ok_or_else(|| Failure::usage("mode off inspects nothing"))?;
    policy.semantic.hosts.push(HOST.to_owned());
    Ok(policy)
}
