//! The inventory as an OpenAPI document that a person can read.

use std::collections::{BTreeMap, BTreeSet};

use portcullis_event::Timestamp;
use portcullis_learn::ValueType;
use portcullis_types::reason_phrase;
use serde_json::{Map, Value, json};

use crate::endpoint::{Authentication, Endpoint, Parameter, ParameterPlace};
use crate::inventory::Inventory;
use crate::segment::{is_placeholder, parts};

/// The methods that OpenAPI 3.1 knows; others are listed in an extension.
const METHODS: [&str; 5] = ["GET", "POST", "PUT", "PATCH", "DELETE"];

/// The OpenAPI 3.1 document of a site's inventory. What was seen is in extensions (`x-seen`), so that nothing
/// in a schema forbids a value only because nobody has sent it yet.
pub fn openapi(inventory: &Inventory, site: &str) -> Value {
    // Templates that differ only in the names of their parameters are one path to OpenAPI.
    let mut paths: BTreeMap<String, Vec<(String, &str, &Endpoint)>> = BTreeMap::new();
    for found in inventory.endpoints() {
        let same = found.path.split('/').map(|part| match is_placeholder(part) {
            true => format!("{{}}{}", parts(part).1),
            false => part.to_owned(),
        });
        let same: Vec<String> = same.collect();
        paths.entry(same.join("/")).or_default().push((found.path, found.method, found.endpoint));
    }
    let mut schemes = BTreeSet::new();
    let mut items = Map::new();
    for found in paths.into_values() {
        let (path, parameters) = template(found.iter().map(|(path, ..)| &**path));
        let mut endpoints: BTreeMap<&str, Endpoint> = BTreeMap::new();
        for (_, method, endpoint) in found {
            match endpoints.get_mut(method) {
                Some(known) => known.merge(endpoint),
                None => {
                    endpoints.insert(method, endpoint.clone());
                }
            }
        }
        let mut item = Map::new();
        if !parameters.is_empty() {
            item.insert("parameters".to_owned(), parameters.into());
        }
        let mut others = Map::new();
        for (method, endpoint) in &endpoints {
            let operation = operation(endpoint);
            schemes.extend(endpoint.authentication.keys().copied());
            match METHODS.contains(method) {
                true => item.insert(method.to_ascii_lowercase(), operation),
                false => others.insert((*method).to_owned(), operation),
            };
        }
        if !others.is_empty() {
            item.insert("x-other-methods".to_owned(), others.into());
        }
        items.insert(path, item.into());
    }
    let schemes: Map<String, Value> =
        schemes.into_iter().filter_map(|kind| Some((kind.name().to_owned(), scheme(kind)?))).collect();
    let mut document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": site,
            "version": "discovered",
            "description": "Found by Portcullis in the requests that the site has answered. `x-seen` tells what was \
                seen; schemas name types, and no limits that nobody knows.",
        },
        "paths": items,
    });
    if !schemes.is_empty() {
        document["components"] = json!({ "securitySchemes": schemes });
    }
    document
}

/// One path for templates of the same hierarchy, and its parameters.
fn template<'p>(paths: impl Iterator<Item = &'p str>) -> (String, Vec<Value>) {
    let mut places: Vec<BTreeSet<&str>> = Vec::new();
    for path in paths {
        for (at, part) in path.split('/').skip(1).enumerate() {
            match places.get_mut(at) {
                Some(place) => {
                    place.insert(part);
                }
                None => places.push(BTreeSet::from([part])),
            }
        }
    }
    let mut path = String::new();
    let mut parameters = Vec::new();
    let mut names: BTreeMap<String, u32> = BTreeMap::new();
    for place in places {
        path.push('/');
        let first = place.first().copied().unwrap_or_default();
        if !is_placeholder(first) {
            path.push_str(first);
            continue;
        }
        let (kind, behind) = parts(first);
        let kind = if place.len() == 1 { kind } else { "value" };
        let number = names.entry(kind.to_owned()).or_default();
        *number += 1;
        let name = if *number == 1 { kind.to_owned() } else { format!("{kind}{number}") };
        path.push_str(&format!("{{{name}}}{behind}"));
        let schema = match kind {
            "number" => json!({ "type": "integer" }),
            "uuid" => json!({ "type": "string", "format": "uuid" }),
            "email" => json!({ "type": "string", "format": "email" }),
            _ => json!({ "type": "string" }),
        };
        parameters.push(json!({ "name": name, "in": "path", "required": true, "schema": schema }));
    }
    (path, parameters)
}

