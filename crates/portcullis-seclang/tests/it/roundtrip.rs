//! Round trip: printed text parses to the same tree.

use bstr::{BString, ByteVec};
use portcullis_decode::Transformation;
use portcullis_seclang::ast::*;
use portcullis_seclang::operators::{Argument, OperatorName};
use portcullis_seclang::settings::*;
use portcullis_seclang::{DiskFiles, MemoryFiles, Parsed, Root, SourceSpan, parse, print};
use portcullis_types::{Phase, RuleId, Severity, Shape, Variable};
use proptest::collection::vec;
use proptest::prelude::*;

fn read(text: &[u8]) -> Parsed {
    parse(&[Root::Text { name: "test.conf".into(), text: text.to_vec() }], &MemoryFiles::default())
}

/// Prints, reads, compares; returns what was printed.
fn check(document: &Document) -> Vec<u8> {
    let printed = print(document);
    let again = read(&printed);
    let shown = || String::from_utf8_lossy(&printed).into_owned();
    let errors: Vec<String> = again.diagnostics.iter().map(|d| d.render(&again.sources)).collect();
    assert!(!again.has_errors(), "{}\n{}", shown(), errors.join("\n"));
    let (expected, found) = (document.clone().without_spans(), again.document.without_spans());
    assert_eq!(expected.directives.len(), found.directives.len(), "{}", shown());
    for (expected, found) in expected.directives.iter().zip(&found.directives) {
        assert_eq!(expected, found, "{}", shown());
    }
    printed
}

/// The folder of the CRS (`make crs`). Where it is missing, the test is left out, except in CI.
fn crs_rules() -> Option<std::path::PathBuf> {
    match portcullis_testkit::crs::rules() {
        Ok(folder) => Some(folder.join("rules/*.conf")),
        Err(missing) if std::env::var_os("CI").is_some() => panic!("{missing}"),
        Err(missing) => {
            eprintln!("skipped: {missing}");
            None
        }
    }
}

#[test]
fn the_core_rule_set_reads_without_a_message_and_round_trips() {
    let Some(pattern) = crs_rules() else { return };
    let parsed = parse(&[Root::File(pattern)], &DiskFiles);
    let shown: Vec<String> = parsed.diagnostics.iter().map(|d| d.render(&parsed.sources)).collect();
    assert!(shown.is_empty(), "{}", shown.join("\n"));
    let rules = parsed.document.directives.iter().filter(|d| matches!(d.node, Directive::Rule(_))).count();
    assert!(rules > 500, "only {rules} rules");
    let printed = check(&parsed.document);
    assert_eq!(print(&read(&printed).document), printed, "printing is a fixed point");
    eprintln!("{} directives, {rules} rules", parsed.document.directives.len());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_tree_round_trips(directives in vec(directive(), 0..6)) {
        let directives = directives.into_iter().map(spanned).collect();
        check(&Document { directives, ..Document::default() });
    }

    #[test]
    fn any_text_reads_without_panic_and_what_is_kept_round_trips(lines in vec(noisy_line(), 0..12)) {
        let text = lines.concat();
        let parsed = read(&text);
        for diagnostic in &parsed.diagnostics {
            diagnostic.render(&parsed.sources);
        }
        check(&parsed.document);
    }
}

fn spanned<T>(node: T) -> Spanned<T> {
    Spanned { node, span: SourceSpan::default() }
}

/// Texts full of the bytes that mean something somewhere.
fn text() -> impl Strategy<Value = BString> {
    let byte = prop_oneof![
        4 => b'a'..=b'e',
        4 => prop::sample::select(b" \t\r\"'\\,|:;=+-!&@#%{}/()<>.*0\x00\xff\x0b`".to_vec()),
    ];
    vec(byte, 0..8).prop_map(BString::from)
}

fn some_text() -> impl Strategy<Value = BString> {
    text().prop_filter("empty", |text| !text.is_empty())
}

fn trimmed() -> impl Strategy<Value = BString> {
    let blank = |b: &u8| matches!(b, b' ' | 9..=13);
    some_text().prop_filter("blanks", move |t| !t.first().is_some_and(blank) && !t.last().is_some_and(blank))
}

/// Values of a header field: no blanks around them, no control characters but a tab.
fn field_value() -> impl Strategy<Value = BString> {
    text().prop_map(|mut text| {
        text.retain(|&b| !b.is_ascii_control() || b == b'\t');
        text.trim_ascii().into()
    })
}

fn without(text: impl Strategy<Value = BString>, byte: u8) -> impl Strategy<Value = BString> {
    text.prop_filter("byte", move |text| !text.contains(&byte))
}

fn id() -> impl Strategy<Value = RuleId> {
    (1..=u32::MAX).prop_map(RuleId)
}

