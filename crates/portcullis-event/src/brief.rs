use crate::{Event, text};

impl Event {
    /// The event without what is long: the finding or match that [`lead`](Event::lead) shows, the others
    /// counted as omitted, no headers, texts cut at `text_bytes_max`. For receivers with a limit on the size
    /// of a message.
    pub fn brief(&self, text_bytes_max: usize) -> Event {
        let cut = |long: &mut String| cut(long, text_bytes_max);
        let mut brief = self.clone();
        let lead = self.lead();
        let (rule, kind, location) = (lead.rule, lead.kind, lead.location.into_owned());
        let mut left = 1;
        let mut keep = |is_lead: bool| {
            let keeps = is_lead && left > 0;
            left -= usize::from(keeps);
            keeps
        };
        let name_fits = |place: &str, name: &str| match name {
            "" => place == location,
            name => location.strip_prefix(place).and_then(|rest| rest.strip_prefix(':')) == Some(name),
        };
        brief.findings.retain(|finding| {
            keep(
                rule.is_none()
                    && finding.kind == kind
                    && finding.evidence == lead.evidence
                    && name_fits(finding.place.name(), &finding.name),
            )
        });
        brief.matches.retain(|found| {
            keep(
                rule == Some(found.rule.rule_id)
                    && found.target == location
                    && left_is(found, &lead.evidence),
            )
        });
        let omitted = |all: usize, kept: usize| u32::try_from(all - kept).unwrap_or(u32::MAX);
        brief.findings_omitted =
            self.findings_omitted.saturating_add(omitted(self.findings.len(), brief.findings.len()));
        brief.matches_omitted =
            self.matches_omitted.saturating_add(omitted(self.matches.len(), brief.matches.len()));
        brief.scores.semantic.truncate(1);
        brief.request.headers.clear();
        brief.client.forwarded_for.clear();
        brief.agents.truncate(1);
        for finding in &mut brief.findings {
            cut(&mut finding.evidence);
            cut(&mut finding.name);
        }
        for found in &mut brief.matches {
            found.data.clear();
            cut(&mut found.value);
            cut(&mut found.message);
            cut(&mut found.target);
        }
        for agent in &mut brief.agents {
            agent.tags.truncate(4);
            agent.tags.iter_mut().for_each(cut);
            cut(&mut agent.reason);
        }
        for long in [&mut brief.request.target, &mut brief.verdict.reason, &mut brief.server.host] {
            cut(long);
        }
        brief.request.body_error.iter_mut().for_each(cut);
        brief.scores.semantic.iter_mut().for_each(|score| cut(&mut score.name));
        brief
    }
}

/// True if the match shows this as its evidence.
fn left_is(found: &crate::RuleMatch, evidence: &str) -> bool {
    found.value == evidence || (found.value.is_empty() && found.data == evidence)
}

fn cut(long: &mut String, bytes_max: usize) {
    if long.len() > bytes_max {
        *long = text(long.as_bytes(), bytes_max);
    }
}
