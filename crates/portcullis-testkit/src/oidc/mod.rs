//! An OpenID Connect provider that does what a test tells it: correct by default, hostile on demand.

mod signer;

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use data_encoding::BASE64URL_NOPAD;
use form_urlencoded::parse;
use ring::digest::{SHA256, digest};
use serde_json::{Map, Value, json};

use crate::upstream::{Request, Response, Server};
pub use signer::Sign;
use signer::Signer;

/// The name under which it knows its client.
pub const CLIENT: &str = "portcullis";
/// Its user.
pub const SUBJECT: &str = "user-1";

/// Status, fields and body of an answer.
pub type Canned = (u16, Vec<(String, String)>, Vec<u8>);

/// Things that a test may change.
#[derive(Clone, Debug)]
pub struct Conduct {
    /// How ID tokens are signed.
    pub sign: Sign,
    /// Claims of ID tokens in place of the correct ones; null takes one away.
    pub claims: Value,
    /// Members of the header of ID tokens, likewise.
    pub header: Value,
    /// Members of its document, likewise.
    pub document: Value,
    /// Members of the answer of the token endpoint, likewise.
    pub tokens: Value,
    /// Its keys; none: the correct ones.
    pub keys: Option<Value>,
    /// The answer of the userinfo endpoint.
    pub userinfo: Value,
    /// Whole answers, by path.
    pub answers: HashMap<String, Canned>,
    /// The time before each answer of a path.
    pub delays: HashMap<String, Duration>,
    /// The time of issue of ID tokens, in seconds since 1970.
    pub now: u64,
    /// A code works more than once, and whatever is sent with it.
    pub lax: bool,
}

/// A login that the browser began.
#[derive(Clone, Debug)]
struct Login {
    nonce: String,
    challenge: String,
    redirect_uri: String,
}

struct State {
    conduct: Conduct,
    codes: HashMap<String, Login>,
    given: u64,
    asked: HashMap<String, usize>,
    last: HashMap<String, (Option<String>, HashMap<String, String>)>,
}

/// A provider that listens on loopback.
pub struct TestProvider {
    server: Server,
    state: Arc<Mutex<State>>,
    keys: Value,
}

/// With what a browser comes back.
#[derive(Clone, Debug)]
pub struct Back {
    /// The address to which the browser is sent, without a query.
    pub redirect_uri: String,
    /// The code.
    pub code: String,
    /// The state.
    pub state: String,
}

impl TestProvider {
    /// A correct one, whose clock says `now`.
    pub fn start(now: u64) -> io::Result<TestProvider> {
        let signer = Signer::new()?;
        let keys = signer.keys();
        let conduct = Conduct {
            sign: Sign::Es256,
            claims: json!({}),
            header: json!({}),
            document: json!({}),
            tokens: json!({}),
            keys: None,
            userinfo: json!({"sub": SUBJECT}),
            answers: HashMap::new(),
            delays: HashMap::new(),
            now,
            lax: false,
        };
        let state =
            State { conduct, codes: HashMap::new(), given: 0, asked: HashMap::new(), last: HashMap::new() };
        let state = Arc::new(Mutex::new(state));
        let shared = Arc::clone(&state);
        let server = Server::start("127.0.0.1:0", move |request| answer(&shared, &signer, request))?;
        Ok(TestProvider { server, state, keys })
    }

    /// Its address.
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Its name.
    pub fn issuer(&self) -> String {
        format!("http://{}", self.address())
    }

    /// Changes its conduct from now on.
    pub fn set(&self, change: impl FnOnce(&mut Conduct)) {
        change(&mut lock(&self.state).conduct);
    }

    /// Its correct keys, as it publishes them.
    pub fn keys(&self) -> Value {
        self.keys.clone()
    }

    /// How often a path was asked for.
    pub fn asked(&self, path: &str) -> usize {
        lock(&self.state).asked.get(path).copied().unwrap_or(0)
    }

    /// `Authorization` and form of the last request to a path.
    pub fn last(&self, path: &str) -> Option<(Option<String>, HashMap<String, String>)> {
        lock(&self.state).last.get(path).cloned()
    }

