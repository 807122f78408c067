//! Signatures with which the contents of files begin.

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

/// True if `bytes` begin as what a page shows does: code after it is hidden there.
pub(crate) fn is_of_shown(bytes: &[u8]) -> bool {
    SHOWN.iter().any(|magic| bytes.starts_with(magic))
}

/// True if `bytes` are a program, a font, a database, a document, an archive or an unpacked picture or sound,
/// by a header that holds together: the texts in it are texts of a file, as the text of a page is, and no
/// values. A few letters at the beginning prove nothing, and compressed files have no texts to be found.
pub(crate) fn is_file(bytes: &[u8]) -> bool {
    let Some((four, _)) = bytes.split_first_chunk::<4>() else { return false };
    match four {
        b"\x7FELF" => {
            matches!(bytes.get(4..7), Some([1 | 2, 1 | 2, 1]))
                && bytes.get(9..16).is_some_and(|pad| pad.iter().all(|b| *b == 0))
        }
        [b'M', b'Z', ..] => {
            let header = le32(bytes, 0x3C).and_then(|at| bytes.get(at..)?.get(..4));
            header == Some(b"PE\0\0")
        }
        b"\xCF\xFA\xED\xFE" | b"\xCE\xFA\xED\xFE" => le32(bytes, 12).is_some_and(|kind| kind <= 12),
        // Java's classes, and programs for several machines.
        b"\xCA\xFE\xBA\xBE" => matches!(bytes.get(4..8), Some([0, _, 0, 1..=99])),
        b"\0asm" => bytes.get(4..8) == Some(b"\x01\0\0\0"),
        [_, b'\r', b'\r', b'\n'] => le32(bytes, 4).is_some_and(|flags| flags <= 3),
        b"SQLi" => {
            bytes.starts_with(b"SQLite format 3\0")
                && matches!(bytes.get(16..18), Some([1..=128, 0] | [0, 1]))
        }
        b"\0\x01\0\0" | b"OTTO" | b"true" => {
            matches!(bytes.get(4..6), Some([0, 1..=64]))
                && bytes.get(12..16).is_some_and(|tag| tag.iter().all(|b| b.is_ascii_graphic() || *b == b' '))
        }
        b"wOFF" | b"wOF2" => be32(bytes, 8) == Some(bytes.len()),
        b"\xD0\xCF\x11\xE0" => bytes.get(4..8) == Some(b"\xA1\xB1\x1A\xE1"),
        b"%PDF" => {
            let end = &bytes[bytes.len().saturating_sub(PDF_END_BYTES)..];
            bytes.get(4) == Some(&b'-') && memchr::memmem::find(end, b"%%EOF").is_some()
        }
        b"PK\x03\x04" => is_zip(bytes),
        b"RIFF" => le32(bytes, 4).is_some_and(|len| len + 8 == bytes.len() || len + 9 == bytes.len()),
        [b'B', b'M', ..] => le32(bytes, 2) == Some(bytes.len()),
        b"II*\0" => le32(bytes, 4).is_some_and(|at| at < bytes.len()),
        b"MM\0*" => be32(bytes, 4).is_some_and(|at| at < bytes.len()),
        b"PAR1" => bytes.ends_with(b"PAR1"),
        b"\x89HDF" => bytes.get(4..8) == Some(b"\r\n\x1A\n"),
        b"\x93NUM" => bytes.get(4..6) == Some(b"PY"),
        b"!<ar" => bytes.get(4..8) == Some(b"ch>\n"),
        _ => is_tar(bytes),
    }
}

/// True if `bytes` are a bundle of Mercurial, as `hg push` sends it: the header of its first part holds
/// together.
pub(crate) fn is_bundle(bytes: &[u8]) -> bool {
    const PART_BYTES_MAX: usize = 1 << 16;
    let is_size = |at: usize| be32(bytes, at).filter(|size| *size <= PART_BYTES_MAX);
    match bytes.get(..4) {
        Some(b"HG20") => is_size(4).is_some_and(|parameters| is_size(8 + parameters).is_some()),
        // The length of a chunk has that of its header in it: four hashes and a revision.
        Some(b"HG10") => bytes.get(4..6) == Some(b"UN") && is_size(6).is_some_and(|size| size > 84),
        _ => false,
    }
}

