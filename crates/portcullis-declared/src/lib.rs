//! What an API declares, and requests that deviate from it.
//!
//! ```text
//! text --document--> values --openapi--> Api: Paths, Operations with Parameters, Bodies, Schemas
//!                       └──── Problems with pointer and line
//!
//! head --Api::head--> OperationId, Deviations          body --Api::body--> Deviations
//! ```
//!
//! An [`Api`] is compiled once from an OpenAPI document (3.0 to 3.2, JSON or YAML), an OpenRPC document, the
//! tools of a server of the Model Context Protocol, a schema of GraphQL or a set of file descriptors of
//! Protocol Buffers, and is immutable. It compares a request's head, then its body, with the declaration, and
//! tells each difference as a [`Deviation`]: where it is, the rule in words, the pointer into the document.
//! It does not decide what comes of it.
//!
//! Documents are hostile until they are checked: size, depth, aliases, references and patterns have
//! [`limits`], references lead nowhere but into the document, and patterns run in linear time or not at all.
//!
//! ```
//! use portcullis_declared::{Api, Aspects, Head, Sent};
//!
//! let api = Api::compile(
//!     r#"{"openapi": "3.1.0", "paths": {"/orders/{id}": {"get": {"parameters": [
//!         {"name": "id", "in": "path", "required": true, "schema": {"type": "integer"}},
//!         {"name": "limit", "in": "query", "schema": {"type": "integer", "maximum": 100}}]}}}}"#,
//! )
//! .unwrap();
//! let head = Head {
//!     method: b"GET",
//!     path: b"/orders/7",
//!     query: Some(b"limit=5000"),
//!     fields: std::iter::empty(),
//! };
//! let mut found = Vec::new();
//! let operation = api.head(&head, Aspects::ALL, &mut found).unwrap();
//! api.body(operation, std::iter::empty(), Sent::Whole(b""), Aspects::ALL, &mut found);
//! assert_eq!(found[0].rule, "`limit` must be at most 100, is 5,000");
//! assert_eq!(found[0].pointer, "/paths/~1orders~1{id}/get/parameters/1/schema/maximum");
//! ```

#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod api;
mod document;
mod field;
mod graphql;
mod grpc;
mod json;
pub mod limits;
mod openapi;
mod parameter;
mod path;
mod problem;
mod rpc;
mod schema;
mod words;

pub use api::{AnswerId, Api, Aspect, Aspects, Deviation, Head, Kind, OperationId, Sent, Settings};
pub use field::{Field, FieldType, Form};
pub use graphql::GraphqlLimits;
pub use problem::Problem;
