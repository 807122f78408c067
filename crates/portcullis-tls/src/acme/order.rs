//! One order at the authority: from the account to a certificate.

use std::time::Duration;

use instant_acme::{
    Account, AuthorizationStatus, ChallengeType, Error, Identifier, NewAccount, NewOrder, Order, OrderStatus,
    Problem, RetryPolicy,
};

use super::challenges::Challenges;
use super::client::{Client, RetryAfter};
use super::files::KeptAccount;
use super::{Failure, Kind, Settings};

/// For the authority to look at the challenge, and again for it to sign.
const PATIENCE: RetryPolicy = RetryPolicy::new()
    .initial_delay(Duration::from_millis(250))
    .backoff(1.5)
    .timeout(Duration::from_secs(90));

const UNKNOWN_ACCOUNT: &str = "urn:ietf:params:acme:error:accountDoesNotExist";

/// A certificate chain and its key, PEM.
pub(super) struct Issued {
    pub(super) key: String,
    pub(super) chain: String,
}

/// The account that is kept, or a new one.
pub(super) async fn account(settings: &Settings, retry_after: &RetryAfter) -> Result<Account, Failure> {
    let Settings { account: configured, folder, .. } = settings;
    let unusable =
        |error| Failure::new(Kind::Unusable, format_args!("the account cannot be kept or read: {error}"));
    let contact: Vec<String> = configured.contact.iter().map(|address| format!("mailto:{address}")).collect();
    let contact: Vec<&str> = contact.iter().map(String::as_str).collect();
    let builder = Account::builder_with_http(Box::new(Client::new(settings, retry_after)));
    match folder.account().map_err(unusable)? {
        Some(KeptAccount { contact: known, credentials }) => {
            let account = builder.from_credentials(credentials).await?;
            if known != configured.contact {
                account.update_contacts(&contact).await?;
                folder.keep_contact(&configured.contact).map_err(unusable)?;
            }
            Ok(account)
        }
        None => {
            let new =
                NewAccount { contact: &contact, terms_of_service_agreed: true, only_return_existing: false };
            let (account, credentials) = builder.create(&new, configured.directory.clone(), None).await?;
            let kept = KeptAccount { contact: configured.contact.clone(), credentials };
            folder.keep_account(&kept).map_err(unusable)?;
            Ok(account)
        }
    }
}

/// Orders a certificate for `name`.
pub(super) async fn run(account: &Account, name: &str, challenges: &Challenges) -> Result<Issued, Failure> {
    let identifiers = [Identifier::Dns(name.to_string())];
    let mut order = account.new_order(&NewOrder::new(&identifiers)).await?;
    if order.state().status == OrderStatus::Pending {
        prove(&mut order, challenges).await?;
    }
    let key = order.finalize().await?;
    let chain = order.poll_certificate(&PATIENCE).await?;
    Ok(Issued { key, chain })
}

/// Has the authority look at the challenges of an order. They are answered until it has made up its mind.
#[expect(clippy::wildcard_enum_match_arm, reason = "every other state is final")]
async fn prove(order: &mut Order, challenges: &Challenges) -> Result<(), Failure> {
    let mut expected = Vec::new();
    let mut authorizations = order.authorizations();
    while let Some(authorization) = authorizations.next().await {
        let mut authorization = authorization?;
        match authorization.status {
            AuthorizationStatus::Valid => continue,
            AuthorizationStatus::Pending => {}
            other => return Err(Failure::new(Kind::Refused, format_args!("the authorization is {other:?}"))),
        }
        let Some(mut challenge) = authorization.challenge(ChallengeType::Http01) else {
            return Err(Failure::new(Kind::Refused, "the authority offers no HTTP-01 challenge"));
        };
        expected.push(challenges.expect(&challenge.token, challenge.key_authorization().as_str()));
        challenge.set_ready().await.map_err(of_challenge)?;
    }
    match order.poll_ready(&PATIENCE).await {
        Ok(OrderStatus::Ready) => return Ok(()),
        Ok(_) | Err(Error::Api(_)) => {}
        Err(Error::Timeout(_)) => {
            return Err(Failure::new(Kind::Challenge, "the authority has not come to a result in time"));
        }
        Err(error) => return Err(error.into()),
    }
    drop(expected);
    let reason = reason(order).await?;
    Err(Failure::new(Kind::Challenge, reason.as_deref().unwrap_or("the authority does not say why")))
}

/// It may have looked before it answers.
fn of_challenge(error: Error) -> Failure {
    match Failure::from(error) {
        failure @ Failure { kind: Kind::Refused, account_unknown: false, .. } => {
            Failure { kind: Kind::Challenge, ..failure }
        }
        failure => failure,
    }
}

/// The authority's reason for a challenge that failed.
async fn reason(order: &mut Order) -> Result<Option<String>, Error> {
    let mut authorizations = order.authorizations();
    while let Some(authorization) = authorizations.next().await {
        let mut authorization = authorization?;
        let state = authorization.refresh().await?;
        if let Some(problem) = state.challenges.iter().find_map(|challenge| challenge.error.as_ref()) {
            return Ok(Some(problem.to_string()));
        }
    }
    Ok(None)
}

impl From<Error> for Failure {
    #[expect(clippy::wildcard_enum_match_arm, reason = "the library's other errors are of the connection")]
    fn from(error: Error) -> Self {
        let kind = match &error {
            Error::Api(Problem { r#type, status, .. }) => match r#type.as_deref() {
                Some("urn:ietf:params:acme:error:rateLimited") => Kind::RateLimited,
                // A nonce that is refused again and again has nothing to do with the name.
                Some("urn:ietf:params:acme:error:serverInternal" | "urn:ietf:params:acme:error:badNonce") => {
                    Kind::Unreachable
                }
                _ if status.is_some_and(|status| status >= 500) => Kind::Unreachable,
                _ => Kind::Refused,
            },
            Error::Crypto | Error::KeyRejected => Kind::Unusable,
            _ => Kind::Unreachable,
        };
        let account_unknown =
            matches!(&error, Error::Api(problem) if problem.r#type.as_deref() == Some(UNKNOWN_ACCOUNT));
        let failure = Failure::new(kind, error);
        Failure { of_all: failure.of_all || account_unknown, account_unknown, ..failure }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_authority_says_decides_who_waits() {
        let says = |what: &str, status: u16| {
            let problem = serde_json::json!({
                "type": format!("urn:ietf:params:acme:error:{what}"), "detail": "no", "status": status,
            });
            let failure = Failure::from(Error::Api(serde_json::from_value(problem).unwrap()));
            (failure.kind, failure.of_all, failure.account_unknown)
        };
        assert_eq!(says("rejectedIdentifier", 400), (Kind::Refused, false, false));
        assert_eq!(says("rateLimited", 429), (Kind::RateLimited, false, false));
        assert_eq!(says("serverInternal", 500), (Kind::Unreachable, true, false));
        assert_eq!(says("badNonce", 400), (Kind::Unreachable, true, false));
        assert_eq!(says("malformed", 503), (Kind::Unreachable, true, false));
        assert_eq!(says("accountDoesNotExist", 400), (Kind::Refused, true, true));
        let html = serde_json::from_str::<u8>("<html>").unwrap_err();
        assert_eq!(Failure::from(Error::Json(html)).kind, Kind::Unreachable);
    }
}
