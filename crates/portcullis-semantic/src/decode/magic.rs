//! What contents of files begin with.

/// Pictures, documents, archives and sounds that pages show and take.
const SHOWN: &[&[u8]] = &[
    b"GIF8",
    b"\x89PNG",
    b"\xFF\xD8\xFF",
    b"RIFF",
    b"BM",
    b"II*\0",
    b"MM\0*",
    b"\0\0\x01\0",
    b"8BPS",
    b"%PDF",
    b"PK\x03\x04",
    b"ID3",
];

const OTHERS: &[&[u8]] = &[
    b"\x1F\x8B",
    b"BZh",
    b"\xFD7zXZ",
    b"7z\xBC\xAF",
    b"Rar!",
    b"(\xB5/\xFD",
    b"\x7FELF",
    b"MZ",
    b"\xCF\xFA\xED\xFE",
    b"\0asm",
    b"\xCA\xFE\xBA\xBE",
    b"OggS",
    b"fLaC",
    b"\x1A\x45\xDF\xA3",
    b"\0\x01\0\0",
    b"wOF",
    b"OTTO",
    b"SQLite format 3\0",
];

/// True if `bytes` begin as what a page shows does: code behind it is hidden there.
pub(crate) fn is_of_shown(bytes: &[u8]) -> bool {
    SHOWN.iter().any(|magic| bytes.starts_with(magic))
}

/// True if `bytes` begin as an image, a document, an archive, a program, a sound, a film or a font does.
pub(crate) fn is_of_file(bytes: &[u8]) -> bool {
    // Films and compiled Python have theirs behind a number.
    is_of_shown(bytes)
        || OTHERS.iter().any(|magic| bytes.starts_with(magic))
        || bytes.get(4..8) == Some(b"ftyp")
        || bytes.get(1..4) == Some(b"\r\r\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files() {
        for bytes in [&b"\x89PNG\r\n"[..], b"\0\0\0\x20ftypisom", b"\xCB\r\r\n\0", b"PK\x03\x04"] {
            assert!(is_of_file(bytes), "{}", bytes.escape_ascii());
        }
        // Chance may put `<%` into what is packed.
        for bytes in [&b"\x1F\x8B\x08"[..], b"\x7FELF", b"\xCB\r\r\n\0"] {
            assert!(is_of_file(bytes) && !is_of_shown(bytes), "{}", bytes.escape_ascii());
        }
        for bytes in [&b""[..], b"\x00\x03call", b"{\"a\":1}", b"a\r\nb"] {
            assert!(!is_of_file(bytes), "{}", bytes.escape_ascii());
        }
    }
}
