//! Authentication and authorization of requests.
//!
//! A route is registered with the [`Access`] that it needs, and the gate in front of it asks for that before
//! anything of the route runs. A bearer token counts if there is one; otherwise the session of a cookie. A
//! session's changes need the token of its page and our own `Origin` (CSRF).

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http::header::{AUTHORIZATION, COOKIE, ORIGIN, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, Method};
use portcullis_admin::Activity;
use portcullis_identity::{Actor, Role, SESSION_S, Sites, csrf_token, is_same};

use crate::context::Context;
use crate::problem::{Kind, Problem};
use crate::settings::Peer;

/// The name of the session's cookie. Browsers refuse one of this prefix that is not secure, has a domain or
/// is not for every path; so no neighbour of the site can set it.
pub(crate) const COOKIE_NAME: &str = "__Host-portcullis";
/// The cookie that binds a login at a provider to a browser.
pub(crate) const LOGIN_COOKIE_NAME: &str = "__Host-portcullis-login";
/// The header with the session's token.
pub(crate) const CSRF_HEADER: &str = "x-csrf-token";

/// Identities that may ask a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Everybody.
    Public,
    /// An identity with this role, or a higher one, and with these sites.
    Role(Role, Reach),
    /// A user with a session, whatever their role.
    Session,
}

/// What a route is about, and so whether an identity that is limited to some sites may ask it. Every route
/// has one: there is no default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// About no site: the same for everybody.
    NoSite,
    /// About sites, each by itself: the route shows and does only what belongs to the identity's.
    OwnSites,
    /// About all sites at once, or what they share: only for identities of all sites.
    AllSites,
}

impl Reach {
    /// Its name in the document of the API.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Reach::NoSite => "none",
            Reach::OwnSites => "own",
            Reach::AllSites => "all",
        }
    }
}

/// The identity behind a request.
#[derive(Clone, Debug)]
pub(crate) struct Principal {
    pub(crate) name: String,
    pub(crate) role: Role,
    pub(crate) sites: Sites,
    pub(crate) credential: Credential,
    pub(crate) peer: Peer,
}

/// By what they are known.
#[derive(Clone, Debug)]
pub(crate) enum Credential {
    Token(i64),
    /// The session's secret, the ids of its user and itself, and its end.
    Session {
        secret: String,
        user: i64,
        number: i64,
        expires: u64,
    },
}

impl Principal {
    /// As the audit trail has it.
    pub(crate) fn actor(&self) -> Actor {
        let name = match &self.credential {
            Credential::Token(id) => format!("token:{id} ({})", self.name),
            Credential::Session { .. } => format!("user:{}", self.name),
        };
        Actor { name, address: Some(self.peer.address.to_string()) }
    }

    /// Refuses what is meant for a site that is not one of the identity's, or for all of them.
    pub(crate) fn check_site(&self, site: Option<&str>) -> Result<(), Problem> {
        if self.sites.is_all() || site.is_some_and(|site| self.sites.admit(site)) {
            return Ok(());
        }
        let message = format!("you are limited to {}: name one of these sites", self.sites);
        Err(Problem::with(Kind::Forbidden, message))
    }

    /// Key by which streams are counted.
    pub(crate) fn key(&self) -> String {
        match &self.credential {
            Credential::Token(id) => format!("token:{id}"),
            Credential::Session { .. } => format!("user:{}", self.name),
        }
    }

    /// True while the credential works, for this role and these sites.
    pub(crate) async fn is_valid(&self, context: &Context) -> bool {
        let (credential, role, now) = (self.credential.clone(), self.role, context.now());
        let sites = self.sites.clone();
        let found = context.identities(move |identities| match credential {
            Credential::Token(id) => identities.is_token_valid(id, now),
            Credential::Session { secret, .. } => {
                let session = identities.peek_session(&secret, now)?;
                Ok(session.is_some_and(|session| session.user.role >= role && session.user.sites == sites))
            }
        });
        found.await.unwrap_or(false)
    }
}

/// Lets a request to its route if its sender may ask that.
pub(crate) async fn gate(
    State((context, access)): State<(Arc<Context>, Access)>,
    mut request: Request,
    next: Next,
) -> Result<Response, Problem> {
    if access == Access::Public {
        return Ok(next.run(request).await);
    }
    let peer = request.extensions().get::<Peer>().copied().ok_or_else(|| Problem::of(Kind::Internal))?;
    let principal = authenticate(&context, request.method(), request.headers(), peer).await?;
    match access {
        Access::Public => {}
        Access::Role(role, _) if principal.role < role => {
            let message = format!("this needs the role {role}, and yours is {}", principal.role);
            return Err(Problem::with(Kind::Forbidden, message));
        }
        Access::Role(_, Reach::AllSites) if !principal.sites.is_all() => {
            let message = format!("this is about all sites, and you are limited to {}", principal.sites);
            return Err(Problem::with(Kind::Forbidden, message));
        }
        Access::Role(..) => {}
        Access::Session => {
            if matches!(principal.credential, Credential::Token(_)) {
                return Err(Problem::with(
                    Kind::Forbidden,
                    "this is for users who are logged in, not for tokens",
                ));
            }
        }
    }
    if let Some(activity) = request.extensions().get::<Arc<Activity>>() {
        activity.trust();
    }
    request.extensions_mut().insert(principal);
    Ok(next.run(request).await)
}

