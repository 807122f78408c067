//! Schemes that open streams and files.

use super::{FILE_URL, WRAPPER};
use crate::KindId;

/// Bytes of the path after a scheme that are looked at.
const PATH_BYTES_MAX: usize = 1_024;

/// What `scheme` with `rest` after its colon is.
pub(super) fn wrapper(scheme: &[u8], rest: &[u8]) -> Option<KindId> {
    let is = |name: &str| scheme.eq_ignore_ascii_case(name.as_bytes());
    let has_slashes = rest.starts_with(b"//");
    if has_slashes
        && [
            "php",
            "zip",
            "phar",
            "expect",
            "data",
            "glob",
            "rar",
            "ogg",
            "ssh2.exec",
            "compress.zlib",
            "compress.bzip2",
        ]
        .iter()
        .any(|name| is(name))
    {
        return Some(WRAPPER);
    }
    // Without the slashes these are words of prose; what follows must be a file.
    if is("phar") && memchr::memchr(b'/', &rest[..rest.len().min(PATH_BYTES_MAX)]).is_some() {
        return Some(WRAPPER);
    }
    if is("jar") && ["http", "file", "ftp"].iter().any(|name| rest.starts_with(name.as_bytes())) {
        return Some(WRAPPER);
    }
    if is("netdoc") && rest.starts_with(b"/") {
        return Some(WRAPPER);
    }
    let is_file = (is("file") || is("local_file"))
        && (matches!(rest, [b'/' | b'\\' | b'$' | b'%', ..])
            || matches!(rest, [a, b':' | b'|', ..] if a.is_ascii_alphabetic()));
    is_file.then_some(FILE_URL)
}

/// `///home/a/app/main.go`, `///c%3A/app/main.cs`: of this machine, with no steps up, no name that begins
/// with a dot, and no escapes but those of a drive's colon and of spaces.
pub(super) fn is_of_project(rest: &[u8]) -> bool {
    let Some(path) = rest.strip_prefix(b"///").filter(|path| path.len() <= PATH_BYTES_MAX) else {
        return false;
    };
    let path = match path {
        [letter, b'%', b'3', b'a' | b'A', b'/', path @ ..] | [letter, b':', b'/', path @ ..]
            if letter.is_ascii_alphabetic() =>
        {
            path
        }
        path => path,
    };
    let is_part = |b: &u8| b.is_ascii_alphanumeric() || !b.is_ascii() || b"-_.+@ ".contains(b);
    let is_name = |name: &[u8]| {
        let mut parts = name.split(|b| *b == b'%');
        let first = parts.next().unwrap_or_default();
        !first.starts_with(b".")
            && first.iter().all(is_part)
            && parts.all(|part| part.strip_prefix(b"20").is_some_and(|rest| rest.iter().all(is_part)))
    };
    !path.starts_with(b"/") && path.split(|b| *b == b'/').all(is_name)
}

/// The path of a file URL lies in a user's home.
pub(super) fn is_home(rest: &[u8]) -> bool {
    let path = &rest[rest.iter().take_while(|b| matches!(b, b'/' | b'\\')).count()..];
    let path = match path {
        [letter, b':', b'/' | b'\\', inner @ ..] if letter.is_ascii_alphabetic() => inner,
        path => path,
    };
    let begins =
        |folder: &[u8]| path.get(..folder.len()).is_some_and(|start| start.eq_ignore_ascii_case(folder));
    (begins(b"users/") || begins(b"home/") || begins(b"storage/"))
        && memchr::memmem::find(&path[..path.len().min(PATH_BYTES_MAX)], b"/.").is_none()
}

/// Bytes before an address in which its element begins.
const ELEMENT_BYTES_MAX: usize = 512;

