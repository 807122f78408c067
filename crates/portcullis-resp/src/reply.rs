use std::io::{self, BufRead, Read as _};

/// Limits on an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of all texts of an exchange.
    pub bytes_max: usize,
    /// Values of an exchange; each takes about 32 bytes of memory.
    pub values_max: usize,
}

/// An answer, or a part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// There is nothing.
    Nil,
    /// A number.
    Int(i64),
    /// A text.
    Text(Vec<u8>),
    /// Several.
    List(Vec<Reply>),
    /// The server says no, and why.
    Refused(String),
}

/// A status, an error, or the length of something.
const LINE_BYTES_MAX: u64 = 4096;
/// Lists within lists: a stream's entries are in the fourth.
const DEPTH_MAX: u32 = 8;
/// Room taken before anything has come.
const FIRST_ROOM: usize = 4096;

/// Reads answers, up to the limits for all of them together.
pub(crate) struct Reader<'r, R> {
    from: &'r mut R,
    left: Limits,
}

impl<'r, R: BufRead> Reader<'r, R> {
    pub(crate) fn new(from: &'r mut R, limits: Limits) -> Self {
        Reader { from, left: limits }
    }

    /// The next answer.
    pub(crate) fn read(&mut self) -> io::Result<Reply> {
        self.value(DEPTH_MAX)
    }

    fn value(&mut self, depth: u32) -> io::Result<Reply> {
        self.left.values_max = self.left.values_max.checked_sub(1).ok_or_else(|| too_much("values"))?;
        let line = self.line()?;
        let Some((kind, rest)) = line.split_first() else { return Err(invalid()) };
        match kind {
            b'+' => self.keep(rest.len()).map(|()| Reply::Text(rest.to_vec())),
            b'-' => Ok(Reply::Refused(String::from_utf8_lossy(rest).into_owned())),
            b':' => number(rest).map(Reply::Int),
            b'$' => self.text(number(rest)?),
            b'*' => self.list(number(rest)?, depth),
            _ => Err(invalid()),
        }
    }

    fn text(&mut self, length: i64) -> io::Result<Reply> {
        let Some(length) = length_of(length)? else { return Ok(Reply::Nil) };
        self.keep(length)?;
        let mut text = Vec::with_capacity(length.min(FIRST_ROOM));
        self.from.by_ref().take(length as u64).read_to_end(&mut text)?;
        let mut end = [0; 2];
        self.from.read_exact(&mut end)?;
        if text.len() == length && end == *b"\r\n" { Ok(Reply::Text(text)) } else { Err(invalid()) }
    }

    fn list(&mut self, length: i64, depth: u32) -> io::Result<Reply> {
        let Some(length) = length_of(length)? else { return Ok(Reply::Nil) };
        if length > self.left.values_max {
            return Err(too_much("values"));
        }
        let depth = depth.checked_sub(1).ok_or_else(|| too_much("lists within lists"))?;
        let mut list = Vec::with_capacity(length.min(FIRST_ROOM / 32));
        for _ in 0..length {
            list.push(self.value(depth)?);
        }
        Ok(Reply::List(list))
    }

    fn keep(&mut self, bytes: usize) -> io::Result<()> {
        self.left.bytes_max = self.left.bytes_max.checked_sub(bytes).ok_or_else(|| too_much("bytes"))?;
        Ok(())
    }

    fn line(&mut self) -> io::Result<Vec<u8>> {
        let mut line = Vec::new();
        self.from.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
        match line.strip_suffix(b"\r\n") {
            Some(whole) => Ok(whole.to_vec()),
            None if line.len() as u64 == LINE_BYTES_MAX => Err(too_much("bytes in a line")),
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

impl Reply {
    /// The items of a list; nothing of what is none.
    pub fn items(self) -> Vec<Reply> {
        match self {
            Reply::List(items) => items,
            Reply::Nil | Reply::Int(_) | Reply::Text(_) | Reply::Refused(_) => Vec::new(),
        }
    }

    /// A text, or a number as one.
    pub fn text(self) -> Option<Vec<u8>> {
        match self {
            Reply::Text(text) => Some(text),
            Reply::Int(number) => Some(number.to_string().into_bytes()),
            Reply::Nil | Reply::List(_) | Reply::Refused(_) => None,
        }
    }

    /// An error for an answer that says no.
    pub fn accepted(self) -> io::Result<Reply> {
        match self {
            Reply::Refused(why) => Err(io::Error::other(why)),
            reply @ (Reply::Nil | Reply::Int(_) | Reply::Text(_) | Reply::List(_)) => Ok(reply),
        }
    }
}

fn number(text: &[u8]) -> io::Result<i64> {
    std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()).ok_or_else(invalid)
}

/// None for the length of what is not there.
fn length_of(length: i64) -> io::Result<Option<usize>> {
    match length {
        -1 => Ok(None),
        length => usize::try_from(length).map(Some).map_err(|_| invalid()),
    }
}

fn invalid() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the answer is not one of Redis")
}

fn too_much(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the answer has too many {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { bytes_max: 100, values_max: 10 };

    fn read(bytes: &[u8]) -> io::Result<Reply> {
        let mut bytes = bytes;
        Reader::new(&mut bytes, LIMITS).read()
    }

    #[test]
    fn reads_each_kind() {
        let text = |text: &str| Reply::Text(text.into());
        assert_eq!(read(b"+OK\r\n").unwrap(), text("OK"));
        assert_eq!(read(b"-ERR no\r\n").unwrap(), Reply::Refused("ERR no".into()));
        assert_eq!(read(b":-7\r\n").unwrap(), Reply::Int(-7));
        assert_eq!(read(b"$4\r\na\r\nb\r\n").unwrap(), text("a\r\nb"));
        assert_eq!((read(b"$-1\r\n").unwrap(), read(b"*-1\r\n").unwrap()), (Reply::Nil, Reply::Nil));
        let list = Reply::List(vec![Reply::Int(1), Reply::List(vec![text("a")])]);
        assert_eq!(read(b"*2\r\n:1\r\n*1\r\n$1\r\na\r\n").unwrap(), list);
    }

    #[test]
    fn what_is_too_much_is_an_error_before_it_is_kept() {
        let nested = b"*1\r\n".repeat(9);
        let many = [b"*9\r\n".as_slice(), &b":1\r\n".repeat(9)].concat();
        assert!(read(&many).is_ok());
        for (bytes, what) in [
            (b"*10\r\n".as_slice(), "values"),
            (b"*9223372036854775807\r\n", "values"),
            (b"$101\r\n", "bytes"),
            (b"$9223372036854775807\r\n", "bytes"),
            (&nested, "lists within lists"),
            (&[b'+'; 5000], "bytes in a line"),
            (b"*2\r\n$60\r\n", "UnexpectedEof"),
        ] {
            let error = format!("{:?}", read(bytes).unwrap_err());
            assert!(error.contains(what) || error.contains("unexpected end of file"), "{what}: {error}");
        }
        for wrong in
            ["\r\n", "?\r\n", ":x\r\n", "$-2\r\n", "*x\r\n", "$1\r\nab\r\n", "+a\n", "%1\r\n", ">1\r\n"]
        {
            assert!(read(wrong.as_bytes()).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn the_limits_are_those_of_all_answers_together() {
        let bytes =
            b"$60\r\n".iter().copied().chain([b'x'; 60]).chain(*b"\r\n").collect::<Vec<u8>>().repeat(2);
        let mut from = bytes.as_slice();
        let mut reader = Reader::new(&mut from, LIMITS);
        assert!(reader.read().is_ok() && reader.read().is_err());
    }
}
