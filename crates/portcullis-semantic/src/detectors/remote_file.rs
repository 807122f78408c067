//! Remote file inclusion: a parameter that is a URL which the application would include and run.
//!
//! URLs in parameters are everyday; what an inclusion has beside is a tail that cuts off what the application
//! appends (a lone question mark, NUL, a hash sign), a script as text, a host that is an address, or a
//! parameter that is for files. Two of them together count.

use portcullis_lex::url::{Host, Url, scheme_before};
use portcullis_types::Span;

use super::scan::is_one_of;
use crate::{ByteGroups, Class, Detector, Found, Hint, Input, Place, Profile, kinds};

kinds! {
    reference "https://owasp.org/www-project-web-security-testing-guide/stable/4-Web_Application_Security_Testing/07-Input_Validation_Testing/11.2-Testing_for_Remote_File_Inclusion";
    CUT "remote-file.cut" Error Active "the URL ends in a sign that cuts off what the application appends";
    CUT_NUL "remote-file.cut-nul" Error Active "the URL ends in NUL, where C ends the text";
    SCRIPT_TEXT "remote-file.script-text" Warning Active
        "the URL is of a script, or of a text that may be one";
    SHELL_NAME "remote-file.shell-name" Error Active "the URL's file is named as web shells are";
    ADDRESS "remote-file.address" Error Active "the URL's host is an address, not a name";
    INCLUDE_NAME "remote-file.include-name" Warning Active
        "the parameter is named as those for files and folders are";
    INCLUDED "remote-file.included" Error Active
        "the parameter is for what a script includes: include, require, template, a root of an application";
    TRANSFER "remote-file.transfer" Warning Active "a file by FTP or from a Windows share";
}

/// See the module.
#[derive(Debug)]
pub struct RemoteFile;

static PROFILE: Profile = Profile::new(Class::RemoteFile, KINDS)
    .needs(ByteGroups::of(b":"))
    .hints(HINTS)
    .weights(include_str!("../../weights/remote-file.tsv"));

impl Detector for RemoteFile {
    fn profile(&self) -> &'static Profile {
        &PROFILE
    }

    fn reads(&self, place: Place) -> bool {
        matches!(
            place,
            Place::Query | Place::Form | Place::Json | Place::MultipartField | Place::Cookie | Place::XmlText
        )
    }

    fn detect(&self, input: &Input<'_>, found: &mut Found<'_>) {
        let text = input.text;
        let start = text.len() - text.trim_ascii_start().len();
        let Some(colon) = memchr::memchr(b':', text) else { return };
        let is_url = scheme_before(text, colon) == start && text[colon + 1..].starts_with(b"//");
        if !is_url {
            return;
        }
        // What stands after white space is not part of the URL, and the application includes what it can of
        // it.
        let end = text[colon..].iter().position(u8::is_ascii_whitespace).map_or(text.len(), |at| colon + at);
        let text = &text[..end];
        let scheme = &text[start..colon];
        let is_ftp = is_one_of(scheme, &[b"ftp", b"ftps", b"smb"]);
        if !is_ftp && !is_one_of(scheme, &[b"http", b"https"]) {
            return;
        }
        let Some(url) = Url::read(text, start, colon, |_| false) else { return };
        let host = Host::read(url.hosts(text).next().unwrap_or_default());
        let path = url.path.of(text);
        let mut add = |kind| found.add(kind, Span::new(start, text.len()));
        let name_end = path.iter().position(|b| matches!(b, b'?' | b'#' | b'%' | 0)).unwrap_or(path.len());
        let (file, tail) = path.split_at(name_end);
        let file = &file[memchr::memrchr(b'/', file).map_or(0, |at| at + 1)..];
        let is_script = file.len() > 3 && has_script_extension(file);
        if !tail.is_empty()
            && tail.iter().all(|b| matches!(b, b'?' | b'#' | b'&'))
            && tail.len() <= 3
            && !file.is_empty()
        {
            add(CUT);
        }
        if tail.ends_with(b"%00") || tail.first() == Some(&0) {
            add(CUT_NUL);
        }
        if is_script {
            add(SCRIPT_TEXT);
        }
        if is_shell(file) {
            add(SHELL_NAME);
        }
        // Nobody includes a member of JSON but by a name for it; devices and hosts have scripts at addresses.
        let is_document = matches!(input.location.place, Place::Json | Place::XmlText);
        let is_asked = || is_include_name(input.location.name) || is_shell(file);
        if host.address.is_some() && (!is_document || is_asked()) {
            add(ADDRESS);
        }
        if is_ftp {
            add(TRANSFER);
        }
        if is_include_name(input.location.name) {
            add(INCLUDE_NAME);
            if is_script && is_for_scripts(input.location.name) {
                add(INCLUDED);
            }
        }
    }
}