/// `<img src="file:///C:/Users/a/AppData/Local/Temp/x.png">`, `<link href="file:///C:/Users/a/list.xml">`: a
/// picture or a part of a document that a word processor left on the author's machine. `before` is what
/// stands before the URL, `rest` what stands after its colon.
pub(super) fn is_of_author(before: &[u8], rest: &[u8]) -> bool {
    const PICTURES: &[&[u8]] = &[b"img", b"v:imagedata", b"v:fill", b"imageinline", b"imageblock"];
    const PICTURE_ENDS: &[&[u8]] = &[
        b".png", b".jpg", b".jpeg", b".gif", b".bmp", b".emf", b".wmf", b".emz", b".wmz", b".webp", b".tif",
    ];
    const PART_ENDS: &[&[u8]] = &[b".xml", b".thmx", b".mso"];
    let before = &before[before.len().saturating_sub(ELEMENT_BYTES_MAX)..];
    let Some(open) = memchr::memrchr2(b'<', b'>', before).filter(|at| before[*at] == b'<') else {
        return false;
    };
    let element = &before[open + 1..];
    let name = element.iter().position(u8::is_ascii_whitespace).unwrap_or(0);
    let is_named = |known: &&[u8]| element[..name].eq_ignore_ascii_case(known);
    let (attribute, ends) = match PICTURES.iter().any(is_named) {
        true => (&b"src="[..], PICTURE_ENDS),
        false if is_named(&&b"link"[..]) && has_part_of_word(element) => (&b"href="[..], PART_ENDS),
        false => return false,
    };
    let Some((b'"' | b'\'', element)) = element.split_last() else { return false };
    let at = element.len().saturating_sub(attribute.len());
    let is_source =
        at > name && element[at..].eq_ignore_ascii_case(attribute) && element[at - 1].is_ascii_whitespace();
    let rest = &rest[..rest.len().min(PATH_BYTES_MAX)];
    let path = &rest[..rest.iter().position(|b| b"\"'<>\\\n".contains(b)).unwrap_or(0)];
    let is_end =
        |end: &&[u8]| path.len() > end.len() && path[path.len() - end.len()..].eq_ignore_ascii_case(end);
    is_source && is_home(path) && ends.iter().any(is_end)
}

/// `rel=File-List`: how Word names the parts of its documents.
fn has_part_of_word(element: &[u8]) -> bool {
    [&b"=File-List"[..], b"=themeData", b"=colorSchemeMapping", b"=Edit-Time-Data"]
        .iter()
        .any(|rel| memchr::memmem::find(element, rel).is_some())
}

/// A byte of a scheme's name.
pub(super) fn is_scheme(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'.' | b'+' | b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_documents() {
        let word: &[u8] = b"///C:/Users/x/AppData/Local/Temp/msohtmlclip1/01/clip_image001.png\" width=1>";
        let mac: &[u8] = b"////Users/m/Library/Group%20Containers/A.Office/msohtmlclip/clip_image001.jpg\">";
        for before in
            ["<p>a</p><img width=1 src=\"", "<v:imagedata SRC=\"", "<imageInline alt=\"a b\" src=\""]
        {
            assert!(
                is_of_author(before.as_bytes(), word) && is_of_author(before.as_bytes(), mac),
                "{before}"
            );
        }
        let list: &[u8] = b"///C:/Users/x/AppData/Local/Temp/msohtmlclip1/01/clip_filelist.xml\">";
        assert!(is_of_author(b"<link rel=File-List\nhref=\"", list) && !is_of_author(b"<img src=\"", list));
        for before in [
            "",
            "src=\"",
            "<iframe src=\"",
            "<image xlink:href=\"",
            "<img> src=\"",
            "<img data-src=\"",
            "<!ENTITY x SYSTEM \"",
        ] {
            assert!(!is_of_author(before.as_bytes(), word), "{before}");
        }
        for rest in [
            "///etc/passwd\">",
            "///c:/windows/win.ini\">",
            "///c:/windows/x.png\">",
            "///C:/Users/x/secret.txt\">",
            "///home/x/.ssh/id_rsa\">",
            "///C:/Users/x/a.png",
        ] {
            assert!(!is_of_author(b"<img src=\"", rest.as_bytes()), "{rest}");
        }
    }
}