fn operation(endpoint: &Endpoint) -> Value {
    let mut operation = Map::new();
    let query = endpoint.parameters().filter(|parameter| parameter.place == ParameterPlace::Query);
    let query: Vec<Value> = query
        .map(|parameter| {
            json!({
                "name": parameter.name, "in": "query", "required": endpoint.is_required(parameter),
                "schema": schema(parameter), "x-seen": seen(parameter),
            })
        })
        .collect();
    if !query.is_empty() {
        operation.insert("parameters".to_owned(), query.into());
    }
    if let Some(body) = body(endpoint) {
        operation.insert("requestBody".to_owned(), body);
    }
    operation.insert("responses".to_owned(), responses(endpoint).into());
    let security: Vec<Value> = endpoint
        .authentication
        .keys()
        .map(|kind| if scheme(*kind).is_some() { json!({ kind.name(): [] }) } else { json!({}) })
        .collect();
    if !security.is_empty() {
        operation.insert("security".to_owned(), security.into());
    }
    let time = |seconds: u64| Timestamp::from_epoch_millis(seconds.saturating_mul(1_000)).rfc3339();
    let sensitive: Map<String, Value> = endpoint
        .sensitive
        .iter()
        .map(|(kind, answers)| (kind.name().to_owned(), (*answers).into()))
        .collect();
    operation.insert(
        "x-seen".to_owned(),
        json!({
            "first": time(endpoint.first_s), "last": time(endpoint.last_s), "requests": endpoint.requests,
            "refused": endpoint.refused, "looked_at": endpoint.detailed, "bodies": endpoint.bodies,
            "networks": endpoint.networks.count(), "days": endpoint.days.count(),
            "p50_ms": endpoint.latency_ms(50), "p95_ms": endpoint.latency_ms(95),
            "answers_inspected": endpoint.answers, "sensitive": sensitive,
        }),
    );
    operation.into()
}

/// The request body by content type, if there is one.
fn body(endpoint: &Endpoint) -> Option<Value> {
    let of = |place| endpoint.parameters().filter(move |parameter| parameter.place == place);
    let (json, form) =
        (object(endpoint, of(ParameterPlace::Json)), object(endpoint, of(ParameterPlace::Form)));
    let mut content = Map::new();
    for kind in endpoint.request_types.keys() {
        let schema = match () {
            () if kind.ends_with("json") => json.clone(),
            () if kind.contains("form") => form.clone(),
            () => None,
        };
        content.insert(kind.clone(), schema.map_or_else(|| json!({}), |schema| json!({ "schema": schema })));
    }
    let has = |part: &str, content: &Map<String, Value>| content.keys().any(|kind| kind.contains(part));
    if let Some(schema) = json.filter(|_| !has("json", &content)) {
        content.insert("application/json".to_owned(), json!({ "schema": schema }));
    }
    if let Some(schema) = form.filter(|_| !has("form", &content)) {
        content.insert("application/x-www-form-urlencoded".to_owned(), json!({ "schema": schema }));
    }
    (!content.is_empty()).then(|| json!({ "content": content }))
}

fn responses(endpoint: &Endpoint) -> Map<String, Value> {
    let mut responses = Map::new();
    for (status, answers) in &endpoint.statuses {
        let mut response = json!({ "description": reason_phrase(*status), "x-seen": { "answers": answers } });
        if (200..300).contains(status) && *status != 204 && !endpoint.response_types.is_empty() {
            let content: Map<String, Value> =
                endpoint.response_types.keys().map(|kind| (kind.clone(), json!({}))).collect();
            response["content"] = content.into();
        }
        responses.insert(status.to_string(), response);
    }
    if responses.is_empty() {
        responses.insert("default".to_owned(), json!({ "description": "not seen" }));
    }
    responses
}

/// The security scheme of a kind of credentials. Names of headers and cookies are not kept.
fn scheme(kind: Authentication) -> Option<Value> {
    Some(match kind {
        Authentication::Bearer => json!({ "type": "http", "scheme": "bearer" }),
        Authentication::Basic => json!({ "type": "http", "scheme": "basic" }),
        Authentication::Other => json!({
            "type": "apiKey", "in": "header", "name": "Authorization",
            "description": "A scheme other than Basic and Bearer.",
        }),
        Authentication::SessionCookie => json!({
            "type": "apiKey", "in": "cookie", "name": "session",
            "description": "A cookie that is called like one of a session; its name is not kept.",
        }),
        Authentication::ApiKey => json!({
            "type": "apiKey", "in": "header", "name": "X-API-Key",
            "description": "A header that is called like one of API keys; its name is not kept.",
        }),
        Authentication::ClientCertificate => json!({ "type": "mutualTLS" }),
        Authentication::None => return None,
    })
}

