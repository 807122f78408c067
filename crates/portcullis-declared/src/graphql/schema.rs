//! Schemas of GraphQL: their definition language, and what a server answers to an introspection.

use std::collections::BTreeMap;

use portcullis_lex::graphql::{Reader, is_name_start};
use serde_json::Value;

use super::{Field, Graphql, GraphqlLimits, place_of};
use crate::limits::{DOCUMENT_BYTES_MAX, GRAPHQL_FIELDS_MAX};
use crate::problem::Problem;

/// Words that begin a definition.
const KEYWORDS: [&[u8]; 9] =
    [b"schema", b"scalar", b"type", b"interface", b"union", b"enum", b"input", b"directive", b"extend"];
/// Lists and duties around the name of a type in an answer.
const WRAPPERS_MAX: usize = 32;

/// True if a text begins as a schema does. `type: x` is YAML.
pub(crate) fn is_sdl(text: &str) -> bool {
    let text = text.trim_start_matches('\u{feff}').as_bytes();
    let mut reader = Reader::new(text, ());
    if reader.peek() == Some(b'"') && reader.string().is_none() {
        return false;
    }
    let is_keyword = reader.name().is_some_and(|name| KEYWORDS.contains(&name));
    let next = reader.peek();
    is_keyword && next.is_some_and(|b| is_name_start(b) || matches!(b, b'{' | b'@'))
}

/// Compiles a schema in the definition language.
pub(crate) fn compile(text: &str, limits: GraphqlLimits) -> Result<Graphql, Vec<Problem>> {
    let bytes = text.trim_start_matches('\u{feff}').as_bytes();
    if bytes.len() > DOCUMENT_BYTES_MAX {
        let message = format!("the document has more than {} MiB", DOCUMENT_BYTES_MAX >> 20);
        return Err(vec![Problem::new("", message)]);
    }
    let mut schema = Sdl {
        reader: Reader::new(bytes, ()),
        graphql: Graphql { limits, ..Graphql::default() },
        twice: Vec::new(),
        has_schema: false,
        fields: 0,
    };
    let mut lines: BTreeMap<String, u64> = BTreeMap::new();
    while schema.reader.peek().is_some() {
        let start = schema.reader.at();
        match schema.definition() {
            Some(name) => {
                lines.entry(name).or_insert_with(|| place_of(bytes, start).0 as u64);
            }
            None => {
                let (line, column) = place_of(bytes, schema.reader.at());
                let message =
                    format!("this is no schema of GraphQL: column {column} is not as its language says");
                let problem = Problem::new("", message);
                return Err(vec![Problem { line: Some(line as u64), ..problem }]);
            }
        }
        if schema.fields > GRAPHQL_FIELDS_MAX {
            let message = format!("the schema has more than {GRAPHQL_FIELDS_MAX} fields");
            return Err(vec![Problem::new("", message)]);
        }
    }
    let Sdl { mut graphql, twice, has_schema, .. } = schema;
    if !has_schema {
        for (root, name) in graphql.roots.iter_mut().zip(["Query", "Mutation", "Subscription"]) {
            *root = graphql.types.contains_key(name).then(|| name.to_owned());
        }
    }
    let mut problems = graphql.complete();
    problems.extend(twice.into_iter().map(|name| Problem::new(name, "the type is there twice")));
    for problem in &mut problems {
        let of_type = problem.pointer.split('.').next().unwrap_or_default();
        problem.line = lines.get(of_type).copied();
    }
    if problems.is_empty() { Ok(graphql) } else { Err(problems) }
}

struct Sdl<'t> {
    reader: Reader<'t, ()>,
    graphql: Graphql,
    /// Types that are there twice.
    twice: Vec<String>,
    /// The types of operations are named.
    has_schema: bool,
    fields: usize,
}

