//! A part's `Content-Disposition`.

use crate::body::DispositionError as Error;

/// A parsed `Content-Disposition` value.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Disposition {
    pub(super) name: Option<Vec<u8>>,
    pub(super) filename: Option<Vec<u8>>,
    /// Single quotes where they do not belong, or quotes out of place.
    pub(super) invalid_quoting: bool,
    /// A backslash in a quoted value.
    pub(super) escapes: bool,
}

impl Disposition {
    /// Reads `form-data; name="..."; filename="..."`, as strictly as ModSecurity 2.9.7: no other parameters
    /// (so no `filename*`), none twice. Parameters read before an error stay in `self`.
    pub(super) fn read(&mut self, value: &[u8]) -> Result<(), Error> {
        let rest = value.strip_prefix(b"form-data").ok_or(Error::Type)?;
        let mut rest = skip_blank(rest);
        if rest.is_empty() {
            return Ok(());
        }
        rest = rest.strip_prefix(b";").ok_or(Error::Syntax)?;
        while !rest.is_empty() {
            rest = self.read_parameter(skip_blank(rest))?;
        }
        // Simple readers look for these bytes; where they would miss a file name, the part reads two ways.
        if self.filename.is_some() && memchr::memmem::find(value, b"filename=").is_none() {
            return Err(Error::FilenameHidden);
        }
        Ok(())
    }

    /// Reads one parameter and the semicolon behind it; returns what follows.
    fn read_parameter<'a>(&mut self, rest: &'a [u8]) -> Result<&'a [u8], Error> {
        let name_end = rest.iter().position(|&b| matches!(b, b'=' | b'\t' | b' ')).ok_or(Error::Syntax)?;
        let (name, rest) = rest.split_at(name_end);
        let rest = skip_blank(rest).strip_prefix(b"=").ok_or(Error::Syntax)?;
        let rest = skip_blank(rest);
        let quoted = matches!(rest, [b'"' | b'\'', ..]);
        let (value, rest) = match rest {
            [] => return Err(Error::Syntax),
            [quote, inner @ ..] if quoted => self.read_quoted(inner, *quote)?,
            _ => {
                let end = rest.iter().position(|&b| !is_token(b)).unwrap_or(rest.len());
                let value = &rest[..end];
                self.invalid_quoting |= value.contains(&b'\'') && matches!(name, b"name" | b"filename");
                (value.to_vec(), &rest[end..])
            }
        };
        match name {
            b"name" if self.name.is_some() => return Err(Error::NameRepeated),
            b"name" => self.name = Some(value),
            b"filename" if self.filename.is_some() => return Err(Error::FilenameRepeated),
            b"filename" => self.filename = Some(value),
            _ => return Err(Error::Parameter),
        }
        let after = skip_blank(rest);
        match after {
            [] => Ok(after),
            [b';', after @ ..] => Ok(after),
            _ => {
                // Text right behind the closing quote: it was no closing quote for the sender.
                self.invalid_quoting |= quoted && after.len() == rest.len();
                Err(Error::Syntax)
            }
        }
    }

    /// Reads a quoted value up to its closing quote. Only the quote and the backslash can be escaped; another
    /// backslash stands for itself, since old browsers send whole paths.
    fn read_quoted<'a>(&mut self, mut rest: &'a [u8], quote: u8) -> Result<(Vec<u8>, &'a [u8]), Error> {
        self.invalid_quoting |= quote == b'\'';
        let mut value = Vec::new();
        loop {
            match rest {
                [] | [b'\\'] => return Err(Error::Quote),
                [b'\\', escaped, tail @ ..] if *escaped == quote || *escaped == b'\\' => {
                    self.escapes = true;
                    value.push(*escaped);
                    rest = tail;
                }
                [byte, tail @ ..] => {
                    rest = tail;
                    if *byte == quote {
                        return Ok((value, rest));
                    }
                    self.escapes |= *byte == b'\\';
                    value.push(*byte);
                }
            }
        }
    }
}

fn skip_blank(rest: &[u8]) -> &[u8] {
    let start = rest.iter().position(|&b| !matches!(b, b'\t' | b' ')).unwrap_or(rest.len());
    &rest[start..]
}

/// RFC 2616 `token` (braces included).
fn is_token(byte: u8) -> bool {
    byte.is_ascii_graphic() && !b"()<>@,;:\\\"/[]?=".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(value: &str, expected: Result<(Option<&str>, Option<&str>), Error>, invalid_quoting: bool) {
        let mut read = Disposition::default();
        let result = read.read(value.as_bytes());
        let text = |v: &Option<Vec<u8>>| v.clone().map(|v| String::from_utf8_lossy(&v).into_owned());
        let result = result.map(|()| (text(&read.name), text(&read.filename)));
        let expected = expected.map(|(n, f)| (n.map(str::to_owned), f.map(str::to_owned)));
        assert_eq!(result, expected, "{value}");
        assert_eq!(read.invalid_quoting, invalid_quoting, "{value}");
    }

    #[test]
    fn values() {
        check("form-data", Ok((None, None)), false);
        check("form-data; name=\"a\"", Ok((Some("a"), None)), false);
        check("form-data;name=a", Ok((Some("a"), None)), false);
        check("form-data; name=\"a\";", Ok((Some("a"), None)), false);
        check("form-data; name = \"a\" ; filename=\"b;c\"", Ok((Some("a"), Some("b;c"))), false);
        check("form-data; name=\"\"; filename=\"\"", Ok((Some(""), Some(""))), false);
        check("form-data; name=\"a\\\"b\\\\c\\d\"", Ok((Some("a\"b\\c\\d"), None)), false);
        check("form-data; name=\"it's\"", Ok((Some("it's"), None)), false);
        check("form-data; name='a'", Ok((Some("a"), None)), true);
        check("form-data; name=it's", Ok((Some("it's"), None)), true);
    }

    #[test]
    fn errors() {
        check("attachment; name=a", Err(Error::Type), false);
        check("Form-Data; name=a", Err(Error::Type), false);
        check("form-data name=a", Err(Error::Syntax), false);
        check("form-data; ", Err(Error::Syntax), false);
        check("form-data; name", Err(Error::Syntax), false);
        check("form-data; name=", Err(Error::Syntax), false);
        check("form-data; name=a; filename", Err(Error::Syntax), false);
        check("form-data; name=a b", Err(Error::Syntax), false);
        check("form-data; name=\"a", Err(Error::Quote), false);
        check("form-data; name=\"a\\", Err(Error::Quote), false);
        check("form-data; name=\"a\"b\"", Err(Error::Syntax), true);
        check("form-data; name=\"a\"; name=\"b\"", Err(Error::NameRepeated), false);
        check("form-data; name=a; filename=b; filename=c", Err(Error::FilenameRepeated), false);
        check("form-data; name=a; filename*=utf-8''b", Err(Error::Parameter), false);
        check("form-data; name*=utf-8''a", Err(Error::Parameter), false);
        check("form-data; name=a; x=y", Err(Error::Parameter), false);
        check("form-data; name=a; filename =b", Err(Error::FilenameHidden), false);
    }
}
