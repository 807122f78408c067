//! Path traversal and inclusion of local files.
//!
//! A path is brought to one form by [`portcullis_lex::path`] and then asked three things: how far it climbs,
//! how it was written, and what it names in the end. A step or two up to an ordinary file is everyday; three,
//! or one whose dots are encoded, or one that ends at a file of the machine, is not. A value that is a path
//! from its first byte counts in full; a path in the middle of text is loose.

pub(crate) mod bypass;
mod hints;
mod names;
mod target;
#[cfg(test)]
mod tests;
mod wrappers;

use portcullis_lex::path::{Path, Root};
use portcullis_types::Span;

use super::linked::Links;
use super::scan::find_in;
use super::{purpose, scanner};
use crate::{ByteGroups, Class, Detector, Found, Input, KindId, Layer, Place, Profile, kinds};
use bypass::{bypass, ends_in_extension};
use hints::HINTS;
use names::{Group, Names};
use target::{
    asks_for_path, continues_after_nul, is_asset, is_cut_name, is_folder_of_system, is_installed_code,
    is_module, is_of_archive, is_own, is_own_settings, is_program_folder, is_run_or_setting, is_script,
    is_secret_name, is_settings, is_settings_name, overlong_sign, share_kind,
};
use wrappers::{is_home, is_scheme, wrapper};

kinds! {
    reference "https://owasp.org/www-community/attacks/Path_Traversal";
    CLIMB_ONE "path.climb-one" Notice Quotable "a path goes one folder up";
    CLIMB_TWO "path.climb-two" Warning Quotable "a path goes two folders up";
    CLIMB "path.climb" Critical Quotable "a path goes three or more folders up";
    CLIMB_TARGET "path.climb-target" Critical Quotable
        "the path of the request goes up in plain letters: clients take such steps out before they ask (RFC 3986, 5.2.4)";
    CLIMB_ASKED "path.climb-asked" Critical Quotable
        "a parameter for a file goes up two folders, or up to a file that a server runs or is set up by";
    CLIMB_ASSET "path.climb-asset" Warning Quotable
        "a path goes some folders up to a picture, style or script of a page";
    CLIMB_FILE_NAME "path.climb-file-name" Critical Quotable
        "the name of an uploaded file goes up: browsers send no folders";
    CLIMB_ENCODED "path.climb-encoded" Critical Quotable "a path goes up, with dots or separators encoded";
    CLIMB_ODD "path.climb-odd" Critical Quotable
        "a path goes up, with dots or separators written as no client writes them";
    CLIMB_BROKEN "path.climb-broken" Error Quotable
        "a path goes up through `..` with something in it that is dropped later";
    CLIMB_RESTORED "path.climb-restored" Error Quotable
        "dots that become `..` when a filter has removed some";
    CLIMB_DOTS "path.climb-dots" Error Quotable
        "several segments of three and more dots, which old systems take for steps up";
    PADDED "path.padded" Warning Quotable
        "goes up after a name that is longer than any file's, or many single dots";
    CLIMB_BACKSLASH "path.climb-backslash" Notice Quotable "a path goes up with backslashes";
    SEPARATORS "path.separators" Warning Quotable "a path goes up or stays, with mixed or doubled separators";
    DOT_SEGMENTS "path.dot-segments" Warning Quotable "a path with several segments that are a single dot";
    TARGET_SYSTEM "path.target-system" Critical Quotable "a path goes up, into a folder of the machine";
    TARGET_NAME "path.target-name" Error Quotable "a path goes up, to a configuration, a log or keys";
    FILE "path.file" Critical Quotable "names a file with data of the machine, its users or the application";
    SYSTEM "path.system" Error Quotable "the value is a path into a folder of the machine";
    PLACE "path.place" Warning Quotable
        "the value is a path into a folder that machines have, and sites may have too";
    SYSTEM_NAME "path.system-name" Warning Quotable "the value is a path to a configuration, a log or keys";
    SEPARATOR_ODD "path.separator-odd" Critical Quotable
        "the path of the request has a separator or a dot that is written as no UTF-8 has it";
    PARAMETER_ODD "path.parameter-odd" Critical Quotable
        "a path parameter without a name, or one that is an extension, which rules of access and servers read differently";
    CLIMB_ALIAS "path.climb-alias" Critical Quotable
        "a folder's name in the request's path ends in two dots, which behind an alias of a server go up";
    DOT_ENCODED "path.dot-encoded" Critical Quotable
        "a segment of the request's path that is one dot, encoded";
    TRIMMED "path.trimmed" Critical Quotable
        "the request's path ends in a sign that some servers take away before they look at it";
    LINE_END "path.line-end" Critical Quotable "the request's path goes on behind an encoded line end";
    HOST_STEP "path.host-step" Critical Quotable
        "the path begins as an address of another host and ends with a step up: servers redirect to it";
    QUERY_PATH "path.query-path" Critical Quotable
        "the query is the path of another page, for checks that look for an open one anywhere in the target";
    NUL "path.nul" Error Quotable "a path is cut off by a NUL byte";
    WRAPPER "path.wrapper" Critical Quotable "a stream wrapper reads, unpacks or runs what it names";
    FILTERS "path.filters" Critical Quotable "names filters of PHP's streams";
    SETTINGS "path.settings" Critical Quotable
        "a parameter for a file asks for one with settings, which applications do not hand out";
    FILE_URL "path.file-url" Error Quotable "a URL of a local file";
    SHARE "path.share" Error Quotable "the value is a file on another machine (UNC)";
    DEVICE "path.device" Critical Quotable "a path past the checks of Windows: `\\\\?\\C:\\..`, `\\\\.\\..`";
    SHARE_ASKED "path.share-asked" Error Quotable
        "a parameter of a page is a file on a machine that is named by address or domain (UNC)";
    SHARE_PROGRAM "path.share-program" Critical Quotable
        "a program, library or script on a machine that is named by address or domain (UNC)";
}

