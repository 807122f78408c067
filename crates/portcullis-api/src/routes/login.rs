//! `POST /login`, `POST /logout`, `GET /session`, `POST /session/password`.
//!
//! Computing a password takes CPU time from the proxy beside it. So logins go through two
//! lanes of one at a time: one for users where they have logged in before, and one for everybody else, which
//! is slowed down and whose queue is short. Strangers cannot keep an administrator waiting.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header::{SET_COOKIE, USER_AGENT};
use http::{HeaderMap, HeaderValue, StatusCode};
use portcullis_identity::{
    Actor, Change, Decision, IdentityError, Origin, Proof, SESSION_S, Throttle, User, csrf_token,
};
use serde::{Deserialize, Serialize};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, sleep_until};
use utoipa::ToSchema;

use crate::access::{Credential, Principal, new_session, session_cookie};
use crate::context::{Context, lock, time};
use crate::extract::Body;
use crate::problem::{Kind, Problem};
use crate::routes::tokens::RoleName;
use crate::settings::Peer;

/// Bytes of a user's name; longer ones name nobody.
const NAME_MAX: usize = 64;
/// Failed logins that the audit trail gets in a minute; more are counted in the next entry.
const LOGGED_A_MINUTE: u32 = 10;

/// Positions in [`crate::context::LOGIN_FAILURES`].
pub(crate) const WRONG: usize = 0;
const THROTTLED: usize = 1;
const BUSY: usize = 2;
pub(crate) const SETUP: usize = 3;

/// Credentials of a login.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Login {
    name: String,
    #[schema(format = Password)]
    password: String,
    /// The one-time code of an authenticator app, if the user has one.
    code: Option<String>,
}

/// A session.
#[derive(Serialize, ToSchema)]
pub(crate) struct SessionItem {
    /// The user's name.
    name: String,
    role: RoleName,
    /// The sites that the user is limited to; null: all.
    sites: Option<Vec<String>>,
    /// For the header `X-CSRF-Token` of changes.
    csrf_token: String,
    /// Latest end (RFC 3339).
    expires: String,
}

/// Begins a session; the response sets its cookie.
#[utoipa::path(post, path = "/login", tag = "session", operation_id = "login", request_body = Login,
    responses((status = 200, body = SessionItem, description = "The session."),
        (status = 401, body = Problem, content_type = "application/problem+json",
            description = "Name, password or code are wrong, or a code is needed."),
        (status = 429, body = Problem, content_type = "application/problem+json",
            description = "Too many logins have failed; `Retry-After` says when the next may be tried.")))]
pub(crate) async fn login(
    State(context): State<Arc<Context>>,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
    Body(login): Body<Login>,
) -> Result<Response, Problem> {
    let (old, agent) = (session_cookie(&headers).map(str::to_owned), agent(&headers));
    // It ends as it would even if the client leaves meanwhile: leaving must not be a way to try for nothing.
    let work = tokio::spawn(async move {
        let attempt = Attempt::new(&context, peer, &login.name).await?;
        let user = attempt.prove(&context, login.password, login.code).await?;
        let (actor, now) = (attempt.actor(), context.now());
        let (started, network) = (user.clone(), attempt.network.to_string());
        let secret = context.identities(move |identities| {
            if let Some(old) = old {
                identities.end_session(&old, &actor, now)?;
            }
            identities.start_session(&started, &network, &agent, &actor, now)
        });
        let secret = secret.await?;
        let cookie = new_session(&secret);
        let session = SessionItem {
            name: user.name,
            role: user.role.into(),
            sites: user.sites.names(),
            csrf_token: csrf_token(&secret),
            expires: time(now.saturating_add(SESSION_S)),
        };
        let cookie = HeaderValue::try_from(cookie).map_err(|_| Problem::of(Kind::Internal))?;
        Ok(([(SET_COOKIE, cookie)], axum::Json(session)).into_response())
    });
    work.await.map_err(|_| Problem::of(Kind::Internal))?
}

/// Ends the session.
#[utoipa::path(post, path = "/logout", tag = "session", operation_id = "logout",
    responses((status = 204, description = "The session has ended.")))]
