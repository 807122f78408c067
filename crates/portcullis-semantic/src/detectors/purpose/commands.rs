//! Fields that name something to run, a command or a function, or a single argument of it.
//!
//! A word alone is an attack only where the application runs what the field says.

use super::name::{above, has_last_word, has_word, innermost, is_of_field, last_part, parts};
use crate::{Location, Place};

/// The field holds command lines of a project: `scripts` of a package, steps of a pipeline (`run`,
/// `steps.commands`).
pub(in crate::detectors) fn takes_command_lines(location: Location<'_>) -> bool {
    const LINES: &[&[u8]] = &[b"command", b"commands", b"script"];
    let last = last_part(location.name);
    let above = above(location.name);
    let is_step = || {
        let mut parts = parts(location.name).skip_while(|part| LINES.contains(part));
        LINES.contains(&last) && parts.next() == Some(b"steps")
    };
    location.place == Place::Json
        && (last_part(above) == b"scripts"
            || !above.is_empty() && [&b"run"[..], b"entrypoint"].contains(&last)
            || is_step())
}

/// The field holds the command line that a language model gives a tool: an argument of a call of MCP, or of
/// one that a conversation records.
pub(in crate::detectors) fn takes_tool_call(location: Location<'_>) -> bool {
    let mut parts = parts(location.name);
    location.place == Place::Json
        && parts.next().is_some_and(is_command)
        && matches!(
            (parts.next(), parts.next()),
            (Some(b"arguments"), Some(b"params")) | (Some(b"input"), Some(b"content"))
        )
}

/// The field holds the command line of a container as Kubernetes has it: `containers.command`.
pub(in crate::detectors) fn takes_container_command(location: Location<'_>) -> bool {
    const LINES: &[&[u8]] = &[b"command", b"args"];
    let mut parts = parts(location.name).skip_while(|part| LINES.contains(part));
    location.place == Place::Json
        && LINES.contains(&last_part(location.name))
        && matches!(parts.next(), Some(b"containers" | b"initContainers"))
}

/// A name that [`takes_tool_call`].
pub(super) const COMMAND_OF_CALL: &[u8] = b"params.arguments.command";

/// The field is for the arguments of a tool in a conversation, a document of JSON:
/// `tool_calls.function.arguments`, `input.arguments`.
pub(super) fn is_call(location: Location<'_>) -> bool {
    let mut parts = parts(location.name);
    location.place == Place::Json
        && parts.next() == Some(b"arguments")
        && match parts.next() {
            Some(b"function") => parts.next() == Some(b"tool_calls"),
            next => next == Some(b"input"),
        }
}

/// The argument of a tool that is a command line, or a list of its words.
pub(super) fn is_command(path: &[u8]) -> bool {
    let mut names = parts(path).peekable();
    names.peek().is_some() && names.all(|name| matches!(name, b"command" | b"cmd"))
}

/// The field holds the command that something is to run, by its name.
pub(in crate::detectors) fn runs_commands(location: Location<'_>) -> bool {
    let is_field = matches!(location.place, Place::Query | Place::Form | Place::Header | Place::Cookie);
    is_field && names_command(location)
}

/// The field is named as one for a command, wherever it stands; an interface may mean its own.
pub(in crate::detectors) fn names_command(location: Location<'_>) -> bool {
    const COMMANDS: &[&[u8]] = &[b"cmd", b"command", b"exec", b"execute", b"shell"];
    has_word(innermost(location.name), COMMANDS)
}

/// The field is for the name or address of one machine or network interface: neither a separator of commands
/// nor a space is in one.
pub(in crate::detectors) fn names_machine(location: Location<'_>) -> bool {
    let key = innermost(location.name);
    let is_machine = |word: &&str| has_last_word(key, &[word.as_bytes()]);
    is_of_field(location.place) && MACHINES.iter().any(is_machine)
}

/// Words for one machine or network interface.
pub(in crate::detectors) const MACHINES: &[&str] = names!("purpose", "machines");

/// The field is for arguments of a program, or a program with them: `args`, `extra_flags`, `cli_options`.
pub(in crate::detectors) fn takes_arguments(location: Location<'_>) -> bool {
    const ARGUMENTS: &[&[u8]] = words!("purpose", "arguments");
    parts(location.name).take(2).any(|part| has_word(part, ARGUMENTS))
}

/// The field names a function or method that something calls.
pub(in crate::detectors) fn names_function(location: Location<'_>) -> bool {
    const FUNCTIONS: &[&[u8]] = &[
        b"function",
        b"func",
        b"fn",
        b"method",
        b"callback",
        b"call",
        b"hook",
        b"filter",
        b"action",
        b"handler",
        b"vars",
    ];
    is_of_field(location.place) && has_word(innermost(location.name), FUNCTIONS)
}

/// The field is for one host, file, user or password: signs that join names of columns elsewhere join nothing
/// there.
pub(in crate::detectors) fn takes_single_name(location: Location<'_>) -> bool {
    const SINGLE: &[&[u8]] = words!("purpose", "single-names");
    has_word(innermost(location.name), SINGLE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(place: Place, name: &str) -> Location<'_> {
        Location::new(place, name.as_bytes())
    }

    #[test]
    fn fields_for_machines() {
        for name in ["host", "target_ip", "pingHost", "net[gateway]"] {
            assert!(names_machine(at(Place::Query, name)), "{name}");
        }
        for name in ["hosts", "hosting", "ip_list", "address", "zip", "ship"] {
            assert!(!names_machine(at(Place::Query, name)), "{name}");
        }
    }

    #[test]
    fn calls_of_tools() {
        for name in ["params.arguments.command", "messages.messages.content.content.input.cmd"] {
            assert!(takes_tool_call(at(Place::Json, name)), "{name}");
            assert!(!takes_tool_call(at(Place::Form, name)), "{name}");
        }
        for name in [
            "command",
            "arguments.command",
            "input.command",
            "params.arguments.repo",
            "params.arguments[command]",
            "params[arguments][command]",
            "content.input.command.host",
        ] {
            assert!(!takes_tool_call(at(Place::Json, name)), "{name}");
        }
        assert!(takes_tool_call(Location::new(Place::Json, COMMAND_OF_CALL)));
    }

    #[test]
    fn containers() {
        for name in ["spec.containers.containers.command.command", "initContainers.args"] {
            assert!(takes_container_command(at(Place::Json, name)), "{name}");
            assert!(!takes_container_command(at(Place::Form, name)), "{name}");
        }
        for name in
            ["command", "containers.name", "containers[command]", "containers.env.command", "containers"]
        {
            assert!(!takes_container_command(at(Place::Json, name)), "{name}");
        }
    }

    #[test]
    fn fields_that_run() {
        assert!(runs_commands(at(Place::Header, "X-Api-Cmd")) && !runs_commands(at(Place::Json, "command")));
        assert!(
            takes_single_name(at(Place::Query, "host")) && !takes_single_name(at(Place::Query, "sort_by"))
        );
    }
}
