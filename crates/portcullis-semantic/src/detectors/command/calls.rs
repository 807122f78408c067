//! The calls of commands in a text: each place where one may begin, whether it is one, and what is noted of
//! it.

use std::ops::ControlFlow;

use portcullis_lex::shell::Variables;
use portcullis_types::Span;

use super::blocks::{BLOCK_BYTES_MAX, Block, block};
use super::call::{Call, Reader};
use super::names::{Group, Names};
use super::positions::{Position, Positions, Sign};
use super::stranger::{self, is_glued, stranger};
use super::surroundings::Surroundings;
use super::{
    BARE, BARE_WORD, CODE_ARGUMENT, HOST_ASKED, INSTALL, OPTION, PIPED_TO_SHELL, QUOTE_BREAK, SCRIPT, TOOL,
    UNKNOWN,
};
use crate::detectors::purpose;
use crate::{Class, Found, Input, KindId, Place};

/// The reading of one text.
pub(super) struct Calls<'c, 'i> {
    names: &'c Names,
    input: &'i Input<'i>,
    text: &'i [u8],
    field: Field,
    /// There are braces, or what cmd has before a command.
    may_have_blocks: bool,
    /// Plus signs stand for spaces.
    plus: bool,
    variables: Variables<'i>,
    surroundings: Surroundings<'c, 'i>,
    /// The call before, with those that are piped into it.
    pipe: Option<Span>,
    /// It was a mention.
    was_mentioned: bool,
    /// The end of the plain calls with which the value begins, if none of them tells anything.
    plain_until: Option<usize>,
}

/// The purpose of the text's field.
#[derive(Clone, Copy)]
struct Field {
    is_whole_body: bool,
    is_file: bool,
    is_script: bool,
    is_step: bool,
    sets_up: bool,
    may_quote: bool,
    /// What loads something is run there by itself.
    takes_code: bool,
    takes_password: bool,
    names_machine: bool,
}

impl Field {
    fn of(input: &Input<'_>) -> Field {
        let location = input.location;
        let is_step = purpose::takes_step(location) || purpose::takes_command_lines(location);
        Field {
            is_whole_body: location.place == Place::Text,
            is_file: location.place == Place::FileContent,
            is_script: input.document.is_script,
            is_step,
            sets_up: is_step || purpose::takes_configuration(location),
            may_quote: input.document.is_file || purpose::may_mention(Class::Command, location),
            takes_code: input.document.is_script || purpose::takes_code(location),
            takes_password: purpose::takes_password(location),
            names_machine: purpose::names_machine(location),
        }
    }
}

impl<'c, 'i> Calls<'c, 'i> {
    pub(super) fn new(names: &'c Names, input: &'i Input<'i>) -> Calls<'c, 'i> {
        let text = input.text;
        // Plus signs of a form that was not decoded; a space may stand after the sign before the command.
        let parts_words = |at: usize| {
            at > 0 && !matches!(text[at - 1], b';' | b'|' | b'&' | b' ' | b'`' | b'(') && at + 1 < text.len()
        };
        let plus = input.groups.has(b'+')
            && (!memchr::memchr_iter(b' ', text).any(parts_words)
                || memchr::memmem::find(text, b"|+").is_some());
        let field = Field::of(input);
        Calls {
            names,
            input,
            text,
            field,
            may_have_blocks: input.groups.has(b'{') || input.groups.has(b' '),
            plus,
            variables: Variables::default(),
            surroundings: Surroundings::new(text, names),
            pipe: None,
            was_mentioned: false,
            plain_until: None,
        }
    }

    /// Reads the text, or as much as the allowance lasts for.
    pub(super) fn read(mut self, found: &mut Found<'_>) {
        for position in Positions::new(self.text, self.input.groups) {
            if self.read_at(&position, found).is_break() {
                return;
            }
        }
    }

    /// Reads a place where a command may begin. Breaks if the allowance is used up.
    #[inline]
    fn read_at(&mut self, position: &Position, found: &mut Found<'_>) -> ControlFlow<()> {
        if !found.may_read(POSITION_BYTES) {
            return ControlFlow::Break(());
        }
        let outer = position;
        let block = self.block_at(outer, found);
        let (at, end) = block.map_or((outer.at, self.text.len()), |block| {
            (outer.at + block.lead, block.end.map_or(self.text.len(), |end| outer.at + end))
        });
        let position = &Position { at, ..*outer };
        let text = &self.text[..end];
        let line = &text[position.at..];
        if !self.input.groups.has(b'$') && is_pair(line) {
            return ControlFlow::Continue(());
        }
        if !self.names.may_begin(line) {
            self.by_shape(outer, found);
            return ControlFlow::Continue(());
        }
        let after_pipe =
            position.sign == Sign::Pipe && self.pipe.is_some_and(|call| call.end as usize == position.start);
        // Lines are those of Base64, say, and not of a form that was not decoded.
        let plus = (self.plus || self.text.get(position.at) == Some(&b'+')) && position.sign != Sign::Newline;
        let mut reader = Reader::new(text, position, self.names, &mut self.variables, plus);
        reader.after_pipe = after_pipe;
        reader.in_block = block.is_some_and(|block| block.is_function);
        reader.may_read(found.left());
        let call = reader.read();
        if !found.may_walk(reader.bytes_read(), reader.words_read()) {
            return ControlFlow::Break(());
        }
        // What a call that is known would say may be little.
        if self.field.names_machine {
            self.by_shape(outer, found);
        }
        if let Some(call) = &call {
            self.asks_host(position, call, found);
        }
        match call {
            Some(call) if self.is_usual(position, &call) => {}
            // `%{date}` is a part of a format.
            Some(call) if block.is_some_and(|block| block.is_format) && call.is_bare_name() => {}
            Some(call) if self.is_command(position, &call) => match self.is_by_chance(&call) {
                Some(row) => {
                    let kinds: Vec<KindId> = call.kinds().collect();
                    self.suppress(position.sign.kind(), &kinds, call.span(), row, found);
                    self.by_shape(outer, found);
                }
                None => self.take(position, &call, after_pipe, found),
            },
            _ => self.by_shape(outer, found),
        }
        ControlFlow::Continue(())
    }

