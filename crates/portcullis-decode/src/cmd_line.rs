//! # `cmdLine`
//!
//! Undoes the noise that shells ignore: drops `"`, `'`, `\` and `^`; turns each run of blanks, commas, semicolons,
//! tabs and line ends into one blank; drops a blank before `/` and `(`; turns letters into lower case.
//!
//! Result: at most as long as the input. Not idempotent: dropping a backslash may bring two blanks together.
//! Example: `C^at  "/e\tc` becomes `cat/etc`.
//!
//! ModSecurity 2 stops at a NUL byte, so that what stands behind one escapes its rules; here and in ModSecurity 3 a
//! NUL is a byte like others.

use crate::scan::Table;
use portcullis_types::ByteSet;

pub(crate) static TRIGGERS: Table =
    Table::of(ByteSet::of(b"\"'\\^ ,;\t\r\n").union(ByteSet::range(b'A', b'Z')));

/// What a byte is, in [`KINDS`].
const PLAIN: u8 = 0;
const DROPPED: u8 = 1;
const BLANK: u8 = 2;
/// `/` and `(`, which take a blank before them away.
const TAKES_BLANK: u8 = 3;

static KINDS: [u8; 256] = {
    let mut kinds = [PLAIN; 256];
    let (dropped, blank, takes) = (b"\"'\\^", b" ,;\t\r\n", b"/(");
    let mut i = 0;
    while i < 256 {
        let byte = i as u8;
        if ByteSet::of(dropped).contains(byte) {
            kinds[i] = DROPPED;
        } else if ByteSet::of(blank).contains(byte) {
            kinds[i] = BLANK;
        } else if ByteSet::of(takes).contains(byte) {
            kinds[i] = TAKES_BLANK;
        }
        i += 1;
    }
    kinds
};

/// Without a branch for each byte: blanks come too often to be foreseen.
pub(crate) fn cmd_line(clean: &[u8], rest: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(clean);
    let mut end = out.len();
    out.resize(end + rest.len(), 0);
    // The last byte written is a blank that came from `rest`.
    let mut blank = false;
    for &byte in rest {
        let kind = KINDS[usize::from(byte)];
        end -= usize::from(blank & (kind == TAKES_BLANK));
        out[end] = if kind == BLANK { b' ' } else { byte.to_ascii_lowercase() };
        end += usize::from((kind != DROPPED) & !(blank & (kind == BLANK)));
        blank = (kind == BLANK) | (blank & (kind == DROPPED));
    }
    out.truncate(end);
}
