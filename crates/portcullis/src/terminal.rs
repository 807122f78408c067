//! Colour for people: on a terminal only, and not where `NO_COLOR` (no-color.org) or `TERM=dumb` says so.

use std::ffi::OsStr;
use std::io::IsTerminal as _;

/// Paints words, or leaves them as they are.
#[derive(Clone, Copy, Debug)]
pub struct Paint(bool);

/// A way to paint.
#[derive(Clone, Copy, Debug)]
pub enum Colour {
    /// What to look at or to type.
    Strong,
    /// Something was refused.
    Refused,
    /// Something would have been refused.
    Noticed,
}

impl Paint {
    /// For standard error.
    pub fn of_stderr() -> Paint {
        let (no_color, term) = (std::env::var_os("NO_COLOR"), std::env::var_os("TERM"));
        Paint(std::io::stderr().is_terminal() && is_wanted(no_color.as_deref(), term.as_deref()))
    }

    /// The text in this colour.
    pub fn text(self, colour: Colour, text: &str) -> String {
        let code = match colour {
            Colour::Strong => "1",
            Colour::Refused => "31",
            Colour::Noticed => "33",
        };
        match self.0 {
            true => format!("\x1b[{code}m{text}\x1b[0m"),
            false => text.to_owned(),
        }
    }
}

/// An empty `NO_COLOR` is none.
fn is_wanted(no_color: Option<&OsStr>, term: Option<&OsStr>) -> bool {
    no_color.is_none_or(OsStr::is_empty) && term.is_some_and(|term| term != "dumb" && !term.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colour_is_for_terminals_that_want_it() {
        let wanted = |no_color: Option<&str>, term: Option<&str>| {
            is_wanted(no_color.map(OsStr::new), term.map(OsStr::new))
        };
        assert!(wanted(None, Some("xterm")) && wanted(Some(""), Some("xterm")));
        assert!(!wanted(Some("1"), Some("xterm")) && !wanted(None, Some("dumb")) && !wanted(None, None));
        assert_eq!(Paint(false).text(Colour::Refused, "deny"), "deny");
        assert_eq!(Paint(true).text(Colour::Refused, "deny"), "\x1b[31mdeny\x1b[0m");
    }
}