fn ids() -> impl Strategy<Value = Vec<IdRange>> {
    let one = (1..1000u32, 0..3u32).prop_map(|(first, more)| IdRange { first, last: first + more });
    vec(one, 1..3)
}

fn variable(shapes: &'static [Shape]) -> impl Strategy<Value = Variable> {
    let fitting: Vec<Variable> =
        Variable::ALL.iter().copied().filter(|v| shapes.contains(&v.shape())).collect();
    prop::sample::select(fitting)
}

fn target() -> impl Strategy<Value = Target> {
    let kind = prop_oneof![Just(TargetKind::Values), Just(TargetKind::Count), Just(TargetKind::Exclude)];
    let looks_like_regex = |t: &BString| t.len() > 2 && t.starts_with(b"/") && t.ends_with(b"/");
    let selector = prop_oneof![
        Just(None),
        some_text().prop_filter("regex", move |t| !looks_like_regex(t)).prop_map(|t| Some(Selector::Key(t))),
        some_text().prop_map(|t| Some(Selector::Regex(t))),
    ];
    let keyed = (kind.clone(), variable(&[Shape::Collection, Shape::Persistent]), selector)
        .prop_map(|(kind, variable, selector)| Target { kind, variable, selector });
    let scalar = variable(&[Shape::Scalar]).prop_map(|variable| Target {
        kind: TargetKind::Values,
        variable,
        selector: None,
    });
    let xpath = (kind, prop::option::of(some_text().prop_map(Selector::XPath)))
        .prop_map(|(kind, selector)| Target { kind, variable: Variable::Xml, selector });
    prop_oneof![4 => keyed, 1 => scalar, 1 => xpath]
}

fn targets() -> impl Strategy<Value = Vec<Spanned<Target>>> {
    vec(target().prop_map(spanned), 1..4)
}

fn operator() -> impl Strategy<Value = Operator> {
    let name = prop::sample::select(OperatorName::ALL.to_vec());
    (any::<bool>(), name, some_text(), 0..100i32).prop_map(|(negated, name, text, number)| {
        let blank = |b: &u8| matches!(b, b' ' | 9..=13);
        let may_begin_blank = name == OperatorName::Rx && !negated;
        let argument = match name.argument() {
            Argument::Number => BString::from((number - 50).to_string()),
            _ if may_begin_blank || !blank(&text[0]) => text,
            _ => BString::from("x"),
        };
        Operator { negated, name, argument }
    })
}

fn key() -> impl Strategy<Value = VariableKey> {
    let collection = prop_oneof![Just(Variable::Tx), variable(&[Shape::Persistent])];
    (collection, without(some_text(), b'=')).prop_map(|(collection, key)| VariableKey { collection, key })
}

fn set_var() -> impl Strategy<Value = SetVar> {
    let operation = prop_oneof![
        text()
            .prop_filter("sign", |t| !t.first().is_some_and(|&b| matches!(b, b'+' | b'-' | b' ' | 9..=13)))
            .prop_map(SetVarOperation::Set),
        text().prop_map(SetVarOperation::Add),
        text().prop_map(SetVarOperation::Subtract),
        Just(SetVarOperation::Unset),
    ];
    (key(), operation).prop_map(|(variable, operation)| SetVar { variable, operation })
}

fn ctl() -> impl Strategy<Value = Ctl> {
    let taken = || {
        target().prop_map(|t| Target { kind: TargetKind::Values, ..t }).prop_filter("semicolon", |t| {
            !matches!(&t.selector, Some(Selector::Key(s) | Selector::Regex(s) | Selector::XPath(s)) if s.contains(&b';'))
        })
    };
    prop_oneof![
        prop::sample::select(AuditEngine::ALL.to_vec()).prop_map(Ctl::AuditEngine),
        prop::sample::select(RuleEngine::ALL.to_vec()).prop_map(Ctl::RuleEngine),
        prop::sample::select(BodyProcessor::ALL.to_vec()).prop_map(Ctl::RequestBodyProcessor),
        prop::sample::select(XmlArgs::ALL.to_vec()).prop_map(Ctl::ParseXmlIntoArgs),
        trimmed().prop_map(Ctl::AuditLogParts),
        (0..10u8).prop_map(Ctl::DebugLogLevel),
        any::<bool>().prop_map(Ctl::ForceRequestBodyVariable),
        ("[a-z]{1,8}", trimmed()).prop_map(|(limit, key)| Ctl::RateLimit { limit: limit.into(), key }),
        any::<bool>().prop_map(Ctl::RequestBodyAccess),
        (0..=1u64 << 30).prop_map(Ctl::RequestBodyLimit),
        any::<bool>().prop_map(Ctl::ResponseBodyAccess),
        (0..=1u64 << 30).prop_map(Ctl::ResponseBodyLimit),
        any::<bool>().prop_map(Ctl::HashEngine),
        any::<bool>().prop_map(Ctl::HashEnforcement),
        ids().prop_map(Ctl::RuleRemoveById),
        trimmed().prop_map(Ctl::RuleRemoveByTag),
        trimmed().prop_map(Ctl::RuleRemoveByMsg),
        (ids(), taken()).prop_map(|(ids, target)| Ctl::RuleRemoveTargetById { ids, target }),
        (trimmed(), taken()).prop_map(|(tag, target)| Ctl::RuleRemoveTargetByTag { tag, target }),
        (trimmed(), taken()).prop_map(|(msg, target)| Ctl::RuleRemoveTargetByMsg { msg, target }),
    ]
}

