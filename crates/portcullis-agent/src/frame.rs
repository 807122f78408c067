use prost::Message;

/// The framing of messages in a stream of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Framing {
    /// Over a Unix socket: behind 4 bytes of length in network order.
    #[default]
    Length,
    /// In a gRPC stream: a byte that tells of compression before that.
    Grpc,
}

/// The reason why a frame is no message for its reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// Longer than its reader accepts, or not in the form that it should have.
    TooLong(usize),
    /// Compressed, though no compression was offered (the byte that says so).
    Compressed(u8),
}

/// Takes a stream of bytes apart into messages.
#[derive(Debug, Default)]
pub struct Frames {
    framing: Framing,
    input: Vec<u8>,
    /// Bytes at the beginning of `input` that are done with.
    used: usize,
}

impl Frames {
    /// Of such a stream.
    pub fn new(framing: Framing) -> Frames {
        Frames { framing, ..Frames::default() }
    }

    /// Adds what came.
    pub fn feed(&mut self, bytes: &[u8]) {
        if self.used == self.input.len() {
            self.input.clear();
            self.used = 0;
        }
        self.input.extend_from_slice(bytes);
    }

    /// The next whole message, if it has come; one above `bytes_max` is refused by its length alone.
    pub fn next(&mut self, bytes_max: usize) -> Result<Option<&[u8]>, Unreadable> {
        let rest = &self.input[self.used..];
        let mut prefix = 4;
        let rest = match (self.framing, rest) {
            (Framing::Grpc, [0, rest @ ..]) => {
                prefix = 5;
                rest
            }
            (Framing::Grpc, [flag, ..]) => return Err(Unreadable::Compressed(*flag)),
            (Framing::Length, rest) | (Framing::Grpc, rest @ []) => rest,
        };
        let Some((length, rest)) = rest.split_first_chunk::<4>() else {
            self.compact();
            return Ok(None);
        };
        let length = u32::from_be_bytes(*length) as usize;
        if length > bytes_max {
            return Err(Unreadable::TooLong(length));
        }
        if rest.len() < length {
            self.compact();
            return Ok(None);
        }
        let begin = self.used + prefix;
        self.used = begin + length;
        Ok(Some(&self.input[begin..self.used]))
    }

    fn compact(&mut self) {
        if self.used > 0 {
            self.input.drain(..self.used);
            self.used = 0;
        }
    }
}

/// Appends a message as `framing` has it.
pub fn write_frame(framing: Framing, message: &impl Message, out: &mut Vec<u8>) {
    let length = message.encoded_len();
    out.reserve(length + 5);
    if framing == Framing::Grpc {
        out.push(0);
    }
    out.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes());
    message.encode_raw(out);
}

/// A message as `framing` has it.
pub fn frame(framing: Framing, message: &impl Message) -> Vec<u8> {
    let mut out = Vec::new();
    write_frame(framing, message, &mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_out_however_the_bytes_are_cut() {
        let messages: [&[u8]; 4] = [b"one", b"", b"three", &[7; 300]];
        for (framing, prefix) in [(Framing::Length, &b""[..]), (Framing::Grpc, b"\0")] {
            let mut stream = Vec::new();
            for message in messages {
                stream.extend_from_slice(prefix);
                stream.extend_from_slice(&(message.len() as u32).to_be_bytes());
                stream.extend_from_slice(message);
            }
            for cut in 1..stream.len() {
                let mut frames = Frames::new(framing);
                let mut seen: Vec<Vec<u8>> = Vec::new();
                for piece in stream.chunks(cut) {
                    frames.feed(piece);
                    while let Some(message) = frames.next(300).unwrap() {
                        seen.push(message.to_vec());
                    }
                }
                assert_eq!(seen, messages, "{framing:?}, pieces of {cut}");
                assert!(frames.input.is_empty() || frames.used == frames.input.len());
            }
        }
    }

    #[test]
    fn a_length_above_the_limit_is_refused_before_the_message_comes() {
        let mut frames = Frames::default();
        frames.feed(&[0xff, 0xff, 0xff, 0xff]);
        assert_eq!(frames.next(1000), Err(Unreadable::TooLong(u32::MAX as usize)));
        let mut frames = Frames::new(Framing::Grpc);
        frames.feed(&[1, 0, 0, 0, 1, 7]);
        assert_eq!(frames.next(1000), Err(Unreadable::Compressed(1)));
    }
}
