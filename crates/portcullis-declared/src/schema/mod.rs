//! Schemas: taken out of a document, translated to JSON Schema 2020-12, compiled, asked.
//!
//! A schema that is asked about is one small document: itself and what it refers to, each under `$defs`. What
//! the translation drops is either of no consequence for requests (descriptions, examples) or reported.

mod translate;
mod ways;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use jsonschema::{Draft, PatternOptions, Validator};
use serde_json::{Map, Value, json};

use crate::limits::{CHAIN_MAX, PATTERN_BYTES_MAX, SCHEMA_VALUES_MAX, WAYS_MAX};
use crate::problem::Problem;
use crate::words;

/// A compiled schema.
#[derive(Debug)]
pub(crate) struct Schema {
    validator: Validator,
    /// The pointer in the document.
    pub(crate) pointer: String,
    /// Pointers of the definitions in the document.
    origins: Arc<Vec<String>>,
    /// Pointers of properties that must not be sent, and the reason.
    hidden: Arc<HashSet<String>>,
    direction: Direction,
    /// It can be reported which part of a value is wrong. Schemas that refer to themselves through
    /// alternatives are only asked whether the whole is right, which is remembered for each part.
    is_told: bool,
    /// The types that a value may have at its top.
    pub(crate) types: Types,
}

/// The way in which a value is not as its schema says.
#[derive(Clone, Debug)]
pub(crate) struct Violation {
    /// Steps from the top of the value.
    pub path: Vec<String>,
    /// The rule, in words.
    pub rule: String,
    /// Pointer into the document.
    pub pointer: String,
    /// The value is there and must not be sent.
    pub is_hidden: bool,
}

/// Who sends a value: some properties are for one side only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Request,
    Answer,
}

impl Direction {
    /// The keyword of properties that are for the other side.
    fn hides(self) -> &'static str {
        match self {
            Direction::Request => "readOnly",
            Direction::Answer => "writeOnly",
        }
    }

    fn rule(self) -> &'static str {
        match self {
            Direction::Request => "is read-only, and must not be sent",
            Direction::Answer => "is write-only, and must not be in an answer",
        }
    }
}

/// Types of values, as far as the text of a parameter is read by them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Types {
    pub null: bool,
    pub boolean: bool,
    pub number: bool,
    pub integer: bool,
    pub string: bool,
    pub array: bool,
    pub object: bool,
}

impl Types {
    const ALL: Types = Types {
        null: true,
        boolean: true,
        number: true,
        integer: true,
        string: true,
        array: true,
        object: true,
    };

    fn of(name: &str) -> Types {
        let mut types = Types::default();
        types.add(name);
        types
    }

    fn add(&mut self, name: &str) {
        match name {
            "null" => self.null = true,
            "boolean" => self.boolean = true,
            "number" => (self.number, self.integer) = (true, true),
            "integer" => self.integer = true,
            "string" => self.string = true,
            "array" => self.array = true,
            "object" => self.object = true,
            _ => {}
        }
    }

    fn both(self, other: Types) -> Types {
        self.with(other, |a, b| a && b)
    }

    fn either(self, other: Types) -> Types {
        self.with(other, |a, b| a || b)
    }

    fn with(self, other: Types, op: impl Fn(bool, bool) -> bool) -> Types {
        Types {
            null: op(self.null, other.null),
            boolean: op(self.boolean, other.boolean),
            number: op(self.number, other.number),
            integer: op(self.integer, other.integer),
            string: op(self.string, other.string),
            array: op(self.array, other.array),
            object: op(self.object, other.object),
        }
    }
}

impl Schema {
    /// What is wrong with `value`, the first few.
    pub fn violations(&self, value: &Value, most: usize) -> Vec<Violation> {
        if self.validator.is_valid(value) {
            return Vec::new();
        }
        if !self.is_told {
            let rule = "is not as the schema says".to_owned();
            let pointer = self.pointer.clone();
            return vec![Violation { path: Vec::new(), rule, pointer, is_hidden: false }];
        }
        let mut found = Vec::new();
        for error in self.validator.iter_errors(value).take(most) {
            let pointer = self.origin(error.schema_path().as_str());
            let is_hidden = self.hidden.contains(&pointer);
            let path: Vec<String> = steps(error.instance_path().as_str());
            for (more, rule) in words::of(&error) {
                let path = path.iter().cloned().chain(more).collect();
                let rule = if is_hidden { self.direction.rule().to_owned() } else { rule };
                found.push(Violation { path, rule, pointer: pointer.clone(), is_hidden });
            }
        }
        found.truncate(most);
        found
    }

