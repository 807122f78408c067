//! `%{macros}` to [`Template`]s.

use portcullis_engine::{Part, Template};
use portcullis_types::{Shape, Variable};

use crate::names::Names;

/// The reason why a macro has no value.
pub(crate) struct MacroError {
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

/// Takes `text` apart. An opening `%{` without its `}` is ordinary text, as in ModSecurity; a macro without a
/// meaning is nothing, as there, and `names` remembers to tell.
pub(crate) fn template(text: &[u8], names: &mut Names) -> Template {
    // Nearly always one.
    let mut parts = Vec::with_capacity(1);
    let mut literal = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.windows(2).position(|pair| pair == b"%{") {
        let Some(length) = rest[at + 2..].iter().position(|&b| b == b'}') else { break };
        literal.extend_from_slice(&rest[..at]);
        let inner = &rest[at + 2..at + 2 + length];
        rest = &rest[at + 2 + length + 1..];
        match part(inner, names) {
            Ok(part) => {
                if !literal.is_empty() {
                    parts.push(Part::Literal(std::mem::take(&mut literal).into()));
                }
                parts.push(part);
            }
            Err(error) => names.untold.push(error),
        }
    }
    literal.extend_from_slice(rest);
    if !literal.is_empty() {
        parts.push(Part::Literal(literal.into()));
    }
    Template { parts }
}

fn part(inner: &[u8], names: &mut Names) -> Result<Part, MacroError> {
    let split = inner.iter().position(|&b| b == b'.' || b == b':');
    let (name, key) = match split {
        Some(at) => (&inner[..at], Some(&inner[at + 1..])),
        None => (inner, None),
    };
    let shown = inner.escape_ascii();
    let error = |message: String, hint: &str| {
        let message = format!("{message}: the macro %{{{shown}}} stands for nothing");
        MacroError { message, hint: Some(hint.to_owned()) }
    };
    let Some(variable) = std::str::from_utf8(name).ok().and_then(Variable::from_name) else {
        return Err(error(
            "unknown variable".to_owned(),
            "a macro is %{VARIABLE} or %{collection.key}, such as %{tx.score} or %{REMOTE_ADDR}",
        ));
    };
    if variable == Variable::Rule && names.in_log_text {
        return Err(error(
            "msg, logdata and tag cannot name parts of their own rule".to_owned(),
            "write the text itself; RULE has values in targets, in setvar and in arguments of operators",
        ));
    }
    match crate::targets::supported(variable) {
        Ok(None) => {}
        Ok(Some((message, hint))) | Err((message, hint)) => {
            return Err(error(message, hint.as_deref().unwrap_or_default()));
        }
    }
    match (variable, variable.shape(), key) {
        (Variable::Tx, _, Some(key)) => Ok(Part::Tx(names.tx(key))),
        (_, Shape::Scalar, Some(_)) => {
            Err(error(format!("{} takes no key", variable.name()), "write the variable without a key"))
        }
        (_, _, key) => Ok(Part::Variable { variable, key: key.map(Into::into) }),
    }
}
