//! Upper bounds on the lengths of results.

/// The most bytes that a transformation makes of an input.
#[derive(Clone, Copy)]
pub(crate) enum Bound {
    /// So many bytes of so many bytes of input.
    Ratio(usize, usize),
    /// So many bytes of each block of so many bytes of input, and of what is left of one.
    Blocks(usize, usize),
    /// So many bytes, whatever the input.
    Bytes(usize),
}

impl Bound {
    /// The length of the input.
    pub(crate) const INPUT: Bound = Bound::Ratio(1, 1);

    /// The length of the longest result for an input of this length.
    pub(crate) fn of(self, input: usize) -> usize {
        match self {
            Bound::Ratio(made, from) => scaled(input, made, from).0,
            Bound::Blocks(made, from) => input.div_ceil(from).saturating_mul(made),
            Bound::Bytes(made) => made,
        }
    }

    /// The smallest input that this bound allows a result of this length; 0 where length does not matter.
    pub(crate) fn input_min(self, result: usize) -> usize {
        match self {
            Bound::Ratio(made, from) => {
                let (least, exact) = scaled(result, from, made);
                least.saturating_add(usize::from(!exact))
            }
            Bound::Blocks(_, _) if result == 0 => 0,
            Bound::Blocks(made, from) => (result.div_ceil(made) - 1).saturating_mul(from).saturating_add(1),
            Bound::Bytes(_) => 0,
        }
    }

    /// Length of a result as a multiple of its input, rounded up, except for a few bytes.
    pub(crate) fn growth(self) -> usize {
        match self {
            Bound::Ratio(made, from) | Bound::Blocks(made, from) => made.div_ceil(from),
            Bound::Bytes(_) => 1,
        }
    }
}

/// `length * times / by`, rounded down, and whether nothing was lost to that.
fn scaled(length: usize, times: usize, by: usize) -> (usize, bool) {
    let product = length as u128 * times as u128;
    let by = by as u128;
    (usize::try_from(product / by).unwrap_or(usize::MAX), product.is_multiple_of(by))
}

#[cfg(test)]
mod tests {
    use super::Bound;

    #[test]
    fn the_smallest_input_is_the_first_that_reaches_the_length() {
        for bound in
            [Bound::INPUT, Bound::Ratio(3, 4), Bound::Ratio(1, 2), Bound::Ratio(7, 2), Bound::Blocks(4, 3)]
        {
            for result in 0..200 {
                let least = bound.input_min(result);
                assert!(bound.of(least) >= result && (least == 0 || bound.of(least - 1) < result));
            }
            assert!(bound.input_min(usize::MAX) >= usize::MAX / 4);
        }
    }
}
