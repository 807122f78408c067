use std::borrow::Cow;

use portcullis_types::{Class, RuleId};

use crate::{Action, ControlKind, Event, Finding, RuleMatch, SemanticScore};

/// The finding that an event is about: what decided or, where nothing did, what weighs most. Forms with room
/// for one finding show this one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lead<'e> {
    /// The class of attack: that of the semantic detector or, of a rule, what its tag `attack-...` says;
    /// empty if none is known.
    pub class: Cow<'e, str>,
    /// The kind of a semantic finding, such as `sqli.union`; empty for rules.
    pub kind: &'e str,
    /// The rule that matched.
    pub rule: Option<RuleId>,
    /// Its kind, in a few words.
    pub title: Cow<'e, str>,
    /// The bytes that show it, as text; empty where there are none.
    pub evidence: Cow<'e, str>,
    /// Where they stand: `query:q`, `ARGS:q`; empty where they stand nowhere.
    pub location: Cow<'e, str>,
}

/// Severity of an event. Forms with a severity take it from here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gravity {
    /// An attack was stopped.
    Stopped,
    /// Something was found and let through.
    Passed,
    /// A limit, a list, a ban or an overload turned a client away.
    Limited,
    /// The request was not acceptable HTTP.
    Refused,
    /// The upstream failed, or inspection could not do its full work.
    Failed,
    /// Anything else.
    Noted,
}

impl Gravity {
    /// Severity of syslog (RFC 5424, section 6.2.1): 3 error, 4 warning, 5 notice, 6 informational.
    pub fn syslog(self) -> u8 {
        match self {
            Gravity::Failed => 3,
            Gravity::Stopped => 4,
            Gravity::Passed | Gravity::Limited => 5,
            Gravity::Refused | Gravity::Noted => 6,
        }
    }

    /// Severity of CEF, 0 to 10.
    pub fn cef(self) -> u8 {
        match self {
            Gravity::Stopped => 8,
            Gravity::Failed => 7,
            Gravity::Passed => 6,
            Gravity::Limited => 5,
            Gravity::Refused => 4,
            Gravity::Noted => 2,
        }
    }

    /// `severity_id` of OCSF and its caption.
    pub fn ocsf(self) -> (u8, &'static str) {
        match self {
            Gravity::Stopped => (4, "High"),
            Gravity::Passed | Gravity::Failed => (3, "Medium"),
            Gravity::Limited | Gravity::Refused => (2, "Low"),
            Gravity::Noted => (1, "Informational"),
        }
    }

    /// `SeverityNumber` of OpenTelemetry and its name, as its data model maps those of syslog.
    pub fn otlp(self) -> (i32, &'static str) {
        match self.syslog() {
            3 => (17, "ERROR"),
            4 => (13, "WARN"),
            5 => (10, "INFO2"),
            _ => (9, "INFO"),
        }
    }
}

impl Event {
    /// Its severity.
    pub fn gravity(&self) -> Gravity {
        use ControlKind::{Ban, DenyList, Overload, RateLimit};
        match self.verdict.action {
            Action::Deny | Action::Redirect | Action::Drop | Action::Proxy => match &self.verdict.control {
                Some(control) if matches!(control.by, RateLimit | DenyList | Ban | Overload) => {
                    Gravity::Limited
                }
                _ => Gravity::Stopped,
            },
            Action::Detect => Gravity::Passed,
            Action::Refuse => Gravity::Refused,
            Action::Pass if self.upstream_error.is_some() || !self.exceptions.is_empty() => Gravity::Failed,
            Action::Pass => Gravity::Noted,
        }
    }

