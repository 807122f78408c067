//! A transaction that keeps only what rules read of a message's heads comes to what one does that keeps all:
//! whatever variable is read, as a target, as a count, and in a macro.

use portcullis_engine::{HeadParts, Scratch};
use portcullis_types::{Shape, Variable};

use crate::common::{Headers, Message, Response, assert_equivalent, plan};

const HEADERS: Headers<'_> = &[
    (b"Host", b"shop.example:8080"),
    (b"User-Agent", b"probe/1.0"),
    (b"Cookie", b"sid=abc; theme=dark"),
    (b"Authorization", b"Basic QWxhZGRpbjpvcGVuOnNlc2FtZQ=="),
    (b"X-Original-URL", b"/other?hidden=1"),
    (b"Content-Type", b"application/x-www-form-urlencoded"),
    (b"Content-Length", b"7"),
];

const MESSAGE: Message<'_> = Message {
    line: "POST /a%20b/c.php;v=1?q=x%2527&r=%zz&q HTTP/1.1",
    headers: HEADERS,
    body: b"b=2&c=3",
    response: Some(Response {
        status: 404,
        headers: &[(b"Content-Type", b"text/html"), (b"Content-Length", b"4"), (b"X-Made", b"here")],
        body: b"none",
    }),
};

const SETTINGS: &str = "SecRuleEngine On
SecRequestBodyAccess On
SecResponseBodyAccess On
SecSecondReadings On
";

/// The rules that read `variable`: its values, how many there are, and its first one, in each phase.
fn rules(variable: Variable) -> String {
    let name = variable.name();
    let target = match variable.shape() {
        Shape::Scalar | Shape::Collection => name.to_owned(),
        Shape::Persistent => return String::new(),
        Shape::Xpath => format!("{name}:/*"),
    };
    let mut rules = String::from(SETTINGS);
    for phase in 1..=5 {
        rules += &format!(
            "SecRule {target} \"@rx ^(.*)$\" \"id:{phase}1,phase:{phase},pass,log,capture,logdata:'%{{tx.1}}'\"\n\
             SecAction \"id:{phase}2,phase:{phase},pass,log,logdata:'%{{{name}}} %{{REQUEST_HEADERS.host}}'\"\n"
        );
        if variable.shape() == Shape::Collection {
            rules += &format!(
                "SecRule &{name} \"@ge 0\" \"id:{phase}3,phase:{phase},pass,nolog,setvar:'tx.n{phase}=%{{MATCHED_VAR}}'\"\n"
            );
        }
    }
    rules
}

#[test]
fn whatever_variable_is_read() {
    let mut read = 0;
    for &variable in Variable::ALL {
        let rules = rules(variable);
        // Some are not to be had, as targets or at all.
        let (plan, _) = crate::common::plan_and_said(&rules, &Default::default());
        let Some(plan) = plan else { continue };
        read += 1;
        assert_equivalent(&plan.into(), &mut Scratch::default(), &MESSAGE);
    }
    assert!(read > 60, "{read} variables were read");
}

/// Fields by name, by pattern, in operators and actions: with names in any case.
#[test]
fn fields_by_name() {
    for rule in [
        "SecRule REQUEST_HEADERS:content-TYPE|REQUEST_HEADERS:Cookie \"@rx .\" \"id:1,phase:1,pass,log\"",
        "SecRule REQUEST_HEADERS:/^x-/ \"@rx .\" \"id:1,phase:1,pass,log\"",
        "SecRule &REQUEST_HEADERS:host|&REQUEST_HEADERS:x-none \"@ge 0\" \"id:1,phase:2,pass,log\"",
        "SecRule ARGS:b \"!@streq %{REQUEST_HEADERS.User-Agent}\" \"id:1,phase:2,pass,log\"",
        "SecAction \"id:1,phase:1,pass,nolog,setvar:'tx.agent=%{request_headers.user-agent}'\"",
        "SecAction \"id:1,phase:1,pass,log,msg:'%{REQUEST_COOKIES.sid}',tag:'%{ARGS.q}'\"",
        "SecAction \"id:1,phase:3,deny,log,status:302,redirect:'/%{QUERY_STRING}'\"",
    ] {
        assert_equivalent(&plan(&format!("{SETTINGS}{rule}\n")), &mut Scratch::default(), &MESSAGE);
    }
}

