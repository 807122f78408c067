//! A whole source of PHP: does it run what the request gives it?
//!
//! Sources of applications read requests, start programs and name functions by variables; web shells do it
//! with what they are sent, or with names that they put together so that nobody reads them. So it counts what
//! reaches a call: a value of the request, a variable that was given one, text that is decoded or put
//! together. What is run outside of any block runs as soon as the file is asked for.

mod harmless;

use std::collections::HashMap;

use memchr::memmem;

use crate::detectors::command;

pub(in crate::detectors) use self::harmless::is_harmless;

/// Sources of a request's values.
const SOURCES: &[&[u8]] = words!("code", "php-input");

/// What makes a text of one that nobody reads.
const DECODERS: &[&[u8]] = &[
    b"base64_decode",
    b"gzinflate",
    b"gzuncompress",
    b"gzdecode",
    b"str_rot13",
    b"strrev",
    b"hex2bin",
    b"convert_uudecode",
    b"rawurldecode",
    b"chr(",
];

/// What also makes the name of a function.
const JOINTS: &[&[u8]] = words!("code", "php-joints");

/// Functions that run their first argument.
const RUNNERS: &[&[u8]] = &[
    b"eval",
    b"assert",
    b"create_function",
    b"system",
    b"exec",
    b"shell_exec",
    b"passthru",
    b"popen",
    b"proc_open",
    b"pcntl_exec",
    b"mb_ereg_replace",
];

/// Functions that call what the argument of this number names.
const CALLERS: &[(&[u8], usize)] = &[
    (b"call_user_func", 0),
    (b"call_user_func_array", 0),
    (b"array_map", 0),
    (b"register_shutdown_function", 0),
    (b"register_tick_function", 0),
    (b"forward_static_call", 0),
    (b"reflectionfunction", 0),
    (b"ob_start", 0),
    (b"array_filter", 1),
    (b"array_walk", 1),
    (b"array_reduce", 1),
    (b"usort", 1),
    (b"uasort", 1),
    (b"uksort", 1),
    (b"preg_replace_callback", 1),
    (b"preg_replace", 0),
];

/// Bytes of a statement or of the arguments of a call that are read.
const PART_BYTES_MAX: usize = 600;

/// Variables that are remembered; with more, what is remembered tells.
const VARIABLES_MAX: usize = 512;

/// True if `text` runs what a request gives it or what it has put together, or runs something outside of any
/// block. Commands that tell about the system, read files or reach other machines count anywhere; others,
/// `git describe`, only there.
pub(in crate::detectors) fn runs_input(text: &[u8], shell: &command::Names) -> bool {
    let lower = text.to_ascii_lowercase();
    let source = Source { text: &lower, given: given_variables(&lower), shell };
    source.calls() || source.includes() || source.variable_calls() || source.backticks()
}

/// True if a value of the request stands anywhere in `text`.
pub(in crate::detectors) fn takes_input(text: &[u8]) -> bool {
    let lower = text.to_ascii_lowercase();
    SOURCES.iter().any(|source| memmem::find(&lower, source).is_some())
}

/// What a variable was given: a value of the request, a decoded text, one that was put together.
const SENT: u8 = 1;
const DECODED: u8 = 1 << 1;
const JOINED: u8 = 1 << 2;

#[derive(Debug)]
struct Source<'t> {
    /// In small letters.
    text: &'t [u8],
    given: HashMap<&'t [u8], u8>,
    shell: &'t command::Names,
}

