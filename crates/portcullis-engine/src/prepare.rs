//! Building ahead of time what a plan otherwise builds at first use.

use portcullis_match::{Pcre, WordSet};

use crate::operator::Pattern;
use crate::{KeyFilter, Operator, Plan};

impl Plan {
    /// Builds the automata of patterns and word lists, which otherwise the first value that gets to them
    /// waits for.
    pub fn prepare(&self) {
        self.regexes().for_each(Pcre::prepare);
        self.word_sets().for_each(WordSet::prepare);
    }

    /// The patterns of operators and of keys.
    fn regexes(&self) -> impl Iterator<Item = &Pcre> {
        let of_operators = self.links.iter().filter_map(|link| {
            if let Operator::Rx(Pattern::Fixed(regex))
            | Operator::RxGlobal(Pattern::Fixed(regex))
            | Operator::Verify(_, regex) = &link.operator
            {
                Some(&**regex)
            } else {
                None
            }
        });
        let targets = self.links.iter().map(|link| &link.targets);
        let of_targets = targets.flat_map(|targets| {
            let excluded = targets.exclude.iter().map(|exclusion| &exclusion.filter);
            targets.include.iter().map(|target| &target.filter).chain(excluded)
        });
        let filters = of_targets.chain(self.ctl_targets.iter().map(|target| &target.filter));
        of_operators.chain(
            filters.filter_map(
                |filter| if let KeyFilter::Regex(regex) = filter { Some(&**regex) } else { None },
            ),
        )
    }

    fn word_sets(&self) -> impl Iterator<Item = &WordSet> {
        self.links
            .iter()
            .filter_map(|link| if let Operator::Pm(words) = &link.operator { Some(&**words) } else { None })
    }
}
