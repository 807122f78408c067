//! Two OpenAPI documents compared: what is new, gone, or changed.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::Value;

/// Steps through references and compositions that are followed.
const DEPTH_MAX: usize = 12;
/// Members of schemas that are looked at for one operation.
const MEMBERS_MAX: usize = 2_000;
const METHODS: [&str; 8] = ["get", "put", "post", "delete", "options", "head", "patch", "trace"];

/// The part of an OpenAPI document that is compared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interface {
    operations: BTreeMap<(String, String), Operation>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Operation {
    /// Place and name, as in `query:id`.
    parameters: BTreeMap<String, Declared>,
    bodies: BTreeSet<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Declared {
    is_required: bool,
    types: BTreeSet<String>,
}

/// A difference between two documents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// An endpoint that only the new one has.
    New {
        /// The method.
        method: String,
        /// The path.
        path: String,
    },
    /// An endpoint that only the old one has.
    Gone {
        /// The method.
        method: String,
        /// The path.
        path: String,
    },
    /// One that both have, and what differs.
    Changed {
        /// The method.
        method: String,
        /// The path in the new one.
        path: String,
        /// What differs.
        differences: Vec<Difference>,
    },
}

/// What differs at an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// `query:id`, or `body` for a media type.
    pub what: String,
    /// In the old document; nothing if it is not there.
    pub old: Option<String>,
    /// In the new one.
    pub new: Option<String>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = &self.what;
        match (&self.old, &self.new) {
            (None, Some(new)) => write!(f, "new {what}: {new}"),
            (Some(old), None) => write!(f, "gone {what}: {old}"),
            (old, new) => {
                let text = |text: &Option<String>| text.clone().unwrap_or_default();
                write!(f, "{what}: {}, was {}", text(new), text(old))
            }
        }
    }
}

impl Interface {
    /// Reads an OpenAPI 3 document; the error says what is missing.
    pub fn of(document: &Value) -> Result<Interface, String> {
        let version = document.get("openapi").and_then(Value::as_str).unwrap_or_default();
        if !version.starts_with("3.") {
            return Err("this is no OpenAPI 3 document: `openapi` does not say 3.x".to_owned());
        }
        let base =
            document.pointer("/servers/0/url").and_then(Value::as_str).map(base_path).unwrap_or_default();
        let paths = document.get("paths").and_then(Value::as_object).ok_or("the document has no `paths`")?;
        let mut interface = Interface::default();
        for (path, item) in paths {
            let item = followed(document, item);
            let shared = item.get("parameters");
            let path = format!("{base}{path}");
            for (method, operation) in item.as_object().into_iter().flatten() {
                if METHODS.contains(&&**method) {
                    let key = (path.clone(), method.to_ascii_uppercase());
                    interface.operations.insert(key, read(document, shared, operation));
                }
            }
            for (method, operation) in
                item.get("x-other-methods").and_then(Value::as_object).into_iter().flatten()
            {
                let key = (path.clone(), method.clone());
                interface.operations.insert(key, read(document, shared, operation));
            }
        }
        Ok(interface)
    }

    /// The number of operations.
    pub fn len(&self) -> usize {
        self.operations.len()
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }
}

/// What `new` has that `old` has not, and the other way round. Names of parameters in paths do not count, and
/// a path without placeholders is the same as a template that takes it.
pub fn compare(old: &Interface, new: &Interface) -> Vec<Change> {
    let mut matched = BTreeSet::new();
    let mut changes = Vec::new();
    for ((path, method), operation) in &new.operations {
        match counterpart(old, path, method) {
            Some(key) => {
                let differences = differences(&old.operations[key], operation);
                matched.insert(key);
                if !differences.is_empty() {
                    changes.push(Change::Changed { method: method.clone(), path: path.clone(), differences });
                }
            }
            None => changes.push(Change::New { method: method.clone(), path: path.clone() }),
        }
    }
    for key @ (path, method) in old.operations.keys() {
        // One that a wider template of the new document takes is not gone.
        if !matched.contains(key) && counterpart(new, path, method).is_none() {
            changes.push(Change::Gone { method: method.clone(), path: path.clone() });
        }
    }
    changes
}

