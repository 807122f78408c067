//! Patterns that are attacks by themselves, wherever they stand.

use memchr::memmem;
use portcullis_types::Span;

use super::options::is_option_alone;
use super::{
    ASSEMBLED_NAME, CMD_VARIABLE, CMDLET, COMPUTED, DOTNET, FORMULA, HERE_STRING, LOOP, OPTION_INJECTION,
    POWERSHELL_DOWNLOAD, REVERSE_SHELL, SHELLSHOCK, SPREADSHEET, TERMINAL, VARIABLE,
};
use crate::detectors::formula::{self, Reach};
use crate::detectors::purpose;
use crate::{Class, Found, Input, Location, Place};

/// Bytes of the body of a function that are searched.
const BODY_BYTES_MAX: usize = 64;

pub(super) fn detect(input: &Input<'_>, found: &mut Found<'_>) {
    let text = input.text;
    if input.groups.has(b'{') && input.groups.has(b'(') {
        shellshock(text, found);
    }
    if input.groups.has(b'/')
        && memmem::find(text, b"/dev/").is_some()
        && let Some(at) = memmem::find(text, b"/dev/tcp/").or_else(|| memmem::find(text, b"/dev/udp/"))
    {
        // Read or written by a redirection.
        let before = text[..at].trim_ascii_end();
        if matches!(before.last(), Some(b'<' | b'>' | b'&' | b'.')) {
            found.add(REVERSE_SHELL, Span::new(at.saturating_sub(2), text.len().min(at + 40)));
        }
    }
    if input.groups.has(b'(') {
        powershell(text, found);
        if input.groups.has(b'+') {
            called_text(text, found);
        }
        if input.groups.has(b'%') {
            cmd_loop(text, found);
        }
    }
    option(text, found);
    let is_alone = || input.location.place.is_value() && is_option_alone(text);
    let is_of_request =
        matches!(input.location.place, Place::Query | Place::Form | Place::Json | Place::MultipartField);
    if is_of_request && input.groups.has(b'-') && is_alone() {
        let row = takes_options(input.location).then_some("options");
        found.add_unless(OPTION_INJECTION, Span::new(0, text.len()), row);
    }
    if input.location.place != Place::FileContent {
        let span = dotnet(text).map(|span| (DOTNET, span));
        let cut = if input.groups.has(b'~') { cmd_variable(text) } else { None };
        let cut = cut.or_else(|| if input.groups.has(b'$') { bash_variable(text) } else { None });
        let here = if input.groups.has(b'<') { here_string(text) } else { None };
        let others = [cut.map(|span| (CMD_VARIABLE, span)), here.map(|span| (HERE_STRING, span))];
        for (kind, span) in span.into_iter().chain(others.into_iter().flatten()) {
            found.add(kind, span);
        }
    }
    if input.groups.has(b'$') {
        computed(text, found);
        powershell_variable(text, found);
    }
    if input.groups.has(b'|') {
        spreadsheet(text, found);
    }
    if input.groups.has(b'(')
        && input.groups.has(b'"')
        && input.location.place.is_value()
        && let Some(reach) = formula::reach(text)
    {
        let span = Span::new(0, text.len());
        match reach == Reach::Loads && purpose::takes_cells(input.location) {
            true => found.suppress(FORMULA, span, "formulas"),
            false => found.mention(FORMULA, span),
        }
    }
    if input.groups.has(0x1b) && text.len() <= TERMINAL_BYTES_MAX {
        terminal(text, found);
    }
}

