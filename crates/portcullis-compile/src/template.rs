//! `%{macros}` to [`Template`]s.

use portcullis_engine::{Part, Template};
use portcullis_types::{Shape, Variable};

use crate::names::Names;

/// Why a macro cannot be compiled.
pub(crate) struct MacroError {
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

/// Takes `text` apart. An opening `%{` without its `}` is ordinary text, as in ModSecurity.
pub(crate) fn template(text: &[u8], names: &mut Names) -> Result<Template, MacroError> {
    // Nearly always one.
    let mut parts = Vec::with_capacity(1);
    let mut literal = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.windows(2).position(|pair| pair == b"%{") {
        let Some(length) = rest[at + 2..].iter().position(|&b| b == b'}') else { break };
        literal.extend_from_slice(&rest[..at]);
        let inner = &rest[at + 2..at + 2 + length];
        rest = &rest[at + 2 + length + 1..];
        if !literal.is_empty() {
            parts.push(Part::Literal(std::mem::take(&mut literal).into()));
        }
        parts.push(part(inner, names)?);
    }
    literal.extend_from_slice(rest);
    if !literal.is_empty() {
        parts.push(Part::Literal(literal.into()));
    }
    Ok(Template { parts })
}

fn part(inner: &[u8], names: &mut Names) -> Result<Part, MacroError> {
    let split = inner.iter().position(|&b| b == b'.' || b == b':');
    let (name, key) = match split {
        Some(at) => (&inner[..at], Some(&inner[at + 1..])),
        None => (inner, None),
    };
    let error = |message: String, hint: &str| MacroError { message, hint: Some(hint.to_owned()) };
    let shown = inner.escape_ascii();
    let Some(variable) = std::str::from_utf8(name).ok().and_then(Variable::from_name) else {
        return Err(error(
            format!("unknown variable in macro %{{{shown}}}"),
            "a macro is %{VARIABLE} or %{collection.key}, such as %{tx.score} or %{REMOTE_ADDR}",
        ));
    };
    crate::targets::supported(variable).map_err(|(message, hint)| MacroError { message, hint })?;
    match (variable, variable.shape(), key) {
        (Variable::Tx, _, Some(key)) => Ok(Part::Tx(names.tx(key))),
        (_, Shape::Scalar, Some(_)) => Err(error(
            format!("{} takes no key in macro %{{{shown}}}", variable.name()),
            "write the variable without a key",
        )),
        (_, _, key) => Ok(Part::Variable { variable, key: key.map(Into::into) }),
    }
}
