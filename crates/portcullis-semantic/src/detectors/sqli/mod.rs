//! SQL injection.
//!
//! What it does: reads a value as the piece of SQL that it would be if an application pasted it into a
//! statement: as it stands (after a number, a name, a parenthesis), and after each quote, back-tick or
//! comment end in it that could close a literal. Each reading is walked by `walk`, which holds the value to
//! the structure of SQL and notes what the piece would do. English fails that within a few words, and after
//! it another piece may begin; the piece that weighs most is what the value is worth, so that nothing around
//! it matters.
//!
//! Why it is dangerous: the statement runs with the application's rights: data read, changed, deleted, files
//! read and written, commands run.
//!
//! References: <https://owasp.org/www-community/attacks/SQL_Injection>,
//! <https://capec.mitre.org/data/definitions/66.html>.

mod again;
mod names;
mod quotes;
#[cfg(test)]
mod tests;
mod value;
mod walk;

use portcullis_types::Span;

use self::again::Readings;
use self::names::Names;
use self::quotes::{Quotes, list_quotes, statement_quotes};
use self::walk::{Field, Walk};
use super::{document, formula, purpose};
use crate::limits::LOOK_SHARE;
use crate::{ByteGroups, Class, Detector, Found, Hint, Input, Layer, Model, Place, Profile, kinds};

