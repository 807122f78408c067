use std::borrow::Cow;

use portcullis_event::{Action, DetectionMode, EngineMode, Event};
use portcullis_types::Class;

use crate::outcome::Outcome;

/// Declares the fields: name, kind, how a value is read from an event, and meaning, in the order in which
/// they are listed. Whatever evaluates filters takes all of it from here.
macro_rules! fields {
    ($($variant:ident $name:literal $kind:expr, $read:expr, $doc:literal;)*) => {
        /// What a comparison looks at.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Field { $(#[doc = $doc] $variant,)* }

        impl Field {
            /// Every field, in declaration order; `ALL[f as usize] == f`.
            pub const ALL: &'static [Field] = &[$(Field::$variant,)*];

            /// Its name in filters.
            pub fn name(self) -> &'static str {
                match self { $(Field::$variant => $name,)* }
            }

            /// What it can be compared with.
            pub fn kind(self) -> Kind {
                match self { $(Field::$variant => $kind,)* }
            }

            /// How an event is asked for it.
            pub fn read(self) -> Read {
                match self { $(Field::$variant => $read,)* }
            }

            /// One line for people.
            pub fn about(self) -> &'static str {
                match self { $(Field::$variant => $doc,)* }
            }
        }
    };
}

/// What is called back with a text.
pub type Add<'a> = &'a mut dyn FnMut(&str);

/// How the value of a field is read from an event.
#[derive(Clone, Copy, Debug)]
pub enum Read {
    /// A number, if the event has one.
    Number(fn(&Event) -> Option<u64>),
    /// A text; empty if the event has none.
    Word(for<'e> fn(&'e Event) -> Cow<'e, str>),
    /// Calls back with each of its texts; a text may come more than once.
    List(fn(&Event, Add<'_>)),
    /// The whole event, as JSON.
    Json,
}

/// What a field holds, and so what it can be compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A moment: `= != < <= > >=` with RFC 3339, a date, or a time before now (`-90m`, `-1h`, `-7d`).
    Time,
    /// A whole number: `= != < <= > >= in`.
    Number,
    /// A text: `= != ^= ~ in`.
    Word,
    /// One of these words: `= != in`.
    OneOf(&'static [&'static str]),
    /// An address: `= != in` with addresses and networks.
    Address,
    /// Any text of the event: `~`, or quoted text alone.
    Text,
}

fields! {
    Time "time" Kind::Time, Read::Number(|event| Some(event.time.epoch_millis())), "When the request began.";
    Id "id" Kind::Word, Read::Word(|event| (&*event.request_id).into()), "The request id.";
    Site "site" Kind::Word, Read::Word(|event| (&*event.site).into()), "The site's name.";
    Route "route" Kind::Word, Read::Word(|event| (&*event.route).into()), "The route's name.";
    Verdict "verdict" Kind::OneOf(Action::NAMES), Read::Word(|event| event.verdict.action.name().into()),
        "What was done.";
    Status "status" Kind::Number, Read::Number(|event| event.response.status.map(u64::from)),
        "The status that the client got.";
    Class "class" Kind::OneOf(Class::NAMES), Read::List(read::classes),
        "Classes of attack that decided or were found.";
    Rule "rule" Kind::Number, Read::List(read::rules), "Rules that matched.";
    Client "client" Kind::Address, Read::Word(|event| (&*event.client.addr).into()), "The client's address.";
    Country "country" Kind::Word, Read::Word(|event| event.client.country.as_deref().unwrap_or("").into()),
        "The client's country, two letters.";
    Asn "asn" Kind::Number, Read::Number(|event| event.client.asn.map(u64::from)),
        "The client's autonomous system.";
    Method "method" Kind::Word, Read::Word(|event| (&*event.request.method).into()), "The request's method.";
    Host "host" Kind::Word, Read::Word(|event| (&*event.server.host).into()), "The host that the client named.";
    Path "path" Kind::Word, Read::Word(|event| read::path(&event.request.target).into()),
        "The request's path, without the query.";
    Agent "user_agent" Kind::Word, Read::Word(read::user_agent), "The request's User-Agent.";
    Upstream "upstream" Kind::Word, Read::Word(|event| event.upstream.as_deref().unwrap_or("").into()),
        "The endpoint that was asked.";
    Control "control" Kind::Word, Read::Word(read::control),
        "The rate limit, list, ban or agent that decided.";
    Refusal "refusal" Kind::Word, Read::Word(|event| event.refusal.as_deref().unwrap_or("").into()),
        "Why the request was not acceptable HTTP.";
    Mode "mode" Kind::OneOf(DetectionMode::NAMES), Read::Word(|event| event.mode.name().into()),
        "Which detectors ran.";
    Trial "trial" Kind::Word, Read::List(|event, add| event.trials.iter().for_each(|id| add(id))),
        "Exclusions on trial with which the request would have passed: their ids.";
    Engine "engine" Kind::OneOf(EngineMode::NAMES), Read::Word(|event| event.engine.name().into()),
        "Whether verdicts were enforced.";
    Duration "duration_us" Kind::Number, Read::Number(|event| Some(event.duration_us)),
        "From first byte to last, in microseconds.";
    Count "count" Kind::Number, Read::Number(|event| Some(event.count)),
        "Requests that the event stands for.";
    Text "text" Kind::Text, Read::Json, "Any text of the event.";
    // Indexes of stored events have the places of fields in them: new fields stand at the end.
    Outcome "outcome" Kind::OneOf(Outcome::NAMES),
        Read::Word(|event| Outcome::of(event).map_or("", Outcome::name).into()),
        "Outcome of the request, whatever decided it.";
    Location "location" Kind::Word, Read::List(read::locations),
        "Values in which the semantic detector found something: `query:id`.";
}

