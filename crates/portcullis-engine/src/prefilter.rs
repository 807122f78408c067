//! Which rules need not run: worked out from the values before any rule is looked at.
//!
//! ```text
//!   value -> its distinct forms -> byte classes -> candidates -> words -> candidates -> operator -> rules to run
//! ```
//!
//! A rule runs only if the operator of its first link says yes to a form of a value that the link names, or if that cannot
//! be known beforehand. Of a chain the other links are asked, too, where that is cheap and those before them change nothing. The rules that
//! are left then run exactly as if all did: running the others would have changed
//! nothing. What is looked at are values that rules cannot change: the message, not `TX` or `MATCHED_VAR`.
//!
//! The [`Prefilter`] is the load-time half, part of the plan; [`scan`](mod@scan) is the half of a transaction.

mod after_start;
mod build;
mod byte_classes;
mod forms;
mod gates;
mod head_memo;
mod memo;
mod origin;
mod readers;
mod residue;
pub(crate) mod scan;
mod tx_copies;
mod word_lists;

use std::sync::OnceLock;

use portcullis_match::{FewWords, WordFinder};

pub(crate) use build::is_pure;
pub use memo::Memo;
pub(crate) use readers::{Reader, Readers};
pub(crate) use scan::{PrefilterState, Scan};

/// What is known at load time of the rules' first links.
#[derive(Debug, Default)]
pub struct Prefilter {
    /// Words of a candidate bitset: whole [`Block`]s.
    width: usize,
    candidates: Vec<Candidate>,
    pub(crate) readers: Readers,
    /// What matching needs in any text, and in texts of plain bytes only (`byte_classes.rs`).
    gates: [Gates; 2],
    /// Byte classes that no text of the second kind has.
    not_plain: u64,
    /// Steps that run whatever the values are, by phase.
    always: [Vec<u64>; 5],
    /// Candidates that need not be looked at: what stands for a scalar without a value is enough for them (`../unset.rs`).
    matched: Vec<u64>,
    /// Of those that always run, the ones that do nothing but match.
    idle: [Vec<u64>; 5],
    /// Candidates with something [`copies`](Candidate::copies).
    copying: Vec<u32>,
    /// Number of the last phase with a candidate.
    last_phase: u8,
}

impl Prefilter {
    /// By phase, the steps that run whatever the message is and do more than match.
    pub(crate) fn always_run(&self) -> [Vec<u64>; 5] {
        std::array::from_fn(|phase| {
            let steps = self.always[phase].iter().zip(&self.idle[phase]);
            steps.map(|(always, idle)| always & !idle).collect()
        })
    }

    /// True for a step (phase number - 1, position) that runs whatever the message is.
    pub(crate) fn always_runs(&self, phase: usize, step: usize) -> bool {
        self.always[phase].get(step / 64).is_some_and(|word| word >> (step % 64) & 1 == 1)
    }

    /// The candidate of a step of which the first link leaves only captures, unless the candidate matches.
    pub(crate) fn captures_only(&self, phase: usize, step: usize) -> Option<u32> {
        let is_it = |at: &&u32| {
            let candidate = &self.candidates[**at as usize];
            (usize::from(candidate.phase), candidate.step as usize) == (phase, step)
        };
        self.copying.iter().find(is_it).copied()
    }

    /// What `state` found holds for every transaction.
    pub(crate) fn set_matched(&mut self, state: PrefilterState) {
        (self.always, self.matched) = (state.run, state.matched);
    }

    /// What the `TX` keys begin with that are not written where no rule, and nobody who looks at all matches, could read them.
    pub fn unwritten(&self) -> impl Iterator<Item = &[u8]> {
        let copies = self.copying.iter().map(|&at| self.candidates[at as usize].copies.as_ref());
        copies.flatten().map(tx_copies::TxCopies::prefix)
    }
}

/// So many words of a bitset that fit into registers.
type Block = [u64; 4];

/// Candidates in one block.
const BLOCK_BITS: usize = 64 * 4;

