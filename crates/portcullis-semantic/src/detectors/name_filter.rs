//! A first look at a name: could it be one of a list? It may say yes wrongly, never no.

/// For each first letter, in lower case, the lengths of the names that begin with it.
#[derive(Debug)]
pub(super) struct NameFilter {
    lengths: Box<[u64; 256]>,
}

impl NameFilter {
    /// A filter for `names`, none of which has 64 bytes or more.
    pub fn new<'a>(names: impl Iterator<Item = &'a [u8]>) -> NameFilter {
        let mut lengths = Box::new([0u64; 256]);
        for name in names.filter(|name| !name.is_empty()) {
            debug_assert!(name.len() < 64);
            lengths[usize::from(name[0].to_ascii_lowercase())] |= 1 << (name.len() & 63);
        }
        NameFilter { lengths }
    }

    /// False if no name of the list begins so and is as long.
    pub fn may_have(&self, name: &[u8]) -> bool {
        let Some(first) = name.first() else { return false };
        name.len() < 64 && self.lengths[usize::from(first.to_ascii_lowercase())] >> name.len() & 1 == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_a_wrong_no() {
        let names = [&b"cat"[..], b"Eval", b"x"];
        let filter = NameFilter::new(names.into_iter());
        assert!(
            names.iter().all(|name| filter.may_have(name))
                && filter.may_have(b"EVAL")
                && filter.may_have(b"cut")
        );
        assert!(!filter.may_have(b"cats") && !filter.may_have(b"") && !filter.may_have(&[b'c'; 67]));
    }
}
