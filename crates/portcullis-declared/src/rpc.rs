//! JSON-RPC: the methods of an OpenRPC document, or the tools of a server of the Model Context Protocol as it
//! lists them (`tools/list`).

use std::collections::BTreeMap;
use std::sync::Arc;

use portcullis_http::body::content_type::{self, Processor};
use portcullis_types::Place;
use serde_json::{Map, Value};

use crate::api::{
    Api, Aspect, Deviation, Kind, NOT_WHOLE, OperationId, Sent, Told, json_name, of_path, shown,
};
use crate::json;
use crate::limits::{OPERATIONS_MAX, PARAMETERS_MAX, RPC_BATCH_MAX};
use crate::path::Paths;
use crate::problem::{Problem, child};
use crate::schema::{Schema, Schemas, Violation, local};

/// What clients of the protocol may ask of a server, by the revisions of it up to 2025-11-25, and what they
/// notify it of.
const MCP_METHODS: [&str; 21] = [
    "completion/complete",
    "initialize",
    "logging/setLevel",
    "notifications/cancelled",
    "notifications/elicitation/complete",
    "notifications/initialized",
    "notifications/progress",
    "notifications/roots/list_changed",
    "notifications/tasks/status",
    "ping",
    "prompts/get",
    "prompts/list",
    "resources/list",
    "resources/read",
    "resources/subscribe",
    "resources/templates/list",
    "resources/unsubscribe",
    "tasks/get",
    "tasks/result",
    "tools/call",
    "tools/list",
];

/// An API of JSON-RPC.
#[derive(Debug)]
pub(crate) struct Rpc {
    /// The HTTP methods of its endpoint.
    pub http: &'static [&'static str],
    methods: BTreeMap<String, Method>,
    /// The tools of a server of the Model Context Protocol, with the schemas of their arguments.
    tools: Option<BTreeMap<String, Option<Arc<Schema>>>>,
    /// Clients answer requests of the server.
    has_answers: bool,
    /// Pointer of the list of methods or tools.
    pointer: &'static str,
}

/// A method; one without parameters declared takes any.
#[derive(Debug, Default)]
struct Method {
    pointer: String,
    parameters: Option<Vec<Parameter>>,
}

#[derive(Debug)]
struct Parameter {
    name: String,
    required: bool,
    pointer: String,
    schema: Option<Arc<Schema>>,
}

/// True if a document is one of these.
pub(crate) fn is_rpc(document: &Value) -> bool {
    document.get("openrpc").is_some() || tools(document).is_some()
}

/// The list of tools and its pointer: of a document with `tools`, or of an answer to `tools/list`.
fn tools(document: &Value) -> Option<(&Value, &'static str)> {
    let of_answer = || document.pointer("/result/tools").map(|tools| (tools, "/result/tools"));
    document
        .get("tools")
        .map(|tools| (tools, "/tools"))
        .or_else(of_answer)
        .filter(|_| document.get("openapi").is_none())
}

/// Compiles such a document.
pub(crate) fn compile(document: &Value) -> (Api, Vec<Problem>, Vec<Problem>) {
    let (mut errors, mut warnings) = (Vec::new(), Vec::new());
    let rpc = match tools(document) {
        Some((tools, pointer)) => of_tools(document, tools, pointer, &mut errors, &mut warnings),
        None => of_openrpc(document, &mut errors, &mut warnings),
    };
    let api = Api {
        paths: Paths::new(),
        templates: Vec::new(),
        operations: Vec::new(),
        rpc: Some(rpc),
        graphql: None,
        grpc: None,
        warnings: Vec::new(),
    };
    (api, errors, warnings)
}

/// The operation of a request to an endpoint of JSON-RPC: only those that post have messages.
pub(crate) fn operation(rpc: &Rpc, method: &[u8], found: &mut Told<'_>) -> Option<OperationId> {
    let is_known = rpc.http.iter().any(|known| known.as_bytes() == method) || method == b"OPTIONS";
    if !is_known {
        let rule = format!("must be {}", rpc.http.join(", "));
        let mut deviation = of_path(Kind::Method, rule, rpc.pointer().to_owned());
        deviation.place = Place::Method;
        found.push(deviation);
    }
    (method == b"POST").then_some(OperationId::first())
}

