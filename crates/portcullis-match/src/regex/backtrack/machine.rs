//! Runs a program: one position, one stack of what can be taken back.

use portcullis_types::ByteSet;
use regex_syntax::hir::Look;

use super::super::node::Greed;
use super::program::{Op, Program};
use super::{Budget, Exhausted};

const NONE: u32 = u32::MAX;

/// An entry of the backtracking stack, undone when a branch fails; the newest first.
#[derive(Clone, Copy, Debug)]
enum Entry {
    /// Continues at `op` from `at`.
    Choice { op: u32, at: u32 },
    /// A run that took bytes up to `at` and may give back down to `least`; continues at `op`.
    Run { op: u32, least: u32, at: u32 },
    /// A run that may take more: bytes of `set`, up to `most`.
    Lazy { op: u32, set: u32, at: u32, most: u32 },
    /// A slot had this value.
    Slot { slot: u32, old: u32 },
    /// A loop had done so many rounds, and its round had begun there.
    Counter { counter: u32, count: u32, start: u32 },
}

/// The state of a loop.
#[derive(Clone, Copy, Debug, Default)]
struct Counter {
    count: u32,
    start: u32,
}

/// The state at the beginning of an atomic group or lookaround.
#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    height: usize,
    at: u32,
}

pub(super) struct Machine<'m> {
    program: &'m Program,
    hay: &'m [u8],
    budget: &'m mut Budget,
    /// Steps that this search may still take.
    steps: u64,
    /// Choices that this starting position may still take back.
    choices: u32,
    stack: Vec<Entry>,
    slots: Vec<u32>,
    counters: Vec<Counter>,
    marks: Vec<Mark>,
}

impl<'m> Machine<'m> {
    pub(super) fn new(program: &'m Program, hay: &'m [u8], budget: &'m mut Budget) -> Self {
        Machine {
            program,
            hay,
            steps: budget.steps.min(Budget::SEARCH_STEPS_MAX),
            choices: 0,
            budget,
            stack: Vec::new(),
            slots: vec![NONE; 2 * (program.groups as usize + 1)],
            counters: vec![Counter::default(); program.counters as usize],
            marks: vec![Mark::default(); program.marks as usize],
        }
    }

    /// Start and end of a group of the match; 0 is the match itself.
    pub(super) fn group(&self, index: usize) -> Option<(usize, usize)> {
        let slot = |slot: usize| self.slots.get(slot).copied().filter(|&at| at != NONE);
        Some((slot(2 * index)? as usize, slot(2 * index + 1)? as usize))
    }

    /// The leftmost match that begins at `from` or behind it.
    pub(super) fn search(&mut self, from: usize) -> Result<bool, Exhausted> {
        let allowed = self.steps;
        let result = self.search_from(from);
        self.budget.steps = self.budget.steps.saturating_sub(allowed - self.steps);
        result
    }

