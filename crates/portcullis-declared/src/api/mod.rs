//! A compiled description, and requests beside it.

mod answer;
mod body;
mod deviation;
mod head;
mod plan;

use crate::field::Field;
use crate::graphql::{Graphql, GraphqlLimits};
use crate::grpc::{self, Grpc};
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
    /// It is one of gRPC, and has no path templates.
    pub(crate) grpc: Option<Grpc>,
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

    pub(crate) fn numbered(number: usize) -> OperationId {
        OperationId(number)
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

    /// The same of the content of a file: a text, or a set of file descriptors of Protocol Buffers.
    pub fn compile_file(content: &[u8], settings: &Settings) -> Result<Api, Vec<Problem>> {
        if grpc::is_descriptor_set(content) {
            return grpc::compile(content);
        }
        match std::str::from_utf8(content) {
            Ok(text) => Api::compile_with(text, settings),
            Err(error) => {
                let message = format!(
                    "this is neither text in UTF-8 (it is not from byte {} on) nor a set of file descriptors",
                    error.valid_up_to()
                );
                Err(vec![Problem::new("", message)])
            }
        }
    }

    /// What the description says and is not enforced.
    pub fn warnings(&self) -> &[Problem] {
        &self.warnings
    }

    /// The numbers of path templates and of operations: methods or tools where it is one of JSON-RPC, types
    /// and their fields where it is one of GraphQL, services and their methods where it is one of gRPC.
    pub fn counts(&self) -> (usize, usize) {
        if let Some(grpc) = &self.grpc {
            return grpc.counts();
        }
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
        if settings.answers && (self.rpc.is_some() || self.graphql.is_some() || self.grpc.is_some()) {
            unused.push("`responses` has no effect: only answers of OpenAPI documents are compared");
        }
        unused
    }

    /// What it describes, in words: `12 paths with 30 operations`.
    pub fn summary(&self) -> String {
        let (outer, inner) = self.counts();
        let plural =
            |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        if self.grpc.is_some() {
            return format!("{} with {}", plural(outer, "service"), plural(inner, "method"));
        }
        match (&self.rpc, &self.graphql) {
            (Some(rpc), _) => plural(inner, rpc.of()),
            (None, Some(_)) => format!("{} with {}", plural(outer, "type"), plural(inner, "field")),
            (None, None) => format!("{} with {}", plural(outer, "path"), plural(inner, "operation")),
        }
    }

    /// The fields of each operation that are known by their types, in the order of their numbers.
    pub fn fields(&self) -> impl Iterator<Item = &[Field]> {
        let of_paths = self.operations.iter().map(|operation| operation.fields.as_slice());
        of_paths.chain(self.grpc.iter().flat_map(Grpc::fields))
    }

    /// The name of the field to which these numbers lead from the message that an operation of gRPC takes, or
    /// of the innermost one on the way that is declared: `order.items.note`.
    pub fn message_field(&self, operation: OperationId, path: &[u64]) -> Option<String> {
        self.grpc.as_ref()?.name(operation, path)
    }

    /// The field to which these numbers lead from the message of an operation of gRPC carries messages.
    pub fn is_message_field(&self, operation: OperationId, path: &[u64]) -> bool {
        self.grpc.as_ref().is_some_and(|grpc| grpc.has_message(operation, path))
    }

    /// Bodies are messages of Protocol Buffers.
    pub fn has_messages(&self) -> bool {
        self.grpc.is_some()
    }

    /// Whether bodies have anything to do with what is asked about: the methods of JSON-RPC and the
    /// operations of GraphQL are named in them, and messages of gRPC have the parameters of a call.
    pub fn asks_for_bodies(&self, asked: Aspects) -> bool {
        asked.body
            || asked.unknown_path && (self.rpc.is_some() || self.graphql.is_some())
            || asked.unknown_parameter && self.grpc.is_some()
    }
}
