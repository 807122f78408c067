//! The file at which a path ends, as its name and the folders before it tell.

use portcullis_lex::path::{Path, Writing, unit};
use portcullis_types::Span;

use super::{DEVICE, SHARE_ASKED, SHARE_PROGRAM};
use crate::detectors::purpose;
use crate::{Input, KindId, Layer, Location, Place};

/// What a share is beside one.
pub(super) fn share_kind(share: &[u8], place: Place) -> Option<KindId> {
    if is_shared_program(share) {
        Some(SHARE_PROGRAM)
    } else if is_device(share) {
        Some(DEVICE)
    } else {
        let is_asked = matches!(place, Place::Query | Place::PathSegment);
        (is_asked && is_elsewhere(share)).then_some(SHARE_ASKED)
    }
}

/// `/usr/local/bin`: the folder as a whole, as instructions for an installation have it, or a program in it,
/// with its options: `/usr/sbin/sendmail -t -i`. Who has a program read as a file learns nothing of it.
pub(super) fn is_program_folder(target: &[u8]) -> bool {
    const FOLDERS: &[&[u8]] = &[b"usr/bin/", b"usr/sbin/", b"usr/local/bin/", b"usr/local/sbin/"];
    let target = target.strip_suffix(b"/").unwrap_or(target);
    let is_folder = target.starts_with(b"usr/")
        && [&b"/bin"[..], b"/sbin", b"/lib", b"/share"].iter().any(|end| target.ends_with(end));
    let is_name = |b: &u8| b.is_ascii_alphanumeric() || b"-_+".contains(b);
    let is_program = |program: &[u8]| {
        let mut words = program.split(|b| *b == b' ');
        let name = words.next().unwrap_or_default();
        !name.is_empty()
            && name.iter().all(is_name)
            && words.all(|word| word.len() > 1 && word[0] == b'-' && word.iter().all(is_name))
    };
    is_folder || FOLDERS.iter().any(|folder| target.strip_prefix(*folder).is_some_and(is_program))
}

/// `/etc/`, `/proc`, `/root`: the folder as a whole.
pub(super) fn is_folder_of_system(target: &[u8]) -> bool {
    matches!(target.strip_suffix(b"/").unwrap_or(target), b"etc" | b"proc" | b"root")
}

/// `usr/lib/libc.so.6`, `usr/local/lib/python3.11/site-packages/x.py`: code of programs that many machines
/// have, as stack traces name it. PHP that comes with its interpreter is included by attacks.
pub(super) fn is_installed_code(target: &[u8]) -> bool {
    const FOLDERS: &[&[u8]] = &[
        b"usr/lib/",
        b"usr/lib64/",
        b"usr/local/lib/",
        b"private/var/containers/bundle/",
        b"private/var/staged_system_apps/",
    ];
    const ENDS: &[&[u8]] = words!("path", "installed-code");
    let has_end = || ENDS.iter().any(|end| target.ends_with(end));
    let is_library = || {
        let version = memchr::memmem::rfind(target, b".so.").map(|at| &target[at + 4..]);
        version.is_some_and(|version| version.iter().all(|b| b.is_ascii_digit() || *b == b'.'))
    };
    let is_bundle = || {
        target.starts_with(b"private/")
            || target.starts_with(b"usr/lib/jvm/") && memchr::memmem::find(target, b"/bin/").is_some()
    };
    FOLDERS.iter().any(|folder| target.starts_with(folder))
        && memchr::memmem::find(target, b"cgi-bin").is_none()
        && (has_end() || is_library() || is_bundle())
}

/// The path is a setting: the field says where a file of the installation lies, and it is none with what
/// tells of users, keys of people, processes or the machine's secrets.
pub(super) fn is_own(input: &Input<'_>, target: &[u8]) -> bool {
    // Folders in which services have their settings, logs, data and certificates.
    const FOLDERS: &[&[u8]] = words!("path", "own-folders");
    const ENDS: &[&[u8]] = &[
        b".conf", b".cfg", b".cnf", b".ini", b".yml", b".yaml", b".toml", b".json", b".xml", b".crt",
        b".pem", b".cer",
    ];
    if !FOLDERS.iter().any(|folder| target.starts_with(folder)) || tells_of_users(target) {
        return false;
    }
    let ends_so = || ENDS.iter().any(|end| target.ends_with(end));
    purpose::names_own_file(input.location)
        || purpose::is_bare_path(input.location) && target.starts_with(b"etc/") && ends_so()
}

/// `etc/passwd`, `etc/ssh/ssh_host_rsa_key`, `etc/sudoers.d/x`, `var/run/secrets/..`, `opt/app/.env`
fn tells_of_users(target: &[u8]) -> bool {
    const STARTS: &[&[u8]] = words!("path", "users-and-secrets");
    const WORDS: &[&[u8]] = &[
        b"passwd",
        b"shadow",
        b"htpasswd",
        b"id_rsa",
        b"id_ed25519",
        b"id_dsa",
        b"credentials",
        b"secret",
        b"history",
        b"password",
    ];
    STARTS.iter().any(|start| target.starts_with(start))
        || target.split(|b| *b == b'/').any(|part| part.starts_with(b".") || part == b"proc")
        || WORDS.iter().any(|word| memchr::memmem::find(target, word).is_some())
}