/// See the module.
#[derive(Debug)]
pub struct PathTraversal {
    names: Names,
}

impl PathTraversal {
    /// The detector with its data.
    pub fn new() -> PathTraversal {
        PathTraversal { names: Names::new() }
    }
}

impl Default for PathTraversal {
    fn default() -> Self {
        PathTraversal::new()
    }
}

/// The longest name that file systems take.
const NAME_BYTES_MAX: u32 = 255;
/// Spaces that a path of Windows may have.
const SPACES_MAX: u32 = 4;
/// What looking up a path in a text counts as, and one with a pattern.
const PATH_BYTES: usize = 16;
const PATTERN_BYTES: usize = 256;

/// A longer text that begins so is prose.
const SPACED_BYTES_MAX: usize = 80;

/// A file that is no longer than this may be a field to the application.
const FIELD_BYTES_MAX: usize = 96;

static PROFILE: Profile = Profile::new(Class::Path, KINDS)
    .needs(ByteGroups::of(b"./\\%_"))
    .hints(HINTS)
    .weights(include_str!("../../../weights/path.tsv"));

impl Detector for PathTraversal {
    fn profile(&self) -> &'static Profile {
        &PROFILE
    }

    fn reads(&self, place: Place) -> bool {
        place.is_value() || place == Place::Path
    }

    fn detect(&self, input: &Input<'_>, found: &mut Found<'_>) {
        let is_file = input.location.place == Place::FileContent && input.text.len() > FIELD_BYTES_MAX;
        if input.is_json || is_file {
            return;
        }
        let text = input.text;
        if input.location.place == Place::Path
            && let Some((kind, span)) = bypass(text)
        {
            found.add(kind, span);
        } else if input.location.place == Place::Query && ends_in_extension(text) {
            found.add(PARAMETER_ODD, Span::new(0, text.len()));
        }
        let start = text.iter().position(|b| !b.is_ascii_whitespace()).unwrap_or(text.len());
        // `. /web.xml`, `.. /x`: a name of dots and spaces, of which the system takes the spaces.
        let dots = text[start..].iter().take(3).take_while(|b| **b == b'.').count();
        let is_spaced =
            matches!(text[start + dots..], [b' ', b'/' | b'\\', b'a'..=b'z' | b'A'..=b'Z' | b'.', ..]);
        if (1..=2).contains(&dots) && is_spaced && text.len() - start <= SPACED_BYTES_MAX {
            found.add(CLIMB_ODD, Span::new(start, text.len()));
        }
        if self.wrappers(input, start, found) {
            return;
        }
        let path = Path::read(text, start, ends_value);
        // Each sign may be written in many ways.
        if !found.may_read(path.span.len().saturating_sub(SHORT_BYTES)) {
            return;
        }
        let rest = path.span.end as usize;
        let is_whole = text[rest..].trim_ascii().is_empty()
            && path.spaces <= SPACES_MAX
            && path.separators > 0
            && !first_has_space(text, &path)
            && !is_prose(text, &path)
            && !(path.ups > 0 && is_in_braces(text));
        if is_whole {
            self.note(input, &path, found, false);
            if input.location.place == Place::Path {
                self.note_inner(text, found);
                if let Some(span) = overlong_sign(text) {
                    found.add(SEPARATOR_ODD, span);
                }
            }
            return;
        }
        // A name alone: `.env`, `.htpasswd`.
        if path.separators == 0 && rest == text.len() && input.location.place == Place::Query {
            let mut buffer = [0; 160];
            let len = path.target(text, &mut buffer);
            let name = &buffer[..len];
            let is_asked = match purpose::asks_for_file(input.location) {
                true => is_settings_name(name) || is_secret_name(name),
                // Whatever the parameter is called: people look for such names in searches.
                false => is_secret_name(name) && !purpose::is_search(input.location),
            };
            if is_asked {
                found.add(SETTINGS, path.span);
            }
        }
        // A file's name with NUL in it.
        if is_cut_name(input, &path)
            && path.spaces == 0
            && path.separators == 0
            && rest == text.len()
            && (continues_after_nul(text) || purpose::asks_for_file(input.location))
        {
            found.add(NUL, path.span);
            return;
        }
        let mut at = start;
        while let Some(begin) = next_token(text, at) {
            let path = Path::read(text, begin, ends_token);
            if path.separators > 0 {
                // A pattern is compared with each name.
                let is_pattern = memchr::memchr3(b'*', b'?', b'[', path.span.of(text)).is_some();
                if !found.may_read(
                    path.span.len().saturating_sub(SHORT_BYTES)
                        + if is_pattern { PATTERN_BYTES } else { PATH_BYTES },
                ) {
                    return;
                }
                self.note(input, &path, found, true);
            }
            at = path.span.end as usize + 1;
        }
    }
}

