//! GraphQL: a schema in its definition language or as an introspection answers it, and documents beside it.
//!
//! A document is checked for fields, types, arguments and directives that the schema does not have, and for
//! what it costs: levels, fields with those that fragments repeat, aliases. The values of arguments are not
//! compared: the server checks them by the same schema before it answers.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use portcullis_http::body::content_type::{self, Processor};
use portcullis_lex::graphql::{Event, Reader, Sink};
use portcullis_types::Place;
use serde_json::Value;

use crate::api::{Aspect, Deviation, Head, Kind, NOT_WHOLE, OperationId, Sent, Told};
use crate::json;
use crate::limits::{DOCUMENT_BYTES_MAX, GRAPHQL_FIELDS_MAX, GRAPHQL_FRAGMENTS_MAX, GRAPHQL_PARTS_MAX};
use crate::parameter::{decoded, pairs};
use crate::problem::Problem;
use crate::words::shortened;

mod schema;

pub(crate) use schema::{compile, introspected, is_sdl};

/// What documents may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GraphqlLimits {
    /// Selections inside each other.
    pub depth: u32,
    /// Fields, each as often as fragments repeat it.
    pub fields: u64,
    /// Fields with another name, counted so, too.
    pub aliases: u64,
    /// Requests of a batch.
    pub batch: usize,
    /// The schema may be asked for.
    pub introspection: bool,
    /// No documents at all, only names of such that the server knows.
    pub persisted_only: bool,
}

impl Default for GraphqlLimits {
    fn default() -> GraphqlLimits {
        GraphqlLimits {
            depth: 15,
            fields: 1_000,
            aliases: 30,
            batch: 10,
            introspection: false,
            persisted_only: false,
        }
    }
}

/// A schema.
#[derive(Debug, Default)]
pub(crate) struct Graphql {
    types: HashMap<String, Type>,
    /// The types of queries, mutations and subscriptions.
    roots: [Option<String>; 3],
    directives: BTreeSet<String>,
    limits: GraphqlLimits,
}

/// A type, by its fields; scalars, enumerations and unions have none.
#[derive(Debug, Default)]
struct Type {
    fields: BTreeMap<String, Field>,
    /// Values of it are sent, not selected from.
    is_input: bool,
}

#[derive(Debug)]
struct Field {
    arguments: Vec<String>,
    /// The name of its type, without brackets.
    of: String,
}

impl Graphql {
    /// The number of types and of fields that can be asked for.
    pub fn counts(&self) -> (usize, usize) {
        let fields = self.types.values().filter(|each| !each.is_input).map(|each| each.fields.len()).sum();
        (self.types.len(), fields)
    }