    /// True if nothing is wrong with `value`.
    pub fn is_valid(&self, value: &Value) -> bool {
        self.validator.is_valid(value)
    }

    /// The pointer into the document for one into the compiled schema.
    fn origin(&self, path: &str) -> String {
        let rest = path.strip_prefix("/$defs/").unwrap_or_default();
        let (number, rest) = rest.split_once('/').map_or((rest, ""), |(number, rest)| (number, rest));
        let Some(origin) = number.parse().ok().and_then(|number: usize| self.origins.get(number)) else {
            return self.pointer.clone();
        };
        if rest.is_empty() { origin.clone() } else { format!("{origin}/{rest}") }
    }
}

fn steps(pointer: &str) -> Vec<String> {
    pointer.split('/').skip(1).map(|step| step.replace("~1", "/").replace("~0", "~")).collect()
}

/// The schemas of a document, as far as they are asked for.
pub(crate) struct Schemas<'d> {
    document: &'d Value,
    /// OpenAPI 3.0, whose schemas are not those of JSON Schema.
    is_old: bool,
    /// Where the document stands in one around it.
    base: String,
    definitions: Vec<Definition>,
    numbers: HashMap<String, usize>,
    /// Definitions before this one are translated.
    translated: usize,
    direction: Direction,
    hidden: HashSet<String>,
    patterns: HashMap<String, bool>,
    compiled: HashMap<String, Option<Arc<Schema>>>,
    values: usize,
    pub errors: Vec<Problem>,
    pub warnings: Vec<Problem>,
}

struct Definition {
    pointer: String,
    schema: Value,
    /// The definitions that it refers to.
    refers: BTreeSet<usize>,
}

/// Keywords whose value is a schema, for the same value (`true`) or a part of it.
const ONE: [(&str, bool); 11] = [
    ("not", true),
    ("if", true),
    ("then", true),
    ("else", true),
    ("items", false),
    ("contains", false),
    ("additionalProperties", false),
    ("propertyNames", false),
    ("unevaluatedItems", false),
    ("unevaluatedProperties", false),
    ("additionalItems", false),
];
/// Keywords whose value is a list of schemas.
const LIST: [(&str, bool); 4] = [("allOf", true), ("anyOf", true), ("oneOf", true), ("prefixItems", false)];
/// Keywords whose value is schemas by name.
const NAMED: [(&str, bool); 3] =
    [("properties", false), ("patternProperties", false), ("dependentSchemas", true)];
/// Keywords that are taken over as they are.
const PLAIN: [&str; 18] = [
    "const",
    "multipleOf",
    "maximum",
    "exclusiveMaximum",
    "minimum",
    "exclusiveMinimum",
    "maxLength",
    "minLength",
    "minContains",
    "maxContains",
    "maxItems",
    "minItems",
    "uniqueItems",
    "required",
    "dependentRequired",
    "minProperties",
    "maxProperties",
    "type",
];
/// Formats that are checked. Others say too little of a text, or too much.
const FORMATS: [&str; 5] = ["date", "date-time", "uuid", "ipv4", "ipv6"];