/// A path that is no longer costs no more than to look for it.
const SHORT_BYTES: usize = 8;

impl PathTraversal {
    /// `/page//etc/init.d/x`, `/page/C:%5Cboot`: a path of the machine as a part of the request's path.
    fn note_inner(&self, text: &[u8], found: &mut Found<'_>) {
        let Some((start, is_file)) = inner(text) else { return };
        let path = Path::read(text, start, ends_value);
        let mut buffer = [0; 160];
        let len = path.target(text, &mut buffer);
        let target = &buffer[..len];
        let is_place = is_file && self.names.is_place(target);
        if path.root.is_absolute()
            && path.ups == 0
            && path.names().len() > 1
            && !is_asset(target)
            && (self.names.is_system(target) || is_place)
        {
            found.add(SYSTEM, path.span);
        }
    }

    fn note(&self, input: &Input<'_>, path: &Path, found: &mut Found<'_>, is_mention: bool) {
        let text = input.text;
        // In a document of settings or a title a path is named; one that climbs reaches a file whatever
        // stands before it.
        let place = input.location.place;
        let is_live = path.ups > 0
            && place != Place::FileContent
            && !place.is_response()
            && !purpose::takes_text(input.location)
            && !purpose::lists_words(input.location);
        let mentions = is_mention && !is_live;
        let mut add = |kind: KindId| match mentions {
            true => found.mention(kind, path.span),
            false => found.add(kind, path.span),
        };
        let mut buffer = [0; 160];
        let len = path.target(text, &mut buffer);
        let target = &buffer[..len];
        let file = self.names.file(target);
        let is_settings = || is_settings(target) || path.root.is_absolute() && is_own_settings(target);
        if path.ups == 0 && !is_mention && purpose::asks_for_file(input.location) && is_settings() {
            add(SETTINGS);
        }
        let is_request_path = matches!(place, Place::Path | Place::PathSegment);
        let ups = path.ups;
        if ups > 0 {
            self.climb(input, path, target, is_mention, &mut add);
        }
        if path.dot_runs > 1 || path.dot_runs == 1 && (path.is_doubled || file.is_some()) {
            add(CLIMB_RESTORED);
        }
        if path.dot_runs > 1 {
            add(CLIMB_DOTS);
        }
        if ups > 0 && (path.dots > 16 || path.longest_name > NAME_BYTES_MAX) {
            add(PADDED);
        }
        if path.dots > 2 {
            add(DOT_SEGMENTS);
        }
        // A pattern escapes slashes and dots.
        let is_pattern = purpose::takes_pattern(input.location) || input.document.is_file;
        let is_separated = (path.is_mixed || path.is_doubled) && ups + path.dots > 0;
        if is_separated && !is_pattern {
            add(SEPARATORS);
        }
        let is_setting = ups == 0 && path.root.is_absolute() && path.dot_runs == 0 && is_own(input, target);
        let opens = |mut add: &mut dyn FnMut(KindId)| {
            if file == Some(Group::File) {
                add(FILE);
            } else if ups == 0 && path.root.is_absolute() && !is_request_path {
                self.absolute(input, path, target, is_mention, &mut add);
            }
        };
        let is_of_project =
            place == Place::Path && ups == 0 && path.dot_runs == 0 && scanner::is_repository(text);
        if !is_setting && !is_of_project {
            opens(&mut add);
        }
        let is_telling = ups > 0 || file.is_some() || continues_after_nul(path.span.of(text));
        if is_cut_name(input, path) && is_telling {
            add(NUL);
        }
        if path.root == Root::Share && !is_mention && path.names().len() >= 2 && path.spaces == 0 {
            add(SHARE);
            if let Some(kind) = share_kind(path.span.of(text), input.location.place) {
                add(kind);
            }
        }
        if is_separated && is_pattern {
            found.suppress(SEPARATORS, path.span, "pattern");
        }
        // Where a file or a folder of the installation lies.
        if is_setting {
            opens(&mut |kind| found.suppress(kind, path.span, "own-file"));
        }
        if is_of_project {
            opens(&mut |kind| found.suppress(kind, path.span, "project-file"));
        }
        if ups == 0 && file != Some(Group::File) && self.is_in_own_folder(input, path, target) {
            found.suppress(SYSTEM, path.span, "own-folder");
        }
    }