    /// Compares the head of a request. Only those that post have a body.
    pub fn head<'r, F>(&self, head: &Head<'r, F>, found: &mut Told<'_>) -> Option<OperationId> {
        let known: [&[u8]; 4] = [b"POST", b"GET", b"HEAD", b"OPTIONS"];
        if !known.contains(&head.method) {
            let rule = "must be POST or GET".to_owned();
            found.push(deviation(Kind::Method, Place::Method, b"", rule, ""));
        }
        let query = head.query.unwrap_or_default();
        if found.has_room(Aspect::Body) || found.has_room(Aspect::UnknownPath) {
            let mut documents = pairs(query).filter(|pair| *decoded(pair.name) == *b"query");
            if let Some(document) = documents.next() {
                let is_read = matches!(head.method, b"GET" | b"HEAD");
                let mut at = Place::Query.of(b"query", found);
                self.document(&decoded(document.value), is_read, &mut at);
                if documents.next().is_some() {
                    at.tell(Kind::Body, "is there more than once".to_owned(), "");
                }
            }
        }
        (head.method == b"POST").then(OperationId::first)
    }

    /// Compares a body.
    pub fn body<'r>(
        &self,
        content_types: impl Iterator<Item = &'r [u8]>,
        body: Sent<'_>,
        found: &mut Told<'_>,
    ) {
        let types: Vec<&[u8]> = content_types.take(2).collect();
        let mut of_type = |rule: &str| {
            found.push(unread(Place::RawBody, b"", rule));
            found.push(deviation(Kind::ContentType, Place::Header, b"content-type", rule.to_owned(), ""));
        };
        let [content_type] = types.as_slice() else {
            return of_type("must be there once, and be application/json or application/graphql");
        };
        let is_document = content_type::media_type(content_type).eq_ignore_ascii_case(b"application/graphql");
        if !is_document && Processor::by_media_type(content_type) != Some(Processor::Json) {
            return of_type("must be application/json or application/graphql");
        }
        if content_type::is_foreign(content_type, false) {
            return of_type("must name no character set but UTF-8");
        }
        let Sent::Whole(body) = body else {
            return found.unchecked(&[Aspect::Body, Aspect::UnknownPath], Place::RawBody, NOT_WHOLE, "");
        };
        if is_document {
            return self.document(body, false, &mut Place::RawBody.of(b"", found));
        }
        match json::read(body) {
            Ok(value) => self.value(&value, found),
            Err(rule) => {
                found.push(unread(Place::RawBody, b"", &rule));
                found.push(deviation(Kind::Body, Place::RawBody, b"", rule, ""));
            }
        }
    }

    fn value(&self, body: &Value, found: &mut Told<'_>) {
        match body {
            Value::Array(requests) if requests.len() > self.limits.batch => {
                let (most, count) = (self.limits.batch, requests.len());
                let rule = format!("must have at most {most} requests, has {count}");
                found.push(unread(Place::Json, b"", &rule));
                found.push(deviation(Kind::Limit, Place::Json, b"", rule, ""));
            }
            Value::Array(requests) => {
                for request in requests {
                    self.request(request, b"array.array.query", found);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
                self.request(body, b"query", found);
            }
        }
    }

    fn request(&self, request: &Value, name: &[u8], found: &mut Told<'_>) {
        let mut at = Place::Json.of(name, found);
        match request.get("query") {
            Some(Value::String(document)) => self.document(document.as_bytes(), false, &mut at),
            None | Some(Value::Null) if is_persisted(request) => {}
            None | Some(Value::Null) => at.tell(Kind::Missing, "is required".to_owned(), ""),
            Some(_) => at.unread(Kind::Body, "must be a text".to_owned()),
        }
    }

    /// Compares a document. `is_read`: the request must not change anything.
    fn document(&self, text: &[u8], is_read: bool, at: &mut At<'_, '_>) {
        if self.limits.persisted_only {
            let rule = "must not be there: only persisted queries are accepted".to_owned();
            return at.unread(Kind::Limit, rule);
        }
        if text.len() > DOCUMENT_BYTES_MAX {
            return at.unread(Kind::Limit, "has too many bytes".to_owned());
        }
        let parts = match Reader::new(text, Parts::default()).document() {
            Ok(parts) => parts,
            Err(offset) => {
                let (line, column) = place_of(text, offset);
                let rule = format!("is no document of GraphQL from line {line}, column {column} on");
                return at.unread(Kind::Body, rule);
            }
        };
        if parts.is_cut {
            let rule = format!("must have at most {GRAPHQL_PARTS_MAX} parts");
            return at.unread(Kind::Limit, rule);
        }
        let walk = Walk::new(self, is_read, at);
        walk.document(&parts.list);
    }
}

/// The name of a document that the server knows, in the forms in which clients send it.
fn is_persisted(request: &Value) -> bool {
    request.pointer("/extensions/persistedQuery").is_some_and(Value::is_object)
        || ["id", "documentId", "doc_id", "queryId"]
            .iter()
            .any(|name| request.get(name).is_some_and(Value::is_string))
}

/// What is not read may ask for any operation, and is not one of the declared ones.
fn unread(place: Place, name: &[u8], rule: &str) -> Deviation {
    deviation(Kind::Method, place, name, format!("no operation can be read: {rule}"), "")
}

fn deviation(kind: Kind, place: Place, name: &[u8], rule: String, pointer: &str) -> Deviation {
    let aspect = if kind == Kind::Method { Aspect::UnknownPath } else { Aspect::Body };
    Deviation { aspect, kind, place, name: name.to_vec(), rule, pointer: pointer.to_owned() }
}

/// Line and column of an offset, from 1 on.
fn place_of(text: &[u8], offset: usize) -> (usize, usize) {
    let before = &text[..offset.min(text.len())];
    let line = before.iter().filter(|b| **b == b'\n').count() + 1;
    let column = before.iter().rev().take_while(|b| **b != b'\n').count() + 1;
    (line, column)
}

