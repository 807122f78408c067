//! `REQUEST_URI` compared with a path: it has the query as well, so that a request with one is another text.

use portcullis_seclang::Diagnostic;
use portcullis_seclang::ast::{Condition, TargetKind};
use portcullis_seclang::operators::OperatorName;
use portcullis_types::Variable;

use super::{Rules, warning};

pub(super) fn look(rules: &Rules<'_, '_>, found: &mut Vec<Diagnostic>) {
    for (_, _, link) in rules.links() {
        let Some(condition) = &link.condition else { continue };
        let Some(path) = path_to_the_end(condition) else { continue };
        let reads_path = condition.targets.iter().any(|target| {
            matches!(target.node.variable, Variable::RequestFilename | Variable::RequestBasename)
        });
        let uri = condition.targets.iter().find(|target| {
            let is_uri = matches!(target.node.variable, Variable::RequestUri | Variable::RequestUriRaw);
            is_uri && target.node.kind == TargetKind::Values
        });
        if let Some(target) = uri.filter(|_| !reads_path) {
            let name = target.node.variable.name();
            let path = path.escape_ascii();
            let message = format!("{name} has the query, too: a request for {path}?a=b is not the same text");
            let hint = "write REQUEST_FILENAME, which has the path alone".to_owned();
            found.push(warning(target.span, message, hint));
        }
    }
}

/// The path that the end of the value has to be, if the operator names one and leaves no place for a query.
#[expect(clippy::wildcard_enum_match_arm, reason = "no other operator compares with a path")]
fn path_to_the_end(condition: &Condition) -> Option<&[u8]> {
    let argument = condition.operator.node.argument.trim_ascii();
    let path = match condition.operator.node.name {
        OperatorName::Streq => argument.strip_prefix(b"/").map(|_| argument)?,
        OperatorName::EndsWith => argument,
        OperatorName::Within => {
            let mut paths = argument.split(|byte| b" ,|".contains(byte)).filter(|path| !path.is_empty());
            let first = paths.next()?;
            (first.starts_with(b"/") && paths.all(|path| path.starts_with(b"/"))).then_some(first)?
        }
        OperatorName::Rx => literal_path(argument)?,
        _ => return None,
    };
    let has_query = argument.iter().any(|byte| b"?=&".contains(byte));
    let has_macro = memchr::memmem::find(argument, b"%{").is_some();
    (!path.is_empty() && !has_query && !has_macro).then_some(path)
}

/// The path between the anchors of a pattern such as `^/login$`.
fn literal_path(pattern: &[u8]) -> Option<&[u8]> {
    let path = pattern.strip_prefix(b"^")?.strip_suffix(b"$")?;
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/-_.~\\".contains(byte);
    (path.starts_with(b"/") && path.iter().all(is_plain)).then_some(path)
}
