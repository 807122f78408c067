use crate::detectors::word_table::WordTable;

/// `data/js-names.tsv` and `data/html-names.tsv`, ready to be asked.
#[derive(Debug)]
pub(super) struct Names {
    script: WordTable<Group>,
    markup: WordTable<Markup>,
}

/// The group of a name of JavaScript.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Group {
    /// Shows that a script runs.
    Dialog,
    /// Runs text as code.
    Execute,
    /// Runs a function later, or text as code.
    Timer,
    /// Makes markup of text.
    WriteCall,
    /// Sends something out.
    Send,
    /// Makes text of something less readable.
    Decode,
    /// The page, or what holds all names.
    Global,
    /// The page's address, which leads elsewhere if it is set.
    Location,
    /// The user's data.
    Data,
    /// Set to markup.
    Markup,
    /// Set to an address.
    Target,
    /// Called with an address.
    Navigate,
    /// Leads to the constructor of functions.
    Constructor,
    /// Leads to prototypes, or changes what objects mean.
    Reflect,
    /// Calls a function that is given.
    Indirect,
    /// Makes an element, of which a script is one.
    Make,
    /// What examples have.
    Demo,
    Any,
}

/// The group of a name of HTML.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Markup {
    /// An element that text has.
    Text,
    /// An element that loads or frames another document, or a plug-in.
    Frame,
    /// An element of another namespace.
    Foreign,
    /// An element that changes what the page means, or that is no more.
    Page,
    /// An attribute with an address.
    Url,
}

const NAME_BYTES_MAX: usize = 32;

impl Names {
    pub fn new() -> Names {
        let (mut script, mut markup) = (Vec::new(), Vec::new());
        for (name, group) in script_names() {
            script.push((name.as_bytes(), group));
        }
        for (name, group) in lines(include_str!("../../../data/html-names.tsv")) {
            let group = match group {
                "frame" => Markup::Frame,
                "foreign" => Markup::Foreign,
                "page" => Markup::Page,
                "url" => Markup::Url,
                _ => Markup::Text,
            };
            markup.push((name.as_bytes(), group));
        }
        Names { script: WordTable::new(script), markup: WordTable::new(markup) }
    }

    /// What a name is in JavaScript.
    pub fn script(&self, name: &[u8]) -> Group {
        self.script.get(name).unwrap_or(Group::Any)
    }

    /// The names without which a piece of JavaScript has no sink, but for [`FUNCTION`].
    pub fn telling() -> impl Iterator<Item = &'static str> {
        let is_one = |(name, group): &(&str, Group)| tells(*group) && name.as_bytes() != FUNCTION;
        script_names().filter(is_one).map(|(name, _)| name)
    }

    /// True if a piece of JavaScript in `text` could have one of
    /// [`Effects::SINKS`](super::effects::Effects::SINKS): it names something, or calls by signs alone. Never
    /// a wrong no: what is looked for are all words of ASCII, wherever they stand. `is_telling`: one of
    /// [`Names::telling`] is in it, in whatever case.
    pub fn may_have_sinks(&self, text: &[u8], is_telling: bool) -> bool {
        // `[]`, with what code may have between the brackets.
        let empty = |at: usize| {
            let inner = text[at + 1..].trim_ascii_start().first();
            inner.is_some_and(|b| matches!(b, b']' | b'/' | 0 | 0x0B | 0x80..))
        };
        // `['ale'+'rt']`: a name in two strings.
        let joined = |at: usize| {
            let is_quote = |b: Option<&u8>| matches!(b, Some(b'\'' | b'"' | b'`'));
            is_quote(text[..at].trim_ascii_end().last())
                && is_quote(text[at + 1..].trim_ascii_start().first())
        };
        if memchr::memchr(b'[', text).is_some() && memchr::memchr_iter(b'+', text).any(joined) {
            return true;
        }
        let has_name = is_telling || memchr::memmem::find(text, FUNCTION).is_some();
        has_name && self.has_telling_word(text) || memchr::memchr_iter(b'[', text).any(empty)
    }

    fn has_telling_word(&self, text: &[u8]) -> bool {
        let mut from = 0;
        for (at, &b) in text.iter().enumerate() {
            if !WORD[usize::from(b)] {
                if at > from && tells(self.script(&text[from..at])) {
                    return true;
                }
                from = at + 1;
            }
        }
        tells(self.script(&text[from..]))
    }

    /// What an element is; `None` for one that HTML does not know.
    pub fn element(&self, name: &[u8]) -> Option<Markup> {
        self.lower(name).filter(|group| *group != Markup::Url)
    }

    /// True for an attribute that has an address.
    pub fn is_url_attribute(&self, name: &[u8]) -> bool {
        let local = name.iter().rposition(|&b| b == b':').map_or(name, |colon| &name[colon + 1..]);
        let mut with_mark = [0; NAME_BYTES_MAX];
        let Some(with_mark) = with_mark.get_mut(..local.len() + 1) else { return false };
        with_mark[0] = b'@';
        with_mark[1..].copy_from_slice(local);
        self.lower(with_mark) == Some(Markup::Url)
    }

    fn lower(&self, name: &[u8]) -> Option<Markup> {
        let mut lower = [0; NAME_BYTES_MAX];
        let mut len = 0;
        for b in name.iter().filter(|&&b| b != 0) {
            *lower.get_mut(len)? = b.to_ascii_lowercase();
            len += 1;
        }
        self.markup.get(&lower[..len])
    }
}

/// Makes code of text. In lower case it is a word that most code has, so that its case counts.
const FUNCTION: &[u8] = b"Function";

/// Bytes of which words are made.
const WORD: [bool; 256] = {
    let mut table = [false; 256];
    let mut b = 0;
    while b < 256 {
        table[b] = (b as u8).is_ascii_alphanumeric() || matches!(b as u8, b'_' | b'$');
        b += 1;
    }
    table
};

/// A piece of JavaScript with a name of this sort may do something.
fn tells(group: Group) -> bool {
    !matches!(group, Group::Any | Group::Demo | Group::Indirect | Group::Target)
}

/// `data/js-names.tsv`
fn script_names() -> impl Iterator<Item = (&'static str, Group)> {
    lines(include_str!("../../../data/js-names.tsv")).map(|(name, group)| {
        let group = match group {
            "dialog" => Group::Dialog,
            "execute" => Group::Execute,
            "timer" => Group::Timer,
            "write-call" => Group::WriteCall,
            "send" => Group::Send,
            "decode" => Group::Decode,
            "global" => Group::Global,
            "location" => Group::Location,
            "data" => Group::Data,
            "markup" => Group::Markup,
            "target" => Group::Target,
            "navigate" => Group::Navigate,
            "constructor" => Group::Constructor,
            "reflect" => Group::Reflect,
            "indirect" => Group::Indirect,
            "make" => Group::Make,
            "demo" => Group::Demo,
            _ => Group::Any,
        };
        (name, group)
    })
}

fn lines(table: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    table.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once('\t'))
}
