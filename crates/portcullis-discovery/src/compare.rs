//! Two OpenAPI documents compared: what is new, gone, or changed.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::iter::once;

use serde_json::Value;

use crate::endpoint::REQUIRED_REQUESTS_MIN;

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
    /// Places and names below which members may be called anything: `json:` for the whole body.
    open: BTreeSet<String>,
    is_deprecated: bool,
    /// Requests and bodies whose parameters are known, in what was discovered.
    looked_at: Option<LookedAt>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LookedAt {
    requests: u64,
    bodies: u64,
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

/// A difference at an endpoint.
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

/// Relation of a discovered endpoint to the declaration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DeviationKind {
    /// It answers, and is not declared.
    Shadow,
    /// It answers requests that its declaration does not allow.
    Drifted,
    /// It is declared as deprecated, and answers.
    Zombie,
    /// It is declared, and was not seen to answer.
    Unseen,
}

impl DeviationKind {
    /// All of them.
    pub const ALL: [DeviationKind; 4] =
        [DeviationKind::Shadow, DeviationKind::Drifted, DeviationKind::Zombie, DeviationKind::Unseen];

    /// The name in metrics and answers of the API.
    pub fn name(self) -> &'static str {
        match self {
            DeviationKind::Shadow => "shadow",
            DeviationKind::Drifted => "drifted",
            DeviationKind::Zombie => "zombie",
            DeviationKind::Unseen => "unseen",
        }
    }
}

/// An endpoint that deviates from what is declared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deviation {
    /// How.
    pub kind: DeviationKind,
    /// The method.
    pub method: String,
    /// The path: as it was discovered of shadow and drifted ones, as it is declared of others.
    pub path: String,
    /// Differences, of drifted ones.
    pub differences: Vec<Difference>,
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

    /// Drops the operations whose method and path `keep` does not take.
    pub fn retain(&mut self, mut keep: impl FnMut(&str, &str) -> bool) {
        self.operations.retain(|(path, method), _| keep(method, path));
    }
}

/// What `new` has that `old` has not, and the other way round. Names of parameters in paths do not count, and
/// a path without placeholders is the same as a template that takes it.
pub fn compare(old: &Interface, new: &Interface) -> Vec<Change> {
    let pairs = Pairs::of(old, new);
    let mut changes = Vec::new();
    for (key @ (path, method), operation) in &new.operations {
        match pairs.old_of.get(key) {
            Some(counterpart) => {
                let differences = differences(&old.operations[*counterpart], operation);
                if !differences.is_empty() {
                    changes.push(Change::Changed { method: method.clone(), path: path.clone(), differences });
                }
            }
            None => changes.push(Change::New { method: method.clone(), path: path.clone() }),
        }
    }
    changes.extend(
        pairs.gone.iter().map(|(path, method)| Change::Gone { method: method.clone(), path: path.clone() }),
    );
    changes
}

/// Deviations of discovered endpoints ([`crate::openapi`]) from the declaration. Clients need not send what
/// is optional, so that a parameter which nobody has sent is no deviation unless it is required.
pub fn deviations(declared: &Interface, seen: &Interface) -> Vec<Deviation> {
    let pairs = Pairs::of(declared, seen);
    let mut found = Vec::new();
    let mut add = |kind, (path, method): &(String, String), differences| {
        found.push(Deviation { kind, method: method.clone(), path: path.clone(), differences });
    };
    for (key, operation) in &seen.operations {
        match pairs.old_of.get(key) {
            Some(counterpart) => {
                let differences = drift(&declared.operations[*counterpart], operation);
                if !differences.is_empty() {
                    add(DeviationKind::Drifted, key, differences);
                }
            }
            None => add(DeviationKind::Shadow, key, Vec::new()),
        }
    }
    for key in &pairs.gone {
        add(DeviationKind::Unseen, key, Vec::new());
    }
    for (key, operation) in &declared.operations {
        if operation.is_deprecated && !pairs.gone.contains(&key) && !pairs.is_hidden(key) {
            add(DeviationKind::Zombie, key, Vec::new());
        }
    }
    found
}

/// The operations of two documents that are the same.
struct Pairs<'i> {
    /// By those of the new one.
    old_of: BTreeMap<&'i Key, &'i Key>,
    /// Those of the old one that nothing in the new one stands for.
    gone: BTreeSet<&'i Key>,
    /// Those of the old one whose paths the new one has only in others of the old one.
    hidden: BTreeSet<&'i Key>,
}

/// Path and method.
type Key = (String, String);

