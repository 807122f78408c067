use portcullis_event::Timestamp;
use portcullis_types::nearest;

use crate::bare::bare;
use crate::error::Mistake;
use crate::field::{Field, Kind};
use crate::filter::{Comparison, Filter, Operator, Value};
use crate::lexer::{Placed, Token, tokens};
use crate::network::Network;

/// Longer filters are refused.
pub const TEXT_BYTES_MAX: usize = 8 << 10;
/// Filters of more values are refused.
pub const TERMS_MAX: usize = 256;
/// Deeper nesting of `(` and `not` is refused.
const DEPTH_MAX: usize = 32;

/// Parses a filter. `now`: the current time in milliseconds since 1970, for times such as `-1h`. An empty
/// text is the filter that every event passes.
pub fn parse(text: &str, now: u64) -> Result<Filter, Mistake> {
    if text.len() > TEXT_BYTES_MAX {
        let message = format!("the filter has {} bytes; at most {TEXT_BYTES_MAX} are allowed", text.len());
        return Err(Mistake { at: 0, column: 1, message });
    }
    let mut parser = Parser { text, tokens: tokens(text)?, next: 0, now, terms: 0, depth: 0 };
    if parser.peek() == &Token::End {
        return Ok(Filter::everything());
    }
    let filter = parser.any()?;
    match parser.peek() {
        Token::End => Ok(filter),
        Token::Close => Err(parser.mistake("there is no `(` for this `)`")),
        Token::Open | Token::Comma | Token::Operator(_) | Token::Word(_) | Token::Quoted(_) => {
            Err(parser.mistake("`and` or `or` is missing here"))
        }
    }
}

struct Parser<'t> {
    text: &'t str,
    tokens: Vec<Placed>,
    next: usize,
    now: u64,
    terms: usize,
    depth: usize,
}

impl Parser<'_> {
    fn peek(&self) -> &Token {
        &self.tokens[self.next].1
    }

    fn at(&self) -> usize {
        self.tokens[self.next].0
    }

    /// Takes the next token; the last is never passed.
    fn take(&mut self) -> Token {
        let token = self.tokens[self.next].1.clone();
        self.next = (self.next + 1).min(self.tokens.len() - 1);
        token
    }

    fn mistake(&self, message: impl Into<String>) -> Mistake {
        Mistake::new(self.text, self.at(), message)
    }

    /// Takes the next token if it is this keyword, in any case.
    fn takes(&mut self, keyword: &str) -> bool {
        let is_it = matches!(self.peek(), Token::Word(word) if word.eq_ignore_ascii_case(keyword));
        if is_it {
            self.take();
        }
        is_it
    }

    fn any(&mut self) -> Result<Filter, Mistake> {
        let mut parts = vec![self.all()?];
        while self.takes("or") {
            parts.push(self.all()?);
        }
        Ok(joined(parts, Filter::Any))
    }

    fn all(&mut self) -> Result<Filter, Mistake> {
        let mut parts = vec![self.term()?];
        while self.takes("and") {
            parts.push(self.term()?);
        }
        Ok(joined(parts, Filter::All))
    }

    fn term(&mut self) -> Result<Filter, Mistake> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(
                self.mistake(format!("more than {DEPTH_MAX} levels of `(` and `not` are not allowed"))
            );
        }
        let filter = self.term_inside();
        self.depth -= 1;
        filter
    }

    fn term_inside(&mut self) -> Result<Filter, Mistake> {
        if self.takes("not") {
            return Ok(Filter::Not(Box::new(self.term()?)));
        }
        match self.peek() {
            Token::Open => {
                let open = self.at();
                self.take();
                let filter = self.any()?;
                match self.take() == Token::Close {
                    true => Ok(filter),
                    false => Err(Mistake::new(self.text, open, "this `(` is not closed")),
                }
            }
            Token::Quoted(text) => {
                let values = vec![Value::Text(text.clone())];
                self.count_term()?;
                self.take();
                Ok(Filter::Is(Comparison { field: Field::Text, operator: Operator::Contains, values }))
            }
            Token::Word(word) => match bare(word).filter(|_| !self.is_compared()) {
                Some(filter) => {
                    self.count_term()?;
                    self.take();
                    Ok(filter)
                }
                None => self.comparison(),
            },
            Token::Close | Token::Comma | Token::Operator(_) | Token::End => {
                Err(self.mistake("a field, `not`, `(` or a quoted text is expected here"))
            }
        }
    }

    /// True if a comparison follows the next token.
    fn is_compared(&self) -> bool {
        match self.tokens.get(self.next + 1) {
            Some((_, Token::Operator(_))) => true,
            Some((_, Token::Word(word))) => word.eq_ignore_ascii_case("in"),
            _ => false,
        }
    }

    fn comparison(&mut self) -> Result<Filter, Mistake> {
        let place = self.at();
        let Token::Word(name) = self.take() else { return Err(self.mistake("a field is expected here")) };
        let field = Field::named(&name).ok_or_else(|| Mistake::new(self.text, place, unknown(&name)))?;
        let operator_at = self.at();
        let operator = match self.take() {
            Token::Operator(operator) => operator,
            Token::Word(word) if word.eq_ignore_ascii_case("in") => Operator::In,
            Token::Open | Token::Close | Token::Comma | Token::Word(_) | Token::Quoted(_) | Token::End => {
                let message = format!("a comparison of `{name}` is expected here: {}", signs(field.kind()));
                return Err(Mistake::new(self.text, operator_at, message));
            }
        };
        if !takes(field.kind(), operator) {
            let message = format!("`{name}` is compared by {}", signs(field.kind()));
            return Err(Mistake::new(self.text, operator_at, message));
        }
        let values = match operator == Operator::In && self.peek() == &Token::Open {
            true => self.list(field)?,
            false => vec![self.value(field, operator)?],
        };
        Ok(Filter::Is(Comparison { field, operator, values }))
    }

    fn list(&mut self, field: Field) -> Result<Vec<Value>, Mistake> {
        self.take();
        let mut values = Vec::new();
        loop {
            values.push(self.value(field, Operator::In)?);
            let place = self.at();
            match self.take() {
                Token::Comma => {}
                Token::Close => return Ok(values),
                Token::Open | Token::Operator(_) | Token::Word(_) | Token::Quoted(_) | Token::End => {
                    return Err(Mistake::new(self.text, place, "`,` or `)` is expected here"));
                }
            }
        }
    }

    fn count_term(&mut self) -> Result<(), Mistake> {
        self.terms += 1;
        if self.terms > TERMS_MAX {
            return Err(self.mistake(format!("more than {TERMS_MAX} values in a filter are not allowed")));
        }
        Ok(())
    }

    fn value(&mut self, field: Field, operator: Operator) -> Result<Value, Mistake> {
        self.count_term()?;
        let place = self.at();
        let (Token::Word(text) | Token::Quoted(text)) = self.take() else {
            return Err(Mistake::new(
                self.text,
                place,
                format!("a value for `{}` is expected here", field.name()),
            ));
        };
        let value = match field.kind() {
            Kind::Time => time(&text, self.now).map(Value::Time),
            Kind::Number => {
                let expected = || format!("`{}` is a whole number, and `{text}` is none", field.name());
                text.parse().map(Value::Number).map_err(|_| expected())
            }
            Kind::OneOf(words) => one_of(field, &text, words).map(Value::Text),
            Kind::Address => address(&text, operator).map(Value::Network),
            Kind::Word | Kind::Text if text.is_empty() && operator == Operator::Contains => {
                Err("every text contains the empty one; say what to look for".to_owned())
            }
            Kind::Word | Kind::Text => Ok(Value::Text(text)),
        };
        value.map_err(|message| Mistake::new(self.text, place, message))
    }
}

