//! `GET /login/methods`, `GET /login/oidc`, `GET /login/oidc/callback`.
//!
//! A browser that begins a login gets a cookie, and only with this cookie does its `state` come back: a link
//! that another person made for it logs nobody in. The cookie is `SameSite=Lax`, since the browser comes back
//! from another site; the session's cookie stays `Strict`, and is sent with what the console's page asks.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header::{ACCEPT, CONTENT_TYPE, HOST, LOCATION, SET_COOKIE};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use portcullis_identity::{Decision, IdentityError, Provided, Throttle, digest, random_secret};
use portcullis_oidc::{OidcError, Pending, Subject};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::access::{LOGIN_COOKIE_NAME, check_fetch_site, cookie, new_session, session_cookie};
use crate::context::{Context, blocking, lock};
use crate::extract::Params;
use crate::oidc::{OidcLogin, PENDING_S};
use crate::problem::{Kind, Problem};
use crate::routes::login::{agent, log_failure};
use crate::settings::Peer;

/// The path of the callback, below the console's URL.
const CALLBACK: &str = "/api/v1/login/oidc/callback";
/// Results of logins, as they are counted.
pub(crate) const RESULTS: [&str; 7] = ["ok", "no_role", "disabled", "invalid", "denied", "provider", "busy"];
const OK: usize = 0;
const NO_ROLE: usize = 1;
const DISABLED: usize = 2;
const INVALID: usize = 3;
const DENIED: usize = 4;
const PROVIDER: usize = 5;
const BUSY: usize = 6;

/// Ways to log in.
#[derive(Serialize, ToSchema)]
pub(crate) struct Methods {
    /// `POST /login`; always there.
    password: bool,
    /// `GET /login/oidc`; null if no provider is configured.
    oidc: Option<OidcMethod>,
}

/// Login at an OpenID Connect provider.
#[derive(Serialize, ToSchema)]
pub(crate) struct OidcMethod {
    /// The provider's name, for a button.
    name: String,
    /// Address at which a browser begins.
    url: String,
}

/// Lists the ways to log in.
#[utoipa::path(get, path = "/login/methods", tag = "session", operation_id = "login_methods",
    responses((status = 200, body = Methods, description = "The ways to log in.")))]
pub(crate) async fn methods(State(context): State<Arc<Context>>) -> axum::Json<Methods> {
    let oidc = context.supplies.oidc.as_ref();
    let oidc =
        oidc.map(|login| OidcMethod { name: login.name.clone(), url: "/api/v1/login/oidc".to_owned() });
    axum::Json(Methods { password: true, oidc })
}

/// Sends a browser to the OpenID Connect provider.
#[utoipa::path(get, path = "/login/oidc", tag = "session", operation_id = "begin_oidc_login",
    responses((status = 303, description = "To the provider; a cookie binds the login to the browser."),
        (status = 403, body = Problem, content_type = "application/problem+json",
            description = "A page of another site asks for it."),
        (status = 409, body = Problem, content_type = "application/problem+json",
            description = "No provider is configured."),
        (status = 502, body = Problem, content_type = "application/problem+json",
            description = "The provider cannot be asked.")))]
pub(crate) async fn begin(
    State(context): State<Arc<Context>>,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
) -> Response {
    shown(&headers, try_begin(&context, peer, &headers).await)
}

async fn try_begin(context: &Arc<Context>, peer: Peer, headers: &HeaderMap) -> Result<Response, Problem> {
    let login = configured(context)?;
    check_fetch_site(headers)?;
    let base = login.redirect.clone().unwrap_or_else(|| {
        let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
        format!("{}://{host}", if peer.is_tls { "https" } else { "http" })
    });
    let (now, uri) = (context.now(), format!("{base}{CALLBACK}"));
    let begun = at_provider(context, move |login| login.provider.begin(&uri, now)).await?;
    let (url, pending) = match begun {
        Ok(begun) => begun,
        Err(error) => return Err(failed(context, peer, error).await?),
    };
    let browser = random_secret("").map_err(|_| Problem::of(Kind::Internal))?;
    let network = Throttle::network(peer.address);
    lock(&context.pending_logins).add(pending, digest(&browser), network, now);
    let cookie = login_cookie(&browser, PENDING_S);
    redirect(&url, vec![cookie])
}