fn action() -> impl Strategy<Value = Action> {
    let texts: Vec<fn(BString) -> Action> = vec![
        Action::Msg,
        Action::LogData,
        Action::Tag,
        Action::Ver,
        Action::Rev,
        Action::Redirect,
        Action::Proxy,
        Action::Pause,
        Action::SkipAfter,
        Action::SetEnv,
        Action::SetSid,
        Action::SetUid,
        Action::SetRsc,
        Action::Exec,
        Action::Append,
        Action::Prepend,
        Action::SanitiseArg,
        Action::SanitiseMatchedBytes,
        Action::SanitiseRequestHeader,
        Action::SanitiseResponseHeader,
    ];
    let bare = vec![
        Action::Block,
        Action::Deny,
        Action::Drop,
        Action::Pass,
        Action::Chain,
        Action::Log,
        Action::NoLog,
        Action::AuditLog,
        Action::NoAuditLog,
        Action::Capture,
        Action::MultiMatch,
        Action::SanitiseMatched,
        Action::TransformNone,
        Action::Allow(AllowScope::Transaction),
        Action::Allow(AllowScope::Phase),
        Action::Allow(AllowScope::Request),
    ];
    prop_oneof![
        6 => (prop::sample::select(texts), text()).prop_map(|(make, text)| make(text)),
        4 => prop::sample::select(bare),
        1 => prop::sample::select(Transformation::ALL.to_vec()).prop_map(Action::Transform),
        1 => (0..8u8).prop_map(|n| Action::Severity(Severity::parse(&n.to_string()).unwrap())),
        1 => any::<u8>().prop_map(Action::Maturity),
        1 => any::<u8>().prop_map(Action::Accuracy),
        1 => (100..600u16).prop_map(Action::Status),
        1 => (1..u32::MAX).prop_map(Action::Skip),
        1 => (without(some_text(), b'='), some_text()).prop_map(|(prefix, uri)| Action::XmlNs { prefix, uri }),
        3 => set_var().prop_map(Action::SetVar),
        1 => (variable(&[Shape::Persistent]), some_text())
            .prop_map(|(collection, key)| Action::InitCol { collection, key }),
        1 => (key(), text()).prop_map(|(variable, seconds)| Action::ExpireVar { variable, seconds }),
        1 => (key(), without(text(), b'/'), text())
            .prop_map(|(variable, amount, seconds)| Action::DeprecateVar { variable, amount, seconds }),
        4 => ctl().prop_map(Action::Ctl),
    ]
}

fn actions() -> impl Strategy<Value = Vec<Spanned<Action>>> {
    let phase = prop::sample::select(Phase::ALL.to_vec()).prop_map(Action::Phase);
    (prop::option::of(id().prop_map(Action::Id)), prop::option::of(phase), vec(action(), 0..5))
        .prop_map(|(id, phase, rest)| id.into_iter().chain(phase).chain(rest).map(spanned).collect())
}

