//! ID tokens (OpenID Connect Core, 3.1.3.7): signed JSON in compact form (RFC 7515).

use data_encoding::BASE64URL_NOPAD;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::error::OidcError;
use crate::keys::{Algorithm, Key};

/// Seconds by which the provider's clock may differ from ours.
const LEEWAY_S: f64 = 60.0;
/// Bytes of a user's name at the provider (Core, 2).
const SUBJECT_BYTES_MAX: usize = 255;

/// The header of a token, which nobody has signed yet.
#[derive(Deserialize)]
struct Header {
    alg: String,
    kid: Option<String>,
    crit: Option<Value>,
}

/// A token whose signature is still to be verified.
pub(crate) struct Token<'t> {
    algorithm: Algorithm,
    header: Header,
    signed: &'t str,
    payload: Vec<u8>,
    signature: Vec<u8>,
}

/// What a token has to say.
pub(crate) struct Expected<'e> {
    pub(crate) issuer: &'e str,
    pub(crate) client_id: &'e str,
    pub(crate) nonce: &'e str,
    /// The time in seconds since 1970.
    pub(crate) now: u64,
}

impl<'t> Token<'t> {
    pub(crate) fn parse(text: &'t str) -> Result<Token<'t>, OidcError> {
        let odd = || OidcError::token("it has not three parts");
        let (signed, signature) = text.rsplit_once('.').ok_or_else(odd)?;
        let (header, payload) =
            signed.split_once('.').filter(|(_, rest)| !rest.contains('.')).ok_or_else(odd)?;
        let decode = |part: &str| {
            BASE64URL_NOPAD.decode(part.as_bytes()).map_err(|_| OidcError::token("a part is not base64url"))
        };
        let header: Header = serde_json::from_slice(&decode(header)?)
            .map_err(|_| OidcError::token("its header is not the JSON object that it should be"))?;
        // Extensions that have to be understood; none is.
        if header.crit.is_some() {
            return Err(OidcError::token("its header has `crit`"));
        }
        let algorithm = Algorithm::named(&header.alg);
        let algorithm =
            algorithm.ok_or_else(|| OidcError::token("it is not signed by RS256, PS256 or ES256"))?;
        let (payload, signature) = (decode(payload)?, decode(signature)?);
        Ok(Token { algorithm, header, signed, payload, signature })
    }

    /// True if one of the keys may have signed it.
    pub(crate) fn has_key(&self, keys: &[Key]) -> bool {
        self.candidates(keys).next().is_some()
    }

    fn candidates<'k>(&self, keys: &'k [Key]) -> impl Iterator<Item = &'k Key> {
        let (id, algorithm, name) = (self.header.kid.as_deref(), self.algorithm, &*self.header.alg);
        keys.iter().filter(move |key| key.fits(id, algorithm, name))
    }

    /// The claims, if the token is signed by one of the keys and is what is expected.
    pub(crate) fn claims(
        &self,
        keys: &[Key],
        expected: &Expected<'_>,
    ) -> Result<Map<String, Value>, OidcError> {
        if !self.has_key(keys) {
            return Err(OidcError::token("the provider has no key of its `kid` and `alg`"));
        }
        let is_signed = self
            .candidates(keys)
            .any(|key| key.verifies(self.algorithm, self.signed.as_bytes(), &self.signature));
        if !is_signed {
            return Err(OidcError::token("its signature is wrong"));
        }
        let claims: Map<String, Value> = serde_json::from_slice(&self.payload)
            .map_err(|_| OidcError::token("its content is not a JSON object"))?;
        check(&claims, expected).map_err(OidcError::token)?;
        Ok(claims)
    }
}

/// Checks everything but the signature.
fn check(claims: &Map<String, Value>, expected: &Expected<'_>) -> Result<(), &'static str> {
    let text = |name: &str| claims.get(name).and_then(Value::as_str);
    let time = |name: &str| claims.get(name).map(Value::as_f64);
    if text("iss") != Some(expected.issuer) {
        return Err("it is of another provider (`iss`)");
    }
    let (is_for_us, is_for_others) = match claims.get("aud") {
        Some(Value::String(audience)) => (audience == expected.client_id, false),
        Some(Value::Array(all)) => {
            (all.iter().any(|one| one == expected.client_id), all.iter().any(|one| one != expected.client_id))
        }
        _ => (false, false),
    };
    if !is_for_us {
        return Err("it is for another client (`aud`)");
    }
    match claims.get("azp") {
        Some(party) if party != expected.client_id => return Err("it was given to another client (`azp`)"),
        None if is_for_others => {
            return Err("it is for several clients and names none that it was given to (`azp`)");
        }
        _ => {}
    }
    let now = expected.now as f64;
    match time("exp").flatten() {
        Some(end) if now < end + LEEWAY_S => {}
        Some(_) => return Err("it has expired (`exp`); compare the clocks"),
        None => return Err("it has no end (`exp`)"),
    }
    match time("iat").flatten() {
        Some(issued) if issued <= now + LEEWAY_S => {}
        Some(_) => return Err("it was issued in the future (`iat`); compare the clocks"),
        None => return Err("it has no time of issue (`iat`)"),
    }
    if let Some(begin) = time("nbf")
        && !begin.is_some_and(|begin| begin <= now + LEEWAY_S)
    {
        return Err("it is not valid yet (`nbf`); compare the clocks");
    }
    if text("nonce") != Some(expected.nonce) {
        return Err("it is of another login (`nonce`)");
    }
    let subject = text("sub").unwrap_or_default();
    if !(1..=SUBJECT_BYTES_MAX).contains(&subject.len()) || subject.chars().any(char::is_control) {
        return Err("it names no user (`sub`)");
    }
    Ok(())
}