/// The schema of one parameter.
fn schema(parameter: &Parameter) -> Value {
    use ValueType::{Boolean, Decimal, Email, OtherUrl, OwnUrl, Uuid, Whole};
    let types: Vec<ValueType> = parameter.types.keys().copied().collect();
    let all = |kinds: &[ValueType]| !types.is_empty() && types.iter().all(|kind| kinds.contains(kind));
    // In JSON `5` and `"5"` look the same here.
    let of = |name: &str| match parameter.place {
        ParameterPlace::Json => json!({ "type": [name, "string"] }),
        ParameterPlace::Query | ParameterPlace::Form => json!({ "type": name }),
    };
    match () {
        () if types.is_empty() => json!({}),
        () if all(&[Whole]) => of("integer"),
        () if all(&[Whole, Decimal]) => of("number"),
        () if all(&[Boolean]) => of("boolean"),
        () if all(&[Uuid]) => json!({ "type": "string", "format": "uuid" }),
        () if all(&[Email]) => json!({ "type": "string", "format": "email" }),
        () if all(&[OwnUrl, OtherUrl]) => json!({ "type": "string", "format": "uri" }),
        () => json!({ "type": "string" }),
    }
}

/// Observations of a parameter.
fn seen(parameter: &Parameter) -> Value {
    let types: Map<String, Value> =
        parameter.types.iter().map(|(kind, values)| (kind.name().to_owned(), (*values).into())).collect();
    let mut seen = json!({
        "requests": parameter.requests, "types": types,
        "bytes": [parameter.bytes.0, parameter.bytes.1],
    });
    if let Some((least, most)) = parameter.numbers {
        seen["numbers"] = json!([least, most]);
    }
    seen
}

/// An object of parameters whose names are paths: `a.b`, `items[].id`.
fn object<'p>(endpoint: &Endpoint, parameters: impl Iterator<Item = &'p Parameter>) -> Option<Value> {
    let mut root = Object::default();
    for parameter in parameters {
        let mut leaf = schema(parameter);
        leaf["x-seen"] = seen(parameter);
        let is_json = parameter.place == ParameterPlace::Json;
        root.insert(steps(&parameter.name, is_json), leaf, endpoint.is_required(parameter));
    }
    (!root.is_empty()).then(|| root.into_schema())
}

/// A step into an object, or into the elements of a list.
enum Step<'n> {
    Member(&'n str),
    Elements,
}

fn steps(name: &str, is_json: bool) -> Vec<Step<'_>> {
    if !is_json {
        return vec![Step::Member(name)];
    }
    let mut steps = Vec::new();
    for component in name.split('.') {
        let member = component.trim_end_matches("[]");
        if !member.is_empty() {
            steps.push(Step::Member(member));
        }
        steps.extend((0..(component.len() - member.len()) / 2).map(|_| Step::Elements));
    }
    steps
}

/// A schema while it is put together. Its depth is that of a name, of 128 bytes at most.
#[derive(Default)]
struct Object<'n> {
    members: BTreeMap<&'n str, Object<'n>>,
    elements: Option<Box<Object<'n>>>,
    leaf: Option<Value>,
    is_required: bool,
}

impl<'n> Object<'n> {
    fn insert(&mut self, steps: Vec<Step<'n>>, leaf: Value, is_required: bool) {
        let mut object = self;
        for step in steps {
            object.is_required |= is_required;
            object = match step {
                Step::Member(name) => object.members.entry(name).or_default(),
                Step::Elements => object.elements.get_or_insert_default(),
            };
        }
        object.is_required |= is_required;
        object.leaf = Some(leaf);
    }

    fn is_empty(&self) -> bool {
        self.members.is_empty() && self.elements.is_none()
    }

    fn into_schema(self) -> Value {
        let mut any = Vec::new();
        if !self.members.is_empty() {
            let required: Vec<&str> =
                self.members.iter().filter(|(_, member)| member.is_required).map(|(name, _)| *name).collect();
            let mut schema = json!({ "type": "object" });
            if !required.is_empty() {
                schema["required"] = json!(required);
            }
            let members =
                self.members.into_iter().map(|(name, member)| (name.to_owned(), member.into_schema()));
            schema["properties"] = Value::Object(members.collect());
            any.push(schema);
        }
        if let Some(elements) = self.elements {
            any.push(json!({ "type": "array", "items": elements.into_schema() }));
        }
        any.extend(self.leaf);
        match any.len() {
            1 => any.remove(0),
            _ => json!({ "anyOf": any }),
        }
    }
}