/// The operation of the same path, else the one whose template takes it.
fn counterpart<'i>(interface: &'i Interface, path: &str, method: &str) -> Option<&'i (String, String)> {
    let of_method = || interface.operations.keys().filter(|(_, own)| own == method);
    let same = of_method().find(|(own, _)| normal(own) == normal(path));
    same.or_else(|| of_method().find(|(own, _)| takes(own, path)))
}

fn normal(path: &str) -> String {
    let part = |part: &str| match (part.find('{'), part.rfind('}')) {
        (Some(open), Some(close)) if open < close => format!("{}{{}}{}", &part[..open], &part[close + 1..]),
        _ => part.to_ascii_lowercase(),
    };
    path.trim_end_matches('/').split('/').map(part).collect::<Vec<_>>().join("/")
}

/// True if every part of a template is that of the path, or a placeholder.
fn takes(template: &str, path: &str) -> bool {
    let (template, path) = (normal(template), normal(path));
    let (mut of_template, mut of_path) = (template.split('/'), path.split('/'));
    loop {
        match (of_template.next(), of_path.next()) {
            (None, None) => return true,
            (Some(own), Some(other)) => {
                let (before, after) = own.split_once("{}").unwrap_or((own, "-"));
                let is_taken = own.contains("{}")
                    && other.len() > before.len() + after.len()
                    && other.starts_with(before)
                    && other.ends_with(after);
                if own != other && !is_taken {
                    return false;
                }
            }
            _ => return false,
        }
    }
}

fn differences(old: &Operation, new: &Operation) -> Vec<Difference> {
    let mut found = Vec::new();
    let names: BTreeSet<&String> = old.parameters.keys().chain(new.parameters.keys()).collect();
    for name in names {
        let (old, new) = (old.parameters.get(name), new.parameters.get(name));
        if old.zip(new).is_some_and(|(old, new)| is_same(old, new)) {
            continue;
        }
        let (old, new) = (old.map(Declared::to_string), new.map(Declared::to_string));
        found.push(Difference { what: name.clone(), old, new });
    }
    for kind in old.bodies.symmetric_difference(&new.bodies) {
        let side = |bodies: &BTreeSet<String>| bodies.contains(kind).then(|| kind.clone());
        found.push(Difference { what: "body".to_owned(), old: side(&old.bodies), new: side(&new.bodies) });
    }
    found
}

/// True if the types have one in common, or nothing is said of them. An integer is a number; that a parameter
/// is required is a difference.
fn is_same(old: &Declared, new: &Declared) -> bool {
    let wide = |types: &BTreeSet<String>| {
        let mut wide = types.clone();
        if types.contains("integer") {
            wide.insert("number".to_owned());
        }
        wide
    };
    let has_common =
        old.types.is_empty() || new.types.is_empty() || !wide(&old.types).is_disjoint(&wide(&new.types));
    has_common && old.is_required == new.is_required
}

impl fmt::Display for Declared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let types: Vec<&str> = self.types.iter().map(String::as_str).collect();
        f.write_str(&if types.is_empty() { "any".to_owned() } else { types.join(" or ") })?;
        f.write_str(if self.is_required { ", required" } else { ", optional" })
    }
}

/// The path of a server's URL.
fn base_path(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let path = match url.contains("://") {
        true => rest.find('/').map_or("", |slash| &rest[slash..]),
        false => rest,
    };
    let path = path.trim_end_matches('/');
    if path.is_empty() || path.starts_with('/') { path.to_owned() } else { format!("/{path}") }
}

/// A value, behind the references that stand in its place.
fn followed<'d>(document: &'d Value, mut value: &'d Value) -> &'d Value {
    for _ in 0..DEPTH_MAX {
        let Some(reference) = value.get("$ref").and_then(Value::as_str) else { break };
        let Some(target) = reference.strip_prefix('#').and_then(|pointer| document.pointer(pointer)) else {
            break;
        };
        value = target;
    }
    value
}

