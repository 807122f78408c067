//! GraphQL documents that cost too much, or ask for the whole schema.
//!
//! One pass over the tokens of a document: how deep selections nest, how often one field is asked for under
//! other names, how many directives stand on fields, which fragments use which. Introspection is what tools
//! of developers do; it is weak.

use portcullis_types::Span;

use super::scan::{is_one_of, is_word, run, skip_space, string_end};
use crate::{ByteGroups, Class, Detector, Found, Hint, Input, Place, Profile, kinds};

kinds! {
    reference "https://cheatsheetseries.owasp.org/cheatsheets/GraphQL_Cheat_Sheet.html";
    INTROSPECTION "graphql.introspection" Warning Active "asks for the schema";
    INTROSPECTION_FULL "graphql.introspection-full" Warning Active
        "asks for all types, fields and arguments of the schema";
    INTROSPECTION_PLACE "graphql.introspection-place" Error Active
        "asks for the schema, but not in the JSON that clients of GraphQL send";
    DEEP "graphql.deep" Critical Active "selections nest deeper than any client needs";
    ALIASES "graphql.aliases" Critical Active "one field is asked for many times under other names";
    REPEATED "graphql.repeated" Error Active "one field is asked for many times";
    DIRECTIVES "graphql.directives" Error Active "a field with many directives";
    CIRCULAR "graphql.circular" Critical Active "a fragment that contains itself";
    BATCH "graphql.batch" Error Active "many operations in one document";
}

/// See the module.
#[derive(Debug)]
pub struct GraphQl;

const DEPTH_MAX: u32 = 14;
const ALIASES_MAX: u32 = 24;
/// Fields whose aliases are counted.
const ALIASED_MAX: usize = 16;
const REPEATS_MAX: u32 = 60;
const DIRECTIVES_MAX: u32 = 30;
const OPERATIONS_MAX: u32 = 16;
const FRAGMENTS_MAX: usize = 24;

const HINTS: &[Hint] = &[
    Hint::text("__schema"),
    Hint::text("__type"),
    Hint::word("query"),
    Hint::word("mutation"),
    Hint::word("subscription"),
    Hint::word("fragment"),
    // A document may begin with its bracket; a deep one ends so.
    Hint::text("}}}}}"),
    Hint::text("} } } }"),
];

static PROFILE: Profile = Profile::new(Class::Graphql, KINDS)
    .needs(ByteGroups::of(b"{"))
    .hints(HINTS)
    .weights(include_str!("../../weights/graphql.tsv"));

impl Detector for GraphQl {
    fn profile(&self) -> &'static Profile {
        &PROFILE
    }

    /// A document without a word of its own, `{ a b }`, stands under the name that clients send it by.
    fn keys(&self) -> &[&'static str] {
        &["query", "document"]
    }

    fn reads(&self, place: Place) -> bool {
        place.is_value() && !matches!(place, Place::Header | Place::Cookie | Place::FileContent)
    }

    fn detect(&self, input: &Input<'_>, found: &mut Found<'_>) {
        if input.is_json {
            return;
        }
        let text = input.text;
        let first = skip_space(text, 0);
        let word = &text[first..run(text, first, 16, is_word)];
        let is_document = text.get(first) == Some(&b'{')
            || is_one_of(
                word,
                &[b"query", b"mutation", b"subscription", b"fragment", b"__schema", b"__type"],
            );
        if is_document {
            Document::read(text, first).tell(input, found);
        }
    }
}