    /// The finding that it is about.
    pub fn lead(&self) -> Lead<'_> {
        if let Some(class) = self.verdict.class {
            return match self.finding_of(class) {
                Some(finding) => Lead::of_finding(finding),
                None => Lead { class: class.name().into(), title: class.title().into(), ..Lead::default() },
            };
        }
        if let Some(found) = self.match_that_decided() {
            return Lead::of_match(found);
        }
        if let Some(id) = self.verdict.rule_id {
            return Lead { rule: Some(id), title: self.why().into(), ..Lead::default() };
        }
        let heaviest = |a: &&Finding, b: &&Finding| a.points.total_cmp(&b.points);
        if let Some(finding) = self.findings.iter().rev().max_by(heaviest) {
            return Lead::of_finding(finding);
        }
        if let Some(agent) = self.agents.iter().find(|agent| agent.is_finding()) {
            let title = if agent.reason.is_empty() { self.why() } else { &agent.reason };
            return Lead {
                title: title.into(),
                evidence: agent.tags.join(" ").into(),
                location: format!("agent:{}", agent.name).into(),
                ..Lead::default()
            };
        }
        Lead { title: self.why().into(), ..Lead::default() }
    }

    /// The findings and matches in the order of the event, but for the one that [`lead`](Event::lead) shows,
    /// if it shows one of them.
    pub fn others(&self) -> impl Iterator<Item = Lead<'_>> {
        let lead = self.lead();
        let all = self.findings.iter().map(Lead::of_finding).chain(self.matches.iter().map(Lead::of_match));
        let mut shown = false;
        all.filter(move |other| {
            let is_lead = !shown && *other == lead;
            shown |= is_lead;
            !is_lead
        })
    }

    /// One sentence: what was done and why, with the finding, its place, who asked and for what. The evidence
    /// is not in it.
    pub fn summary(&self) -> String {
        let lead = self.lead();
        let mut out = self.verdict.action.name().to_owned();
        if let Some(status) = self.verdict.status {
            out.push_str(&format!(" {status}"));
        }
        if !lead.title.is_empty() {
            out.push_str(": ");
            out.push_str(&lead.title);
        }
        match (lead.rule, lead.kind) {
            (Some(rule), _) => out.push_str(&format!(" (rule {rule})")),
            (None, "") => {}
            (None, kind) => out.push_str(&format!(" ({kind})")),
        }
        if !lead.location.is_empty() {
            out.push_str(&format!(" in {}", lead.location));
        }
        let (method, host, target) = (&self.request.method, &self.server.host, &self.request.target);
        out.push_str(&format!("; {method} {host}{target} from {}", self.client.addr));
        out
    }

    /// A sentence or a word for what decided besides findings.
    fn why(&self) -> &str {
        if !self.verdict.reason.is_empty() {
            return &self.verdict.reason;
        }
        if let Some(refusal) = &self.refusal {
            return refusal;
        }
        if let Some(error) = self.upstream_error {
            return error.name();
        }
        self.exceptions.first().map_or("", |exception| exception.cause.name())
    }

    /// The score of the semantic detector that decided, or would have.
    pub(crate) fn deciding_score(&self) -> Option<&SemanticScore> {
        let class = self.verdict.class?;
        self.scores.semantic.iter().find(|score| score.class == class && score.outcome.passes())
    }

    /// Of the value that decided, the finding of this class that weighs most.
    fn finding_of(&self, class: Class) -> Option<&Finding> {
        let decided = self.deciding_score();
        let is_there = |finding: &&Finding| {
            finding.class == class
                && decided.is_none_or(|score| (score.place, &score.name) == (finding.place, &finding.name))
        };
        let heaviest = |a: &&Finding, b: &&Finding| a.points.total_cmp(&b.points);
        let of_class =
            || self.findings.iter().rev().filter(|finding| finding.class == class).max_by(heaviest);
        self.findings.iter().rev().filter(is_there).max_by(heaviest).or_else(of_class)
    }

    /// The match that added most to a score; where none did, that of the rule that decided. The rule that
    /// compares the score with the threshold found nothing by itself.
    fn match_that_decided(&self) -> Option<&RuleMatch> {
        let scoring =
            self.matches.iter().rev().filter(|found| found.points > 0).max_by_key(|found| found.points);
        let of_verdict =
            || self.matches.iter().find(|found| Some(found.rule.rule_id) == self.verdict.rule_id);
        scoring.or_else(of_verdict).or_else(|| self.matches.first())
    }
}

impl Lead<'_> {
    fn of_finding(finding: &Finding) -> Lead<'_> {
        let location = match &*finding.name {
            "" => finding.place.name().into(),
            name => format!("{}:{name}", finding.place.name()).into(),
        };
        Lead {
            class: finding.class.name().into(),
            kind: &finding.kind,
            rule: None,
            title: (&*finding.reason).into(),
            evidence: finding.evidence.as_str().into(),
            location,
        }
    }

    fn of_match(found: &RuleMatch) -> Lead<'_> {
        let tag = found.rule.tags.iter().find_map(|tag| tag.strip_prefix("attack-"));
        let evidence = if found.value.is_empty() { &found.data } else { &found.value };
        Lead {
            class: tag.map_or("", class_of_tag).into(),
            kind: "",
            rule: Some(found.rule.rule_id),
            title: found.message.as_str().into(),
            evidence: evidence.as_str().into(),
            location: found.target.as_str().into(),
        }
    }
}

/// Our name of the class that a tag of the CRS names; its own where we have none.
fn class_of_tag(tag: &str) -> &str {
    match tag {
        "rce" => "command",
        "lfi" => "path",
        "rfi" => "remote-file",
        "injection-php" | "injection-java" | "injection-generic" => "code",
        "reputation-scanner" => "scanner",
        "disclosure" => "leak",
        tag => tag,
    }
}
