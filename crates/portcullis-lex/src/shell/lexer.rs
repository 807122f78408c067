use portcullis_types::Span;

use super::{Marks, Token, TokenKind, Variables, WORD_BYTES_MAX};

/// Reads tokens from `text`. An iterator that ends with the text.
#[derive(Clone, Debug)]
pub struct Lexer<'t> {
    pub(super) text: &'t [u8],
    pub(super) at: usize,
    pub(super) variables: Variables<'t>,
    pub(super) word: [u8; WORD_BYTES_MAX],
    pub(super) word_len: usize,
    /// A back-tick ends the command instead of opening one.
    pub(super) in_backticks: bool,
    /// In `{a,b}`: commas are white space.
    pub(super) in_brace: bool,
    /// `+` is white space.
    pub(super) plus: bool,
    /// Marks for the next word that stand before it.
    pub(super) pending: Marks,
    /// Bytes in which ends were looked for that are not there.
    pub(super) searched: usize,
}

impl<'t> Lexer<'t> {
    /// Starts at byte `at` of `text`.
    pub fn new(text: &'t [u8], at: usize, variables: Variables<'t>) -> Lexer<'t> {
        Lexer {
            text,
            at: at.min(text.len()),
            variables,
            word: [0; WORD_BYTES_MAX],
            word_len: 0,
            in_backticks: false,
            in_brace: false,
            plus: false,
            pending: Marks::NONE,
            searched: 0,
        }
    }

    /// It starts behind a back-tick: the next one ends the command.
    pub fn in_backticks(mut self) -> Lexer<'t> {
        self.in_backticks = true;
        self
    }

    /// `+` stands for spaces, as in a form that is not decoded.
    pub fn with_plus(mut self, plus: bool) -> Lexer<'t> {
        self.plus = plus;
        self
    }

    /// Returns the expansion of the last word, cut at [`WORD_BYTES_MAX`].
    pub fn text(&self) -> &[u8] {
        &self.word[..self.word_len]
    }

    /// Returns the offset at which the search for the next token begins.
    pub fn position(&self) -> usize {
        self.at
    }

    /// [`Lexer::position`], and the bytes behind it in which ends of expansions were looked for.
    pub fn bytes_read(&self) -> usize {
        self.at + self.searched
    }

    /// The variables that words are expanded with.
    pub fn variables(&mut self) -> &mut Variables<'t> {
        &mut self.variables
    }

    pub(super) fn byte(&self, ahead: usize) -> u8 {
        self.text.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn skip_space(&mut self) {
        while self.at < self.text.len() {
            match self.byte(0) {
                b' ' | b'\t' | 0x0B | 0x0C | 0 => self.at += 1,
                b'+' if self.plus => self.at += 1,
                b',' if self.in_brace => self.at += 1,
                b'\\' if self.byte(1) == b'\n' => self.at += 2,
                b'\\' if self.byte(1) == b'\r' && self.byte(2) == b'\n' => self.at += 3,
                b'$' => match self.ifs_len() {
                    0 => break,
                    len => {
                        self.at += len;
                        self.pending.add(Marks::IFS);
                    }
                },
                _ => break,
            }
        }
    }

    fn operator(&mut self) -> Option<(TokenKind, usize)> {
        Some(match (self.byte(0), self.byte(1)) {
            (b';', b';') => (TokenKind::Semicolon, 2),
            (b';', _) => (TokenKind::Semicolon, 1),
            (b'|', b'|') => (TokenKind::Or, 2),
            (b'|', b'&') => (TokenKind::Pipe, 2),
            (b'|', _) => (TokenKind::Pipe, 1),
            (b'&', b'&') => (TokenKind::And, 2),
            (b'&', b'>') => (TokenKind::Redirect, 2 + usize::from(self.byte(2) == b'>')),
            (b'&', _) => (TokenKind::Background, 1),
            (b'\r', b'\n') => (TokenKind::Newline, 2),
            (b'\n' | b'\r', _) => (TokenKind::Newline, 1),
            (b'<' | b'>', b'(') => return None,
            (b'0'..=b'9', b'<' | b'>') if self.byte(2) != b'(' => {
                (TokenKind::Redirect, 1 + self.redirect_len(1))
            }
            (b'<' | b'>', _) => (TokenKind::Redirect, self.redirect_len(0)),
            (b'(', _) => (TokenKind::Open, 1),
            (b')', _) => (TokenKind::Close, 1),
            (b'`', _) if self.in_backticks => (TokenKind::Close, 1),
            (b'{', b' ' | b'\t' | b'\n') => (TokenKind::Open, 1),
            (b'}', _) => (TokenKind::Close, 1),
            _ => return None,
        })
    }

    fn redirect_len(&self, from: usize) -> usize {
        let sign = self.byte(from);
        let mut len = 1;
        while len < 3 && self.byte(from + len) == sign {
            len += 1;
        }
        len + usize::from(matches!(self.byte(from + len), b'&' | b'|') && len == 1)
    }

    fn line_end(&self) -> usize {
        memchr::memchr2(b'\n', b'\r', &self.text[self.at..]).map_or(self.text.len(), |found| self.at + found)
    }
}

