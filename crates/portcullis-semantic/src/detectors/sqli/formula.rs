//! Formulas of spreadsheets: `=IF(A1="yes";B1;"-")`, `=SUMIFS(C:C,A:A,"x",B:B,">="&D1)`.
//!
//! Their strings stand in double quotes, and pasted into a string of a statement in double quotes a formula
//! ends it at the first of them. What follows is an error of syntax where that string is a word, for no
//! operator joins it with what stands before and behind it; so no further quote of the formula ends anything.

/// Words that join what stands before and behind them in some dialect.
const JOINING: &[&[u8]] = &[
    b"or",
    b"and",
    b"xor",
    b"not",
    b"is",
    b"in",
    b"like",
    b"ilike",
    b"rlike",
    b"regexp",
    b"glob",
    b"match",
    b"div",
    b"mod",
    b"between",
    b"union",
    b"except",
    b"intersect",
    b"minus",
    b"collate",
    b"escape",
    b"sounds",
    b"as",
    b"limit",
    b"order",
    b"group",
    b"having",
    b"where",
    b"from",
    b"into",
    b"procedure",
    b"for",
    b"on",
    b"using",
    b"then",
    b"else",
    b"end",
    b"when",
    b"desc",
    b"asc",
    b"n",
    b"b",
    b"e",
    b"u",
];

/// The length of the longest formula that is read.
const FORMULA_BYTES_MAX: usize = 8_192;

/// True if all of `text` is a formula whose first string that has anything in it is a word.
pub(super) fn is_inert(text: &[u8]) -> bool {
    let text = text.trim_ascii();
    let Some(formula) = text.strip_prefix(b"=").filter(|_| text.len() <= FORMULA_BYTES_MAX) else {
        return false;
    };
    let mut first = None;
    is_formula(formula, &mut first) && first.is_some_and(is_word)
}

fn is_word(text: &[u8]) -> bool {
    let is_part = |b: &u8| b.is_ascii_alphanumeric() || !b.is_ascii();
    text.iter().all(is_part) && !JOINING.iter().any(|known| text.eq_ignore_ascii_case(known))
}

/// Operands and operators by turns, with calls, parentheses and arrays that are closed.
fn is_formula<'t>(text: &'t [u8], first: &mut Option<&'t [u8]>) -> bool {
    let (mut at, mut depth, mut has_operand) = (0, 0u32, false);
    while let Some(&b) = text.get(at) {
        match b {
            b' ' | b'\t' | b'\n' | b'\r' => {}
            b'(' | b'{' if !has_operand => depth += 1,
            b')' | b'}' if depth > 0 => {
                depth -= 1;
                has_operand = true;
            }
            // An argument may be left out.
            b',' | b';' | b'\\' if depth > 0 => has_operand = false,
            b'+' | b'-' if !has_operand => {}
            b'%' if has_operand => {}
            b'+' | b'-' | b'*' | b'/' | b'^' | b'&' | b'=' | b'<' | b'>' if has_operand => {
                let is_two = matches!((b, text.get(at + 1)), (b'<', Some(b'>' | b'=')) | (b'>', Some(b'=')));
                at += usize::from(is_two);
                has_operand = false;
            }
            b'"' if !has_operand => {
                let Some(len) = string(&text[at + 1..]) else { return false };
                let inner = &text[at + 1..at + 1 + len];
                if !inner.is_empty() && first.is_none() {
                    *first = Some(inner);
                }
                at += len + 1;
                has_operand = true;
            }
            _ if !has_operand && (b.is_ascii_alphanumeric() || !b.is_ascii() || b"_$.".contains(&b)) => {
                let is_part = |b: &u8| b.is_ascii_alphanumeric() || !b.is_ascii() || b"_$.!:".contains(b);
                let len = text[at..].iter().take_while(|b| is_part(b)).count();
                at += len - 1;
                has_operand = text.get(at + 1) != Some(&b'(');
            }
            _ => return false,
        }
        at += 1;
    }
    depth == 0 && has_operand
}

/// The length of a string up to its quote; two of them stand for one.
fn string(text: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        at += memchr::memchr(b'"', text.get(at..)?)?;
        if text.get(at + 1) != Some(&b'"') {
            return Some(at);
        }
        at += 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas() {
        for text in [
            "=WENN(ODER(A1=\"ja\";B1=\"ja\");\"x\";\"--\")",
            "=SUMIFS(C:C,A:A,\"open\",B:B,\">=\"&D1)",
            "=IF(Sheet2!$A$1<>\"\",VLOOKUP(A1,\"yes\",-2%),)",
            "={1,2;\"a1\",3}*-2",
        ] {
            assert!(is_inert(text.as_bytes()), "{text}");
        }
        for text in [
            "=A1&\" or \"\"=\"",
            "=COUNTIF(A:A;\"=\"&B1)",
            "=IF(A1=\"or\";\"1\";\"1\")",
            "=IF(A1=\"yes\" or 1=1",
            "=\"a\" or \"b\"",
            "=\"a\" \"b\"",
            "=A1)",
            "=IF(A1=\"yes\"",
            "A1&\"yes\"",
            "=A1",
            "=\"a\"--\"b\"; drop",
        ] {
            assert!(!is_inert(text.as_bytes()), "{text}");
        }
    }
}
