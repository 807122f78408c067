use portcullis_types::ByteSet;

use super::{
    ANY_FUNCTION, CONDITIONAL_FUNCTION, ERROR_FUNCTION, EXECUTE_FUNCTION, FILE_FUNCTION, INFO_FUNCTION,
    OUT_OF_BAND_FUNCTION, SCHEMA, TEXT_FUNCTION, TIME_FUNCTION,
};
use crate::KindId;
use crate::detectors::name_filter::NameFilter;
use crate::detectors::word_table::WordTable;

/// The longest name that is looked up.
const NAME_BYTES_MAX: usize = 40;

/// `data/sql-names.tsv`, ready to be asked.
#[derive(Debug)]
pub(super) struct Names {
    whole: WordTable<Group>,
    beginnings: Vec<(&'static [u8], Group)>,
    /// First and second bytes of the beginnings.
    first: ByteSet,
    second: ByteSet,
    /// What stands before the first dot of those that have one.
    qualifiers: NameFilter,
}

/// The group of a name: a function of some kind, a table with data about the database, or the empty table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Group {
    Function(KindId),
    Schema,
    Dual,
    /// A name after `@@`.
    Variable,
}

impl Names {
    pub fn new() -> Names {
        let (mut whole, mut beginnings) = (Vec::new(), Vec::new());
        for line in include_str!("../../../data/sql-names.tsv").lines().filter(|line| !line.starts_with('#'))
        {
            let Some((name, group)) = line.split_once('\t') else { continue };
            let group = match group {
                "time" => Group::Function(TIME_FUNCTION),
                "error" => Group::Function(ERROR_FUNCTION),
                "file" => Group::Function(FILE_FUNCTION),
                "oob" => Group::Function(OUT_OF_BAND_FUNCTION),
                "execute" => Group::Function(EXECUTE_FUNCTION),
                "info" => Group::Function(INFO_FUNCTION),
                "text" => Group::Function(TEXT_FUNCTION),
                "conditional" => Group::Function(CONDITIONAL_FUNCTION),
                "schema" => Group::Schema,
                "table" => Group::Dual,
                "variable" => Group::Variable,
                _ => Group::Function(ANY_FUNCTION),
            };
            match name.strip_suffix('*') {
                Some(beginning) => beginnings.push((beginning.as_bytes(), group)),
                None => whole.push((name.as_bytes(), group)),
            }
        }
        let bytes = |at: usize| beginnings.iter().fold(ByteSet::EMPTY, |all, (name, _)| all.with(name[at]));
        let (first, second) = (bytes(0), bytes(1));
        let all = whole.iter().chain(&beginnings).map(|(name, _)| *name);
        let qualifiers = NameFilter::new(all.filter_map(|name| Some(&name[..memchr::memchr(b'.', name)?])));
        Names { whole: WordTable::new(whole), beginnings, first, second, qualifiers }
    }

    /// False if no name is known that begins with `first` and a dot.
    pub fn may_qualify(&self, first: &[u8]) -> bool {
        let is_of =
            |set: &ByteSet, at: usize| first.get(at).is_none_or(|b| set.contains(b.to_ascii_lowercase()));
        self.qualifiers.may_have(first) || is_of(&self.first, 0) && is_of(&self.second, 1)
    }

    /// What `name` is, in any case. Spaces around the dots of a qualified name are not expected.
    pub fn get(&self, name: &[u8]) -> Option<Group> {
        let first = name.first()?.to_ascii_lowercase();
        // Each of the beginnings goes on with a sign or one of few letters.
        let begins = self.first.contains(first)
            && name.get(1).is_some_and(|b| self.second.contains(b.to_ascii_lowercase()));
        if !begins && !self.whole.may_have(name) {
            return None;
        }
        let mut lower = [0; NAME_BYTES_MAX];
        let lower = lower.get_mut(..name.len())?;
        lower.copy_from_slice(name);
        lower.make_ascii_lowercase();
        let lower = &*lower;
        self.whole.get(lower).or_else(|| {
            let mut known = self.beginnings.iter().filter(|_| begins);
            known.find(|(beginning, _)| lower.starts_with(beginning)).map(|(_, group)| *group)
        })
    }

    /// The kind that a mention of `group` as a table notes.
    pub fn as_table(group: Option<Group>) -> Option<KindId> {
        (group == Some(Group::Schema)).then_some(SCHEMA)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn qualifiers_of_all_names() {
        let names = Names::new();
        let all =
            names.beginnings.iter().map(|(name, _)| *name).chain([&b"sys.tables"[..], b"DBMS_LOCK.Sleep"]);
        for name in all {
            let (first, goes_on) = name.split_at(memchr::memchr(b'.', name).unwrap_or(name.len()));
            assert!(names.may_qualify(first), "{}", name.escape_ascii());
            // What only begins like a known name does may stand before a dot, too.
            assert!(
                !goes_on.is_empty() || names.may_qualify(&[first, b"x"].concat()),
                "{}",
                name.escape_ascii()
            );
        }
        assert!(!names.may_qualify(b"window") && !names.may_qualify(b"self"));
    }
}
