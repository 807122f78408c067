//! Beginnings of code that no expression shows: tags, and property paths as parameters' names.

use memchr::memmem;
use portcullis_types::Span;

use super::{
    BACKDOOR, BACKTICK, CLASS_PATH, ENDLESS, EXECUTE, INPUT, LOOKUP, MODULE, OGNL, PHP_TAG, PROBE,
    RENDER_ARRAY, SCRIPT_TAG, SHELL_ARGUMENT, TEXT_CALL, WHOLE, begins_as_code,
};
use crate::Place;
use crate::detectors::command;
use crate::{Found, Input};

/// Tags of one text that are looked at.
const TAGS_MAX: usize = 16;

pub(super) fn detect(shell: &command::Names, input: &Input<'_>, found: &mut Found<'_>) {
    let text = input.text;
    if input.groups.has(b'<') {
        for at in memchr::memchr_iter(b'<', text).take(TAGS_MAX * 4) {
            let rest = &text[at + 1..];
            let kind = match rest {
                [b'?', rest @ ..] if is_php(rest) => PHP_TAG,
                [b'%', b'@', ..] => SCRIPT_TAG,
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
            let is_firm = begins_as_code(&text[..at]);
            if is_firm {
                found.add(kind, span)
            } else {
                found.mention(kind, span)
            }
            // A block of PHP and nothing else.
            if kind == PHP_TAG && is_firm && at <= 4 && text.trim_ascii_end().ends_with(b"?>") {
                found.add(WHOLE, span);
            }
            // `<?=`...`` runs what stands in back-ticks, whatever that is made of.
            if kind == PHP_TAG && is_firm && rest.iter().take(12).any(|b| *b == b'`') {
                found.add(BACKTICK, span);
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
    if is_product(text) {
        found.add(PROBE, Span::new(0, text.len()));
    }
    if input.groups.has(b'.') && uses_module(text) {
        found.add(MODULE, Span::new(0, text.len()));
    }
    if input.groups.has(b'{') && is_interpolated_call(text) {
        found.add(TEXT_CALL, Span::new(0, text.len()));
    }
    if input.groups.has(b'(') && text.len() <= LOOP_BYTES_MAX && is_endless(text) {
        found.add(ENDLESS, Span::new(0, text.len()));
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

/// `require('fs').readdirSync('.')`: a module of Node that reaches files, other machines or the system, and at once a call of it, is
/// all of the value.
fn uses_module(text: &[u8]) -> bool {
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
    let text = text.trim_ascii();
    let head = text.iter().take_while(|b| b" '\";)+-(".contains(b)).count();
    let Some(inner) = text[head..].strip_prefix(b"require(") else { return false };
    let [b'\'' | b'"' | b'`', inner @ ..] = inner else { return false };
    let name = inner.strip_prefix(b"node:").unwrap_or(inner);
    let len = name.iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count();
    let rest = &name[len..];
    MODULES.contains(&&name[..len])
        && matches!(rest, [b'\'' | b'"' | b'`', b')', b'.', first, ..] if first.is_ascii_alphabetic())
        && rest[3..].contains(&b'(')
        && matches!(text.last(), Some(b')' | b';' | b'}' | b'/' | b'\'' | b'"'))
}

/// `{${system(id)}}`: PHP calls what stands so in a text.
fn is_interpolated_call(text: &[u8]) -> bool {
    let Some(inner) = text.trim_ascii().strip_prefix(b"{${").and_then(|text| text.strip_suffix(b"}}")) else {
        return false;
    };
    let inner = inner.strip_prefix(b"@").unwrap_or(inner);
    let name = inner.iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count();
    name > 1 && inner.get(name) == Some(&b'(') && inner.ends_with(b")")
}

/// What is longer says more than a loop.
const LOOP_BYTES_MAX: usize = 48;

/// `while(1){}`, `';for(;;);//`: so that a server hangs where code is run.
fn is_endless(text: &[u8]) -> bool {
    let is_before = |b: &u8| b" \t'\";)}".contains(b);
    let text = &text[text.iter().take_while(|b| is_before(b)).count()..];
    const LOOPS: &[&[u8]] = &[b"while(1)", b"while(true)", b"while(!0)", b"for(;;)"];
    let Some(rest) = LOOPS.iter().find_map(|head| text.strip_prefix(*head)) else { return false };
    matches!(rest.trim_ascii_start().first(), Some(b'{' | b';'))
        && rest.iter().all(|b| b.is_ascii_whitespace() || b"{};'\"/()".contains(b))
}

/// `echo 98989*443131;`, `print 7777*8888//`: numbers that nobody multiplies, and the sign that ends a statement.
fn is_product(text: &[u8]) -> bool {
    let text = text.trim_ascii();
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
    first > 3 && second > 3 && matches!(rest[second..].trim_ascii(), b";" | b"//" | b";//")
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
    for at in memchr::memchr_iter(b'#', input.text).take(8) {
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
    for at in memmem::find_iter(text, b"${").take(16) {
        let rest = &text[at + 2..];
        let inner =
            &rest[..memchr::memchr(b'}', &rest[..rest.len().min(400)]).unwrap_or(rest.len().min(400))];
        let is_one = starts(inner, b"script:") && inner[7..].contains(&b':')
            || starts(inner, b"dns:") && inner.contains(&b'|')
            || starts(inner, b"url:") && memmem::find(inner, b"://").is_some();
        if is_one {
            found.add(LOOKUP, Span::new(at, at + 2 + inner.len()));
        }
    }
}

/// `%x(id)` of Ruby and `qx/id/` of Perl: the text between the delimiters is a command.
fn quoted_commands(shell: &command::Names, text: &[u8], found: &mut Found<'_>) {
    for at in memchr::memchr_iter(b'x', text).take(32) {
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
        if is_mark && shell.is_command_line(&rest[..end]) && begins_as_code(&text[..before]) {
            found.add(EXECUTE, Span::new(before, at + 3 + end));
            found.add(SHELL_ARGUMENT, Span::new(at + 2, at + 2 + end));
        }
    }
}

/// `php`, `=`, or white space with code behind it; not `xml`.
fn is_php(rest: &[u8]) -> bool {
    match rest {
        [b'=', ..] => true,
        [b'p' | b'P', b'h' | b'H', b'p' | b'P', after, ..] => {
            after.is_ascii_whitespace() || matches!(after, b'/' | b'(' | b'@')
        }
        [b' ' | b'\n' | b'\t', rest @ ..] => rest.iter().take(200).any(|b| matches!(b, b'(' | b'$' | b'`')),
        _ => false,
    }
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
    memchr::memchr_iter(first, text).take(256).find(|&at| starts(&text[at..], part))
}
