//! Beginnings of code that no expression shows: tags, and property paths as parameters' names.

use memchr::memmem;
use portcullis_types::Span;

use super::{
    BACKDOOR, BACKTICK, CLASS_PATH, CONCATENATED, ENDLESS, EXECUTE, FILE, FILE_ARGUMENT, IMPORT, INPUT,
    LOOKUP, MODULE, NODE, OGNL, PHP_BLOCK, PHP_TAG, PROBE, RENDER_ARRAY, SCRIPT_TAG, SHELL_ARGUMENT,
    TEXT_CALL, WHOLE,
};
use crate::Place;
use crate::detectors::quotation::Quotation;
use crate::detectors::{command, purpose};
use crate::{Class, Found, Input};

/// With `is_source`, the text is a source of PHP that runs nothing a request gives it.
pub(super) fn detect(shell: &command::Names, input: &Input<'_>, is_source: bool, found: &mut Found<'_>) {
    let text = input.text;
    let (takes_code, takes_text) =
        (purpose::takes_code(input.location), purpose::may_mention(Class::Code, input.location));
    let mut quotation = Quotation::new(text);
    if input.groups.has(b'<') {
        for at in memchr::memchr_iter(b'<', text) {
            let rest = &text[at + 1..];
            let kind = match rest {
                [b'?', rest @ ..] if is_php(rest) => PHP_TAG,
                [b'%', b'@', rest @ ..] if is_directive(rest) => SCRIPT_TAG,
                _ if starts(rest, b"script language=\"php\"")
                    || starts(rest, b"script language='php'")
                    || starts(rest, b"script language=php") =>
                {
                    PHP_TAG
                }
                _ if starts(rest, b"jsp:scriptlet")
                    || starts(rest, b"jsp:expression")
                    || starts(rest, b"cfexecute") =>
                {
                    SCRIPT_TAG
                }
                _ if starts(rest, b"script runat=")
                    || starts(rest, b"script language=")
                        && memmem::find(&rest[..rest.len().min(80)], b"runat=").is_some() =>
                {
                    SCRIPT_TAG
                }
                _ => continue,
            };
            let span = Span::new(at, text.len().min(at + 24));
            // Documents and posts show how PHP begins: in a quotation, behind a word.
            let is_shown = kind == PHP_TAG
                && (takes_code
                    || is_source
                    || takes_text
                        && (quotation.holds(at)
                            || matches!(text[..at], [.., before, b' '] if before.is_ascii_alphabetic())));
            let mut add = |kind, is_mention: bool| match is_mention {
                true => found.mention(kind, span),
                false => found.add(kind, span),
            };
            add(kind, is_shown);
            if kind != PHP_TAG {
                continue;
            }
            let block = &rest[..rest.len().min(BLOCK_BYTES_MAX)];
            if memmem::find(block, b"?>").is_some() || memchr::memchr(b';', block).is_some() {
                // A file or a field for texts may hold a source that reaches nothing.
                add(PHP_BLOCK, is_shown || takes_text && is_plain_source(text));
            }
            // `<?=`...`` runs what stands in back-ticks, whatever that is made of.
            if rest.iter().take(12).any(|b| *b == b'`') {
                add(BACKTICK, is_shown);
            }
        }
    }
    // The name of a parameter may be the attack: `class.module.classLoader.resources...`.
    if input.groups.has(b'.')
        && let Some(at) = memmem::find(text, b"lass.module.classLoader")
            .or_else(|| memmem::find(text, b"lass.classLoader."))
    {
        found.add(CLASS_PATH, Span::new(at, text.len().min(at + 60)));
    }
    if input.groups.has(b'#') {
        render_array(input, found);
        // `(#context["xwork.MethodAccessor.denyMethodExecution"]=false)`
        if let Some(at) = memmem::find(text, b"#context[") {
            found.add(OGNL, Span::new(at, at + 9));
        }
    }
    if input.groups.has(b'*') {
        for at in memmem::find_iter(text, b"echo ").chain(memmem::find_iter(text, b"print ")) {
            if is_product(&text[at..]) {
                found.add(PROBE, Span::new(at, text.len().min(at + 24)));
            }
        }
    }
    if input.groups.has(b'(') {
        annotations(input, takes_code, found);
        if concatenated(text) {
            found.add(CONCATENATED, Span::new(0, text.len()));
        }
        if calls_itself(text) {
            let span = Span::new(0, text.len().min(60));
            for kind in [NODE, WHOLE] {
                if takes_code { found.mention(kind, span) } else { found.add(kind, span) }
            }
        }
    }
    for at in memmem::find_iter(text, b"://").take(64) {
        if let Some(start) = includes(&text[..at]) {
            let span = Span::new(start, at + 3);
            let is_shown = takes_code || takes_text && quotation.holds(at);
            for kind in [FILE, FILE_ARGUMENT] {
                if is_shown { found.mention(kind, span) } else { found.add(kind, span) }
            }
        }
    }
    if input.groups.has(b'(') {
        for at in memmem::find_iter(text, b"require(") {
            if uses_module(&text[at + 8..]) {
                let span = Span::new(at, text.len().min(at + 40));
                let is_shown =
                    takes_code || takes_text && (is_followed_by_word(&text[at..]) || quotation.holds(at));
                if is_shown { found.mention(MODULE, span) } else { found.add(MODULE, span) }
            }
        }
        for at in memmem::find_iter(text, b"{${") {
            if let Some(len) = interpolated_call(&text[at + 3..]) {
                found.add(TEXT_CALL, Span::new(at, at + 3 + len));
            }
        }
        for at in memmem::find_iter(text, b"while(").chain(memmem::find_iter(text, b"for(;;)")) {
            if is_endless(&text[at..]) {
                found.add(ENDLESS, Span::new(at, text.len().min(at + 12)));
            }
        }
    }
    if input.groups.has(b'{') && input.groups.has(b':') {
        lookups(text, found);
    }
    quoted_commands(shell, text, found);
    if input.location.place == Place::Header && text.starts_with(b"zerodium") {
        found.add(BACKDOOR, Span::new(0, text.len().min(60)));
    }
    // A request parameter of ASP in code: `eval(request("x"))`, `Execute Request("x")`.
    if !has_request(text) {
        return;
    }
    for call in [&b"(request("[..], b"(request[", b"(request.item[", b" request(\"", b"request.form("] {
        let Some(at) = find_any_case(text, call) else { continue };
        let before = text[..at].trim_ascii_end();
        let is_code =
            [&b"eval"[..], b"execute", b"executeglobal"].iter().any(|name| ends_any_case(before, name));
        if is_code {
            found.add(INPUT, Span::new(at, at + call.len()));
            found.add(super::NESTED, Span::new(at, at + call.len()));
            found.add(super::EVAL, Span::new(at, at + call.len()));
        }
    }
}

