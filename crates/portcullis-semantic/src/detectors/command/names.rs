use crate::detectors::word_table::WordTable;

/// The longest name that is looked up.
pub(super) const NAME_BYTES_MAX: usize = 32;

/// `data/shell-commands.tsv`, ready to be asked.
#[derive(Debug)]
pub(in crate::detectors) struct Names {
    list: Vec<Command>,
    by_name: WordTable<usize>,
    /// Of each command in the list: the bytes of its name, see [`letters`].
    letters: Vec<u64>,
}

/// A command.
#[derive(Debug)]
pub(super) struct Command {
    pub name: &'static str,
    pub group: Group,
    /// Letters for the arguments that make it a call, see the file.
    pub takes: &'static [u8],
    pub subcommands: &'static str,
    /// No word of a language.
    pub is_distinctive: bool,
    /// Also a word, or a name that fields have.
    pub is_word: bool,
    /// A name that stands in lists of fields.
    pub is_listed: bool,
    /// Of Windows.
    pub is_windows: bool,
    /// It runs the command that its arguments are.
    pub runs_arguments: bool,
    any_case: bool,
}

/// The group of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Group {
    Recon,
    List,
    Read,
    Net,
    Shell,
    Code,
    Delay,
    System,
    Print,
    Prefix,
    PowerShell,
    Tool,
}

impl Names {
    pub fn new() -> Names {
        let (mut list, mut by_name) = (Vec::new(), Vec::new());
        for line in command_lines() {
            let mut fields = line.split('\t');
            let mut field = || fields.next().unwrap_or_default();
            let (name, group, takes, flags, subcommands) = (field(), field(), field(), field(), field());
            let group = match group {
                "recon" => Group::Recon,
                "list" => Group::List,
                "read" => Group::Read,
                "net" => Group::Net,
                "shell" => Group::Shell,
                "code" => Group::Code,
                "delay" => Group::Delay,
                "system" => Group::System,
                "print" => Group::Print,
                "prefix" => Group::Prefix,
                "powershell" => Group::PowerShell,
                _ => Group::Tool,
            };
            by_name.push((name.as_bytes(), list.len()));
            list.push(Command {
                name,
                group,
                takes: takes.as_bytes(),
                subcommands,
                is_distinctive: flags.contains('d'),
                is_word: flags.contains('f'),
                is_listed: flags.contains('l'),
                is_windows: flags.contains('w'),
                runs_arguments: flags.contains('r'),
                any_case: flags.contains('i'),
            });
        }
        let letters = list.iter().map(|command: &Command| letters(command.name.as_bytes())).collect();
        Names { list, by_name: WordTable::new(by_name), letters }
    }

    /// The command called `name`. Windows does not care for case, POSIX does, but a name all in capitals is
    /// no word either.
    pub(super) fn get(&self, name: &[u8]) -> Option<&Command> {
        let name = name.strip_prefix(b"@").unwrap_or(name);
        let may_have_suffix = matches!(name.last(), Some(b'e' | b'E' | b'm' | b'M' | b'd' | b'D'));
        if !may_have_suffix && !self.by_name.may_have(name) {
            return None;
        }
        let mut lower = [0; NAME_BYTES_MAX];
        let lower = lower.get_mut(..name.len())?;
        lower.copy_from_slice(name);
        lower.make_ascii_lowercase();
        let bare = [&b".exe"[..], b".com", b".cmd"].iter().find_map(|end| lower.strip_suffix(*end));
        let plain = bare.unwrap_or(lower);
        let command = &self.list[self.by_name.get(plain)?];
        (command.any_case || bare.is_some() || lower == name).then_some(command)
    }

    /// True if `text` begins as a command line does: with a known command, or one after an assignment or a
    /// path.
    pub fn is_command_line(&self, text: &[u8]) -> bool {
        let mut words = text.split(|b| {
            b.is_ascii_whitespace() || matches!(b, b';' | b'|' | b'&' | b'`' | b'(' | b'$' | b'{' | b',')
        });
        words.by_ref().filter(|word| !word.is_empty()).take(2).any(|word| {
            let name = &word[word.iter().rposition(|&b| matches!(b, b'/' | b'\\')).map_or(0, |at| at + 1)..];
            self.get(name).is_some_and(|command| command.group != Group::PowerShell)
        })
    }