kinds! {
    reference "https://owasp.org/www-community/attacks/SQL_Injection";
    TAUTOLOGY "sqli.tautology" Critical Quotable
        "a joined condition compares constants, or a thing with itself: always true or always false";
    CONSTANT_COMPARISON "sqli.constant-comparison" Warning Quotable "constants are compared with each other";
    CONDITION "sqli.condition" Error Quotable "a condition is joined to the statement";
    BOOLEAN_CONSTANT "sqli.boolean-constant" Warning Quotable "a constant is joined as a condition";
    BOOLEAN_STRING "sqli.boolean-string" Notice Quotable "a string is joined as a condition";
    BOOLEAN_CALL "sqli.boolean-call" Error Quotable "a function call is joined as a condition";
    BOOLEAN_NAME "sqli.boolean-name" Error Quotable
        "a column is joined as a condition after a quote, and a comment cuts off the rest";
    NUMBER_CONDITION "sqli.number-condition" Error Quotable
        "a condition on a column is joined to the number that the value begins with";
    NUMBER_CLAUSE "sqli.number-clause" Error Quotable
        "a clause of a statement follows the number that the value begins with";
    QUOTE_CLAUSE "sqli.quote-clause" Error Quotable
        "a clause or an operator stands between the quote that ends a string and a comment";
    UNION_SELECT "sqli.union-select" Critical Quotable "the result of another SELECT is added by UNION";
    UNION_COLUMNS "sqli.union-columns" Critical Quotable
        "UNION SELECT with a list that begins with a constant, as one counts columns";
    UNION "sqli.union" Warning Quotable "UNION without a SELECT";
    UNION_PLAIN "sqli.union-plain" Notice Quotable "UNION and SELECT with nothing but words after them";
    STACKED "sqli.stacked" Critical Quotable "a semicolon ends the statement and another one follows";
    JUXTAPOSED "sqli.juxtaposed" Error Quotable "another statement follows without a semicolon";
    SCRIPT "sqli.script" Notice Quotable "a whole statement, a semicolon and another one";
    STATEMENT "sqli.statement" Warning Quotable "the value is a whole SQL statement";
    STATEMENT_PLAIN "sqli.statement-plain" Notice Quotable
        "the value could be a SQL statement, but has only words";
    SUBSELECT "sqli.subselect" Error Quotable "a SELECT in parentheses";
    SELECT_FROM "sqli.select-from" Warning Quotable "columns are selected from a table";
    DECLARE_VARIABLE "sqli.declare-variable" Error Quotable "declares a variable of Transact-SQL";
    NULL_TEST "sqli.null-test" Warning Quotable "a joined condition asks for NULL";
    SCHEMA "sqli.schema" Error Quotable "names a table or schema with the database's own data";
    TIME_FUNCTION "sqli.time-function" Error Quotable "calls a function that waits or burns time";
    ERROR_FUNCTION "sqli.error-function" Error Quotable
        "calls a function known for leaking data through error messages";
    OUT_OF_BAND_FUNCTION "sqli.out-of-band-function" Error Quotable
        "calls a function that connects to other machines";
    FILE_FUNCTION "sqli.file-function" Error Quotable "reads or writes a file";
    EXECUTE_FUNCTION "sqli.execute-function" Critical Quotable
        "runs commands of the operating system or code";
    INFO_FUNCTION "sqli.info-function" Warning Quotable "asks for version, user or database name";
    TEXT_FUNCTION "sqli.text-function" Notice Quotable
        "calls a string function that blind injection takes data apart with";
    CONDITIONAL_FUNCTION "sqli.conditional-function" Notice Quotable "chooses by a condition";
    ANY_FUNCTION "sqli.any-function" Notice Quotable "calls a function of SQL";
    CASE_WHEN "sqli.case-when" Warning Quotable "CASE WHEN ... THEN";
    SYSTEM_VARIABLE "sqli.system-variable" Error Quotable "reads a variable of the database system";
    VARIABLE "sqli.variable" Notice Quotable "uses a variable";
    ORDER_BY_NUMBER "sqli.order-by-number" Error Quotable
        "orders or groups by column number, which tells how many there are";
    HAVING "sqli.having" Warning Quotable "HAVING or GROUP BY";
    LIMIT "sqli.limit" Notice Quotable "LIMIT or OFFSET";
    INSERT_TAIL "sqli.insert-tail" Critical Quotable
        "what an INSERT does with a row that is there, or further columns behind a quote";
    INTO_FILE "sqli.into-file" Critical Quotable "writes the result to a file";
    PROCEDURE_ANALYSE "sqli.procedure-analyse" Critical Quotable "PROCEDURE ANALYSE";
    COMMENT_END "sqli.comment-end" Warning Quotable "a comment cuts off the rest of the statement";
    QUOTE_COMMENT "sqli.quote-comment" Error Quotable
        "a quote ends the literal and a comment cuts off the rest";
    COMMENT_TAIL "sqli.comment-tail" Notice Quotable "a comment with text after it";
    COMMENT_SPLIT "sqli.comment-split" Warning Quotable "comments stand where spaces would";
    VERSION_COMMENT "sqli.version-comment" Error Quotable "SQL in a MySQL version comment";
    SCIENTIFIC "sqli.scientific" Error Quotable "numbers without meaning separate words (`1.e`)";
    BRACE "sqli.brace" Notice Quotable "ODBC braces";
    JSON_OPERATOR "sqli.json-operator" Notice Quotable "an operator on JSON";
    REOPENED "sqli.reopened" Error Quotable
        "a quote closes the literal, and at the end another opens one again";
    QUOTE_SIGN "sqli.quote-sign" Warning Quotable "an operator stands between a closing and an opening quote";
    QUOTE_WORD "sqli.quote-word" Notice Quotable
        "a word operator stands between a closing and an opening quote";
    UNBALANCED "sqli.unbalanced" Warning Quotable "closes parentheses that it did not open";
    AFTER_QUOTE "sqli.after-quote" Warning Quotable "what follows a quote holds as SQL";
    AFTER_BACKTICK "sqli.after-backtick" Notice Quotable "what follows a back-tick holds as SQL";
    AFTER_NUMBER "sqli.after-number" Notice Quotable "what follows a number holds as SQL";
    AFTER_WORD "sqli.after-word" Notice Quotable "what follows a word holds as SQL";
    BARE_TAIL "sqli.bare-tail" Notice Quotable "begins in the middle of an expression";
    WHOLE "sqli.whole" Warning Quotable "all of the value holds as SQL";
    CALL_ALONE "sqli.call-alone" Error Quotable
        "the value is nothing but a call that waits or tells about the database";
    EXPRESSION "sqli.expression" Critical Quotable
        "all of the value is an expression that waits, reads or asks in place of a column or table";
    ROW_BREAK "sqli.row-break" Critical Quotable
        "a row of an INSERT is closed after a quote, and another one opened";
}

/// A file that is no longer than this may be a field.
const FIELD_BYTES_MAX: usize = 96;

/// See the module.
#[derive(Debug)]
pub struct Sqli {
    names: Names,
    /// What each kind weighs: of several pieces of a text that one counts which weighs most.
    weights: [f32; KINDS.len()],
}

impl Sqli {
    /// The detector with its data.
    pub fn new() -> Sqli {
        let mut sqli = Sqli { names: Names::new(), weights: [0.0; KINDS.len()] };
        if let Ok(model) = Model::new(&sqli) {
            sqli.weights = std::array::from_fn(|kind| model.weight(kind, false));
        }
        sqli
    }
}

impl Default for Sqli {
    fn default() -> Self {
        Sqli::new()
    }
}

