//! The form in which an event is written: what decided in full, of the rest the worst few and exact counts.
//!
//! In memory an event holds everything that was found, for those who judge by it: bans, error-log lines,
//! filters. On disk and on the wire that would be mostly repetition, and its length would be the attacker's
//! choice: a form with a hundred attacks has hundreds of findings and matches.

use std::borrow::Cow;

use crate::text::cut_json;
use crate::{AlsoMatched, Event, Finding, FindingOutcome, RuleMatch, SemanticScore};

/// The extent to which an event is written. Bytes are those of JSON, escapes included.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Kinds of findings in the value that decided.
    deciding: usize,
    /// Kinds of findings in other values.
    others: usize,
    /// Exceptions that suppress or lower something in any value, each with one finding.
    suppressed: usize,
    /// Rules in full, beside the one that blocked.
    matches: usize,
    /// Rules that are named only.
    rules: usize,
    /// Scores of the semantic detector over the threshold, and others.
    scores: [usize; 2],
    /// Bytes of evidence, values, messages and names.
    text_bytes: usize,
    /// Bytes of the request target.
    target_bytes: usize,
    /// Bytes of texts that are there many times.
    short_bytes: usize,
}

impl Bounds {
    /// From what an event usually has to what fits whatever is in it.
    pub(crate) const LEVELS: [Bounds; 3] = [
        Bounds {
            deciding: 2,
            others: 1,
            suppressed: 3,
            matches: 2,
            rules: 64,
            scores: [6, 1],
            text_bytes: 256,
            target_bytes: 2048,
            short_bytes: 64,
        },
        Bounds {
            deciding: 2,
            others: 1,
            suppressed: 2,
            matches: 2,
            rules: 64,
            scores: [4, 1],
            text_bytes: 128,
            target_bytes: 1024,
            short_bytes: 32,
        },
        Bounds {
            deciding: 2,
            others: 1,
            suppressed: 1,
            matches: 2,
            rules: 64,
            scores: [2, 0],
            text_bytes: 96,
            target_bytes: 512,
            short_bytes: 16,
        },
    ];
}

