//! OpenAPI 3.0, 3.1 and 3.2 documents to plans.

mod parameters;

use std::collections::{BTreeSet, HashSet};

use portcullis_http::body::content_type::Processor;
use portcullis_types::Place;
use serde_json::Value;

use crate::api::{
    Answer, Api, Body, Credential, Fields, Media, MediaKind, Operation, Settings, Status, Template,
};
use crate::document;
use crate::field::{self, Field};
use crate::graphql::{self, Graphql};
use crate::limits::{OPERATIONS_MAX, PARAMETERS_MAX, TEMPLATES_MAX};
use crate::parameter::{Parameter, Reading};
use crate::path::{Paths, Refused};
use crate::problem::{Problem, child};
use crate::rpc;
use crate::schema::{Schemas, local};

/// Methods that a path item may have.
const METHODS: [&str; 9] = ["get", "put", "post", "delete", "options", "head", "patch", "trace", "query"];
/// References that follow each other.
const REFERENCES_MAX: usize = 32;
/// Members of an `enum` that are compared as texts.
const WORDS_MAX: usize = 64;

/// Compiles the text of a document. All mistakes come at once.
pub(crate) fn compile(text: &str, settings: &Settings) -> Result<Api, Vec<Problem>> {
    let limits = settings.graphql.unwrap_or_default();
    if graphql::is_sdl(text) {
        return graphql::compile(text, limits).map(of_graphql);
    }
    let document = document::read(text).map_err(|problem| vec![problem])?;
    if let Some(introspected) = graphql::introspected(&document, limits) {
        return introspected.map(of_graphql).map_err(|mut problems| {
            document::locate(text, &mut problems);
            problems
        });
    }
    let (mut api, mut errors, mut warnings) = match rpc::is_rpc(&document) {
        true => rpc::compile(&document),
        false => {
            let mut compiler = Compiler::new(&document, settings.answers);
            compiler.document();
            let Compiler { api, schemas, of_answers, mut errors, mut warnings, .. } = compiler;
            for schemas in std::iter::once(schemas).chain(of_answers) {
                errors.extend(schemas.errors);
                warnings.extend(schemas.warnings);
            }
            let mut known = HashSet::new();
            for list in [&mut errors, &mut warnings] {
                list.retain(|problem| known.insert((problem.pointer.clone(), problem.message.clone())));
            }
            (api, errors, warnings)
        }
    };
    if !errors.is_empty() {
        document::locate(text, &mut errors);
        return Err(errors);
    }
    document::locate(text, &mut warnings);
    api.warnings = warnings;
    Ok(api)
}

fn of_graphql(graphql: Graphql) -> Api {
    Api {
        paths: Paths::new(),
        templates: Vec::new(),
        operations: Vec::new(),
        rpc: None,
        graphql: Some(graphql),
        grpc: None,
        warnings: Vec::new(),
    }
}

struct Compiler<'d> {
    root: &'d Value,
    api: Api,
    schemas: Schemas<'d>,
    /// The same for answers, if these are compared.
    of_answers: Option<Schemas<'d>>,
    errors: Vec<Problem>,
    warnings: Vec<Problem>,
}

