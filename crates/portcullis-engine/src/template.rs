use portcullis_types::Variable;

use crate::TxSlot;

/// A text with `%{macros}`, taken apart at load time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Template {
    /// Pieces in order; none for the empty text.
    pub parts: Vec<Part>,
}

/// A piece of a [`Template`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// As it is.
    Literal(Box<[u8]>),
    /// The value of a `TX` key.
    Tx(TxSlot),
    /// The first value of `variable`, or of its `key`; nothing if there is none.
    Variable {
        /// The variable.
        variable: Variable,
        /// The key.
        key: Option<Box<[u8]>>,
    },
}

impl Part {
    /// The `TX` key that it names, if it does.
    pub(crate) fn slot(&self) -> Option<TxSlot> {
        match self {
            Part::Tx(slot) => Some(*slot),
            Part::Literal(_) | Part::Variable { .. } => None,
        }
    }
}

impl Template {
    /// A text without macros.
    pub fn literal(text: &[u8]) -> Template {
        if text.is_empty() {
            return Template::default();
        }
        Template { parts: vec![Part::Literal(text.into())] }
    }

    /// The text, if it has no macro.
    pub fn as_literal(&self) -> Option<&[u8]> {
        match self.parts.as_slice() {
            [] => Some(b""),
            [Part::Literal(text)] => Some(text),
            _ => None,
        }
    }
}