impl<'i> Pairs<'i> {
    fn of(old: &'i Interface, new: &'i Interface) -> Pairs<'i> {
        let (in_old, in_new) = (Lookup::new(old), Lookup::new(new));
        let old_of: BTreeMap<&Key, &Key> =
            new.operations.keys().filter_map(|key| Some((key, in_old.counterpart(key)?))).collect();
        let matched: BTreeSet<&Key> = old_of.values().copied().collect();
        let (mut gone, mut hidden) = (BTreeSet::new(), BTreeSet::new());
        for key in old.operations.keys().filter(|key| !matched.contains(key)) {
            match in_new.counterpart(key) {
                // One that a wider template of the new document takes is not gone.
                Some(other) if old_of.contains_key(other) => hidden.insert(key),
                Some(_) => false,
                None => gone.insert(key),
            };
        }
        Pairs { old_of, gone, hidden }
    }

    fn is_hidden(&self, key: &Key) -> bool {
        self.hidden.contains(key)
    }
}

/// The operations of a document by what makes them the same.
struct Lookup<'i> {
    /// By method and path with nameless placeholders.
    same: BTreeMap<(&'i str, String), &'i Key>,
    /// Those with placeholders, by method.
    templates: BTreeMap<&'i str, Vec<(String, &'i Key)>>,
}

impl<'i> Lookup<'i> {
    fn new(interface: &'i Interface) -> Lookup<'i> {
        let mut lookup = Lookup { same: BTreeMap::new(), templates: BTreeMap::new() };
        for key @ (path, method) in interface.operations.keys() {
            let normal = normal(path);
            if normal.contains("{}") {
                lookup.templates.entry(method).or_default().push((normal.clone(), key));
            }
            lookup.same.entry((method, normal)).or_insert(key);
        }
        lookup
    }

    /// The operation of the same path, else the one whose template takes it.
    fn counterpart(&self, (path, method): &Key) -> Option<&'i Key> {
        let normal = normal(path);
        if let Some(same) = self.same.get(&(method.as_str(), normal.clone())) {
            return Some(same);
        }
        let mut templates = self.templates.get(method.as_str()).into_iter().flatten();
        templates.find(|(template, _)| takes(template, &normal)).map(|(_, key)| *key)
    }
}

fn normal(path: &str) -> String {
    let part = |part: &str| match (part.find('{'), part.rfind('}')) {
        (Some(open), Some(close)) if open < close => format!("{}{{}}{}", &part[..open], &part[close + 1..]),
        _ => part.to_ascii_lowercase(),
    };
    path.trim_end_matches('/').split('/').map(part).collect::<Vec<_>>().join("/")
}

