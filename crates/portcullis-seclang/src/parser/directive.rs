//! One directive: its words as a node of the tree.

use std::path::PathBuf;

use bstr::BString;
use portcullis_types::RuleId;

use super::include::Next;
use super::{Sink, action_list, setting, targets, values};
use crate::ast::{Condition, Directive, Document, Operator, RefusedRule, Rule, RuleSelector, Spanned};
use crate::directives::{DirectiveName, Handling};
use crate::lexer::{self, View, Word, is_blank};
use crate::operators::{Argument, OperatorName};
use crate::source::SourceSpan;
use crate::standing::Refusal;
use crate::{limits, remote, suggest};

/// Directives of Apache that rule sets have between their rules.
const WEB_SERVER: &[&str] = &[
    "AddHandler",
    "AddOutputFilterByType",
    "AddType",
    "Allow",
    "AllowOverride",
    "BrowserMatch",
    "CustomLog",
    "Deny",
    "ErrorDocument",
    "ErrorLog",
    "Header",
    "LimitRequestBody",
    "LoadFile",
    "LoadModule",
    "LogFormat",
    "LogLevel",
    "Options",
    "Order",
    "PassEnv",
    "ProxyErrorOverride",
    "RequestHeader",
    "RequestReadTimeout",
    "Require",
    "RewriteCond",
    "RewriteEngine",
    "RewriteRule",
    "Satisfy",
    "SetEnv",
    "SetEnvIf",
    "SetEnvIfNoCase",
    "SetHandler",
    "SetOutputFilter",
    "TraceEnable",
    "UnsetEnv",
];

/// Reads the directive on `line`, which is not blank, and says what the loader has to do. `ends`: what
/// follows in the file cannot be the rest of it.
pub(super) fn read(line: View<'_>, ends: bool, document: &mut Document, sink: &mut Sink) -> Next {
    let span = line.span();
    if line.bytes.len() > limits::DIRECTIVE_BYTES_MAX {
        sink.error(span, format!("a directive takes at most {} bytes", limits::DIRECTIVE_BYTES_MAX));
        return Next::Line;
    }
    let words = lexer::words(line);
    let Some((first, arguments)) = words.split_first() else { return Next::Line };
    if let Some(unclosed) = words.iter().find(|word| word.unclosed) {
        let start = unclosed.span.span.start as usize;
        let quote = SourceSpan::new(span.file, start, start + 1);
        let hint =
            "close it; or, if the text goes on in the next line, end each line but the last with a backslash";
        if !ends {
            sink.error_hint(quote, "this quote is not closed before the end of the line", hint);
            return Next::Unclosed;
        }
        // As Apache reads it.
        sink.warn_hint(quote, "this quote is not closed: the argument ends with the line", hint);
    }
    let Some(name) = name(first, line, sink) else { return Next::Line };
    for word in words.iter().filter(|word| word.glued) {
        let end = word.span.span.end as usize;
        sink.warn_hint(
            SourceSpan::new(span.file, end, end + 1),
            "the next argument follows this quote without a blank",
            "put a blank between them, or write the quote inside the text as \\\"",
        );
    }
    if !count_fits(name, arguments, first.span, sink) {
        return Next::Line;
    }
    let views: Vec<View<'_>> =
        arguments.iter().map(|word| word.text.view_at(span.file, word.span.span.start)).collect();
    if name.handling() == Handling::Include {
        return include(name, &views, span, sink);
    }
    let mistakes = sink.count();
    let nodes = match name.handling() {
        Handling::Rules => rules(name, &views, arguments, sink),
        Handling::Setting => setting::read(name, &views, sink).map(Directive::Setting).into_iter().collect(),
        Handling::Refused(refusal) => {
            refuse(name, refusal, &views, first.span, sink);
            Vec::new()
        }
        Handling::Vain(refusal) => {
            if !is_off(&views) {
                let message = format!("{} has no effect: {}", name.name(), refusal.why);
                sink.warn_hint(first.span, message, refusal.instead);
            }
            Vec::new()
        }
        Handling::Include => Vec::new(),
    };
    if !sink.errors_since(mistakes) {
        document.directives.extend(nodes.into_iter().map(|node| Spanned { node, span }));
    } else if let Some(chain) = refused_chain(name, &views) {
        document.refused.push(RefusedRule { before: document.directives.len(), chain });
    }
    Next::Line
}