/// The credential of a request.
async fn authenticate(
    context: &Context,
    method: &Method,
    headers: &HeaderMap,
    peer: Peer,
) -> Result<Principal, Problem> {
    let (now, address) = (context.now(), peer.address.to_string());
    let mut authorizations = headers.get_all(AUTHORIZATION).iter();
    if let Some(value) = authorizations.next() {
        // A sender of two, or of another kind, does not get in by an additional cookie.
        let token = bearer(value).filter(|_| authorizations.next().is_none()).map(str::to_owned);
        let Some(token) = token else { return Err(invalid_token()) };
        let found = context.identities(move |identities| identities.token_of(&token, &address, now)).await?;
        let Some(token) = found else { return Err(invalid_token()) };
        return Ok(Principal {
            name: token.name,
            role: token.role,
            sites: token.sites,
            credential: Credential::Token(token.id),
            peer,
        });
    }
    let Some(secret) = session_cookie(headers).map(str::to_owned) else {
        return Err(Problem::of(Kind::Unauthenticated));
    };
    let (looked_up, expected) = (secret.clone(), csrf_token(&secret));
    let found =
        context.identities(move |identities| identities.session_of(&looked_up, &address, now)).await?;
    let Some(session) = found else {
        return Err(Problem::with(Kind::Unauthenticated, "the session has ended; log in again"));
    };
    check_fetch_site(headers)?;
    if !matches!(*method, Method::GET | Method::HEAD) {
        if !headers.contains_key(ORIGIN) {
            return Err(Problem::with(Kind::OtherOrigin, "changes in a session need the header `Origin`"));
        }
        let sent = headers.get(CSRF_HEADER).map_or(&b""[..], HeaderValue::as_bytes);
        if !is_same(sent, expected.as_bytes()) {
            let message = "send the `csrf_token` of `GET /session` in the header `X-CSRF-Token`";
            return Err(Problem::with(Kind::CsrfToken, message));
        }
    }
    let (name, role, user) = (session.user.name, session.user.role, session.user.id);
    let credential = Credential::Session { secret, user, number: session.number, expires: session.expires };
    // A login may have made the user an administrator since the limits were set.
    let sites = if role == Role::Admin { Sites::All } else { session.user.sites };
    Ok(Principal { name, role, sites, credential, peer })
}

/// Browsers say in this header which page has them ask (Fetch Metadata).
pub(crate) fn check_fetch_site(headers: &HeaderMap) -> Result<(), Problem> {
    match headers.get("sec-fetch-site").map(HeaderValue::as_bytes) {
        None | Some(b"same-origin" | b"none") => Ok(()),
        Some(_) => Err(Problem::of(Kind::OtherOrigin)),
    }
}

/// The token of `Bearer TOKEN` (RFC 6750; the scheme in any case).
fn bearer(value: &HeaderValue) -> Option<&str> {
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim_matches(' '))
}

fn invalid_token() -> Problem {
    let mut problem = Problem::with(Kind::Unauthenticated, "the token is unknown, expired or revoked");
    let challenge = HeaderValue::from_static("Bearer realm=\"portcullis\", error=\"invalid_token\"");
    problem.set_header(WWW_AUTHENTICATE, challenge);
    problem
}

/// `Set-Cookie` of a new session.
pub(crate) fn new_session(secret: &str) -> String {
    format!("{COOKIE_NAME}={secret}; Path=/; Secure; HttpOnly; SameSite=Strict; Max-Age={SESSION_S}")
}

/// The session's secret.
pub(crate) fn session_cookie(headers: &HeaderMap) -> Option<&str> {
    cookie(headers, COOKIE_NAME)
}

/// The value of a cookie. None if there are two: one of them may be another user's.
pub(crate) fn cookie<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let pairs = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut values = pairs.flat_map(|value| value.split(';')).filter_map(|pair| {
        let (own, value) = pair.split_once('=')?;
        (own.trim() == name).then(|| value.trim())
    });
    let value = values.next()?;
    values.next().is_none().then_some(value)
}
