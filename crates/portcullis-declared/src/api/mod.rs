//! A compiled description, and requests beside it.

mod answer;
mod body;
mod deviation;
mod head;
mod plan;

use crate::field::Field;
use crate::graphql::{Graphql, GraphqlLimits};
use crate::openapi;
use crate::path::Paths;
use crate::problem::Problem;
use crate::rpc::Rpc;

pub use answer::AnswerId;
pub(crate) use body::NOT_WHOLE;
pub use body::Sent;
pub use deviation::{Aspect, Aspects, Deviation, Kind};
pub(crate) use deviation::{Told, json_name, of_path, shown};
pub use head::Head;
pub(crate) use plan::{Answer, Body, Credential, Fields, Media, MediaKind, Operation, Status, Template};

/// An API as it is declared.
#[derive(Debug)]
pub struct Api {
    pub(crate) paths: Paths,
    pub(crate) templates: Vec<Template>,
    pub(crate) operations: Vec<Operation>,
    /// It is one of JSON-RPC, and has no paths.
    pub(crate) rpc: Option<Rpc>,
    /// It is one of GraphQL, and has no paths.
    pub(crate) graphql: Option<Graphql>,
    pub(crate) warnings: Vec<Problem>,
}

/// What is compared beside requests, and how far requests may go.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Settings {
    /// Answers are compared, too.
    pub answers: bool,
    /// What documents of GraphQL may ask for.
    pub graphql: Option<GraphqlLimits>,
}

/// The operation that a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperationId(usize);

impl OperationId {
    /// The only one of an API that has one.
    pub(crate) fn first() -> OperationId {
        OperationId(0)
    }

    /// The number of the operation.
    pub fn number(self) -> usize {
        self.0
    }
}

impl Api {
    /// Compiles the text of a document, JSON or YAML: OpenAPI, OpenRPC, or the tools of a server of the Model
    /// Context Protocol.
    pub fn compile(text: &str) -> Result<Api, Vec<Problem>> {
        Api::compile_with(text, &Settings::default())
    }

    /// The same with settings.
    pub fn compile_with(text: &str, settings: &Settings) -> Result<Api, Vec<Problem>> {
        openapi::compile(text, settings)
    }

    /// What the description says and is not enforced.
    pub fn warnings(&self) -> &[Problem] {
        &self.warnings
    }

    /// The numbers of path templates and of operations: methods or tools where it is one of JSON-RPC, types
    /// and their fields where it is one of GraphQL.
    pub fn counts(&self) -> (usize, usize) {
        match (&self.rpc, &self.graphql) {
            (Some(rpc), _) => (0, rpc.count()),
            (None, Some(graphql)) => graphql.counts(),
            (None, None) => (self.templates.len(), self.operations.len()),
        }
    }

    /// The settings that it has no use for, and why.
    pub fn unused(&self, settings: &Settings) -> Vec<&'static str> {
        let mut unused = Vec::new();
        if settings.graphql.is_some() && self.graphql.is_none() {
            unused.push("`graphql` has no effect: this is no schema of GraphQL");
        }
        if settings.answers && (self.rpc.is_some() || self.graphql.is_some()) {
            unused.push("`responses` has no effect: only answers of OpenAPI documents are compared");
        }
        unused
    }

    /// What it describes, in words: `12 paths with 30 operations`.
    pub fn summary(&self) -> String {
        let (outer, inner) = self.counts();
        let plural =
            |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        match (&self.rpc, &self.graphql) {
            (Some(rpc), _) => plural(inner, rpc.of()),
            (None, Some(_)) => format!("{} with {}", plural(outer, "type"), plural(inner, "field")),
            (None, None) => format!("{} with {}", plural(outer, "path"), plural(inner, "operation")),
        }
    }

    /// The fields of each operation that are known by their types, in the order of their numbers.
    pub fn fields(&self) -> impl Iterator<Item = &[Field]> {
        self.operations.iter().map(|operation| operation.fields.as_slice())
    }

    /// Whether bodies have anything to do with what is asked about: the methods of JSON-RPC and the
    /// operations of GraphQL are named in them.
    pub fn asks_for_bodies(&self, asked: Aspects) -> bool {
        asked.body || asked.unknown_path && (self.rpc.is_some() || self.graphql.is_some())
    }
}
