//! Reading one command with its arguments.

mod judge;

use portcullis_lex::shell::{Lexer, Marks, Token, TokenKind, Variables};
use portcullis_types::Span;

use super::arguments::{Arguments, note_argument, note_marks};
use super::names::{Command, Group, Names};
use super::positions::{Position, Sign};
use super::shape::{self, Shape};
use super::{
    ASSEMBLED_NAME, BARE, BARE_WORD, BRACE_LIST, CARETS, CMDLET, CODE_ARGUMENT, ENCODED_POWERSHELL,
    EXEC_ARGUMENT, EXPANSION, GLOB_NAME, HOST, IFS, PATH, PATHED, PIPED_TO_SHELL, PREFIXED, READING,
    REVERSE_SHELL, SENSITIVE_FILE, SPLIT_NAME,
};
use crate::KindId;
use crate::limits::TOKEN_BYTES;

/// Arguments of a command that are looked at.
const ARGUMENTS_MAX: usize = 24;

/// What a word counts as in tokens: it is expanded, looked up and compared with the shapes of arguments.
const WORD_TOKENS: usize = 2;

/// What a pattern for a command's name counts as beside.
const PATTERN_TOKENS: usize = 16;

/// Tokens of a `case` before its first command.
const CASE_TOKENS_MAX: usize = 8;

/// Words before a command that run it: assignments, `sudo`, options of those.
const LEAD_WORDS_MAX: usize = 8;

/// A command that was read.
#[derive(Debug)]
pub(super) struct Call {
    pub group: Group,
    start: usize,
    pub end: usize,
    facts: u64,
    is_distinctive: bool,
    /// Its name stands in lists of fields.
    is_listed: bool,
    /// The value ends with the sign after it: `id;`
    is_closed: bool,
    /// Words of a sentence are among its arguments.
    pub is_prose: bool,
    /// A word of the shell's own stands before it, as in `;do id`.
    is_compound: bool,
    /// How many arguments it has.
    pub arguments: usize,
    /// An argument is a path from the root of the system, or a key of Windows' registry.
    reaches_out: bool,
}

impl Call {
    fn new(group: Group, start: usize, end: usize) -> Call {
        Call {
            group,
            start,
            end,
            facts: 0,
            is_distinctive: false,
            is_closed: false,
            is_prose: false,
            reaches_out: false,
            is_compound: false,
            arguments: 0,
            is_listed: false,
        }
    }

    pub fn span(&self) -> Span {
        Span::new(self.start, self.end)
    }

    /// Where its name begins.
    pub fn start(&self) -> usize {
        self.start
    }

    pub fn has(&self, kind: KindId) -> bool {
        self.facts >> kind.0 & 1 == 1
    }

    pub fn note(&mut self, kind: KindId) {
        self.facts |= 1 << kind.0;
    }