/// `[Diagnostics.Process]::Start('calc')`, `New-Object Net.Sockets.TCPClient(..)`: PowerShell calls a type of
/// .NET that reaches processes, files, other machines or code.
fn dotnet(text: &[u8]) -> Option<Span> {
    const SPACES: &[&[u8]] =
        &[b"system.", b"net.", b"io.", b"diagnostics.", b"reflection.", b"management.", b"microsoft."];
    const TYPES: &[&[u8]] = words!("command", "dotnet-types");
    let starts = |text: &[u8], start: &[u8]| {
        text.get(..start.len()).is_some_and(|head| head.eq_ignore_ascii_case(start))
    };
    let is_part = |b: &u8| b.is_ascii_alphanumeric() || *b == b'.';
    for at in memmem::find_iter(text, b"]::").take(16) {
        let len = text[..at].iter().rev().take(TYPE_BYTES_MAX).take_while(|b| is_part(b)).count();
        let name = &text[at - len..at];
        let last = name.rsplit(|b| *b == b'.').next().unwrap_or_default();
        let is_opened = text[..at - len].last() == Some(&b'[');
        let known = SPACES.iter().any(|space| starts(name, space))
            || TYPES.iter().any(|known| last.eq_ignore_ascii_case(known));
        let member =
            text[at + 3..].iter().take(TYPE_BYTES_MAX).take_while(|b| b.is_ascii_alphanumeric()).count();
        if is_opened && known && member > 0 && text.get(at + 3 + member) == Some(&b'(') {
            return Some(Span::new(at - len - 1, at + 3 + member));
        }
    }
    const MAKES: &[u8] = b"-object";
    for at in memchr::memchr_iter(b'-', text).take(64) {
        let before = &text[..at];
        if !starts(&text[at..], MAKES)
            || !before.last_chunk::<3>().is_some_and(|new| new.eq_ignore_ascii_case(b"new"))
        {
            continue;
        }
        let rest = text[at + MAKES.len()..].trim_ascii_start();
        // `New-Object -ComObject WScript.Shell`
        if starts(rest, b"-com") {
            return Some(Span::new(at - 3, text.len().min(at + 40)));
        }
        let rest = if starts(rest, b"-typename") { rest[9..].trim_ascii_start() } else { rest };
        let name = rest.strip_prefix(b"('").or(rest.strip_prefix(b"(\"")).unwrap_or(rest);
        if SPACES.iter().any(|space| starts(name, space)) {
            return Some(Span::new(at - 3, text.len().min(at + 40)));
        }
    }
    None
}

/// No name of a type or a member is longer.
const TYPE_BYTES_MAX: usize = 64;

/// `who%x:~0,1%ami`: cmd puts a part of a variable into a word.
fn cmd_variable(text: &[u8]) -> Option<Span> {
    for at in memmem::find_iter(text, b":~").take(16) {
        let name =
            text[..at].iter().rev().take(32).take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count();
        let start = (at - name).checked_sub(1)?;
        let sign = text[start];
        let rest = &text[at + 2..];
        let len = rest.iter().take(12).take_while(|b| b.is_ascii_digit() || b"-,".contains(b)).count();
        let end = at + 2 + len;
        let is_part = matches!(sign, b'%' | b'!') && name > 0 && len > 0 && text.get(end) == Some(&sign);
        let is_letter = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphabetic);
        if is_part && (is_letter(text[..start].last()) || is_letter(text.get(end + 1))) {
            return Some(Span::new(start, end + 1));
        }
    }
    None
}

/// `cat${PATH:0:1}etc`: a shell puts a part of a variable into a word.
fn bash_variable(text: &[u8]) -> Option<Span> {
    for at in memmem::find_iter(text, b"${").take(16) {
        let inner = &text[at + 2..];
        let name = inner.iter().take(32).take_while(|b| b.is_ascii_uppercase() || **b == b'_').count();
        let rest = &inner[name..];
        let len = rest.iter().take(12).take_while(|b| b.is_ascii_digit() || **b == b':').count();
        let is_part =
            name > 1 && rest.starts_with(b":") && rest[..len].iter().filter(|b| **b == b':').count() == 2;
        let end = at + 2 + name + len;
        let is_letter = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphabetic);
        // `app-${SHA:0:7}.zip` parts a name from a version: a word goes on at both ends.
        if is_part
            && text.get(end) == Some(&b'}')
            && is_letter(at.checked_sub(1).map(|i| &text[i]))
            && is_letter(text.get(end + 1))
        {
            return Some(Span::new(at, end + 1));
        }
    }
    None
}

