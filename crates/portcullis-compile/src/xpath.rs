//! XPath expressions of targets: the location paths that rules use. Whatever else is an error that says
//! where.
//!
//! ```text
//! path      = ("/" | "//") step { ("/" | "//") step }        several with | between them
//! step      = name | prefix:name | * | prefix:* | @name ... | text()      then predicates
//! predicate = [3] | [last()] | [position()=3] | [@a] | [a] | [text()] | [@a='v'] | [a='v'] | [text()='v'] | [.='v']
//!           | [local-name()='v']
//! ```

use portcullis_engine::{NodeTest, Predicate, XPath, XPathStep as Step, XmlName as Name};

/// Prefixes and the namespaces they stand for, from `xmlns` actions.
pub(crate) type Namespaces<'a> = [(&'a [u8], &'a [u8])];

/// Steps of one path, and paths of one expression.
const STEPS_MAX: usize = 32;
const PATHS_MAX: usize = 16;
/// Predicates of one step.
const PREDICATES_MAX: usize = 8;

const HINT: &str = "supported are paths from the root: /a/b, //a, *, p:name with xmlns:p=URI, @a, text(), [2], [last()], \
                    [@a='v'], [a='v'], [text()='v'], [local-name()='v'], and several of them with | in quotes: XML:'/a|//b'";

/// The error of an expression that cannot be compiled: message and hint.
pub(crate) type XPathError = (String, Option<String>);

/// Compiles `text`.
pub(crate) fn parse(text: &[u8], namespaces: &Namespaces<'_>) -> Result<XPath, XPathError> {
    let mut parser = Parser { text, at: 0, namespaces };
    match parser.expression() {
        Ok(paths) => Ok(XPath { paths, text: String::from_utf8_lossy(text).into() }),
        Err(message) => {
            let rest = String::from_utf8_lossy(&text[parser.at.min(text.len())..]).into_owned();
            let place = if rest.is_empty() { "at the end".to_owned() } else { format!("at {rest:?}") };
            Err((format!("XPath: {message} {place}"), Some(HINT.to_owned())))
        }
    }
}

struct Parser<'a> {
    text: &'a [u8],
    at: usize,
    namespaces: &'a Namespaces<'a>,
}

type Result_<T> = Result<T, String>;

