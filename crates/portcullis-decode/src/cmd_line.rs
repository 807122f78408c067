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

pub(crate) fn cmd_line(clean: &[u8], rest: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(clean);
    let mut blank = false;
    for &byte in rest {
        match byte {
            b'"' | b'\'' | b'\\' | b'^' => {}
            b' ' | b',' | b';' | b'\t' | b'\r' | b'\n' => {
                if !blank {
                    out.push(b' ');
                }
                blank = true;
            }
            b'/' | b'(' => {
                if blank {
                    out.pop();
                }
                blank = false;
                out.push(byte);
            }
            _ => {
                blank = false;
                out.push(byte.to_ascii_lowercase());
            }
        }
    }
}