    pub fn kinds(&self) -> impl Iterator<Item = KindId> + '_ {
        (0..super::KINDS.len() as u16).map(KindId).filter(|kind| self.has(*kind))
    }

    /// Something parts its name from its arguments: it is no name alone.
    pub fn parts_words(&self, text: &[u8]) -> bool {
        let call = self.span().of(text).trim_ascii();
        self.has(IFS) || self.has(BRACE_LIST) || call.iter().any(u8::is_ascii_whitespace)
    }

    /// Its name is no word of a language.
    pub fn is_distinctive(&self) -> bool {
        self.is_distinctive
    }

    /// What no developer's line has: it reads what tells about the system or stands outside of a
    /// project, talks to another machine, runs code that it is given.
    pub fn is_telling(&self) -> bool {
        let tells = [
            SENSITIVE_FILE,
            HOST,
            CODE_ARGUMENT,
            EXEC_ARGUMENT,
            REVERSE_SHELL,
            PIPED_TO_SHELL,
            SPLIT_NAME,
            IFS,
            PATHED,
            GLOB_NAME,
            ASSEMBLED_NAME,
            BRACE_LIST,
            CARETS,
            ENCODED_POWERSHELL,
            CMDLET,
            EXPANSION,
        ];
        matches!(self.group, Group::Recon | Group::Delay)
            || self.reaches_out
            || tells.iter().any(|kind| self.has(*kind))
    }

    /// Nobody writes it so into a setup: its name is hidden, a shell is connected to another machine, a file
    /// that tells about the system is read.
    pub fn is_hidden(&self) -> bool {
        self.is_disguised()
            || self.group == Group::Read && self.has(SENSITIVE_FILE)
            || self.group == Group::Net && self.has(EXEC_ARGUMENT)
    }

    /// Nothing but a word that is a name, too: `\b`.
    pub fn is_mere_word(&self) -> bool {
        self.has(BARE_WORD)
    }

    /// Signs hide what it is, or it connects a shell.
    pub fn is_disguised(&self) -> bool {
        let hides = [
            SPLIT_NAME,
            IFS,
            GLOB_NAME,
            ASSEMBLED_NAME,
            BRACE_LIST,
            CARETS,
            ENCODED_POWERSHELL,
            REVERSE_SHELL,
        ];
        hides.iter().any(|kind| self.has(*kind))
    }

    /// It names another machine.
    pub fn has_host(&self) -> bool {
        self.has(HOST)
    }

    /// It may be a whole value: it has arguments, or its name is no word of a language.
    pub fn stands_alone(&self) -> bool {
        let is_bare = self.has(BARE) || self.has(BARE_WORD);
        let runs_others = matches!(self.group, Group::Prefix | Group::Shell);
        self.is_closed && !self.has(BARE_WORD) || !is_bare || self.is_distinctive && !runs_others
    }

    /// Nothing but a name that could be a name of something else.
    pub fn is_bare_name(&self) -> bool {
        let is_run = self.has(BARE_WORD) && self.has(PREFIXED) && self.is_compound;
        if is_run || self.has(BARE) && (self.is_closed || !self.is_listed || self.is_compound) {
            return false;
        }
        (self.has(BARE) || self.has(BARE_WORD))
            && !self.is_distinctive
            && !self.has(PATHED)
            && !self.has(SPLIT_NAME)
    }
}

/// Reads the command at a position.
pub(super) struct Reader<'r, 't> {
    text: &'t [u8],
    lexer: Lexer<'t>,
    names: &'r Names,
    variables: &'r mut Variables<'t>,
    start: usize,
    /// The command before writes to it.
    pub after_pipe: bool,
    by_variable: bool,
    sign: Sign,
    /// No space stands between the sign and what is read.
    is_glued: bool,
    /// Words that were read; a pattern counts as many, for it is compared with each name.
    words: usize,
    /// It is read from a block that only a shell has.
    pub in_block: bool,
    /// See [`Reader::may_read`].
    bytes_max: usize,
}

impl<'r, 't> Reader<'r, 't> {
    pub fn new(
        text: &'t [u8],
        position: &Position,
        names: &'r Names,
        variables: &'r mut Variables<'t>,
        plus: bool,
    ) -> Reader<'r, 't> {
        let lexer = Lexer::new(text, position.at, *variables).with_plus(plus);
        let lexer = if position.sign == Sign::Backtick { lexer.in_backticks() } else { lexer };
        Reader {
            text,
            lexer,
            names,
            variables,
            start: position.at,
            after_pipe: false,
            by_variable: false,
            sign: position.sign,
            is_glued: position.sign != Sign::Begin
                && text.get(position.at).is_some_and(|b| !b.is_ascii_whitespace()),
            words: 0,
            in_block: false,
            bytes_max: usize::MAX,
        }
    }

    /// What reading the command may cost, in bytes.
    pub fn may_read(&mut self, bytes: usize) {
        self.bytes_max = bytes;
    }

    /// Bytes that were read.
    pub fn bytes_read(&self) -> usize {
        self.lexer.bytes_read() - self.start
    }

    /// Words that were read.
    pub fn words_read(&self) -> usize {
        self.words
    }