impl Sdl<'_> {
    /// One definition: the name of the type, if it is one.
    fn definition(&mut self) -> Option<String> {
        self.description()?;
        let mut keyword = self.reader.name()?;
        let extends = keyword == b"extend";
        if extends {
            keyword = self.reader.name()?;
        }
        match keyword {
            b"schema" => {
                self.has_schema = true;
                self.reader.directives()?;
                if self.reader.next_if(b'{') {
                    while !self.reader.next_if(b'}') {
                        let number = match self.reader.name()? {
                            b"query" => 0,
                            b"mutation" => 1,
                            b"subscription" => 2,
                            _ => return None,
                        };
                        self.reader.expect(b':')?;
                        self.graphql.roots[number] = Some(self.name()?);
                    }
                }
                Some(String::new())
            }
            b"scalar" => {
                let name = self.name()?;
                self.reader.directives()?;
                Some(self.add(name, BTreeMap::new(), false, extends))
            }
            b"type" | b"interface" => {
                let name = self.name()?;
                if self.reader.peek_name() == b"implements" {
                    self.reader.name()?;
                    self.reader.next_if(b'&');
                    self.reader.name()?;
                    while self.reader.next_if(b'&') {
                        self.reader.name()?;
                    }
                }
                self.reader.directives()?;
                let fields = self.fields(false)?;
                Some(self.add(name, fields, false, extends))
            }
            b"input" => {
                let name = self.name()?;
                self.reader.directives()?;
                let fields = self.fields(true)?;
                Some(self.add(name, fields, true, extends))
            }
            b"union" => {
                let name = self.name()?;
                self.reader.directives()?;
                if self.reader.next_if(b'=') {
                    self.names_between_bars()?;
                }
                Some(self.add(name, BTreeMap::new(), false, extends))
            }
            b"enum" => {
                let name = self.name()?;
                self.reader.directives()?;
                if self.reader.next_if(b'{') {
                    while !self.reader.next_if(b'}') {
                        self.description()?;
                        self.reader.name()?;
                        self.reader.directives()?;
                    }
                }
                Some(self.add(name, BTreeMap::new(), false, extends))
            }
            b"directive" => {
                self.reader.expect(b'@')?;
                let name = self.name()?;
                self.arguments()?;
                if self.reader.peek_name() == b"repeatable" {
                    self.reader.name()?;
                }
                self.reader.name().filter(|on| *on == b"on")?;
                self.names_between_bars()?;
                self.graphql.directives.insert(name);
                Some(String::new())
            }
            _ => None,
        }
    }

    fn add(
        &mut self,
        name: String,
        fields: BTreeMap<String, Field>,
        is_input: bool,
        extends: bool,
    ) -> String {
        if !self.graphql.add(&name, fields, is_input, extends) {
            self.twice.push(name.clone());
        }
        name
    }

    fn name(&mut self) -> Option<String> {
        self.reader.name().map(|name| String::from_utf8_lossy(name).into_owned())
    }

    fn description(&mut self) -> Option<()> {
        if self.reader.peek() == Some(b'"') { self.reader.string() } else { Some(()) }
    }

    /// The fields of a type in braces, if there are some; those of an `input` have a default in place of
    /// arguments.
    fn fields(&mut self, is_input: bool) -> Option<BTreeMap<String, Field>> {
        let mut fields = BTreeMap::new();
        if !self.reader.next_if(b'{') {
            return Some(fields);
        }
        while !self.reader.next_if(b'}') {
            self.description()?;
            let name = self.name()?;
            let arguments = if is_input { Vec::new() } else { self.arguments()? };
            self.reader.expect(b':')?;
            let of = String::from_utf8_lossy(self.reader.reference()?).into_owned();
            if is_input && self.reader.next_if(b'=') {
                self.reader.value()?;
            }
            self.reader.directives()?;
            self.fields += 1 + arguments.len();
            fields.insert(name, Field { arguments, of });
        }
        Some(fields)
    }

    /// The names of arguments in parentheses, if there are some.
    fn arguments(&mut self) -> Option<Vec<String>> {
        let mut arguments = Vec::new();
        if self.reader.next_if(b'(') {
            while !self.reader.next_if(b')') {
                self.description()?;
                arguments.push(self.name()?);
                self.reader.expect(b':')?;
                self.reader.reference()?;
                if self.reader.next_if(b'=') {
                    self.reader.value()?;
                }
                self.reader.directives()?;
            }
        }
        Some(arguments)
    }

    fn names_between_bars(&mut self) -> Option<()> {
        self.reader.next_if(b'|');
        self.reader.name()?;
        while self.reader.next_if(b'|') {
            self.reader.name()?;
        }
        Some(())
    }
}

/// The schema in an answer to an introspection: the answer as it came, its `data`, or `__schema` alone.
pub(crate) fn introspected(document: &Value, limits: GraphqlLimits) -> Option<Result<Graphql, Vec<Problem>>> {
    let (schema, pointer) = ["/data/__schema", "/__schema"]
        .into_iter()
        .find_map(|pointer| document.pointer(pointer).map(|schema| (schema, pointer)))?;
    let mut graphql = Graphql { limits, ..Graphql::default() };
    let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    for (root, name) in graphql.roots.iter_mut().zip(["queryType", "mutationType", "subscriptionType"]) {
        *root = schema.get(name).and_then(|of| text(of, "name"));
    }
    let list = |value: &Value, name: &str| -> Vec<Value> {
        value.get(name).and_then(Value::as_array).cloned().unwrap_or_default()
    };
    let mut problems = Vec::new();
    for (number, each) in list(schema, "types").iter().enumerate() {
        let Some(name) = text(each, "name") else {
            problems.push(Problem::new(format!("{pointer}/types/{number}"), "a type has a `name`"));
            continue;
        };
        let is_input = text(each, "kind").as_deref() == Some("INPUT_OBJECT");
        let mut fields = BTreeMap::new();
        for field in list(each, if is_input { "inputFields" } else { "fields" }) {
            let arguments =
                list(&field, "args").iter().filter_map(|argument| text(argument, "name")).collect();
            let (Some(name), Some(of)) = (text(&field, "name"), field.get("type").and_then(innermost)) else {
                let message = "a field has a `name` and a `type`";
                problems.push(Problem::new(format!("{pointer}/types/{number}"), message));
                continue;
            };
            fields.insert(name, Field { arguments, of });
        }
        if !graphql.add(&name, fields, is_input, false) {
            problems.push(Problem::new(format!("{pointer}/types/{number}"), "the type is there twice"));
        }
    }
    graphql.directives.extend(list(schema, "directives").iter().filter_map(|each| text(each, "name")));
    problems.extend(graphql.complete());
    Some(if problems.is_empty() { Ok(graphql) } else { Err(problems) })
}

/// The name of a type in its lists and duties.
fn innermost(mut of: &Value) -> Option<String> {
    for _ in 0..WRAPPERS_MAX {
        match of.get("name").and_then(Value::as_str) {
            Some(name) => return Some(name.to_owned()),
            None => of = of.get("ofType")?,
        }
    }
    None
}