fn joined(mut parts: Vec<Filter>, join: impl FnOnce(Vec<Filter>) -> Filter) -> Filter {
    match parts.len() {
        1 => parts.remove(0),
        _ => join(parts),
    }
}

fn unknown(name: &str) -> String {
    let names = || Field::ALL.iter().map(|field| field.name());
    match nearest(name, names()) {
        Some(known) => format!("there is no field `{name}`; did you mean `{known}`?"),
        None => format!(
            "there is no field `{name}`; there are {}. An address, a path, the number of a rule and a request id can stand \
             alone; other texts in quotes",
            names().collect::<Vec<_>>().join(", ")
        ),
    }
}

fn takes(kind: Kind, operator: Operator) -> bool {
    use Operator::*;
    match kind {
        Kind::Time => matches!(operator, Equal | NotEqual | Less | LessOrEqual | Greater | GreaterOrEqual),
        Kind::Number => !matches!(operator, Prefix | Contains),
        Kind::Word => matches!(operator, Equal | NotEqual | Prefix | Contains | In),
        Kind::OneOf(_) | Kind::Address => matches!(operator, Equal | NotEqual | In),
        Kind::Text => operator == Contains,
    }
}

fn signs(kind: Kind) -> &'static str {
    match kind {
        Kind::Time => "=, !=, <, <=, > or >=",
        Kind::Number => "=, !=, <, <=, >, >= or in (list)",
        Kind::Word => "=, !=, ^= (begins with), ~ (contains) or in (list)",
        Kind::OneOf(_) => "=, != or in (list)",
        Kind::Address => "=, != or in (network or list)",
        Kind::Text => "~ (contains)",
    }
}

fn one_of(field: Field, text: &str, words: &[&str]) -> Result<String, String> {
    if let Some(word) = words.iter().find(|word| word.eq_ignore_ascii_case(text)) {
        return Ok((*word).to_owned());
    }
    let known = match nearest(text, words.iter().copied()) {
        Some(word) => format!("did you mean `{word}`?"),
        None => format!("it is one of {}", words.join(", ")),
    };
    Err(format!("`{}` is never `{text}`; {known}", field.name()))
}

fn address(text: &str, operator: Operator) -> Result<Network, String> {
    match Network::parse(text) {
        Some(_) if operator != Operator::In && text.contains('/') => {
            Err(format!("`{text}` is a network; ask with `in {text}`"))
        }
        Some(network) => Ok(network),
        None => Err(format!("`{text}` is neither an address nor a network such as 192.0.2.0/24")),
    }
}

/// RFC 3339, a date (its first moment, UTC), `now`, or a time before now.
fn time(text: &str, now: u64) -> Result<Timestamp, String> {
    let wrong = || {
        format!(
            "`{text}` is not a time: write 2026-11-26T08:00:00Z, 2026-11-26, or a time before now such as -90s, -15m, -1h, -7d"
        )
    };
    if text == "now" {
        return Ok(Timestamp::from_epoch_millis(now));
    }
    if let Some(before) = text.strip_prefix('-') {
        let digits = before.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let unit = match &before[digits.len()..] {
            "s" => 1000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            "w" => 7 * 86_400_000,
            _ => return Err(wrong()),
        };
        let number: u64 = digits.parse().map_err(|_| wrong())?;
        return Ok(Timestamp::from_epoch_millis(now.saturating_sub(number.saturating_mul(unit))));
    }
    let whole = if text.len() == 10 { format!("{text}T00:00:00Z") } else { text.to_owned() };
    let parsed: jiff::Timestamp = whole.parse().map_err(|_| wrong())?;
    u64::try_from(parsed.as_millisecond()).map(Timestamp::from_epoch_millis).map_err(|_| wrong())
}
