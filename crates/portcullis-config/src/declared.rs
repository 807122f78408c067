//! The API that a site or route declares.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::checked::ClassAction;
use crate::mistakes::Mistakes;
use crate::raw;
use crate::spanned::Spanned;
use crate::values::number;

/// The description of the API, and what happens to requests that differ from it.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Raw {
    /// The file: OpenAPI 3.0 to 3.2, OpenRPC, or tools as an MCP server lists them, in JSON or YAML; a
    /// schema of GraphQL, in its language or as an introspection answers it; or a set of file descriptors of
    /// Protocol Buffers with services of gRPC. Default at a route: the one of its site.
    pub schema: Option<String>,
    /// Paths and methods that it does not declare. Default: `log`.
    pub unknown_path: Option<raw::ClassAction>,
    /// Parameters of the query, and fields of messages of gRPC, that it does not declare. Default: `log`.
    pub unknown_parameter: Option<raw::ClassAction>,
    /// Parameters of query, path, header and cookies that are not as it declares them, or are not there.
    /// Default: `log`.
    pub parameters: Option<raw::ClassAction>,
    /// Bodies that are not as it declares them, or are of another media type. Default: `log`.
    pub body: Option<raw::ClassAction>,
    /// Requests without the credentials that it requires; whether these are right, the application knows.
    /// Default: `log`.
    pub security: Option<raw::ClassAction>,
    /// Answers whose status, media type or body of JSON is not as it declares them. Default: `off`.
    pub responses: Option<raw::ClassAction>,
    /// What documents of GraphQL may ask for. More is a deviation of the body.
    pub graphql: Option<RawGraphql>,
}

/// What documents of GraphQL may ask for.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawGraphql {
    /// Selections inside each other. Default: 15.
    #[schemars(range(min = 1, max = 96))]
    pub depth: Option<Spanned<u32>>,
    /// Fields, each as often as fragments repeat it. Default: 1000.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub fields: Option<Spanned<u32>>,
    /// Fields that get another name, counted so, too. Default: 30.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub aliases: Option<Spanned<u32>>,
    /// Requests of a batch. Default: 10.
    #[schemars(range(min = 0, max = 1_000))]
    pub batch: Option<Spanned<u32>>,
    /// The schema may be asked for. Default: `false`.
    pub introspection: Option<bool>,
    /// No documents at all, only names of such that the server knows. Default: `false`.
    pub persisted_only: Option<bool>,
}

/// What documents of GraphQL may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GraphqlSettings {
    /// Selections inside each other.
    pub depth: u32,
    /// Fields.
    pub fields: u32,
    /// Fields with another name.
    pub aliases: u32,
    /// Requests of a batch.
    pub batch: u32,
    /// The schema may be asked for.
    pub introspection: bool,
    /// Only names of documents that the server knows.
    pub persisted_only: bool,
}

/// The description of an API, and what happens to requests that differ from it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DeclaredApi {
    /// The file.
    pub schema: PathBuf,
    /// Unknown paths and methods.
    pub unknown_path: ClassAction,
    /// Unknown parameters of the query.
    pub unknown_parameter: ClassAction,
    /// Parameters that are not as declared.
    pub parameters: ClassAction,
    /// Bodies that are not as declared.
    pub body: ClassAction,
    /// Missing credentials.
    pub security: ClassAction,
    /// Answers that are not as declared.
    pub responses: ClassAction,
    /// What documents of GraphQL may ask for.
    pub graphql: Option<GraphqlSettings>,
}

/// Checks the settings of a site, or of a route whose site has those of `of_site`.
pub(crate) fn check(
    mistakes: &mut Mistakes<'_>,
    raw: &Spanned<Raw>,
    of_site: Option<&DeclaredApi>,
) -> Option<DeclaredApi> {
    let Raw { schema, unknown_path, unknown_parameter, parameters, body, security, responses, graphql } =
        &raw.value;
    let Some(schema) =
        schema.as_ref().map(|file| mistakes.path(file)).or_else(|| of_site.map(|site| site.schema.clone()))
    else {
        let message = "`api` names no description".to_string();
        mistakes.wrong_with_hint(raw.span.clone(), message, "add `schema = \"openapi.yaml\"`".to_string());
        return None;
    };
    let given = |given: &Option<raw::ClassAction>| {
        given.map(|action| match action {
            raw::ClassAction::Block => ClassAction::Block,
            raw::ClassAction::Log => ClassAction::Log,
            raw::ClassAction::Off => ClassAction::Off,
        })
    };
    let action = |raw: &Option<raw::ClassAction>, inherited: fn(&DeclaredApi) -> ClassAction| {
        given(raw).unwrap_or_else(|| of_site.map_or(ClassAction::Log, inherited))
    };
    let responses = given(responses).or(of_site.map(|site| site.responses)).unwrap_or(ClassAction::Off);
    Some(DeclaredApi {
        schema,
        unknown_path: action(unknown_path, |site| site.unknown_path),
        unknown_parameter: action(unknown_parameter, |site| site.unknown_parameter),
        parameters: action(parameters, |site| site.parameters),
        body: action(body, |site| site.body),
        security: action(security, |site| site.security),
        responses,
        graphql: graphql
            .as_ref()
            .map(|graphql| check_graphql(mistakes, graphql))
            .or(of_site.and_then(|site| site.graphql)),
    })
}

fn check_graphql(mistakes: &mut Mistakes<'_>, raw: &RawGraphql) -> GraphqlSettings {
    let mut within = |raw: &Option<Spanned<u32>>, range, name, default| {
        number(mistakes, raw.clone(), range, name, default)
    };
    GraphqlSettings {
        depth: within(&raw.depth, 1..=96, "depth", 15),
        fields: within(&raw.fields, 1..=1_000_000, "fields", 1_000),
        aliases: within(&raw.aliases, 0..=1_000_000, "aliases", 30),
        batch: within(&raw.batch, 0..=1_000, "batch", 10),
        introspection: raw.introspection.unwrap_or(false),
        persisted_only: raw.persisted_only.unwrap_or(false),
    }
}
