use portcullis_event::{Action, DetectionMode, EngineMode};
use portcullis_types::Class;

use crate::outcome::Outcome;

/// Declares the fields with their name, kind and meaning, in the order in which they are listed.
macro_rules! fields {
    ($($variant:ident $name:literal $kind:expr, $doc:literal;)*) => {
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

            /// One line for people.
            pub fn about(self) -> &'static str {
                match self { $(Field::$variant => $doc,)* }
            }
        }
    };
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
    Time "time" Kind::Time, "When the request began.";
    Id "id" Kind::Word, "The request id.";
    Site "site" Kind::Word, "The site's name.";
    Route "route" Kind::Word, "The route's name.";
    Verdict "verdict" Kind::OneOf(Action::NAMES), "What was done.";
    Status "status" Kind::Number, "The status that the client got.";
    Class "class" Kind::OneOf(Class::NAMES), "Classes of attack that decided or were found.";
    Rule "rule" Kind::Number, "Rules that matched.";
    Client "client" Kind::Address, "The client's address.";
    Country "country" Kind::Word, "The client's country, two letters.";
    Asn "asn" Kind::Number, "The client's autonomous system.";
    Method "method" Kind::Word, "The request's method.";
    Host "host" Kind::Word, "The host that the client named.";
    Path "path" Kind::Word, "The request's path, without the query.";
    Agent "user_agent" Kind::Word, "The request's User-Agent.";
    Upstream "upstream" Kind::Word, "The endpoint that was asked.";
    Control "control" Kind::Word, "The rate limit, list, ban or agent that decided.";
    Refusal "refusal" Kind::Word, "Why the request was not acceptable HTTP.";
    Mode "mode" Kind::OneOf(DetectionMode::NAMES), "Which detectors ran.";
    Trial "trial" Kind::Word, "Exclusions on trial with which the request would have passed: their ids.";
    Engine "engine" Kind::OneOf(EngineMode::NAMES), "Whether verdicts were enforced.";
    Duration "duration_us" Kind::Number, "From first byte to last, in microseconds.";
    Count "count" Kind::Number, "Requests that the event stands for.";
    Text "text" Kind::Text, "Any text of the event.";
    // Indexes of stored events have the places of fields in them: new fields stand at the end.
    Outcome "outcome" Kind::OneOf(Outcome::NAMES), "What came of the request, whoever decided.";
}

impl Field {
    /// The field of this name.
    pub fn named(name: &str) -> Option<Field> {
        Field::ALL.iter().copied().find(|field| field.name() == name)
    }

    /// True if an event can have several values of it; a comparison holds if it holds for one of them.
    pub fn is_list(self) -> bool {
        matches!(self, Field::Class | Field::Rule | Field::Trial)
    }
}
