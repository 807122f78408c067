//! The reference evaluator over the same messages.

use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, SystemTime};

use portcullis_config::Policy;
use portcullis_load::{LoadError, RuleFiles};
use portcullis_reference::{Reference, Request, Response};

use crate::Message;

/// The plainest evaluator with the rules of a policy.
pub struct ZeroLine(Reference);

impl ZeroLine {
    /// # Panics
    ///
    /// If the reference cannot evaluate a rule that the engine has loaded.
    pub fn new(policy: &Policy) -> Result<ZeroLine, LoadError> {
        let loaded = portcullis_load::load(policy)?;
        let reference = Reference::new(&loaded.document, &loaded.sources, &RuleFiles);
        Ok(ZeroLine(reference.unwrap_or_else(|problems| panic!("{problems:?}"))))
    }

    /// True if it interrupts the exchange.
    pub fn blocks(&self, request: &Request) -> bool {
        self.0.run(request).interruption.is_some()
    }
}

impl Message {
    /// As the reference takes it.
    pub fn for_reference(&self) -> Request {
        let head = self.head.strip_suffix(b"\r\n\r\n").unwrap_or(&self.head);
        let head = std::str::from_utf8(head).unwrap_or_else(|error| panic!("a head of ours: {error}"));
        let mut lines = head.split("\r\n");
        let line = lines.next().unwrap_or_default();
        let mut words = line.split(' ');
        let mut word = || words.next().unwrap_or_default().into();
        let headers = lines.filter_map(|line| line.split_once(": "));
        let client = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7));
        let response = self.response.as_ref().map(|body| Response {
            status: 200,
            protocol: "HTTP/1.1".into(),
            headers: vec![
                ("Content-Type".into(), "text/html; charset=utf-8".into()),
                ("Content-Length".into(), body.len().to_string().into()),
            ],
            body: body.as_slice().into(),
        });
        Request {
            client,
            client_port: 4711,
            server: client,
            server_port: 4711,
            unique_id: "9tGzRkqYp3hW".into(),
            time: SystemTime::UNIX_EPOCH + Duration::from_secs(1_760_000_000),
            line: line.into(),
            method: word(),
            uri: word(),
            protocol: word(),
            headers: headers.map(|(name, value)| (name.into(), value.into())).collect(),
            body: (!self.body.is_empty()).then(|| self.body.as_slice().into()),
            response,
            world: Default::default(),
        }
    }
}