/// Without any of these there is no structure: a value of words and spaces alone may still be `1 or 2`.
static PROFILE: Profile = Profile::new(Class::Sqli, KINDS)
    .needs(ByteGroups::of(b"'\"`()=<>|&;:#*@+-/ \t\0\x01\xA0%^!"))
    .hints(HINTS)
    .weights(include_str!("../../../weights/sqli.tsv"));

impl Detector for Sqli {
    fn profile(&self) -> &'static Profile {
        &PROFILE
    }

    fn detect(&self, input: &Input<'_>, found: &mut Found<'_>) {
        if input.is_json {
            return;
        }
        // Typographic quotes are everyday in files; what folds them is a database's connection, for a value.
        if input.document.is_file && input.layers.iter().any(|layer| layer == Layer::Fold) {
            return;
        }
        let text = input.text;
        // A file is not pasted into a statement, but what is called one may be a field to the application.
        let is_file = input.location.place == Place::FileContent && text.len() > FIELD_BYTES_MAX;
        let location = input.location;
        let field = Field {
            weights: &self.weights,
            may_mention: input.document.is_file || purpose::may_mention(Class::Sqli, location),
            is_of_cells: is_of_cells(input),
            is_password: purpose::takes_password(location),
            takes_conditions: purpose::takes_conditions(location),
            takes_number: purpose::takes_number(location),
            takes_columns: purpose::takes_columns(location),
            is_file,
            is_encoded: !is_file && !input.document.is_file && quotes::is_encoded(text),
            is_document: input.document.is_file,
        };
        let mut walk = Walk::new(text, &self.names, field);
        walk.may_read(found.left());
        let is_of_sheet = input.text.starts_with(b"=") && formula::names_cell(text);
        if !is_of_sheet {
            walk.run();
        }
        let is_spent = !found.may_walk(walk.bytes_read(), walk.tokens_read());
        if walk.is_ordinary_statement() && purpose::takes_statements(location) {
            return walk.commit(found, Some("statements"));
        }
        // A dump of a database.
        if is_file && walk.is_script() {
            return walk.commit(found, Some("dump"));
        }
        let may_be_said = || purpose::is_search(location) || purpose::takes_text(location);
        let is_asked_for = || {
            purpose::takes_statements(location)
                || purpose::takes_conditions(location)
                || purpose::takes_formula(location)
        };
        if walk.is_expression_whole() {
            let is_said = may_be_said() || is_asked_for() || input.document.is_file;
            let row = is_said.then_some("function-said");
            for kind in [EXPRESSION, WHOLE] {
                found.add_unless(kind, Span::new(0, text.len()), row);
            }
        }
        if let Some(span) = value::call(text) {
            found.add_unless(CALL_ALONE, span, may_be_said().then_some("function-said"));
        }
        if input.groups.has(b',')
            && !is_file
            && let Some(span) = value::row_break(text)
        {
            found.add(ROW_BREAK, span);
            found.add(AFTER_QUOTE, span);
        }
        if !is_spent {
            self.after_quotes(input, &mut walk, found);
        }
        walk.commit(found, None);
    }
}