/// The parameters with which a browser comes back (RFC 6749, 4.1.2; RFC 9207). Providers add others.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Callback {
    /// The code that the provider gave.
    code: Option<String>,
    /// The `state` of the login.
    state: Option<String>,
    /// The reason why the provider gave no code.
    error: Option<String>,
    /// The provider.
    iss: Option<String>,
}

/// Takes a browser back from the provider, begins a session and sends it to the console.
#[utoipa::path(get, path = "/login/oidc/callback", tag = "session", operation_id = "finish_oidc_login",
    params(Callback),
    responses((status = 303, description = "To the console; the response sets the session's cookie."),
        (status = 401, body = Problem, content_type = "application/problem+json",
            description = "The login was not begun in this browser, or the provider's answer is not valid."),
        (status = 403, body = Problem, content_type = "application/problem+json",
            description = "No group of the user has a role, or the user is disabled."),
        (status = 409, body = Problem, content_type = "application/problem+json",
            description = "No provider is configured."),
        (status = 429, body = Problem, content_type = "application/problem+json",
            description = "Too many logins have failed."),
        (status = 502, body = Problem, content_type = "application/problem+json",
            description = "The provider cannot be asked.")))]
pub(crate) async fn callback(
    State(context): State<Arc<Context>>,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
    query: Result<Params<Callback>, Problem>,
) -> Response {
    let begun = match query {
        Ok(Params(query)) => taken(&context, peer, &headers, query).await,
        Err(problem) => Err(problem),
    };
    let (pending, code, iss) = match begun {
        Ok(begun) => begun,
        Err(problem) => return shown(&headers, Err(problem)),
    };
    let (old, agent) = (session_cookie(&headers).map(str::to_owned), agent(&headers));
    // It ends as it would even if the client leaves meanwhile: leaving must not be a way to try for nothing.
    let work = tokio::spawn(async move {
        let subject = prove(&context, peer, pending, code, iss).await?;
        let secret = admit(&context, peer, subject, old, agent).await?;
        context.oidc_logins.inc(OK);
        redirect("/", vec![new_session(&secret), login_cookie("", 0)])
    });
    shown(&headers, work.await.unwrap_or_else(|_| Err(Problem::of(Kind::Internal))))
}

/// The login that this browser began, which is over with this, and the provider's code for it.
async fn taken(
    context: &Arc<Context>,
    peer: Peer,
    headers: &HeaderMap,
    query: Callback,
) -> Result<(Pending, String, Option<String>), Problem> {
    configured(context)?;
    let browser = cookie(headers, LOGIN_COOKIE_NAME).map(digest);
    let found = browser
        .zip(query.state)
        .and_then(|(browser, state)| lock(&context.pending_logins).take(&state, &browser, context.now()));
    let Some(pending) = found else {
        context.oidc_logins.inc(INVALID);
        log_failure(context, peer, "login.failed", OBJECT.to_owned(), "no login of this browser").await?;
        let message = "this login was not begun in this browser, was finished already, or took more than ten \
                       minutes; begin again";
        return Err(Problem::with(Kind::OidcLogin, message));
    };
    if let Some(error) = query.error {
        context.oidc_logins.inc(DENIED);
        let error: String = error.chars().filter(|char| !char.is_control()).take(100).collect();
        let detail = format!("the provider: {error}");
        log_failure(context, peer, "login.failed", OBJECT.to_owned(), &detail).await?;
        return Err(Problem::with(Kind::OidcLogin, format!("the provider did not log you in: {error}")));
    }
    let Some(code) = query.code else {
        context.oidc_logins.inc(INVALID);
        return Err(Problem::with(Kind::OidcLogin, "the provider's answer has no code; begin again"));
    };
    Ok((pending, code, query.iss))
}

