//! Is a text about something, and does it quote?

/// Bytes of a text of which the words are counted.
const WORDS_BYTES_MAX: usize = 64 << 10;

/// Words that make an article, if they are as many as all else together.
const WORDS_MIN: usize = 80;

/// Tags and bytes before a mark in which the element around it is looked for.
const TAGS_MAX: usize = 96;
const TAG_BYTES_MAX: usize = 8_192;

/// Words before a mark that make it a part of a sentence.
const SENTENCE_WORDS_MIN: usize = 3;

/// Elements whose text is an example, a heading, or the name of another page.
const QUOTING: &[&[u8]] = words!("leak", "quoting-elements");

/// The text of a response.
pub(super) struct Page<'a> {
    text: &'a [u8],
    is_article: Option<bool>,
}

impl<'a> Page<'a> {
    pub fn new(text: &'a [u8]) -> Page<'a> {
        Page { text, is_article: None }
    }

    /// Many words, as in documentation or a forum; error messages and listings have few.
    pub fn is_article(&mut self) -> bool {
        let text = self.text;
        *self.is_article.get_or_insert_with(|| is_article(text))
    }

    /// True if what stands at `at` is quoted by an article.
    pub fn quotes(&mut self, at: usize) -> bool {
        self.is_article()
            && (in_quoting_element(self.text, at) || in_fence(self.text, at) || in_sentence(self.text, at))
    }
}

fn is_article(text: &[u8]) -> bool {
    let text = &text[..text.len().min(WORDS_BYTES_MAX)];
    let (mut words, mut others) = (0usize, 0usize);
    let mut rest = text;
    while !rest.is_empty() {
        let end = memchr::memchr(b'<', rest).unwrap_or(rest.len());
        for word in rest[..end].split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()) {
            match is_word(word) {
                true => words += 1,
                false => others += 1,
            }
        }
        // A tag's own names are no words of the text, nor are scripts and styles.
        let tag = &rest[end..];
        let after =
            |ending: &[u8]| memchr::memmem::find(tag, ending).map_or(tag.len(), |at| at + ending.len());
        let skip = match () {
            () if starts_with_tag(tag, b"script") => after(b"</script>"),
            () if starts_with_tag(tag, b"style") => after(b"</style>"),
            () => after(b">"),
        };
        rest = &tag[skip.min(tag.len())..];
    }
    words >= WORDS_MIN && words * 2 >= others
}

fn is_word(word: &[u8]) -> bool {
    let start = word.iter().position(u8::is_ascii_alphabetic).unwrap_or(word.len());
    let end = word.iter().rposition(u8::is_ascii_alphabetic).map_or(start, |at| at + 1);
    let is_marked = start <= 1 && word.len() - end <= 2;
    let word = &word[start..end.max(start)];
    is_marked
        && !word.is_empty()
        && word.len() <= 20
        && word[1..].iter().all(|b| b.is_ascii_lowercase() || matches!(b, b'\'' | b'-'))
}

fn starts_with_tag(text: &[u8], name: &[u8]) -> bool {
    text.get(1..=name.len()).is_some_and(|head| head.eq_ignore_ascii_case(name))
        && text.get(name.len() + 1).is_none_or(|b| !b.is_ascii_alphanumeric())
}

/// True if the innermost of the quoting elements whose tags stand before `at` is open there, or `at` is in a
/// tag.
fn in_quoting_element(text: &[u8], at: usize) -> bool {
    let from = at.saturating_sub(TAG_BYTES_MAX);
    let mut end = at;
    for tag in 0..TAGS_MAX {
        let Some(open) = memchr::memrchr(b'<', &text[from..end]).map(|open| from + open) else {
            return false;
        };
        let inside = &text[open..end];
        if tag == 0
            && memchr::memchr(b'>', inside).is_none()
            && inside.get(1).is_some_and(u8::is_ascii_alphabetic)
        {
            return true;
        }
        let (is_end, name) = match inside.get(1) {
            Some(b'/') => (true, &text[open + 1..]),
            _ => (false, &text[open..]),
        };
        if QUOTING.iter().any(|known| starts_with_tag(name, known)) {
            return !is_end;
        }
        end = open;
    }
    false
}

/// True if `at` is in a block of Markdown that three back-ticks open, between single ones, or after what
/// marks a quotation.
fn in_fence(text: &[u8], at: usize) -> bool {
    let from = at.saturating_sub(TAG_BYTES_MAX);
    let fences = memchr::memmem::find_iter(&text[from..at], b"```").count();
    let line = before_in_line(text, at);
    fences % 2 == 1
        || line.starts_with(b"    ")
        || line.starts_with(b"\t")
        || line.starts_with(b">")
        || line.starts_with(b"&gt;")
        || line.iter().filter(|&&b| b == b'`').count() % 2 == 1
}

/// True if words stand before `at` on the same line or in the same element.
fn in_sentence(text: &[u8], at: usize) -> bool {
    let words = before_in_line(text, at)
        .split(u8::is_ascii_whitespace)
        .filter(|word| word.len() > 1 && is_word(word));
    words.count() >= SENTENCE_WORDS_MIN
}

fn before_in_line(text: &[u8], at: usize) -> &[u8] {
    let from = at.saturating_sub(400);
    let start =
        text[from..at].iter().rposition(|&b| matches!(b, b'\n' | b'>')).map_or(from, |end| from + end + 1);
    &text[start..at]
}
