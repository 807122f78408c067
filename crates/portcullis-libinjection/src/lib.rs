//! stub
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Fingerprint;
#[allow(missing_docs)]
impl Fingerprint {
    pub fn as_str(&self) -> &str {
        ""
    }
}
#[allow(missing_docs)]
pub fn sqli(_: &[u8]) -> Option<Fingerprint> {
    None
}
#[allow(missing_docs)]
pub fn xss(_: &[u8]) -> bool {
    false
}