/// `config/internal.properties`
pub(super) fn is_settings(target: &[u8]) -> bool {
    const ENDS: &[&[u8]] = &[
        b".properties",
        b".conf",
        b".cnf",
        b".htpasswd",
        b".htaccess",
        b"config.ini",
        b"config.php",
        b"config.yml",
    ];
    ENDS.iter().any(|end| target.ends_with(end))
}

/// `config.py`, `settings.yml`: what an application is set up by, as its developers name it.
pub(super) fn is_own_settings(target: &[u8]) -> bool {
    const STEMS: &[&[u8]] = &[
        b"config",
        b"configuration",
        b"settings",
        b"local_settings",
        b"secrets",
        b"secret",
        b"credentials",
        b"database",
        b"application",
        b"appsettings",
        b"parameters",
        b"environment",
    ];
    const ENDS: &[&[u8]] = words!("path", "own-settings");
    let file = &target[memchr::memrchr(b'/', target).map_or(0, |at| at + 1)..];
    let (stem, end) = match memchr::memchr(b'.', file) {
        Some(dot) => (&file[..dot], &file[dot + 1..]),
        None => (file, &b""[..]),
    };
    is_hidden_settings(file) || STEMS.contains(&stem) && ENDS.contains(&end)
}

/// A parameter or a field of a form that says which file a page is made of or hands out. Values of JSON are
/// none: editors, builders and agents name files of their projects there, with steps up.
pub(super) fn asks_for_path(location: Location<'_>) -> bool {
    const WORDS: &[&[u8]] = words!("path", "path-names");
    let name = location.name;
    let last = name.iter().rposition(|b| matches!(b, b'[' | b'.')).map_or(0, |at| at + 1);
    let mut words = name[last..].split(|b| !b.is_ascii_alphanumeric()).flat_map(words_of);
    matches!(location.place, Place::Query | Place::Form | Place::MultipartField | Place::Cookie)
        && name.len() <= PARAMETER_BYTES_MAX
        && words.any(|word| WORDS.iter().any(|known| word.eq_ignore_ascii_case(known)))
}

/// Bytes of a parameter's name that is read.
const PARAMETER_BYTES_MAX: usize = 64;

/// The words of `filePath`: each begins with a capital letter that follows a small one.
fn words_of(name: &[u8]) -> impl Iterator<Item = &[u8]> {
    name.chunk_by(|before, next| !(before.is_ascii_lowercase() && next.is_ascii_uppercase()))
}

/// `admin/list.jsp`, `conf/x.properties`, `web-inf/x`: a file that a server runs, or that an application, its
/// server or its database keeps for itself.
pub(super) fn is_run_or_setting(target: &[u8]) -> bool {
    const ENDS: &[&[u8]] = words!("path", "run-or-setting");
    ENDS.iter().any(|end| target.ends_with(end)) || is_of_archive(target)
}

/// `web-inf/web.xml`: what an archive of a Java application keeps for its server.
pub(super) fn is_of_archive(target: &[u8]) -> bool {
    target.split(|b| *b == b'/').any(|part| matches!(part, b"web-inf" | b"meta-inf"))
}

/// A file's name alone that says it holds the configuration of an application, or a user's key.
pub(super) fn is_settings_name(name: &[u8]) -> bool {
    const NAMES: &[&[u8]] = words!("path", "settings-names");
    is_hidden_settings(name) || NAMES.contains(&name) || name.ends_with(b".properties")
}

/// `wp-config.php`, `id_rsa`, `.env`: a file's name alone that tells what an attacker looks for.
pub(super) fn is_secret_name(name: &[u8]) -> bool {
    const NAMES: &[&[u8]] = words!("path", "secret-names");
    is_hidden_settings(name) || NAMES.contains(&name)
}

/// `../list.jsp`: a file that a server runs.
pub(super) fn is_script(target: &[u8]) -> bool {
    const ENDS: &[&[u8]] = &[b".php", b".phtml", b".jsp", b".jspx", b".asp", b".aspx", b".ashx", b".cgi"];
    ENDS.iter().any(|end| target.ends_with(end))
}

/// `.env`, `.env.local`, `.htpasswd`: files that a listing does not show, with what nobody is to see.
pub(super) fn is_hidden_settings(name: &[u8]) -> bool {
    const NAMES: &[&[u8]] = words!("path", "hidden-settings");
    NAMES.contains(&name) || name.starts_with(b".env.")
}