    /// What a browser does that was sent to `url`, with a user who agrees. None if the URL is not one of a
    /// login.
    pub fn log_in(&self, url: &str) -> Option<Back> {
        let query = url.strip_prefix(&format!("{}/authorize?", self.issuer()))?;
        let all: HashMap<String, String> = parse(query.as_bytes()).into_owned().collect();
        let has = |name: &str, value: &str| all.get(name).is_some_and(|own| own == value);
        let fits =
            has("response_type", "code") && has("client_id", CLIENT) && has("code_challenge_method", "S256");
        if !fits || !all.get("scope")?.split(' ').any(|scope| scope == "openid") {
            return None;
        }
        let login = Login {
            nonce: all.get("nonce")?.clone(),
            challenge: all.get("code_challenge")?.clone(),
            redirect_uri: all.get("redirect_uri")?.clone(),
        };
        let mut state = lock(&self.state);
        state.given += 1;
        let code = format!("code {}&", state.given);
        let redirect_uri = login.redirect_uri.clone();
        state.codes.insert(code.clone(), login);
        Some(Back { redirect_uri, code, state: all.get("state")?.clone() })
    }
}

fn answer(state: &Mutex<State>, signer: &Signer, request: &Request) -> Response {
    let path = request.path().to_owned();
    let form: HashMap<String, String> = parse(&request.body).into_owned().collect();
    let authorization =
        request.header("authorization").map(|value| String::from_utf8_lossy(value).into_owned());
    let conduct = {
        let mut state = lock(state);
        *state.asked.entry(path.clone()).or_default() += 1;
        state.last.insert(path.clone(), (authorization, form.clone()));
        state.conduct.clone()
    };
    if let Some(delay) = conduct.delays.get(&path) {
        std::thread::sleep(*delay);
    }
    if let Some((status, headers, body)) = conduct.answers.get(&path) {
        return Response { status: *status, headers: headers.clone(), body: body.clone() };
    }
    let host =
        request.header("host").map(|host| String::from_utf8_lossy(host).into_owned()).unwrap_or_default();
    let issuer = format!("http://{host}");
    match path.as_str() {
        "/.well-known/openid-configuration" => document(&issuer, &conduct),
        "/jwks" => says(200, &conduct.keys.clone().unwrap_or_else(|| signer.keys())),
        "/token" => tokens(state, signer, &issuer, &conduct, &form),
        "/userinfo" => says(200, &conduct.userinfo),
        _ => says(404, &json!({"error": "no such path"})),
    }
}

fn document(issuer: &str, conduct: &Conduct) -> Response {
    let honest = json!({
        "issuer": issuer,
        "authorization_endpoint": format!("{issuer}/authorize"),
        "token_endpoint": format!("{issuer}/token"),
        "jwks_uri": format!("{issuer}/jwks"),
        "userinfo_endpoint": format!("{issuer}/userinfo"),
    });
    says(200, &changed(honest, &conduct.document))
}

fn tokens(
    state: &Mutex<State>,
    signer: &Signer,
    issuer: &str,
    conduct: &Conduct,
    form: &HashMap<String, String>,
) -> Response {
    let text = |name: &str| form.get(name).map_or("", String::as_str);
    let found = {
        let mut state = lock(state);
        if conduct.lax { state.codes.get(text("code")).cloned() } else { state.codes.remove(text("code")) }
    };
    let challenge = BASE64URL_NOPAD.encode(digest(&SHA256, text("code_verifier").as_bytes()).as_ref());
    let fits = |login: &Login| {
        let is_same = challenge == login.challenge && text("redirect_uri") == login.redirect_uri;
        text("grant_type") == "authorization_code" && is_same
    };
    let Some(login) = found.filter(|login| conduct.lax || fits(login)) else {
        return says(400, &json!({"error": "invalid_grant"}));
    };
    let honest = json!({
        "iss": issuer, "aud": CLIENT, "sub": SUBJECT, "nonce": login.nonce, "iat": conduct.now,
        "exp": conduct.now + 300, "preferred_username": "anna", "groups": ["waf-admins"],
    });
    let token = signer.token(&conduct.sign, &conduct.header, &changed(honest, &conduct.claims));
    let answer = json!({"access_token": "access", "token_type": "Bearer", "id_token": token});
    says(200, &changed(answer, &conduct.tokens))
}

/// An object with the members of another one in place of its own; null takes one away.
fn changed(honest: Value, changes: &Value) -> Value {
    let mut all = if let Value::Object(all) = honest { all } else { Map::new() };
    for (name, value) in changes.as_object().into_iter().flatten() {
        if value.is_null() {
            all.remove(name);
        } else {
            all.insert(name.clone(), value.clone());
        }
    }
    Value::Object(all)
}

fn says(status: u16, body: &Value) -> Response {
    let headers = vec![("Content-Type".to_owned(), "application/json".to_owned())];
    Response { status, headers, body: body.to_string().into_bytes() }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
