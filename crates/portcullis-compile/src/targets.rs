//! Targets to the engine's form.

use std::sync::Arc;

use portcullis_engine::{ChainId, Exclusion, KeyFilter, Operator, Target, TargetList, XmlPath};
use portcullis_match::{Pcre, RegexFlags};
use portcullis_seclang::ast;
use portcullis_seclang::standing::{self, Standing};
use portcullis_types::{Shape, Variable};

use crate::names::Names;
use crate::xpath::{self, Namespaces};

/// An error of one target: message and hint.
pub(crate) type TargetError = (String, Option<String>);

/// `Ok` if the engine fills `variable`, or if it is one of ModSecurity 2 that has no value here: then `Some`
/// warning.
pub(crate) fn supported(variable: Variable) -> Result<Option<TargetError>, TargetError> {
    match standing::variable(variable) {
        Standing::Vain(refusal) => Ok(Some((
            format!("{} has no value here: {}", variable.name(), refusal.why),
            Some(refusal.instead.to_owned()),
        ))),
        Standing::Refused(refusal) => Err((
            format!("{} is refused: {}", variable.name(), refusal.why),
            Some(refusal.instead.to_owned()),
        )),
        Standing::Works | Standing::Differs(_) | Standing::NoEffect(_) => Ok(None),
    }
}

/// Adds `targets` to `list`: values and counts to its include list, `!` to its exclude list.
///
/// `spaces`: the prefixes that the rule gives to XPath expressions. `far`: an exclusion takes away wherever
/// it stands, as in libmodsecurity.
pub(crate) fn add(
    list: &mut TargetList,
    target: &ast::Target,
    names: &mut Names,
    spaces: &Namespaces<'_>,
    far: bool,
) -> Result<Option<TargetError>, TargetError> {
    let warning = supported(target.variable)?;
    let filter = match filter(target, spaces) {
        // ModSecurity 2 reads paths when a request comes.
        Err((message, hint)) if target.variable.shape() == Shape::Xpath => {
            return Ok(Some((format!("{message}; this target finds nothing"), hint)));
        }
        filter => filter?,
    };
    if target.kind == ast::TargetKind::Exclude {
        let reach = if far { usize::MAX } else { list.include.len() };
        list.exclude.push(Exclusion { variable: target.variable, filter, reach });
        return Ok(warning);
    }
    let slot = match (&filter, target.variable) {
        (KeyFilter::Key(key), Variable::Tx) => Some(names.tx(key)),
        _ => None,
    };
    let count = target.kind == ast::TargetKind::Count;
    list.include.push(Target { variable: target.variable, filter, slot, slots: Box::default(), count });
    Ok(warning)
}

/// Exclusions that take nothing away, since what they name comes behind them.
pub(crate) fn too_early(
    targets: &[ast::Spanned<ast::Target>],
) -> impl Iterator<Item = &ast::Spanned<ast::Target>> {
    let is_value = |other: &ast::Spanned<ast::Target>, variable: Variable| {
        other.node.kind == ast::TargetKind::Values && other.node.variable == variable
    };
    targets.iter().enumerate().filter_map(move |(at, target)| {
        let variable = target.node.variable;
        let (before, behind) = targets.split_at(at);
        let early = target.node.kind == ast::TargetKind::Exclude
            && behind.iter().any(|other| is_value(other, variable))
            && !before.iter().any(|other| is_value(other, variable));
        early.then_some(target)
    })
}

/// `@inspectFile` looks at files, as they came, and at nothing else. Message and hint.
pub(crate) fn fit(list: &TargetList, operator: &Operator, chain: ChainId) -> Result<(), (String, String)> {
    let is_scan = matches!(operator, Operator::InspectFile(_));
    let is_file = |target: &Target| {
        !target.count && matches!(target.variable, Variable::FilesTmpnames | Variable::FilesTmpContent)
    };
    if is_scan && !list.include.iter().all(is_file) {
        return Err((
            "@inspectFile looks at uploaded files only".to_owned(),
            "write FILES_TMPNAMES or FILES_TMP_CONTENT as its target".to_owned(),
        ));
    }
    if is_scan && chain != ChainId::IDENTITY {
        return Err((
            "@inspectFile looks at a file as it was uploaded: transformations make no difference".to_owned(),
            "write t:none as the last of them, or none at all".to_owned(),
        ));
    }
    Ok(())
}

/// The key filter of `target`.
pub(crate) fn filter(target: &ast::Target, spaces: &Namespaces<'_>) -> Result<KeyFilter, TargetError> {
    let name = target.variable.name();
    match (&target.selector, target.variable.shape()) {
        (None, _) => Ok(KeyFilter::All),
        (Some(_), Shape::Scalar) => Err((
            format!("{name} takes no key"),
            Some(format!("write {name} without the part after the colon")),
        )),
        (Some(ast::Selector::Key(key)), Shape::Xpath) | (Some(ast::Selector::XPath(key)), _) => {
            match key.as_slice() {
                b"/*" => Ok(KeyFilter::Xml(XmlPath::Text)),
                b"//@*" => Ok(KeyFilter::Xml(XmlPath::Attributes)),
                path => Ok(KeyFilter::Xml(XmlPath::Search(Arc::new(xpath::parse(path, spaces)?)))),
            }
        }
        (Some(ast::Selector::Key(key)), _) => Ok(KeyFilter::Key(key.as_slice().into())),
        (Some(ast::Selector::Regex(pattern)), _) => {
            let flags = RegexFlags { case_insensitive: true, ..RegexFlags::default() };
            match Pcre::new(pattern, flags) {
                Ok(regex) => Ok(KeyFilter::Regex(Arc::new(regex))),
                Err(error) => Err((format!("selector of {name}: {error}"), None)),
            }
        }
    }
}
