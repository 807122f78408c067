//! Pickles of Python: a walk over the opcodes of all protocols that keeps what stands on the stack.
//!
//! A program that loads a pickle calls what it calls. Neither its first bytes nor a line of it tell that; the
//! opcodes do, in whatever protocol, with frames and memo or without, as a library or a hand wrote them. What
//! stands behind the first call does not matter: it has happened by then.

use std::collections::HashMap;

use portcullis_types::Span;

/// Opcodes that are read. The sender chooses how many stand before a call: a pickle that exceeds this limit
/// or one of the next two counts as one that calls something.
const STEPS_MAX: usize = 1 << 20;
/// Values on the stack.
const DEPTH_MAX: usize = 1 << 16;
/// Values that are remembered under numbers.
const MEMO_MAX: usize = 1 << 16;
/// Bytes of the name of a module or of what is in it.
const NAME_BYTES_MAX: usize = 120;

/// A pickle, as far as it can be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pickle {
    /// It names something of a module: module and name, the first one.
    pub global: Option<(Span, Span)>,
    /// The first thing that is called and makes no plain value; the spans are empty where only running the
    /// pickle would tell its name.
    pub call: Option<(Span, Span)>,
    /// It was read to its end.
    pub is_whole: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Item {
    Mark,
    Text(Span),
    Global(Span, Span),
    Other,
}

/// True if `head` begins as a pickle does that may have more than plain values.
pub(super) fn may_begin(head: &[u8]) -> bool {
    match head {
        [0x80, 2..=5, ..] => true,
        [b'c', rest @ ..] => module_len(rest).is_some(),
        [b'(' | b'}' | b']' | b')', code, ..] => b"qpXVcS(dlUIKFNGt]})u".contains(code),
        _ => false,
    }
}

/// Reads `bytes` as a pickle from its first byte on. `None` if they are none, or one without any module.
pub(crate) fn read(bytes: &[u8]) -> Option<Pickle> {
    if !may_begin(bytes) {
        return None;
    }
    let mut reader = Reader { bytes, at: 0, stack: Vec::new(), memo: HashMap::new() };
    let mut pickle = Pickle::default();
    let mut steps = 0;
    loop {
        if steps == STEPS_MAX || reader.stack.len() > DEPTH_MAX || reader.memo.len() > MEMO_MAX {
            pickle.call.get_or_insert((Span::new(0, 0), Span::new(0, 0)));
            break;
        }
        steps += 1;
        match reader.step(&mut pickle) {
            Some(true) => {}
            Some(false) => {
                pickle.is_whole = true;
                break;
            }
            None => break,
        }
    }
    let has_protocol = bytes[0] == 0x80 && pickle.is_whole;
    (pickle.call.is_some() || pickle.is_whole && pickle.global.is_some() || has_protocol).then_some(pickle)
}

struct Reader<'b> {
    bytes: &'b [u8],
    at: usize,
    stack: Vec<Item>,
    memo: HashMap<u32, Item>,
}