/// What the candidates' texts must have.
#[derive(Debug, Default)]
struct Gates {
    /// By block of candidates: those that can match in such texts at all.
    possible: Vec<Block>,
    /// By block of candidates.
    without: Vec<Without>,
    /// By candidate: what is not so simple.
    conditions: Vec<Conditions>,
    /// By [`Side`].
    finders: [Finder; 2],
}

/// Candidates of a block that may match in texts without a byte class.
#[derive(Clone, Debug)]
struct Without {
    classes: [Block; 64],
    /// In texts without any of the classes of one of [`GROUPS`].
    groups: [Block; 4],
}

/// Byte classes that most values have none of (`byte_classes.rs`): upper case, control and high bytes; `!` to `*`; `;` to `@`; brackets and the
/// like.
const GROUPS: [u64; 4] = [0xf << 27 | 1 << 63, 0x3ff << 32, 0x3f << 48, 0xf << 54 | 0x1f << 59];

impl Default for Without {
    fn default() -> Self {
        Without { classes: [[u64::MAX; 4]; 64], groups: [[u64::MAX; 4]; 4] }
    }
}

/// More that a candidate's texts must have.
#[derive(Debug, Default)]
struct Conditions {
    length_min: u32,
    /// Byte classes; a text must have all of them.
    needed: u64,
    /// Byte classes; a text must have one of each set: the smallest set, if there is one,
    first: u64,
    /// and the others.
    classes: Box<[u64]>,
    /// Word lists; a text must have a word of each.
    lists: Box<[List]>,
    /// Of a link that matches texts with none of certain words: the list of these.
    none_of: Option<u16>,
}

/// Words of which a text must have one.
#[derive(Clone, Copy, Debug)]
struct List {
    /// The finder's.
    number: u16,
    /// Byte classes that the words of a single byte have: these are not looked for.
    classes: u64,
}

/// A link whose answer can be known before its rule runs.
#[derive(Debug)]
struct Candidate {
    /// In [`Plan::links`](crate::Plan::links).
    link: u32,
    /// Where its rule runs: phase number - 1, and step.
    phase: u8,
    step: u32,
    /// The operator can be asked without its rule; if not, the answer is taken for yes.
    is_pure: bool,
    /// Not [pure](Self::is_pure), since what it finds it captures; where it finds nothing, it matches and changes nothing.
    captures_misses: bool,
    /// What it copies into `TX` decides, too.
    copies: Option<tx_copies::TxCopies>,
    /// The candidates of other links of the rule, which runs only if all of them match.
    others: Box<[u32]>,
    /// Of a pattern, worked out when it is first asked for.
    after_start: OnceLock<Option<after_start::AfterStart>>,
    /// What finds the residue of a word that it needs (`residue.rs`), worked out when it is first asked for.
    residual: OnceLock<Option<FewWords>>,
}

/// Words of many candidates.
#[derive(Debug, Default)]
struct Finder {
    words: WordFinder,
    /// The lists that each word stands in, one word behind the other,
    lists: Vec<u16>,
    /// and by word where they begin there, and at last where they all end.
    starts: Vec<u32>,
    list_count: usize,
    /// By list: a quick look for its words, made when it is first asked for; none if they are too many.
    few: Vec<OnceLock<Option<FewWords>>>,
}

impl Finder {
    fn lists_of(&self, word: u32) -> &[u16] {
        let [from, to] = [0, 1].map(|at| self.starts[word as usize + at] as usize);
        &self.lists[from..to]
    }

    /// What says quickly that no word of this list is in a text, if there is such a thing.
    fn few(&self, list: u16) -> Option<&FewWords> {
        let few = self.few.get(usize::from(list))?;
        few.get_or_init(|| FewWords::new(&self.words_of(list).collect::<Vec<_>>())).as_ref()
    }

    /// In lower case; those of two bytes and more.
    fn words_of(&self, list: u16) -> impl Iterator<Item = &[u8]> {
        let words = (0..self.words.len() as u32).filter(move |&word| self.lists_of(word).contains(&list));
        words.map(|word| self.words.word(word))
    }
}

/// Requests and responses have different rules, so their words are looked for apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Request,
    Response,
}