impl Source<'_> {
    /// Functions that run or call what they are given.
    fn calls(&self) -> bool {
        let mut depth = Depth::default();
        memchr::memchr_iter(b'(', self.text).any(|open| {
            let head = self.text[..open].trim_ascii_end();
            let name = &head[head.len() - name_len(head)..];
            let before = head[..head.len() - name.len()].trim_ascii_end();
            let is_member = before.ends_with(b"->") || before.ends_with(b"::");
            let is_declared = before.ends_with(b"function");
            if name.is_empty() || is_declared {
                return false;
            }
            let arguments = part(self.text, open + 1, b')');
            let is_top = |depth: &mut Depth| depth.at(self.text, open) == 0;
            match name {
                b"include" | b"include_once" | b"require" | b"require_once" => self.is_given(arguments, SENT),
                b"phpinfo" => !is_member,
                b"file_put_contents" => {
                    let mut parts = arguments.splitn(2, |b| *b == b',');
                    parts.all(|part| self.is_given(part, SENT))
                }
                b"extract" | b"parse_str" => self.is_given(arguments, SENT) && self.has_runner(),
                b"move_uploaded_file" => {
                    // To where the request says, by the name that it gives.
                    let to =
                        arguments.iter().position(|b| *b == b',').map_or(&b""[..], |at| &arguments[at..]);
                    memmem::find(to, b"$_files").is_some() && memmem::find(to, b"name").is_some()
                }
                _ if !is_member && RUNNERS.contains(&name) => {
                    self.is_given(arguments, SENT | DECODED)
                        || self.tells(arguments)
                        || !arguments.trim_ascii().is_empty() && is_top(&mut depth)
                }
                _ => CALLERS.iter().any(|(known, number)| {
                    *known == name && self.calls_given(name, arguments.split(|b| *b == b',').nth(*number))
                }),
            }
        })
    }

    /// `include $_GET['page'];`, with parentheses or without.
    fn includes(&self) -> bool {
        let words = [&b"include"[..], b"require"].into_iter();
        words.flat_map(|word| memmem::find_iter(self.text, word).map(move |at| (at, word))).any(
            |(at, word)| {
                let rest = &self.text[at + word.len()..];
                let rest = rest.strip_prefix(b"_once").unwrap_or(rest);
                let is_word =
                    at.checked_sub(1).is_none_or(|at| !is_name(self.text[at]) && self.text[at] != b'$')
                        && rest.first().is_some_and(|b| matches!(b, b' ' | b'(' | b'\t' | b'\n' | b'$'));
                is_word && self.is_given(part(rest, 0, b';'), SENT)
            },
        )
    }

    /// The argument of a function that calls what it names is given, or names a runner.
    fn calls_given(&self, name: &[u8], argument: Option<&[u8]>) -> bool {
        let Some(argument) = argument.map(<[u8]>::trim_ascii) else { return false };
        let inner = argument.trim_ascii().strip_prefix(b"'").or(argument.strip_prefix(b"\""));
        let quoted = inner.map(|inner| &inner[..name_len_from(inner)]);
        let names_runner = quoted.is_some_and(|quoted| RUNNERS.contains(&quoted));
        let runs_replacement = name == b"preg_replace" && inner.is_some_and(replaces_by_code);
        runs_replacement || names_runner || name != b"preg_replace" && self.is_given(argument, SENT | DECODED)
    }

    /// `$f(..)`, where `$f` was given; `$_GET['f'](..)`, `('sys'.'tem')(..)`, `$$f(..)`.
    fn variable_calls(&self) -> bool {
        memchr::memchr_iter(b'(', self.text).any(|open| {
            let head = self.text[..open].trim_ascii_end();
            match head.last() {
                Some(b']' | b'}') => {
                    let from = head.len().saturating_sub(80);
                    let from =
                        head[from..].iter().rposition(|b| b";=\n".contains(b)).map_or(from, |at| from + at);
                    [&b"$_"[..], b"${", b"$globals"]
                        .iter()
                        .any(|known| memmem::find(&head[from..], known).is_some())
                }
                Some(b')') => {
                    matches!(head[..head.len() - 1].trim_ascii_end().last(), Some(b'\'' | b'"')) && {
                        let from = head.len().saturating_sub(80);
                        let start = head[from..].iter().rposition(|b| *b == b'(').map(|at| from + at + 1);
                        let callee = start.and_then(|at| head[..at - 1].trim_ascii_end().last());
                        callee.is_none_or(|b| !b.is_ascii_alphanumeric() && *b != b'_')
                    }
                }
                _ => {
                    let name = name_len(head);
                    let dollar = head.len() - name;
                    let is_method = head[..dollar].ends_with(b"->$");
                    // `$this->$name(..)`: a method of an object that the source made; a request's name is one
                    // too many.
                    if is_method {
                        return self.given.get(&head[dollar..]).is_some_and(|given| given & SENT != 0);
                    }
                    name > 0
                        && head[..dollar].ends_with(b"$")
                        && (head[..dollar].ends_with(b"$$")
                            || self.given.contains_key(&head[dollar..])
                            || self.is_given(part(self.text, open + 1, b')'), SENT))
                }
            }
        })
    }

    /// A command in back-ticks with a given variable in it.
    fn backticks(&self) -> bool {
        memchr::memchr_iter(b'`', self.text).any(|open| {
            let before = self.text[..open].trim_ascii_end();
            let begins = matches!(before.last(), Some(b'=' | b'(' | b'.' | b';' | b'@'))
                || before.ends_with(b"echo")
                || before.ends_with(b"print")
                || before.ends_with(b"return");
            let rest = &self.text[open + 1..self.text.len().min(open + PART_BYTES_MAX)];
            begins
                && memchr::memchr(b'`', rest).is_some_and(|end| {
                    self.is_given(&rest[..end], SENT) || self.shell.asks_system(&rest[..end])
                })
        })
    }

    /// Something of a request is in `part`, a variable that was given one of `kinds`, or what decodes.
    fn is_given(&self, part: &[u8], kinds: u8) -> bool {
        is_sent(part)
            || kinds & DECODED != 0 && has(part, DECODERS)
            || variables(part).any(|name| self.given.get(name).is_some_and(|given| given & kinds != 0))
    }

    /// The arguments begin with a text that is a command of which attacks are made.
    fn tells(&self, arguments: &[u8]) -> bool {
        let inner = match arguments.trim_ascii() {
            [b'\'' | b'"', inner @ ..] => inner,
            _ => return false,
        };
        self.shell.asks_system(inner)
    }

    fn has_runner(&self) -> bool {
        RUNNERS.iter().any(|name| {
            memmem::find_iter(self.text, name).any(|at| {
                self.text[at + name.len()..].trim_ascii_start().starts_with(b"(")
                    && at.checked_sub(1).is_none_or(|at| !is_name(self.text[at]) && self.text[at] != b'>')
            })
        })
    }
}

