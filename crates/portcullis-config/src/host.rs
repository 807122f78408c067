//! Names of hosts.

/// The hosts that a site serves.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum HostPattern {
    /// Every host no other site names.
    Any,
    /// This host; lower case, without port.
    Exact(String),
    /// Every host under this domain, given with its leading dot, lower case.
    Under(String),
}

impl HostPattern {
    /// The hosts that `text` names, if it can be the name of a host.
    pub(crate) fn parse(text: &str) -> Option<HostPattern> {
        let host = text.to_ascii_lowercase();
        if host == "*" {
            return Some(HostPattern::Any);
        }
        let is_name = |name: &str| {
            !name.is_empty()
                && !name.starts_with('.')
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte))
        };
        match host.strip_prefix('*') {
            Some(rest) => {
                (rest.starts_with('.') && is_name(&rest[1..])).then(|| HostPattern::Under(rest.to_string()))
            }
            None if host.starts_with('[') => {
                let inner = host.strip_prefix('[')?.strip_suffix(']')?;
                inner.parse::<std::net::Ipv6Addr>().ok().map(|_| HostPattern::Exact(host))
            }
            None => is_name(&host).then_some(HostPattern::Exact(host)),
        }
    }
}
