//! The fields of an operation whose values are of few types, and those of free text: what is known of them
//! before anybody has sent one.

use std::collections::BTreeMap;

use portcullis_types::Place;
use serde_json::Value;

use crate::api::json_name;
use crate::limits::{CHAIN_MAX, FIELD_DEPTH_MAX, FIELDS_MAX, OPTIONS_MAX, TEXT_LENGTH_MIN};
use crate::problem::child;
use crate::schema::Schemas;

/// A field that an operation declares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// The place.
    pub place: Place,
    /// The name, as findings name it.
    pub name: String,
    /// What it carries.
    pub form: Form,
    /// Pointer of its schema in the document.
    pub pointer: String,
}

/// What a field carries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Form {
    /// Free text; else values of these types or one of these values.
    pub is_text: bool,
    /// The types.
    pub types: Vec<FieldType>,
    /// Single values.
    pub values: Vec<String>,
}

/// A type that leaves no room for text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldType {
    /// Whole numbers.
    Whole,
    /// Numbers.
    Number,
    /// `true` or `false`.
    Boolean,
    /// UUIDs.
    Uuid,
    /// Dates, and times of a day.
    Date,
}

impl FieldType {
    /// Values of the type, in the plural.
    pub fn title(self) -> &'static str {
        match self {
            FieldType::Whole => "whole numbers",
            FieldType::Number => "numbers",
            FieldType::Boolean => "true or false",
            FieldType::Uuid => "UUIDs",
            FieldType::Date => "dates",
        }
    }
}

impl Form {
    fn of_type(kind: FieldType) -> Form {
        Form { types: vec![kind], ..Form::default() }
    }

    fn or(mut self, other: Form) -> Form {
        self.is_text |= other.is_text;
        self.types.extend(other.types);
        self.values.extend(other.values);
        self
    }
}

/// The form of the values at `pointer`; none if it says too little of them.
pub(crate) fn form(schemas: &Schemas<'_>, pointer: &str) -> Option<Form> {
    form_of(schemas, pointer, CHAIN_MAX)
}

fn form_of(schemas: &Schemas<'_>, pointer: &str, left: usize) -> Option<Form> {
    let left = left.checked_sub(1)?;
    let (pointer, schema) = schemas.resolve(pointer)?;
    let list =
        |name: &str| schema.get(name).and_then(Value::as_array).filter(|list| list.len() <= OPTIONS_MAX);
    // Each of them holds: the narrowest one says most.
    if let Some(all) = list("allOf") {
        let each = |number| form_of(schemas, &format!("{pointer}/allOf/{number}"), left);
        let mut forms: Vec<Form> = (0..all.len()).filter_map(each).chain(own(schema)).collect();
        forms.sort_by_key(|form| form.is_text);
        return forms.into_iter().next();
    }
    for name in ["anyOf", "oneOf"] {
        if let Some(some) = list(name) {
            let mut all = Form::default();
            for number in 0..some.len() {
                all = all.or(form_of(schemas, &format!("{pointer}/{name}/{number}"), left)?);
            }
            return Some(all);
        }
    }
    own(schema)
}

/// The form that a schema itself declares.
fn own(schema: &Value) -> Option<Form> {
    let says = |name: &str| schema.get(name).is_some();
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Object(_) | Value::Array(_) => None,
        Value::Null | Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
    };
    let values = match (schema.get("const"), schema.get("enum").and_then(Value::as_array)) {
        (Some(only), _) => Some(vec![text(only)?]),
        (None, Some(members)) if members.len() <= OPTIONS_MAX => {
            Some(members.iter().map(text).collect::<Option<Vec<_>>>()?)
        }
        (None, Some(_)) => return None,
        (None, None) => None,
    };
    let mut form = match values {
        Some(values) => Form { values, ..Form::default() },
        None => {
            let names: Vec<&str> = match schema.get("type")? {
                Value::String(name) => vec![name],
                Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => return None,
            };
            let mut form = Form::default();
            for name in names {
                form = form.or(match (name, schema.get("format").and_then(Value::as_str)) {
                    ("integer", _) => Form::of_type(FieldType::Whole),
                    ("number", _) => Form::of_type(FieldType::Number),
                    ("boolean", _) => Form::of_type(FieldType::Boolean),
                    ("null", _) => Form { values: vec!["null".to_owned()], ..Form::default() },
                    ("string", Some("uuid")) => Form::of_type(FieldType::Uuid),
                    ("string", Some("date" | "date-time")) => Form::of_type(FieldType::Date),
                    // A short one is a name or a code; what fits it, its values show.
                    ("string", None)
                        if !says("pattern")
                            && !says("contentEncoding")
                            && schema.get("maxLength").and_then(Value::as_u64).unwrap_or(u64::MAX)
                                >= TEXT_LENGTH_MIN =>
                    {
                        Form { is_text: true, ..Form::default() }
                    }
                    _ => return None,
                });
            }
            form
        }
    };
    if schema.get("nullable") == Some(&Value::Bool(true)) {
        form.values.push("null".to_owned());
    }
    Some(form)
}

/// The fields of a body whose schema stands at `pointer`.
pub(crate) fn of_body(schemas: &Schemas<'_>, pointer: &str, place: Place) -> Vec<Field> {
    let mut fields = BTreeMap::new();
    let mut left = FIELDS_MAX;
    let depth = if place == Place::Json { FIELD_DEPTH_MAX } else { 1 };
    members(schemas, pointer, &mut Vec::new(), depth, &mut left, &mut fields);
    let field = |(name, (form, pointer))| Field { place, name, form, pointer };
    // Where there are more than are looked at, a name may be there once more with another type.
    if left == 0 { Vec::new() } else { fields.into_iter().map(field).collect() }
}

/// Alternatives are left out: which of them a body is, its other members say.
fn members(
    schemas: &Schemas<'_>,
    pointer: &str,
    path: &mut Vec<String>,
    depth: usize,
    left: &mut usize,
    fields: &mut BTreeMap<String, (Form, String)>,
) {
    let Some((pointer, schema)) = schemas.resolve(pointer) else { return };
    let count = schema.get("allOf").and_then(Value::as_array).map_or(0, Vec::len);
    for number in 0..count {
        let Some(fewer) = left.checked_sub(1) else { return };
        *left = fewer;
        // The levels bound combinations, too: they may lead round.
        if let Some(depth) = depth.checked_sub(1) {
            members(schemas, &format!("{pointer}/allOf/{number}"), path, depth.max(1), left, fields);
        }
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    for name in properties.into_iter().flat_map(|properties| properties.keys()) {
        let Some(fewer) = left.checked_sub(1) else { return };
        *left = fewer;
        // A dot in a name is the same to findings as one between names.
        if name.contains('.') {
            continue;
        }
        let mut at = child(&child(&pointer, "properties"), name);
        path.push(name.clone());
        let before = path.len();
        while let Some((items, schema)) =
            schemas.resolve(&at).filter(|(_, schema)| schema.get("items").is_some())
        {
            if schema.get("type").is_some_and(|kind| kind != "array") || path.len() > before + 2 {
                break;
            }
            path.push("0".to_owned());
            at = child(&items, "items");
        }
        match form(schemas, &at) {
            Some(form) => {
                let known = fields.entry(json_name(path)).or_insert_with(|| (form.clone(), at.clone()));
                if known.0.is_text && !form.is_text {
                    *known = (form, at);
                }
            }
            None if depth > 1 => members(schemas, &at, path, depth - 1, left, fields),
            None => {}
        }
        path.truncate(before - 1);
    }
}