/// `@Grab('group:module:1')`, `@GrabResolver(name='x', root='http://..')`: Groovy loads a package while it
/// compiles.
fn annotations(input: &Input<'_>, takes_code: bool, found: &mut Found<'_>) {
    const NAMES: &[&[u8]] = &[b"Grab(", b"Grapes(", b"GrabResolver(", b"GrabConfig(", b"ASTTest("];
    let text = input.text;
    for at in memchr::memchr_iter(b'@', text).take(32) {
        let rest = &text[at + 1..];
        let rest =
            rest.strip_prefix(b"groovy.lang.").or(rest.strip_prefix(b"groovy.transform.")).unwrap_or(rest);
        let Some(name) = NAMES.iter().find(|name| rest.starts_with(name)) else { continue };
        let argument = rest[name.len()..].trim_ascii_start();
        let word = argument.iter().take(32).take_while(|b| b.is_ascii_alphanumeric()).count();
        let is_named = word > 0 && argument[word..].trim_ascii_start().starts_with(b"=");
        if is_named || matches!(argument.first(), Some(b'\'' | b'"' | b'@' | b'[')) {
            let span = Span::new(at, text.len().min(at + 24));
            if takes_code { found.mention(IMPORT, span) } else { found.add(IMPORT, span) }
        }
    }
}