    /// The path leads into a folder of the machine, and the field says where the installation has one.
    fn is_in_own_folder(&self, input: &Input<'_>, path: &Path, target: &[u8]) -> bool {
        path.root.is_absolute()
            && path.root != Root::Share
            && path.names().len() > 1
            && purpose::names_own_folder(input.location)
            && self.names.is_system(target)
    }

    /// A path that goes up.
    fn climb(
        &self,
        input: &Input<'_>,
        path: &Path,
        target: &[u8],
        is_mention: bool,
        add: &mut impl FnMut(KindId),
    ) {
        let (text, ups) = (input.text, path.ups);
        // Dots that another layer made were written oddly, but text with odd quotes is not part of it.
        let is_folded = input.layers.iter().any(|layer| layer == Layer::Fold)
            && path.spaces == 0
            && !(is_mention && ups < 3);
        if path.ups_odd > 0 || is_folded {
            add(CLIMB_ODD);
        } else if path.ups_encoded > 0 {
            add(CLIMB_ENCODED);
        }
        if path.ups_broken > 0 {
            add(CLIMB_BROKEN);
        }
        match ups {
            1 => add(CLIMB_ONE),
            2 => add(CLIMB_TWO),
            3..=8
                if (is_asset(target) || is_mention && is_module(text, path.span))
                    && path.ups_encoded + path.ups_broken == 0 =>
            {
                add(CLIMB_ASSET)
            }
            _ => add(CLIMB),
        }
        let is_page_asset = is_asset(target) && ups < 3;
        if input.location.place == Place::Path && !is_page_asset && !returns(path.span.of(text)) {
            add(CLIMB_TARGET);
        }
        // `report=../x.jsp`: a parameter that is for no address of a page, and a script above it.
        let is_script_asked = || {
            let location = input.location;
            let leads = purpose::leads_elsewhere(location) || purpose::leads_back(location);
            is_script(target) && location.place == Place::Query && !leads && !purpose::is_search(location)
        };
        // `/../x.jsp`: up from the root, to where a server runs it.
        let is_above_root = || {
            let begins = text.trim_ascii();
            is_script(target)
                && input.location.place.is_value()
                && [&b"/../"[..], b"\\..\\", b"/..\\", b"\\../"].iter().any(|start| begins.starts_with(start))
        };
        // `path=../`: nothing but the folder above.
        let is_bare = || text.trim_ascii().iter().all(|b| matches!(b, b'.' | b'/' | b'\\'));
        let is_asked = || {
            !is_page_asset
                && (ups > 1 || is_bare() || is_run_or_setting(target))
                && asks_for_path(input.location)
        };
        if !is_mention && (is_asked() || is_script_asked() || is_above_root()) {
            add(CLIMB_ASKED);
        }
        let name = input.location.name;
        let ends_so = |end: &[u8]| {
            name.len().checked_sub(end.len()).is_some_and(|at| name[at..].eq_ignore_ascii_case(end))
        };
        // A page that tells the name of a picture beside it is none that uploads.
        let is_page_file = ups == 1 && input.location.place != Place::FileName && is_asset(target);
        if input.location.place == Place::FileName
            || (ends_so(b"filename") || ends_so(b"file_name")) && !is_page_file
        {
            add(CLIMB_FILE_NAME);
        }
        if memchr::memchr(b'\\', path.span.of(text)).is_some() {
            add(CLIMB_BACKSLASH);
        }
        if path.climb > 0 && (self.names.is_system(target) || ups > 1 && self.names.is_place(target)) {
            add(TARGET_SYSTEM);
        } else if self.names.file(target) == Some(Group::Name) || is_of_archive(target) {
            add(TARGET_NAME);
        }
    }

