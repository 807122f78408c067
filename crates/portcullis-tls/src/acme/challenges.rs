//! Proofs that authorities find under `/.well-known/acme-challenge/`.

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use portcullis_http::message::{BodyFraming, RequestHead};
use portcullis_metrics::{Counter, Registry, catalogue};

/// RFC 8555, 8.3.
const PATH: &[u8] = b"/.well-known/acme-challenge/";

/// The proofs that authorities may come for at present.
pub struct Challenges {
    /// By token.
    pending: ArcSwap<HashMap<String, Arc<str>>>,
    answered: Counter,
}

impl Challenges {
    /// None is pending yet.
    pub fn new(registry: &Registry) -> Self {
        let answered = registry.counter(&catalogue::ACME_CHALLENGES, &[]);
        Challenges { pending: ArcSwap::default(), answered }
    }

    /// The proof that a request asks for, if it is a plain one for a token that is pending.
    pub fn proof(&self, head: &RequestHead) -> Option<Arc<str>> {
        let token = head.target().strip_prefix(PATH)?;
        if !matches!(head.method(), b"GET" | b"HEAD") || head.framing() != BodyFraming::None {
            return None;
        }
        let proof = self.pending.load().get(std::str::from_utf8(token).ok()?).cloned()?;
        self.answered.inc();
        Some(proof)
    }

    /// Answers requests for `token` for as long as what is returned lives.
    pub(super) fn expect(&self, token: &str, proof: &str) -> Expected<'_> {
        self.change(|pending| drop(pending.insert(token.to_string(), proof.into())));
        Expected { challenges: self, token: token.to_string() }
    }

    fn change(&self, change: impl Fn(&mut HashMap<String, Arc<str>>)) {
        self.pending.rcu(|pending| {
            let mut pending = HashMap::clone(pending);
            change(&mut pending);
            pending
        });
    }
}

/// A challenge that is pending.
pub(super) struct Expected<'c> {
    challenges: &'c Challenges,
    token: String,
}

impl Drop for Expected<'_> {
    fn drop(&mut self) {
        self.challenges.change(|pending| drop(pending.remove(&self.token)));
    }
}

#[cfg(test)]
mod tests {
    use portcullis_http::h1::{Compat, Limits, Parsed, RequestParser};

    use super::*;

    fn head(text: &str) -> RequestHead {
        let text = format!("{text}\r\nHost: a.example\r\n\r\n");
        match RequestParser::new(Limits::default(), Compat::Strict).parse(text.as_bytes()) {
            Parsed::Head(head) => head,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn only_plain_requests_for_pending_tokens_are_answered() {
        let registry = Registry::new();
        let challenges = Challenges::new(&registry);
        let ask = |text: &str| challenges.proof(&head(text));
        let asked = "GET /.well-known/acme-challenge/tok-1 HTTP/1.1";
        assert_eq!(ask(asked), None);
        let (one, two) =
            (challenges.expect("tok-1", "tok-1.thumb"), challenges.expect("tok-2", "tok-2.thumb"));
        assert_eq!(ask(asked).as_deref(), Some("tok-1.thumb"));
        assert_eq!(ask(&asked.replace("GET", "HEAD")).as_deref(), Some("tok-1.thumb"));
        for other in [
            &asked.replace("GET", "POST"),
            &format!("{asked}\r\nContent-Length: 1"),
            &asked.replace("tok-1", "tok-1?x"),
            &asked.replace("tok-1", "tok-3"),
            &asked.replace("tok-1", ""),
            &asked.replace("/.well", "/x/../.well"),
            &asked.replace(".well", "%2ewell"),
        ] {
            assert_eq!(ask(other), None, "{other}");
        }
        drop(one);
        assert_eq!(ask(asked), None);
        assert!(ask(&asked.replace("tok-1", "tok-2")).is_some());
        drop(two);
        assert!(registry.render().contains("\nportcullis_acme_challenges_answered_total 3\n"));
    }
}