/// `'.print(1).'`, `".system('id')."`: between the quotes and the dots that join texts a call is all there
/// is.
fn concatenated(text: &[u8]) -> bool {
    let text = text.trim_ascii();
    let Some((quote @ (b'\'' | b'"'), inner)) = text.split_first() else { return false };
    let inner = inner.trim_ascii_start().strip_prefix(b".").map(<[u8]>::trim_ascii);
    let inner = inner.and_then(|inner| inner.strip_suffix(&[*quote])).map(<[u8]>::trim_ascii);
    let Some(call) = inner.and_then(|inner| inner.strip_suffix(b".")).map(<[u8]>::trim_ascii) else {
        return false;
    };
    let name = call.iter().take(40).take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count();
    call.len() <= BLOCK_BYTES_MAX && name > 1 && call.get(name) == Some(&b'(') && call.ends_with(b")")
}

/// `(function(){ .. process .. })()`: a function that is called at once is all of the value, and reaches what
/// Node keeps.
fn calls_itself(text: &[u8]) -> bool {
    let text = text.trim_ascii();
    let text = text.strip_suffix(b";").unwrap_or(text);
    let begins = [&b"(function("[..], b"(function ", b"(()=>", b"(() =>", b"(async"]
        .iter()
        .any(|start| text.starts_with(start));
    let ends = [&b"})()"[..], b"}())", b")()"].iter().any(|end| text.ends_with(end));
    let reaches = || {
        [&b"process."[..], b"require(", b"global.", b"globalThis"]
            .iter()
            .any(|name| memmem::find(text, name).is_some())
    };
    begins && ends && text.len() <= BLOCK_BYTES_MAX && reaches()
}

/// `include 'http`, `require_once("php`: where the statement begins that loads the address whose scheme ends
/// `before`.
fn includes(before: &[u8]) -> Option<usize> {
    const SCHEMES: &[&[u8]] =
        &[b"http", b"https", b"ftp", b"php", b"data", b"phar", b"expect", b"zip", b"file"];
    let scheme = before.iter().rev().take(8).take_while(|b| b.is_ascii_alphabetic()).count();
    let (rest, scheme) = before.split_at(before.len() - scheme);
    if !SCHEMES.iter().any(|known| scheme.eq_ignore_ascii_case(known)) {
        return None;
    }
    let rest = rest.strip_suffix(b"'").or(rest.strip_suffix(b"\""))?.trim_ascii_end();
    let rest = rest.strip_suffix(b"(").unwrap_or(rest).trim_ascii_end();
    let rest = rest.strip_suffix(b"_once").unwrap_or(rest);
    let start = [&b"include"[..], b"require"].iter().find_map(|word| rest.strip_suffix(*word))?;
    // A statement begins there: a sentence has a word before it (`prices include 'http://..'`), other
    // languages a sign of theirs.
    let before = start.trim_ascii_end();
    let is_word = before.last().is_none_or(|b| b";{}()?'\"@".contains(b)) || before.ends_with(b"php");
    is_word.then_some(start.len())
}