impl Event {
    /// The event as it is written within these bounds.
    pub(crate) fn condensed(&self, bounds: Bounds) -> Cow<'_, Event> {
        let says_little = self.findings.is_empty()
            && self.matches.is_empty()
            && self.agents.is_empty()
            && self.client.forwarded_for.is_empty();
        if says_little && self.request.target.len() + self.server.host.len() <= bounds.text_bytes {
            return Cow::Borrowed(self);
        }
        // What is only counted is never copied: of a request with many attacks that is most.
        let mut event = self.without_details();
        event.condense_findings(self, bounds);
        event.condense_matches(&self.matches, bounds);
        event.condense_scores(&self.scores.semantic, bounds);
        event.cut_texts(bounds);
        Cow::Owned(event)
    }

    fn condense_findings(&mut self, whole: &Event, bounds: Bounds) {
        let decided = whole.deciding_score();
        let is_deciding = |finding: &Finding| {
            decided.is_some_and(|score| {
                (finding.class, finding.place, &finding.name) == (score.class, score.place, &score.name)
            })
        };
        let groups = grouped(&whole.findings);
        let mut worst: Vec<usize> = (0..groups.len()).collect();
        worst.sort_by(|a, b| {
            let (a, b) = (groups[*a].worst, groups[*b].worst);
            a.below.cmp(&b.below).then(b.points.total_cmp(&a.points))
        });
        let (suppressed, worst): (Vec<usize>, Vec<usize>) =
            worst.into_iter().partition(|at| groups[*at].worst.is_excused());
        let (deciding, others): (Vec<usize>, Vec<usize>) =
            worst.into_iter().partition(|at| is_deciding(groups[*at].worst));
        let mut kept: Vec<usize> = deciding.into_iter().take(bounds.deciding).collect();
        kept.extend(others.into_iter().take(bounds.others));
        kept.extend(one_of_each_exception(&groups, &suppressed).take(bounds.suppressed));
        for (at, Group { worst, count }) in groups.into_iter().enumerate() {
            if kept.contains(&at) {
                self.findings.push(Finding { count, ..worst.clone() });
            } else {
                let counter = match worst.is_excused() {
                    true => &mut self.findings_suppressed,
                    false if worst.below => &mut self.findings_below,
                    false => &mut self.findings_omitted,
                };
                *counter = counter.saturating_add(count);
            }
        }
    }

    fn condense_matches(&mut self, matches: &[RuleMatch], bounds: Bounds) {
        let by_rules = self.verdict.class.is_none() || self.verdict.rule_id.is_some();
        // Where the semantic detector decided, rules are evidence beside it.
        let most = if by_rules { bounds.matches } else { 0 };
        let mut worst: Vec<usize> = (0..matches.len()).filter(|at| matches[*at].points > 0).collect();
        worst.sort_by_key(|at| std::cmp::Reverse(matches[*at].points));
        if worst.is_empty() && !matches.is_empty() {
            worst.push(0);
        }
        let mut kept: Vec<usize> = Vec::with_capacity(most + 1);
        for at in worst {
            let of_rule = |known: &usize| matches[*known].rule.rule_id == matches[at].rule.rule_id;
            if kept.len() < most && !kept.iter().any(of_rule) {
                kept.push(at);
            }
        }
        let blocked = self.verdict.rule_id;
        let that_blocked = |found: &RuleMatch| blocked == Some(found.rule.rule_id);
        kept.extend(matches.iter().position(that_blocked).filter(|at| !kept.contains(at)));
        for (at, found) in matches.iter().enumerate() {
            if kept.contains(&at) {
                self.matches.push(found.clone());
            } else {
                self.name_match(found, bounds);
            }
        }
    }

    /// Names the rule of a match that is not told in full.
    fn name_match(&mut self, found: &RuleMatch, bounds: Bounds) {
        let id = found.rule.rule_id;
        if let Some(known) = self.also_matched.iter_mut().find(|known| known.rule_id == id) {
            known.count = known.count.saturating_add(1);
            if found.points > known.points {
                known.target.clone_from(&found.target);
                known.points = found.points;
            }
        } else if self.also_matched.len() < bounds.rules {
            let (target, points) = (found.target.clone(), found.points);
            self.also_matched.push(AlsoMatched { rule_id: id, target, points, count: 1 });
        } else {
            self.matches_omitted = self.matches_omitted.saturating_add(1);
        }
    }

    fn condense_scores(&mut self, all: &[SemanticScore], bounds: Bounds) {
        let mut left = bounds.scores;
        let has_blocked = |score: &&SemanticScore| score.outcome == FindingOutcome::Blocked;
        // Those that blocked first, whatever others have.
        for score in all.iter().filter(has_blocked).chain(all.iter().filter(|score| !has_blocked(score))) {
            let room = &mut left[usize::from(!score.outcome.passes())];
            if *room > 0 {
                *room -= 1;
                self.scores.semantic.push(score.clone());
            } else {
                self.scores.semantic_omitted = self.scores.semantic_omitted.saturating_add(1);
            }
        }
    }

    fn cut_texts(&mut self, bounds: Bounds) {
        let cut = |long: &mut String| cut_json(long, bounds.text_bytes);
        let short = |long: &mut String| cut_json(long, bounds.short_bytes);
        cut_json(&mut self.request.target, bounds.target_bytes);
        [&mut self.request.method, &mut self.request.protocol].into_iter().for_each(short);
        [&mut self.server.host, &mut self.verdict.reason].into_iter().for_each(cut);
        self.request.body_error.iter_mut().for_each(cut);
        self.client.forwarded_for.iter_mut().for_each(short);
        for header in &mut self.request.headers {
            short(&mut header.name);
            cut(&mut header.value);
        }
        for finding in &mut self.findings {
            cut(&mut finding.evidence);
            cut(&mut finding.name);
        }
        self.scores.semantic.iter_mut().for_each(|score| cut(&mut score.name));
        for found in &mut self.matches {
            [&mut found.message, &mut found.data, &mut found.target, &mut found.value]
                .into_iter()
                .for_each(cut);
        }
        self.also_matched.iter_mut().for_each(|found| short(&mut found.target));
        for agent in &mut self.agents {
            cut(&mut agent.reason);
            agent.tags.iter_mut().for_each(short);
        }
    }
}

/// The findings of one kind in one value: that of the most points, and their number.
struct Group<'a> {
    worst: &'a Finding,
    count: u32,
}

/// Of the findings at the places `suppressed` of `groups`, the first one of each exception: one that
/// suppresses much leaves room for the others.
fn one_of_each_exception(groups: &[Group<'_>], suppressed: &[usize]) -> impl Iterator<Item = usize> {
    let exception = |at: &usize| groups[*at].worst.suppressed_by.as_ref().map(|by| &by.exception);
    let mut kept: Vec<usize> = Vec::new();
    for at in suppressed {
        if !kept.iter().any(|known| exception(known) == exception(at)) {
            kept.push(*at);
        }
    }
    kept.into_iter()
}

fn grouped(findings: &[Finding]) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::with_capacity(findings.len());
    for finding in findings {
        let same = |Group { worst, .. }: &&mut Group<'_>| {
            (worst.class, worst.place, worst.is_excused())
                == (finding.class, finding.place, finding.is_excused())
                && (&worst.kind, &worst.name) == (&finding.kind, &finding.name)
        };
        let Some(known) = groups.iter_mut().find(same) else {
            groups.push(Group { worst: finding, count: finding.count });
            continue;
        };
        known.count = known.count.saturating_add(finding.count);
        if finding.points > known.worst.points {
            known.worst = finding;
        }
    }
    groups
}