/// The arguments of a query count with those of the body, whether they are kept or not.
#[test]
fn arguments_that_are_only_counted() {
    let rules = format!(
        "{SETTINGS}SecArgumentsLimit 6\n\
         SecRule REQBODY_ERROR \"@eq 1\" \"id:1,phase:2,deny,log\"\n"
    );
    let plan = plan(&rules);
    let mut ends = Vec::new();
    for query in ["", "?", "?a", "?a&b&c", "?a&b&c&", "?a&b&c&d", "?&&&&", "?&&&&&", "?a&b&c&d&e&f&g"] {
        let line = format!("POST /{query} HTTP/1.1");
        let message = Message { line: &line, headers: &HEADERS[5..], body: b"a&b&c", response: None };
        let seen = assert_equivalent(&plan, &mut Scratch::default(), &message);
        ends.push(seen.logged().len());
    }
    assert_eq!(ends, [0, 0, 0, 0, 0, 1, 1, 1, 1]);
}

/// What this is for: rules that read nothing of a head have nothing of it kept.
#[test]
fn nothing_is_kept_that_nothing_reads() {
    let rules = format!(
        "{SETTINGS}SecRule REQUEST_HEADERS:Content-Type \"@rx json\" \"id:1,phase:1,pass,nolog,ctl:requestBodyProcessor=JSON\"\n\
         SecRule REQBODY_ERROR|MULTIPART_STRICT_ERROR \"!@eq 0\" \"id:2,phase:2,deny\"\n"
    );
    let mut transaction = portcullis_engine::Transaction::new(
        plan(&rules),
        std::sync::Arc::new(portcullis_engine::NoCollections),
        Scratch::default(),
        &crate::common::connection(),
    );
    transaction.keep_what_is_read(HeadParts::NONE);
    let line = portcullis_engine::RequestLine {
        line: MESSAGE.line.as_bytes(),
        method: b"POST",
        target: b"/a?b=1",
        protocol: b"HTTP/1.1",
    };
    drop(transaction.request_head(line, HEADERS.iter().copied()));
    let fields: Vec<_> = transaction.values_of(portcullis_engine::Class::RequestHeaders).collect();
    assert_eq!(fields, [(&b"Content-Type"[..], &b"application/x-www-form-urlencoded"[..])]);
    for class in [portcullis_engine::Class::ArgsGet, portcullis_engine::Class::RequestCookies] {
        assert_eq!(transaction.values_of(class).count(), 0, "{class:?}");
    }
    assert_eq!(transaction.scalar_text(Variable::RequestUri), None);
}

/// Secrets are hidden by the values of arguments: who reads a part of a head has those of the query, too.
#[test]
fn arguments_are_kept_for_what_hides_secrets() {
    for target in ["REQUEST_URI", "REQUEST_HEADERS", "REQUEST_LINE"] {
        let rules = format!("{SETTINGS}SecRule {target} \"@rx x\" \"id:1,phase:1,pass,log,sanitiseArg:b\"\n");
        let mut transaction = portcullis_engine::Transaction::new(
            plan(&rules),
            std::sync::Arc::new(portcullis_engine::NoCollections),
            Scratch::default(),
            &crate::common::connection(),
        );
        transaction.keep_what_is_read(HeadParts::NONE);
        let line = portcullis_engine::RequestLine {
            line: b"GET /a?b=x HTTP/1.1",
            method: b"GET",
            target: b"/a?b=x",
            protocol: b"HTTP/1.1",
        };
        drop(transaction.request_head(line, HEADERS.iter().copied()));
        let kept: Vec<_> = transaction.values_of(portcullis_engine::Class::ArgsGet).collect();
        assert_eq!(kept, [(&b"b"[..], &b"x"[..])], "{target}");
    }
}
