//! The name of a command, bare, in a field that says it is for one: `?cmd=whoami`, `CMD: id`.
//!
//! A detector of its own, for its texts have no sign and are a single word; the field's name is what tells.

use portcullis_types::Span;

use super::names::{Group, NAME_BYTES_MAX, Names, bare_hints};
use crate::detectors::purpose;
use crate::{ByteGroups, Class, Detector, Found, Hint, Input, Profile, kinds};

kinds! {
    reference "https://owasp.org/www-community/attacks/Command_Injection";
    FIELD "command.field" Critical Quotable
        "the name of a command that tells about the system, in a field for commands";
}

/// See the module.
#[derive(Debug)]
pub struct CommandField {
    names: Names,
    hints: Vec<Hint>,
}

impl CommandField {
    /// The detector with its data.
    pub fn new() -> CommandField {
        CommandField { names: Names::new(), hints: bare_hints().map(Hint::word).collect() }
    }
}

impl Default for CommandField {
    fn default() -> Self {
        CommandField::new()
    }
}

static PROFILE: Profile = Profile::new(Class::Command, KINDS)
    .needs(ByteGroups::ALPHANUMERIC)
    // An `@` may stand before the name.
    .bytes_max(NAME_BYTES_MAX + 1);

impl Detector for CommandField {
    fn profile(&self) -> &'static Profile {
        &PROFILE
    }

    fn hints(&self) -> &[Hint] {
        &self.hints
    }

    fn detect(&self, input: &Input<'_>, found: &mut Found<'_>) {
        let text = input.text.trim_ascii();
        let Some(command) = self.names.get(text).filter(|_| purpose::names_command(input.location)) else {
            return;
        };
        // An interface may take commands of its own, but none has one called `whoami`.
        let is_no_word = command.group == Group::Recon && command.is_distinctive && !command.is_word;
        if is_no_word
            || purpose::runs_commands(input.location) && matches!(command.group, Group::Recon | Group::List)
        {
            found.add(FIELD, Span::new(0, input.text.len()));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::detectors::testing::look;
    use crate::{Class, Place};

    #[test]
    fn bare_names() {
        for (place, name, text, wanted) in [
            (Place::Query, "cmd", "whoami", true),
            (Place::Header, "CMD", "id", true),
            (Place::Form, "exec", "ls", true),
            (Place::Query, "q", "whoami", false),
            (Place::Json, "command", "ls", false),
            (Place::Json, "cmd", "whoami", true),
            (Place::XmlText, "cmd", "systeminfo", true),
            (Place::Json, "command", "hostname", false),
            (Place::Json, "name", "whoami", false),
            (Place::Query, "cmd", "search", false),
            (Place::Query, "cmd", "login", false),
            (Place::Form, "command", "start", false),
        ] {
            let (kinds, is_blocked) = look(Class::Command, place, name, text.as_bytes());
            assert_eq!(is_blocked, wanted, "{name}={text}: {kinds}");
        }
    }
}
