use std::fmt;

/// Why there is no login. No text has a secret or a token in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OidcError {
    /// The provider cannot be asked, or its answer cannot be used: the network, its settings or ours.
    Provider(String),
    /// The provider does not take the code; its reason.
    Refused(String),
    /// The ID token does not show who it is.
    Token(String),
}

impl fmt::Display for OidcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OidcError::Provider(why) => write!(f, "the provider: {why}"),
            OidcError::Refused(why) => write!(f, "the provider refuses the login: {why}"),
            OidcError::Token(why) => write!(f, "the ID token is not valid: {why}"),
        }
    }
}

impl std::error::Error for OidcError {}

impl OidcError {
    pub(crate) fn provider(why: impl Into<String>) -> OidcError {
        OidcError::Provider(why.into())
    }

    pub(crate) fn token(why: impl Into<String>) -> OidcError {
        OidcError::Token(why.into())
    }
}