impl<'d> Compiler<'d> {
    fn new(root: &'d Value, answers: bool) -> Compiler<'d> {
        let version = root.get("openapi").and_then(Value::as_str).unwrap_or_default();
        let api = Api {
            paths: Paths::new(),
            templates: Vec::new(),
            operations: Vec::new(),
            rpc: None,
            graphql: None,
            grpc: None,
            warnings: Vec::new(),
        };
        let is_old = version.starts_with("3.0");
        let of_answers = answers.then(|| Schemas::new(root, is_old).of_answers());
        let schemas = Schemas::new(root, is_old);
        Compiler { root, api, schemas, of_answers, errors: Vec::new(), warnings: Vec::new() }
    }

    fn wrong(&mut self, pointer: &str, message: impl Into<String>) {
        self.errors.push(Problem::new(pointer, message));
    }

    fn left_out(&mut self, pointer: &str, message: impl Into<String>) {
        self.warnings.push(Problem::new(pointer, message));
    }

    fn document(&mut self) {
        let root = self.root;
        match root.get("openapi").and_then(Value::as_str) {
            Some(version) if ["3.0", "3.1", "3.2"].iter().any(|known| version.starts_with(known)) => {}
            Some(version) => {
                return self.wrong("/openapi", format!("OpenAPI {version} is not read; 3.0 to 3.2 are"));
            }
            None if root.get("swagger").is_some() => {
                return self.wrong("/swagger", "Swagger 2.0 is not read: convert it to OpenAPI 3");
            }
            None => return self.wrong(
                "",
                "this describes no API that is read here: it has neither `openapi` nor `openrpc` nor `tools`, and is no \
                 schema of GraphQL",
            ),
        }
        if let Some(dialect) = root.get("jsonSchemaDialect").and_then(Value::as_str)
            && !dialect.contains("json-schema.org/draft/2020-12")
            && !dialect.contains("spec.openapis.org")
        {
            self.left_out("/jsonSchemaDialect", "schemas are read as JSON Schema 2020-12");
        }
        let bases = Compiler::bases(root);
        let Some(paths) = root.get("paths") else { return };
        let Some(paths) = paths.as_object() else { return self.wrong("/paths", "`paths` is an object") };
        for path in paths.keys().filter(|path| !path.starts_with("x-")) {
            let at = child("/paths", path);
            if !path.starts_with('/') {
                self.wrong(&at, "a path begins with a slash");
                continue;
            }
            self.path_item(path, &at, &bases);
            if self.api.operations.len() > OPERATIONS_MAX {
                return self.wrong(&at, format!("the document has more than {OPERATIONS_MAX} operations"));
            }
            if self.api.templates.len() > TEMPLATES_MAX {
                return self.wrong(&at, format!("the document has more than {TEMPLATES_MAX} paths"));
            }
        }
    }

    /// What stands at `pointer`, references followed.
    fn follow(&mut self, pointer: &str) -> Option<(String, &'d Value)> {
        let mut pointer = pointer.to_owned();
        for _ in 0..REFERENCES_MAX {
            let Some(value) = self.root.pointer(&pointer) else {
                self.wrong(&pointer, "a reference leads to nothing");
                return None;
            };
            match value.get("$ref").and_then(Value::as_str).map(local) {
                Some(Ok(target)) if self.root.pointer(&target).is_none() => {
                    self.wrong(&pointer, format!("`$ref` leads to nothing: {target}"));
                    return None;
                }
                Some(Ok(target)) => pointer = target,
                Some(Err(message)) => {
                    self.wrong(&pointer, message);
                    return None;
                }
                None => return Some((pointer, value)),
            }
        }
        self.wrong(&pointer, "references lead in a circle");
        None
    }

    /// The paths of the servers of a document, path or operation, without a slash at their end.
    fn bases(holder: &Value) -> BTreeSet<String> {
        let servers = holder.get("servers").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let mut bases = BTreeSet::new();
        for server in servers {
            let Some(url) = server.get("url").and_then(Value::as_str) else { continue };
            let variables = server.get("variables").and_then(Value::as_object);
            let mut urls = vec![url.to_owned()];
            for (name, variable) in variables.into_iter().flatten() {
                let values =
                    variable.get("enum").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
                let values: BTreeSet<&str> =
                    values.iter().chain(variable.get("default")).filter_map(Value::as_str).collect();
                let name = format!("{{{name}}}");
                if urls.iter().any(|url| path_of(url).contains(&name)) {
                    let each = |url: &String| {
                        values.iter().map(|value| url.replace(&name, value)).collect::<Vec<_>>()
                    };
                    urls = urls.iter().flat_map(each).take(64).collect();
                }
            }
            for url in urls {
                // A variable that may be anything is a parameter of the path.
                bases.insert(path_of(&url).trim_end_matches('/').to_owned());
            }
        }
        if bases.is_empty() {
            bases.insert(String::new());
        }
        bases
    }

    fn path_item(&mut self, path: &str, at: &str, bases: &BTreeSet<String>) {
        let Some((at_item, item)) = self.follow(at) else { return };
        let own = item.get("servers").map(|_| Compiler::bases(item));
        let bases = own.as_ref().unwrap_or(bases);
        let shared = self.pointers_of_parameters(item, &at_item);
        let mut methods: Vec<(String, String, BTreeSet<String>)> = METHODS
            .iter()
            .filter(|method| item.get(**method).is_some())
            .map(|method| (method.to_ascii_uppercase(), child(&at_item, method), bases.clone()))
            .collect();
        let others = item.get("additionalOperations").and_then(Value::as_object);
        for method in others.into_iter().flat_map(|others| others.keys()) {
            let at = child(&child(&at_item, "additionalOperations"), method);
            methods.push((method.clone(), at, bases.clone()));
        }
        for (_, at, bases) in &mut methods {
            let Some(operation) = self.root.pointer(at) else { continue };
            if operation.get("servers").is_some() {
                *bases = Compiler::bases(operation);
            }
        }
        let names = template_names(path);
        let operations: Vec<(String, usize, BTreeSet<String>)> = methods
            .into_iter()
            .map(|(method, at, bases)| {
                let number = self.operation(&at, &shared, &names);
                (method, number, bases)
            })
            .collect();
        let all: BTreeSet<&String> = operations.iter().flat_map(|(_, _, bases)| bases).chain(bases).collect();
        for base in all {
            let number = self.api.templates.len() as u32;
            let of_base = operations.iter().filter(|(_, _, bases)| bases.contains(base));
            let methods = of_base.map(|(method, number, _)| (method.clone(), *number)).collect();
            match self.api.paths.insert(&format!("{base}{path}"), number) {
                Ok(names) => self.api.templates.push(Template { pointer: at_item.clone(), names, methods }),
                Err(Refused::Same(known)) => {
                    let known = self.api.templates[known as usize].pointer.clone();
                    self.wrong(at, format!("every path that this one fits is one of {known}, too"));
                }
                Err(Refused::Malformed) => {
                    self.wrong(
                        at,
                        "the braces of the path do not match, or two parameters have nothing between them",
                    );
                }
            }
        }
    }

    fn pointers_of_parameters(&mut self, holder: &Value, at: &str) -> Vec<String> {
        let parameters = holder.get("parameters").and_then(Value::as_array).map_or(0, Vec::len);
        (0..parameters).map(|number| format!("{at}/parameters/{number}")).collect()
    }

    /// Compiles the operation at `at`; its number.
    fn operation(&mut self, at: &str, shared: &[String], names: &[String]) -> usize {
        let Some(operation) = self.root.pointer(at).filter(|operation| operation.is_object()) else {
            self.wrong(at, "an operation is an object");
            return 0;
        };
        let mut parameters: Vec<Parameter> = Vec::new();
        let own = self.pointers_of_parameters(operation, at);
        for pointer in shared.iter().chain(&own) {
            let Some(parameter) = self.parameter(pointer) else { continue };
            // Those of the operation replace those of its path.
            parameters.retain(|known| known.name != parameter.name || known.place != parameter.place);
            parameters.push(parameter);
        }
        if parameters.len() > PARAMETERS_MAX {
            self.wrong(at, format!("the operation has more than {PARAMETERS_MAX} parameters"));
        }
        let (parameters, unknown): (Vec<_>, Vec<_>) = parameters
            .into_iter()
            .partition(|parameter| parameter.place != Place::PathSegment || names.contains(&parameter.name));
        for unknown in unknown {
            self.left_out(&unknown.pointer, format!("the path has no `{{{}}}`", unknown.name));
        }
        let body = match operation.get("requestBody") {
            Some(_) => self.body(&child(at, "requestBody")),
            None => None,
        };
        let security = self.security(operation, at);
        let number = self.api.operations.len();
        let fields =
            self.known_fields(&parameters, operation.get("requestBody").map(|_| child(at, "requestBody")));
        let answers = self.answers(operation, at);
        let pointer = at.to_owned();
        self.api.operations.push(Operation { pointer, parameters, body, security, fields, answers });
        number
    }

    /// The fields of query and body that are known by their types. Two media types that are read alike may
    /// declare the same name differently: then their fields are not known.
    fn known_fields(&self, parameters: &[Parameter], body: Option<String>) -> Vec<Field> {
        let mut fields = Vec::new();
        for parameter in parameters.iter().filter(|parameter| parameter.place == Place::Query) {
            let at = child(&parameter.pointer, "schema");
            let at = match &parameter.reading {
                Reading::One => Some(at),
                Reading::List { separator: None, .. } => {
                    self.schemas.resolve(&at).map(|(pointer, _)| child(&pointer, "items"))
                }
                Reading::List { .. } | Reading::Object { .. } | Reading::Json | Reading::Unread => None,
            };
            let Some(pointer) = at else { continue };
            if let Some(form) = field::form(&self.schemas, &pointer) {
                let name = parameter.name.clone();
                fields.push(Field { place: Place::Query, name, form, pointer });
            }
        }
        let Some((pointer, body)) = body.and_then(|at| self.schemas.resolve(&at)) else { return fields };
        let content = child(&pointer, "content");
        let media = body.get("content").and_then(Value::as_object);
        let names: Vec<(&String, Processor)> = media
            .into_iter()
            .flat_map(|media| media.keys())
            .filter_map(|name| Some((name, Processor::by_media_type(name.as_bytes())?)))
            .collect();
        for is_json in [true, false] {
            let mut of_it = names.iter().filter(|(_, processor)| (*processor == Processor::Json) == is_json);
            if let (Some((name, processor)), None) = (of_it.next(), of_it.next()) {
                let place = match processor {
                    Processor::Json => Place::Json,
                    Processor::Multipart => Place::MultipartField,
                    Processor::UrlEncoded => Place::Form,
                    Processor::Xml => continue,
                };
                let at = child(&child(&content, name), "schema");
                fields.extend(field::of_body(&self.schemas, &at, place));
            }
        }
        fields
    }

    fn body(&mut self, at: &str) -> Option<Body> {
        let (pointer, raw) = self.follow(at)?;
        let required = raw.get("required").and_then(Value::as_bool).unwrap_or(false);
        let content = raw.get("content").and_then(Value::as_object);
        let at_content = child(&pointer, "content");
        let mut media = Vec::new();
        for (name, raw) in content.into_iter().flatten() {
            let at = child(&at_content, name);
            let range = name.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
            let Some((kind, subtype)) = range.split_once('/').map(|(a, b)| (a.to_owned(), b.to_owned()))
            else {
                self.left_out(&at, "this is no media type");
                continue;
            };
            let at_schema = raw.get("schema").map(|_| child(&at, "schema"));
            let (reading, schema) = match (Processor::by_media_type(range.as_bytes()), at_schema) {
                (_, None) => (MediaKind::Unread, None),
                (Some(Processor::Json), Some(at)) => (MediaKind::Json, self.schemas.compile(&at)),
                (Some(Processor::UrlEncoded), Some(at)) => {
                    let schema = self.schemas.compile(&at);
                    (MediaKind::Form(self.fields(&at)), schema)
                }
                (Some(Processor::Multipart), Some(at)) => {
                    let schema = self.schemas.compile(&at);
                    (MediaKind::Multipart(self.fields(&at)), schema)
                }
                (Some(Processor::Xml), Some(at)) => {
                    self.left_out(&at, "bodies of XML are not compared with their schema");
                    (MediaKind::Unread, None)
                }
                (None, Some(at)) if is_range(&range) => (MediaKind::Json, self.schemas.compile(&at)),
                (None, Some(_)) => (MediaKind::Unread, None),
            };
            media.push(Media { kind, subtype, reading, schema });
        }
        Some(Body { pointer, required, media })
    }

    /// The answers of an operation, if they are compared.
    fn answers(&mut self, operation: &Value, at: &str) -> Vec<Answer> {
        let mut answers = Vec::new();
        let Some(mut schemas) = self.of_answers.take() else { return answers };
        let responses = operation.get("responses").and_then(Value::as_object);
        for code in responses.into_iter().flat_map(|responses| responses.keys()) {
            let at = child(&child(at, "responses"), code);
            let digits = code.strip_suffix("XX").or_else(|| code.strip_suffix("xx")).unwrap_or(code);
            let status = match (digits.parse::<u16>(), code.as_str()) {
                (Ok(status @ 100..=599), _) => Status::One(status),
                (Ok(class @ 1..=5), _) if digits.len() < code.len() => Status::Class(class),
                (_, "default") => Status::Any,
                _ if code.starts_with("x-") => continue,
                _ => {
                    self.left_out(&at, "this is no status");
                    continue;
                }
            };
            let Some((pointer, raw)) = self.follow(&at) else { continue };
            let content = raw.get("content").and_then(Value::as_object);
            let mut media = Vec::new();
            for (name, raw) in content.into_iter().flatten() {
                let at = child(&child(&pointer, "content"), name);
                let range = name.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
                let Some((kind, subtype)) = range.split_once('/').map(|(a, b)| (a.to_owned(), b.to_owned()))
                else {
                    self.left_out(&at, "this is no media type");
                    continue;
                };
                let is_json =
                    is_range(&range) || Processor::by_media_type(range.as_bytes()) == Some(Processor::Json);
                let schema = match raw.get("schema") {
                    Some(_) if is_json => schemas.compile(&child(&at, "schema")),
                    _ => None,
                };
                let reading = if schema.is_some() { MediaKind::Json } else { MediaKind::Unread };
                media.push(Media { kind, subtype, reading, schema });
            }
            answers.push(Answer { status, body: Body { pointer, required: false, media } });
        }
        // The most specific ones first.
        answers.sort_by_key(|answer| match answer.status {
            Status::One(_) => 0,
            Status::Class(_) => 1,
            Status::Any => 2,
        });
        self.of_answers = Some(schemas);
        answers
    }

    fn fields(&self, at: &str) -> Fields {
        let members = self.members(at);
        let lists = members.iter().filter(|(_, types)| types.array && !types.string);
        let pointer =
            self.schemas.resolve(at).map(|(pointer, _)| child(&pointer, "properties")).unwrap_or_default();
        let lists =
            lists.map(|(name, _)| (name.clone(), self.types_at(&child(&pointer, name), "items"))).collect();
        Fields { members, lists }
    }

    /// The alternatives of credentials.
    fn security(&mut self, operation: &Value, at: &str) -> Vec<Vec<Credential>> {
        let (holder, at) = match operation.get("security") {
            Some(own) => (Some(own), child(at, "security")),
            None => (self.root.get("security"), "/security".to_owned()),
        };
        let Some(alternatives) = holder.and_then(Value::as_array) else { return Vec::new() };
        let mut out = Vec::new();
        for (number, alternative) in alternatives.iter().enumerate() {
            let names = alternative.as_object().into_iter().flat_map(|each| each.keys());
            let mut all = Vec::new();
            for name in names {
                let pointer = child("/components/securitySchemes", name);
                if self.root.pointer(&pointer).is_none() {
                    self.wrong(&format!("{at}/{number}"), format!("there is no security scheme `{name}`"));
                    continue;
                }
                let Some((_, scheme)) = self.follow(&pointer) else { continue };
                all.push(credential(scheme));
            }
            out.push(all);
        }
        out
    }
}

/// True for ranges of media types that have JSON in them.
fn is_range(range: &str) -> bool {
    matches!(range, "*/*" | "application/*")
}

fn credential(scheme: &Value) -> Credential {
    let text = |name: &str| scheme.get(name).and_then(Value::as_str).unwrap_or_default();
    match (text("type"), text("in")) {
        ("apiKey", "query") => Credential::Query(text("name").to_owned()),
        ("apiKey", "cookie") => Credential::Cookie(text("name").to_owned()),
        ("apiKey", _) => Credential::Header(text("name").to_owned()),
        ("http", _) => Credential::Authorization(text("scheme").to_ascii_lowercase()),
        ("oauth2" | "openIdConnect", _) => Credential::Authorization("bearer".to_owned()),
        _ => Credential::Unseen,
    }
}

/// The path of a server's URL, which may be relative.
fn path_of(url: &str) -> &str {
    let rest = match url.split_once("://") {
        Some((_, rest)) => rest.find('/').map_or("", |at| &rest[at..]),
        None => url.strip_prefix('.').unwrap_or(url),
    };
    rest.split(['?', '#']).next().unwrap_or_default()
}

fn template_names(path: &str) -> Vec<String> {
    path.split('{').skip(1).filter_map(|part| part.split_once('}')).map(|(name, _)| name.to_owned()).collect()
}
