//! The effects of a piece of JavaScript, and the outcome of a walk over it.

/// The set of effects of a piece of JavaScript.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Effects(u32);

impl Effects {
    pub const DIALOG: Effects = Effects(1);
    pub const EXECUTE: Effects = Effects(1 << 1);
    pub const WRITE: Effects = Effects(1 << 2);
    pub const SEND: Effects = Effects(1 << 3);
    pub const DECODE: Effects = Effects(1 << 4);
    pub const DATA: Effects = Effects(1 << 5);
    pub const NAVIGATE: Effects = Effects(1 << 6);
    pub const COMPUTED: Effects = Effects(1 << 7);
    pub const REFLECT: Effects = Effects(1 << 8);
    pub const INDIRECT: Effects = Effects(1 << 9);
    pub const OBFUSCATED: Effects = Effects(1 << 10);
    /// Calls something.
    pub const CALL: Effects = Effects(1 << 11);
    pub const ASSIGN: Effects = Effects(1 << 12);
    pub const THROW: Effects = Effects(1 << 13);
    pub const TAGGED: Effects = Effects(1 << 14);
    pub const FUNCTION: Effects = Effects(1 << 15);
    /// Names the page or what holds all names.
    pub const GLOBAL: Effects = Effects(1 << 17);

    /// What only an author who wants to run a script does.
    pub const SINKS: Effects = Effects(0x7FF);
    /// Those of them that programs seldom have.
    pub const TELLING: Effects = Effects(
        Effects::DIALOG.0
            | Effects::EXECUTE.0
            | Effects::WRITE.0
            | Effects::DATA.0
            | Effects::NAVIGATE.0
            | Effects::COMPUTED.0
            | Effects::INDIRECT.0
            | Effects::OBFUSCATED.0,
    );
    /// What makes a function that is only named run.
    pub const RUNS: Effects =
        Effects(Effects::CALL.0 | Effects::THROW.0 | Effects::ASSIGN.0 | Effects::TAGGED.0);
    /// What any code does.
    pub const ACTS: Effects = Effects(0x7FF | 0xF << 11);

    /// Both together.
    pub const fn or(self, other: Effects) -> Effects {
        Effects(self.0 | other.0)
    }

    pub fn any(self, other: Effects) -> bool {
        self.0 & other.0 != 0
    }

    pub fn insert(&mut self, other: Effects) {
        self.0 |= other.0;
    }
}

/// The outcome of a walk.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Outcome {
    pub effects: Effects,
    /// Code to the end.
    pub holds: bool,
    /// It ends with a comment, which takes what follows with it.
    pub ends_in_comment: bool,
    /// It ends in a string that the page goes on with.
    pub ends_in_string: bool,
    /// It is the rest of an attribute without quotes: after it the tag ends.
    pub ends_in_markup: bool,
    /// It closes brackets that it did not open.
    pub closes: bool,
    /// Nothing but what examples have: `alert(1)`, `console.log('x')`, `void 0`.
    pub is_demo: bool,
    /// A telling name and a word in parentheses after a space: `prompt (optional)`.
    pub is_worded: bool,
    /// A template touches the function that is called with it.
    pub is_tight: bool,
    pub tokens: u32,
    /// Bytes that were read, what did not hold among them.
    pub bytes_read: usize,
    /// From the beginning to where it holds.
    pub end: usize,
}

impl Outcome {
    /// True if an expression of a template literal, which holds as code, leads elsewhere, writes markup or
    /// runs text by setting something; or, where it is all there is, by a call. Templates of other kinds show
    /// values.
    pub fn runs_in_literal(&self, is_all: bool) -> bool {
        let acts = Effects(
            Effects::NAVIGATE.0
                | Effects::WRITE.0
                | Effects::EXECUTE.0
                | Effects::COMPUTED.0
                | Effects::INDIRECT.0,
        );
        let calls = Effects(acts.0 | Effects::SEND.0);
        self.holds
            && (self.effects.any(acts) && self.effects.any(Effects::ASSIGN)
                || is_all && self.effects.any(calls) && self.effects.any(Effects::CALL))
    }

    /// True if an expression of a template does what no template needs: it opens dialogs, runs text, reaches
    /// constructors.
    pub fn leaves_scope(&self) -> bool {
        let leaves = Effects(
            Effects::REFLECT.0
                | Effects::DIALOG.0
                | Effects::EXECUTE.0
                | Effects::COMPUTED.0
                | Effects::INDIRECT.0,
        );
        self.effects.any(leaves) && self.effects.any(Effects::CALL)
    }
}