/// The file is a script, or text as which scripts are served so that the server itself does not run them.
fn has_script_extension(file: &[u8]) -> bool {
    let Some(dot) = memchr::memchr(b'.', file) else { return false };
    file[dot + 1..]
        .split(|&b| b == b'.')
        .any(|part| is_one_of(part, words!("remote-file", "script-extensions")))
}

fn is_shell(file: &[u8]) -> bool {
    let stem = &file[..memchr::memchr(b'.', file).unwrap_or(file.len())];
    is_one_of(stem, words!("remote-file", "shell-names"))
}

/// A name for what is included, not for a page that a user was on: `template`, `inc`,
/// `mosConfig_absolute_path`.
fn is_for_scripts(name: &[u8]) -> bool {
    const PARTS: &[&[u8]] = &[b"include", b"require", b"template", b"mosconfig", b"basedir"];
    let has = |part: &[u8]| name.windows(part.len()).any(|window| window.eq_ignore_ascii_case(part));
    is_one_of(name, &[b"inc", b"tpl", b"root_path", b"abs_path"]) || PARTS.iter().any(|part| has(part))
}

fn is_include_name(name: &[u8]) -> bool {
    let last =
        name.rsplit(|b| matches!(b, b'.' | b'[' | b']')).find(|part| !part.is_empty()).unwrap_or_default();
    const PARTS: &[&[u8]] = &[b"include", b"path", b"root", b"template", b"basedir", b"mosconfig", b"theme"];
    const ENDS: &[&[u8]] =
        &[b"dir", b"file", b"inc", b"lib", b"folder", b"lang", b"skin", b"page", b"conf", b"config", b"cfg"];
    const WHOLE: &[&[u8]] = words!("remote-file", "include-names");
    let has = |part: &[u8]| last.windows(part.len()).any(|window| window.eq_ignore_ascii_case(part));
    let begins = |part: &[u8]| last.get(..part.len()).is_some_and(|start| start.eq_ignore_ascii_case(part));
    let ends = |part: &[u8]| {
        last.len().checked_sub(part.len()).is_some_and(|at| last[at..].eq_ignore_ascii_case(part))
    };
    is_one_of(last, WHOLE)
        || PARTS.iter().any(|part| has(part))
        || ENDS.iter().any(|part| ends(part))
        || begins(b"dir_")
        || begins(b"lang_")
}

const HINTS: &[Hint] = hints!("remote-file", "gate");

#[cfg(test)]
mod tests {
    use crate::Class::RemoteFile;
    use crate::Place;
    use crate::detectors::testing::{blocks, look, passes_at};

    #[test]
    fn inclusions() {
        blocks(RemoteFile, "http://a.example/shell.txt?", "cut shell-name script-text");
        blocks(RemoteFile, "http://192.0.2.1/c99.php", "address shell-name");
        blocks(RemoteFile, "http://a.example/x.txt%00", "cut-nul script-text");
        let (have, is_blocked) = look(RemoteFile, Place::Query, "template_path", b"ftp://a.example/x.txt");
        assert!(is_blocked, "{have}");
    }

    #[test]
    fn ordinary() {
        passes_at(RemoteFile, Place::Query, "url", "https://www.example.com/index.php?page=2");
        passes_at(RemoteFile, Place::Query, "page", "https://www.example.com/products/shoes.html");
        passes_at(RemoteFile, Place::Query, "file", "https://cdn.example.com/a/b/readme.txt");
        passes_at(RemoteFile, Place::Json, "json.source", "http://192.0.2.1/feed.xml");
        passes_at(RemoteFile, Place::Query, "u", "https://www.example.com/search?");
        // A device, or an indicator of an attack, as an interface reports it.
        passes_at(RemoteFile, Place::Json, "attributes.value", "http://198.51.100.9/inv.php?id=1&f=../x");
        for (place, name, text) in [
            (Place::Query, "value", "http://198.51.100.9/inv.php"),
            (Place::Form, "value", "http://198.51.100.9/inv.txt"),
            (Place::Json, "include_path", "http://198.51.100.9/inv.php"),
            (Place::Json, "value", "http://198.51.100.9/c99.php"),
            (Place::Json, "value", "http://198.51.100.9/inv.php?"),
        ] {
            let (have, is_blocked) = look(RemoteFile, place, name, text.as_bytes());
            assert!(is_blocked, "{name}={text}: {have}");
        }
    }
}
