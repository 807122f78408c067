use crate::message::{Field, ResponseHead, Version};
use portcullis_types::Span;

/// Makes the head of an answer that another server has read and sends by itself, to be shown to rules.
/// Nothing is refused: what the server takes is what rules have to see. How long the body is, it does not
/// know.
pub fn shown_response<'f>(
    version: Version,
    status: u16,
    fields: impl Iterator<Item = (&'f [u8], &'f [u8])>,
) -> ResponseHead {
    let mut bytes = format!("{} {status:03}\r\n", version.as_str()).into_bytes();
    let line = Span::new(0, bytes.len() - 2);
    let fields = fields.map(|(name, value)| {
        let start = bytes.len();
        bytes.extend_from_slice(name);
        let name = Span::new(start, bytes.len());
        bytes.extend_from_slice(b": ");
        let value_start = bytes.len();
        bytes.extend_from_slice(value);
        let value = Span::new(value_start, bytes.len());
        bytes.extend_from_slice(b"\r\n");
        Field { name, value, line: Span::new(start, bytes.len()) }
    });
    let fields = fields.collect();
    bytes.extend_from_slice(b"\r\n");
    let received = bytes.len();
    ResponseHead { bytes, received, fields, line, version, status, ..ResponseHead::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_the_server_took_is_shown() {
        let fields: [(&[u8], &[u8]); 3] = [(b"A", b"1"), (b"b\n", b"x\r\ny"), (b"", b"")];
        let head = shown_response(Version::Http11, 200, fields.into_iter());
        assert_eq!(head.fields().collect::<Vec<_>>(), fields);
        assert_eq!((head.status(), head.line()), (200, &b"HTTP/1.1 200"[..]));
    }
}