impl Parser<'_> {
    fn expression(&mut self) -> Result_<Vec<Vec<Step>>> {
        let mut paths = Vec::new();
        loop {
            self.blanks();
            if paths.len() == PATHS_MAX {
                return Err(format!("more than {PATHS_MAX} paths"));
            }
            paths.push(self.path()?);
            self.blanks();
            if self.at == self.text.len() {
                return Ok(paths);
            }
            if !self.take("|") {
                return Err("this is not part of a path".to_owned());
            }
        }
    }

    fn path(&mut self) -> Result_<Vec<Step>> {
        let mut steps: Vec<Step> = Vec::new();
        loop {
            let deep = self.take("//");
            if !deep && !self.take("/") {
                return match steps.is_empty() {
                    true => Err("a path begins with / or //".to_owned()),
                    false => Ok(steps),
                };
            }
            if steps.last().is_some_and(|step| !matches!(step.test, NodeTest::Element(_))) {
                return Err("there is nothing below an attribute or a text".to_owned());
            }
            if steps.len() == STEPS_MAX {
                return Err(format!("more than {STEPS_MAX} steps"));
            }
            let test = self.test()?;
            let mut predicates = Vec::new();
            while self.take("[") {
                if predicates.len() == PREDICATES_MAX {
                    return Err(format!("more than {PREDICATES_MAX} predicates"));
                }
                predicates.push(self.predicate()?);
            }
            steps.push(Step { deep, test, predicates });
        }
    }

    fn test(&mut self) -> Result_<NodeTest> {
        if self.take("text()") {
            return Ok(NodeTest::Text);
        }
        if self.take("@") {
            return self.name(true).map(NodeTest::Attribute);
        }
        self.name(false).map(NodeTest::Element)
    }

    /// A name test. A name without a prefix is in no namespace.
    fn name(&mut self, is_attribute: bool) -> Result_<Name> {
        let begin = self.at;
        if self.take("*") {
            return Ok(Name { namespace: None, local: None });
        }
        let first = self.word();
        if first.is_empty() {
            return Err(if is_attribute {
                "an attribute's name is missing"
            } else {
                "an element's name is missing"
            }
            .to_owned());
        }
        if self.rest().starts_with(b"::") {
            self.at = begin;
            return Err("axes are not supported".to_owned());
        }
        if self.rest().first() == Some(&b'(') {
            self.at = begin;
            return Err("this function is not supported".to_owned());
        }
        if !self.take(":") {
            return Ok(Name { namespace: Some(Box::default()), local: Some(first.into()) });
        }
        let declared = self.namespaces.iter().rev().find(|(prefix, _)| *prefix == first.as_slice());
        let namespace: Box<[u8]> = match declared {
            Some((_, uri)) => (*uri).into(),
            None if first == b"xml" => b"http://www.w3.org/XML/1998/namespace".as_slice().into(),
            None => {
                self.at = begin;
                let shown = first.escape_ascii();
                return Err(format!("the rule has no xmlns:{shown}=URI for the prefix {shown}"));
            }
        };
        if self.take("*") {
            return Ok(Name { namespace: Some(namespace), local: None });
        }
        let local = self.word();
        match local.is_empty() {
            true => Err("a name is missing behind the prefix".to_owned()),
            false => Ok(Name { namespace: Some(namespace), local: Some(local.into()) }),
        }
    }

    /// The inside of brackets, and the closing one.
    fn predicate(&mut self) -> Result_<Predicate> {
        self.blanks();
        let predicate = if self.rest().first().is_some_and(u8::is_ascii_digit) {
            self.position()?
        } else if self.take("last()") {
            Predicate::Last
        } else if self.take("position()") {
            self.blanks();
            if !self.take("=") {
                return Err("position() is compared with = and a number".to_owned());
            }
            self.blanks();
            self.position()?
        } else if self.take(".") {
            Predicate::Is(self.value()?)
        } else if self.take("local-name()") {
            Predicate::LocalName(self.value()?)
        } else {
            let test = self.test()?;
            Predicate::Has(test, self.equals()?)
        };
        self.blanks();
        match self.take("]") {
            true => Ok(predicate),
            false => Err("the predicate is not understood or not closed".to_owned()),
        }
    }

    fn position(&mut self) -> Result_<Predicate> {
        let digits = self.rest().iter().take_while(|b| b.is_ascii_digit()).count();
        let number = std::str::from_utf8(&self.rest()[..digits]).ok().and_then(|digits| digits.parse().ok());
        let Some(number) = number else { return Err("a position is a number".to_owned()) };
        self.at += digits;
        Ok(Predicate::Position(number))
    }

    /// `='text'`.
    fn value(&mut self) -> Result_<Box<[u8]>> {
        self.equals()?.ok_or_else(|| "= and a text in quotes are missing".to_owned())
    }

    /// The same, if there is an equals sign.
    fn equals(&mut self) -> Result_<Option<Box<[u8]>>> {
        self.blanks();
        if !self.take("=") {
            return Ok(None);
        }
        self.blanks();
        let Some(&quote) = self.rest().first().filter(|b| matches!(b, b'\'' | b'"')) else {
            return Err("a text is in quotes".to_owned());
        };
        let inner = &self.rest()[1..];
        let Some(length) = inner.iter().position(|b| *b == quote) else {
            return Err("the quote is not closed".to_owned());
        };
        let value = inner[..length].into();
        self.at += length + 2;
        Ok(Some(value))
    }

    fn word(&mut self) -> Vec<u8> {
        let is_name = |b: &&u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.') || **b >= 0x80;
        let length = match self.rest().first() {
            Some(b) if b.is_ascii_digit() || matches!(b, b'-' | b'.') => 0,
            _ => self.rest().iter().take_while(is_name).count(),
        };
        let word = self.rest()[..length].to_vec();
        self.at += length;
        word
    }

    fn rest(&self) -> &[u8] {
        &self.text[self.at..]
    }

    fn blanks(&mut self) {
        self.at += self.rest().iter().take_while(|b| b.is_ascii_whitespace()).count();
    }

    fn take(&mut self, token: &str) -> bool {
        let is_there = self.rest().starts_with(token.as_bytes());
        self.at += if is_there { token.len() } else { 0 };
        is_there
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths() {
        let spaces: &Namespaces<'_> = &[(b"s", b"urn:s")];
        for good in [
            "/a",
            "//a/b//c",
            "/*/s:a/@s:b",
            "//@*",
            "/a/text()",
            "//a[2][@b='x']/c[last()]",
            "/a | //b[text() = \"x\"]",
            "//a[.='1']",
            "//*[local-name()='a'][2]/@*[local-name() = \"b\"]",
            "//s:*",
            "/a[b]",
            "//*[position()=1]",
            "//\u{e9}l",
            "//@xml:lang",
            "//text()",
        ] {
            assert!(
                parse(good.as_bytes(), spaces).is_ok(),
                "{good}: {:?}",
                parse(good.as_bytes(), spaces).err()
            );
        }
        for bad in [
            "",
            "a",
            "/",
            "//",
            "/a/",
            "/a//",
            "/a[",
            "/a[]",
            "/a[1",
            "/a[@b=1]",
            "/a[@b='x]",
            "/x:a",
            "/s:",
            "/a/@b/c",
            "/a/text()/b",
            "/child::a",
            "//a[contains(b,'x')]",
            "/a|",
            "/a b",
            "//a[b>1]",
            "/..",
            "/a/.",
            "count(//a)",
            "//node()",
            "//comment()",
            "/a[1 or 2]",
            "//a[position()>1]",
            "//a[local-name()]",
            "//local-name()",
            "/1a",
            "$x",
            "/a[99999999999]",
        ] {
            let error = parse(bad.as_bytes(), spaces).unwrap_err();
            assert!(error.0.starts_with("XPath: "), "{bad}: {error:?}");
        }
        assert!(parse(b"/x:a", spaces).unwrap_err().0.contains("no xmlns:x=URI"));
    }
}