    /// True if `text` begins with a command that tells about the system, reads or lists files, reaches other
    /// machines or runs what it is given: those that a source of an application seldom starts.
    pub fn asks_system(&self, text: &[u8]) -> bool {
        let text = text.trim_ascii_start();
        let ends = |b: &u8| !(b.is_ascii_alphanumeric() || b"_-./\\".contains(b));
        let word = &text[..text.iter().position(ends).unwrap_or(text.len())];
        let name = &word[word.iter().rposition(|b| matches!(b, b'/' | b'\\')).map_or(0, |at| at + 1)..];
        self.get(name).is_some_and(|command| {
            use Group::{Code, List, Net, Read, Recon, Shell};
            matches!(command.group, Recon | List | Read | Net | Shell | Code)
        })
    }

    /// True for the name of a command that tells about the system.
    pub fn is_recon(&self, name: &[u8]) -> bool {
        self.get(name).is_some_and(|command| command.group == Group::Recon)
    }

    /// False if no command begins at `text`: a plain word stands there that is none.
    pub(super) fn may_begin(&self, text: &[u8]) -> bool {
        let text = text.trim_ascii_start();
        // A name, or what names are made up of.
        let begins = |b: &u8| b.is_ascii_alphanumeric() || b"_/.\\'\"$`({%^@[?*<>!:+~".contains(b);
        match text {
            [quote @ (b'\'' | b'"'), next, ..] if next == quote || begins(next) => {}
            [b'\'' | b'"', ..] | [] => return false,
            [first, ..] if begins(first) => {}
            _ => return false,
        }
        let is_plain_byte = |b: &&u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
        let len = text.iter().take(NAME_BYTES_MAX).take_while(is_plain_byte).count();
        let ends =
            |b: &u8| b.is_ascii_whitespace() || matches!(b, b';' | b'|' | b'&' | b')' | b',' | b':' | b'!');
        let is_plain = len > 0 && text.get(len).is_none_or(ends);
        !is_plain || self.get(&text[..len]).is_some()
    }

    /// The command that a pattern with `?`, `*` or `[...]` could mean, if the pattern says enough.
    pub(super) fn matching(&self, pattern: &[u8]) -> Option<&Command> {
        let fixed = pattern.iter().filter(|b| b.is_ascii_alphanumeric()).count();
        let open = pattern.contains(&b'*');
        // `R&D?`: one letter and a sign of the sentence.
        let is_asked = pattern.len() == 2 && pattern[1] == b'?';
        if pattern.len() > NAME_BYTES_MAX || fixed == 0 || open && fixed < 2 || is_asked {
            return None;
        }
        // The bytes that stand for themselves tell most names apart.
        let fixed = literals(pattern);
        let named = self.list.iter().zip(&self.letters).filter(|(command, letters)| {
            fixed & !**letters == 0
                && !matches!(command.group, Group::Prefix | Group::PowerShell | Group::Tool)
        });
        named.map(|(command, _)| command).find(|command| matches_glob(pattern, command.name.as_bytes()))
    }
}

/// The lines of the file that name commands.
fn command_lines() -> impl Iterator<Item = &'static str> {
    include_str!("../../../data/shell-commands.tsv")
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
}

/// Names that a field for commands may hold alone.
pub(super) fn bare_hints() -> impl Iterator<Item = &'static str> {
    command_lines()
        .map(|line| line.split('\t'))
        .filter_map(|mut fields| Some((fields.next()?, fields.next()?)))
        .filter(|(_, group)| matches!(*group, "recon" | "list"))
        .map(|(name, _)| name)
}