fn setting() -> impl Strategy<Value = Setting> {
    let texts: Vec<fn(BString) -> Setting> = vec![
        Setting::AuditLog,
        Setting::AuditLog2,
        Setting::AuditLogRelevantStatus,
        Setting::AuditLogStorageDir,
        Setting::ComponentSignature,
        Setting::DataDir,
        Setting::DebugLog,
        Setting::EventSocket,
        Setting::SensorId,
        Setting::TmpDir,
        Setting::UploadDir,
        Setting::WebAppId,
    ];
    let numbers: Vec<fn(u64) -> Setting> = vec![
        Setting::ArgumentsLimit,
        Setting::CollectionTimeout,
        Setting::PcreMatchLimit,
        Setting::PcreMatchLimitRecursion,
        Setting::RequestBodyInMemoryLimit,
        Setting::RequestBodyJsonDepthLimit,
        Setting::RequestBodyLimit,
        Setting::RequestBodyNoFilesLimit,
        Setting::ResponseBodyLimit,
        Setting::UploadFileLimit,
    ];
    let expansions = [None, Some(7)].map(|transaction| Setting::ExpansionLimit { text: 5, transaction });
    let switches: Vec<fn(bool) -> Setting> = vec![
        Setting::RequestBodyAccess,
        Setting::ResponseBodyAccess,
        Setting::SecondReadings,
        Setting::StatusEngine,
        Setting::TmpSaveUploadedFiles,
    ];
    let modes: Vec<fn(Option<u32>) -> Setting> =
        vec![Setting::AuditLogDirMode, Setting::AuditLogFileMode, Setting::UploadFileMode];
    let words: Vec<Setting> = AuditEngine::ALL
        .iter()
        .map(|&v| Setting::AuditEngine(v))
        .chain(AuditLogFormat::ALL.iter().map(|&v| Setting::AuditLogFormat(v)))
        .chain(AuditLogType::ALL.iter().map(|&v| Setting::AuditLogType(v)))
        .chain(CookieFormat::ALL.iter().map(|&v| Setting::CookieFormat(v)))
        .chain(LimitAction::ALL.iter().map(|&v| Setting::RequestBodyLimitAction(v)))
        .chain(LimitAction::ALL.iter().map(|&v| Setting::ResponseBodyLimitAction(v)))
        .chain(RuleEngine::ALL.iter().map(|&v| Setting::RuleEngine(v)))
        .chain(UploadKeepFiles::ALL.iter().map(|&v| Setting::UploadKeepFiles(v)))
        .chain(SemanticDetector::ALL.iter().map(|&v| Setting::SemanticDetector(v)))
        .chain(XmlArgs::ALL.iter().map(|&v| Setting::ParseXmlIntoArgs(v)))
        .chain([Setting::XmlExternalEntity(false), Setting::ResponseBodyMimeTypesClear])
        .chain([Setting::RuleInheritance(true)])
        .chain(expansions)
        .chain([Setting::AuditLogParts("ABZ".into())])
        .collect();
    prop_oneof![
        (prop::sample::select(texts), some_text()).prop_map(|(make, text)| make(text)),
        field_value().prop_map(Setting::ServerSignature),
        (prop::sample::select(numbers), 0..=2_592_000u64).prop_map(|(make, n)| make(n)),
        (prop::sample::select(switches), any::<bool>()).prop_map(|(make, on)| make(on)),
        (prop::sample::select(modes), prop::option::of(0..0o10000u32)).prop_map(|(make, bits)| make(bits)),
        prop::sample::select(words),
        vec(text(), 1..4).prop_map(Setting::ResponseBodyMimeTypes),
        (0..10u8).prop_map(Setting::DebugLogLevel),
        any::<u8>().prop_filter("line break", |&b| b != b'\n').prop_map(Setting::ArgumentSeparator),
        (some_text(), prop::option::of(any::<u32>()))
            .prop_map(|(path, code_page)| Setting::UnicodeMapFile { path, code_page }),
    ]
}

fn directive() -> impl Strategy<Value = Directive> {
    let condition = (targets(), operator())
        .prop_map(|(targets, operator)| Condition { targets, operator: spanned(operator) });
    let selector = || {
        prop_oneof![
            ids().prop_map(RuleSelector::Ids),
            text().prop_map(RuleSelector::Tag),
            text().prop_map(RuleSelector::Msg),
        ]
    };
    prop_oneof![
        8 => (prop::option::of(condition), actions())
            .prop_map(|(condition, actions)| Directive::Rule(Rule { condition, actions })),
        1 => some_text().prop_map(Directive::Marker),
        1 => actions().prop_map(Directive::DefaultAction),
        1 => ids().prop_map(Directive::RemoveById),
        1 => text().prop_map(Directive::RemoveByTag),
        1 => text().prop_map(Directive::RemoveByMsg),
        1 => (selector(), targets(), prop::option::of(targets()))
            .prop_map(|(rules, targets, replaced)| Directive::UpdateTarget { rules, targets, replaced }),
        1 => (id(), 0..5u32, actions()).prop_map(|(id, link, actions)| Directive::UpdateAction { id, link, actions }),
        4 => setting().prop_map(Directive::Setting),
    ]
}

/// A printed directive with a few bytes put in, taken out or changed.
fn noisy_line() -> impl Strategy<Value = Vec<u8>> {
    let noise = vec(
        (
            any::<prop::sample::Index>(),
            0..3u8,
            prop::sample::select(b"\"'\\,|:;=!&@#%/ \n\r\t\xff\x00<".to_vec()),
        ),
        0..4,
    );
    (directive(), noise).prop_map(|(directive, noise)| {
        let mut line = print(&Document { directives: vec![spanned(directive)], refused: Vec::new() });
        for (at, what, byte) in noise {
            if line.is_empty() {
                break;
            }
            let at = at.index(line.len());
            match what {
                0 => line.insert(at, byte),
                1 => line[at] = byte,
                _ => drop(line.remove(at)),
            }
        }
        line.push_byte(b'\n');
        line
    })
}