    fn search_from(&mut self, from: usize) -> Result<bool, Exhausted> {
        // Positions are 32 bits; no value is longer.
        let Ok(length) = u32::try_from(self.hay.len()) else { return Err(Exhausted) };
        for start in from as u32..=length {
            if self.program.anchored && start > 0 {
                return Ok(false);
            }
            if let Some(first) = &self.program.first
                && !self.hay.get(start as usize).is_some_and(|&byte| first.contains(byte))
            {
                continue;
            }
            self.spend(1)?;
            self.choices = self.budget.choices_max;
            self.slots.fill(NONE);
            self.slots[0] = start;
            self.stack.clear();
            if self.run(start)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn spend(&mut self, steps: u64) -> Result<(), Exhausted> {
        match self.steps.checked_sub(steps) {
            Some(left) => {
                self.steps = left;
                Ok(())
            }
            None => {
                self.steps = 0;
                Err(Exhausted)
            }
        }
    }

    fn push(&mut self, entry: Entry) -> Result<(), Exhausted> {
        if self.stack.len() >= self.budget.depth_max as usize {
            return Err(Exhausted);
        }
        self.stack.push(entry);
        Ok(())
    }

    fn set_slot(&mut self, slot: u32, at: u32) -> Result<(), Exhausted> {
        let old = self.slots[slot as usize];
        self.push(Entry::Slot { slot, old })?;
        self.slots[slot as usize] = at;
        Ok(())
    }

    fn set_counter(&mut self, counter: u32, count: u32, start: u32) -> Result<(), Exhausted> {
        let old = self.counters[counter as usize];
        self.push(Entry::Counter { counter, count: old.count, start: old.start })?;
        self.counters[counter as usize] = Counter { count, start };
        Ok(())
    }

    /// Matches at `start`.
    fn run(&mut self, start: u32) -> Result<bool, Exhausted> {
        let program = self.program;
        let (mut op, mut at) = (0u32, start);
        loop {
            self.spend(1)?;
            let next = match &program.ops[op as usize] {
                Op::Set(set) => {
                    let fits =
                        self.hay.get(at as usize).is_some_and(|&b| program.sets[*set as usize].contains(b));
                    fits.then(|| (op + 1, at + 1))
                }
                Op::Look(look) => self.look(*look, at).then_some((op + 1, at)),
                Op::EndOrNewline => {
                    let rest = &self.hay[at as usize..];
                    (rest.is_empty() || rest == b"\n").then_some((op + 1, at))
                }
                Op::Split { first, second } => {
                    self.push(Entry::Choice { op: *second, at })?;
                    Some((*first, at))
                }
                Op::Jump(to) => Some((*to, at)),
                Op::Save(slot) => {
                    self.set_slot(*slot, at)?;
                    Some((op + 1, at))
                }
                Op::Keep => {
                    self.set_slot(0, at)?;
                    Some((op + 1, at))
                }
                Op::Run { set, min, max, greed } => self.take_run(op + 1, at, *set, (*min, *max), *greed)?,
                Op::LoopInit(counter) => {
                    self.set_counter(*counter, 0, at)?;
                    Some((op + 1, at))
                }
                Op::Loop { counter, min, max, greed, exit } => {
                    let Counter { count, start } = self.counters[*counter as usize];
                    if count < *min {
                        Some((op + 1, at))
                    } else if count >= *max || (count > *min && at == start) {
                        // A round that took nothing is the last one.
                        Some((*exit, at))
                    } else if *greed == Greed::Lazy {
                        self.push(Entry::Choice { op: op + 1, at })?;
                        Some((*exit, at))
                    } else {
                        self.push(Entry::Choice { op: *exit, at })?;
                        Some((op + 1, at))
                    }
                }
                Op::LoopEnter(counter) => {
                    let count = self.counters[*counter as usize].count + 1;
                    self.set_counter(*counter, count, at)?;
                    Some((op + 1, at))
                }
                Op::Mark(mark) => {
                    self.marks[*mark as usize] = Mark { height: self.stack.len(), at };
                    Some((op + 1, at))
                }
                Op::Cut(mark) => {
                    self.cut(self.marks[*mark as usize].height)?;
                    Some((op + 1, at))
                }
                Op::CutBack(mark) => {
                    let Mark { height, at } = self.marks[*mark as usize];
                    self.cut(height)?;
                    Some((op + 1, at))
                }
                Op::Refuse(mark) => {
                    self.unwind(self.marks[*mark as usize].height)?;
                    None
                }
                Op::Back(count) => at.checked_sub(*count).map(|at| (op + 1, at)),
                Op::BackReference { group, fold } => {
                    let length = self.repeated(*group, *fold, at);
                    self.spend(u64::from(length.unwrap_or(0)) / 8)?;
                    length.map(|length| (op + 1, at + length))
                }
                Op::IfGroup { group, no } => {
                    let took_part = self.group(*group as usize).is_some();
                    Some((if took_part { op + 1 } else { *no }, at))
                }
                Op::Fail => None,
                Op::Match => {
                    self.slots[1] = at;
                    return Ok(true);
                }
            };
            (op, at) = match next {
                Some(next) => next,
                None => match self.fail()? {
                    Some(next) => next,
                    None => return Ok(false),
                },
            };
        }
    }

    /// Takes the newest choice back; `None` if there is none.
    fn fail(&mut self) -> Result<Option<(u32, u32)>, Exhausted> {
        while let Some(entry) = self.stack.pop() {
            self.spend(1)?;
            match entry {
                Entry::Slot { .. } | Entry::Counter { .. } => self.restore(entry),
                Entry::Choice { op, at } => {
                    self.take_back()?;
                    return Ok(Some((op, at)));
                }
                Entry::Run { op, least, at } => {
                    self.take_back()?;
                    if at - 1 > least {
                        self.stack.push(Entry::Run { op, least, at: at - 1 });
                    }
                    return Ok(Some((op, at - 1)));
                }
                Entry::Lazy { op, set, at, most } => {
                    let fits = self
                        .hay
                        .get(at as usize)
                        .is_some_and(|&b| self.program.sets[set as usize].contains(b));
                    if fits {
                        self.take_back()?;
                        if at + 1 < most {
                            self.stack.push(Entry::Lazy { op, set, at: at + 1, most });
                        }
                        return Ok(Some((op, at + 1)));
                    }
                }
            }
        }
        Ok(None)
    }

    fn take_back(&mut self) -> Result<(), Exhausted> {
        self.choices = self.choices.checked_sub(1).ok_or(Exhausted)?;
        Ok(())
    }

    fn restore(&mut self, entry: Entry) {
        match entry {
            Entry::Slot { slot, old } => self.slots[slot as usize] = old,
            Entry::Counter { counter, count, start } => {
                self.counters[counter as usize] = Counter { count, start };
            }
            Entry::Choice { .. } | Entry::Run { .. } | Entry::Lazy { .. } => {}
        }
    }

    /// Makes the choices above `height` final; what they changed can still be restored.
    fn cut(&mut self, height: usize) -> Result<(), Exhausted> {
        let mut kept = height;
        self.spend((self.stack.len() - height) as u64)?;
        for at in height..self.stack.len() {
            if matches!(self.stack[at], Entry::Slot { .. } | Entry::Counter { .. }) {
                self.stack[kept] = self.stack[at];
                kept += 1;
            }
        }
        self.stack.truncate(kept);
        Ok(())
    }

    /// Back to how things were at `height`.
    fn unwind(&mut self, height: usize) -> Result<(), Exhausted> {
        self.spend((self.stack.len() - height) as u64)?;
        while self.stack.len() > height {
            if let Some(entry) = self.stack.pop() {
                self.restore(entry);
            }
        }
        Ok(())
    }

    fn take_run(
        &mut self,
        op: u32,
        at: u32,
        set: u32,
        (min, max): (u32, u32),
        greed: Greed,
    ) -> Result<Option<(u32, u32)>, Exhausted> {
        let bytes: &ByteSet = &self.program.sets[set as usize];
        let wanted = if greed == Greed::Lazy { min } else { max };
        let rest = &self.hay[at as usize..];
        let taken = rest.iter().take(wanted as usize).take_while(|&&b| bytes.contains(b)).count() as u32;
        self.spend(u64::from(taken) / 8)?;
        if taken < min {
            return Ok(None);
        }
        let end = at + taken;
        match greed {
            Greed::Greedy if taken > min => self.push(Entry::Run { op, least: at + min, at: end })?,
            Greed::Lazy if max > min => {
                self.push(Entry::Lazy { op, set, at: end, most: at.saturating_add(max) })?;
            }
            Greed::Greedy | Greed::Lazy | Greed::Possessive => {}
        }
        Ok(Some((op, end)))
    }

    /// Returns the number of bytes at `at` that repeat the group's match; a group that took no part is
    /// repeated nowhere.
    fn repeated(&self, group: u32, fold: bool, at: u32) -> Option<u32> {
        let (start, end) = self.group(group as usize)?;
        let text = self.hay.get(start..end)?;
        let there = self.hay.get(at as usize..at as usize + text.len())?;
        let same = if fold { there.eq_ignore_ascii_case(text) } else { there == text };
        same.then_some(text.len() as u32)
    }

    fn look(&self, look: Look, at: u32) -> bool {
        let at = at as usize;
        let before = at.checked_sub(1).and_then(|at| self.hay.get(at)).copied();
        let after = self.hay.get(at).copied();
        let word = |byte: Option<u8>| byte.is_some_and(|b| b.is_ascii_alphanumeric() || b == b'_');
        match look {
            Look::Start => at == 0,
            Look::End => after.is_none(),
            // Unlike automata, as PCRE: not behind a newline that is last.
            Look::StartLF => at == 0 || (before == Some(b'\n') && after.is_some()),
            Look::EndLF => after.is_none_or(|b| b == b'\n'),
            Look::WordAscii => word(before) != word(after),
            Look::WordAsciiNegate => word(before) == word(after),
            Look::WordStartAscii => !word(before) && word(after),
            Look::WordEndAscii => word(before) && !word(after),
            // The parser makes no others.
            Look::StartCRLF
            | Look::EndCRLF
            | Look::WordUnicode
            | Look::WordUnicodeNegate
            | Look::WordStartUnicode
            | Look::WordEndUnicode
            | Look::WordStartHalfAscii
            | Look::WordEndHalfAscii
            | Look::WordStartHalfUnicode
            | Look::WordEndHalfUnicode => false,
        }
    }
}
