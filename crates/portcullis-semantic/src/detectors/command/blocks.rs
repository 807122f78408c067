//! Blocks before a command: conditions, loops and functions of PowerShell, cmd and shells, directly behind
//! the separator.
//!
//! `x;if(1){gc c:\x}`, `x&if exist c:\x whoami`, `x;f(){ id;};f`: the word after the separator is no command,
//! but what the block runs is one. It is read as any other command is.

/// Bytes of what stands before the command, and of the block.
pub(super) const BLOCK_BYTES_MAX: usize = 160;

/// A command in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Block {
    /// Bytes before the command.
    pub lead: usize,
    /// The end of the block, if a brace ends it.
    pub end: Option<usize>,
    /// It may be a part of a format or an address: `%{date}`, `;{id}`.
    pub is_format: bool,
    /// The block is the body of a shell's function, which no other language writes so.
    pub is_function: bool,
}

/// The block with which `line` begins, the text after a separator.
pub(super) fn block(line: &[u8]) -> Option<Block> {
    let line = &line[..line.len().min(BLOCK_BYTES_MAX)];
    match line.first()? {
        b'&' | b'.' | b'%' | b'?' | b'{' | b'a'..=b'z' | b'A'..=b'Z' | b'_' => {}
        _ => return None,
    }
    braces(line)
        .or_else(|| of_cmd(line).map(|lead| Block { lead, end: None, is_function: false, is_format: false }))
}

/// `if(1){gc x}`, `&{iwr x}`, `%{whoami}`, `icm {whoami}`, `f(){ id;}`
fn braces(line: &[u8]) -> Option<Block> {
    const CONDITIONS: &[&[u8]] = &[b"if", b"while", b"foreach", b"elseif"];
    const RUNNERS: &[&[u8]] = &[b"icm", b"invoke-command", b"start-job", b"sajb", b"foreach-object", b"try"];
    let open = memchr::memchr(b'{', line)?;
    let before = line[..open].trim_ascii_end();
    let word = before.iter().take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_')).count();
    let (word, rest) = before.split_at(word);
    let rest = rest.trim_ascii();
    let is = |list: &[&[u8]]| list.iter().any(|known| word.eq_ignore_ascii_case(known));
    let is_function = !word.is_empty() && rest == b"()" && !is(CONDITIONS);
    let is_condition = is(CONDITIONS) && rest.len() > 2 && rest.starts_with(b"(") && rest.ends_with(b")");
    let is_run = word.is_empty() && matches!(rest, b"" | b"&" | b"." | b"%" | b"?")
        || is(RUNNERS) && (rest.is_empty() || rest.eq_ignore_ascii_case(b"-scriptblock"));
    if !(is_function || is_condition || is_run) {
        return None;
    }
    // `{cat,/etc/passwd}` is a list of words.
    let inner = line[open + 1..].trim_ascii_start();
    let name = inner.iter().take_while(|b| !b.is_ascii_whitespace() && !matches!(b, b',' | b'}')).count();
    if before.is_empty() && inner.get(name) == Some(&b',') {
        return None;
    }
    let is_format = matches!(rest, b"%" | b"?") || !line.get(open + 1).is_some_and(u8::is_ascii_whitespace);
    Some(Block { lead: open + 1, end: closing(line, open), is_function, is_format })
}

/// The brace that closes the one at `open`, outside of those of variables.
fn closing(line: &[u8], open: usize) -> Option<usize> {
    let mut depth = 0usize;
    for at in memchr::memchr2_iter(b'{', b'}', line).filter(|at| *at >= open) {
        match line[at] {
            b'{' => depth += 1,
            _ => depth = depth.checked_sub(1)?,
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

/// `if exist c:\x whoami`, `for %i in (1) do ping ..`, `call whoami`: the bytes before the command.
fn of_cmd(line: &[u8]) -> Option<usize> {
    let starts = [&b"call "[..], b"for ", b"if "]
        .iter()
        .any(|start| line.get(..start.len()).is_some_and(|head| head.eq_ignore_ascii_case(start)));
    if !starts {
        return None;
    }
    let mut words = Words { line, at: 0 };
    let first = words.next()?;
    let is = |word: &[u8], known: &str| word.eq_ignore_ascii_case(known.as_bytes());
    if is(first, "call") {
        return words.rest();
    }
    if is(first, "for") {
        let mut next = words.next()?;
        while matches!(next, [b'/', _]) || next.starts_with(b"\"") {
            next = words.next()?;
        }
        let is_variable =
            matches!(next, [b'%', letter] | [b'%', b'%', letter] if letter.is_ascii_alphabetic());
        if !is_variable || !is(words.next()?, "in") {
            return None;
        }
        // The list, which may have spaces in it.
        while !is(words.next()?, "do") {}
        return words.rest();
    }
    if !is(first, "if") {
        return None;
    }
    let mut next = words.next()?;
    while is(next, "/i") || is(next, "not") {
        next = words.next()?;
    }
    if ["exist", "defined", "errorlevel"].iter().any(|known| is(next, known)) {
        words.next()?;
    } else if memchr::memmem::find(next, b"==").is_none() {
        return None;
    }
    words.rest()
}

/// The words of a line.
struct Words<'t> {
    line: &'t [u8],
    at: usize,
}

impl<'t> Iterator for Words<'t> {
    type Item = &'t [u8];

    fn next(&mut self) -> Option<&'t [u8]> {
        let rest = &self.line[self.at..];
        let lead = rest.iter().take_while(|b| matches!(b, b' ' | b'\t')).count();
        let word = &rest[lead..];
        let len = word.iter().position(|b| matches!(b, b' ' | b'\t' | b'\n' | b'\r')).unwrap_or(word.len());
        self.at += lead + len;
        (len > 0).then(|| &word[..len])
    }
}

impl Words<'_> {
    /// The start of the next word, if there is one on the line.
    fn rest(&mut self) -> Option<usize> {
        let word = self.next()?;
        Some(self.at - word.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leads() {
        for (line, command) in [
            ("if(1){gc c:\\x}", "gc c:\\x"),
            ("if ($x) { gc x }", " gc x "),
            ("&{iwr http://a}", "iwr http://a"),
            ("%{whoami}", "whoami"),
            ("icm {whoami}", "whoami"),
            ("f(){ id;};f", " id;"),
            ("if exist c:\\x whoami", "whoami"),
            ("if not a==b whoami", "whoami"),
            ("for %i in (1) do ping x", "ping x"),
            ("for /f %i in (c:\\x) do nslookup %i", "nslookup %i"),
            ("call whoami", "whoami"),
        ] {
            let found = block(line.as_bytes());
            let inner = found.map(|found| &line[found.lead..found.end.unwrap_or(line.len())]);
            assert_eq!(inner, Some(command), "{line}");
        }
        for line in [
            "if possible",
            "for=2",
            "for the x",
            "call",
            "if(1)",
            "awk '{print $1}'",
            "b(x){c}",
            "x{y}",
            "{cat,/etc/passwd}",
        ] {
            assert_eq!(block(line.as_bytes()), None, "{line}");
        }
    }
}
