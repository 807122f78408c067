//! Frames of SPOP (`doc/SPOE.txt` of HAProxy, section 3.2).

use super::data::{Invalid, Reader, Value, write_i64, write_number, write_string, write_text, write_u32};

/// Bytes of a frame that every peer has to accept.
const FRAME_BYTES_MIN: u32 = 256;
/// Bytes of a frame from HAProxy: `tune.bufsize` is 16 KiB unless it was raised.
pub(super) const FRAME_BYTES_MAX: u32 = 1 << 20;

/// The frame types that HAProxy sends.
pub(super) const HELLO: u8 = 1;
pub(super) const DISCONNECT: u8 = 2;
pub(super) const NOTIFY: u8 = 3;
const AGENT_HELLO: u8 = 101;
const AGENT_DISCONNECT: u8 = 102;
const ACK: u8 = 103;
/// The only fragment of a frame.
const FIN: u32 = 1;

/// The reasons for which an agent ends a connection: status codes of the specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    Normal = 0,
    Timeout = 2,
    TooBig = 3,
    Invalid = 4,
    NoVersion = 5,
    NoFrameSize = 6,
    Version = 8,
    FrameSize = 9,
    Fragmented = 10,
}

impl Status {
    pub(super) fn message(self) -> &'static str {
        match self {
            Status::Normal => "",
            Status::Timeout => "the rest of a frame did not come in time",
            Status::TooBig => "a frame is larger than max-frame-size",
            Status::Invalid => "a frame cannot be read",
            Status::NoVersion => "HELLO does not name supported-versions",
            Status::NoFrameSize => "HELLO does not name max-frame-size",
            Status::Version => "version 2.0 is spoken here",
            Status::FrameSize => "max-frame-size is below 256",
            Status::Fragmented => "fragmented frames are not supported",
        }
    }
}

impl From<Invalid> for Status {
    fn from(_: Invalid) -> Status {
        Status::Invalid
    }
}

/// A frame without its length.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame<'a> {
    pub(super) kind: u8,
    pub(super) stream: u64,
    pub(super) number: u64,
    pub(super) payload: Reader<'a>,
}

impl<'a> Frame<'a> {
    pub(super) fn read(bytes: &'a [u8]) -> Result<Frame<'a>, Status> {
        let mut reader = Reader(bytes);
        let kind = reader.byte()?;
        let flags: [u8; 4] = reader.take(4)?.try_into().map_err(|_| Status::Invalid)?;
        let (stream, number) = (reader.number()?, reader.number()?);
        match u32::from_be_bytes(flags) & FIN {
            0 => Err(Status::Fragmented),
            _ => Ok(Frame { kind, stream, number, payload: reader }),
        }
    }
}

/// The terms of HAProxy, in its HELLO.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Hello {
    pub(super) frame_bytes_max: u32,
    /// The connection is a health check, and ends.
    pub(super) is_check: bool,
}

impl Hello {
    pub(super) fn read(mut payload: Reader<'_>) -> Result<Hello, Status> {
        let (mut versions, mut size, mut is_check) = (None, None, false);
        while !payload.is_empty() {
            let (name, value) = (payload.string()?, payload.value()?);
            match name {
                b"supported-versions" => versions = Some(value.bytes()),
                b"max-frame-size" => size = value.number(),
                b"healthcheck" => is_check = value == Value::Bool(true),
                _ => {}
            }
        }
        let versions = versions.ok_or(Status::NoVersion)?;
        if !versions.split(|byte| *byte == b',').any(|version| version.trim_ascii().starts_with(b"2.")) {
            return Err(Status::Version);
        }
        let size = u32::try_from(size.ok_or(Status::NoFrameSize)?).unwrap_or(u32::MAX);
        if size < FRAME_BYTES_MIN {
            return Err(Status::FrameSize);
        }
        Ok(Hello { frame_bytes_max: size.min(FRAME_BYTES_MAX), is_check })
    }
}

/// Appends a frame with its length.
fn write(kind: u8, stream: u64, number: u64, payload: impl FnOnce(&mut Vec<u8>), out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    out.push(kind);
    out.extend_from_slice(&FIN.to_be_bytes());
    write_number(stream, out);
    write_number(number, out);
    payload(out);
    let length = u32::try_from(out.len() - start - 4).unwrap_or(u32::MAX);
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
}

/// Appends the answer to HELLO.
pub(super) fn write_hello(hello: Hello, out: &mut Vec<u8>) {
    let payload = |out: &mut Vec<u8>| {
        write_string(b"version", out);
        write_text(b"2.0", out);
        write_string(b"max-frame-size", out);
        write_u32(hello.frame_bytes_max, out);
        write_string(b"capabilities", out);
        write_text(b"pipelining", out);
    };
    write(AGENT_HELLO, 0, 0, payload, out);
}

/// Appends the end of a connection.
pub(super) fn write_disconnect(status: Status, out: &mut Vec<u8>) {
    let payload = |out: &mut Vec<u8>| {
        write_string(b"status-code", out);
        write_u32(status as u32, out);
        write_string(b"message", out);
        write_text(status.message().as_bytes(), out);
    };
    write(AGENT_DISCONNECT, 0, 0, payload, out);
}

/// The value of a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Set {
    Text(String),
    Bytes(Vec<u8>),
    Number(i64),
}

/// Appends the answer to NOTIFY: variables of the transaction.
pub(super) fn write_ack(stream: u64, number: u64, variables: &[(&str, Set)], out: &mut Vec<u8>) {
    const SET_VAR: u8 = 1;
    const ARGUMENTS: u8 = 3;
    const TRANSACTION: u8 = 2;
    let payload = |out: &mut Vec<u8>| {
        for (name, value) in variables {
            out.extend_from_slice(&[SET_VAR, ARGUMENTS, TRANSACTION]);
            write_string(name.as_bytes(), out);
            match value {
                Set::Text(text) => write_text(text.as_bytes(), out),
                Set::Bytes(bytes) => write_text(bytes, out),
                Set::Number(number) => write_i64(*number, out),
            }
        }
    };
    write(ACK, stream, number, payload, out);
}
