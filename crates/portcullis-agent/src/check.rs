use std::fmt;

use crate::wire::{Decision, DecisionVerdict, HeaderChange, HeaderChangeKind};

/// The most points that one decision adds.
const SCORE_MAX: u32 = 1000;
const TAGS_MAX: usize = 16;
const TAG_BYTES_MAX: usize = 64;
const CHANGES_MAX: usize = 64;
/// Bytes of a sentence that are kept.
const REASON_BYTES_MAX: usize = 500;

/// Fields that say how a message is framed, or that Portcullis itself writes.
const OURS: [&str; 14] = [
    "connection",
    "content-length",
    "host",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-request-id",
    "expect",
];

/// A decision that can be carried out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// The verdict on the exchange.
    pub verdict: Verdict,
    /// One sentence for the event.
    pub reason: String,
    /// Points of suspicion.
    pub score: u32,
    /// Words for the event.
    pub tags: Vec<String>,
    /// Changes of what the upstream gets.
    pub request_headers: Vec<Change>,
    /// Changes of what the client gets.
    pub response_headers: Vec<Change>,
    /// The agent wants to hear no more.
    pub done: bool,
}

/// The verdict on an exchange.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Verdict {
    /// It passes.
    #[default]
    Allow,
    /// It is answered with a block page.
    Block {
        /// 400 to 599.
        status: u16,
    },
    /// It is answered with a redirect.
    Redirect {
        /// 301, 302, 303, 307 or 308.
        status: u16,
        /// The target.
        location: String,
    },
}

/// A change of headers. Names are in lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// In place of others of the name.
    Set(String, Vec<u8>),
    /// Beside others of the name.
    Add(String, Vec<u8>),
    /// Without those of the name.
    Remove(String),
}

/// The error of a decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Invalid {
    /// A verdict that this version does not know.
    Verdict(i32),
    /// A status that does not go with the verdict.
    Status(u32),
    /// No place to redirect to.
    Location,
    /// More points than a decision may add.
    Score(u32),
    /// A tag that is too long, or has other characters than it may; or too many tags.
    Tag,
    /// A header that is none, or that an agent may not change; or too many changes.
    Header(String),
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Invalid::Verdict(number) => write!(f, "the verdict {number} is not known"),
            Invalid::Status(status) => write!(f, "the status {status} does not go with the verdict"),
            Invalid::Location => f.write_str("a redirect needs a location: http://, https:// or a path"),
            Invalid::Score(score) => write!(f, "a score of {score}; {SCORE_MAX} is the most"),
            Invalid::Tag => write!(
                f,
                "tags have letters, digits and -_.:/ , {TAG_BYTES_MAX} bytes at most, and there are {TAGS_MAX} at most"
            ),
            Invalid::Header(name) => write!(f, "the header `{}` cannot be changed so", name.escape_debug()),
        }
    }
}

/// Turns a decision into one that can be carried out.
pub fn check(decision: Decision) -> Result<Checked, Invalid> {
    let Decision { verdict, status, location, mut reason, score, tags, .. } = decision;
    let number = u16::try_from(status).map_err(|_| Invalid::Status(status))?;
    let verdict = match DecisionVerdict::try_from(verdict) {
        Ok(DecisionVerdict::Allow) => Verdict::Allow,
        Ok(DecisionVerdict::Block) => match number {
            0 => Verdict::Block { status: 403 },
            400..=599 => Verdict::Block { status: number },
            _ => return Err(Invalid::Status(status)),
        },
        Ok(DecisionVerdict::Redirect) => {
            let fits = ["http://", "https://", "/"].iter().any(|start| location.starts_with(start))
                && location.bytes().all(|byte| byte.is_ascii_graphic());
            if !fits {
                return Err(Invalid::Location);
            }
            match number {
                0 => Verdict::Redirect { status: 302, location },
                301 | 302 | 303 | 307 | 308 => Verdict::Redirect { status: number, location },
                _ => return Err(Invalid::Status(status)),
            }
        }
        Err(_) => return Err(Invalid::Verdict(verdict)),
    };
    if score > SCORE_MAX {
        return Err(Invalid::Score(score));
    }
    let is_tag = |tag: &String| {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:/".contains(&byte);
        (1..=TAG_BYTES_MAX).contains(&tag.len()) && tag.bytes().all(fits)
    };
    if tags.len() > TAGS_MAX || !tags.iter().all(is_tag) {
        return Err(Invalid::Tag);
    }
    while reason.len() > REASON_BYTES_MAX {
        reason.pop();
    }
    Ok(Checked {
        verdict,
        reason,
        score,
        tags,
        request_headers: changes(decision.request_headers)?,
        response_headers: changes(decision.response_headers)?,
        done: decision.done,
    })
}

