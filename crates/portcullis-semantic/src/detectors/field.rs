//! Values unlike those that their field has carried on this site. No text shows that: what the site has
//! learned does (`portcullis-learn`), and who asks it notes what it says
//! ([`Analysis::note`](crate::Analysis)). So do the signatures of cookies.
//!
//! A field that carries code for many of its users is opened for kinds of findings, one by one. Which kinds
//! may be is listed here: an attack shows itself by one that may not.

use crate::{Activity, Class, Detector, Found, Input, Kind, Place, Profile, Severity, kinds};

kinds! {
    reference "https://owasp.org/www-community/vulnerabilities/Improper_Data_Validation";
    UNUSUAL "field.unusual" Error Active "the value is of another type than all that the field has carried";
    SYNTAX "field.unusual-syntax" Critical Active "the value is of another type than all that the field has carried, and has signs of code that it never had";
    SUSPICIOUS "field.unusual-suspicious" Critical Active "the value is of another type than all that the field has carried, and something else was found in it";
    FOREIGN_COOKIE "field.foreign-cookie" Error Active "a cookie that the site signs does not have its signature";
}

/// The kinds of findings that a field may be opened for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Opens {
    /// None.
    #[default]
    Nothing,
    /// Those of text that shows, stores or is code, but none that acts wherever it stands, ends the value's
    /// own place in a statement or command line, or hides what it is.
    Safe,
    /// All.
    All,
}

impl Opens {
    /// True if a field may be opened for findings of this kind.
    pub fn allows(self, class: Class, kind: &Kind) -> bool {
        match self {
            Opens::Nothing => false,
            Opens::All => !matches!(class, Class::Field | Class::Api | Class::Leak | Class::Protocol),
            Opens::Safe => {
                kind.activity == Activity::Quotable
                    && OPENED.contains(&class)
                    && !NEVER.contains(&kind.id)
                    // Markup that would run is of no use to anybody but a browser.
                    && (class != Class::Xss || kind.severity >= Severity::Warning || kind.id.starts_with("xss.js-"))
            }
        }
    }
}

/// The classes whose text people write, too.
const OPENED: [Class; 10] = [
    Class::Sqli,
    Class::Xss,
    Class::Command,
    Class::Path,
    Class::Ssrf,
    Class::Template,
    Class::Code,
    Class::NoSql,
    Class::Ldap,
    Class::Xpath,
];

/// Kinds of these classes that tell of a value which leaves its place, or hides what it is.
const NEVER: &[&str] = names!("field", "never-opened");

/// See the module.
#[derive(Debug)]
pub struct Field;

static PROFILE: Profile = Profile::new(Class::Field, KINDS).weights(include_str!("../../weights/field.tsv"));

impl Detector for Field {
    fn profile(&self) -> &'static Profile {
        &PROFILE
    }

    fn reads(&self, _place: Place) -> bool {
        false
    }

    fn detect(&self, _input: &Input<'_>, _found: &mut Found<'_>) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Detectors;

    /// Each of them is a kind that would be opened otherwise: none is misspelt, or stands there without
    /// effect.
    #[test]
    fn kinds_that_never_open_a_field() {
        let detectors = Detectors::new();
        for id in NEVER {
            let found = detectors.kinds().find(|(_, _, kind)| kind.id == *id);
            let (_, class, kind) = found.unwrap_or_else(|| panic!("there is no kind {id}"));
            assert!(OPENED.contains(&class) && kind.activity == Activity::Quotable, "{id}");
            assert!(!Opens::Safe.allows(class, kind) && Opens::All.allows(class, kind), "{id}");
        }
    }

    #[test]
    fn what_acts_by_itself_opens_no_field() {
        let detectors = Detectors::new();
        let closed =
            [Class::Log4j, Class::Deserialization, Class::Upload, Class::Xxe, Class::Crlf, Class::Prototype];
        for (_, class, kind) in detectors.kinds() {
            let is_markup = class == Class::Xss && kind.severity < Severity::Warning;
            let is_markup = is_markup && !kind.id.starts_with("xss.js-");
            if closed.contains(&class) || kind.activity == Activity::Active || is_markup {
                assert!(!Opens::Safe.allows(class, kind), "{}", kind.id);
            }
            assert!(!Opens::Nothing.allows(class, kind));
        }
        let opened = |id: &str| {
            let mut kinds = detectors.kinds();
            kinds.any(|(_, class, kind)| kind.id == id && Opens::Safe.allows(class, kind))
        };
        for id in
            ["sqli.statement", "xss.js-dialog", "template.arithmetic", "command.reading", "ssrf.loopback"]
        {
            assert!(opened(id), "{id}");
        }
    }
}
