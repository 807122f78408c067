//! `SecRemoteRules`: rules on a server, pinned by their checksum.

use crate::lexer::View;
use crate::parser::Sink;

/// A rule file on a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteFile {
    /// Sent as `ModSec-key`, so that the server knows who asks; may be empty.
    pub key: String,
    /// `https://host[:port]/path`.
    pub url: String,
    /// SHA-256 of the file.
    pub sha256: [u8; 32],
}

/// The action when remote rules cannot be loaded (`SecRemoteRulesFailAction`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum FailAction {
    /// The load fails; the rules in force stay.
    #[default]
    Abort,
    /// The load continues without them, with a warning.
    Warn,
}

const SHAPE: &str = "write SecRemoteRules KEY https://host/path sha256:HEX; `curl URL | sha256sum` tells the checksum of what the \
                     server gives now, which you have read before you trust it";

/// `KEY URL sha256:HEX`. Without a checksum, an attacker who controls the server could change or empty the
/// rule set, so one is required.
pub(crate) fn read(views: &[View<'_>], sink: &mut Sink) -> Option<RemoteFile> {
    let text = |at: usize| views.get(at).and_then(|view| view.str()).unwrap_or_default();
    if text(0).eq_ignore_ascii_case("crypto") && views.len() == 3 && !text(2).starts_with("sha256:") {
        sink.error_hint(
            views[0].span(),
            "encrypted remote rules are not supported: TLS keeps them secret",
            SHAPE,
        );
        return None;
    }
    let url = text(1);
    let host = url.strip_prefix("https://").unwrap_or_default();
    if host.is_empty() || host.starts_with('/') || url.contains(|c: char| c.is_control() || c == ' ') {
        sink.error_hint(views[1].span(), "remote rules come from https URLs only", SHAPE);
        return None;
    }
    if text(0).contains(|c: char| !(' '..='~').contains(&c)) {
        sink.error_hint(views[0].span(), "the key has characters that a header cannot carry", SHAPE);
        return None;
    }
    let Some(checksum) = views.get(2) else {
        sink.error_hint(views[1].span(), "the checksum of the remote rules is missing", SHAPE);
        return None;
    };
    let Some(sha256) = text(2).strip_prefix("sha256:").and_then(digest) else {
        sink.error_hint(checksum.span(), "this is not sha256: and 64 hex digits", SHAPE);
        return None;
    };
    Some(RemoteFile { key: text(0).to_owned(), url: url.to_owned(), sha256 })
}

/// `Abort` or `Warn`.
pub(crate) fn read_fail_action(view: View<'_>, sink: &mut Sink) -> Option<FailAction> {
    match view.str().unwrap_or_default() {
        word if word.eq_ignore_ascii_case("abort") => Some(FailAction::Abort),
        word if word.eq_ignore_ascii_case("warn") => Some(FailAction::Warn),
        _ => {
            sink.error(view.span(), "SecRemoteRulesFailAction takes Abort or Warn");
            None
        }
    }
}

fn digest(hex: &str) -> Option<[u8; 32]> {
    let digits: Option<Vec<u32>> = hex.chars().map(|c| c.to_digit(16)).collect();
    let bytes: Vec<u8> = digits?.chunks_exact(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect();
    (hex.len() == 64).then(|| bytes.try_into().ok()).flatten()
}