impl<'d> Schemas<'d> {
    pub fn new(document: &'d Value, is_old: bool) -> Schemas<'d> {
        Schemas {
            document,
            is_old,
            base: String::new(),
            definitions: Vec::new(),
            numbers: HashMap::new(),
            translated: 0,
            direction: Direction::Request,
            hidden: HashSet::new(),
            patterns: HashMap::new(),
            compiled: HashMap::new(),
            values: 0,
            errors: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// The same, for what is answered.
    pub fn of_answers(self) -> Schemas<'d> {
        Schemas { direction: Direction::Answer, ..self }
    }

    /// The same, for messages about a document that stands at `base` in another one.
    pub fn below(self, base: String) -> Schemas<'d> {
        Schemas { base, ..self }
    }

    /// The schema at `pointer`, compiled; none if something is wrong with it, which is noted.
    pub fn compile(&mut self, pointer: &str) -> Option<Arc<Schema>> {
        if let Some(known) = self.compiled.get(pointer) {
            return known.clone();
        }
        let before = self.errors.len();
        let root = self.define(pointer);
        self.translate_all();
        let compiled = match self.errors.len() == before {
            true => self.build(root, pointer),
            false => None,
        };
        self.compiled.insert(pointer.to_owned(), compiled.clone());
        compiled
    }

    /// The schema that stands at `pointer` or that it refers to, as it is written, and where.
    pub fn resolve(&self, pointer: &str) -> Option<(String, &'d Value)> {
        let mut pointer = pointer.to_owned();
        for _ in 0..CHAIN_MAX {
            let value = self.document.pointer(&pointer)?;
            match value.get("$ref").and_then(Value::as_str) {
                Some(target) => pointer = local(target).ok()?,
                None => return Some((pointer, value)),
            }
        }
        None
    }

    /// The types that a value may have.
    pub fn types(&self, pointer: &str) -> Types {
        self.types_of(pointer, CHAIN_MAX)
    }

    fn types_of(&self, pointer: &str, left: usize) -> Types {
        let (Some((pointer, schema)), Some(left)) = (self.resolve(pointer), left.checked_sub(1)) else {
            return Types::ALL;
        };
        let mut types = match schema.get("type") {
            Some(Value::String(name)) => Types::of(name),
            Some(Value::Array(names)) => {
                names.iter().filter_map(Value::as_str).map(Types::of).fold(Types::default(), Types::either)
            }
            _ => match schema.get("enum").and_then(Value::as_array) {
                Some(members) => members.iter().map(type_of).fold(Types::default(), Types::either),
                None => Types::ALL,
            },
        };
        if schema.get("nullable") == Some(&Value::Bool(true)) {
            types.null = true;
        }
        for (list, is_all) in [("allOf", true), ("anyOf", false), ("oneOf", false)] {
            let count = schema.get(list).and_then(Value::as_array).map_or(0, Vec::len);
            let mut each = (0..count.min(64)).map(|i| self.types_of(&format!("{pointer}/{list}/{i}"), left));
            let Some(first) = each.next() else { continue };
            let of_list = each.fold(first, |a, b| if is_all { a.both(b) } else { a.either(b) });
            types = types.both(of_list);
        }
        types
    }

    /// The number of the definition for the schema at `pointer`.
    fn define(&mut self, pointer: &str) -> usize {
        if let Some(number) = self.numbers.get(pointer) {
            return *number;
        }
        let number = self.definitions.len();
        self.numbers.insert(pointer.to_owned(), number);
        let pointer = pointer.to_owned();
        self.definitions.push(Definition { pointer, schema: Value::Null, refers: BTreeSet::new() });
        number
    }

    fn translate_all(&mut self) {
        while self.translated < self.definitions.len() {
            let number = self.translated;
            self.translated += 1;
            let pointer = self.definitions[number].pointer.clone();
            let Some(schema) = self.document.pointer(&pointer) else {
                self.wrong(&pointer, "there is no such schema");
                continue;
            };
            let mut refers = BTreeSet::new();
            let schema = self.translate(schema, &pointer, &mut refers);
            self.definitions[number].schema = schema;
            self.definitions[number].refers = refers;
        }
    }

    fn wrong(&mut self, pointer: &str, message: impl Into<String>) {
        self.errors.push(Problem::new(format!("{}{pointer}", self.base), message));
    }

    fn left_out(&mut self, pointer: &str, message: impl Into<String>) {
        self.warnings.push(Problem::new(format!("{}{pointer}", self.base), message));
    }

    /// Compiles the definition `root`.
    fn build(&mut self, root: usize, pointer: &str) -> Option<Arc<Schema>> {
        let reached = self.reached(root);
        if let Err(problem) = self.check(&reached) {
            self.errors.push(problem);
            return None;
        }
        let ways = self.ways(root, &mut HashMap::new(), 0);
        if ways.is_none_or(|ways| ways > WAYS_MAX) {
            let message = format!(
                "the schema is not enforced: references lead through it in more than {WAYS_MAX} ways"
            );
            self.left_out(pointer, message);
            return None;
        }
        let mut definitions = Map::new();
        for number in &reached {
            let schema = &self.definitions[*number].schema;
            self.values += count(schema);
            definitions.insert(number.to_string(), schema.clone());
        }
        if self.values > SCHEMA_VALUES_MAX {
            self.wrong(pointer, format!("the schemas have more than {SCHEMA_VALUES_MAX} values together"));
            return None;
        }
        let document = json!({ "$ref": format!("#/$defs/{root}"), "$defs": definitions });
        let validator = match options().build(&document) {
            Ok(validator) => validator,
            Err(error) => {
                let path = error.instance_path().as_str().to_owned();
                let at = self.place(&path).unwrap_or_else(|| pointer.to_owned());
                self.wrong(&at, format!("this is no schema: {}", words::shortened(&error.to_string())));
                return None;
            }
        };
        // Number by number, so that the pointers of a violation are found.
        let last = reached.iter().max().copied().unwrap_or_default();
        let mut origins = vec![String::new(); last + 1];
        for number in &reached {
            origins[*number] = format!("{}{}", self.base, self.definitions[*number].pointer);
        }
        let is_in =
            |at: &&String| reached.iter().any(|number| at.starts_with(&self.definitions[*number].pointer));
        let hidden = self.hidden.iter().filter(is_in).map(|at| format!("{}{at}", self.base)).collect();
        Some(Arc::new(Schema {
            validator,
            pointer: format!("{}{pointer}", self.base),
            origins: Arc::new(origins),
            hidden: Arc::new(hidden),
            direction: self.direction,
            is_told: ways.is_some_and(|ways| ways <= WAYS_TOLD_MAX) && !self.leads_back(&reached),
            types: self.types(pointer),
        }))
    }

    /// The pointer into the document for one into what is compiled.
    fn place(&self, path: &str) -> Option<String> {
        let rest = path.strip_prefix("/$defs/")?;
        let (number, rest) = rest.split_once('/').map_or((rest, ""), |(number, rest)| (number, rest));
        let origin = &self.definitions.get(number.parse::<usize>().ok()?)?.pointer;
        Some(if rest.is_empty() { origin.clone() } else { format!("{origin}/{rest}") })
    }
}

/// Ways through a schema up to which errors are collected.
const WAYS_TOLD_MAX: u64 = 20_000;

fn options() -> jsonschema::ValidationOptions<'static> {
    jsonschema::options()
        .with_draft(Draft::Draft202012)
        .should_validate_formats(true)
        .offline()
        .with_pattern_options(
            PatternOptions::regex().size_limit(PATTERN_BYTES_MAX).dfa_size_limit(PATTERN_BYTES_MAX),
        )
}