pub(crate) async fn logout(
    State(context): State<Arc<Context>>,
    Extension(principal): Extension<Principal>,
) -> Result<Response, Problem> {
    if let Credential::Session { secret, .. } = principal.credential.clone() {
        let (actor, now) = (principal.actor(), context.now());
        context.identities(move |identities| identities.end_session(&secret, &actor, now)).await?;
    }
    Ok((StatusCode::NO_CONTENT, [(SET_COOKIE, ENDED)]).into_response())
}

/// `Set-Cookie` that takes the cookie of a session away.
pub(crate) const ENDED: HeaderValue =
    HeaderValue::from_static("__Host-portcullis=; Path=/; Secure; HttpOnly; SameSite=Strict; Max-Age=0");

/// The user who is logged in, and the token for changes.
#[utoipa::path(get, path = "/session", tag = "session", operation_id = "get_session",
    responses((status = 200, body = SessionItem, description = "The session.")))]
pub(crate) async fn session(
    Extension(principal): Extension<Principal>,
) -> Result<axum::Json<SessionItem>, Problem> {
    let Credential::Session { secret, expires, .. } = principal.credential else {
        return Err(Problem::of(Kind::Forbidden));
    };
    Ok(axum::Json(SessionItem {
        name: principal.name,
        role: principal.role.into(),
        sites: principal.sites.names(),
        csrf_token: csrf_token(&secret),
        expires: time(expires),
    }))
}

/// A user's new password.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PasswordChange {
    /// The password until now.
    #[schema(format = Password)]
    password: String,
    /// The one-time code of an authenticator app, if the user has one.
    code: Option<String>,
    #[schema(min_length = 12, max_length = 1024, format = Password)]
    new_password: String,
}

/// Changes the user's own password and ends all of their sessions.
#[utoipa::path(post, path = "/session/password", tag = "session", operation_id = "change_password",
    request_body = PasswordChange,
    responses((status = 204, description = "The password is changed; log in again."),
        (status = 409, body = Problem, content_type = "application/problem+json",
            description = "The user logs in at a provider."),
        (status = 422, body = Problem, content_type = "application/problem+json",
            description = "The new password is not allowed."),
        (status = 429, body = Problem, content_type = "application/problem+json",
            description = "Too many logins have failed.")))]
pub(crate) async fn password(
    State(context): State<Arc<Context>>,
    Extension(principal): Extension<Principal>,
    Body(order): Body<PasswordChange>,
) -> Result<Response, Problem> {
    let work = tokio::spawn(async move {
        let name = principal.name.clone();
        let has_password = context.identities(move |identities| match identities.user(&name)? {
            Some(user) if user.origin != Origin::Local => Err(IdentityError::Provided),
            _ => Ok(()),
        });
        has_password.await?;
        let attempt = Attempt::new(&context, principal.peer, &principal.name).await?;
        let user = attempt.prove(&context, order.password, order.code).await?;
        let permit = password_permit(&context).await?;
        let (actor, now) = (principal.actor(), context.now());
        let change = Change { password: Some(order.new_password), ..Change::default() };
        let changed = context.identities(move |identities| {
            let _permit = permit;
            identities.change_user(&user.name, Some(user.edition()), &change, &actor, now)
        });
        changed.await?;
        Ok((StatusCode::NO_CONTENT, [(SET_COOKIE, ENDED)]).into_response())
    });
    work.await.map_err(|_| Problem::of(Kind::Internal))?
}

/// The browser as it names itself, for the list of sessions.
pub(crate) fn agent(headers: &HeaderMap) -> String {
    headers.get(USER_AGENT).map_or_else(String::new, |value| String::from_utf8_lossy(value.as_bytes()).into())
}

/// A permit for one computation of a password, for those who are logged in.
pub(crate) async fn password_permit(context: &Context) -> Result<OwnedSemaphorePermit, Problem> {
    Arc::clone(&context.known_lane).acquire_owned().await.map_err(|_| Problem::of(Kind::Draining))
}

/// An attempt to show that a client is a user.
struct Attempt {
    name: String,
    network: std::net::IpAddr,
    is_known: bool,
    peer: Peer,
}

