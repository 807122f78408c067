//! Tree to text.
//!
//! Printed text parses to the same tree: one directive a line, quoted so that Apache, ModSecurity and this
//! crate cut it in the same places. Comments, line breaks and `Include`s of the original are not kept.

pub(crate) mod action;
pub(crate) mod setting;

use crate::ast::{
    Directive, Document, IdRange, Operator, Rule, RuleSelector, Selector, Spanned, Target, TargetKind,
};
use crate::lexer::is_blank;
use crate::operators::OperatorName;

/// The text of a document. Every tree that [`crate::parse`] made reads back as itself; a tree made otherwise
/// may hold what no text can say, such as a line break inside a message, which reads back as a blank.
pub fn print(document: &Document) -> Vec<u8> {
    let mut out = Vec::new();
    for directive in &document.directives {
        let start = out.len();
        print_directive(&directive.node, &mut out);
        out[start..].iter_mut().filter(|byte| **byte == b'\n').for_each(|byte| *byte = b' ');
        out.push(b'\n');
    }
    out
}

fn print_directive(directive: &Directive, out: &mut Vec<u8>) {
    match directive {
        Directive::Rule(rule) => print_rule(rule, out),
        Directive::Script { path, actions } if actions.is_empty() => line(out, "SecRuleScript", &[path]),
        Directive::Script { path, actions } => line(out, "SecRuleScript", &[path, &action::list(actions)]),
        Directive::Marker(label) => line(out, "SecMarker", &[label]),
        Directive::DefaultAction(actions) => line(out, "SecDefaultAction", &[&action::list(actions)]),
        Directive::RemoveById(ranges) => {
            let parts: Vec<Vec<u8>> = ranges.iter().map(|&range| id_ranges(&[range])).collect();
            let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
            line(out, "SecRuleRemoveById", &parts);
        }
        Directive::RemoveByTag(pattern) => line(out, "SecRuleRemoveByTag", &[pattern]),
        Directive::RemoveByMsg(pattern) => line(out, "SecRuleRemoveByMsg", &[pattern]),
        Directive::UpdateTarget { rules, targets, replaced } => {
            let (name, selector) = match rules {
                RuleSelector::Ids(ranges) => ("SecRuleUpdateTargetById", id_ranges(ranges)),
                RuleSelector::Tag(pattern) => ("SecRuleUpdateTargetByTag", pattern.to_vec()),
                RuleSelector::Msg(pattern) => ("SecRuleUpdateTargetByMsg", pattern.to_vec()),
            };
            let targets = target_list(targets);
            let replaced = replaced.as_deref().map(target_list);
            let mut arguments: Vec<&[u8]> = vec![&selector, &targets];
            arguments.extend(replaced.as_deref());
            line(out, name, &arguments);
        }
        Directive::UpdateAction { id, link, actions } => {
            let place = if *link == 0 { format!("{id}") } else { format!("{id}:{link}") };
            line(out, "SecRuleUpdateActionById", &[place.as_bytes(), &action::list(actions)]);
        }
        Directive::Setting(setting) => setting::print(setting, out),
    }
}

fn print_rule(rule: &Rule, out: &mut Vec<u8>) {
    let actions = action::list(&rule.actions);
    let Some(condition) = &rule.condition else {
        return line(out, "SecAction", &[&actions]);
    };
    let targets = target_list(&condition.targets);
    let operator = operator(&condition.operator.node);
    let mut arguments: Vec<&[u8]> = vec![&targets, &operator];
    if !rule.actions.is_empty() {
        arguments.push(&actions);
    }
    line(out, "SecRule", &arguments);
}

/// A directive's name and its arguments, each quoted if it needs to be.
fn line(out: &mut Vec<u8>, name: &str, arguments: &[&[u8]]) {
    out.extend_from_slice(name.as_bytes());
    for argument in arguments {
        out.push(b' ');
        let is_plain = |&b: &u8| {
            b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'/' | b':' | b'|' | b'&' | b'!')
        };
        if !argument.is_empty() && argument.iter().all(is_plain) {
            out.extend_from_slice(argument);
        } else {
            quote(out, argument, b'"');
        }
    }
}

/// `text` in quotes, its quotes and backslashes escaped.
fn quote(out: &mut Vec<u8>, text: &[u8], mark: u8) {
    out.push(mark);
    for &byte in text {
        if byte == mark || byte == b'\\' {
            out.push(b'\\');
        }
        out.push(byte);
    }
    out.push(mark);
}

fn operator(operator: &Operator) -> Vec<u8> {
    let mut out = Vec::new();
    if operator.negated {
        out.push(b'!');
    }
    // A regex that begins with a blank can only be said without the operator's name.
    let bare = operator.name == OperatorName::Rx && operator.argument.first().is_some_and(|&b| is_blank(b));
    if !bare {
        out.push(b'@');
        out.extend_from_slice(operator.name.name().as_bytes());
        if !operator.argument.is_empty() {
            out.push(b' ');
        }
    }
    out.extend_from_slice(&operator.argument);
    out
}

fn target_list(targets: &[Spanned<Target>]) -> Vec<u8> {
    let mut out = Vec::new();
    for (i, spanned) in targets.iter().enumerate() {
        if i > 0 {
            out.push(b'|');
        }
        target(&spanned.node, &mut out);
    }
    out
}

fn target(target: &Target, out: &mut Vec<u8>) {
    match target.kind {
        TargetKind::Values => {}
        TargetKind::Count => out.push(b'&'),
        TargetKind::Exclude => out.push(b'!'),
    }
    out.extend_from_slice(target.variable.name().as_bytes());
    let selector = match &target.selector {
        None => return,
        Some(Selector::Key(text) | Selector::XPath(text)) => text.to_vec(),
        Some(Selector::Regex(regex)) => [b"/", regex.as_slice(), b"/"].concat(),
    };
    out.push(b':');
    let is_plain = |&b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.');
    let is_plain_xpath = matches!(&target.selector, Some(Selector::XPath(_)))
        && selector.iter().all(|b| is_plain(b) || matches!(b, b'/' | b'*' | b'@'));
    if selector.iter().all(is_plain) || is_plain_xpath {
        out.extend_from_slice(&selector);
    } else {
        quote(out, &selector, b'\'');
    }
}

fn id_ranges(ranges: &[IdRange]) -> Vec<u8> {
    let texts = ranges.iter().map(|range| match range {
        IdRange { first, last } if first == last => format!("{first}"),
        IdRange { first, last } => format!("{first}-{last}"),
    });
    texts.collect::<Vec<_>>().join(",").into_bytes()
}
