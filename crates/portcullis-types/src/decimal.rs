/// A number in decimal digits, without the formatting machinery.
#[derive(Clone, Copy, Debug)]
pub struct Decimal {
    /// They stand at the end.
    text: [u8; 20],
    from: usize,
}

impl Decimal {
    /// With a sign if it is below 0.
    pub fn new(number: i64) -> Decimal {
        let mut decimal = Decimal::unsigned(number.unsigned_abs());
        if number < 0 {
            // Negative numbers have 19 digits at most.
            decimal.from -= 1;
            decimal.text[decimal.from] = b'-';
        }
        decimal
    }

    /// Of a number that has no sign.
    pub fn unsigned(number: u64) -> Decimal {
        let (mut text, mut from) = ([0; 20], 20);
        let mut left = number;
        loop {
            from -= 1;
            text[from] = b'0' + (left % 10) as u8;
            left /= 10;
            if left == 0 {
                return Decimal { text, from };
            }
        }
    }
}

impl std::ops::Deref for Decimal {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.text[self.from..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_they_are_read() {
        for number in [0, 7, 10, -1, -120, 4096, i64::MAX, i64::MIN] {
            assert_eq!(&*Decimal::new(number), number.to_string().as_bytes());
        }
        assert_eq!(&*Decimal::unsigned(u64::MAX), u64::MAX.to_string().as_bytes());
    }
}
