//! The table of learned weights: how much a match of a rule of the CRS says.

use std::collections::HashMap;
use std::fmt;

use portcullis_types::RuleId;

/// Weights by rule, as `tools/crs/train.py` writes them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Weights {
    rules: HashMap<(RuleId, u64), Weight>,
}

/// The weight of a rule's match, by where it matched.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Weight {
    /// In any value of the message but those below.
    pub elsewhere: f32,
    /// In a field that the site made for texts, code or markup.
    pub in_documents: f32,
}

impl Weight {
    /// The weight of a rule that decides alone, and of one that nothing is known of.
    pub const DECISIVE: Weight = Weight { elsewhere: Weights::DECISIVE, in_documents: Weights::DECISIVE };

    /// The weight where the field `takes_documents`, or elsewhere.
    pub fn at(self, takes_documents: bool) -> f32 {
        match takes_documents {
            true => self.in_documents,
            false => self.elsewhere,
        }
    }
}

/// A mistake in a table of weights.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WeightsError {
    /// Line, from 1.
    pub line: usize,
    /// The error message.
    pub message: &'static str,
}

impl fmt::Display for WeightsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

impl std::error::Error for WeightsError {}

impl Weights {
    /// From this sum of weights on, the points of a value count.
    pub const DECISIVE: f32 = 1.0;

    /// The table of the product.
    pub fn shipped() -> Result<Weights, WeightsError> {
        Weights::parse(include_str!("../../weights/crs.tsv"))
    }

    /// Reads a table: rule id, fingerprint in hexadecimal, weight in fields for documents and weight
    /// elsewhere, separated by tabs; further columns are evidence for people. `#` begins a comment.
    pub fn parse(text: &str) -> Result<Weights, WeightsError> {
        let mut rules = HashMap::new();
        for (index, line) in text.lines().enumerate() {
            let wrong = |message| WeightsError { line: index + 1, message };
            let line = line.split('#').next().unwrap_or_default().trim_end();
            if line.is_empty() {
                continue;
            }
            let mut fields = line.split('\t');
            let mut next = || fields.next().unwrap_or_default();
            let id: u32 = next().parse().map_err(|_| wrong("the first field is a rule id"))?;
            let fingerprint = u64::from_str_radix(next(), 16)
                .map_err(|_| wrong("the second field is a fingerprint of 16 hexadecimal digits"))?;
            let in_documents: f32 = next().parse().map_err(|_| wrong("the third field is a weight"))?;
            let elsewhere: f32 = next().parse().map_err(|_| wrong("the fourth field is a weight"))?;
            if ![in_documents, elsewhere].iter().all(|weight| (0.0..=Weights::DECISIVE).contains(weight)) {
                return Err(wrong("a weight is 0 to 1"));
            }
            let weight = Weight { elsewhere, in_documents };
            if rules.insert((RuleId(id), fingerprint), weight).is_some() {
                return Err(wrong("this rule has a weight already"));
            }
        }
        Ok(Weights { rules })
    }

    /// The weight of a rule; one that is not in the table, or says something else than it did there, decides
    /// alone.
    pub fn of(&self, id: RuleId, fingerprint: u64) -> Weight {
        self.rules.get(&(id, fingerprint)).copied().unwrap_or(Weight::DECISIVE)
    }

    /// True if the rule is in the table, and says what it did there.
    pub fn has(&self, id: RuleId, fingerprint: u64) -> bool {
        self.rules.contains_key(&(id, fingerprint))
    }

    /// The number of rules.
    pub fn len(&self) -> usize {
        self.rules.len()
    }

    /// True if there is no rule in it.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_table_can_be_read() {
        let weights = Weights::shipped().unwrap_or_else(|error| panic!("weights/crs.tsv: {error}"));
        assert!(weights.len() > 100, "{}", weights.len());
    }

    #[test]
    fn what_is_not_in_the_table_decides_alone() {
        let weights =
            Weights::parse("# rules\n942100\t00000000000000ab\t0.25\t0.5\t17\t3\tsynthetic\n").unwrap();
        assert_eq!(weights.of(RuleId(942100), 0xab), Weight { in_documents: 0.25, elsewhere: 0.5 });
        assert_eq!(weights.of(RuleId(942100), 0xac), Weight::DECISIVE, "the same id, other contents");
        assert_eq!(weights.of(RuleId(942101), 0xab), Weight::DECISIVE);
    }

    #[test]
    fn mistakes_have_a_line() {
        for (text, message) in [
            ("x\t1\t0.5\t0.5", "the first field is a rule id"),
            ("1\tzz\t0.5\t0.5", "the second field is a fingerprint of 16 hexadecimal digits"),
            ("1\tab", "the third field is a weight"),
            ("1\tab\t0.5", "the fourth field is a weight"),
            ("1\tab\t1\tnan", "a weight is 0 to 1"),
            ("1\tab\t1.5\t1", "a weight is 0 to 1"),
            ("1\tab\t-0.1\t1", "a weight is 0 to 1"),
            ("1\tab\t0.1\t1\n1\tab\t0.2\t1", "this rule has a weight already"),
        ] {
            let error = Weights::parse(&format!("# comment\n{text}\n")).unwrap_err();
            assert_eq!(error.message, message, "{text}");
            assert_eq!(error.line, 1 + text.lines().count(), "{text}");
        }
    }
}