    /// A path from the root of the machine.
    fn absolute(
        &self,
        input: &Input<'_>,
        path: &Path,
        target: &[u8],
        is_mention: bool,
        add: &mut impl FnMut(KindId),
    ) {
        let (text, place) = (input.text, input.location.place);
        let is_system = path.root != Root::Share && path.names().len() > 1 && self.names.is_system(target);
        // A text names folders of the machine: one that stands after other text opens none of them.
        let is_parted = || {
            let before = &text[..path.span.start as usize];
            before.last().is_some_and(u8::is_ascii_whitespace) && !before.trim_ascii().is_empty()
        };
        let is_field = matches!(place, Place::Query | Place::Form | Place::MultipartField);
        let is_named = is_mention && (!is_field || is_parted());
        // Programs report where their code lies; a page's parameter asks for a file.
        let is_code = || place == Place::Json && is_installed_code(target);
        if is_system && purpose::names_own_folder(input.location) {
            // Where a folder of the installation lies.
        } else if is_system && (is_named || is_program_folder(target) || is_code()) {
            add(PLACE);
        } else if is_system {
            add(SYSTEM);
        } else if !is_mention && is_folder_of_system(target) && asks_for_path(input.location) {
            // `dir=/etc/`: a listing of it.
            add(SYSTEM);
        } else if path.root != Root::Share && self.names.is_place(target) {
            add(PLACE);
        }
        if self.names.file(target) == Some(Group::Name) {
            add(SYSTEM_NAME);
        }
    }

