//! What the file is that a path ends at, as its name and what stands before it tell.

use portcullis_lex::path::Path;
use portcullis_types::Span;

use super::{DEVICE, SHARE_ASKED, SHARE_PROGRAM};
use crate::{Input, KindId, Layer, Place};

/// What a share is beside one.
pub(super) fn share_kind(share: &[u8], place: Place) -> Option<KindId> {
    if is_shared_program(share) {
        Some(SHARE_PROGRAM)
    } else if is_device(share) {
        Some(DEVICE)
    } else {
        (place == Place::Query && is_elsewhere(share)).then_some(SHARE_ASKED)
    }
}

/// `/usr/local/bin`: the folder as a whole, as instructions for an installation have it.
pub(super) fn is_program_folder(target: &[u8]) -> bool {
    let target = target.strip_suffix(b"/").unwrap_or(target);
    target.starts_with(b"usr/")
        && [&b"/bin"[..], b"/sbin", b"/lib", b"/share"].iter().any(|end| target.ends_with(end))
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

/// A file that pages load by relative paths.
pub(super) fn is_asset(target: &[u8]) -> bool {
    const ASSETS: &[&[u8]] = &[
        b".png", b".jpg", b".jpeg", b".gif", b".svg", b".webp", b".ico", b".css", b".js", b".mjs", b".ts",
        b".tsx", b".jsx", b".scss", b".less", b".map", b".woff", b".woff2", b".ttf", b".mp4", b".html",
        b".md",
    ];
    // `see ../../../a.html...`
    let target = target.strip_suffix(b"...").unwrap_or(target);
    ASSETS.iter().any(|end| target.ends_with(end))
}

/// `\\192.0.2.1\a\x.dll`: what a machine with a dot in its name gives to load or run. Those of an office have short names.
fn is_shared_program(share: &[u8]) -> bool {
    const PROGRAMS: &[&[u8]] = &[
        b".dll", b".exe", b".scr", b".bat", b".cmd", b".ps1", b".vbs", b".js", b".hta", b".sct", b".cpl",
        b".msi", b".php", b".asp", b".aspx", b".jsp",
    ];
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

/// NUL cuts the path off: the value is text but for it. The second byte of a Chinese character may fold to one, and messages in a
/// binary format are full of them.
pub(super) fn is_cut_name(input: &Input<'_>, path: &Path) -> bool {
    let is_text = || {
        let is_control = |b: &u8| b.is_ascii_control() && !matches!(b, 0 | b'\t' | b'\n' | b'\r');
        str::from_utf8(input.text).is_ok() && !input.text.iter().any(is_control)
    };
    path.is_cut
        && !input.layers.iter().any(|layer| layer == Layer::Fold)
        && (input.location.place == Place::FileName || is_text())
}