fn read(document: &Value, shared: Option<&Value>, operation: &Value) -> Operation {
    let mut read = Operation::default();
    let own = operation.get("parameters");
    let parameters = [shared, own].into_iter().flatten().filter_map(Value::as_array).flatten();
    for parameter in parameters {
        let parameter = followed(document, parameter);
        let text = |key: &str| parameter.get(key).and_then(Value::as_str);
        // Names in paths are a matter of taste, and headers and cookies are not discovered.
        if let (Some("query"), Some(name)) = (text("in"), text("name")) {
            let mut declared = Declared {
                is_required: parameter.get("required").and_then(Value::as_bool).unwrap_or(false),
                types: BTreeSet::new(),
            };
            if let Some(schema) = parameter.get("schema") {
                types(document, schema, &mut declared.types, DEPTH_MAX);
            }
            read.parameters.insert(format!("query:{name}"), declared);
        }
    }
    let body = operation.get("requestBody").map(|body| followed(document, body));
    let content = body.and_then(|body| body.get("content")).and_then(Value::as_object);
    for (kind, content) in content.into_iter().flatten() {
        read.bodies.insert(kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase());
        let place = if kind.contains("json") { "json" } else { "form" };
        if let Some(schema) = content.get("schema") {
            let mut members = MEMBERS_MAX;
            let spot = Spot { name: String::new(), is_required: true, depth: DEPTH_MAX };
            let mut found = BTreeMap::new();
            flatten(document, schema, spot, &mut members, &mut found);
            read.parameters
                .extend(found.into_iter().map(|(name, declared)| (format!("{place}:{name}"), declared)));
        }
    }
    read
}

/// The types that a schema names.
fn types(document: &Value, schema: &Value, found: &mut BTreeSet<String>, depth: usize) {
    let schema = followed(document, schema);
    match schema.get("type") {
        Some(Value::String(kind)) => {
            found.insert(kind.clone());
        }
        Some(Value::Array(kinds)) => found.extend(kinds.iter().filter_map(Value::as_str).map(str::to_owned)),
        _ => {}
    }
    if depth > 0 {
        for key in ["anyOf", "oneOf", "allOf"] {
            for part in schema.get(key).and_then(Value::as_array).into_iter().flatten().take(64) {
                types(document, part, found, depth - 1);
            }
        }
    }
}

/// Where a schema stands in a body.
struct Spot {
    name: String,
    is_required: bool,
    depth: usize,
}

/// The scalar values of a schema, by their paths.
fn flatten(
    document: &Value,
    schema: &Value,
    spot: Spot,
    members: &mut usize,
    found: &mut BTreeMap<String, Declared>,
) {
    let schema = followed(document, schema);
    if spot.depth == 0 || *members == 0 {
        return;
    }
    *members -= 1;
    let below = |name: String, is_required: bool| Spot { name, is_required, depth: spot.depth - 1 };
    for key in ["anyOf", "oneOf", "allOf"] {
        for part in schema.get(key).and_then(Value::as_array).into_iter().flatten() {
            flatten(document, part, below(spot.name.clone(), spot.is_required), members, found);
        }
    }
    if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
        let required = schema.get("required").and_then(Value::as_array);
        for (name, member) in properties {
            let is_named =
                required.is_some_and(|names| names.iter().any(|own| own.as_str() == Some(name.as_str())));
            let path = if spot.name.is_empty() { name.clone() } else { format!("{}.{name}", spot.name) };
            flatten(document, member, below(path, spot.is_required && is_named), members, found);
        }
    }
    if let Some(items) = schema.get("items") {
        flatten(document, items, below(format!("{}[]", spot.name), spot.is_required), members, found);
    }
    let mut own = BTreeSet::new();
    types(document, schema, &mut own, 0);
    own.retain(|kind| kind != "object" && kind != "array" && kind != "null");
    if !own.is_empty() && !spot.name.is_empty() {
        let declared = found.entry(spot.name).or_default();
        declared.types.extend(own);
        declared.is_required |= spot.is_required;
    }
}