/// The pointer of a reference within the document.
pub(crate) fn local(reference: &str) -> Result<String, String> {
    let Some(fragment) = reference.strip_prefix('#') else {
        return Err(format!(
            "`$ref` leads to another document, and only those within it are followed: {reference}"
        ));
    };
    if !fragment.is_empty() && !fragment.starts_with('/') {
        return Err(format!("`$ref` names an anchor, and only JSON pointers are followed: {reference}"));
    }
    let decoded = portcullis_types::percent_decode(fragment.as_bytes(), false);
    String::from_utf8(decoded).map_err(|_| format!("`$ref` is not UTF-8: {reference}"))
}

fn target(members: &Map<String, Value>) -> Option<usize> {
    members.get("$ref")?.as_str()?.strip_prefix("#/$defs/")?.parse().ok()
}

/// The schemas in a schema, and whether each is for the same value.
fn subschemas(members: &Map<String, Value>) -> impl Iterator<Item = (&Value, bool)> {
    let one = ONE.iter().filter_map(|(name, same)| members.get(*name).map(|schema| (schema, *same)));
    let list = LIST.iter().flat_map(|(name, same)| {
        let schemas = members.get(*name).and_then(Value::as_array);
        schemas.into_iter().flatten().map(|schema| (schema, *same))
    });
    let named = NAMED.iter().flat_map(|(name, same)| {
        let schemas = members.get(*name).and_then(Value::as_object);
        schemas.into_iter().flat_map(Map::values).map(|schema| (schema, *same))
    });
    one.chain(list).chain(named)
}

fn type_of(value: &Value) -> Types {
    Types::of(match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    })
}

fn count(value: &Value) -> usize {
    let (mut open, mut values) = (vec![value], 0);
    while let Some(value) = open.pop() {
        values += 1;
        match value {
            Value::Object(members) => open.extend(members.values()),
            Value::Array(items) => open.extend(items),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    values
}
