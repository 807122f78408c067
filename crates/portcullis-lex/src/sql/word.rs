macro_rules! words {
    ($($variant:ident $text:literal)*) => {
        /// Words that mean something to a reader of SQL fragments; every other word is a [`Word::Name`].
        #[allow(missing_docs)] // The variant is the word.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Word { Name, $($variant,)* }

        impl Word {
            /// All words but [`Word::Name`], with their spelling.
            pub const ALL: &'static [(Word, &'static str)] = &[$((Word::$variant, $text),)*];

        }
    };
}

#[allow(non_upper_case_globals)]
mod table {
    words! {
        Against "against" All "all" Alter "alter" Analyse "analyse" Analyze "analyze" And "and" Any "any" As "as" Asc "asc"
        Attach "attach" Backup "backup" Begin "begin" Between "between" Binary "binary" By "by" Call "call" Case "case"
        Collate "collate" Commit "commit" Copy "copy" Create "create" Cross "cross" Database "database" Dbcc "dbcc" Declare "declare"
        Default "default" Delay "delay" Delete "delete" Desc "desc" Describe "describe" Distinct "distinct"
        Distinctrow "distinctrow" Div "div" Do "do"
        Drop "drop" Dumpfile "dumpfile" Else "else" End "end" Escape "escape" Except "except" Exec "exec"
        Execute "execute" Exists "exists" Explain "explain" False "false" Fetch "fetch" For "for" From "from"
        Full "full" Function "function" Glob "glob" Goto "goto" Grant "grant" Group "group" Handler "handler" Having "having" If "if" Ilike "ilike"
        In "in" Index "index" Inner "inner" Insert "insert" Intersect "intersect" Interval "interval" Into "into" Is "is"
        Isnull "isnull" Join "join" Kill "kill" Left "left" Like "like" Limit "limit" Load "load" Lock "lock" Login "login" Match "match"
        Merge "merge" Minus "minus" Mod "mod" Natural "natural" Not "not" Notnull "notnull" Null "null"
        Offset "offset" On "on" Or "or" Order "order" Outer "outer" Outfile "outfile" Overlaps "overlaps" Pragma "pragma"
        Prepare "prepare" Print "print" Prior "prior" Procedure "procedure" Raiserror "raiserror" Regexp "regexp" Rename "rename"
        Replace "replace" Restore "restore" Returning "returning" Revoke "revoke" Right "right" Rlike "rlike" Role "role"
        Rollback "rollback" Row "row" Schema "schema" Select "select" Set "set" Show "show" Shutdown "shutdown" Similar "similar" Some "some"
        Sounds "sounds" Start "start" Table "table" Then "then" Time "time" Top "top" Trigger "trigger" Truncate "truncate" True "true"
        Union "union" Unknown "unknown" Update "update" Use "use" User "user" Using "using" Vacuum "vacuum" Values "values" View "view"
        Waitfor "waitfor" When "when" Where "where" While "while" With "with" Xor "xor"
    }
}
pub use table::Word;

impl Word {
    /// The longest word's bytes.
    const BYTES_MAX: usize = 11;

    /// For each letter, in lower case, the lengths of the words that begin with it, and of those that end
    /// with it.
    const LENGTHS: [[u16; 2]; 256] = {
        let mut lengths = [[0; 2]; 256];
        let mut at = 0;
        while at < Word::ALL.len() {
            let text = Word::ALL[at].1.as_bytes();
            lengths[text[0] as usize][0] |= 1 << text.len();
            lengths[text[text.len() - 1] as usize][1] |= 1 << text.len();
            at += 1;
        }
        lengths
    };

    /// The word spelled by `text`, in any case.
    pub fn of(text: &[u8]) -> Word {
        // Most words are names, as their first letter, their last one and their length show.
        let (Some(first), Some(last)) = (text.first(), text.last()) else { return Word::Name };
        let lengths =
            Word::LENGTHS[usize::from(first | 0x20)][0] & Word::LENGTHS[usize::from(last | 0x20)][1];
        if text.len() > Word::BYTES_MAX || lengths >> text.len() & 1 == 0 {
            return Word::Name;
        }
        let key = key(text);
        let mut slot = slot(key);
        while let Some((known, word)) = SLOTS[slot] {
            if known == key {
                return word;
            }
            slot = (slot + 1) % SLOTS.len();
        }
        Word::Name
    }
}

/// The bytes of a word as one number, letters in lower case. No sign becomes a letter by it.
const fn key(text: &[u8]) -> u128 {
    let mut key = 0;
    let mut at = 0;
    while at < text.len() {
        key = key << 8 | (text[at] | 0x20) as u128;
        at += 1;
    }
    key
}

const fn slot(key: u128) -> usize {
    let folded = key as u64 ^ (key >> 64) as u64;
    (folded.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - SLOT_BITS)) as usize
}

const SLOT_BITS: u32 = 9;

/// All words by their number: a table that is at most half full.
static SLOTS: [Option<(u128, Word)>; 1 << SLOT_BITS] = {
    assert!(2 * Word::ALL.len() <= 1 << SLOT_BITS);
    let mut slots = [None; 1 << SLOT_BITS];
    let mut at = 0;
    while at < Word::ALL.len() {
        let (word, text) = Word::ALL[at];
        let key = key(text.as_bytes());
        let mut place = slot(key);
        while slots[place].is_some() {
            place = (place + 1) % slots.len();
        }
        slots[place] = Some((key, word));
        at += 1;
    }
    slots
};