    /// Stream wrappers, at the beginning or anywhere. True if the value is one from its beginning: it needs
    /// no second look.
    fn wrappers(&self, input: &Input<'_>, start: usize, found: &mut Found<'_>) -> bool {
        let text = input.text;
        let mut is_whole = false;
        let mut links = Links::new(text);
        for colon in memchr::memchr_iter(b':', text) {
            let name = text[..colon].iter().rev().take(20).take_while(|b| is_scheme(**b)).count();
            let (begin, rest) = (colon - name, &text[colon + 1..]);
            let Some(kind) = wrapper(&text[begin..colon], rest) else { continue };
            let end = rest.iter().position(|&b| ends_token(b)).unwrap_or(rest.len());
            let span = Span::new(begin, colon + 1 + end);
            // A page that was saved and opened says so.
            let is_document = kind == FILE_URL && is_home(rest);
            let names_file = |ends| {
                let path = Path::read(text, colon + 1, ends);
                let mut buffer = [0; 160];
                let len = path.target(text, &mut buffer);
                self.names.file(&buffer[..len]).is_some() || self.names.is_system(&buffer[..len])
            };
            // What an editor has open.
            if kind == FILE_URL
                && begin == start
                && purpose::names_edited_file(input.location)
                && wrappers::is_of_project(rest)
                && !names_file(ends_value)
            {
                found.suppress(kind, span, "edited-file");
                return true;
            }
            if begin != start || is_document {
                // After other text a URL opens nothing but the file that it names.
                let is_own = is_document && wrappers::is_of_author(&text[..begin], rest);
                // Who makes a document of the text loads the file.
                let mut is_loaded = || links.is_loaded(begin) && !links.is_shown(begin);
                if kind == FILE_URL && !is_own && names_file(ends_token) && is_loaded() {
                    found.add(FILE, span);
                } else if !is_own && (kind != FILE_URL || is_document || names_file(ends_token)) {
                    found.mention(kind, span);
                }
                continue;
            }
            is_whole = true;
            // What the wrapper is for: the path after it.
            let path = Path::read(text, colon + 1, ends_value);
            let mut buffer = [0; 160];
            let len = path.target(text, &mut buffer);
            let file = self.names.file(&buffer[..len]);
            let words = rest[end..].split(|b| *b == b' ').filter(|word| !word.is_empty());
            let is_said = kind == FILE_URL
                && words.clone().count() >= 2
                && words.clone().all(|word| word.iter().all(u8::is_ascii_alphabetic));
            match is_said {
                true => found.mention(kind, span),
                false => found.add(kind, span),
            }
            if file == Some(Group::File) {
                found.add(FILE, path.span);
            } else if self.names.is_system(&buffer[..len]) {
                found.add(SYSTEM, path.span);
            }
        }
        if let Some(at) =
            memchr::memmem::find(text, b"convert.iconv.").or(memchr::memmem::find(text, b"convert.base64-"))
        {
            let span = Span::new(at, text.len());
            match at == start || is_whole {
                true => found.add(FILTERS, span),
                false => found.mention(FILTERS, span),
            }
        }
        is_whole
    }
}

/// `/wiki/../wiki/x`: the only step up leads back to the folder that it left.
fn returns(path: &[u8]) -> bool {
    let mut ups = memchr::memmem::find_iter(path, b"/../");
    let Some(at) = ups.next().filter(|_| ups.next().is_none()) else { return false };
    let left = &path[memchr::memrchr(b'/', &path[..at]).map_or(0, |slash| slash + 1)..at];
    let rest = &path[at + 4..];
    !left.is_empty() && rest.strip_prefix(left).is_some_and(|rest| rest.starts_with(b"/"))
}

