/// A set of rules of one plan: a bit for each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleSet {
    words: Vec<u64>,
}

impl RuleSet {
    /// An empty set for plans of any size.
    pub fn new() -> RuleSet {
        RuleSet::default()
    }

    /// Adds the rule with index `rule`.
    pub fn insert(&mut self, rule: u32) {
        let word = rule as usize / 64;
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (rule % 64);
    }

    /// Adds every rule of `other`.
    pub fn extend(&mut self, other: &RuleSet) {
        if self.words.len() < other.words.len() {
            self.words.resize(other.words.len(), 0);
        }
        for (mine, theirs) in self.words.iter_mut().zip(&other.words) {
            *mine |= theirs;
        }
    }

    /// True if `rule` is in the set.
    pub fn contains(&self, rule: u32) -> bool {
        self.words.get(rule as usize / 64).is_some_and(|word| word >> (rule % 64) & 1 == 1)
    }

    /// True if no rule is in the set.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|&word| word == 0)
    }

    /// Takes every rule out, keeping the memory.
    pub fn clear(&mut self) {
        self.words.clear();
    }

    /// The members in rising order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.words.iter().enumerate().flat_map(|(at, &word)| {
            (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| at as u32 * 64 + bit)
        })
    }
}
