//! Questions on standard error, answers from standard input, each checked at once.

use std::io::{self, BufRead as _, IsTerminal as _, Read as _, Write as _};

use portcullis_config::{Config, Format};

use super::document::{self, Answers};
use crate::outcome::Failure;

/// Bytes of an answer that are read at most.
const ANSWER_BYTES_MAX: u64 = 4 << 10;
/// Wrong answers to one question before the command gives up.
const TRIES_MAX: usize = 10;

/// The dialogue.
pub struct Asking {
    is_silent: bool,
}

impl Asking {
    /// A silent one takes the defaults.
    pub fn new(is_silent: bool) -> Asking {
        Asking { is_silent }
    }

    /// Settles one member of `answers`: by its flag, its default, or an answer. A wrong answer is asked for
    /// again with the reason; a wrong flag is a failure.
    pub fn ask(
        &mut self,
        question: &str,
        flag: &str,
        given: Option<String>,
        answers: &mut Answers,
        member: impl Fn(&mut Answers) -> &mut String,
    ) -> Result<(), Failure> {
        if let Some(given) = given {
            *member(answers) = given;
            return wrong(answers).map_or(Ok(()), |why| Err(Failure::usage(format_args!("{flag}: {why}"))));
        }
        if self.is_silent {
            return Ok(());
        }
        let default = member(answers).clone();
        for _ in 0..TRIES_MAX {
            say(&format!("{question} [{default}]: "));
            let Some(line) = answer(flag)? else {
                say("\n");
                return Err(Failure::usage(format_args!(
                    "the input ended before this question was answered\n  help: give {flag}, or take all defaults with \
                     --yes"
                )));
            };
            *member(answers) = if line.is_empty() { default.clone() } else { line };
            match wrong(answers) {
                None => return Ok(()),
                Some(why) => say(&format!("  {why}\n")),
            }
        }
        Err(Failure::usage(format_args!("no answer could be used; give {flag}")))
    }
}

/// The reason why the document of these answers would be refused: the rest of them is good.
fn wrong(answers: &Answers) -> Option<String> {
    if let Some(why) = document::rules_missing(answers).or_else(|| document::application_unknown(answers)) {
        return Some(why);
    }
    let error = Config::parse(&document::text(answers), Format::Toml, "portcullis.toml").err()?;
    let mistake = error.mistakes().first()?;
    let hint = mistake.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
    Some(format!("{}{hint}", mistake.message))
}

/// One line without the blanks around it; nothing at the end of the input.
fn answer(flag: &str) -> Result<Option<String>, Failure> {
    let (mut line, input) = (Vec::new(), io::stdin());
    let read = input.lock().take(ANSWER_BYTES_MAX).read_until(b'\n', &mut line);
    let unreadable = |why: &str| Failure::usage(format_args!("cannot read the answer: {why}; give {flag}"));
    let length = read.map_err(|error| unreadable(&error.to_string()))?;
    if length as u64 == ANSWER_BYTES_MAX {
        return Err(unreadable("it is too long"));
    }
    let line = String::from_utf8(line).map_err(|_| unreadable("it is not UTF-8"))?;
    if length > 0 && !input.is_terminal() {
        // Nobody's keyboard ended the line of the question.
        say("\n");
    }
    Ok((length > 0).then(|| line.trim().to_owned()))
}

fn say(text: &str) {
    // If standard error is closed, the question is lost; the answer may come all the same.
    let mut out = io::stderr().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