impl Field {
    /// The field of this name.
    pub fn named(name: &str) -> Option<Field> {
        Field::ALL.iter().copied().find(|field| field.name() == name)
    }

    /// True if an event can have several values of it; a comparison holds if it holds for one of them.
    pub fn is_list(self) -> bool {
        matches!(self.read(), Read::List(_))
    }

    /// The number of an event, if the field is one and the event has it.
    pub fn number(self, event: &Event) -> Option<u64> {
        let Read::Number(read) = self.read() else { return None };
        read(event)
    }

    /// The text of an event; empty if the field is none or the event has none.
    pub fn word(self, event: &Event) -> Cow<'_, str> {
        let Read::Word(read) = self.read() else { return Cow::Borrowed("") };
        read(event)
    }

    /// Calls `add` with each text of an event where there can be several; a text may come more than once.
    pub fn list(self, event: &Event, mut add: impl FnMut(&str)) {
        if let Read::List(read) = self.read() {
            read(event, &mut add);
        }
    }
}

/// The location of a value, as filters and exclusions name it.
pub fn location(place: &str, name: &str) -> String {
    if name.is_empty() { place.to_owned() } else { format!("{place}:{name}") }
}

/// The readings that take more than a line.
mod read {
    use std::borrow::Cow;

    use portcullis_event::Event;

    use super::{Add, location};

    pub fn locations(event: &Event, add: Add<'_>) {
        let findings = event.findings.iter().map(|found| (found.place, &found.name));
        let scores = event.scores.semantic.iter().map(|score| (score.place, &score.name));
        findings.chain(scores).for_each(|(place, name)| add(&location(place.name(), name)));
    }

    pub fn classes(event: &Event, add: Add<'_>) {
        event.verdict.class.iter().for_each(|class| add(class.name()));
        event.findings.iter().for_each(|finding| add(finding.class.name()));
        event.scores.by_class.keys().filter_map(|name| class_of_score(name)).for_each(add);
    }

    pub fn rules(event: &Event, add: Add<'_>) {
        let mut last = None;
        for found in &event.matches {
            let id = found.rule.rule_id.0;
            if last.replace(id) != Some(id) {
                add(&id.to_string());
            }
        }
        event.verdict.rule_id.iter().for_each(|id| add(&id.0.to_string()));
    }

    pub fn user_agent(event: &Event) -> Cow<'_, str> {
        let header = event.request.headers.iter().find(|h| h.name.eq_ignore_ascii_case("user-agent"));
        Cow::Borrowed(header.map_or("", |header| &header.value))
    }

    pub fn control(event: &Event) -> Cow<'_, str> {
        match &event.verdict.control {
            Some(control) => Cow::Owned(format!("{}:{}", control.by.name(), control.name)),
            None => Cow::Borrowed(""),
        }
    }

    /// The class of attack that a score of the CRS counts.
    fn class_of_score(name: &str) -> Option<&'static str> {
        Some(match name {
            "sqli" => "sqli",
            "xss" => "xss",
            "rfi" => "remote-file",
            "lfi" => "path",
            "rce" => "command",
            "php" => "code",
            "http" => "protocol",
            _ => return None,
        })
    }

    /// The path of a request target, in origin or absolute form.
    pub fn path(target: &str) -> &str {
        let target = match target.split_once("://") {
            Some((scheme, rest)) if !scheme.contains(['/', '?']) => {
                rest.find('/').map_or("/", |at| &rest[at..])
            }
            _ => target,
        };
        target.split(['?', '#']).next().unwrap_or("")
    }
}

#[cfg(test)]
mod tests {
    use super::read::path;

    #[test]
    fn a_path_has_no_query_and_no_host() {
        for (target, expected) in [
            ("/a/b?c=d", "/a/b"),
            ("http://shop.example/a?b", "/a"),
            ("http://shop.example", "/"),
            ("/login?next=http://x/y", "/login"),
            ("*", "*"),
            ("/a#b", "/a"),
        ] {
            assert_eq!(path(target), expected, "{target}");
        }
    }
}