/// The names, for the gate. One letter is no hint.
pub(super) fn hint_words() -> impl Iterator<Item = &'static str> {
    command_lines()
        .map(|line| line.split('\t'))
        .filter_map(|mut fields| Some((fields.next()?, fields.next()?)))
        .filter(|(name, group)| name.len() > 1 && *group != "prefix" && *group != "tool")
        .map(|(name, _)| name)
}

/// A set of bytes: letters of any case as one, digits, and all else together.
fn letters(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |set, b| set | 1 << letter(*b))
}

fn letter(b: u8) -> u32 {
    match b.to_ascii_lowercase() {
        b @ b'a'..=b'z' => u32::from(b - b'a'),
        b @ b'0'..=b'9' => 26 + u32::from(b - b'0'),
        _ => 36,
    }
}

/// The bytes of a pattern that stand for themselves. After a bracket that does not end, the bracket does,
/// too.
fn literals(pattern: &[u8]) -> u64 {
    let mut set = 0;
    let mut at = 0;
    while let Some(&b) = pattern.get(at) {
        match b {
            b'*' | b'?' => {}
            b'[' => match memchr::memchr(b']', &pattern[at..]) {
                Some(end) => at += end,
                None => set |= 1 << letter(b),
            },
            b => set |= 1 << letter(b),
        }
        at += 1;
    }
    set
}

/// Shell patterns: `*` any bytes, `?` one byte, `[...]` one byte of any kind. Bounded by the lengths, which
/// are small.
fn matches_glob(pattern: &[u8], name: &[u8]) -> bool {
    let (mut p, mut n) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        let class =
            (pattern.get(p) == Some(&b'[')).then(|| pattern[p..].iter().position(|&b| b == b']')).flatten();
        let step = match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, n));
                p += 1;
                continue;
            }
            Some(b'?') => Some(1),
            Some(b'[') => {
                class.filter(|&end| is_in_class(&pattern[p + 1..p + end], name[n])).map(|end| end + 1)
            }
            Some(&b) if b.eq_ignore_ascii_case(&name[n]) => Some(1),
            _ => None,
        };
        match (step, star) {
            (Some(len), _) => {
                p += len;
                n += 1;
            }
            (None, Some((at, from))) => {
                star = Some((at, from + 1));
                p = at + 1;
                n = from + 1;
            }
            (None, None) => return false,
        }
    }
    pattern[p..].iter().all(|&b| b == b'*')
}

fn is_in_class(class: &[u8], b: u8) -> bool {
    let (class, wanted) = match class {
        [b'!' | b'^', rest @ ..] => (rest, false),
        rest => (rest, true),
    };
    let in_range = class.windows(3).any(|w| w[1] == b'-' && (w[0]..=w[2]).contains(&b));
    (in_range || class.contains(&b)) == wanted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        for (pattern, name) in
            [("c?t", "cat"), ("c*t", "cat"), ("ca[t]", "cat"), ("[a-c]at", "cat"), ("*hoami", "whoami")]
        {
            assert!(matches_glob(pattern.as_bytes(), name.as_bytes()), "{pattern} {name}");
        }
        assert!(
            !matches_glob(b"c?t", b"cut2")
                && !matches_glob(b"[!c]at", b"cat")
                && !matches_glob(b"ca[", b"cat")
        );
    }

    #[test]
    fn names() {
        let names = Names::new();
        assert_eq!(names.get(b"cat").map(|c| c.group), Some(Group::Read));
        assert_eq!(names.get(b"Cmd.EXE").map(|c| c.name), Some("cmd"));
        assert!(names.get(b"Cat").is_none() && names.get(b"nothing").is_none());
        assert_eq!(names.matching(b"wh?am?").map(|c| c.name), Some("whoami"));
        assert!(names.matching(b"???").is_none() && names.matching(b"*").is_none());
        assert_eq!(names.matching(b"[p]i[n]g").map(|c| c.name), Some("ping"));
        assert_eq!(names.matching(b"ne*at").map(|c| c.name), Some("netstat"));
        assert!(names.matching(b"c[a").is_none() && names.matching(b"z?t9").is_none());
    }
}