/// A source of PHP of several lines that takes nothing of the request, runs nothing that it is given, and
/// reads and writes no files: a class, a configuration, a template.
fn is_plain_source(text: &[u8]) -> bool {
    const LINES_MIN: usize = 4;
    const REACHES: &[&[u8]] = &[
        b"$_",
        b"`",
        b"php://",
        b"$$",
        b"eval",
        b"assert",
        b"exec",
        b"system",
        b"passthru",
        b"popen",
        b"proc_",
        b"pcntl",
        b"call_user",
        b"create_function",
        b"base64_decode",
        b"str_rot13",
        b"gzinflate",
        b"gzuncompress",
        b"hex2bin",
        b"chr(",
        b"pack(",
        b"preg_replace",
        b"array_map",
        b"usort",
        b"phpinfo",
        b"getenv",
        b"fopen",
        b"file_",
        b"readfile",
        b"curl_",
        b"fsockopen",
        b"socket_",
        b"unlink",
        b"move_uploaded",
        b"getallheaders",
        b"apache_request",
        b"include",
        b"require",
        b"dl(",
        b"mail(",
        b"goto",
        b"extract(",
        b"parse_str",
        b"unserialize",
        b"reflection",
        b"ffi",
    ];
    let starts = text.trim_ascii_start().starts_with(b"<?php");
    let is_long = memchr::memchr_iter(b'\n', text).take(LINES_MIN).count() == LINES_MIN;
    if !starts || !is_long {
        return false;
    }
    let lower = text.to_ascii_lowercase();
    // A name that is put together is called by a variable: `$f('x')`.
    let calls_variable = memchr::memchr_iter(b'$', &lower).any(|at| {
        let rest = &lower[at + 1..];
        let len = rest
            .iter()
            .take(64)
            .take_while(|b| b.is_ascii_alphanumeric() || **b == b'_' || **b >= 0x80)
            .count();
        rest[len..].trim_ascii_start().starts_with(b"(")
    });
    // `("sys"."tem")('x')`, `[$a, 'b']()`
    let calls_value = memmem::find(&lower, b")(").is_some() || memmem::find(&lower, b"](").is_some();
    !calls_variable && !calls_value && !REACHES.iter().any(|name| memmem::find(&lower, name).is_some())
}

/// `page import="..."`, ` WebHandler Language="C#"`: what JSP and ASP.NET know behind `<%@`.
fn is_directive(rest: &[u8]) -> bool {
    const NAMES: &[&[u8]] = &[
        b"page",
        b"include",
        b"taglib",
        b"tag",
        b"attribute",
        b"variable",
        b"language",
        b"import",
        b"control",
        b"master",
        b"assembly",
        b"register",
        b"reference",
        b"webservice",
        b"webhandler",
        b"servicehost",
        b"outputcache",
        b"implements",
        b"application",
        b"codepage",
        b"lcid",
        b"enablesessionstate",
        b"transaction",
    ];
    let rest = rest.trim_ascii_start();
    let len = rest.iter().take(24).take_while(|b| b.is_ascii_alphabetic()).count();
    NAMES.iter().any(|known| rest[..len].eq_ignore_ascii_case(known))
        && rest.get(len).is_none_or(|b| b.is_ascii_whitespace() || matches!(b, b'=' | b'%'))
}

/// `require('fs').readdirSync('.')`: a module of Node that reaches files, other machines or the system, and
/// at once a call of it, is all of the value.
fn uses_module(inner: &[u8]) -> bool {
    const MODULES: &[&[u8]] = &[
        b"fs",
        b"net",
        b"os",
        b"vm",
        b"http",
        b"https",
        b"dgram",
        b"tls",
        b"dns",
        b"cluster",
        b"worker_threads",
    ];
    let [b'\'' | b'"' | b'`', inner @ ..] = inner else { return false };
    let name = inner.strip_prefix(b"node:").unwrap_or(inner);
    let len = name.iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count();
    let rest = &name[len..];
    let called = match rest {
        [b'\'' | b'"' | b'`', b')', b'.', member @ ..] => member,
        _ => return false,
    };
    let member = called.iter().take(32).take_while(|b| b.is_ascii_alphanumeric()).count();
    MODULES.contains(&&name[..len])
        && called.first().is_some_and(u8::is_ascii_alphabetic)
        && called.get(member) == Some(&b'(')
}

/// Behind the call that begins `text` a sentence goes on.
fn is_followed_by_word(text: &[u8]) -> bool {
    let line = &text[..text.len().min(80)];
    memchr::memrchr(b')', line)
        .is_some_and(|end| matches!(line[end + 1..], [b' ', letter, ..] if letter.is_ascii_alphabetic()))
}