impl Reader<'_> {
    /// Reads one opcode. `Some(false)` at the end, `None` where the bytes are no pickle.
    fn step(&mut self, pickle: &mut Pickle) -> Option<bool> {
        let code = *self.bytes.get(self.at)?;
        self.at += 1;
        match code {
            b'.' => return (!self.stack.is_empty()).then_some(false),
            b'(' => self.push(Item::Mark)?,
            b'0' => {
                self.pop()?;
            }
            b'1' => self.drop_to_mark()?,
            b'2' => {
                let top = self.top()?;
                self.push(top)?;
            }
            b'F' | b'I' | b'L' | b'P' => {
                self.line()?;
                self.push(Item::Other)?;
            }
            b'S' | b'V' => {
                let line = self.line()?;
                let bytes = line.of(self.bytes);
                let quotes = usize::from(code == b'S' && bytes.len() >= 2);
                let (start, end) = (line.start as usize + quotes, line.end as usize - quotes);
                self.push(Item::Text(Span::new(start, end)))?;
            }
            b'J' => self.plain(4)?,
            b'K' => self.plain(1)?,
            b'M' => self.plain(2)?,
            b'G' => self.plain(8)?,
            b'N' | b'}' | b']' | b')' | 0x88 | 0x89 | 0x8F | 0x97 => self.push(Item::Other)?,
            b'Q' => {
                self.pop()?;
                self.push(Item::Other)?;
            }
            b'T' | b'X' => self.counted(4, true)?,
            b'B' | 0x8B => self.counted(4, false)?,
            b'U' | 0x8C => self.counted(1, true)?,
            b'C' | 0x8A => self.counted(1, false)?,
            0x8D => self.counted(8, true)?,
            0x8E | 0x96 => self.counted(8, false)?,
            b'a' => {
                self.pop()?;
                self.top()?;
            }
            b's' => {
                self.pop()?;
                self.pop()?;
                self.top()?;
            }
            b'b' => {
                self.pop()?;
                self.top()?;
            }
            b'e' | b'u' | 0x90 => {
                self.drop_to_mark()?;
                self.top()?;
            }
            b'd' | b'l' | b't' | 0x91 => {
                self.drop_to_mark()?;
                self.push(Item::Other)?;
            }
            0x85..=0x87 => {
                for _ in 0x84..code {
                    self.pop()?;
                }
                self.push(Item::Other)?;
            }
            b'c' => {
                let (module, name) = (self.line()?, self.line()?);
                self.global(pickle, module, name)?;
            }
            0x93 => {
                let (name, module) = (self.pop()?, self.pop()?);
                let none = Span::new(0, 0);
                match (module, name) {
                    (Item::Text(module), Item::Text(name)) => self.global(pickle, module, name)?,
                    (Item::Mark, _) | (_, Item::Mark) => return None,
                    _ => {
                        pickle.global.get_or_insert((none, none));
                        self.push(Item::Global(none, none))?;
                    }
                }
            }
            b'i' => {
                let (module, name) = (self.line()?, self.line()?);
                self.is_name(module, name)?;
                self.drop_to_mark()?;
                pickle.global.get_or_insert((module, name));
                self.called(pickle, Item::Global(module, name));
                self.push(Item::Other)?;
            }
            b'o' => {
                let callee = self.after_mark()?;
                self.drop_to_mark()?;
                self.called(pickle, callee);
                self.push(Item::Other)?;
            }
            b'R' => {
                self.pop()?;
                let callee = self.pop()?;
                self.called(pickle, callee);
                self.push(Item::Other)?;
            }
            // An object of a class is made, as all objects are written: nothing is called but `__new__`.
            0x81 => {
                self.pop()?;
                self.pop()?;
                self.push(Item::Other)?;
            }
            0x92 => {
                for _ in 0..3 {
                    self.pop()?;
                }
                self.push(Item::Other)?;
            }
            b'g' => {
                let line = self.line()?;
                let number = std::str::from_utf8(line.of(self.bytes)).ok()?.parse().ok()?;
                self.recall(number)?;
            }
            b'h' => {
                let number = u32::try_from(self.number(1)?).ok()?;
                self.recall(number)?;
            }
            b'j' => {
                let number = u32::try_from(self.number(4)?).ok()?;
                self.recall(number)?;
            }
            b'p' => {
                let line = self.line()?;
                let number = std::str::from_utf8(line.of(self.bytes)).ok()?.parse().ok()?;
                self.keep(number)?;
            }
            b'q' => {
                let number = u32::try_from(self.number(1)?).ok()?;
                self.keep(number)?;
            }
            b'r' => {
                let number = u32::try_from(self.number(4)?).ok()?;
                self.keep(number)?;
            }
            0x94 => {
                let number = u32::try_from(self.memo.len()).ok()?;
                self.keep(number)?;
            }
            0x80 => {
                let version = self.number(1)?;
                (version <= 5 && self.at == 2).then_some(())?;
            }
            0x82 => self.plain(1)?,
            0x83 => self.plain(2)?,
            0x84 => self.plain(4)?,
            0x95 => {
                self.number(8)?;
            }
            0x98 => {}
            _ => return None,
        }
        Some(true)
    }

    fn push(&mut self, item: Item) -> Option<()> {
        self.stack.push(item);
        Some(())
    }

    fn pop(&mut self) -> Option<Item> {
        self.stack.pop()
    }

    fn top(&self) -> Option<Item> {
        self.stack.last().copied()
    }

    fn mark(&self) -> Option<usize> {
        self.stack.iter().rposition(|item| *item == Item::Mark)
    }

    fn drop_to_mark(&mut self) -> Option<()> {
        self.stack.truncate(self.mark()?);
        Some(())
    }

    fn after_mark(&self) -> Option<Item> {
        self.stack.get(self.mark()? + 1).copied()
    }

    fn line(&mut self) -> Option<Span> {
        let rest = &self.bytes[self.at..];
        let len = memchr::memchr(b'\n', rest)?;
        let span = Span::new(self.at, self.at + len);
        self.at += len + 1;
        Some(span)
    }

    fn number(&mut self, width: usize) -> Option<u64> {
        let bytes = self.bytes.get(self.at..self.at + width)?;
        self.at += width;
        Some(bytes.iter().rev().fold(0, |all, b| all << 8 | u64::from(*b)))
    }

    fn plain(&mut self, width: usize) -> Option<()> {
        self.number(width)?;
        self.push(Item::Other)
    }

    fn counted(&mut self, width: usize, is_text: bool) -> Option<()> {
        let len = usize::try_from(self.number(width)?).ok()?;
        let end = self.at.checked_add(len).filter(|end| *end <= self.bytes.len())?;
        let span = Span::new(self.at, end);
        self.at = end;
        self.push(if is_text { Item::Text(span) } else { Item::Other })
    }

    fn is_name(&self, module: Span, name: Span) -> Option<()> {
        let is_one = |span: Span| {
            let bytes = span.of(self.bytes);
            bytes.len() <= NAME_BYTES_MAX
                && bytes.first().is_some_and(|b| b.is_ascii_alphabetic() || *b == b'_' || *b >= 0x80)
                && bytes.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.') || *b >= 0x80)
        };
        (is_one(module) && is_one(name)).then_some(())
    }

    fn global(&mut self, pickle: &mut Pickle, module: Span, name: Span) -> Option<()> {
        self.is_name(module, name)?;
        pickle.global.get_or_insert((module, name));
        self.push(Item::Global(module, name))
    }

    fn called(&self, pickle: &mut Pickle, callee: Item) {
        if let Item::Global(module, name) = callee
            && !is_data(module.of(self.bytes), name.of(self.bytes))
        {
            pickle.call.get_or_insert((module, name));
        }
    }

    fn keep(&mut self, number: u32) -> Option<()> {
        let item = self.top()?;
        self.memo.insert(number, item);
        Some(())
    }

    fn recall(&mut self, number: u32) -> Option<()> {
        self.push(self.memo.get(&number).copied().unwrap_or(Item::Other))
    }
}