impl Iterator for Lexer<'_> {
    type Item = Token;

    fn next(&mut self) -> Option<Token> {
        self.skip_space();
        self.word_len = 0;
        if self.at >= self.text.len() {
            return None;
        }
        let start = self.at;
        if self.in_brace && self.byte(0) == b'}' {
            self.in_brace = false;
            self.at += 1;
            return Some(Token { kind: TokenKind::Close, span: Span::new(start, self.at) });
        }
        if let Some((kind, len)) = self.operator() {
            self.at = (start + len).min(self.text.len());
            self.pending = Marks::NONE;
            return Some(Token { kind, span: Span::new(start, self.at) });
        }
        if self.byte(0) == b'#' {
            self.at = self.line_end();
            return Some(Token { kind: TokenKind::Comment, span: Span::new(start, self.at) });
        }
        let before = std::mem::take(&mut self.pending);
        let marks = self.read_word().with(before);
        self.at = self.at.clamp(start + 1, self.text.len());
        Some(Token { kind: TokenKind::Word(marks), span: Span::new(start, self.at) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tokens of `text`: words as they expand, with a letter for each mark behind them.
    #[track_caller]
    fn check(text: &str, want: &str) {
        const MARKS: [(Marks, char); 16] = [
            (Marks::QUOTED, 'q'),
            (Marks::SPLIT, 's'),
            (Marks::ESCAPED, 'e'),
            (Marks::ANSI, 'a'),
            (Marks::GLOB, 'g'),
            (Marks::BRACE, 'b'),
            (Marks::VARIABLE, 'v'),
            (Marks::SLICE, 'l'),
            (Marks::EMPTY, '0'),
            (Marks::IFS, 'i'),
            (Marks::SUBSTITUTION, 'u'),
            (Marks::CARET, 'c'),
            (Marks::PERCENT, 'p'),
            (Marks::UNCLOSED, '!'),
            (Marks::LONG, 'L'),
            (Marks::ODD, 'o'),
        ];
        let mut have = String::new();
        let mut lexer = Lexer::new(text.as_bytes(), 0, Variables::default());
        while let Some(token) = lexer.next() {
            let name = match token.kind {
                TokenKind::Word(marks) => {
                    let word = String::from_utf8_lossy(lexer.text()).into_owned();
                    let letters: String =
                        MARKS.iter().filter(|(mark, _)| marks.has(*mark)).map(|(_, letter)| letter).collect();
                    if let Some((name, value)) = Variables::assignment(token.span.of(text.as_bytes())) {
                        lexer.variables().set(name, value);
                    }
                    if letters.is_empty() { format!("<{word}>") } else { format!("<{word}>{letters}") }
                }
                TokenKind::Semicolon => ";".into(),
                TokenKind::Pipe => "|".into(),
                TokenKind::Or => "||".into(),
                TokenKind::And => "&&".into(),
                TokenKind::Background => "&".into(),
                TokenKind::Newline => "nl".into(),
                TokenKind::Redirect => "re".into(),
                TokenKind::Open => "(".into(),
                TokenKind::Close => ")".into(),
                TokenKind::Comment => "#".into(),
            };
            have.push_str(&name);
            have.push(' ');
        }
        assert_eq!(have.trim_end(), want, "{text}");
    }

    #[test]
    fn plain() {
        check(
            "cat /etc/passwd; id | sh && a || b & c\nd",
            "<cat> </etc/passwd> ; <id> | <sh> && <a> || <b> & <c> nl <d>",
        );
        check("(a) { b; } # c", "( <a> ) ( <b> ; ) #");
        check("a >b 2>&1 <<<c &>d <(e)", "<a> re <b> re <1> re <c> re <d> <>u");
    }

    #[test]
    fn quotes_and_escapes() {
        check("c''at c\"\"at 'c'at \"a b\"", "<cat>qs <cat>qs <cat>qs <a b>q");
        check("c\\at /et\\c a\\ b", "<cat>e </etc>e <a b>");
        check("C:\\Windows\\win.ini ..\\a %TEMP%\\b", "<C:\\Windows\\win.ini> <..\\a> <\\b>p");
        check("$'\\x63at' $'c\\141t' $\"x\"", "<cat>qa <cat>qa <x>q");
        check("it's", "<it>! <s>");
    }

    #[test]
    fn expansions() {
        check("cat$IFS/x cat${IFS}x cat$IFS$9/y", "<cat> </x>i <cat> <x>i <cat> </y>i");
        check(
            "wh$@oami wh$()oami wh``oami who$*ami c${u}at",
            "<whoami>0 <whoami>0 <whoami>0 <whoami>0 <cat>v",
        );
        check("a=c;b=at;$a$b x", "<a=c>o ; <b=at>o ; <cat>v <x>");
        check("${HOME:0:1}bin $0 $SHELL", "</bin>l <sh>v <sh>v");
        check("$(id)x `id` $((1+1))", "<x>u <>u <>u");
        check("{cat,/etc/passwd} {a", "<cat>b </etc/passwd> ) <{a>o");
        check("/???/c?t ca[t] *", "</???/c?t>g <ca[t]>g <*>g");
    }

    #[test]
    fn cmd() {
        check("w^h^o^a^m^i %COMSPEC% /c a^&b", "<whoami>c <cmd>p </c> <a&b>c");
        check("%x:~0,1%et 100%", "<?et>glp <100%>o");
    }

    #[test]
    fn any_bytes() {
        for text in [
            &b"\\"[..],
            b"$",
            b"${",
            b"$(",
            b"`",
            b"'",
            b"\"",
            b"$'",
            b"<(",
            b"%",
            b"{",
            b"^",
            b"[",
            b"2>",
            b"\xff\xfe$",
        ] {
            let lexer = Lexer::new(text, 0, Variables::default());
            let mut end = 0;
            for token in lexer {
                assert!(token.span.start >= end && token.span.end > token.span.start, "{text:?}");
                end = token.span.end;
            }
            assert!(end as usize <= text.len());
        }
    }
}