    /// The command, if there is a known one with arguments that fit it.
    pub fn read(&mut self) -> Option<Call> {
        let mut lead = 0;
        let mut prefixed = false;
        let mut is_compound = self.in_block;
        loop {
            // Redirections before the command may go on for as long as the text does.
            if self.bytes_read().max(self.words.saturating_mul(TOKEN_BYTES)) > self.bytes_max {
                return None;
            }
            let token = self.lexer.next()?;
            let TokenKind::Word(marks) = token.kind else {
                match token.kind {
                    TokenKind::Open => {
                        // `x;{ id;}`: a group of commands, directly behind the separator.
                        is_compound |= lead == 0 && self.is_glued && token.span.of(self.text) == b"{";
                        continue;
                    }
                    // `>/dev/null cat`: the target is no command.
                    TokenKind::Redirect => {
                        self.words += WORD_TOKENS;
                        let is_input = token.span.of(self.text).contains(&b'<');
                        let target = self.lexer.next()?;
                        // `$(</etc/passwd)` reads the file itself.
                        let shape = shape::of(self.lexer.text(), target.kind.marks(), false);
                        // `$(<config.php)`
                        let is_read = shape == Shape::Path && self.is_substituted();
                        if is_input && lead == 0 && (shape == Shape::Sensitive || is_read) {
                            let (start, end) = (token.span.start as usize, target.span.end as usize);
                            let mut call = Call::new(Group::Read, start, end);
                            call.is_distinctive = true;
                            call.note(READING);
                            call.note(if is_read { PATH } else { SENSITIVE_FILE });
                            return Some(call);
                        }
                        continue;
                    }
                    TokenKind::Word(_)
                    | TokenKind::Semicolon
                    | TokenKind::Pipe
                    | TokenKind::Or
                    | TokenKind::And
                    | TokenKind::Background
                    | TokenKind::Newline
                    | TokenKind::Close
                    | TokenKind::Comment => return None,
                }
            };
            lead += 1;
            self.words += WORD_TOKENS + if marks.has(Marks::GLOB) { PATTERN_TOKENS } else { 0 };
            if lead > LEAD_WORDS_MAX {
                return None;
            }
            let raw = token.span.of(self.text);
            if let Some((name, value)) = Variables::assignment(raw) {
                self.variables.set(name, value);
                *self.lexer.variables() = *self.variables;
                continue;
            }
            if prefixed && matches!(shape::of(self.lexer.text(), marks, false), Shape::Option | Shape::Number)
            {
                continue;
            }
            // `case x in x)`: what follows the parenthesis is run.
            if lead == 1 && self.lexer.text() == b"case" {
                self.lexer.by_ref().take(CASE_TOKENS_MAX).find(|token| token.kind == TokenKind::Close)?;
                continue;
            }
            // `;then id`, `;do id`, `;{ id;}`: directly behind the separator, as no sentence has them.
            if lead == 1 && self.is_glued && is_keyword(raw) {
                is_compound = true;
                continue;
            }
            let found = self.command(marks);
            // `flock /tmp/x curl ..`, `chroot / id`
            if prefixed && found.is_none() && shape::is_path(self.lexer.text()) {
                continue;
            }
            let (command, is_pathed) = found?;
            if command.group == Group::Prefix || command.runs_arguments && self.runs_next() {
                prefixed = true;
                // `x;timeout 5 sh`, directly behind the separator.
                is_compound |= self.is_glued;
                continue;
            }
            let start = token.span.start as usize;
            // A variable that the text sets may hold the arguments too.
            self.by_variable = marks.has(Marks::VARIABLE) && !self.lexer.text().is_empty();
            let mut call = Call::new(command.group, start, token.span.end as usize);
            call.is_distinctive = command.is_distinctive;
            call.is_compound = is_compound;
            call.is_listed = command.is_listed;
            if prefixed {
                call.note(PREFIXED);
            }
            if is_pathed {
                call.note(PATHED);
            }
            note_marks(&mut call, marks);
            return self.arguments(command, call);
        }
    }

    /// What is read is all of `$(..)`, and nothing parts it from the sign.
    fn is_substituted(&self) -> bool {
        let before = &self.text[..self.start];
        self.sign == Sign::Substitution
            && self.is_glued
            && before.ends_with(b"$(")
            && self.text.get(self.lexer.position()) == Some(&b')')
    }

    /// Options, numbers and assignments, and a command after them: the lexer is put before that one.
    fn runs_next(&mut self) -> bool {
        let begun = self.lexer.clone();
        for _ in 0..LEAD_WORDS_MAX {
            let before = self.lexer.clone();
            let Some(Token { kind: TokenKind::Word(marks), span }) = self.lexer.next() else { break };
            self.words += WORD_TOKENS;
            let is_option =
                matches!(shape::of(self.lexer.text(), marks, false), Shape::Option | Shape::Number)
                    || Variables::assignment(span.of(self.text)).is_some();
            if !is_option {
                let runs = self
                    .command(marks)
                    .is_some_and(|(command, _)| !command.is_word || command.group != Group::Delay);
                self.lexer = if runs { before } else { begun };
                return runs;
            }
        }
        self.lexer = begun;
        false
    }