/// Makes a value of data, as libraries write them: times, decimals, sets, arrays. All else that a pickle
/// calls is chosen by the sender.
fn is_data(module: &[u8], name: &[u8]) -> bool {
    const MODULES: &[&[u8]] =
        &[b"datetime", b"_decimal", b"decimal", b"fractions", b"uuid", b"zoneinfo", b"ipaddress", b"array"];
    const NUMBERS: &[&[u8]] = &[b"numpy", b"pandas", b"pytz", b"dateutil"];
    const BUILTINS: &[&[u8]] = &[
        b"set",
        b"frozenset",
        b"bytearray",
        b"bytes",
        b"complex",
        b"range",
        b"xrange",
        b"slice",
        b"list",
        b"dict",
        b"tuple",
        b"int",
        b"long",
        b"float",
        b"str",
        b"bool",
        b"object",
        b"unicode",
    ];
    let parts = || module.split(|b| *b == b'.');
    let is_test = || parts().any(|part| part == b"testing" || part == b"f2py" || part == b"distutils");
    match module {
        b"builtins" | b"__builtin__" => BUILTINS.contains(&name),
        b"collections" => !name.starts_with(b"_") && name != b"abc",
        b"copyreg" | b"copy_reg" => name == b"_reconstructor" || name == b"__newobj__",
        b"_codecs" => name == b"encode",
        _ => {
            MODULES.contains(&module)
                || parts().next().is_some_and(|first| NUMBERS.contains(&first)) && !is_test()
        }
    }
}