/// A file's name goes on after the first NUL of `text`: `a.php\0.jpg`. NUL at the end alone is what a client
/// of C sends along, and among other signs it is a byte of some format.
pub(super) fn continues_after_nul(text: &[u8]) -> bool {
    let raw = memchr::memchr(0, text).map(|at| (at, 1));
    let coded = memchr::memchr(b'%', text).and_then(|_| memchr::memmem::find(text, b"%00")).map(|at| (at, 3));
    let Some((at, len)) = [raw, coded].into_iter().flatten().min() else { return false };
    let mut rest = &text[at + len..];
    while let Some(more) = rest.strip_prefix(b"\0").or_else(|| rest.strip_prefix(b"%00")) {
        rest = more;
    }
    let rest = rest.trim_ascii();
    let is_name = |b: &u8| b.is_ascii_alphanumeric() || b"._-/\\: ".contains(b);
    !rest.is_empty() && rest.len() <= TAIL_BYTES_MAX && rest.iter().chain(&text[..at]).all(is_name)
}

/// A longer tail is none that a path is to lose.
const TAIL_BYTES_MAX: usize = 64;

/// A dot or separator of a request's path in overlong UTF-8, or bytes that never begin UTF-8 in front of what
/// no decoder takes: `%c0%af`, `%e0%80%ae`, `%c1%8s`. Between other bytes from 0x80 it may be half of a
/// character of another set.
pub(super) fn overlong_sign(path: &[u8]) -> Option<Span> {
    let is_high = |unit: &[u8]| matches!(unit, [b'%', b'8' | b'9' | b'a'..=b'f' | b'A'..=b'F', _, ..] | [0x80..=0xFF, ..]);
    memchr::memchr_iter(b'%', path).find_map(|at| {
        let begins = matches!(path[at..], [b'%', b'c' | b'C', b'0' | b'1', b'%', ..])
            || matches!(path[at..], [b'%', b'e' | b'E' | b'f' | b'F', b'0', b'%', b'8' | b'9', ..]);
        if !begins || at >= 3 && is_high(&path[at - 3..]) {
            return None;
        }
        let unit = unit(&path[at..]);
        let is_sign = matches!(unit.byte, b'.' | b'/' | b'\\') && unit.writing >= Writing::Odd;
        let is_none = unit.writing == Writing::Broken && unit.len > 3;
        let ends = !path.get(at + unit.len..).is_some_and(is_high);
        (ends && (is_sign || is_none)).then(|| Span::new(at, at + unit.len))
    })
}

/// A file that pages load by relative paths.
pub(super) fn is_asset(target: &[u8]) -> bool {
    const ASSETS: &[&[u8]] = words!("path", "assets");
    // `see ../../../a.html...`
    let target = target.strip_suffix(b"...").unwrap_or(target);
    ASSETS.iter().any(|end| target.ends_with(end))
}

/// `\\192.0.2.1\a\x.dll`: what a machine with a dot in its name gives to load or run. Those of an office have
/// short names.
fn is_shared_program(share: &[u8]) -> bool {
    const PROGRAMS: &[&[u8]] = words!("path", "shared-programs");
    let ends = |end: &&[u8]| {
        share.len().checked_sub(end.len()).is_some_and(|at| share[at..].eq_ignore_ascii_case(end))
    };
    let mut names = share.split(|b| matches!(b, b'\\' | b'/')).filter(|name| !name.is_empty());
    names.next().is_some_and(|host| host.contains(&b'.')) && PROGRAMS.iter().any(ends)
}

/// `\\?\\C:\\x`, `\\.\\pipe\\x`: what programs write to reach a device, or a path longer than Windows takes.
fn is_device(share: &[u8]) -> bool {
    matches!(share, [b'\\' | b'/', b'\\' | b'/', b'?' | b'.', b'\\' | b'/', _, ..])
}

/// `\\a.example\\x`: a machine that the domain or the address names.
fn is_elsewhere(share: &[u8]) -> bool {
    let mut names = share.split(|b| matches!(b, b'\\' | b'/')).filter(|name| !name.is_empty());
    names.next().is_some_and(|host| memchr::memchr(b'.', host).is_some())
}

/// `from '../../../lib/a'`, `require("../../../x")`: a module that a program loads.
pub(super) fn is_module(text: &[u8], path: Span) -> bool {
    let Some(before) =
        text[..path.start as usize].strip_suffix(b"'").or(text[..path.start as usize].strip_suffix(b"\""))
    else {
        return false;
    };
    let before = before.trim_ascii_end();
    let before = before.strip_suffix(b"(").unwrap_or(before);
    [&b"from"[..], b"import", b"require", b"export", b"mock"].iter().any(|word| before.ends_with(word))
}

/// NUL cuts the path off: the value is text but for it. The second byte of a Chinese character may fold to
/// one, and messages in a binary format are full of them.
pub(super) fn is_cut_name(input: &Input<'_>, path: &Path) -> bool {
    let is_text = || {
        let is_control = |b: &u8| b.is_ascii_control() && !matches!(b, 0 | b'\t' | b'\n' | b'\r');
        str::from_utf8(input.text).is_ok() && !input.text.iter().any(is_control)
    };
    path.is_cut
        && !input.layers.iter().any(|layer| layer == Layer::Fold)
        && (input.location.place == Place::FileName || is_text())
}