    fn command(&self, marks: Marks) -> Option<(&'r Command, bool)> {
        let text = self.lexer.text();
        let name_at = text.iter().rposition(|&b| matches!(b, b'/' | b'\\')).map_or(0, |at| at + 1);
        let (folder, name) = text.split_at(name_at);
        let is_shared = self.sign != Sign::Begin && is_shared_program(text);
        let is_pathed = is_shared || is_folder_of_commands(folder);
        if !folder.is_empty() && !is_pathed {
            return None;
        }
        let command = match marks.has(Marks::GLOB) {
            // `[^\w\s]` is a class of a regular expression.
            true if !is_pathed && name.starts_with(b"[") && name.ends_with(b"]") => None,
            true => self.names.matching(name).or_else(|| {
                // `/???/??t`: the folder says that a command is meant.
                let enough = is_pathed && name.len() > 1 && name.contains(&b'?');
                enough.then(|| self.names.get(b"cat")).flatten()
            }),
            false => {
                let is_program = name.len() > 4 && name[name.len() - 4..].eq_ignore_ascii_case(b".exe");
                // A word (`calc`) is none with its ending.
                let known = self.names.get(name).filter(|known| !(is_program && known.takes.contains(&b'a')));
                // Any program of Windows, where a command follows a sign.
                let any = || self.names.get(b"*").filter(|_| is_program && self.sign != Sign::Begin);
                known.or_else(any).or_else(|| self.names.get(b"*").filter(|_| is_shared))
            }
        }?;
        let is_dot = command.name == ".";
        (!is_dot || folder.is_empty() && self.start < self.text.len()).then_some((command, is_pathed))
    }

    fn arguments(&mut self, command: &Command, mut call: Call) -> Option<Call> {
        let mut seen = Arguments::default();
        let mut redirected = false;
        while seen.count < ARGUMENTS_MAX {
            let before = self.lexer.position();
            let Some(token) = self.lexer.next() else {
                call.end = self.text.len();
                break;
            };
            match token.kind {
                TokenKind::Word(marks) => {
                    self.words += WORD_TOKENS;
                    let raw = token.span.of(self.text);
                    let word = self.lexer.text();
                    let is_target = std::mem::take(&mut redirected);
                    if marks.has(Marks::IFS) {
                        call.note(IFS);
                    }
                    if word.is_empty() && marks.has(Marks::UNCLOSED) {
                        // A quote that the application closes.
                        call.end = before;
                        break;
                    }
                    // `python -m http.server`: a module, no host.
                    let is_module = command.group == Group::Code && seen.last_option == Some(*b"-m\0\0");
                    // `runserver 0.0.0.0:8000`: where a program listens.
                    let listens = matches!(command.group, Group::Code | Group::Tool) && is_any_address(word);
                    let shape = match (is_module, listens) {
                        (true, _) => Shape::Word,
                        (_, true) => Shape::Number,
                        _ => shape::of(word, marks, command.is_windows),
                    };
                    if is_target && !seen.redirects_in && memchr::memmem::find(word, b"/dev/tcp").is_none() {
                        // `echo x > /www/x.php` puts a text where another program reads or runs it.
                        let is_written = command.group == Group::Print && shape == Shape::Path;
                        if is_written && is_from_root(word) && !word.starts_with(b"/dev/") {
                            call.note(PATH);
                            call.reaches_out = true;
                        }
                        continue;
                    }
                    call.is_prose |= shape == Shape::Word && is_of_prose(raw);
                    call.reaches_out |= shape == Shape::Path && is_from_root(word);
                    note_argument(&mut call, command, word, raw, shape, seen.last_option);
                    seen.named_command |= seen.count == 0 && self.names.get(word).is_some();
                    seen.add(shape, word, command);
                    // What has spaces between its quotes is a text that begins and ends there: no name.
                    let is_name = !raw.iter().any(u8::is_ascii_whitespace);
                    if marks.has(Marks::SPLIT) && shape != Shape::Word && shape != Shape::Option && is_name {
                        call.note(SPLIT_NAME);
                    }
                    call.end = token.span.end as usize;
                    // What follows a quote that opens here stands in the application's text.
                    if marks.has(Marks::UNCLOSED) {
                        break;
                    }
                }
                // `more <b>of` is markup.
                TokenKind::Redirect if is_tag(&self.text[token.span.start as usize..]) => {
                    call.end = token.span.start as usize;
                    call.is_prose = true;
                    break;
                }
                TokenKind::Redirect => {
                    redirected = true;
                    self.words += WORD_TOKENS;
                    seen.reads_text |= token.span.of(self.text).starts_with(b"<<");
                    seen.redirects_in |= token.span.of(self.text).contains(&b'<');
                    seen.redirects_out |= token.span.of(self.text).contains(&b'>');
                    call.end = token.span.end as usize;
                }
                // `iex(iwr ..)`: what runs what the parentheses give.
                TokenKind::Open if seen.count == 0 && command.group == Group::PowerShell => {
                    call.note(EXPANSION);
                }
                TokenKind::Open => {
                    if seen.count == 0 {
                        return None;
                    }
                }
                TokenKind::Semicolon
                | TokenKind::Pipe
                | TokenKind::Or
                | TokenKind::And
                | TokenKind::Background
                | TokenKind::Newline
                | TokenKind::Close
                | TokenKind::Comment => {
                    call.end = token.span.start as usize;
                    let rest = &self.text[call.end..];
                    call.is_closed = rest.len() <= 2 && rest.trim_ascii().len() == 1;
                    break;
                }
            }
        }
        call.arguments = seen.count;
        self.judge(command, call, &seen)
    }
}