/// The length of the module that `rest` begins with, if a line ends behind it.
fn module_len(rest: &[u8]) -> Option<usize> {
    let is_part = |b: &&u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.');
    let len = rest.iter().take(NAME_BYTES_MAX).take_while(is_part).count();
    (len > 0 && rest.get(len).is_none_or(|b| *b == b'\n')).then_some(len)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(bytes: &[u8]) -> Option<String> {
        let (module, name) = read(bytes)?.call?;
        let text = |span: Span| String::from_utf8_lossy(span.of(bytes)).into_owned();
        Some(format!("{}.{}", text(module), text(name)))
    }

    /// One call as the library writes it in each protocol, and without a frame or a memo.
    #[test]
    fn protocols() {
        for bytes in [
            &b"cposix\nsystem\np0\n(Vid\np1\ntp2\nRp3\n."[..],
            b"cposix\nsystem\nq\x00(X\x02\0\0\0idq\x01tq\x02Rq\x03.",
            b"\x80\x02cposix\nsystem\nq\x00X\x02\0\0\0idq\x01\x85q\x02Rq\x03.",
            b"\x80\x04\x95\x1c\0\0\0\0\0\0\0\x8c\x05posix\x94\x8c\x06system\x94\x93\x94\x8c\x02id\x94\x85\x94R\x94.",
            b"\x80\x04\x8c\x05posix\x8c\x06system\x93\x8c\x02id\x85R.",
            b"(S'id'\niposix\nsystem\n.",
            b"(cposix\nsystem\nS'id'\no.",
            b"cposix\nsystem\n(S'id'\ntR",
            b"\x80\x04\x8c\x05posix\x94\x8c\x06system\x94\x93\x94h\x00h\x01\x93\x8c\x02id\x85R.",
        ] {
            assert_eq!(call(bytes).as_deref(), Some("posix.system"), "{}", bytes.escape_ascii());
        }
        assert_eq!(call(b"cany.module\nat_all\n)R.").as_deref(), Some("any.module.at_all"));
    }

    /// Values, opcodes and numbers that stand before a call hide it in no number.
    #[test]
    fn padding_before_a_call() {
        let remembered = b"\x8c\x01a\x940".repeat(300);
        let system = b"\x8c\x05posix\x94\x8c\x06system\x94\x93\x94";
        for bytes in [
            [&b"N".repeat(10_000)[..], b"cposix\nsystem\n(S'id'\ntR."].concat(),
            [&b"N0".repeat(10_000)[..], b"cposix\nsystem\n(S'id'\ntR."].concat(),
            [&remembered[..], system, b"0j\x2e\x01\0\0\x8c\x02id\x85R."].concat(),
        ] {
            let bytes = [b"\x80\x04", &bytes[..]].concat();
            assert_eq!(call(&bytes).as_deref(), Some("posix.system"), "{} bytes", bytes.len());
        }
        assert_eq!(call(&[b"\x80\x04", &b"N".repeat(DEPTH_MAX + 1)[..]].concat()).as_deref(), Some("."));
        assert_eq!(call(&[b"\x80\x04", &b"N0".repeat(STEPS_MAX)[..]].concat()).as_deref(), Some("."));
    }

    #[test]
    fn values_and_texts() {
        for bytes in [
            &b"\x80\x04\x95\x0b\0\0\0\0\0\0\0}\x94\x8c\x01a\x94K\x01s."[..],
            b"cdatetime\ndate\n(S'x'\ntR.",
            b"ccopyreg\n_reconstructor\n(cshop.models\nCart\nc__builtin__\nobject\nNtR.",
            b"cosine\nsystem\nof",
            b"c\nd\n",
            b"(lp0\nI1\na.",
            b"\x80\x04 and so on",
            b"",
        ] {
            assert_eq!(call(bytes), None, "{}", bytes.escape_ascii());
        }
        assert!(read(b"\x80\x03}q\0.").is_some_and(|pickle| pickle.is_whole));
        assert_eq!(read(b"cosine\nsystem\nof"), None);
    }

    #[test]
    fn hostile_bytes_end() {
        for unit in [
            &b"("[..],
            b"2",
            b"}q\0",
            b"\x94",
            b"(t",
            b"X\xff\xff\xff\xff",
            b"\x8e\xff\xff\xff\xff\xff\xff\xff\xff",
        ] {
            for start in [&b"\x80\x04]"[..], b"(c", b"ca\nb\n"] {
                let bytes = [start, &unit.repeat(20_000)].concat();
                assert_eq!(read(&bytes).and_then(|pickle| pickle.call), None);
            }
        }
    }
}
