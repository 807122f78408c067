//! Fields of a client's certificate.

use rustls::pki_types::CertificateDer;
use sha2::{Digest, Sha256};
use x509_parser::der_parser::asn1_rs::Any;
use x509_parser::prelude::{FromDer, X509Certificate, X509Name};

/// A client's certificate, which was verified.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientCertificate {
    /// Its subject, as RFC 4514 writes it.
    pub subject: String,
    /// The issuer.
    pub issuer: String,
    /// Its serial number, hexadecimal.
    pub serial: String,
    /// The SHA-256 of all of it, hexadecimal.
    pub fingerprint: String,
}

impl ClientCertificate {
    /// Reads the leaf of a chain. One that was verified can be read; if not, it says nothing.
    pub fn new(chain: &[CertificateDer<'_>]) -> Option<Self> {
        let der = chain.first()?;
        let (_, certificate) = X509Certificate::from_der(der).ok()?;
        Some(ClientCertificate {
            subject: name(certificate.subject()),
            issuer: name(certificate.issuer()),
            serial: hex(certificate.raw_serial()),
            fingerprint: hex(&Sha256::digest(der)),
        })
    }

    /// As mod_ssl has it in the environment of a request, where ModSecurity finds it.
    pub fn environment(certificate: Option<&Self>) -> Vec<(&'static str, String)> {
        let Some(certificate) = certificate else { return vec![("SSL_CLIENT_VERIFY", "NONE".to_string())] };
        vec![
            ("SSL_CLIENT_VERIFY", "SUCCESS".to_string()),
            ("SSL_CLIENT_S_DN", certificate.subject.clone()),
            ("SSL_CLIENT_I_DN", certificate.issuer.clone()),
            ("SSL_CLIENT_M_SERIAL", certificate.serial.to_uppercase()),
        ]
    }
}

/// A name as RFC 4514 writes it: the most specific part first.
pub(crate) fn name(name: &X509Name<'_>) -> String {
    let parts: Vec<String> = name
        .iter_rdn()
        .map(|part| {
            let attributes = part.iter().map(|attribute| {
                let oid = attribute.attr_type();
                let kind =
                    abbreviation(&oid.to_id_string()).map_or_else(|| oid.to_id_string(), str::to_string);
                match attribute.as_str() {
                    Ok(text) => format!("{kind}={}", escaped(text)),
                    Err(_) => format!("{kind}=#{}", hex(Any::as_bytes(attribute.attr_value()))),
                }
            });
            attributes.collect::<Vec<_>>().join("+")
        })
        .collect();
    parts.into_iter().rev().collect::<Vec<_>>().join(",")
}

/// The names of RFC 4514, section 3, and that of e-mail addresses, which is common.
fn abbreviation(oid: &str) -> Option<&'static str> {
    Some(match oid {
        "2.5.4.3" => "CN",
        "2.5.4.6" => "C",
        "2.5.4.7" => "L",
        "2.5.4.8" => "ST",
        "2.5.4.9" => "STREET",
        "2.5.4.10" => "O",
        "2.5.4.11" => "OU",
        "0.9.2342.19200300.100.1.25" => "DC",
        "0.9.2342.19200300.100.1.1" => "UID",
        "1.2.840.113549.1.9.1" => "emailAddress",
        _ => return None,
    })
}

/// RFC 4514, 2.4. Text that is not printable ASCII is written as the hexadecimal digits of its UTF-8 bytes,
/// so that it may stand in a header.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    let last = text.len().wrapping_sub(1);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'"' | b'+' | b',' | b';' | b'<' | b'>' | b'\\' => out.extend(['\\', char::from(byte)]),
            b'#' if at == 0 => out.push_str("\\#"),
            b' ' if at == 0 || at == last => out.push_str("\\ "),
            b' '..=b'~' => out.push(char::from(byte)),
            _ => out.push_str(&format!("\\{byte:02x}")),
        }
    }
    out
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_as_rfc_4514_writes_them() {
        let mut params = rcgen::CertificateParams::new(Vec::<String>::new()).unwrap();
        let mut subject = rcgen::DistinguishedName::new();
        subject.push(rcgen::DnType::CountryName, "DE");
        subject.push(rcgen::DnType::OrganizationName, "Shop, Inc. \"X\"");
        subject.push(rcgen::DnType::CommonName, " ann\r\nX-Evil: 1\u{e9}");
        params.distinguished_name = subject;
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        let read = ClientCertificate::new(&[certificate.der().clone()]).unwrap();
        assert_eq!(read.subject, r#"CN=\ ann\0d\0aX-Evil: 1\c3\a9,O=Shop\, Inc. \"X\",C=DE"#);
        assert_eq!(read.issuer, read.subject);
        assert_eq!(read.fingerprint.len(), 64);
        assert!(!read.serial.is_empty());
        assert_eq!(ClientCertificate::new(&[]), None);
    }
}
