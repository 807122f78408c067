//! The summary of a run, and its printed form.

use std::collections::{BTreeMap, BTreeSet};

use crate::classes::{Kind, Peer};

/// The result of a run.
#[derive(Debug, Default)]
pub struct Summary {
    /// By peer.
    pub peers: BTreeMap<Peer, Count>,
    /// By class.
    pub classes: BTreeMap<(Peer, Kind, &'static str), Tally>,
    /// Rule sets that a peer refused, by its words.
    pub refused: BTreeMap<(Peer, String), u64>,
    /// Number of times that the child with libmodsecurity ended by itself.
    pub crashes: u64,
    /// Rule sets with a difference that has no class.
    pub unclassified: BTreeSet<(Peer, u64)>,
    /// Differences without a class, and whatever else must not be, in words.
    pub problems: Vec<String>,
}

/// Pairs of a peer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Count {
    /// Compared.
    pub pairs: u64,
    /// With nothing that differs.
    pub same: u64,
    /// Matches of links that both saw.
    pub matches: u64,
    /// No result: the child ended, or the connection did, or the plain evaluator knows no such limit.
    pub lost: u64,
}

/// Differences of a class.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// All of them.
    pub all: u64,
    /// Against ModSecurity 3: those where ModSecurity 2 saw what we saw.
    pub with_modsecurity2: u64,
}

impl Summary {
    /// The table.
    pub fn table(&self) -> String {
        let mut out = String::from("peer            pairs     same  differing     lost  matches compared\n");
        for (peer, count) in &self.peers {
            out.push_str(&format!(
                "{:<13} {:>7}  {:>7}    {:>7}  {:>7}  {:>9}\n",
                format!("{peer:?}"),
                count.pairs,
                count.same,
                count.pairs - count.same,
                count.lost,
                count.matches
            ));
        }
        out.push('\n');
        out.push_str("peer          whose       all  ModSecurity 2 as we  class\n");
        for ((peer, kind, name), tally) in &self.classes {
            let with = if let Peer::ModSecurity3 = peer {
                tally.with_modsecurity2.to_string()
            } else {
                String::new()
            };
            out.push_str(&format!(
                "{:<13} {:<7} {:>7}  {with:>19}  {name}\n",
                format!("{peer:?}"),
                format!("{kind:?}"),
                tally.all,
            ));
        }
        out.push('\n');
        for ((peer, why), count) in &self.refused {
            out.push_str(&format!("{:<13} refused {count:>7}  {why}\n", format!("{peer:?}")));
        }
        out.push_str(&format!("crashes of libmodsecurity: {}\n", self.crashes));
        out.push_str(&format!("unclassified: {}\n", self.problems.len()));
        out
    }
}