/// Compares a body. One whose methods cannot be read may ask for any, and is not one of the declared ones.
pub(crate) fn sent<'r>(
    rpc: &Rpc,
    content_types: impl Iterator<Item = &'r [u8]>,
    body: Sent<'_>,
    found: &mut Told<'_>,
) {
    let mut unread = |kind, place, rule: &str| {
        let name = if kind == Kind::ContentType { b"content-type".to_vec() } else { Vec::new() };
        let (rule, pointer) = (rule.to_owned(), rpc.pointer().to_owned());
        found.push(rpc.unnamed(Vec::new(), &format!("no method can be read: {rule}")));
        found.push(Deviation { aspect: Aspect::Body, kind, place, name, rule, pointer });
    };
    let types: Vec<&[u8]> = content_types.take(2).collect();
    let is_json = |value: &&[u8]| Processor::by_media_type(value) == Some(Processor::Json);
    let is_right = types.len() == 1 && types.iter().all(is_json);
    match body {
        Sent::Whole(b"") => found.push(Deviation {
            kind: Kind::Missing,
            place: Place::RawBody,
            ..rpc.wrong(Vec::new(), "is required".to_owned(), rpc.pointer().to_owned())
        }),
        _ if !is_right => unread(Kind::ContentType, Place::Header, "must be application/json"),
        _ if types.iter().any(|value| content_type::is_foreign(value, false)) => {
            unread(Kind::ContentType, Place::Header, "must name no character set but UTF-8");
        }
        Sent::Unseen => {
            found.unchecked(&[Aspect::Body, Aspect::UnknownPath], Place::RawBody, NOT_WHOLE, rpc.pointer());
        }
        Sent::Whole(body) => match json::read(body) {
            Ok(value) => rpc.body(&value, found),
            Err(rule) => unread(Kind::Body, Place::RawBody, &rule),
        },
    }
}

fn of_tools(
    document: &Value,
    list: &Value,
    pointer: &'static str,
    errors: &mut Vec<Problem>,
    warnings: &mut Vec<Problem>,
) -> Rpc {
    let mut tools = BTreeMap::new();
    let items = list.as_array().map(Vec::as_slice).unwrap_or_default();
    if !list.is_array() {
        errors.push(Problem::new(pointer, "`tools` is a list"));
    }
    if items.len() > OPERATIONS_MAX {
        errors.push(Problem::new(pointer, format!("the document has more than {OPERATIONS_MAX} tools")));
    }
    for (number, tool) in items.iter().take(OPERATIONS_MAX).enumerate() {
        let at = child(pointer, &number.to_string());
        let Some(name) = tool.get("name").and_then(Value::as_str) else {
            errors.push(Problem::new(at, "a tool has a `name`"));
            continue;
        };
        // Its references are those of a document of its own.
        let schema = tool.get("inputSchema").and_then(|schema| {
            let mut schemas = Schemas::new(schema, false).below(child(&at, "inputSchema"));
            let compiled = schemas.compile("");
            errors.append(&mut schemas.errors);
            warnings.append(&mut schemas.warnings);
            compiled
        });
        if tools.insert(name.to_owned(), schema).is_some() {
            errors.push(Problem::new(at, format!("the tool `{name}` is there twice")));
        }
    }
    let named = document.get("methods").and_then(Value::as_array);
    let methods: Vec<&str> = match named {
        Some(named) => named.iter().filter_map(Value::as_str).collect(),
        None => MCP_METHODS.to_vec(),
    };
    let methods = methods.into_iter().map(|name| (name.to_owned(), Method::default())).collect();
    Rpc { http: &["POST", "GET", "DELETE"], methods, tools: Some(tools), has_answers: true, pointer }
}

