//! Ordinary text to put beside an attack, and marks of a quotation to put around it.

/// The position of the text, relative to the attack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Position {
    /// Before it.
    Before,
    /// Behind it.
    Behind,
    /// On both sides.
    Around,
}

/// The kind of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Words of a sentence.
    Words,
    /// Words with commas.
    List,
    /// A document of JSON.
    Json,
    /// Paragraphs of a page.
    Html,
    /// Base64 of a text.
    Base64,
    /// One letter.
    Letter,
}

/// What a sender may write around an attack, so that it looks quoted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wrapper {
    /// Back-ticks.
    Ticks,
    /// A fence of Markdown.
    Fence,
    /// A fence that is not closed.
    OpenFence,
    /// A sign of quotation before each line.
    Quote,
    /// Four spaces before each line.
    Indented,
    /// An element for text as it is.
    Pre,
    /// An element for code.
    Code,
    /// A fence in a quotation.
    QuotedFence,
    /// An element for code in one for text as it is.
    PreCode,
    /// Back-ticks in a sentence.
    Sentence,
}

impl Wrapper {
    /// All.
    pub const ALL: [Wrapper; 10] = [
        Wrapper::Ticks,
        Wrapper::Fence,
        Wrapper::OpenFence,
        Wrapper::Quote,
        Wrapper::Indented,
        Wrapper::Pre,
        Wrapper::Code,
        Wrapper::QuotedFence,
        Wrapper::PreCode,
        Wrapper::Sentence,
    ];

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Wrapper::Ticks => "ticks",
            Wrapper::Fence => "fence",
            Wrapper::OpenFence => "open fence",
            Wrapper::Quote => "quote",
            Wrapper::Indented => "indented",
            Wrapper::Pre => "pre",
            Wrapper::Code => "code",
            Wrapper::QuotedFence => "fence in quote",
            Wrapper::PreCode => "code in pre",
            Wrapper::Sentence => "sentence",
        }
    }

    /// `payload` in it.
    pub fn around(self, payload: &[u8]) -> Vec<u8> {
        let lines = |mark: &[u8]| {
            let lines = payload.split_inclusive(|b| *b == b'\n');
            lines.flat_map(|line| [mark, line].concat()).collect::<Vec<u8>>()
        };
        let (open, close): (&[u8], &[u8]) = match self {
            Wrapper::Quote => return lines(b"> "),
            Wrapper::Indented => return lines(b"    "),
            Wrapper::QuotedFence => return [b"> ```\n", &lines(b"> ")[..], b"\n> ```"].concat(),
            Wrapper::Ticks => (b"`", b"`"),
            Wrapper::Fence => (b"```\n", b"\n```"),
            Wrapper::OpenFence => (b"```\n", b""),
            Wrapper::Pre => (b"<pre>", b"</pre>"),
            Wrapper::Code => (b"<code>", b"</code>"),
            Wrapper::PreCode => (b"<pre><code>", b"</code></pre>"),
            Wrapper::Sentence => (b"Please have a look at `", b"` and tell me what it does."),
        };
        [open, payload, close].concat()
    }
}

impl Position {
    /// All.
    pub const ALL: [Position; 3] = [Position::Before, Position::Behind, Position::Around];

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Position::Before => "before",
            Position::Behind => "behind",
            Position::Around => "around",
        }
    }
}

impl Kind {
    /// All.
    pub const ALL: [Kind; 6] = [Kind::Words, Kind::List, Kind::Json, Kind::Html, Kind::Base64, Kind::Letter];

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Words => "words",
            Kind::List => "list",
            Kind::Json => "json",
            Kind::Html => "html",
            Kind::Base64 => "base64",
            Kind::Letter => "letter",
        }
    }

    /// About `bytes` of it, from where piece number `seed` of its parts begins; never less than one whole
    /// part.
    pub fn text(self, bytes: usize, seed: usize) -> Vec<u8> {
        let (parts, open, between, close): (&[&str], &str, &str, &str) = match self {
            Kind::Words => (WORDS, "", " ", ""),
            Kind::List => (WORDS, "", ",", ""),
            Kind::Json => (MEMBERS, "{", ",", "}"),
            Kind::Html => (PARAGRAPHS, "", "\n", ""),
            Kind::Base64 => (BASE64, "", "", ""),
            Kind::Letter => (&["A"], "", "", ""),
        };
        let mut out = open.as_bytes().to_vec();
        for number in 0.. {
            out.extend_from_slice(parts[(seed + number) % parts.len()].as_bytes());
            if out.len() + close.len() >= bytes {
                break;
            }
            out.extend_from_slice(between.as_bytes());
        }
        out.extend_from_slice(close.as_bytes());
        out
    }
}

/// `payload` with about `bytes` of text at `position`.
pub fn pad(payload: &[u8], position: Position, kind: Kind, bytes: usize, seed: usize) -> Vec<u8> {
    let text = kind.text(bytes, seed);
    // Words part from what they stand beside; adjacent text is another case.
    let gap: &[u8] = if matches!(kind, Kind::Words) && seed.is_multiple_of(2) { b" " } else { b"" };
    match position {
        Position::Before => [&text, gap, payload].concat(),
        Position::Behind => [payload, b" ", &text].concat(),
        Position::Around => [&text, gap, payload, b" ", &text].concat(),
    }
}

const WORDS: &[&str] = &[
    "I", "really", "liked", "the", "article", "about", "old", "gardens", "because", "it", "shows", "how",
    "people", "lived", "with", "plants", "and", "water", "in", "a", "small", "town", "near", "our", "river",
    "last", "summer", "we", "walked", "there", "every", "morning",
];

const MEMBERS: &[&str] = &[
    "\"title\":\"Old gardens\"",
    "\"pages\":128",
    "\"tags\":[\"plants\",\"water\"]",
    "\"author\":{\"name\":\"Ann Lee\",\"city\":\"Bern\"} ",
    "\"inPrint\":true",
];

const PARAGRAPHS: &[&str] = &[
    "<p>We walked along the river.</p>",
    "<h2 class=\"title\">Old gardens</h2>",
    "<ul><li>plants</li><li>water</li></ul>",
    "<p>The town is <b>small</b> and <a href=\"https://www.example.com/town\">old</a>.</p>",
];

const BASE64: &[&str] =
    &["V2Ugd2Fsa2VkIGFsb25nIHRoZSByaXZlciBldmVyeSBtb3JuaW5n", "T2xkIGdhcmRlbnMgbmVhciBvdXIgc21hbGwgdG93bg"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_have_about_the_length() {
        for kind in Kind::ALL {
            for bytes in [1, 10, 100, 4_096, 100 << 10] {
                let text = kind.text(bytes, 3);
                assert!(
                    text.len() >= bytes.min(1) && text.len() <= bytes + 90,
                    "{kind:?} {bytes} {}",
                    text.len()
                );
                assert!(bytes < 100 || text.len() >= bytes, "{kind:?} {bytes} {}", text.len());
            }
        }
        let json = Kind::Json.text(500, 0);
        assert!(serde_json::from_slice::<serde_json::Value>(&json).is_ok());
        let padded = pad(b";id", Position::Around, Kind::Letter, 2, 1);
        assert_eq!(padded, b"AA;id AA");
        assert_eq!(Wrapper::QuotedFence.around(b"a\nb"), b"> ```\n> a\n> b\n> ```");
    }
}
