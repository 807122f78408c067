//! ID tokens, signed in the right way and in wrong ones.

use std::io;

use data_encoding::BASE64URL_NOPAD;
use ring::hmac;
use ring::rand::SystemRandom;
use ring::rsa::KeyPair as RsaKeyPair;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _, RSA_PKCS1_SHA256, RSA_PSS_SHA256,
    RsaEncoding,
};
use serde_json::{Value, json};

use super::changed;

/// A key of no use but for these tests.
const RSA: &[u8] = include_bytes!("rsa-2048.pk8");

/// How a token is signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sign {
    /// ECDSA on P-256.
    Es256,
    /// RSA, PKCS #1.
    Rs256,
    /// RSA, PSS.
    Ps256,
    /// By a key of P-256 that the provider does not publish, under the name of the one that it does.
    OtherKey,
    /// Not at all.
    None,
    /// HMAC with the modulus of the public RSA key as the secret.
    HmacWithPublicKey,
    /// As `Es256`, and then the claims are changed.
    Altered,
}

/// Keys of a provider.
pub(super) struct Signer {
    random: SystemRandom,
    ec: EcdsaKeyPair,
    other: EcdsaKeyPair,
    rsa: RsaKeyPair,
}

impl Signer {
    pub(super) fn new() -> io::Result<Signer> {
        let random = SystemRandom::new();
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let ec = || {
            let made = EcdsaKeyPair::generate_pkcs8(algorithm, &random).map_err(odd)?;
            EcdsaKeyPair::from_pkcs8(algorithm, made.as_ref(), &random).map_err(odd)
        };
        let (ec, other) = (ec()?, ec()?);
        Ok(Signer { ec, other, rsa: RsaKeyPair::from_pkcs8(RSA).map_err(odd)?, random })
    }

    /// The public keys, with one that is for something else.
    pub(super) fn keys(&self) -> Value {
        let point = self.ec.public_key().as_ref();
        let (x, y) = point.get(1..).unwrap_or_default().split_at(32);
        let public: ring::rsa::PublicKeyComponents<Vec<u8>> = self.rsa.public().into();
        let text = |bytes: &[u8]| BASE64URL_NOPAD.encode(bytes);
        json!({"keys": [
            {"kty": "oct", "kid": "secret", "k": "c2VjcmV0"},
            {"kty": "RSA", "kid": "rsa", "use": "enc", "n": text(&public.n), "e": text(&public.e)},
            {"kty": "RSA", "kid": "rsa", "use": "sig", "n": text(&public.n), "e": text(&public.e)},
            {"kty": "EC", "crv": "P-256", "kid": "ec", "alg": "ES256", "x": text(x), "y": text(y)},
        ]})
    }

    pub(super) fn token(&self, sign: &Sign, header: &Value, claims: &Value) -> String {
        let (algorithm, kid) = match sign {
            Sign::Es256 | Sign::OtherKey | Sign::Altered => ("ES256", "ec"),
            Sign::Rs256 => ("RS256", "rsa"),
            Sign::Ps256 => ("PS256", "rsa"),
            Sign::None => ("none", "ec"),
            Sign::HmacWithPublicKey => ("HS256", "rsa"),
        };
        let header = changed(json!({"alg": algorithm, "kid": kid, "typ": "JWT"}), header);
        let part = |value: &Value| BASE64URL_NOPAD.encode(value.to_string().as_bytes());
        let signed = format!("{}.{}", part(&header), part(claims));
        let signature = self.signature(sign, signed.as_bytes()).unwrap_or_default();
        let signed = if let Sign::Altered = sign {
            let other = changed(claims.clone(), &json!({"groups": ["waf-admins", "more"]}));
            format!("{}.{}", part(&header), part(&other))
        } else {
            signed
        };
        format!("{signed}.{}", BASE64URL_NOPAD.encode(&signature))
    }

    fn signature(&self, sign: &Sign, message: &[u8]) -> Option<Vec<u8>> {
        let ecdsa = |key: &EcdsaKeyPair| Some(key.sign(&self.random, message).ok()?.as_ref().to_vec());
        let rsa = |padding: &'static dyn RsaEncoding| {
            let mut signature = vec![0; self.rsa.public().modulus_len()];
            self.rsa.sign(padding, &self.random, message, &mut signature).ok()?;
            Some(signature)
        };
        match sign {
            Sign::Es256 | Sign::Altered => ecdsa(&self.ec),
            Sign::OtherKey => ecdsa(&self.other),
            Sign::Rs256 => rsa(&RSA_PKCS1_SHA256),
            Sign::Ps256 => rsa(&RSA_PSS_SHA256),
            Sign::None => None,
            Sign::HmacWithPublicKey => {
                let public: ring::rsa::PublicKeyComponents<Vec<u8>> = self.rsa.public().into();
                let key = hmac::Key::new(hmac::HMAC_SHA256, &public.n);
                Some(hmac::sign(&key, message).as_ref().to_vec())
            }
        }
    }
}

fn odd(error: impl std::fmt::Display) -> io::Error {
    io::Error::other(error.to_string())
}