/// The user whom the provider tells for a code. What fails by the client's doing slows it down.
async fn prove(
    context: &Arc<Context>,
    peer: Peer,
    pending: Pending,
    code: String,
    iss: Option<String>,
) -> Result<Subject, Problem> {
    let (now, network) = (context.now(), Throttle::network(peer.address));
    // Not by the account, which is not known yet: strangers must not lock all users of the provider out.
    let account = format!("oidc {network}");
    if let Decision::Wait(seconds) = lock(&context.throttle).begin(&account, network, false, now) {
        context.oidc_logins.inc(BUSY);
        return Err(Problem::of(Kind::TooManyLogins).retry_after(seconds));
    }
    let finished = at_provider(context, move |login| {
        login.provider.check_issuer(iss.as_deref(), now)?;
        login.provider.finish(&pending, &code, now)
    });
    match finished.await {
        Ok(Ok(subject)) => {
            lock(&context.throttle).succeeded(&account, network, false);
            Ok(subject)
        }
        Ok(Err(error)) => {
            if matches!(error, OidcError::Provider(_)) {
                lock(&context.throttle).withdraw(&account, network, false);
            }
            Err(failed(context, peer, error).await?)
        }
        Err(problem) => {
            lock(&context.throttle).withdraw(&account, network, false);
            Err(problem)
        }
    }
}

/// Begins a session of a user of the provider who has a role, and returns its secret.
async fn admit(
    context: &Arc<Context>,
    peer: Peer,
    subject: Subject,
    old: Option<String>,
    agent: String,
) -> Result<String, Problem> {
    let login = configured(context)?;
    let Subject { issuer, subject, name, groups } = subject;
    let whose = format!("{subject} of {issuer}");
    let (role, sites) = match login.grant(&groups) {
        Ok(granted) => granted,
        Err(missing) => {
            return Err(refused(context, peer, login, (issuer, subject, name, groups), missing).await?);
        }
    };
    let (now, network) = (context.now(), Throttle::network(peer.address).to_string());
    let provided = Provided { issuer, subject, name, role, sites };
    let address = Some(peer.address.to_string());
    let secret = context.identities(move |identities| {
        let (user, actor) = match identities.admit(&provided, address, now) {
            Ok(admitted) => admitted,
            Err(IdentityError::Disabled) => return Ok(None),
            Err(error) => return Err(error),
        };
        if let Some(old) = old {
            identities.end_session(&old, &actor, now)?;
        }
        identities.start_session(&user, &network, &agent, &actor, now).map(Some)
    });
    match secret.await? {
        Some(secret) => Ok(secret),
        None => {
            context.oidc_logins.inc(DISABLED);
            let detail = format!("the user is disabled: {whose}");
            log_failure(context, peer, "login.failed", OBJECT.to_owned(), &detail).await?;
            Err(Problem::with(Kind::Forbidden, "this user is disabled here; ask an administrator"))
        }
    }
}

/// Refuses a user whose groups give no role, or no site, and ends their sessions.
async fn refused(
    context: &Context,
    peer: Peer,
    login: &OidcLogin,
    (issuer, subject, name, groups): (String, String, String, Vec<String>),
    missing: &str,
) -> Result<Problem, Problem> {
    let whose = format!("{subject} of {issuer}");
    context.identities(move |identities| identities.dismiss(&issuer, &subject)).await?;
    context.oidc_logins.inc(NO_ROLE);
    let detail = format!("no group has a {missing}: {whose}, groups: {}", groups.join(", "));
    log_failure(context, peer, "login.failed", OBJECT.to_owned(), &detail).await?;
    let message = format!(
        "{} knows you as `{name}`, but none of your groups there has a {missing} here; ask an administrator",
        login.name
    );
    Ok(Problem::with(Kind::NoRole, message))
}