/// The pattern after a quote has the flag by which its replacement is code.
fn replaces_by_code(pattern: &[u8]) -> bool {
    let end = pattern.iter().rposition(|b| matches!(b, b'\'' | b'"')).unwrap_or(pattern.len());
    let flags = pattern[..end].iter().rev().take_while(|b| b.is_ascii_alphabetic()).count();
    flags < end
        && pattern[end - flags..end].contains(&b'e')
        && pattern[end - flags - 1].is_ascii_punctuation()
}

/// One of `list` is in `part`.
fn has(part: &[u8], list: &[&[u8]]) -> bool {
    list.iter().any(|known| memmem::find(part, known).is_some())
}

/// Something of a request is in `part`. In the environment a request's fields have names of their own.
fn is_sent(part: &[u8]) -> bool {
    const NAMES: &[&[u8]] = words!("code", "php-sent-names");
    let reads_request = |at: usize| {
        let rest = part[at + b"getenv".len()..].trim_ascii_start();
        let Some(rest) = rest.strip_prefix(b"(") else { return false };
        match rest.trim_ascii_start() {
            [b'\'' | b'"', name @ ..] => {
                let len = name_len_from(name);
                let is_whole = matches!(name.get(len), Some(b'\'' | b'"'))
                    && name[len + 1..].trim_ascii_start().starts_with(b")");
                !is_whole || len == 0 || NAMES.iter().any(|known| name.starts_with(known))
            }
            _ => true,
        }
    };
    has(part, SOURCES) || memmem::find_iter(part, b"getenv").any(reads_request)
}

/// How many blocks are open.
#[derive(Debug, Default)]
struct Depth {
    at: usize,
    open: i32,
}

impl Depth {
    /// How many are at `at`, which is asked in order.
    fn at(&mut self, text: &[u8], at: usize) -> i32 {
        for b in &text[self.at.min(at)..at] {
            self.open += i32::from(*b == b'{') - i32::from(*b == b'}');
        }
        self.at = at;
        self.open
    }
}