impl Sqli {
    /// Reads the text after each quote that something of SQL follows.
    fn after_quotes(&self, input: &Input<'_>, walk: &mut Walk<'_, '_>, found: &mut Found<'_>) {
        let text = input.text;
        let of_list = match input.document.is_file && found.may_read(text.len() / LOOK_SHARE) {
            true if walk.is_script() => statement_quotes(text),
            true => document::quotes(text),
            // `=A1&" - "&B1`: what stands between quotes is text to a sheet.
            false if text.starts_with(b"=") && purpose::takes_formula(input.location) => {
                document::quotes(text)
            }
            false if purpose::takes_formula(input.location) => formula::quotes_of_fields(text),
            false if is_of_cells(input) => formula::quotes_of_cells(text),
            false if formula::is_inert(text) => memchr::memchr_iter(b'"', text).collect(),
            false => list_quotes(text),
        };
        let is_encoded = !input.document.is_file && quotes::is_encoded(text);
        for quote in [b'\'', b'"', b'`'] {
            if !input.groups.has(quote) {
                continue;
            }
            let first = memchr::memchr(quote, text).unwrap_or(0);
            let mut readings = Readings::default();
            for mut place in Quotes::new(text, quote).of_encoded(is_encoded) {
                if !found.may_read(QUOTE_BYTES) {
                    return;
                }
                place.is_first = place.at == first;
                if place.is_first
                    && !(place.is_literal || place.opens || quote == b'`')
                    && let Some(span) = value::columns(text, place.at)
                {
                    found.add(INSERT_TAIL, span);
                    found.add(AFTER_QUOTE, span);
                }
                if walk.has_read(place.at) || !walk::may_follow_quote(&text[place.at + 1..]) {
                    continue;
                }
                place.is_literal |= of_list.binary_search(&place.at).is_ok();
                if readings.repeats(text, place) {
                    if !found.may_read(READING_BYTES) {
                        return;
                    }
                    continue;
                }
                walk.may_read(found.left());
                walk.run_after_quote(quote, place);
                readings.note(text, place, walk);
                if !found.may_walk(walk.bytes_read(), walk.tokens_read()) {
                    return;
                }
            }
            walk.forget_lists();
        }
        let pairs_up =
            || input.document.is_file && memchr::memmem::find_iter(text, b"$$").count().is_multiple_of(2);
        if input.groups.has(b'$') && !pairs_up() {
            // After PostgreSQL's dollar quotes.
            for at in memchr::memmem::find_iter(text, b"$$") {
                if walk::may_follow_quote(&text[at + 2..]) {
                    walk.may_read(found.left());
                    walk.run_after_quote(b'$', quotes::Place { at: at + 1, ..quotes::Place::default() });
                    if !found.may_walk(walk.bytes_read(), walk.tokens_read()) {
                        return;
                    }
                }
            }
        }
    }
}

/// A formula that names a cell, in a field for cells.
fn is_of_cells(input: &Input<'_>) -> bool {
    input.text.starts_with(b"=")
        && purpose::takes_cells(input.location)
        && !formula::quotes_of_cells(input.text).is_empty()
}

/// What a quote costs that is only asked what follows it.
const QUOTE_BYTES: usize = 4;
/// What it costs that the reading after it is compared with those before.
const READING_BYTES: usize = 32;