/// `{${system(id)}}`: PHP calls what stands so in a text. The length of what stands behind `{${`.
fn interpolated_call(text: &[u8]) -> Option<usize> {
    let at = usize::from(text.first() == Some(&b'@'));
    let name = text[at..].iter().take(40).take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count();
    if name < 2 || text.get(at + name) != Some(&b'(') {
        return None;
    }
    let end = memmem::find(&text[..text.len().min(BLOCK_BYTES_MAX)], b")}}")?;
    Some(end + 3)
}

/// How far a block or call is looked through for its end.
const BLOCK_BYTES_MAX: usize = 400;

/// `while(1){}`, `for(;;);//`: so that a server hangs where code is run. Nothing stands in it.
fn is_endless(text: &[u8]) -> bool {
    const LOOPS: &[&[u8]] = &[b"while(1)", b"while(true)", b"while(!0)", b"for(;;)"];
    let Some(rest) = LOOPS.iter().find_map(|head| text.strip_prefix(*head)) else { return false };
    match rest.trim_ascii_start() {
        [b';', ..] => true,
        [b'{', rest @ ..] => {
            let body = rest.iter().take(16).take_while(|b| b.is_ascii_whitespace() || **b == b';').count();
            rest.get(body) == Some(&b'}')
        }
        _ => false,
    }
}

/// `echo 98989*443131;`, `print 7777*8888//`: numbers that nobody multiplies, and the sign that ends a
/// statement.
fn is_product(text: &[u8]) -> bool {
    let Some(rest) =
        [&b"echo "[..], b"print "].iter().find(|word| starts(text, word)).map(|word| &text[word.len()..])
    else {
        return false;
    };
    let number = |text: &[u8]| text.iter().take_while(|b| b.is_ascii_digit()).count();
    let first = number(rest);
    let Some(rest) = rest[first..].trim_ascii_start().strip_prefix(b"*") else { return false };
    let rest = rest.trim_ascii_start();
    let second = number(rest);
    let rest = rest[second..].trim_ascii_start();
    first > 3 && second > 3 && (rest.first() == Some(&b';') || rest.starts_with(b"//"))
}

/// `{"#post_render":["exec"]}`: such a property is a key of JSON in a value.
pub(super) fn render_keys(input: &Input<'_>, found: &mut Found<'_>) {
    const PROPERTIES: &[&[u8]] = &[
        b"post_render",
        b"pre_render",
        b"lazy_builder",
        b"access_callback",
        b"value_callback",
        b"after_build",
    ];
    for at in memchr::memmem::find_iter(input.text, b"\"#") {
        let name = &input.text[at + 2..];
        let name = &name[..name.iter().take(24).position(|b| *b == b'"').unwrap_or(0)];
        if PROPERTIES.contains(&name)
            && input.text[at + 3 + name.len()..].trim_ascii_start().starts_with(b":")
        {
            found.add(RENDER_ARRAY, Span::new(at + 1, at + 2 + name.len()));
        }
    }
}

/// `a[#post_render][]`: the name of a parameter, or a path of keys in JSON.
fn render_array(input: &Input<'_>, found: &mut Found<'_>) {
    const PROPERTIES: &[&[u8]] = &[
        b"post_render",
        b"pre_render",
        b"lazy_builder",
        b"access_callback",
        b"value_callback",
        b"after_build",
        b"process",
        b"submit",
        b"validate",
        b"element_validate",
        b"markup",
    ];
    if input.location.place != Place::Name {
        return;
    }
    for at in memchr::memchr_iter(b'#', input.text) {
        let begins = at.checked_sub(1).is_none_or(|before| matches!(input.text[before], b'[' | b'.' | b'/'));
        let name = &input.text[at + 1..];
        let end = name.iter().position(|b| !b.is_ascii_lowercase() && *b != b'_').unwrap_or(name.len());
        if begins && PROPERTIES.contains(&&name[..end]) {
            found.add(RENDER_ARRAY, Span::new(at, at + 1 + end));
        }
    }
}