/// What variables are given, directly or by another one.
fn given_variables(text: &[u8]) -> HashMap<&[u8], u8> {
    let mut given = HashMap::new();
    for _ in 0..2 {
        for dollar in memchr::memchr_iter(b'$', text) {
            let len = name_len_from(&text[dollar + 1..]);
            let name = &text[dollar + 1..dollar + 1 + len];
            let rest = &text[dollar + 1 + len..];
            let is_source = SOURCES.iter().any(|known| text[dollar..].starts_with(known));
            // `foreach ($_POST as $name => $value)`
            if is_source && let Some(names) = loop_variables(rest) {
                given.extend(names.map(|name| (name, SENT)));
            }
            if len == 0 || is_source || given.len() >= VARIABLES_MAX {
                continue;
            }
            // Counting letters up, as sources of signs alone do.
            let counts = name.iter().all(|b| *b == b'_') && rest.starts_with(b"++");
            let mut kinds = if counts { JOINED } else { 0 };
            if let Some(value) = assigned(rest) {
                let value = part(value, 0, b';');
                kinds |= if is_sent(value) { SENT } else { 0 };
                kinds |= if has(value, DECODERS) { DECODED | JOINED } else { 0 };
                kinds |= if has(value, JOINTS) { JOINED } else { 0 };
                kinds |=
                    variables(value).filter_map(|name| given.get(name)).fold(0, |all, kinds| all | kinds);
            }
            if kinds != 0 {
                *given.entry(name).or_insert(0) |= kinds;
            }
        }
    }
    given
}

/// What is assigned after a variable's name, `$a[1] .= x` among them.
fn assigned(rest: &[u8]) -> Option<&[u8]> {
    let rest = match rest.first() {
        Some(b'[') => &rest[rest[..rest.len().min(64)].iter().position(|b| *b == b']')? + 1..],
        _ => rest,
    };
    let rest = rest.trim_ascii_start();
    let rest = rest.strip_prefix(b"??").or(rest.strip_prefix(b".")).unwrap_or(rest);
    let value = rest.strip_prefix(b"=")?;
    (!matches!(value.first(), Some(b'=' | b'>'))).then_some(value)
}

/// The variables of a loop over what stands before `rest`.
fn loop_variables(rest: &[u8]) -> Option<impl Iterator<Item = &[u8]>> {
    let head = &rest[..rest.len().min(96)];
    let at = memmem::find(head, b" as ")?;
    let end = at + head[at..].iter().position(|b| *b == b')')?;
    memchr::memchr2(b';', b'{', &head[..end]).is_none().then(|| variables(&head[at..end]))
}

/// The names of the variables in `part`.
fn variables(part: &[u8]) -> impl Iterator<Item = &[u8]> {
    memchr::memchr_iter(b'$', part).map(|at| &part[at + 1..at + 1 + name_len_from(&part[at + 1..])])
}

/// `text` from `from` on to the first `end` outside of parentheses.
fn part(text: &[u8], from: usize, end: u8) -> &[u8] {
    let window = &text[from..text.len().min(from + PART_BYTES_MAX)];
    let mut open = 0i32;
    let len = window.iter().position(|b| {
        if open == 0 && *b == end {
            return true;
        }
        open += i32::from(*b == b'(') - i32::from(*b == b')');
        false
    });
    &window[..len.unwrap_or(window.len())]
}

fn is_name(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_' || b >= 0x80
}

/// Bytes of the name that `text` ends with.
fn name_len(text: &[u8]) -> usize {
    text.iter().rev().take(64).take_while(|b| is_name(**b)).count()
}

