//! The table of learned weights: how much a match of a rule of the CRS says.

use std::collections::HashMap;
use std::fmt;

use portcullis_types::RuleId;

use super::Field;

/// Weights by rule, as `tools/crs/train.py` writes them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Weights {
    rules: HashMap<(RuleId, u64), Weight>,
}

/// The weights of a rule's match, one for each kind of field in which it may match.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Weight([f32; Field::ALL.len()]);

impl Weight {
    /// The weight of a rule that decides alone, and of one that nothing is known of.
    pub const DECISIVE: Weight = Weight([Weights::DECISIVE; Field::ALL.len()]);

    /// The weight in this kind of field.
    pub fn in_field(self, field: Field) -> f32 {
        self.0[field as usize]
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

    /// Reads a table: rule id, fingerprint in hexadecimal and the weight in each kind of [`Field`],
    /// separated by tabs; further columns are evidence for people. `#` begins a comment.
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
            let mut weight = Weight::DECISIVE;
            for of_field in &mut weight.0 {
                *of_field =
                    next().parse().map_err(|_| wrong("a rule has a weight for each kind of field"))?;
                if !(0.0..=Weights::DECISIVE).contains(of_field) {
                    return Err(wrong("a weight is 0 to 1"));
                }
            }
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
        // A field of the body that the query has, too, weighs as one of the query, and the sender may add it.
        for (rule, weight) in &weights.rules {
            assert!(weight.in_field(Field::Query) >= weight.in_field(Field::Body), "{rule:?}");
            assert!(weight.in_field(Field::Body) >= weight.in_field(Field::Document), "{rule:?}");
        }
    }

    #[test]
    fn what_is_not_in_the_table_decides_alone() {
        let weights = Weights::parse(
            "# rules\n942100\t00000000000000ab\t0\t0.25\t1\t0.5\t0.6\t0.7\t0.8\t0.9\t1\t0.34\t17\tsynthetic\n",
        )
        .unwrap();
        let weight = weights.of(RuleId(942100), 0xab);
        let of_fields = Field::ALL.map(|field| weight.in_field(field));
        assert_eq!(of_fields, [0.0, 0.25, 1.0, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 0.34]);
        assert_eq!(weights.of(RuleId(942100), 0xac), Weight::DECISIVE, "the same id, other contents");
        assert_eq!(weights.of(RuleId(942101), 0xab), Weight::DECISIVE);
    }

    #[test]
    fn mistakes_have_a_line() {
        let with = |first: &str, weight: &str| format!("{first}\t{weight}{}", "\t0.5".repeat(9));
        for (text, message) in [
            (with("x\t1", "0.5"), "the first field is a rule id"),
            (with("1\tzz", "0.5"), "the second field is a fingerprint of 16 hexadecimal digits"),
            ("1\tab".to_owned(), "a rule has a weight for each kind of field"),
            ("1\tab\t0.5\t0.5".to_owned(), "a rule has a weight for each kind of field"),
            (with("1\tab", "nan"), "a weight is 0 to 1"),
            (with("1\tab", "1.5"), "a weight is 0 to 1"),
            (with("1\tab", "-0.1"), "a weight is 0 to 1"),
            (format!("{}\n{}", with("1\tab", "0"), with("1\tab", "1")), "this rule has a weight already"),
        ] {
            let error = Weights::parse(&format!("# comment\n{text}\n")).unwrap_err();
            assert_eq!(error.message, message, "{text}");
            assert_eq!(error.line, 1 + text.lines().count(), "{text}");
        }
    }
}
