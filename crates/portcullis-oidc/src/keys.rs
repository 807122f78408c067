//! The provider's keys (RFC 7517), and signatures by them.

use data_encoding::BASE64URL_NOPAD;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, RSA_PKCS1_2048_8192_SHA256, RSA_PSS_2048_8192_SHA256, RsaParameters,
    RsaPublicKeyComponents, UnparsedPublicKey,
};
use serde::Deserialize;

/// Keys of a provider; further ones are not looked at.
const KEYS_MAX: usize = 64;
/// Bytes of a coordinate on P-256.
const COORDINATE: usize = 32;

/// Algorithms by which an ID token may be signed: with a key whose public half is all that is known here.
/// That leaves out `none`, and HMAC with a public key in place of a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Algorithm {
    Rs256,
    Ps256,
    Es256,
}

impl Algorithm {
    /// The algorithm of this name in a header.
    pub(crate) fn named(name: &str) -> Option<Algorithm> {
        match name {
            "RS256" => Some(Algorithm::Rs256),
            "PS256" => Some(Algorithm::Ps256),
            "ES256" => Some(Algorithm::Es256),
            _ => None,
        }
    }
}

/// A set of keys as the provider sends it.
#[derive(Deserialize)]
pub(crate) struct RawKeys {
    keys: Vec<serde_json::Value>,
}

#[derive(Deserialize)]
struct RawKey {
    kty: String,
    kid: Option<String>,
    alg: Option<String>,
    #[serde(rename = "use")]
    used_for: Option<String>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

/// A public key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    id: Option<String>,
    /// The only algorithm that it is for.
    algorithm: Option<String>,
    material: Material,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Material {
    /// Modulus and exponent, without leading zeros.
    Rsa(Vec<u8>, Vec<u8>),
    /// A point on P-256, uncompressed.
    P256(Vec<u8>),
}

impl RawKeys {
    /// The keys that can sign an ID token; a provider may have others.
    pub(crate) fn usable(self) -> Vec<Key> {
        let keys = self.keys.into_iter().take(KEYS_MAX);
        keys.filter_map(|value| Key::of(serde_json::from_value(value).ok()?)).collect()
    }
}

impl Key {
    fn of(raw: RawKey) -> Option<Key> {
        if raw.used_for.is_some_and(|purpose| purpose != "sig") {
            return None;
        }
        let bytes = |text: Option<String>| BASE64URL_NOPAD.decode(text?.as_bytes()).ok();
        let number = |text: Option<String>| {
            let bytes = bytes(text)?;
            let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
            Some(bytes.get(zeros..).unwrap_or_default().to_vec())
        };
        let material = match (raw.kty.as_str(), raw.crv.as_deref()) {
            ("RSA", _) => Material::Rsa(number(raw.n)?, number(raw.e)?),
            ("EC", Some("P-256")) => {
                let (x, y) = (bytes(raw.x)?, bytes(raw.y)?);
                let fits = x.len() == COORDINATE && y.len() == COORDINATE;
                Material::P256(fits.then(|| [&[4][..], &x, &y].concat())?)
            }
            _ => return None,
        };
        Some(Key { id: raw.kid, algorithm: raw.alg, material })
    }

    /// True if a token with this header may be signed by the key.
    pub(crate) fn fits(&self, id: Option<&str>, algorithm: Algorithm, name: &str) -> bool {
        let is_kind = matches!(
            (&self.material, algorithm),
            (Material::Rsa(..), Algorithm::Rs256 | Algorithm::Ps256) | (Material::P256(_), Algorithm::Es256)
        );
        let is_named = id.is_none() || self.id.as_deref() == id;
        is_kind && is_named && self.algorithm.as_deref().is_none_or(|own| own == name)
    }

    /// True if the signature is by this key.
    pub(crate) fn verifies(&self, algorithm: Algorithm, message: &[u8], signature: &[u8]) -> bool {
        match (&self.material, algorithm) {
            (Material::Rsa(n, e), Algorithm::Rs256) => {
                rsa(&RSA_PKCS1_2048_8192_SHA256, n, e, message, signature)
            }
            (Material::Rsa(n, e), Algorithm::Ps256) => {
                rsa(&RSA_PSS_2048_8192_SHA256, n, e, message, signature)
            }
            (Material::P256(point), Algorithm::Es256) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(message, signature).is_ok()
            }
            _ => false,
        }
    }
}

fn rsa(parameters: &RsaParameters, n: &[u8], e: &[u8], message: &[u8], signature: &[u8]) -> bool {
    RsaPublicKeyComponents { n, e }.verify(parameters, message, signature).is_ok()
}