    /// `?cmd=nslookup a.example`, and a script whose lines load something: neither a page's parameter nor a
    /// text is run by who means no harm. What sets machines up has such scripts.
    fn asks_host(&self, position: &Position, call: &Call, found: &mut Found<'_>) {
        if call.group != Group::Net || !call.has_host() || self.field.is_file {
            return;
        }
        let location = self.input.location;
        let is_end =
            self.text[call.end..].iter().all(|b| b.is_ascii_whitespace() || matches!(b, b';' | b'&'));
        let is_asked = if location.place == Place::Query {
            // `ping a.example` is what people look for.
            let is_said = !call.is_distinctive() && !purpose::names_command(location);
            is_end && !is_said && !purpose::is_search(location)
        } else {
            // A part of a value that the sign of the query cut off.
            location.place == Place::Name && self.text.contains(&b' ')
        };
        if position.sign == Sign::Begin && is_asked {
            found.add(HOST_ASKED, call.span());
        }
        if position.sign == Sign::Newline && self.text.starts_with(b"#!/") && !self.field.sets_up {
            found.add(SCRIPT, call.span());
        }
    }

    fn suppress(&self, sign: KindId, kinds: &[KindId], span: Span, row: &'static str, found: &mut Found<'_>) {
        [sign].iter().chain(kinds).for_each(|kind| found.suppress(*kind, span, row));
    }

    /// The block directly behind the separator at `position`.
    fn block_at(&self, position: &Position, found: &mut Found<'_>) -> Option<Block> {
        let may_follow =
            matches!(position.sign, Sign::Semicolon | Sign::Pipe | Sign::Ampersand | Sign::Logical);
        if !self.may_have_blocks || !may_follow || !is_glued(self.text, position) {
            return None;
        }
        let block = block(&self.text[position.at..])?;
        found.may_read(BLOCK_BYTES_MAX).then_some(block)
    }

    /// Notes a program of no table that is a command by its shape.
    fn by_shape(&mut self, position: &Position, found: &mut Found<'_>) {
        let Field { is_whole_body, takes_password, is_file, may_quote, names_machine, .. } = self.field;
        if stranger::may_follow(position) {
            let line = &self.text[position.at..];
            found.may_read(stranger::LINE_BYTES_MAX.min(line.len()) / 2);
        }
        let machine = names_machine.then_some(self.names);
        let Some(span) = stranger(self.text, position, machine) else { return };
        let rows =
            [(is_file, "scripts"), (is_whole_body, "bare-in-body"), (takes_password, "password-signs")];
        if let Some((_, row)) = rows.into_iter().find(|(holds, _)| *holds) {
            return self.suppress(position.sign.kind(), &[UNKNOWN], span, row, found);
        }
        let is_mentioned = may_quote
            && match position.sign {
                Sign::Begin | Sign::Newline => true,
                Sign::Backtick => self.surroundings.is_in_sentence(position.start),
                Sign::Semicolon | Sign::Pipe | Sign::Ampersand | Sign::Logical | Sign::Substitution => {
                    self.surroundings.is_command_line(position)
                }
            };
        for kind in [position.sign.kind(), UNKNOWN] {
            add(found, kind, span, is_mentioned);
        }
    }

    /// People write it, or developers run it, as all of a value: `more and more of it`, `node server.js`.
    fn is_usual(&mut self, position: &Position, call: &Call) -> bool {
        let is_begin = position.sign == Sign::Begin;
        // `ping a.example`
        let is_said = is_begin && call.group == Group::Net && !call.is_distinctive() && !call.has(OPTION);
        let goes_on = self.plain_until == Some(position.start);
        let is_plain = !call.is_telling() && (call.is_prose || is_begin || goes_on);
        if is_plain && (is_begin || goes_on) {
            self.plain_until = Some(call.end);
        }
        is_said || is_plain || is_begin && !call.stands_alone()
    }

    /// The call is one, and no name that stands there by chance.
    fn is_command(&self, position: &Position, call: &Call) -> bool {
        let text = self.text;
        let is_sure = position.is_sure(text, call)
            || call.group == Group::Recon
                && position.follows_word(text, call.end)
                && purpose::takes_single_name(self.input.location);
        !call.is_bare_name() || is_sure
    }