/// Where a document stands, and what is reported of it.
struct At<'a, 'f> {
    place: Place,
    name: Vec<u8>,
    found: &'a mut Told<'f>,
}

trait Stands {
    fn of<'a, 'f>(self, name: &[u8], found: &'a mut Told<'f>) -> At<'a, 'f>;
}

impl Stands for Place {
    fn of<'a, 'f>(self, name: &[u8], found: &'a mut Told<'f>) -> At<'a, 'f> {
        At { place: self, name: name.to_vec(), found }
    }
}

impl At<'_, '_> {
    fn tell(&mut self, kind: Kind, rule: String, pointer: &str) {
        let what = if self.name.is_empty() { "the document" } else { "`query`" };
        self.found.push(deviation(kind, self.place, &self.name, format!("{what} {rule}"), pointer));
    }

    /// Tells of a document whose operations are not read.
    fn unread(&mut self, kind: Kind, rule: String) {
        let what = if self.name.is_empty() { "the document" } else { "`query`" };
        self.found.push(unread(self.place, &self.name, &format!("{what} {rule}")));
        self.tell(kind, rule, "");
    }

    /// The same of a part of the document.
    fn of_part(&mut self, kind: Kind, rule: String, pointer: &str) {
        self.found.push(deviation(kind, self.place, &self.name, rule, pointer));
    }
}

#[derive(Default)]
struct Parts<'t> {
    list: Vec<(Event, &'t [u8])>,
    is_cut: bool,
}

impl<'t> Sink<'t> for Parts<'t> {
    fn event(&mut self, event: Event, name: &'t [u8]) {
        match self.list.len() < GRAPHQL_PARTS_MAX {
            true => self.list.push((event, name)),
            false => self.is_cut = true,
        }
    }
}

/// What an operation or a fragment asks for.
#[derive(Debug, Default)]
struct Definition<'t> {
    /// The name of a fragment.
    fragment: Option<&'t str>,
    cost: Cost,
    /// The fragments in it, and the levels above each.
    spreads: Vec<(&'t str, u32)>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    depth: u32,
    fields: u64,
    aliases: u64,
}

/// What a selection, an argument or a directive belongs to.
#[derive(Clone, Copy)]
enum Holder<'g> {
    Field(&'g Field),
    Other,
}

struct Walk<'g, 'w, 'a, 'f> {
    graphql: &'g Graphql,
    is_read: bool,
    at: &'w mut At<'a, 'f>,
    /// What has been reported already.
    told: BTreeSet<String>,
}

impl<'g, 'w, 'a, 'f> Walk<'g, 'w, 'a, 'f> {
    fn new(graphql: &'g Graphql, is_read: bool, at: &'w mut At<'a, 'f>) -> Walk<'g, 'w, 'a, 'f> {
        Walk { graphql, is_read, at, told: BTreeSet::new() }
    }