/// `$(rev<<<'di')`: a substitution is given a text, so that its output is a command. `;rev<<<txt.a`: so is
/// what touches a separator.
fn here_string(text: &[u8]) -> Option<Span> {
    memmem::find_iter(text, b"<<<").take(16).find_map(|sign| {
        let before = &text[sign.saturating_sub(HERE_BYTES_MAX)..sign];
        let name = before.iter().rev().take_while(|b| b.is_ascii_lowercase() || b.is_ascii_digit()).count();
        let (lead, name) = before.split_at(before.len() - name);
        let is_glued = name.len() > 1 && matches!(lead.last(), Some(b';' | b'|' | b'&' | b'`'));
        let opens = memmem::rfind(before, b"$(").map(|at| &before[at + 2..]).filter(|inner| {
            inner.first().is_some_and(u8::is_ascii_lowercase) && memchr::memchr2(b')', b'\n', inner).is_none()
        });
        let is_one = is_glued || opens.is_some();
        (is_one && text.get(sign + 3).is_some_and(|b| *b != b'<')).then(|| Span::new(sign, sign + 3))
    })
}

/// Bytes of a command before its text that are read.
const HERE_BYTES_MAX: usize = 96;

/// `$((71*13))` and no more than a sign or quote around it: scripts compute with variables.
fn computed(text: &[u8], found: &mut Found<'_>) {
    let is_around = |b: &u8| b.is_ascii_whitespace() || b"'\";|&".contains(b);
    let from = text.iter().take_while(|b| is_around(b)).count();
    let Some(inner) = text[from..].strip_prefix(b"$((") else { return };
    let len = inner.iter().take_while(|b| b.is_ascii_digit() || b" +-*/%".contains(b)).count();
    let (sum, rest) = inner.split_at(len);
    let is_sum = sum.trim_ascii().iter().any(|b| b"+-*/%".contains(b)) && sum.iter().any(u8::is_ascii_digit);
    let Some(rest) = rest.strip_prefix(b"))").filter(|_| is_sum) else { return };
    if rest.iter().all(is_around) {
        found.add(COMPUTED, Span::new(from, text.len() - rest.len()));
    }
}

/// `;$env:USERNAME`, `$($env:PATH)`: what PowerShell prints where a command is asked for.
fn powershell_variable(text: &[u8], found: &mut Found<'_>) {
    let Some(at) = memmem::find(text, b"$env:").or_else(|| memmem::find(text, b"$Env:")) else { return };
    let before = text[..at].trim_ascii();
    let is_sign = |b: &u8| b";|&('\"$`".contains(b);
    let name = text[at + 5..].iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count();
    let after = text[at + 5 + name..].trim_ascii();
    if name > 1
        && !before.is_empty()
        && before.last().is_some_and(is_sign)
        && before.len() <= TEXT_BYTES_MAX
        && after.iter().all(|b| b";|&)'\"#".contains(b))
    {
        found.add(VARIABLE, Span::new(at, at + 5 + name));
    }
}

/// `=cmd|'/C calc'!A0`: a program's name, its arguments in quotes, and a cell, in a value that begins as
/// formulas do.
fn spreadsheet(text: &[u8], found: &mut Found<'_>) {
    if !matches!(text.trim_ascii_start().first(), Some(b'=' | b'+' | b'-' | b'@' | b'"' | b';' | b',')) {
        return;
    }
    for at in memmem::find_iter(text, b"|'").take(8) {
        let Some(end) = memmem::find(&text[at + 2..], b"'!") else { return };
        let name = text[..at].iter().rev().take_while(|b| b.is_ascii_alphanumeric()).count();
        if name > 0 && text.get(at + 2 + end + 2).is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'\'') {
            found.add(SPREADSHEET, Span::new(at - name, at + 2 + end + 2));
            return;
        }
    }
}

/// A longer text is a log of a program that draws.
const TERMINAL_BYTES_MAX: usize = 256;

/// `ESC [ 2 A`: moves the cursor of a terminal that shows the text, so that what is there is not what
/// is seen. Colours (`m`) do not.
fn terminal(text: &[u8], found: &mut Found<'_>) {
    for at in memchr::memchr_iter(0x1b, text).take(16) {
        let Some(rest) = text[at + 1..].strip_prefix(b"[") else { continue };
        let digits = rest.iter().take(8).take_while(|b| b.is_ascii_digit() || **b == b';').count();
        if rest.get(digits).is_some_and(|b| b.is_ascii_alphabetic() && !matches!(b, b'm' | b'K')) {
            found.add(TERMINAL, Span::new(at, at + 3 + digits));
            return;
        }
    }
}

