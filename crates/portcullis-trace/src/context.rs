/// Sixteen bytes that all spans of a trace share, not all zero.
pub type TraceId = [u8; 16];
/// Eight bytes of one span, not all zero.
pub type SpanId = [u8; 8];
/// Bytes of a `traceparent` of version 00.
pub const HEADER_BYTES: usize = 55;

/// A parsed `traceparent` header (W3C Trace Context, section 3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Context {
    /// The trace.
    pub trace: TraceId,
    /// The span that asks.
    pub span: SpanId,
    /// Its spans are kept.
    pub sampled: bool,
}

impl Context {
    /// Reads the header; nothing if it is not one, in which case a new trace begins.
    pub fn read(value: &[u8]) -> Option<Context> {
        let value = value.trim_ascii();
        let (head, rest) = value.split_at_checked(HEADER_BYTES)?;
        let version = hex::<1>(head.get(..2)?)?[0];
        // A later version may have more behind another hyphen; version 0 has not, and 255 is none.
        let fits = match version {
            0 => rest.is_empty(),
            255 => false,
            _ => rest.is_empty() || rest[0] == b'-',
        };
        let hyphens = [2, 35, 52].iter().all(|&at| head[at] == b'-');
        let (trace, span) = (hex::<16>(&head[3..35])?, hex::<8>(&head[36..52])?);
        let flags = hex::<1>(&head[53..])?[0];
        let is_set = trace != [0; 16] && span != [0; 8];
        (fits && hyphens && is_set).then_some(Context { trace, span, sampled: flags & 1 == 1 })
    }

    /// A new trace of random ids, sampled with a probability of `ratio` (0 to 1). The id decides, so that all
    /// who know it agree.
    pub fn root(mut trace: TraceId, span: SpanId, ratio: f64) -> Context {
        let mut lot = [0; 8];
        lot.copy_from_slice(&trace[8..]);
        let sampled = ratio >= 1.0 || (u64::from_be_bytes(lot) as f64) < ratio * u64::MAX as f64;
        trace[7] |= 1;
        Context { trace, span, sampled }.child(span)
    }

    /// A span of this trace with a random id.
    pub fn child(&self, mut span: SpanId) -> Context {
        // An id may not be zero.
        span[7] |= 1;
        Context { span, ..*self }
    }

    /// The value of the header, of version 00.
    pub fn header(&self) -> [u8; HEADER_BYTES] {
        let mut out = *b"00-00000000000000000000000000000000-0000000000000000-00";
        write_digits(&self.trace, &mut out[3..35]);
        write_digits(&self.span, &mut out[36..52]);
        out[54] = b'0' + u8::from(self.sampled);
        out
    }

    /// The id of the trace, in hex digits.
    pub fn trace_id(&self) -> String {
        digits(&self.trace)
    }
}

/// Lower-case hex digits.
pub(crate) fn digits(bytes: &[u8]) -> String {
    let mut out = vec![0; bytes.len() * 2];
    write_digits(bytes, &mut out);
    out.into_iter().map(char::from).collect()
}

fn write_digits(bytes: &[u8], out: &mut [u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for (pair, byte) in out.chunks_exact_mut(2).zip(bytes) {
        pair.copy_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
    }
}

/// Lower-case hex digits to bytes; upper-case ones are not allowed.
fn hex<const N: usize>(text: &[u8]) -> Option<[u8; N]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; N];
    if text.len() != 2 * N {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_the_recommendation() {
        let read = |text: &str| Context::read(text.as_bytes());
        let value = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let context = read(value).unwrap();
        assert!(context.sampled);
        assert_eq!(&context.header(), value.as_bytes());
        assert!(!read("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00").unwrap().sampled);
        // A later version, with more behind it.
        assert!(read("cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more").is_some());
        for wrong in [
            "",
            "00",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01.more",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736_00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473g-00f067aa0ba902b7-01",
        ] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn ids_are_never_zero_and_the_ratio_holds() {
        let none = Context::root([0; 16], [0; 8], 1.0);
        assert_eq!(Context::read(&none.header()), Some(none));
        assert_eq!(Context::read(&none.child([0; 8]).header()), Some(none.child([0; 8])));
        // Ids spread evenly over what decides.
        let sampled = |ratio: f64| {
            let ids = (0..1000u64).map(|number| (number * (u64::MAX / 1000)).to_be_bytes());
            let of = |half: [u8; 8]| {
                let mut id = [7; 16];
                id[8..].copy_from_slice(&half);
                Context::root(id, half, ratio).sampled
            };
            ids.filter(|half| of(*half)).count()
        };
        assert_eq!([0.0, 0.01, 0.5, 1.0].map(sampled), [0, 10, 500, 1000]);
    }
}