fn of_openrpc(document: &Value, errors: &mut Vec<Problem>, warnings: &mut Vec<Problem>) -> Rpc {
    let mut schemas = Schemas::new(document, false);
    let mut methods = BTreeMap::new();
    let items = document.get("methods").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    if items.is_empty() {
        errors.push(Problem::new("/methods", "the document has no `methods`"));
    }
    if items.len() > OPERATIONS_MAX {
        errors.push(Problem::new("/methods", format!("the document has more than {OPERATIONS_MAX} methods")));
    }
    for number in 0..items.len().min(OPERATIONS_MAX) {
        let at = format!("/methods/{number}");
        let Some((at, method)) = follow(document, &at, errors) else { continue };
        let Some(name) = method.get("name").and_then(Value::as_str) else {
            errors.push(Problem::new(at, "a method has a `name`"));
            continue;
        };
        let count = method.get("params").and_then(Value::as_array).map_or(0, Vec::len);
        if count > PARAMETERS_MAX {
            errors.push(Problem::new(
                at.clone(),
                format!("the method has more than {PARAMETERS_MAX} parameters"),
            ));
        }
        let mut parameters = Vec::new();
        for number in 0..count.min(PARAMETERS_MAX) {
            let Some((at, raw)) = follow(document, &format!("{at}/params/{number}"), errors) else {
                continue;
            };
            let schema = raw.get("schema").and_then(|_| schemas.compile(&child(&at, "schema")));
            let name = raw.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
            let required = raw.get("required") == Some(&Value::Bool(true));
            parameters.push(Parameter { name, required, pointer: at, schema });
        }
        let method = Method { pointer: at.clone(), parameters: Some(parameters) };
        if methods.insert(name.to_owned(), method).is_some() {
            errors.push(Problem::new(at, format!("the method `{name}` is there twice")));
        }
    }
    // Every server that publishes its description answers for it.
    methods.entry("rpc.discover".to_owned()).or_default();
    errors.append(&mut schemas.errors);
    warnings.append(&mut schemas.warnings);
    Rpc { http: &["POST"], methods, tools: None, has_answers: false, pointer: "/methods" }
}

fn follow<'d>(document: &'d Value, pointer: &str, errors: &mut Vec<Problem>) -> Option<(String, &'d Value)> {
    let value = document.pointer(pointer)?;
    let Some(reference) = value.get("$ref").and_then(Value::as_str) else {
        return Some((pointer.to_owned(), value));
    };
    let target = local(reference).and_then(|target| match document.pointer(&target) {
        Some(value) if value.get("$ref").is_none() => Ok((target, value)),
        _ => Err(format!("`$ref` leads to nothing: {reference}")),
    });
    target.map_err(|message| errors.push(Problem::new(pointer, message))).ok()
}

impl Rpc {
    /// The numbers of methods and tools.
    pub fn count(&self) -> usize {
        self.tools.as_ref().map_or(self.methods.len(), BTreeMap::len)
    }