/// `() { ...; }; command` at the start of a value, or after the quote or `=` of an assignment.
fn shellshock(text: &[u8], found: &mut Found<'_>) {
    for at in memchr::memchr_iter(b'(', text).take(16) {
        let before = text[..at].trim_ascii_end().last();
        if !before.is_none_or(|b| matches!(b, b'\'' | b'"' | b'=')) {
            continue;
        }
        let rest = text[at + 1..].trim_ascii_start();
        let Some(rest) = rest.strip_prefix(b")") else { continue };
        let Some(body) = rest.trim_ascii_start().strip_prefix(b"{") else { continue };
        let window = &body[..body.len().min(BODY_BYTES_MAX)];
        let Some(end) = memchr::memchr(b'}', window) else { continue };
        let is_command =
            memchr::memchr2(b';', b'_', &window[..end]).is_some() || window[..end].trim_ascii().is_empty();
        let after = body[end + 1..].trim_ascii_start();
        if is_command && matches!(after.first(), Some(b';' | b'>' | b'&' | b'|')) {
            found.add(SHELLSHOCK, Span::new(at, text.len().min(at + 80)));
            return;
        }
    }
}

/// Methods of .NET that PowerShell one-liners load code with; they are called on an object or type in
/// parentheses or brackets.
const DOWNLOADS: &[&[u8]] =
    &[b".downloadstring(", b".downloadfile(", b".downloaddata(", b"::frombase64string("];

/// `& ("i"+"ex") "whoami"`, `. ('w'+'hoami')`: PowerShell calls what texts are joined to.
fn called_text(text: &[u8], found: &mut Found<'_>) {
    for at in memchr::memchr_iter(b'(', text).take(16) {
        let before = text[..at].trim_ascii_end();
        let Some((b'&' | b'.', before)) = before.split_last() else { continue };
        let begins =
            before.trim_ascii_end().last().is_none_or(|b| matches!(b, b';' | b'|' | b'&' | b'"' | b'\''));
        let rest = text[at + 1..].trim_ascii_start();
        let Some((&quote @ (b'"' | b'\''), inner)) = rest.split_first() else { continue };
        let Some(end) = memchr::memchr(quote, &inner[..inner.len().min(TEXT_BYTES_MAX)]) else { continue };
        let joint = inner[end + 1..].trim_ascii_start().strip_prefix(b"+").map(<[u8]>::trim_ascii_start);
        if begins && joint.is_some_and(|next| next.first() == Some(&quote)) {
            found.add(ASSEMBLED_NAME, Span::new(at, text.len().min(at + 40)));
            found.add(CMDLET, Span::new(at, text.len().min(at + 40)));
            return;
        }
    }
}

/// `for /f %i in ('whoami') do ...`
fn cmd_loop(text: &[u8], found: &mut Found<'_>) {
    for at in memchr::memchr_iter(b'%', text).take(16) {
        let head = text[at.saturating_sub(LOOP_BYTES_MAX)..at].to_ascii_lowercase();
        let Some(start) = memmem::rfind(&head, b"for /f") else { continue };
        // The variable is a letter; in a file of commands two signs stand before it.
        let [letter, rest @ ..] = &text[at + 1..] else { continue };
        let rest = rest.trim_ascii_start();
        if !letter.is_ascii_alphabetic() {
            continue;
        }
        let is_in = rest.get(..2).is_some_and(|word| word.eq_ignore_ascii_case(b"in"));
        let list = rest.get(2..).unwrap_or_default().trim_ascii_start();
        if is_in && matches!(list, [b'(', b'\'' | b'`', ..]) {
            found.add(LOOP, Span::new(at - (head.len() - start), text.len().min(at + 40)));
            return;
        }
    }
}

/// Bytes of the options of the loop that are searched: `"delims="`.
const LOOP_BYTES_MAX: usize = 64;

/// Bytes of the first of the texts that are searched.
const TEXT_BYTES_MAX: usize = 32;