/// What the audit trail says has failed.
const OBJECT: &str = "login at the provider";

fn configured(context: &Context) -> Result<&OidcLogin, Problem> {
    let none = || Problem::with(Kind::NoProvider, "log in with name and password");
    context.supplies.oidc.as_ref().ok_or_else(none)
}

/// Asks the provider on a thread that may block, few at a time: a slow provider must not take the threads
/// that passwords need.
async fn at_provider<T: Send + 'static>(
    context: &Arc<Context>,
    work: impl FnOnce(&OidcLogin) -> Result<T, OidcError> + Send + 'static,
) -> Result<Result<T, OidcError>, Problem> {
    let Ok(permit) = Arc::clone(&context.at_provider).try_acquire_owned() else {
        context.oidc_logins.inc(BUSY);
        return Err(Problem::with(Kind::Busy, "too many logins at the provider at a time"));
    };
    let shared = Arc::clone(context);
    let asked = blocking(move || {
        let _permit = permit;
        Ok(work(configured(&shared)?))
    });
    asked.await?
}

/// Counts and records a failure; the problem for the client.
async fn failed(context: &Context, peer: Peer, error: OidcError) -> Result<Problem, Problem> {
    let (result, kind) = match error {
        OidcError::Provider(_) => (PROVIDER, Kind::Provider),
        OidcError::Refused(_) | OidcError::Token(_) => (INVALID, Kind::OidcLogin),
    };
    context.oidc_logins.inc(result);
    log_failure(context, peer, "login.failed", OBJECT.to_owned(), &error.to_string()).await?;
    let message = match error {
        // Addresses and settings are for administrators: the audit trail has them.
        OidcError::Provider(_) => {
            "the audit trail says why; log in with name and password, or try again".to_owned()
        }
        OidcError::Refused(_) | OidcError::Token(_) => format!("{error}; begin again"),
    };
    Ok(Problem::with(kind, message))
}

/// The cookie that binds a login to a browser. It comes back from the provider, another site, hence `Lax`.
fn login_cookie(value: &str, seconds: u64) -> String {
    format!("{LOGIN_COOKIE_NAME}={value}; Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age={seconds}")
}

fn redirect(to: &str, cookies: Vec<String>) -> Result<Response, Problem> {
    let mut response = StatusCode::SEE_OTHER.into_response();
    let fields = cookies.into_iter().map(|cookie| (SET_COOKIE, cookie)).chain([(LOCATION, to.to_owned())]);
    for (name, value) in fields {
        let value = HeaderValue::try_from(value).map_err(|_| Problem::of(Kind::Internal))?;
        response.headers_mut().append::<HeaderName>(name, value);
    }
    Ok(response)
}

/// The answer; problems as a page for clients that accept one, since people come here by a browser.
fn shown(headers: &HeaderMap, result: Result<Response, Problem>) -> Response {
    let problem = match result {
        Ok(response) => return response,
        Err(problem) => problem,
    };
    let takes = headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if !takes.split(',').any(|kind| kind.trim().starts_with("text/html")) {
        return problem.into_response();
    }
    let text = escaped(problem.summary());
    let page = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Portcullis</title>\
         <h1>You are not logged in</h1><p>{text}</p><p><a href=\"/\">To the login</a></p></html>"
    );
    let mut response = problem.into_response();
    *response.body_mut() = page.into();
    let kind = HeaderValue::from_static("text/html; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

/// A text in a page.
fn escaped(text: &str) -> String {
    let mut page = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '&' => page.push_str("&amp;"),
            '<' => page.push_str("&lt;"),
            '>' => page.push_str("&gt;"),
            '"' => page.push_str("&quot;"),
            '\'' => page.push_str("&#39;"),
            other => page.push(other),
        }
    }
    page
}