/// Bytes of the name that `text` begins with.
fn name_len_from(text: &[u8]) -> usize {
    text.iter().take(64).take_while(|b| is_name(**b)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shells() {
        for text in [
            "<?php system($_GET['c']);",
            "<?php function f() { return 1; }\n$c = $_POST['c'];\n$d = trim($c);\nshell_exec($d);",
            "<?php class A { function b() { eval(base64_decode('ZWNobyAxOw==')); } }",
            "<?php $f = 'sys' . 'tem'; function g() { global $f; $f('id'); }",
            "<?php class A { function b() { $f = $_COOKIE['f']; $f($_COOKIE['x']); } }",
            "<?php class A { function b() { $_GET['f']($_GET['x']); } }",
            "<?php class A { function b() { ('sy'.'stem')('id'); } }",
            "<?php function a() { call_user_func($_REQUEST['f'], $_REQUEST['x']); }",
            "<?php function a() { array_map('assert', [$_POST['x']]); }",
            "<?php function a($x) { usort($x, 'system'); }",
            "<?php function a() { preg_replace('/.*/e', $_POST['x'], ''); }",
            "<?php function a() { foreach ($_POST as $k => $v) { exec($v); } }",
            "<?php function a() { extract($_GET); exec($x); }",
            "<?php function a() { echo `$_GET[c]`; }",
            "<?php function a() { $c = $_GET['c']; echo `$c`; }",
            "<?php function a() { include($_GET['page']); }",
            "<?php function a() { file_put_contents($_POST['f'], $_POST['d']); }",
            "<?php function a() { move_uploaded_file($_FILES['f']['tmp_name'], $_FILES['f']['name']); }",
            "<?php function a() { $x = \"\\x73ystem\"; $x('id'); }",
            "<?php function a() { $c = file_get_contents('php://input'); eval($c); }",
            "<?php class A { }\nsystem('id');",
            "<?php class A { function b() { exec('cat /etc/passwd'); } }",
            "<?php class A { function b() { return `uname -a`; } }",
            "<?php function a() { phpinfo(); }",
            "<?php function a() { $_ = $_SERVER['HTTP_X']; @assert($_); }",
            "<?php function a() { ${'_GET'}['x'](1); }",
            "<?php function a($f) { $f($_GET['c']); }",
            "<?php SYSTEM($_get['c']);",
            "<?php class A { function b() { $m = $_GET['m']; $this->$m($_GET['x']); } }",
            "<?php class A { function b() { system(getenv('HTTP_X')); include getenv($x) . '/a.php'; } }",
            "<?php class A { function b() { exec(getenv('HT' . 'TP_X')); } }",
        ] {
            assert!(runs_input(text.as_bytes(), &command::Names::new()), "{text}");
        }
    }

    #[test]
    fn applications() {
        for text in [
            "<?php $t = $_GET['tab'] ?? 'home';\necho htmlspecialchars($t);",
            "<?php class A { function b() { exec('git rev-parse HEAD', $out); return $out; } }",
            "<?php class A { function b($f) { return array_map($f, $this->x); } function system($x) {} }",
            "<?php class A { function b() { return array_map('trim', $_POST['x']); } }",
            "<?php class A { function b() { $this->db->exec($_POST['x']); } }",
            "<?php require_once(dirname(__FILE__) . '/a.php');\n$id = (int) $_GET['id'];",
            "<?php function a($f) { $f(1); move_uploaded_file($_FILES['f']['tmp_name'], $to); }",
            "<?php function a() { return preg_replace('/a/i', 'b', $_GET['x']); }",
            "<?php $sql = \"SELECT `id` FROM `a` WHERE `b` = '\" . $db->escape($_GET['b']) . \"'\";",
            "<?php /** Calls system() of the request. */ class A { }",
            "<?php class A { function b($n) { $f = 'visit' . substr($n, 1); return $this->$f($n); } }",
            "<?php $home = getenv( 'APP_HOME' );\nrequire_once \"$home/a.php\";",
        ] {
            assert!(!runs_input(text.as_bytes(), &command::Names::new()), "{text}");
        }
    }

    /// A long source takes time in proportion.
    #[test]
    fn hostile_sources() {
        for unit in ["$a=$b;", "(", "$a(", "eval(", "`", "foreach($_GET as $a)", "{", "$", "$$a("] {
            runs_input(unit.repeat(60_000 / unit.len()).as_bytes(), &command::Names::new());
        }
    }
}
