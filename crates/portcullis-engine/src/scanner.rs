use std::net::SocketAddr;
use std::path::PathBuf;

/// A virus scanner that speaks clamd's protocol, for `@inspectFile`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Scanner {
    /// On a Unix socket.
    Unix(PathBuf),
    /// On a TCP port.
    Tcp(SocketAddr),
}

impl Scanner {
    /// Reads `clamd:/path/of/socket` or `clamd:127.0.0.1:3310`; `None` for anything else.
    pub fn parse(argument: &str) -> Option<Scanner> {
        let place = argument.trim().strip_prefix("clamd:")?;
        if place.starts_with('/') {
            return Some(Scanner::Unix(PathBuf::from(place)));
        }
        place.parse().ok().map(Scanner::Tcp)
    }
}

impl std::fmt::Display for Scanner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Scanner::Unix(path) => write!(f, "clamd:{}", path.display()),
            Scanner::Tcp(address) => write!(f, "clamd:{address}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Scanner;

    #[test]
    fn places_of_a_scanner() {
        for text in ["clamd:/run/clamav/clamd.ctl", "clamd:127.0.0.1:3310", "clamd:[::1]:3310"] {
            assert_eq!(Scanner::parse(text).unwrap().to_string(), text);
        }
        for text in ["", "clamd", "clamd:", "clamd:clamd.ctl", "clamd:127.0.0.1", "/bin/scan.sh", "scan.lua"]
        {
            assert_eq!(Scanner::parse(text), None, "{text}");
        }
    }
}
