//! The client against a provider that lies, stalls and floods, over real sockets on loopback.
#![allow(clippy::unwrap_used, reason = "tests")]

mod answers;
mod login;
mod tokens;

use std::time::Duration;

use portcullis_oidc::{OidcError, Provider, Settings, Subject};
use portcullis_testkit::oidc::{CLIENT, Conduct, TestProvider};

/// A moment.
const NOW: u64 = 1_790_000_000;
const BACK: &str = "https://waf.internal:9443/api/v1/login/oidc/callback";

/// A provider and its client.
struct Pair {
    server: TestProvider,
    client: Provider,
}

impl Pair {
    fn new() -> Pair {
        Pair::with(|_| {})
    }

    /// With other settings of the client.
    fn with(change: impl FnOnce(&mut Settings)) -> Pair {
        let server = TestProvider::start(NOW).unwrap();
        let mut settings = Settings {
            issuer: server.issuer(),
            client_id: CLIENT.to_owned(),
            client_secret_file: None,
            scopes: vec!["openid".to_owned(), "profile".to_owned()],
            ca: None,
            groups_claim: "groups".to_owned(),
            timeout: Duration::from_secs(5),
        };
        change(&mut settings);
        Pair { client: Provider::new(settings).unwrap(), server }
    }

    /// With other conduct of the provider.
    fn conduct(change: impl FnOnce(&mut Conduct)) -> Pair {
        let pair = Pair::new();
        pair.server.set(change);
        pair
    }

    /// A whole login at a time.
    fn log_in_at(&self, now: u64) -> Result<Subject, OidcError> {
        let (url, pending) = self.client.begin(BACK, now)?;
        let back = self.server.log_in(&url).expect("the URL of a login");
        assert_eq!((&*back.redirect_uri, &*back.state), (BACK, pending.state()));
        self.client.finish(&pending, &back.code, now)
    }

    fn log_in(&self) -> Result<Subject, OidcError> {
        self.log_in_at(NOW)
    }
}

/// The reason of an error of this kind.
fn token(result: Result<Subject, OidcError>) -> String {
    match result {
        Err(OidcError::Token(why)) => why,
        other => panic!("{other:?}"),
    }
}

/// The reason of an error of this kind.
fn provider(result: Result<Subject, OidcError>) -> String {
    match result {
        Err(OidcError::Provider(why)) => why,
        other => panic!("{other:?}"),
    }
}