/// Words and signs of which an injection has at least one.
const HINTS: &[Hint] = &[
    Hint::word("or"),
    Hint::word("and"),
    Hint::word("xor"),
    Hint::text("||"),
    Hint::text("&&"),
    Hint::text("select"),
    Hint::text("),("),
    Hint::text("), ("),
    Hint::word("handler"),
    Hint::text("user()"),
    Hint::text("database()"),
    Hint::word("union"),
    Hint::word("having"),
    Hint::word("group by"),
    Hint::word("order"),
    Hint::word("group"),
    Hint::word("like"),
    Hint::word("rlike"),
    Hint::word("regexp"),
    Hint::word("between"),
    Hint::word("is"),
    Hint::word("in"),
    Hint::word("div"),
    Hint::word("mod"),
    Hint::word("case"),
    Hint::word("if"),
    Hint::word("iif"),
    Hint::word("exec"),
    Hint::word("execute"),
    Hint::word("insert"),
    Hint::word("update"),
    Hint::word("delete"),
    Hint::word("drop"),
    Hint::word("create"),
    Hint::word("alter"),
    Hint::word("truncate"),
    Hint::word("declare"),
    Hint::word("waitfor"),
    Hint::word("shutdown"),
    Hint::word("where"),
    Hint::word("limit"),
    Hint::word("grant"),
    Hint::word("revoke"),
    Hint::word("program"),
    Hint::word("procedure"),
    Hint::word("call"),
    Hint::word("into"),
    Hint::word("sounds"),
    Hint::word("collate"),
    Hint::text("sleep"),
    Hint::text("benchmark"),
    Hint::text("xp_"),
    Hint::text("utl_"),
    Hint::text("dbms_"),
    Hint::text("load_file"),
    Hint::text("name()"),
    Hint::text("_id()"),
    Hint::text("current_"),
    Hint::text("pg_read"),
    Hint::text("pg_ls"),
    Hint::text("lo_import"),
    Hint::text("lo_export"),
    Hint::text("lo_get"),
    Hint::text("dblink"),
    Hint::text("readfile("),
    Hint::text("writefile("),
    Hint::text("openrowset"),
    Hint::text("httpuritype"),
    Hint::text("bfilename"),
    Hint::text("sys_eval"),
    Hint::text("sys_exec"),
    Hint::text("get_lock"),
    Hint::text("query_to_xml"),
    Hint::text("load_extension"),
    Hint::text("extractvalue"),
    Hint::text("updatexml"),
    Hint::text("@@"),
    Hint::text("information_schema"),
    Hint::text("/*"),
    Hint::text("*/"),
    Hint::text("--"),
    Hint::text("'="),
    Hint::text("\"="),
    Hint::text("`="),
    Hint::text("'#"),
    Hint::text("\"#"),
    Hint::text("'-"),
    Hint::text("'+"),
    Hint::text("'*"),
    Hint::text("'<"),
    Hint::text("'>"),
    Hint::text("'!"),
    Hint::text("'^"),
    Hint::text("'%"),
    Hint::text("'&"),
    Hint::text("'|"),
    Hint::text("'~"),
    Hint::text("')"),
    Hint::text("' "),
    Hint::text("\")"),
    Hint::text("\" "),
    Hint::text("',"),
    Hint::text("\","),
    Hint::text("';"),
    Hint::text("\";"),
    Hint::text("#"),
    Hint::text("(("),
    Hint::text("char("),
    Hint::text("concat("),
    Hint::text("=="),
    Hint::word("elt"),
    Hint::text("make_set"),
    Hint::text("conv("),
    Hint::word("ascii"),
    Hint::text("substr"),
    Hint::text("version("),
    Hint::text("compress("),
    Hint::text("randomblob"),
    Hint::text("hex("),
    Hint::word("begin"),
    Hint::word("goto"),
    Hint::text("$$"),
    // Statements that nothing but a semicolon tells from words.
    Hint::text(";set"),
    Hint::text("; set"),
    Hint::text(";table"),
    Hint::text("; table"),
    Hint::text(";backup"),
    Hint::text("; backup"),
    Hint::text(";restore"),
    Hint::text("; restore"),
    Hint::text(";show"),
    Hint::text("; show"),
    Hint::text(";use "),
    Hint::text("; use "),
    Hint::text(";lock"),
    Hint::text("; lock"),
    Hint::text(";flush"),
    Hint::text("; flush"),
    Hint::text(";reset"),
    Hint::text("; reset"),
    Hint::text(";copy"),
    Hint::text("; copy"),
    Hint::text(";attach"),
    Hint::text("; attach"),
    Hint::text(";pragma"),
    Hint::text("; pragma"),
    Hint::text(";rename"),
    Hint::text("; rename"),
    Hint::text(";kill"),
    Hint::text("; kill"),
    Hint::text(";load"),
    Hint::text("; load"),
    Hint::text(";merge"),
    Hint::text("; merge"),
    Hint::text(";replace"),
    Hint::text("; replace"),
    Hint::text(";prepare"),
    Hint::text("; prepare"),
    Hint::text(";desc"),
    Hint::text("; desc"),
    Hint::text(";explain"),
    Hint::text("; explain"),
    Hint::text(";vacuum"),
    Hint::text("; vacuum"),
    Hint::text(";commit"),
    Hint::text("; commit"),
    Hint::text(";do "),
    Hint::text("; do "),
    Hint::text(";bulk"),
    Hint::text("; bulk"),
    Hint::text(";change"),
    Hint::text("; change"),
    Hint::text(";install"),
    Hint::text("; install"),
    Hint::text(";uninstall"),
    Hint::text("; uninstall"),
    Hint::text(";deny"),
    Hint::text("; deny"),
    Hint::text(";print"),
    Hint::text("; print"),
    Hint::text(";st"),
    Hint::text("; st"),
    Hint::text(";re"),
    Hint::text("; re"),
    Hint::text("' for "),
    Hint::text("\" for "),
    Hint::text("and("),
    Hint::text("or("),
    // Expressions in place of a column or a number.
    Hint::text("passw"),
    Hint::text("secret"),
    Hint::text("token"),
    Hint::word("pwd"),
    Hint::word("pin"),
    Hint::word("otp"),
    Hint::text("cast("),
    Hint::text("agg("),
    Hint::text("_json"),
    Hint::text("convert("),
    Hint::text("table_info"),
    Hint::text("::"),
    Hint::text("*("),
    Hint::text("-("),
    Hint::text("+("),
    Hint::text("%("),
    Hint::text("&("),
    Hint::word("join"),
    // Set operations, and statements behind a number.
    Hint::text("except table"),
    Hint::text("except values"),
    Hint::text("except("),
    Hint::text("intersect"),
    Hint::text("(table"),
    Hint::text("(values"),
    Hint::text("0;"),
    Hint::text("1;"),
    Hint::text("2;"),
    Hint::text("3;"),
    Hint::text("4;"),
    Hint::text("5;"),
    Hint::text("6;"),
    Hint::text("7;"),
    Hint::text("8;"),
    Hint::text("9;"),
];