fn changes(changes: Vec<HeaderChange>) -> Result<Vec<Change>, Invalid> {
    if changes.len() > CHANGES_MAX {
        return Err(Invalid::Header(format!("{} changes", changes.len())));
    }
    changes.into_iter().map(change).collect()
}

fn change(HeaderChange { kind, name, value }: HeaderChange) -> Result<Change, Invalid> {
    // `tchar` of RFC 9110, section 5.6.2.
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let lower = name.to_ascii_lowercase();
    let is_value = value.iter().all(|byte| !matches!(byte, 0..=8 | 10..=31 | 127));
    let fits = !name.is_empty() && name.len() <= 256 && name.bytes().all(is_token) && value.len() <= 8192;
    if !fits || !is_value || OURS.contains(&lower.as_str()) {
        return Err(Invalid::Header(name));
    }
    match HeaderChangeKind::try_from(kind) {
        Ok(HeaderChangeKind::Set) => Ok(Change::Set(lower, value)),
        Ok(HeaderChangeKind::Add) => Ok(Change::Add(lower, value)),
        Ok(HeaderChangeKind::Remove) => Ok(Change::Remove(lower)),
        Err(_) => Err(Invalid::Header(name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(verdict: DecisionVerdict, status: u32, location: &str) -> Result<Verdict, Invalid> {
        let location = location.to_string();
        let decision = Decision { verdict: verdict as i32, status, location, ..Decision::default() };
        check(decision).map(|checked| checked.verdict)
    }

    #[test]
    fn verdicts() {
        use DecisionVerdict::{Allow, Block, Redirect};
        assert_eq!(verdict(Allow, 0, ""), Ok(Verdict::Allow));
        assert_eq!(verdict(Block, 0, ""), Ok(Verdict::Block { status: 403 }));
        assert_eq!(verdict(Block, 451, ""), Ok(Verdict::Block { status: 451 }));
        for status in [200, 399, 600, 65_939] {
            assert_eq!(verdict(Block, status, ""), Err(Invalid::Status(status)));
        }
        let there = || "https://a/".to_string();
        assert_eq!(verdict(Redirect, 0, &there()), Ok(Verdict::Redirect { status: 302, location: there() }));
        assert_eq!(verdict(Redirect, 304, &there()), Err(Invalid::Status(304)));
        for location in ["", "javascript:alert(1)", "/a\r\nSet-Cookie: b", "/a b"] {
            assert_eq!(verdict(Redirect, 302, location), Err(Invalid::Location), "{location}");
        }
        assert_eq!(check(Decision { verdict: 9, ..Decision::default() }), Err(Invalid::Verdict(9)));
    }

    #[test]
    fn what_would_break_a_message_or_an_event_is_refused() {
        let header = |name: &str, value: &[u8]| {
            let change = HeaderChange { kind: 0, name: name.to_string(), value: value.to_vec() };
            check(Decision { request_headers: vec![change], ..Decision::default() })
        };
        let set = header("X-Agent", b"\xe9\t1").unwrap().request_headers;
        assert_eq!(set, [Change::Set("x-agent".to_string(), b"\xe9\t1".to_vec())]);
        for (name, value) in
            [("", &b""[..]), ("a b", b""), ("x", b"a\r\nb: c"), ("x", b"\0"), ("Content-Length", b"0")]
        {
            assert_eq!(header(name, value), Err(Invalid::Header(name.to_string())));
        }
        let tags = |tags: &[&str]| {
            let tags = tags.iter().map(|tag| tag.to_string()).collect();
            check(Decision { tags, ..Decision::default() }).map(|checked| checked.tags.len())
        };
        assert_eq!(tags(&["bot", "a:b/c-1_2.3"]), Ok(2));
        for wrong in [&[""][..], &["a b"], &["\n"], &["x"; 17], &[&"x".repeat(65)]] {
            assert_eq!(tags(wrong), Err(Invalid::Tag));
        }
        let score = check(Decision { score: 1001, ..Decision::default() });
        assert_eq!(score, Err(Invalid::Score(1001)));
    }
}