    /// The exception that suppresses a call: a body that was not taken apart, or a password, has names and
    /// signs by chance.
    fn is_by_chance(&self, call: &Call) -> Option<&'static str> {
        if self.field.is_whole_body && (call.has(BARE) || call.has(BARE_WORD)) {
            Some("bare-in-body")
        } else if self.field.takes_password && !call.parts_words(self.text) {
            Some("password-signs")
        } else {
            None
        }
    }

    /// Takes a call of a command: it may be piped into the next one, and is noted if it counts.
    fn take(&mut self, position: &Position, call: &Call, after_pipe: bool, found: &mut Found<'_>) {
        let pipe_start = self.pipe.filter(|_| after_pipe).map(|call| call.start as usize);
        let start = pipe_start.unwrap_or(position.start);
        // A call in another's arguments does not end that one.
        if self.pipe.is_none_or(|call| call.end as usize <= position.start) {
            self.pipe = Some(Span::new(start, call.end));
        }
        let is_mentioned = self.is_mentioned(position, call, after_pipe);
        self.was_mentioned = is_mentioned;
        // A file is given to no shell as a piece of a command line; what is called one may be a field.
        if self.field.is_file && (is_mentioned || self.text.len() > FIELD_BYTES_MAX) {
            let kinds: Vec<KindId> = call.kinds().collect();
            return self.suppress(position.sign.kind(), &kinds, call.span(), "scripts", found);
        }
        if call.group == Group::Tool && !call.has(INSTALL) {
            self.note_tool(position, call, is_mentioned, found);
            return;
        }
        add(found, position.sign.kind(), Span::new(position.start, call.end), is_mentioned);
        for kind in call.kinds() {
            add(found, kind, call.span(), is_mentioned);
        }
        let runs_input = matches!(call.group, Group::Shell | Group::Code) && reader_takes_pipe(call);
        if after_pipe && runs_input {
            add(found, PIPED_TO_SHELL, Span::new(start, call.end), is_mentioned);
        }
        if position.may_break_quote(self.text)
            && found.may_read(position.start)
            && position.breaks_quote(self.text)
        {
            add(found, QUOTE_BREAK, Span::new(0, position.start), is_mentioned);
        }
    }

    /// Notes a tool of developers. They paste such lines, which say nothing by themselves.
    fn note_tool(&self, position: &Position, call: &Call, is_mentioned: bool, found: &mut Found<'_>) {
        add(found, TOOL, call.span(), is_mentioned);
        // After a separator that touches the value and the tool it is no pasted line.
        let is_part = matches!(position.sign, Sign::Semicolon | Sign::Pipe | Sign::Logical);
        if is_part && is_glued(self.text, position) && call.arguments > 1 {
            add(found, position.sign.kind(), call.span(), is_mentioned);
            add(found, UNKNOWN, call.span(), is_mentioned);
        }
    }

    /// The field is for what the text shows there. After a pipe it is what the command before was.
    fn is_mentioned(&mut self, position: &Position, call: &Call, after_pipe: bool) -> bool {
        let Field { may_quote, sets_up, is_step, is_script, takes_code, .. } = self.field;
        let was_mentioned = self.was_mentioned;
        let surroundings = &mut self.surroundings;
        may_quote
            && !(takes_code && call.has_host())
            && match (after_pipe, sets_up) {
                (true, false) => was_mentioned,
                (true, true) => was_mentioned && surroundings.configures(position, call, is_step),
                (false, true) => surroundings.configures(position, call, is_step),
                (false, false) => {
                    is_script && surroundings.is_of_script(position, call)
                        || surroundings.mention(position, call)
                }
            }
    }
}

/// A file that is no longer than this may be a field to the application.
const FIELD_BYTES_MAX: usize = 96;

/// Adds `kind`, as a mention if it is only shown there.
fn add(found: &mut Found<'_>, kind: KindId, span: Span, is_mentioned: bool) {
    match is_mentioned {
        true => found.mention(kind, span),
        false => found.add(kind, span),
    }
}

/// `name=value` up to the next sign: it sets what nothing asks for.
fn is_pair(line: &[u8]) -> bool {
    let window = &line[..line.len().min(PAIR_BYTES_MAX)];
    let name = window.iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count();
    let end = window.iter().position(|b| b.is_ascii_whitespace() || b";|&+`'\"{".contains(b));
    name > 0
        && window.get(name) == Some(&b'=')
        && end.map_or(line.len() == window.len(), |end| matches!(window[end], b';' | b'|' | b'&' | b'\n'))
}

/// What a place costs where a command may begin: what stands there is looked at whatever it is.
const POSITION_BYTES: usize = 8;

/// Bytes of the value of a pair that are read.
const PAIR_BYTES_MAX: usize = 96;

/// A shell that is given no file reads its commands from the pipe.
fn reader_takes_pipe(call: &Call) -> bool {
    call.has(BARE) || call.has(BARE_WORD) || call.has(OPTION) && !call.has(CODE_ARGUMENT)
}