fn powershell(text: &[u8], found: &mut Found<'_>) {
    for at in memchr::memchr2_iter(b'.', b':', text).take(64) {
        let rest = &text[at..];
        if !rest.get(1).is_some_and(|b| matches!(b, b'd' | b'D' | b':')) {
            continue;
        }
        let is_one =
            |name: &&&[u8]| rest.len() >= name.len() && rest[..name.len()].eq_ignore_ascii_case(name);
        let Some(name) = DOWNLOADS.iter().find(is_one) else { continue };
        let before = text[..at].last();
        let called_so = matches!(before, Some(b')' | b']'))
            || before.is_some_and(|b| b.is_ascii_alphanumeric()) && text.contains(&b'$');
        if called_so {
            found.add(POWERSHELL_DOWNLOAD, Span::new(at, at + name.len()));
            return;
        }
    }
}

/// Options whose value is run as a command, or written to: of ssh, git, tar, rsync, curl, wget, zip,
/// sendmail, psql, man.
const OPTIONS: &[&[u8]] = words!("command", "options");

/// The field is for options and texts that show them.
fn takes_options(location: Location<'_>) -> bool {
    purpose::is_search(location)
        || purpose::takes_arguments(location)
        || purpose::takes_password(location)
        || purpose::may_mention(Class::Command, location)
}

fn option(text: &[u8], found: &mut Found<'_>) {
    // What git takes for the address of a repository: `ext::sh -c id`.
    if text
        .trim_ascii_start()
        .strip_prefix(b"ext::")
        .is_some_and(|line| line.first().is_some_and(u8::is_ascii_graphic))
    {
        found.add(OPTION_INJECTION, Span::new(0, text.len()));
        return;
    }
    // `-T/etc/passwd`, `-e/bin/sh 10.0.0.1`, `-Fx=@/etc/passwd`: an option and its path without a space begin
    // the value.
    if let [b'-', letter, rest @ ..] = text.trim_ascii_start()
        && letter.is_ascii_alphabetic()
    {
        let name = rest.iter().take(16).take_while(|b| b.is_ascii_alphanumeric()).count();
        let path = rest[name..].strip_prefix(b"=@").unwrap_or(rest);
        let roots = [
            &b"/etc/"[..],
            b"/bin/",
            b"/tmp/",
            b"/var/",
            b"/usr/",
            b"/proc/",
            b"/dev/",
            b"/root/",
            b"/home/",
        ];
        if roots.iter().any(|root| path.starts_with(root)) {
            found.add(OPTION_INJECTION, Span::new(0, text.len().min(80)));
            return;
        }
    }
    // What `find` runs: `-exec id ;`
    let whole = text.trim_ascii();
    let is_run = [&b"-exec "[..], b"-execdir ", b"-ok "].iter().any(|start| whole.starts_with(start));
    if is_run && matches!(whole.last(), Some(b';' | b'+' | b'}')) {
        found.add(OPTION_INJECTION, Span::new(0, text.len()));
        return;
    }
    for at in memchr::memchr_iter(b'-', text).take(32) {
        let before = at.checked_sub(1).map(|i| text[i]);
        if before.is_some_and(|b| !b.is_ascii_whitespace() && !matches!(b, b'"' | b'\'')) {
            continue;
        }
        let rest = &text[at..];
        if !rest.get(1).is_some_and(|b| matches!(b, b'-' | b'o' | b'O')) {
            continue;
        }
        let is_one = |name: &&[u8]| rest.len() > name.len() && rest[..name.len()].eq_ignore_ascii_case(name);
        // An option that writes counts only where the value begins with it.
        let writes = |start: &[u8]| {
            let target = rest.strip_prefix(start).map(<[u8]>::trim_ascii_start);
            target.is_some_and(|target| matches!(target.first(), Some(b'/' | b'.' | b'~')))
        };
        let is_write = text[..at].trim_ascii().is_empty()
            && [&b"--output="[..], b"--output-document=", b"-o", b"-O", b"--output "]
                .iter()
                .any(|start| writes(start));
        if is_write || OPTIONS.iter().any(is_one) && text[..at].trim_ascii().len() <= 64 {
            found.add(OPTION_INJECTION, Span::new(at, text.len().min(at + 80)));
            return;
        }
    }
}
