//! The debug log: what became of a transaction, in lines of levels 1 to 9.
//!
//! Written when the transaction has ended. Level 1 has interruptions, 2 matches, 3 what was incomplete, 4 how
//! the transaction was handled and the matches that are not logged, 5 which rules these were, 6 the values
//! they matched, 7 the transformations, 8 the operators, 9 all arguments and `TX`.

use std::fmt::Write as _;

use portcullis_audit::Message;
use portcullis_engine::Class;
use portcullis_event::{Action, text};
use portcullis_types::Variable;

use crate::exchange::Outcome;
use crate::inspection::Inspection;

/// Bytes of one transaction's lines; the rest is left out, which a line tells.
const BYTES_MAX: usize = 256 << 10;
/// Bytes shown of one value.
const VALUE_BYTES_MAX: usize = 512;

struct Lines {
    level: u8,
    prefix: String,
    text: String,
    full: bool,
}

impl Lines {
    fn add(&mut self, level: u8, what: std::fmt::Arguments<'_>) {
        if level > self.level || self.full {
            return;
        }
        if self.text.len() > BYTES_MAX {
            self.full = true;
            let _ =
                writeln!(self.text, "{}[3] more was left out: {BYTES_MAX} bytes are the limit", self.prefix);
            return;
        }
        let line = what.to_string();
        let _ = writeln!(self.text, "{}[{level}] {}", self.prefix, line.replace(['\n', '\r'], " "));
    }
}

impl Inspection {
    /// The lines up to `level`.
    pub(crate) fn debug_lines(
        &self,
        level: u8,
        action: Action,
        outcome: &Outcome,
        messages: &[Message],
        recorded: bool,
    ) -> String {
        let prefix = format!(
            "[{}] [{}/{}][rid#{}][{}]",
            self.time().common_log(),
            plain(self.seen.host().as_bytes()),
            self.names.site,
            self.connection.request_id,
            plain(self.transaction.scalar_text(Variable::RequestFilename).unwrap_or_default()),
        );
        let mut lines = Lines { level, prefix, text: String::new(), full: false };
        lines.add(4, format_args!("Transaction begins, mode {:?}", self.inspector.plan.settings.rule_engine));
        if let Some(processor) = self.transaction.request_body_processor() {
            lines.add(4, format_args!("Request body processor {}", processor.name()));
        }
        if let Some(error) = self.transaction.body_error() {
            lines.add(2, format_args!("Request body: {}", plain(error.as_bytes())));
        }
        self.debug_matches(&mut lines, messages);
        for exception in &outcome.exceptions {
            lines.add(3, format_args!("Incomplete: {:?}, policy {:?}", exception.cause, exception.policy));
        }
        self.debug_values(&mut lines);
        if let Some((rule, phase)) = self.interrupted_by() {
            lines.add(1, format_args!("Interrupted by rule {rule} in phase {}: {action:?}", phase.number()));
        }
        let record = if recorded { "written" } else { "not written" };
        lines.add(4, format_args!("Audit record {record}, engine {:?}", self.transaction.audit().engine));
        let status = outcome.status.map_or_else(|| "none".to_owned(), |status| status.to_string());
        let spent = outcome.duration.as_micros();
        lines.add(4, format_args!("Transaction ends: {action:?}, status {status}, {spent} us"));
        lines.text
    }

    fn debug_matches(&self, lines: &mut Lines, messages: &[Message]) {
        let mut told = messages.iter();
        for found in self.transaction.matches() {
            let view = self.transaction.view(found);
            let message = if found.log || found.audit_log { told.next() } else { None };
            if let Some(message) = message {
                lines.add(if found.log { 2 } else { 4 }, format_args!("{}", message.text));
            }
            let (rule, phase) = (view.rule.id, found.phase.number());
            let file = self.inspector.plan.files.get(view.rule.metadata.place.file as usize);
            let (file, line) = (file.map_or("", |file| file), view.rule.metadata.place.line);
            lines.add(4, format_args!("Rule {rule} matched in phase {phase}"));
            lines.add(5, format_args!("Rule {rule}: {file}:{line}, link {}", found.link));
            if lines.level >= 6 {
                let hidden = self.is_hidden(&view.target, view.value);
                let value = if hidden { b"[hidden]".as_slice() } else { view.value };
                lines.add(6, format_args!("Rule {rule}: {} = {}", plain(&view.target), plain(value)));
                for (key, delta) in &view.changes {
                    lines.add(6, format_args!("Rule {rule}: TX:{} {delta:+}", plain(key)));
                }
                lines.add(7, format_args!("Rule {rule}: transformations {}", view.transformations.join(" ")));
                lines.add(8, format_args!("Rule {rule}: operator {}", view.operator));
            }
        }
        for message in told {
            lines.add(2, format_args!("{}", message.text));
        }
        if self.transaction.matches_dropped() > 0 {
            lines.add(
                3,
                format_args!("{} further matches not remembered", self.transaction.matches_dropped()),
            );
        }
    }

    fn debug_values(&self, lines: &mut Lines) {
        if lines.level < 9 {
            return;
        }
        for (collection, class) in [
            ("ARGS_GET", Class::ArgsGet),
            ("ARGS_POST", Class::ArgsPost),
            ("REQUEST_HEADERS", Class::RequestHeaders),
            ("RESPONSE_HEADERS", Class::ResponseHeaders),
        ] {
            for (name, value) in self.transaction.values_of(class) {
                let target = [collection.as_bytes(), b":", name].concat();
                let value = if self.is_hidden(&target, value) { b"[hidden]".as_slice() } else { value };
                lines.add(9, format_args!("{} = {}", plain(&target), plain(value)));
            }
        }
        // Captures may hold what is hidden.
        let secret = !self.transaction.audit().hidden.is_empty() || self.transaction.audit().hide_all;
        for (name, value) in self.transaction.tx_values() {
            let number = value.iter().all(|byte| byte.is_ascii_digit() || *byte == b'-');
            let value = if secret && !(number && value.len() < 4) { b"[hidden]".to_vec() } else { value };
            lines.add(9, format_args!("TX:{} = {}", plain(&name), plain(&value)));
        }
    }

    /// True if this value of a target must not be shown: by an action of a rule, or by its name.
    fn is_hidden(&self, target: &[u8], value: &[u8]) -> bool {
        let state = self.transaction.audit();
        let key = target.iter().position(|&byte| byte == b':').map_or(b"".as_slice(), |at| &target[at + 1..]);
        state.hide_all
            || state.hidden.iter().any(|hidden| hidden.name.eq_ignore_ascii_case(key))
            // Whole queries, bodies and lines may contain it.
            || (key.is_empty() && !state.hidden.is_empty())
            || std::str::from_utf8(target).is_ok_and(|target| self.inspector.redactor.is_secret_target(target, value))
    }
}

/// On one line, cut.
fn plain(bytes: &[u8]) -> String {
    let mut out = String::new();
    for c in text(bytes, VALUE_BYTES_MAX).chars() {
        match c.is_control() {
            true => out.extend(c.escape_default()),
            false => out.push(c),
        }
    }
    out
}