impl Attempt {
    async fn new(context: &Context, peer: Peer, name: &str) -> Result<Attempt, Problem> {
        let name = name.trim().to_ascii_lowercase();
        let name = if name.len() <= NAME_MAX { name } else { String::new() };
        let network = Throttle::network(peer.address);
        let (asked, at) = (name.clone(), network.to_string());
        let is_known = context.identities(move |identities| identities.is_known_network(&asked, &at)).await?;
        Ok(Attempt { name, network, is_known, peer })
    }

    /// As the audit trail has it.
    fn actor(&self) -> Actor {
        Actor { name: format!("user:{}", self.name), address: Some(self.peer.address.to_string()) }
    }

    async fn prove(
        &self,
        context: &Arc<Context>,
        password: String,
        code: Option<String>,
    ) -> Result<User, Problem> {
        let now = context.now();
        let decision = lock(&context.throttle).begin(&self.name, self.network, self.is_known, now);
        if let Decision::Wait(seconds) = decision {
            self.failed(context, THROTTLED, "too many attempts").await?;
            return Err(Problem::of(Kind::TooManyLogins).retry_after(seconds));
        }
        let Some(permit) = self.lane(context).await else {
            lock(&context.throttle).withdraw(&self.name, self.network, self.is_known);
            context.login_failures.inc(BUSY);
            return Err(Problem::with(Kind::Busy, "too many logins at a time"));
        };
        let began = Instant::now();
        let name = self.name.clone();
        let proof = context
            .identities(move |identities| identities.prove(&name, &password, code.as_deref(), now))
            .await;
        if !self.is_known {
            let end = began + context.limits.stranger_login_time;
            tokio::spawn(async move {
                sleep_until(end).await;
                drop(permit);
            });
        }
        match proof? {
            Proof::Is(user) => {
                lock(&context.throttle).succeeded(&self.name, self.network, self.is_known);
                Ok(user)
            }
            Proof::CodeNeeded => {
                lock(&context.throttle).withdraw(&self.name, self.network, self.is_known);
                Err(Problem::of(Kind::CodeNeeded))
            }
            Proof::Wrong => {
                self.failed(context, WRONG, "").await?;
                Err(Problem::of(Kind::WrongLogin))
            }
        }
    }

    /// Waits for the lane to be free; none if too many strangers wait already.
    async fn lane(&self, context: &Context) -> Option<OwnedSemaphorePermit> {
        if self.is_known {
            return Arc::clone(&context.known_lane).acquire_owned().await.ok();
        }
        let _waiting = context.waiting.try_acquire().ok()?;
        Arc::clone(&context.stranger_lane).acquire_owned().await.ok()
    }

    async fn failed(&self, context: &Context, reason: usize, detail: &str) -> Result<(), Problem> {
        context.login_failures.inc(reason);
        let object = format!("user {}", self.name);
        log_failure(context, self.peer, "login.failed", object, detail).await
    }
}

/// Failed logins of this minute.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    minute: u64,
    logged: u32,
    unlogged: u64,
}

impl Failures {
    /// Number of failures that the audit trail has not got, if it is to get another one.
    fn admit(&mut self, now: u64) -> Option<u64> {
        if self.minute != now / 60 {
            (self.minute, self.logged) = (now / 60, 0);
        }
        if self.logged >= LOGGED_A_MINUTE {
            self.unlogged += 1;
            return None;
        }
        self.logged += 1;
        Some(std::mem::take(&mut self.unlogged))
    }
}

/// Tells the audit trail of a failure, unless it had many in this minute: who fails on purpose must not fill
/// the disk.
pub(crate) async fn log_failure(
    context: &Context,
    peer: Peer,
    action: &'static str,
    object: String,
    detail: &str,
) -> Result<(), Problem> {
    let now = context.now();
    let Some(unlogged) = lock(&context.failures).admit(now) else { return Ok(()) };
    let mut detail = detail.to_owned();
    if unlogged > 0 {
        detail.push_str(&format!("; {unlogged} failures before it are not listed"));
    }
    let actor = Actor { name: "unknown".to_owned(), address: Some(peer.address.to_string()) };
    context.identities(move |log| log.record(&actor, action, &object, &detail, now)).await
}
