//! Limits of documents and of what is compared with them. What is beyond those of a document stops the load;
//! a body that is beyond the others is reported as not compared.

/// Bytes of a document.
pub const DOCUMENT_BYTES_MAX: usize = 16 << 20;
/// Values inside each other in a document.
pub const DOCUMENT_DEPTH_MAX: usize = 64;
/// Values of a document, with those that aliases of YAML repeat.
pub const DOCUMENT_VALUES_MAX: usize = 1_000_000;
/// Operations of a document.
pub const OPERATIONS_MAX: usize = 5_000;
/// Path templates, each once for each base path of its servers.
pub const TEMPLATES_MAX: usize = 20_000;
/// Segments of a path template or a path.
pub const SEGMENTS_MAX: usize = 64;
/// Parameters of an operation.
pub const PARAMETERS_MAX: usize = 256;
/// Values of all schemas together, those that several operations share counted for each schema.
pub const SCHEMA_VALUES_MAX: usize = 3_000_000;
/// Members of one `enum`.
pub const ENUM_MAX: usize = 10_000;
/// Schemas that apply to one value at the same time, through references and combinations.
pub const APPLIED_MAX: usize = 1_000;
/// References and combinations inside each other that lead to no part of the value.
pub const CHAIN_MAX: usize = 48;
/// Ways in which references lead through a schema: what compares a value with it may take each.
pub const WAYS_MAX: u64 = 1_000_000;
/// Bytes of the compiled form of one pattern.
pub const PATTERN_BYTES_MAX: usize = 1 << 20;
/// Patterns of a document.
pub const PATTERNS_MAX: usize = 5_000;
/// Values inside each other in a body.
pub const BODY_DEPTH_MAX: usize = 64;
/// Values of a body.
pub const BODY_VALUES_MAX: usize = 200_000;
/// Messages of a batch of JSON-RPC.
pub const RPC_BATCH_MAX: usize = 100;
/// Deviations of one aspect that are reported of one request.
pub const DEVIATIONS_MAX: usize = 16;
/// Values of one parameter, and fields of a form.
pub const PARTS_MAX: usize = 2_000;
/// Fields of a body that are looked at for their types; of a body with more none is known by its type.
pub const FIELDS_MAX: usize = 1_000;
/// Objects inside each other whose fields are.
pub const FIELD_DEPTH_MAX: usize = 6;
/// Values of an `enum`, or alternatives, up to which a field is known by them.
pub const OPTIONS_MAX: usize = 256;
/// Characters that a text may have at least if it is free text.
pub const TEXT_LENGTH_MIN: u64 = 64;
/// Fields and arguments of a schema of GraphQL.
pub const GRAPHQL_FIELDS_MAX: usize = 200_000;
/// Fields, arguments, fragments and braces of a document of GraphQL.
pub const GRAPHQL_PARTS_MAX: usize = 20_000;
/// Fragments of a document of GraphQL.
pub const GRAPHQL_FRAGMENTS_MAX: usize = 200;
/// Messages, fields, enums, their values, services and methods of a set of file descriptors.
pub const DESCRIPTOR_PARTS_MAX: usize = 200_000;
/// Bytes of the whole name of something in a set of file descriptors, with what it is declared in.
pub const DESCRIPTOR_NAME_BYTES_MAX: usize = 1024;
/// Bytes that the compressed messages of a call unpack to.
pub const UNPACKED_BYTES_MAX: u64 = 8 << 20;
/// How much more a compressed message may unpack to than it has.
pub const UNPACKED_RATIO_MAX: u64 = 100;