/// Where a path begins anew, and whether the letter of a drive or an equals sign stands before it: at a
/// second separator in a row, or after the colon of a drive.
fn inner(path: &[u8]) -> Option<(usize, bool)> {
    let has = |at: usize, sign: &[u8]| {
        path.get(at..at + sign.len()).is_some_and(|part| part.eq_ignore_ascii_case(sign))
    };
    let is_separator = |at: usize| has(at, b"/") || has(at, b"\\") || has(at, b"%2f") || has(at, b"%5c");
    memchr::memchr2_iter(b'/', b'=', path).map(|at| at + 1).find_map(|at| {
        if is_separator(at) {
            // `/file=/tmp/x`: a value, which is no page.
            return Some((at, path[at - 1] == b'='));
        }
        let colon = if has(at + 1, b":") { at + 2 } else { at + 4 };
        let is_drive = path.get(at).is_some_and(u8::is_ascii_alphabetic)
            && (has(at + 1, b":") || has(at + 1, b"%3a"))
            && is_separator(colon);
        is_drive.then_some((colon, true))
    })
}

/// `/etc/ is a directory`, `/etc/hosts file`: words after a path of a system whose names have no spaces.
fn is_prose(text: &[u8], path: &Path) -> bool {
    let bytes = path.span.of(text);
    let Some(space) = memchr::memchr(b' ', bytes).filter(|_| path.root == Root::Slash && path.ups == 0)
    else {
        return false;
    };
    let is_word = |word: &[u8]| word.iter().all(|b| b.is_ascii_alphabetic() || b"',.?!".contains(b));
    bytes[..space].ends_with(b"/") && path.spaces > 1 || bytes[space + 1..].split(|&b| b == b' ').all(is_word)
}

/// Where the next token from `at` on begins that may be a path: something in it separates, or is an escape of
/// what does.
fn next_token(text: &[u8], at: usize) -> Option<usize> {
    const SIGNS: [bool; 256] = {
        let mut table = [false; 256];
        let mut b = 0;
        while b < 256 {
            // `0x2f`, and characters that look like a separator.
            table[b] = matches!(b as u8, b'/' | b'\\' | b'%' | b'.' | b'x' | b'X' | 0x80..);
            b += 1;
        }
        table
    };
    let sign = at + find_in(text.get(at..)?, &SIGNS)?;
    let before = text[at..sign].iter().rposition(|&b| ends_token(b));
    Some(before.map_or(at, |last| at + last + 1))
}

fn first_has_space(text: &[u8], path: &Path) -> bool {
    let bytes = path.span.of(text);
    let first = &bytes[..memchr::memchr3(b'/', b'\\', b'%', bytes).unwrap_or(bytes.len())];
    memchr::memchr(b' ', first).is_some()
}

/// `\input{../a.tex}`: the path stands between the braces; no file has a name in which one ends a word.
fn is_in_braces(text: &[u8]) -> bool {
    let is_before = |open: usize| memchr::memmem::find(text, b"..").is_none_or(|climbs| open < climbs);
    memchr::memrchr(b'{', text)
        .filter(|open| is_before(*open))
        .and_then(|open| memchr::memchr(b'}', &text[open..]).map(|close| open + close))
        .is_some_and(|close| text.get(close + 1).is_none_or(u8::is_ascii_whitespace))
}

/// Bytes that are in no path, where the whole value is one.
fn ends_value(b: u8) -> bool {
    matches!(b, b'\n' | b'\r' | b'<' | b'>')
}

/// Bytes that end a path in the middle of text.
fn ends_token(b: u8) -> bool {
    matches!(
        b,
        b'\t'
            | b'\n'
            | b'\r'
            | b' '
            | b'<'
            | b'>'
            | b'"'
            | b'\''
            | b'|'
            | b'('
            | b')'
            | b','
            | b'='
            | b'&'
            | b'`'
            | b':'
            | b'{'
            | b'}'
    )
}