/// True if every part of a template is that of the path, or a placeholder. Both are [`normal`].
fn takes(template: &str, path: &str) -> bool {
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

/// Observations at an endpoint that its declaration does not allow.
fn drift(declared: &Operation, seen: &Operation) -> Vec<Difference> {
    let looked_at = seen.looked_at.unwrap_or(LookedAt { requests: 0, bodies: 0 });
    let answered =
        |name: &str| if name.starts_with("query:") { looked_at.requests } else { looked_at.bodies };
    let mut found = Vec::new();
    let mut add = |what: &str, old: Option<String>, new: Option<String>| {
        found.push(Difference { what: what.to_owned(), old, new });
    };
    let names: BTreeSet<&String> = declared.parameters.keys().chain(seen.parameters.keys()).collect();
    for name in names {
        let (own, other) = (declared.parameters.get(name), seen.parameters.get(name));
        let is_wrong = match (own, other) {
            (Some(own), Some(other)) => {
                let is_left_out =
                    own.is_required && !other.is_required && answered(name) >= REQUIRED_REQUESTS_MIN;
                is_left_out || !has_common_type(own, other)
            }
            (Some(own), None) => own.is_required && answered(name) > 0,
            (None, _) => !declared.open.iter().any(|open| name.starts_with(open.as_str())),
        };
        if is_wrong {
            add(name, own.map(Declared::to_string), other.map(Declared::to_string));
        }
    }
    for kind in &seen.bodies {
        let family = kind.split('/').next().unwrap_or_default();
        let mut allowed = once(kind.clone()).chain([format!("{family}/*"), "*/*".to_owned()]);
        if !allowed.any(|kind| declared.bodies.contains(&kind)) {
            add("body", None, Some(kind.clone()));
        }
    }
    found
}

/// True if nothing differs that matters: [`has_common_type`], and both are required, or none is.
fn is_same(old: &Declared, new: &Declared) -> bool {
    has_common_type(old, new) && old.is_required == new.is_required
}

/// True if the types have one in common, or nothing is said of them. An integer is a number.
fn has_common_type(old: &Declared, new: &Declared) -> bool {
    let wide = |types: &BTreeSet<String>| {
        let mut wide = types.clone();
        if types.contains("integer") {
            wide.insert("number".to_owned());
        }
        wide
    };
    old.types.is_empty() || new.types.is_empty() || !wide(&old.types).is_disjoint(&wide(&new.types))
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
    let count = |name: &str| operation.pointer(&format!("/x-seen/{name}")).and_then(Value::as_u64);
    let looked_at = count("looked_at").zip(count("bodies"));
    let mut read = Operation {
        is_deprecated: operation.get("deprecated") == Some(&Value::Bool(true)),
        looked_at: looked_at.map(|(requests, bodies)| LookedAt { requests, bodies }),
        ..Operation::default()
    };
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
            if declared.types.contains("object") {
                // Its members come as parameters: `name[member]`, or by their own names.
                let is_nested = text("style") == Some("deepObject");
                read.open.insert(if is_nested { format!("query:{name}") } else { "query:".to_owned() });
                continue;
            }
            read.parameters.insert(format!("query:{name}"), declared);
        }
    }
    let body = operation.get("requestBody").map(|body| followed(document, body));
    let content = body.and_then(|body| body.get("content")).and_then(Value::as_object);
    for (kind, content) in content.into_iter().flatten() {
        read.bodies.insert(kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase());
        let mut members = Members { left: MEMBERS_MAX, ..Members::default() };
        match content.get("schema") {
            Some(schema) => {
                let spot = Spot { name: String::new(), is_required: true, depth: DEPTH_MAX };
                flatten(document, schema, spot, &mut members);
            }
            None => {
                members.open.insert(String::new());
            }
        }
        let places: &[&str] = match () {
            () if kind.contains("json") => &["json"],
            () if kind.contains('*') => &["json", "form"],
            () => &["form"],
        };
        for place in places {
            let named = |name: &String| format!("{place}:{name}");
            let found = members.found.iter();
            read.parameters.extend(found.map(|(name, declared)| (named(name), declared.clone())));
            read.open.extend(members.open.iter().map(named));
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

/// Position of a schema in a body.
struct Spot {
    name: String,
    is_required: bool,
    depth: usize,
}

/// The members of a body.
#[derive(Default)]
struct Members {
    /// Number of schemas that may still be read.
    left: usize,
    /// The scalar values, by their paths.
    found: BTreeMap<String, Declared>,
    /// The paths below which members may have any name, or are not known.
    open: BTreeSet<String>,
}

/// The scalar values of a schema, by their paths.
fn flatten(document: &Value, schema: &Value, spot: Spot, members: &mut Members) {
    let schema = followed(document, schema);
    if spot.depth == 0 || members.left == 0 {
        members.open.insert(spot.name);
        return;
    }
    members.left -= 1;
    let below = |name: String, is_required: bool| Spot { name, is_required, depth: spot.depth - 1 };
    let mut has_parts = false;
    for key in ["anyOf", "oneOf", "allOf"] {
        for part in schema.get(key).and_then(Value::as_array).into_iter().flatten() {
            has_parts = true;
            flatten(document, part, below(spot.name.clone(), spot.is_required), members);
        }
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    if let Some(properties) = properties {
        let required = schema.get("required").and_then(Value::as_array);
        for (name, member) in properties {
            let is_named =
                required.is_some_and(|names| names.iter().any(|own| own.as_str() == Some(name.as_str())));
            let path = if spot.name.is_empty() { name.clone() } else { format!("{}.{name}", spot.name) };
            flatten(document, member, below(path, spot.is_required && is_named), members);
        }
    }
    let items = schema.get("items");
    if let Some(items) = items {
        flatten(document, items, below(format!("{}[]", spot.name), spot.is_required), members);
    }
    let mut own = BTreeSet::new();
    types(document, schema, &mut own, 0);
    let may_have_members = own.is_empty() || own.contains("object") || own.contains("array");
    own.retain(|kind| kind != "object" && kind != "array" && kind != "null");
    let says_nothing = may_have_members && !has_parts && properties.is_none() && items.is_none();
    let has_more = ["additionalProperties", "patternProperties"]
        .iter()
        .any(|key| schema.get(*key).is_some_and(|value| *value != Value::Bool(false)));
    if says_nothing || has_more {
        members.open.insert(spot.name.clone());
    }
    if !own.is_empty() && !spot.name.is_empty() {
        let declared = members.found.entry(spot.name).or_default();
        declared.types.extend(own);
        declared.is_required |= spot.is_required;
    }
}