/// For a rule with a mistake: whether a link follows it. `None` for other directives.
fn refused_chain(name: DirectiveName, views: &[View<'_>]) -> Option<bool> {
    let actions = if let DirectiveName::Rule = name {
        views.get(2)
    } else if let DirectiveName::Action | DirectiveName::RuleScript = name {
        views.last()
    } else {
        return None;
    };
    let is_chain = |word: &[u8]| word.trim_ascii().eq_ignore_ascii_case(b"chain");
    Some(actions.is_some_and(|view| view.bytes.split(|&b| b == b',').any(is_chain)))
}

/// The directives that have the loader read something else.
fn include(name: DirectiveName, views: &[View<'_>], span: SourceSpan, sink: &mut Sink) -> Next {
    let Some(&first) = views.first() else { return Next::Line };
    let next = if let DirectiveName::RemoteRules = name {
        remote::read(views, sink).map(|file| Next::Fetch { file, span })
    } else if let DirectiveName::RemoteRulesFailAction = name {
        remote::read_fail_action(first, sink).map(Next::FailAction)
    } else {
        let pattern = first.str().filter(|text| !text.is_empty()).map(PathBuf::from);
        if pattern.is_none() {
            sink.error(first.span(), "a file name is missing or not UTF-8");
        }
        let optional = name == DirectiveName::IncludeOptional;
        pattern.map(|pattern| Next::Include { pattern, span, optional })
    };
    next.unwrap_or(Next::Line)
}

fn name(first: &Word, line: View<'_>, sink: &mut Sink) -> Option<DirectiveName> {
    if matches!(line.bytes.first(), Some(b'"' | b'\'')) {
        sink.error_hint(
            first.span,
            "a directive begins with its name, not with a quote",
            "if this belongs to the line above, end that line with a backslash",
        );
        return None;
    }
    let view = first.text.view(line.span().file);
    let text = view.str().unwrap_or_default();
    let name = DirectiveName::from_name(text);
    if name.is_none() && WEB_SERVER.iter().any(|known| known.eq_ignore_ascii_case(text)) {
        let message = format!("{text} is a directive of the web server, not of rules: it has no effect");
        // Where there is one there are often many.
        if !sink.has_said(&message) {
            let hint = "headers, timeouts and access are keys of the configuration; or remove the line";
            sink.warn_hint(first.span, message, hint);
        }
        return None;
    }
    if name.is_none() {
        let near = suggest::hint(text, DirectiveName::ALL.iter().map(|d| d.name()));
        let hint = near.or_else(|| {
            let is_action =
                text.contains([':', ',']) || crate::actions::ActionName::from_name(text).is_some();
            is_action.then(|| "if this belongs to the line above, end that line with a backslash".to_owned())
        });
        sink.error_maybe(first.span, format!("unknown directive {}", view.show()), hint);
    }
    name
}

fn count_fits(name: DirectiveName, arguments: &[Word], at: SourceSpan, sink: &mut Sink) -> bool {
    let (least, most) = name.arguments();
    let (least, most) = (usize::from(least), usize::from(most));
    if arguments.len() < least {
        let message = format!("{} needs {}", name.name(), plural(least));
        sink.error_hint(at, message, name.meaning());
        return false;
    }
    if most < usize::from(u8::MAX) && arguments.len() > most {
        let extra = &arguments[most];
        let file = extra.span.file;
        let hint = if extra.text.view(file).bytes.starts_with(b"#") {
            "a comment needs a line of its own"
        } else {
            "put an argument that holds blanks in quotes"
        };
        sink.error_hint(
            extra.span,
            format!("{} takes {}; this is one more", name.name(), plural(most)),
            hint,
        );
        return false;
    }
    true
}

fn plural(count: usize) -> String {
    match count {
        0 => "no argument".to_owned(),
        1 => "one argument".to_owned(),
        2 => "two arguments".to_owned(),
        _ => format!("{count} arguments"),
    }
}

/// Known, not supported: an error, but only a warning if all it does is to switch the feature off.
fn refuse(name: DirectiveName, refusal: Refusal, arguments: &[View<'_>], at: SourceSpan, sink: &mut Sink) {
    if is_off(arguments) {
        sink.warn_hint(
            at,
            format!("{} Off has no effect: the feature is not there", name.name()),
            "remove it",
        );
    } else {
        sink.error_hint(at, format!("{} is refused: {}", name.name(), refusal.why), refusal.instead);
    }
}

fn is_off(arguments: &[View<'_>]) -> bool {
    matches!(arguments, [only] if only.bytes.eq_ignore_ascii_case(b"off"))
}

/// The directives that make or change rules. Wrong ones make an empty list, or a node that the caller drops.
fn rules(name: DirectiveName, views: &[View<'_>], words: &[Word], sink: &mut Sink) -> Vec<Directive> {
    let Some(&first) = views.first() else { return Vec::new() };
    let what = &format!("{} takes", name.name());
    let node = match name {
        DirectiveName::Rule => {
            let condition = rule_condition(views, words, sink);
            let actions = views.get(2).map(|&view| action_list::read(view, sink)).unwrap_or_default();
            condition.map(|condition| Directive::Rule(Rule { condition: Some(condition), actions }))
        }
        DirectiveName::Action => {
            Some(Directive::Rule(Rule { condition: None, actions: action_list::read(first, sink) }))
        }
        DirectiveName::RuleScript => {
            let actions = views.get(1).map(|&view| action_list::read(view, sink)).unwrap_or_default();
            sink.warn_hint(
                words[0].span,
                "Lua scripts are not run: this rule never matches",
                "write the check as SecRule, or put the actions in a SecRule of their own",
            );
            Some(Directive::Script { path: first.bytes.into(), actions })
        }
        DirectiveName::DefaultAction => Some(Directive::DefaultAction(action_list::read(first, sink))),
        DirectiveName::Marker if first.bytes.is_empty() => {
            sink.error(words[0].span, "SecMarker needs a name");
            None
        }
        DirectiveName::Marker => Some(Directive::Marker(first.bytes.into())),
        DirectiveName::RuleRemoveById => {
            let ranges: Vec<_> = sink.leniently("it removes nothing", |sink| {
                views.iter().filter_map(|&view| values::id_ranges(view, what, sink)).flatten().collect()
            });
            (!ranges.is_empty()).then_some(Directive::RemoveById(ranges))
        }
        DirectiveName::RuleRemoveByTag => {
            return views.iter().map(|view| Directive::RemoveByTag(view.bytes.into())).collect();
        }
        DirectiveName::RuleRemoveByMsg => {
            return views.iter().map(|view| Directive::RemoveByMsg(view.bytes.into())).collect();
        }
        DirectiveName::RuleUpdateActionById => update_action(first, views, what, sink),
        DirectiveName::RuleUpdateTargetById => {
            let ids = without_link(first, sink);
            let rules = sink.leniently("this changes no rule", |sink| values::id_ranges(ids, what, sink));
            update_target(rules.map(RuleSelector::Ids), views, sink)
        }
        DirectiveName::RuleUpdateTargetByTag => {
            update_target(Some(RuleSelector::Tag(first.bytes.into())), views, sink)
        }
        DirectiveName::RuleUpdateTargetByMsg => {
            update_target(Some(RuleSelector::Msg(first.bytes.into())), views, sink)
        }
        // The caller reads these.
        DirectiveName::Include
        | DirectiveName::IncludeOptional
        | DirectiveName::ArgumentSeparator
        | DirectiveName::ArgumentsLimit
        | DirectiveName::AuditEngine
        | DirectiveName::AuditLog
        | DirectiveName::AuditLog2
        | DirectiveName::AuditLogDirMode
        | DirectiveName::AuditLogFileMode
        | DirectiveName::AuditLogFormat
        | DirectiveName::AuditLogParts
        | DirectiveName::AuditLogRelevantStatus
        | DirectiveName::AuditLogStorageDir
        | DirectiveName::AuditLogType
        | DirectiveName::CacheTransformations
        | DirectiveName::ChrootDir
        | DirectiveName::CollectionTimeout
        | DirectiveName::Compatibility
        | DirectiveName::ComponentSignature
        | DirectiveName::ConnEngine
        | DirectiveName::ConnReadStateLimit
        | DirectiveName::ConnWriteStateLimit
        | DirectiveName::ContentInjection
        | DirectiveName::CookieFormat
        | DirectiveName::CookieV0Separator
        | DirectiveName::DataDir
        | DirectiveName::Dataset
        | DirectiveName::DebugLog
        | DirectiveName::DebugLogLevel
        | DirectiveName::DisableBackendCompression
        | DirectiveName::EventSocket
        | DirectiveName::ExpansionLimit
        | DirectiveName::GeoLookupDb
        | DirectiveName::GsbLookupDb
        | DirectiveName::GuardianLog
        | DirectiveName::HashEngine
        | DirectiveName::HashKey
        | DirectiveName::HashMethodPm
        | DirectiveName::HashMethodRx
        | DirectiveName::HashParam
        | DirectiveName::HttpBlKey
        | DirectiveName::IgnoreRuleCompilationErrors
        | DirectiveName::InterceptOnError
        | DirectiveName::ParseXmlIntoArgs
        | DirectiveName::PcreMatchLimit
        | DirectiveName::PcreMatchLimitRecursion
        | DirectiveName::PdfProtect
        | DirectiveName::PdfProtectMethod
        | DirectiveName::PdfProtectSecret
        | DirectiveName::PdfProtectTimeout
        | DirectiveName::PdfProtectTokenName
        | DirectiveName::ReadStateLimit
        | DirectiveName::RemoteRules
        | DirectiveName::RemoteRulesFailAction
        | DirectiveName::RequestBodyAccess
        | DirectiveName::RequestBodyInMemoryLimit
        | DirectiveName::RequestBodyJsonDepthLimit
        | DirectiveName::RequestBodyLimit
        | DirectiveName::RequestBodyLimitAction
        | DirectiveName::RequestBodyNoFilesLimit
        | DirectiveName::RequestEncoding
        | DirectiveName::ResponseBodyAccess
        | DirectiveName::ResponseBodyLimit
        | DirectiveName::ResponseBodyLimitAction
        | DirectiveName::ResponseBodyMimeType
        | DirectiveName::ResponseBodyMimeTypesClear
        | DirectiveName::RuleEngine
        | DirectiveName::RuleInheritance
        | DirectiveName::RulePerfTime
        | DirectiveName::RxPreFilter
        | DirectiveName::SecondReadings
        | DirectiveName::SemanticDetector
        | DirectiveName::SensorId
        | DirectiveName::ServerSignature
        | DirectiveName::StatusEngine
        | DirectiveName::StreamInBodyInspection
        | DirectiveName::StreamOutBodyInspection
        | DirectiveName::TmpDir
        | DirectiveName::TmpSaveUploadedFiles
        | DirectiveName::UnicodeCodePage
        | DirectiveName::UnicodeMap
        | DirectiveName::UnicodeMapFile
        | DirectiveName::UploadDir
        | DirectiveName::UploadFileLimit
        | DirectiveName::UploadFileMode
        | DirectiveName::UploadKeepFiles
        | DirectiveName::WebAppId
        | DirectiveName::WriteStateLimit
        | DirectiveName::XmlExternalDtd
        | DirectiveName::XmlExternalEntity => None,
    };
    node.into_iter().collect()
}

fn rule_condition(views: &[View<'_>], words: &[Word], sink: &mut Sink) -> Option<Condition> {
    let (&first, &second, word) = (views.first()?, views.get(1)?, words.get(1)?);
    let targets = targets::list(first, sink);
    let operator = operator(second, word.span, sink)?;
    Some(Condition { targets, operator: Spanned { node: operator, span: word.span } })
}

fn operator(view: View<'_>, span: SourceSpan, sink: &mut Sink) -> Option<Operator> {
    let negated = view.bytes.first() == Some(&b'!');
    let blanks = |view: View<'_>| view.bytes.iter().position(|&b| !is_blank(b)).unwrap_or(view.bytes.len());
    let rest = if negated { view.from(1 + blanks(view.from(1))) } else { view };
    let Some(b'@') = rest.bytes.first() else {
        return Some(Operator { negated, name: OperatorName::Rx, argument: rest.bytes.into() });
    };
    let end = rest.bytes.iter().position(|&b| is_blank(b)).unwrap_or(rest.bytes.len());
    let name = rest.slice(1, end);
    let argument = rest.from(end);
    let argument = argument.from(blanks(argument));
    let Some(operator) = name.str().and_then(OperatorName::from_name) else {
        let near = suggest::nearest(&name.show(), OperatorName::ALL.iter().map(|o| o.name()));
        let hint = match near {
            Some(near) => format!("did you mean @{near}?"),
            None => "for a regular expression that begins with @, write @rx before it".to_owned(),
        };
        sink.error_hint(rest.slice(0, end).span(), format!("unknown operator @{}", name.show()), hint);
        return None;
    };
    check_argument(operator, argument, span, sink).then(|| Operator {
        negated,
        name: operator,
        argument: BString::from(argument.bytes),
    })
}

/// Checks an argument as far as that is possible without resolving it.
fn check_argument(operator: OperatorName, argument: View<'_>, span: SourceSpan, sink: &mut Sink) -> bool {
    let missing = argument.bytes.is_empty();
    let place = if missing { span } else { argument.span() };
    match operator.argument() {
        Argument::None if !missing => {
            sink.warn_hint(place, format!("{operator} takes no argument; this one is ignored"), "remove it");
            true
        }
        Argument::None | Argument::Regex | Argument::Text => true,
        Argument::Number if missing => {
            sink.warn_hint(
                place,
                format!("{operator} has no number; it compares with 0"),
                "write the number behind it",
            );
            true
        }
        Argument::Number => {
            let text = argument.trim().bytes;
            let digits = text.strip_prefix(b"-").or_else(|| text.strip_prefix(b"+")).unwrap_or(text);
            let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
            let has_macro = text.windows(2).any(|pair| pair == b"%{");
            if !is_number && !has_macro {
                let number = crate::operators::leading_number(text);
                let message = format!(
                    "{operator} compares with a whole number; {:?} counts as {number}",
                    argument.show()
                );
                sink.warn_hint(place, message, "for texts there is @streq");
            }
            true
        }
        Argument::Addresses | Argument::Bytes if missing => {
            let (needs, so) = if let Argument::Bytes = operator.argument() {
                ("byte values", "it matches every text that is not empty")
            } else {
                ("addresses", "it finds nothing")
            };
            sink.warn_hint(place, format!("{operator} has no {needs}: {so}"), operator.meaning());
            true
        }
        Argument::Words | Argument::File if missing => {
            let needs = if operator.argument() == Argument::Words { "words" } else { "a file name" };
            sink.error_hint(place, format!("{operator} needs {needs}"), operator.meaning());
            false
        }
        Argument::Words | Argument::Addresses | Argument::File | Argument::Bytes => true,
    }
}

/// The ids of `IDS:LINK`: the targets of all links change, as in ModSecurity 2, which does not read the
/// number.
fn without_link<'v>(ids: View<'v>, sink: &mut Sink) -> View<'v> {
    let Some((ids, link)) = ids.split_once(b':') else { return ids };
    sink.warn_hint(
        link.span(),
        "SecRuleUpdateTargetById changes all links of a chain: the number of the link is ignored",
        "remove it together with the colon",
    );
    ids
}

/// `ID[:LINK] ACTIONS`.
fn update_action(first: View<'_>, views: &[View<'_>], what: &str, sink: &mut Sink) -> Option<Directive> {
    let (id, link) = match first.split_once(b':') {
        Some((id, link)) => (id, values::number(link, "the place in the chain is", sink)?),
        None => (first, 0),
    };
    let is_list = id.bytes.iter().any(|&b| b == b'-' || b == b',' || is_blank(b));
    if is_list && sink.leniently("it changes nothing", |sink| values::id_ranges(id, what, sink)).is_some() {
        sink.warn_hint(
            id.span(),
            "SecRuleUpdateActionById takes one id: it changes nothing",
            "write a line for each of the rules",
        );
    }
    if is_list {
        return None;
    }
    let id: RuleId = values::rule_id(id, what, sink)?;
    Some(Directive::UpdateAction { id, link, actions: action_list::read(*views.get(1)?, sink) })
}

fn update_target(rules: Option<RuleSelector>, views: &[View<'_>], sink: &mut Sink) -> Option<Directive> {
    let targets = targets::list(*views.get(1)?, sink);
    let replaced = views.get(2).map(|&view| targets::list(view, sink));
    Some(Directive::UpdateTarget { rules: rules?, targets, replaced })
}
