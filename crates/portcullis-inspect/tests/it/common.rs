//! Helpers that the tests of inspection share.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use portcullis_compile::compile;
use portcullis_engine::Plan;
use portcullis_event::{DetectionMode, Redactor};
use portcullis_http::h1::{Compat, Limits, Parsed, RequestHead, RequestParser};
use portcullis_inspect::{Connection, Inspection, Inspector, PolicyNames, Scratch, Semantic, SemanticPolicy};
use portcullis_seclang::{MemoryFiles, Root, parse};
use portcullis_semantic::{Detectors, Level};
use portcullis_store::Store;

/// Those of the product.
pub static DETECTORS: LazyLock<Arc<Detectors>> = LazyLock::new(|| Arc::new(Detectors::new()));

/// The plan of rules without a mistake.
pub fn plan(rules: &str) -> Plan {
    let files = MemoryFiles::default();
    let parsed = parse(&[Root::Text { name: "test.conf".into(), text: rules.into() }], &files);
    let compiled = compile(&parsed.document, &parsed.sources, &files);
    compiled.plan.unwrap_or_else(|| panic!("{:?} {:?}", parsed.diagnostics, compiled.diagnostics))
}

/// Runs these rules, and no detector.
pub fn inspector(plan: Plan) -> Inspector {
    Inspector::new(Arc::new(plan), Arc::new(Redactor::default()), Arc::new(Store::default()))
}

/// The semantic detector with these settings, which looks at answers, too.
pub fn semantic(detectors: &Arc<Detectors>, policy: SemanticPolicy) -> Semantic {
    Semantic {
        detectors: Arc::clone(detectors),
        level: Level::Balanced,
        policy: Arc::new(policy),
        response_bodies: true,
        response_wait: Duration::MAX,
    }
}

/// Runs the detectors of the product, and these rules as far as the mode `semantic` has some.
pub fn semantic_inspector(rules: &str, policy: SemanticPolicy) -> Arc<Inspector> {
    let semantic = semantic(&DETECTORS, policy);
    Arc::new(inspector(plan(rules)).with_semantic(DetectionMode::Semantic, semantic))
}

/// The first request on a connection.
pub fn begin(inspector: &Arc<Inspector>) -> Box<Inspection> {
    let names = PolicyNames { site: "shop".into(), route: "/".into(), generation: 3 };
    let connection = Connection {
        client: "192.0.2.7:4711".parse().unwrap(),
        server: "192.0.2.1:80".parse().unwrap(),
        request_id: "r-1".to_owned(),
        epoch_millis: 1_700_000_000_123,
        utc_offset_seconds: 0,
        tls: false,
        environment: Vec::new(),
        keep_request_bytes: 64 << 10,
        capture_share: 0.0,
    };
    inspector.begin(&names, connection, Scratch::default())
}

/// The head that a text begins with.
pub fn request_head(text: &str) -> RequestHead {
    match RequestParser::new(Limits::default(), Compat::Strict).parse(text.as_bytes()) {
        Parsed::Head(head) => head,
        _ => panic!("no head: {text}"),
    }
}