#[derive(Default)]
struct Document<'t> {
    depth: u32,
    deepest: u32,
    operations: u32,
    directives: u32,
    introspection: u32,
    schema_words: u32,
    last_field: &'t [u8],
    repeats: u32,
    most_repeats: u32,
    /// Fields with aliases, and how often.
    aliased: [(&'t [u8], u32); ALIASED_MAX],
    /// Name of each fragment, and which of them (as bits) it spreads.
    fragments: Vec<(&'t [u8], u32)>,
    spreads: Vec<(usize, &'t [u8])>,
}

impl<'t> Document<'t> {
    fn read(text: &'t [u8], start: usize) -> Document<'t> {
        let mut document = Document::default();
        let (mut at, mut parentheses, mut open) = (start, 0u32, usize::MAX);
        while let Some(&b) = text.get(at) {
            match b {
                b'"' if text[at..].starts_with(b"\"\"\"") => {
                    at = memchr::memmem::find(&text[at + 3..], b"\"\"\"")
                        .map_or(text.len(), |end| at + end + 6);
                    continue;
                }
                b'"' => {
                    at = string_end(text, at).0;
                    continue;
                }
                b'#' => {
                    at = memchr::memchr(b'\n', &text[at..]).map_or(text.len(), |end| at + end);
                    continue;
                }
                b'(' => parentheses += 1,
                b')' => parentheses = parentheses.saturating_sub(1),
                b'{' if parentheses == 0 => {
                    document.depth += 1;
                    document.deepest = document.deepest.max(document.depth);
                }
                b'}' if parentheses == 0 => {
                    document.depth = document.depth.saturating_sub(1);
                    if document.depth == 0 {
                        open = usize::MAX;
                    }
                }
                b'@' => document.directives += 1,
                b'.' if text[at..].starts_with(b"...") => {
                    let name = skip_space(text, at + 3);
                    let end = run(text, name, 64, is_word);
                    if end > name && &text[name..end] != b"on" && document.spreads.len() < 4 * FRAGMENTS_MAX {
                        document.spreads.push((open, &text[name..end]));
                    }
                    at = end.max(at + 3);
                    continue;
                }
                b'_' | b'a'..=b'z' | b'A'..=b'Z' => {
                    let end = run(text, at, 128, is_word);
                    let name = &text[at..end];
                    at = end;
                    if parentheses > 0 {
                        continue;
                    }
                    if document.depth == 0 {
                        open = document.definition(text, name, end, open);
                    } else {
                        at = document.field(text, name, end);
                    }
                    continue;
                }
                _ => {}
            }
            at += 1;
        }
        document
    }

    fn definition(&mut self, text: &'t [u8], name: &[u8], end: usize, open: usize) -> usize {
        if is_one_of(name, &[b"query", b"mutation", b"subscription"]) {
            self.operations += 1;
        } else if name == b"fragment" && self.fragments.len() < FRAGMENTS_MAX {
            let start = skip_space(text, end);
            self.fragments.push((&text[start..run(text, start, 64, is_word)], 0));
            return self.fragments.len() - 1;
        }
        if name == b"__schema" || name == b"__type" {
            self.introspection += 1;
        }
        open
    }

    /// A field, perhaps after an alias; returns where to go on.
    fn field(&mut self, text: &'t [u8], name: &'t [u8], end: usize) -> usize {
        let colon = skip_space(text, end);
        let is_alias = text.get(colon) == Some(&b':');
        let (field, next) = if is_alias {
            let start = skip_space(text, colon + 1);
            let stop = run(text, start, 128, is_word);
            (&text[start..stop], stop)
        } else {
            (name, end)
        };
        if field == b"__schema" || field == b"__type" {
            self.introspection += 1;
        }
        let of_schema: &[&[u8]] = &[
            b"ofType",
            b"inputFields",
            b"possibleTypes",
            b"enumValues",
            b"queryType",
            b"mutationType",
            b"subscriptionType",
            b"isDeprecated",
            b"deprecationReason",
            b"includeDeprecated",
            b"defaultValue",
        ];
        self.schema_words += u32::from(of_schema.contains(&field));
        self.repeats = if field == self.last_field { self.repeats + 1 } else { 0 };
        self.last_field = field;
        self.most_repeats = self.most_repeats.max(self.repeats);
        if is_alias && let Some(slot) = self.aliased.iter_mut().find(|slot| slot.0 == field || slot.1 == 0) {
            *slot = (field, slot.1 + 1);
        }
        next
    }

    fn tell(mut self, input: &Input<'_>, found: &mut Found<'_>) {
        let text = input.text;
        let mut add = |kind| found.add(kind, Span::new(0, text.len().min(120)));
        if self.introspection > 0 {
            add(INTROSPECTION);
            if !matches!(input.location.place, Place::Json | Place::Text) {
                add(INTROSPECTION_PLACE);
            }
        }
        if self.schema_words >= 4 {
            add(INTROSPECTION_FULL);
        }
        if self.deepest > DEPTH_MAX {
            add(DEEP);
        }
        if self.aliased.iter().any(|slot| slot.1 >= ALIASES_MAX) {
            add(ALIASES);
        }
        if self.most_repeats >= REPEATS_MAX {
            add(REPEATED);
        }
        if self.directives >= DIRECTIVES_MAX {
            add(DIRECTIVES);
        }
        if self.operations >= OPERATIONS_MAX {
            add(BATCH);
        }
        if self.is_circular() {
            add(CIRCULAR);
        }
    }

    fn is_circular(&mut self) -> bool {
        for &(from, name) in &self.spreads {
            let to = self.fragments.iter().position(|(known, _)| *known == name);
            if let (Some(fragment), Some(to)) = (self.fragments.get_mut(from), to) {
                fragment.1 |= 1 << to;
            }
        }
        // What each fragment reaches, by way of each other one.
        for middle in 0..self.fragments.len() {
            let reach = self.fragments[middle].1;
            for fragment in &mut self.fragments {
                if fragment.1 >> middle & 1 == 1 {
                    fragment.1 |= reach;
                }
            }
        }
        self.fragments.iter().enumerate().any(|(number, (_, reach))| reach >> number & 1 == 1)
    }
}

#[cfg(test)]
mod tests {
    use crate::Class::Graphql;
    use crate::Place;
    use crate::detectors::testing::{blocks_at, look, passes_at};

    #[track_caller]
    fn check(text: &str, wanted: &str) {
        blocks_at(Graphql, Place::Json, text, wanted);
    }

    #[test]
    fn cost() {
        check(&format!("query {{ {} id {} }}", "a { ".repeat(20), "} ".repeat(20)), "deep");
        check(&format!("{}id{}", "{a".repeat(20), "}".repeat(20)), "deep");
        let aliases: String = (0..40).map(|i| format!("a{i}: login(pin: {i}) {{ ok }} ")).collect();
        check(&format!("mutation {{ {aliases} }}"), "aliases");
        check("query { ...A } fragment A on T { b ...B } fragment B on T { c ...A }", "circular");
        check("query { ...A } fragment A on T { b { ...A } }", "circular");
    }

    /// A document without a word of its own is found by the field's name.
    #[test]
    fn shorthand() {
        let aliases: String = (0..26).map(|i| format!("a{i}:login(u:\"x\") ")).collect();
        let text = format!("{{{aliases}}}");
        for (place, name) in [(Place::Json, "query"), (Place::Json, "array.query"), (Place::Query, "query")] {
            let (have, is_blocked) = look(Graphql, place, name, text.as_bytes());
            assert!(is_blocked && have == "aliases", "{name}: {have}");
            passes_at(Graphql, place, name, "{ user { id name } }");
        }
    }

    #[test]
    fn introspection_is_weak() {
        let query = b"{ __schema { queryType { name } types { fields(includeDeprecated: true) { isDeprecated deprecationReason } inputFields { defaultValue } possibleTypes { ofType { name } } } } }";
        let (have, is_blocked) = look(Graphql, Place::Json, "json.query", query);
        assert_eq!((have.as_str(), is_blocked), ("introspection introspection-full", false));
        let detectors = crate::Detectors::new();
        let mut analysis = crate::Analysis::new();
        analysis.value(&detectors, crate::Location::new(Place::Json, b"json.query"), query);
        let strict = analysis.worst(&detectors, crate::Level::Strict);
        assert!(strict.is_some_and(|worst| worst.blocks(crate::Level::Strict)));
        let (have, is_blocked) = look(Graphql, Place::Query, "q", query);
        assert!(is_blocked, "{have}");
    }

    #[test]
    fn ordinary() {
        for text in [
            "query Q($id: ID!, $in: In) { user(id: $id) { name posts(first: 3) { edges { node { title } } } } }",
            "{ a: product(id: 1) { ...P } b: product(id: 2) { ...P } } fragment P on Product { id price { amount } }",
            "mutation { create(input: {a: {b: {c: \"{{{{{{{{{{{{{{{{{{\"}}}) { id } }",
            "query the database { and so on",
        ] {
            passes_at(Graphql, Place::Json, "json.query", text);
        }
    }
}
