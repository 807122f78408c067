//! Questions that only the world outside can answer, and how a phase waits for them.
//!
//! ```text
//! a link that asks is about to run
//!     all answers known ------------------------------> it runs
//!     some are not --> Progress::Ask --> questions(), answer() --> resume(): the phase resumes at that very link
//! ```
//!
//! The values of a link are asked about all at once, before any of them is tested. Answers are remembered for
//! the whole transaction. A question without an answer proves nothing: its value matches neither a rule nor
//! the negation of one.

use std::net::Ipv4Addr;
use std::sync::Arc;

use portcullis_types::{Span, Variable};

use crate::Scanner;
use crate::collect::Item;
use crate::execution::Matched;
use crate::execution::{Execution, LinkAt};
use crate::operator::{Captures, Operator};
use crate::plan::Link;
use crate::transaction::{Interruption, Transaction};

/// The state of a phase after it ran as far as it could.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Progress {
    /// To its end, or to an interruption.
    Done(Option<Interruption>),
    /// To a link that needs answers: see [`Transaction::questions`].
    Ask,
}

/// Names a question within its transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuestionId(u32);

/// A question that the caller has to answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question<'a> {
    /// The IPv4 address that this name has in DNS: lower case, no final dot, fit to be sent.
    Address(&'a str),
    /// The verdict of this scanner on these bytes, a file as it was uploaded.
    Scan {
        /// The receiver of the question.
        scanner: &'a Scanner,
        /// The bytes; at least one.
        content: &'a [u8],
    },
}

/// The answer to a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// There is nothing: no such name, nothing wrong with the bytes.
    Nothing,
    /// The name has this address.
    Address(Ipv4Addr),
    /// The scanner found something, and calls it this.
    Found(String),
    /// There was no answer, or not in time.
    Unknown,
}

/// A question as it is remembered.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Subject {
    Address(String),
    Scan(Arc<Scanner>, Span),
}

/// The questions of a transaction, and where a phase waits for answers.
#[derive(Debug, Default)]
pub(crate) struct Questions {
    asked: Vec<(Subject, Option<Answer>)>,
    not_asked: u64,
    paused: Option<ResumePoint>,
}

/// The point at which the steps of a phase resume.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ResumePoint {
    /// Position among the phase's steps.
    pub(crate) step: usize,
    /// Link of that step's rule.
    pub(crate) link: u32,
    /// That link has asked.
    pub(crate) resumed: bool,
}

impl Questions {
    /// A phase that waits is given up: what follows it begins anew.
    pub(crate) fn abandon(&mut self) {
        self.close();
        self.paused = None;
    }

    /// The phase waits at `place` for answers.
    pub(crate) fn pause(&mut self, place: ResumePoint) -> Progress {
        self.paused = Some(place);
        Progress::Ask
    }

    /// Questions that are still open have no answer.
    fn close(&mut self) {
        for (_, answer) in &mut self.asked {
            answer.get_or_insert(Answer::Unknown);
        }
    }
}

impl Transaction {
    /// Questions that one transaction may ask; values beyond that match nothing, and are counted.
    pub const QUESTIONS_MAX: usize = 32;

    /// The questions that must be answered before [`resume`](Transaction::resume).
    pub fn questions(&self) -> impl Iterator<Item = (QuestionId, Question<'_>)> {
        let open = (0..).zip(&self.run.questions.asked).filter(|(_, (_, answer))| answer.is_none());
        open.map(|(id, (subject, _))| {
            let question = match subject {
                Subject::Address(name) => Question::Address(name),
                Subject::Scan(scanner, content) => {
                    Question::Scan { scanner, content: self.message.store.text(*content) }
                }
            };
            (QuestionId(id), question)
        })
    }

    /// Answers a question. The first answer stays.
    pub fn answer(&mut self, question: QuestionId, answer: Answer) {
        if let Some((_, known)) = self.run.questions.asked.get_mut(question.0 as usize) {
            known.get_or_insert(answer);
        }
    }

    /// Resumes the phase where it stopped; questions that are still open count as [`Answer::Unknown`].
    pub fn resume(&mut self) -> Progress {
        self.run.questions.close();
        match self.run.questions.paused.take() {
            Some(place) => self.execution().run_steps(place),
            None => Progress::Done(None),
        }
    }

    /// Takes a phase to its end without asking any service.
    pub fn unanswered(&mut self, mut progress: Progress) -> Option<Interruption> {
        loop {
            match progress {
                Progress::Done(interruption) => return interruption,
                Progress::Ask => progress = self.resume(),
            }
        }
    }

    /// Questions beyond [`Transaction::QUESTIONS_MAX`], which were not asked.
    pub fn questions_not_asked(&self) -> u64 {
        self.run.questions.not_asked
    }
}

impl Execution<'_> {
    /// True if `link` cannot run before the questions noted here are answered.
    pub(crate) fn must_ask(&mut self, at: LinkAt<'_>) -> bool {
        let LinkAt { rule, number, link, .. } = at;
        let before = self.run.questions.asked.len();
        let mut items = std::mem::take(&mut self.run.items);
        items.clear();
        self.collect_link(at, &mut items);
        for item in &items {
            if self.is_taken_away(rule, number, item) {
                continue;
            }
            let forms = self.forms_to_test(link, item.value);
            for form in forms.iter() {
                let Some(subject) = self.subject(&link.operator, item, form) else { continue };
                if self.run.questions.asked.iter().any(|(asked, _)| *asked == subject) {
                    continue;
                }
                if self.run.questions.asked.len() < Transaction::QUESTIONS_MAX {
                    self.run.questions.asked.push((subject, None));
                } else {
                    self.run.questions.not_asked += 1;
                }
            }
        }
        self.run.items = items;
        self.run.questions.asked.len() > before
    }

    /// The question that `operator` has about a value; `None` if no service could answer one about it.
    fn subject(&self, operator: &Operator, item: &Item, form: Span) -> Option<Subject> {
        if let Operator::Rbl(list) = operator {
            list.name(self.message.store.text(form)).map(Subject::Address)
        } else if let Operator::InspectFile(scanner) = operator {
            let content = if item.variable == Variable::FilesTmpnames {
                self.message.body.file_content(item.value)?
            } else {
                self.message.store.data(item.value)
            };
            let empty = self.message.store.text(content).is_empty();
            (!empty).then(|| Subject::Scan(Arc::clone(scanner), content))
        } else {
            None
        }
    }

    /// The verdict of an operator that asks; `None` if there was no answer.
    pub(crate) fn test_answer(
        &self,
        link: &Link,
        item: &Item,
        form: Span,
        captures: &mut Captures,
    ) -> Option<bool> {
        let Some(subject) = self.subject(&link.operator, item, form) else { return Some(false) };
        let asked = self.run.questions.asked.iter().find(|(asked, _)| *asked == subject);
        match asked.and_then(|(_, answer)| answer.as_ref())? {
            Answer::Unknown => None,
            Answer::Nothing => Some(false),
            Answer::Found(what) => {
                captures.text = Some(what.clone().into_bytes());
                captures.keeps_others = true;
                Some(true)
            }
            Answer::Address(address) => {
                let (Operator::Rbl(list), Subject::Address(name)) = (&link.operator, &subject) else {
                    return None;
                };
                let Item { variable, count, key, .. } = *item;
                let target =
                    Matched { variable: Some(variable), count, key, value: form }.name(&self.message.store);
                captures.text = Some(list.message(name, *address, &target));
                captures.keeps_others = true;
                Some(true)
            }
        }
    }
}
