//! `@rsub`: substitution in a body. Follows `msre_op_rsub_param_init` and `msre_op_rsub_execute`.

use bstr::{BString, ByteSlice};
use portcullis_match::{Captures, Regex, RegexFlags};

/// `s/find/replacement/flags`.
pub(crate) struct Rsub {
    find: Find,
    replacement: BString,
}

enum Find {
    Regex(Regex),
    /// Macros, whose values are taken literally.
    Literal(BString),
}

impl Rsub {
    pub(crate) fn new(argument: &[u8]) -> Result<Rsub, String> {
        let delimiter = *argument.get(1).ok_or("rsub without a delimiter")?;
        let mut parts = vec![Vec::new()];
        let mut bytes = argument[2..].iter().copied().peekable();
        while let Some(byte) = bytes.next() {
            if byte == delimiter {
                parts.push(Vec::new());
                continue;
            }
            let last = parts.len() - 1;
            parts[last].push(byte);
            if byte == b'\\' {
                parts[last].extend(bytes.next());
            }
        }
        let [find, replacement, flags] = parts.as_slice() else { return Err("rsub form".to_owned()) };
        let find = find.replace(b"\\/", b"/");
        let find = if find.contains_str("%{") {
            Find::Literal(find.into())
        } else {
            let flags = RegexFlags { case_insensitive: flags.contains(&b'i'), ..RegexFlags::default() };
            Find::Regex(Regex::new(&find, flags).map_err(|error| error.message)?)
        };
        Ok(Rsub { find, replacement: replacement.trim_ascii_start().replace(b"\\/", b"/").into() })
    }

    /// The text with every match replaced. Text behind a match is a text of its own.
    pub(crate) fn apply(&self, text: &[u8], expand: &dyn Fn(&[u8]) -> BString) -> BString {
        let replacement = expand(&self.replacement);
        let mut out = Vec::new();
        let mut rest = text;
        loop {
            let mut groups = Captures::default();
            let found = match &self.find {
                Find::Regex(regex) => regex.captures(rest, &mut groups),
                Find::Literal(text) => {
                    let text = expand(text);
                    let at = rest.find(text.as_slice()).filter(|_| !text.is_empty());
                    groups[0] = at.map(|at| portcullis_types::Span::new(at, at + text.len()));
                    at.is_some()
                }
            };
            let Some(whole) = groups[0].filter(|_| found) else { break };
            out.extend_from_slice(&rest[..whole.start as usize]);
            let mut at = 0;
            while at < replacement.len() {
                let digit = replacement.get(at + 1).copied().filter(|d| (b'1'..=b'9').contains(d));
                match digit {
                    Some(digit) if replacement[at] == b'\\' => {
                        if let Some(group) = groups[usize::from(digit - b'0')] {
                            out.extend_from_slice(group.of(rest));
                        }
                        at += 2;
                    }
                    _ => {
                        out.push(replacement[at]);
                        at += 1;
                    }
                }
            }
            rest = &rest[whole.end as usize..];
            if whole.start == whole.end {
                let Some((byte, after)) = rest.split_first() else { break };
                out.push(*byte);
                rest = after;
            }
        }
        out.extend_from_slice(rest);
        out.into()
    }
}