/// Words after which the shell expects a command.
fn is_keyword(word: &[u8]) -> bool {
    const WORDS: &[&[u8]] = &[
        b"then", b"do", b"else", b"elif", b"if", b"while", b"until", b"!", b"{", b"coproc", b"command",
        b"builtin",
    ];
    WORDS.contains(&word)
}

/// `\\host\share\x.exe`: a program on another machine.
fn is_shared_program(text: &[u8]) -> bool {
    const ENDS: &[&[u8]] =
        &[b".exe", b".bat", b".cmd", b".com", b".ps1", b".vbs", b".dll", b".scr", b".hta", b".msi"];
    let end = &text[text.len().saturating_sub(4)..];
    text.starts_with(b"\\\\")
        && text.iter().filter(|b| **b == b'\\').count() >= 4
        && ENDS.iter().any(|known| end.eq_ignore_ascii_case(known))
}

/// `0.0.0.0`, `0.0.0.0:8000`
fn is_any_address(word: &[u8]) -> bool {
    match word.strip_prefix(b"0.0.0.0") {
        Some([]) => true,
        Some([b':', port @ ..]) => !port.is_empty() && port.iter().all(u8::is_ascii_digit),
        _ => false,
    }
}

/// `/tmp/x`, `C:\x`, `HKLM\Software`
fn is_from_root(path: &[u8]) -> bool {
    matches!(path, [b'/', ..] | [_, b':', ..])
        || path.get(..4).is_some_and(|head| head.eq_ignore_ascii_case(b"hklm"))
}

/// Words that join sentences, which no command takes as an argument of its own.
fn is_of_prose(word: &[u8]) -> bool {
    const WORDS: &[&[u8]] = words!("command", "prose");
    WORDS.contains(&word)
}

/// `<tag>`, `</tag>`, `<br/>`
fn is_tag(text: &[u8]) -> bool {
    let Some(name) = text.strip_prefix(b"<") else { return false };
    let name = name.strip_prefix(b"/").unwrap_or(name);
    let len = name.iter().take(16).take_while(|b| b.is_ascii_alphanumeric()).count();
    let end = &name[len..];
    len > 0
        && name[0].is_ascii_alphabetic()
        && (end.starts_with(b">") || end.starts_with(b"/>") || end.starts_with(b" /"))
}

/// `/bin/`, `/usr/local/sbin/`, `/???/`, `C:\Windows\System32\`, `bin/`
fn is_folder_of_commands(folder: &[u8]) -> bool {
    let Some(folder) = folder.strip_suffix(b"/").or(folder.strip_suffix(b"\\")) else { return false };
    let last = folder.rsplit(|&b| matches!(b, b'/' | b'\\')).next().unwrap_or_default();
    let is_pattern = last.contains(&b'?') || last.contains(&b'*') || last.contains(&b'[');
    let known = [&b"bin"[..], b"sbin", b"system32", b"v1.0", b"syswow64", b"32"];
    is_pattern && last.len() <= 16 || known.iter().any(|name| last.eq_ignore_ascii_case(name))
}
