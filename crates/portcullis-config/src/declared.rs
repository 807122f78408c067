//! The API that a site or route declares.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::checked::ClassAction;
use crate::mistakes::Mistakes;
use crate::raw;
use crate::spanned::Spanned;

/// The description of the API, and what happens to requests that differ from it.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Raw {
    /// The file: OpenAPI 3.0 to 3.2, OpenRPC, or tools as an MCP server lists them; JSON or YAML. Default at
    /// a route: the one of its site.
    pub schema: Option<String>,
    /// Paths and methods that it does not declare. Default: `log`.
    pub unknown_path: Option<raw::ClassAction>,
    /// Parameters of the query that it does not declare. Default: `log`.
    pub unknown_parameter: Option<raw::ClassAction>,
    /// Parameters of query, path, header and cookies that are not as it declares them, or are not there.
    /// Default: `log`.
    pub parameters: Option<raw::ClassAction>,
    /// Bodies that are not as it declares them, or are of another media type. Default: `log`.
    pub body: Option<raw::ClassAction>,
    /// Requests without the credentials that it requires; whether these are right, the application knows.
    /// Default: `log`.
    pub security: Option<raw::ClassAction>,
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
}

/// Checks the settings of a site, or of a route whose site has those of `of_site`.
pub(crate) fn check(
    mistakes: &mut Mistakes<'_>,
    raw: &Spanned<Raw>,
    of_site: Option<&DeclaredApi>,
) -> Option<DeclaredApi> {
    let Raw { schema, unknown_path, unknown_parameter, parameters, body, security } = &raw.value;
    let Some(schema) =
        schema.as_ref().map(|file| mistakes.path(file)).or_else(|| of_site.map(|site| site.schema.clone()))
    else {
        let message = "`api` names no description".to_string();
        mistakes.wrong_with_hint(raw.span.clone(), message, "add `schema = \"openapi.yaml\"`".to_string());
        return None;
    };
    let action = |given: &Option<raw::ClassAction>, inherited: fn(&DeclaredApi) -> ClassAction| match given {
        Some(raw::ClassAction::Block) => ClassAction::Block,
        Some(raw::ClassAction::Log) => ClassAction::Log,
        Some(raw::ClassAction::Off) => ClassAction::Off,
        None => of_site.map_or(ClassAction::Log, inherited),
    };
    Some(DeclaredApi {
        schema,
        unknown_path: action(unknown_path, |site| site.unknown_path),
        unknown_parameter: action(unknown_parameter, |site| site.unknown_parameter),
        parameters: action(parameters, |site| site.parameters),
        body: action(body, |site| site.body),
        security: action(security, |site| site.security),
    })
}