    /// What it counts.
    pub fn of(&self) -> &'static str {
        if self.tools.is_some() { "tool" } else { "method" }
    }

    pub fn pointer(&self) -> &'static str {
        self.pointer
    }

    /// Compares a body.
    pub fn body(&self, body: &Value, found: &mut Told<'_>) {
        match body {
            Value::Array(messages) if messages.is_empty() || messages.len() > RPC_BATCH_MAX => {
                let rule = format!("must have 1 to {RPC_BATCH_MAX} messages, has {}", messages.len());
                if !messages.is_empty() {
                    found.push(self.unnamed(Vec::new(), &format!("no method is read: the body {rule}")));
                }
                found.push(self.wrong(Vec::new(), rule, self.pointer.to_owned()));
            }
            Value::Array(messages) => {
                for (number, message) in messages.iter().enumerate() {
                    self.message(message, &[number.to_string()], found);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
                self.message(body, &[], found);
            }
        }
    }

    fn message(&self, message: &Value, at: &[String], found: &mut Told<'_>) {
        let path = |steps: &[&str]| -> Vec<String> {
            at.iter().cloned().chain(steps.iter().map(|step| (*step).to_owned())).collect()
        };
        let pointer = || self.pointer.to_owned();
        let Some(members) = message.as_object() else {
            return found.push(self.wrong(path(&[]), "must be an object".to_owned(), pointer()));
        };
        // Servers that take other versions read the method all the same.
        if members.get("jsonrpc") != Some(&Value::String("2.0".to_owned())) {
            found.push(self.wrong(path(&["jsonrpc"]), "must be \"2.0\"".to_owned(), pointer()));
        }
        // Readers that ignore the case of names, as those of Go do, take it for the method.
        let is_method = |name: &&String| name.eq_ignore_ascii_case("method") && *name != "method";
        if let Some(name) = members.keys().find(is_method) {
            found.push(self.unnamed(path(&[name]), &format!("`{name}` must be `method`")));
        }
        let Some(name) = members.get("method") else {
            if !self.has_answers || !members.contains_key("result") && !members.contains_key("error") {
                found.push(self.wrong(path(&["method"]), "is required".to_owned(), pointer()));
            }
            return;
        };
        let method = name.as_str().and_then(|name| self.methods.get(name));
        let Some(method) = method else {
            return found.push(self.unnamed(path(&["method"]), "`method` is not declared"));
        };
        let params = members.get("params");
        if let Some(parameters) = &method.parameters {
            self.parameters(parameters, method, params, &path(&["params"]), found);
        }
        if let (Some(tools), Some("tools/call")) = (&self.tools, name.as_str()) {
            let tool = params.and_then(|params| params.get("name")).and_then(Value::as_str);
            let Some(schema) = tool.and_then(|tool| tools.get(tool)) else {
                let rule = format!("must be one of the {} tools that are declared", tools.len());
                return found.push(self.wrong(path(&["params", "name"]), rule, pointer()));
            };
            let none = Value::Object(Map::new());
            let arguments = params.and_then(|params| params.get("arguments")).unwrap_or(&none);
            self.compare(schema.as_ref(), arguments, &path(&["params", "arguments"]), found);
        }
    }

    fn parameters(
        &self,
        declared: &[Parameter],
        method: &Method,
        params: Option<&Value>,
        at: &[String],
        found: &mut Told<'_>,
    ) {
        let step = |step: &str| at.iter().cloned().chain([step.to_owned()]).collect::<Vec<_>>();
        let sent: Vec<(String, &Value, Option<&Parameter>)> = match params {
            None => Vec::new(),
            Some(Value::Array(items)) => {
                let each = items.iter().enumerate();
                each.map(|(number, value)| (number.to_string(), value, declared.get(number))).collect()
            }
            Some(Value::Object(members)) => {
                let by = |name: &String| declared.iter().find(|parameter| parameter.name == *name);
                members.iter().map(|(name, value)| (name.clone(), value, by(name))).collect()
            }
            Some(_) => {
                let rule = "must be a list or an object".to_owned();
                return found.push(self.wrong(at.to_vec(), rule, method.pointer.clone()));
            }
        };
        for (name, value, parameter) in &sent {
            if !found.has_room(Aspect::Body) {
                return;
            }
            match parameter {
                Some(parameter) => self.compare(parameter.schema.as_ref(), value, &step(name), found),
                None => {
                    let pointer = format!("{}/params", method.pointer);
                    found.push(self.wrong(step(name), "is not declared".to_owned(), pointer));
                }
            }
        }
        let is_there = |parameter: &Parameter| {
            sent.iter().any(|(_, _, known)| known.is_some_and(|known| std::ptr::eq(known, parameter)))
        };
        for missing in declared.iter().filter(|parameter| parameter.required && !is_there(parameter)) {
            found.push(self.wrong(step(&missing.name), "is required".to_owned(), missing.pointer.clone()));
        }
    }

    fn compare(&self, schema: Option<&Arc<Schema>>, value: &Value, at: &[String], found: &mut Told<'_>) {
        let Some(schema) = schema else { return };
        for violation in schema.violations(value, found.room(Aspect::Body)) {
            let Violation { path, rule, pointer, is_hidden } = violation;
            let mut deviation = self.wrong(at.iter().cloned().chain(path).collect(), rule, pointer);
            if is_hidden {
                deviation.kind = Kind::ReadOnly;
            }
            found.push(deviation);
        }
    }

    /// A message that asks for nothing that is declared.
    fn unnamed(&self, path: Vec<String>, rule: &str) -> Deviation {
        let deviation = self.wrong(path, String::new(), self.pointer.to_owned());
        Deviation { aspect: Aspect::UnknownPath, kind: Kind::Method, rule: rule.to_owned(), ..deviation }
    }

    fn wrong(&self, path: Vec<String>, rule: String, pointer: String) -> Deviation {
        let name = shown(&path);
        let rule = if name.is_empty() { format!("the body {rule}") } else { format!("`{name}` {rule}") };
        let name = json_name(&path).into_bytes();
        Deviation { aspect: Aspect::Body, kind: Kind::Body, place: Place::Json, name, rule, pointer }
    }
}
