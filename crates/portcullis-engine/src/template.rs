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

/// `msg` or `logdata` of a rule. No macro in it stands for another text of the rule: none could stand for
/// itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogText {
    /// For logs, with its macros.
    pub template: Template,
    /// `None`: the template is this very text.
    written: Option<Box<[u8]>>,
}

impl LogText {
    /// `template` is what became of `written`.
    pub fn new(template: Template, written: &[u8]) -> LogText {
        let is_literal = template.as_literal() == Some(written);
        LogText { template, written: (!is_literal).then(|| written.into()) }
    }

    /// As the rule has it, which is what `%{RULE.msg}` stands for.
    pub fn written(&self) -> &[u8] {
        self.written.as_deref().or_else(|| self.template.as_literal()).unwrap_or_default()
    }
}