    fn document(mut self, parts: &[(Event, &[u8])]) {
        let graphql = self.graphql;
        let mut definitions: Vec<Definition<'_>> = Vec::new();
        // The types of the open selections, those that come next, and their names.
        let mut open: Vec<Option<(&str, &Type)>> = Vec::new();
        let mut next: Option<(&str, &Type)> = None;
        let mut holder = Holder::Other;
        for (event, name) in parts {
            let name = std::str::from_utf8(name).unwrap_or_default();
            let parent = open.last().copied().flatten();
            let depth = open.len() as u32;
            match event {
                Event::Query | Event::Mutation | Event::Subscription => {
                    definitions.push(Definition::default());
                    next = self.root(*event);
                    holder = Holder::Other;
                }
                Event::Fragment => {
                    definitions.push(Definition { fragment: Some(name), ..Definition::default() });
                }
                Event::On | Event::VariableType => {
                    let known = graphql.types.get_key_value(name).map(|(name, each)| (name.as_str(), each));
                    if known.is_none() {
                        self.unknown(&format!("the type `{}`", shortened(name)), "");
                    }
                    if *event == Event::On {
                        next = known;
                        holder = Holder::Other;
                    }
                }
                Event::Alias => {
                    if let Some(own) = definitions.last_mut() {
                        own.cost.aliases += 1;
                    }
                }
                Event::Field => {
                    if let Some(own) = definitions.last_mut() {
                        own.cost.fields += 1;
                        own.cost.depth = own.cost.depth.max(depth);
                    }
                    (next, holder) = self.field(parent, name);
                }
                Event::Argument => {
                    if let Holder::Field(field) = holder
                        && !field.arguments.iter().any(|known| known == name)
                    {
                        self.unknown(&format!("the argument `{}`", shortened(name)), "");
                    }
                }
                Event::Directive => {
                    if !graphql.directives.contains(name) {
                        self.unknown(&format!("the directive `@{}`", shortened(name)), "");
                    }
                    holder = Holder::Other;
                }
                Event::Spread => {
                    if let Some(own) = definitions.last_mut() {
                        own.spreads.push((name, depth.saturating_sub(1)));
                    }
                    holder = Holder::Other;
                }
                Event::Inline => {
                    next = match name {
                        "" => parent,
                        name => {
                            let known = graphql.types.get_key_value(name);
                            if known.is_none() {
                                self.unknown(&format!("the type `{}`", shortened(name)), "");
                            }
                            known.map(|(name, each)| (name.as_str(), each))
                        }
                    };
                    holder = Holder::Other;
                }
                Event::Open => open.push(next.take()),
                Event::Close => {
                    open.pop();
                }
            }
        }
        self.costs(&definitions);
    }

    /// The type of an operation.
    fn root(&mut self, event: Event) -> Option<(&'g str, &'g Type)> {
        let (number, what) = match event {
            Event::Mutation => (1, "mutations"),
            Event::Subscription => (2, "subscriptions"),
            Event::Query
            | Event::VariableType
            | Event::Fragment
            | Event::On
            | Event::Alias
            | Event::Field
            | Event::Argument
            | Event::Directive
            | Event::Spread
            | Event::Inline
            | Event::Open
            | Event::Close => (0, "queries"),
        };
        if self.is_read && event != Event::Query {
            let rule = format!("must be sent by POST: it has {what}");
            self.at.tell(Kind::Method, rule, "");
        }
        let graphql = self.graphql;
        let root = graphql.roots[number].as_ref();
        if root.is_none() {
            self.at.tell(Kind::Method, format!("has {what}, and the schema has none"), "");
        }
        let (name, known) = graphql.types.get_key_value(root?)?;
        Some((name, known))
    }

    fn field(
        &mut self,
        parent: Option<(&'g str, &'g Type)>,
        name: &str,
    ) -> (Option<(&'g str, &'g Type)>, Holder<'g>) {
        let graphql = self.graphql;
        if matches!(name, "__schema" | "__type") {
            if !graphql.limits.introspection {
                let rule = "must not ask for the schema".to_owned();
                if self.told.insert(rule.clone()) {
                    self.at.tell(Kind::Limit, rule, "");
                }
            }
            // Its own types are those of every server.
            return (None, Holder::Other);
        }
        let (Some((of, parent)), false) = (parent, name == "__typename") else {
            return (None, Holder::Other);
        };
        let Some(field) = parent.fields.get(name).filter(|_| !parent.is_input) else {
            self.unknown(&format!("`{}`", shortened(name)), of);
            return (None, Holder::Other);
        };
        let next = graphql.types.get_key_value(&field.of).map(|(name, each)| (name.as_str(), each));
        (next, Holder::Field(field))
    }

    /// Tells of something that the schema does not have, once.
    fn unknown(&mut self, what: &str, of: &str) {
        let place = if of.is_empty() { String::new() } else { format!(" in `{of}`") };
        let rule = format!("{what} is not declared{place}");
        if self.told.insert(rule.clone()) {
            self.at.of_part(Kind::Body, rule, of);
        }
    }

