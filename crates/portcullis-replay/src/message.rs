//! A message as a person saves or types one.

/// The bytes of a request or response, and what was done to make one of the text.
#[derive(Debug, PartialEq, Eq)]
pub struct Message {
    /// As they would come over the wire.
    pub bytes: Vec<u8>,
    /// Notes on changes and suspicious parts, one sentence each.
    pub notes: Vec<String>,
}

/// Reads a text: a head with LF line ends gets CRLF, a missing empty line is added, and a body without
/// framing gets a `Content-Length`, as its sender would give it. A text that is well-formed is left as it
/// is.
pub fn read_message(file: &[u8]) -> Message {
    let mut notes = Vec::new();
    let (head, body) = split(file);
    let mut bytes = Vec::with_capacity(file.len() + 64);
    if head.contains(&b'\n') && !head.windows(2).any(|pair| pair == b"\r\n") {
        notes.push("line ends of the head were LF; taken as CRLF".to_owned());
        for line in head.split_inclusive(|&b| b == b'\n') {
            match line.strip_suffix(b"\n") {
                Some(text) => {
                    bytes.extend_from_slice(text);
                    bytes.extend_from_slice(b"\r\n");
                }
                None => bytes.extend_from_slice(line),
            }
        }
    } else {
        bytes.extend_from_slice(head);
    }
    if body.is_none() {
        notes.push("there was no empty line after the head; added".to_owned());
        if !bytes.ends_with(b"\r\n") {
            bytes.extend_from_slice(b"\r\n");
        }
    }
    let body = body.unwrap_or_default();
    let is_framed = has_field(&bytes, b"content-length:") || has_field(&bytes, b"transfer-encoding:");
    if !body.is_empty() && !is_framed {
        notes.push(format!("Content-Length: {} was added for the body", body.len()));
        bytes.extend_from_slice(format!("Content-Length: {}\r\n", body.len()).as_bytes());
    }
    bytes.extend_from_slice(b"\r\n");
    bytes.extend_from_slice(body);
    Message { bytes, notes }
}

/// The head with its last line end, and what comes after the empty line, if there is one.
fn split(file: &[u8]) -> (&[u8], Option<&[u8]>) {
    let mut at = 0;
    for line in file.split_inclusive(|&b| b == b'\n') {
        if at > 0 && matches!(line, b"\n" | b"\r\n") {
            return (&file[..at], Some(&file[at + line.len()..]));
        }
        at += line.len();
    }
    (file, None)
}

fn has_field(head: &[u8], name_and_colon: &[u8]) -> bool {
    head.split(|&b| b == b'\n')
        .any(|line| line.get(..name_and_colon.len()).is_some_and(|n| n.eq_ignore_ascii_case(name_and_colon)))
}

#[cfg(test)]
mod tests {
    use super::read_message;

    #[track_caller]
    fn check(file: &str, bytes: &str, notes: usize) {
        let request = read_message(file.as_bytes());
        assert_eq!(String::from_utf8_lossy(&request.bytes), bytes);
        assert_eq!(request.notes.len(), notes, "{:?}", request.notes);
    }

    #[test]
    fn well_formed_files_stay_as_they_are() {
        for file in [
            "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\na\nb",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n",
        ] {
            check(file, file, 0);
        }
    }

    #[test]
    fn files_of_an_editor_are_mended() {
        check("GET / HTTP/1.1\nHost: a\n\n", "GET / HTTP/1.1\r\nHost: a\r\n\r\n", 1);
        check("GET / HTTP/1.1\nHost: a\n", "GET / HTTP/1.1\r\nHost: a\r\n\r\n", 2);
        check("GET / HTTP/1.1\r\nHost: a", "GET / HTTP/1.1\r\nHost: a\r\n\r\n", 1);
        check("GET / HTTP/1.1", "GET / HTTP/1.1\r\n\r\n", 1);
        check(
            "POST / HTTP/1.1\nHost: a\n\nq=1\n",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nq=1\n",
            2,
        );
        check("", "\r\n\r\n", 1);
    }
}
