//! A first look at a name: could it be one of a list? It may say yes wrongly, never no.

/// The lengths and some letters of the names of a list.
#[derive(Debug)]
pub(super) struct NameFilter {
    /// For each first letter, in lower case, the lengths of the names that begin with it.
    lengths: Box<[u64; 256]>,
    /// The marks that the names have: of what begins so and is as long, few others have one of these.
    marks: Box<[u64; MARKS / 64]>,
}

const MARK_BITS: u32 = 12;
const MARKS: usize = 1 << MARK_BITS;

impl NameFilter {
    /// A filter for `names`, none of which has 64 bytes or more.
    pub fn new<'a>(names: impl Iterator<Item = &'a [u8]>) -> NameFilter {
        let mut filter = NameFilter { lengths: Box::new([0; 256]), marks: Box::new([0; MARKS / 64]) };
        for name in names.filter(|name| !name.is_empty()) {
            debug_assert!(name.len() < 64, "{}", name.escape_ascii());
            filter.lengths[usize::from(name[0].to_ascii_lowercase())] |= 1 << (name.len() & 63);
            let mark = mark(name);
            filter.marks[mark / 64] |= 1 << (mark % 64);
        }
        filter
    }

    /// False if `name` is certainly not in the list.
    pub fn may_have(&self, name: &[u8]) -> bool {
        let Some(first) = name.first() else { return false };
        let lengths = self.lengths[usize::from(first.to_ascii_lowercase())];
        if name.len() >= 64 || lengths >> name.len() & 1 == 0 {
            return false;
        }
        let mark = mark(name);
        self.marks[mark / 64] >> (mark % 64) & 1 == 1
    }
}

/// A number made of a name's length and three of its letters, the same in any case.
fn mark(name: &[u8]) -> usize {
    let at = |at: usize| name.get(at).map_or(0, |b| u32::from(b | 0x20));
    let all =
        at(0) | at(name.len() / 2) << 8 | at(name.len().wrapping_sub(1)) << 16 | (name.len() as u32) << 24;
    (all.wrapping_mul(0x9E37_79B1) >> (32 - MARK_BITS)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_a_wrong_no() {
        let names = [&b"cat"[..], b"Eval", b"x"];
        let filter = NameFilter::new(names.into_iter());
        for name in names {
            assert!(filter.may_have(name) && filter.may_have(&name.to_ascii_uppercase()));
        }
        for other in [&b"cats"[..], b"", &[b'c'; 67], b"dat"] {
            assert!(!filter.may_have(other));
        }
    }
}