    /// What the operations cost with their fragments.
    fn costs(&mut self, definitions: &[Definition<'_>]) {
        let mut fragments: HashMap<&str, &Definition<'_>> = HashMap::new();
        for definition in definitions {
            if let Some(name) = definition.fragment
                && fragments.insert(name, definition).is_some()
            {
                self.at.tell(Kind::Body, format!("has the fragment `{}` twice", shortened(name)), "");
            }
        }
        if fragments.len() > GRAPHQL_FRAGMENTS_MAX {
            let rule = format!("must have at most {GRAPHQL_FRAGMENTS_MAX} fragments");
            return self.at.tell(Kind::Limit, rule, "");
        }
        let mut known = HashMap::new();
        let mut most = Cost::default();
        for operation in definitions {
            match self.cost(operation, &fragments, &mut known) {
                Some(cost) => {
                    most.depth = most.depth.max(cost.depth);
                    most.fields = most.fields.saturating_add(if operation.fragment.is_none() {
                        cost.fields
                    } else {
                        0
                    });
                    most.aliases = most.aliases.saturating_add(if operation.fragment.is_none() {
                        cost.aliases
                    } else {
                        0
                    });
                }
                None => {
                    return self.at.tell(Kind::Limit, "has fragments that lead in a circle".to_owned(), "");
                }
            }
        }
        let limits = self.graphql.limits;
        let mut over = |what: &str, limit: u64, is: u64| {
            if is > limit {
                self.at.tell(Kind::Limit, format!("must have at most {limit} {what}, has {is}"), "");
            }
        };
        over("levels", limits.depth.into(), most.depth.into());
        over("fields", limits.fields, most.fields);
        over("aliases", limits.aliases, most.aliases);
    }

    /// What a definition costs; none if it leads back to itself. Fragments are so few that this recursion is
    /// bounded ([`GRAPHQL_FRAGMENTS_MAX`]).
    fn cost<'t>(
        &mut self,
        definition: &Definition<'t>,
        fragments: &HashMap<&'t str, &Definition<'t>>,
        known: &mut HashMap<&'t str, Option<Cost>>,
    ) -> Option<Cost> {
        if let Some(name) = definition.fragment {
            if let Some(cost) = known.get(name) {
                return *cost;
            }
            // Until it is known, it leads back to itself.
            known.insert(name, None);
        }
        let mut cost = definition.cost;
        for (name, above) in &definition.spreads {
            let Some(fragment) = fragments.get(name) else {
                self.unknown(&format!("the fragment `{}`", shortened(name)), "");
                continue;
            };
            let of_fragment = self.cost(fragment, fragments, known)?;
            cost.depth = cost.depth.max(above.saturating_add(of_fragment.depth));
            cost.fields = cost.fields.saturating_add(of_fragment.fields);
            cost.aliases = cost.aliases.saturating_add(of_fragment.aliases);
        }
        if let Some(name) = definition.fragment {
            known.insert(name, Some(cost));
        }
        Some(cost)
    }
}

impl Graphql {
    /// Adds a type, or more fields of one that `extends` says is there.
    fn add(&mut self, name: &str, fields: BTreeMap<String, Field>, is_input: bool, extends: bool) -> bool {
        match self.types.get_mut(name) {
            Some(known) if extends => {
                known.fields.extend(fields);
                true
            }
            Some(_) => false,
            None => {
                self.types.insert(name.to_owned(), Type { fields, is_input });
                true
            }
        }
    }

    /// What is wrong with the schema as a whole.
    fn complete(&mut self) -> Vec<Problem> {
        for name in ["Int", "Float", "String", "Boolean", "ID"] {
            self.types.entry(name.to_owned()).or_default();
        }
        self.directives.extend(["include", "skip", "deprecated", "specifiedBy", "oneOf"].map(str::to_owned));
        let mut problems = Vec::new();
        if self.roots[0].is_none() {
            problems.push(Problem::new("", "the schema has no type of queries"));
        }
        let unknown = |name: &String| !self.types.contains_key(name);
        for root in self.roots.iter().flatten().filter(|root| unknown(root)) {
            problems.push(Problem::new(root.clone(), "the schema has no such type"));
        }
        let mut fields = 0;
        for (name, each) in &self.types {
            fields += each.fields.len();
            for (field, declared) in each.fields.iter().filter(|(_, declared)| unknown(&declared.of)) {
                let message = format!("there is no type `{}`", shortened(&declared.of));
                problems.push(Problem::new(format!("{name}.{field}"), message));
            }
        }
        if fields > GRAPHQL_FIELDS_MAX {
            problems.push(Problem::new("", format!("the schema has more than {GRAPHQL_FIELDS_MAX} fields")));
        }
        problems.sort_by(|a, b| a.pointer.cmp(&b.pointer));
        problems
    }
}