/// `${script:javascript:...}`, `${dns:address|host}`, `${url:UTF-8:http://...}`
fn lookups(text: &[u8], found: &mut Found<'_>) {
    for at in memmem::find_iter(text, b"${") {
        let rest = &text[at + 2..];
        let inner =
            &rest[..memchr::memchr(b'}', &rest[..rest.len().min(400)]).unwrap_or(rest.len().min(400))];
        let is_one = starts(inner, b"script:") && inner[7..].contains(&b':')
            || starts(inner, b"dns:") && inner.contains(&b'|')
            || starts(inner, b"url:") && memmem::find(inner, b"://").is_some()
            || [
                &b"base64Decoder:"[..],
                b"base64Encoder:",
                b"urlDecoder:",
                b"urlEncoder:",
                b"resourceBundle:",
            ]
            .iter()
            .any(|name| starts(inner, name) && inner.len() > name.len());
        if is_one {
            found.add(LOOKUP, Span::new(at, at + 2 + inner.len()));
        }
    }
}

/// `%x(id)` of Ruby and `qx/id/` of Perl: the text between the delimiters is a command.
fn quoted_commands(shell: &command::Names, text: &[u8], found: &mut Found<'_>) {
    for at in memchr::memchr_iter(b'x', text) {
        let Some(before) = at.checked_sub(1).filter(|before| matches!(text[*before], b'%' | b'q')) else {
            continue;
        };
        let is_mark = match text[before] {
            b'%' => true,
            b'q' => before.checked_sub(1).is_none_or(|i| !text[i].is_ascii_alphanumeric()),
            _ => false,
        };
        let close = match text.get(at + 1) {
            Some(b'(') => b')',
            Some(b'{') => b'}',
            Some(b'[') => b']',
            Some(&sign @ (b'/' | b'|' | b'!')) => sign,
            _ => continue,
        };
        let rest = &text[at + 2..];
        let Some(end) = memchr::memchr(close, &rest[..rest.len().min(200)]) else { continue };
        if is_mark && found.may_read(end) && shell.is_command_line(&rest[..end]) {
            found.add(EXECUTE, Span::new(before, at + 3 + end));
            found.add(SHELL_ARGUMENT, Span::new(at + 2, at + 2 + end));
        }
    }
}

/// `php`, `=`, or white space with code behind it; not `xml`.
fn is_php(rest: &[u8]) -> bool {
    match rest {
        [b'=', rest @ ..] => is_output(rest),
        [b'p' | b'P', b'h' | b'H', b'p' | b'P', after, ..] => {
            after.is_ascii_whitespace() || matches!(after, b'/' | b'(' | b'@')
        }
        [b' ' | b'\n' | b'\t', rest @ ..] => rest.iter().take(200).any(|b| matches!(b, b'(' | b'$' | b'`')),
        _ => false,
    }
}

/// What `<?=` puts out: a variable, call or text, and nothing that no source has (archives have the three
/// signs by chance).
fn is_output(rest: &[u8]) -> bool {
    let head = &rest[..rest.len().min(12)];
    let is_text = head.iter().all(|b| (b' '..0x7F).contains(b) || b.is_ascii_whitespace());
    let window = &rest[..rest.len().min(200)];
    is_text && (window.iter().any(|b| b"$(`'\"".contains(b)) || memmem::find(window, b"?>").is_some())
}

fn starts(text: &[u8], start: &[u8]) -> bool {
    text.len() >= start.len() && text[..start.len()].eq_ignore_ascii_case(start)
}

fn ends_any_case(text: &[u8], end: &[u8]) -> bool {
    text.len() >= end.len() && text[text.len() - end.len()..].eq_ignore_ascii_case(end)
}

/// `request`, in any case: its rarest letter is looked for.
fn has_request(text: &[u8]) -> bool {
    memchr::memchr2_iter(b'q', b'Q', text).any(|at| {
        at >= 2 && text[at - 2..].get(..7).is_some_and(|word| word.eq_ignore_ascii_case(b"request"))
    })
}

fn find_any_case(text: &[u8], part: &[u8]) -> Option<usize> {
    let first = part[0];
    memchr::memchr_iter(first, text).find(|&at| starts(&text[at..], part))
}
