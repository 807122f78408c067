//! Votes of ModSecurity 2 on the differences to ModSecurity 3. Where the two disagree, 2 is the reference.

use super::Runner;
use crate::Item;
use crate::classes::{Class, Kind, Peer};
use crate::minimise::Pair;
use crate::seen::{Difference, Entry, Seen};

/// A difference to ModSecurity 3 that ModSecurity 2 has yet to be asked about.
pub(super) struct Pending {
    pub(super) seed: u64,
    pub(super) pair: Pair,
    pub(super) difference: Difference,
    pub(super) ours: Seen,
    /// Its class, if it is known.
    pub(super) class: Option<&'static Class>,
    pub(super) text: String,
}

/// True if, where a peer differs from us, `vote` does not.
pub(super) fn agrees(ours: &Seen, vote: &Seen, difference: &Difference) -> bool {
    match difference {
        Difference::Match { ours: a, theirs: b } => {
            // Of the rules at that place, all they matched; what else differs elsewhere is not the question.
            let rules: Vec<u32> = [a, b].into_iter().flatten().map(|entry| entry.link.0).collect();
            let of_rules = |seen: &Seen| -> Vec<Entry> {
                seen.trace.iter().filter(|entry| rules.contains(&entry.link.0)).cloned().collect()
            };
            vote.tx.is_some() && of_rules(ours) == of_rules(vote)
        }
        Difference::Interruption { .. } => ours.interruption == vote.interruption,
        Difference::Tx { key, .. } => match (&ours.tx, &vote.tx) {
            (Some(ours), Some(vote)) => ours.get(key) == vote.get(key),
            _ => false,
        },
        Difference::Dump { .. } => ours.tx.is_some() == vote.tx.is_some(),
    }
}

impl Runner {
    /// The differences to ModSecurity 3 that wait for ModSecurity 2's word, all in one Apache.
    pub(super) fn vote(&mut self) -> Result<(), String> {
        let pending = std::mem::take(&mut self.pending);
        let Some(two) = &mut self.two else {
            pending.into_iter().for_each(|pending| self.not_voted(pending));
            return Ok(());
        };
        let batch: Vec<_> = pending.iter().map(|p| (p.pair.0.clone(), vec![p.pair.1.clone()])).collect();
        if batch.is_empty() {
            return Ok(());
        }
        for (pending, votes) in pending.into_iter().zip(two.run(&batch)?) {
            let vote = votes.ok().and_then(|mut votes| votes.pop()?);
            match vote.filter(|vote| agrees(&pending.ours, vote, &pending.difference)) {
                Some(_) => {
                    let (kind, name) = pending.class.map_or((Kind::Theirs, "outvoted"), |c| (c.kind, c.name));
                    self.count(Peer::ModSecurity3, kind, name, true);
                }
                None => self.not_voted(pending),
            }
        }
        Ok(())
    }

    /// ModSecurity 2 does not say what we say: its own class must explain a difference.
    fn not_voted(&mut self, pending: Pending) {
        match pending.class {
            Some(class) => self.count(Peer::ModSecurity3, class.kind, class.name, false),
            None => {
                self.summary.unclassified.insert((Peer::ModSecurity3, pending.seed));
                self.problem(pending.text);
            }
        }
    }

    /// A smaller pair that shows the same, found without much trying.
    pub(super) fn reduced(
        &mut self,
        peer: Peer,
        pair: &Pair,
        difference: &Difference,
        name: Option<&str>,
    ) -> Option<Pair> {
        if peer != Peer::ModSecurity3 {
            return None;
        }
        let smaller = reduced(pair, difference);
        let at = self.first_like(peer, &smaller, difference, name)?;
        smaller.into_iter().nth(at)
    }
}

/// The pair with only the rules of the difference, and without its body, where that may still show it.
fn reduced((rules, request): &Pair, difference: &Difference) -> Vec<Pair> {
    let mut bare = request.clone();
    bare.body = None;
    bare.headers.retain(|(name, _)| !name.to_ascii_lowercase().starts_with(b"content-"));
    let mut few = rules.clone();
    if let Difference::Match { ours, theirs } = difference {
        let ids: Vec<u32> = [ours, theirs].into_iter().flatten().map(|entry| entry.link.0).collect();
        few.items.retain(|item| match item {
            Item::Rule(links) => links.first().is_some_and(|link| ids.contains(&link.name.0)),
            Item::Line(line) => !line.starts_with("SecRuleUpdateAction"),
        });
    }
    vec![(few.clone(), bare.clone()), (few, request.clone()), (rules.clone(), bare)]
}