/// The end mark of a PDF.
const PDF_END_BYTES: usize = 2_048;
/// The end of the directory of a ZIP archive, with its comment.
const ZIP_END_BYTES: usize = (64 << 10) + 22;

fn le32(bytes: &[u8], at: usize) -> Option<usize> {
    let four = bytes.get(at..)?.first_chunk::<4>()?;
    usize::try_from(u32::from_le_bytes(*four)).ok()
}

fn be32(bytes: &[u8], at: usize) -> Option<usize> {
    let four = bytes.get(at..)?.first_chunk::<4>()?;
    usize::try_from(u32::from_be_bytes(*four)).ok()
}

fn is_zip(bytes: &[u8]) -> bool {
    let [version, _] = bytes.get(4..6).map_or([0; 2], |two| [two[0], two[1]]);
    let name = bytes.get(26..28).map_or(0, |two| usize::from(u16::from_le_bytes([two[0], two[1]])));
    let has_name = name > 0 && bytes.get(30..30 + name).is_some_and(|name| name.iter().all(|b| *b >= b' '));
    let end = &bytes[bytes.len().saturating_sub(ZIP_END_BYTES)..];
    version <= 63 && has_name && memchr::memmem::rfind(end, b"PK\x05\x06").is_some()
}

/// The header of its first member has its checksum.
fn is_tar(bytes: &[u8]) -> bool {
    let Some(header) = bytes.first_chunk::<512>().filter(|header| &header[257..262] == b"ustar") else {
        return false;
    };
    let digits = header[148..156].iter().filter(|b| b.is_ascii_digit());
    let said = digits.fold(0u32, |sum, b| sum << 3 | u32::from(b - b'0'));
    let rest: u32 = header[..148].iter().chain(&header[156..]).map(|b| u32::from(*b)).sum();
    said == rest + 8 * u32::from(b' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bundles() {
        assert!(is_bundle(b"HG20\0\0\0\0\0\0\0\x2A\x0BCHANGEGROUP\0\0\0\0"));
        assert!(is_bundle(b"HG10UN\0\0\0\xB5abc"));
        for no in [&b"HG20 is a version"[..], b"HG10UNION SELECT 1", b"HG20\0\0", b"HG10GZ\0\0\0\xB5", b""] {
            assert!(!is_bundle(no), "{}", no.escape_ascii());
        }
    }

    #[test]
    fn files() {
        let elf = [&b"\x7FELF\x02\x01\x01\0"[..], &[0; 56]].concat();
        let mut exe = vec![0; 128];
        exe[..2].copy_from_slice(b"MZ");
        exe[0x3C] = 64;
        exe[64..68].copy_from_slice(b"PE\0\0");
        let mut tar = vec![0; 512];
        tar[..5].copy_from_slice(b"a.txt");
        tar[257..262].copy_from_slice(b"ustar");
        let sum: u32 = tar.iter().map(|b| u32::from(*b)).sum::<u32>() + 8 * 32;
        tar[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
        for bytes in [&elf[..], &exe, &tar, b"SQLite format 3\0\x10\0", b"\0asm\x01\0\0\0"] {
            assert!(is_file(bytes), "{}", bytes[..16.min(bytes.len())].escape_ascii());
        }
        // Anyone can write the first letters alone; compressed data is recognised by its bytes.
        for bytes in [
            &b"\x7FELF and so on, and so on"[..],
            b"MZ and so on",
            b"%PDF-1.4 and so on",
            b"PK\x03\x04 and so on",
            b"BM and so on",
            b"\x89PNG\r\n\x1A\n",
            b"\x1F\x8B\x08",
            b"",
        ] {
            assert!(!is_file(bytes), "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn what_pages_show() {
        for bytes in [&b"\x89PNG\r\n"[..], b"PK\x03\x04", b"GIF89a"] {
            assert!(is_of_shown(bytes), "{}", bytes.escape_ascii());
        }
        assert!(!is_of_shown(b"\x1F\x8B\x08") && !is_of_shown(b"\x7FELF"));
    }
}
