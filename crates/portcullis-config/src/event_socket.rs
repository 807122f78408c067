//! `events.listen`: a local socket for the events of other processes.

use std::path::PathBuf;

use crate::mistakes::Mistakes;
use crate::raw::Events;

/// Longest path: that of a socket has 108 bytes, and it is made under a longer name first.
const PATH_BYTES_MAX: usize = 96;
/// Longest name of a user.
const USER_BYTES_MAX: usize = 256;

/// A socket on which processes of this machine send events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventSocket {
    /// Its path.
    pub path: PathBuf,
    /// Users, by name or number, who may send beside root and the user of the process.
    pub users: Vec<String>,
}

pub(crate) fn check(mistakes: &mut Mistakes<'_>, raw: Option<&Events>) -> Option<EventSocket> {
    let raw = raw?;
    for user in &raw.listen_users {
        let is_name = !user.is_empty() && user.len() <= USER_BYTES_MAX;
        if !is_name || user.contains(|sign: char| sign.is_whitespace() || sign.is_control() || sign == ':') {
            let message = format!("`{}` is not the name of a user", user.value);
            let hint = "name users one by one: `listen_users = [\"www-data\", \"haproxy\"]`".to_string();
            mistakes.wrong_with_hint(user.span.clone(), message, hint);
        }
    }
    let Some(path) = &raw.listen else {
        if let Some(user) = raw.listen_users.first() {
            let hint = "add `listen = \"/run/portcullis/events.sock\"`".to_string();
            let message = "listen_users without a socket to send to".to_string();
            mistakes.wrong_with_hint(user.span.clone(), message, hint);
        }
        return None;
    };
    let full = mistakes.path(path);
    let bytes = full.as_os_str().len();
    if path.is_empty() || path.ends_with('/') {
        let hint = "write `listen = \"/run/portcullis/events.sock\"`".to_string();
        mistakes.wrong_with_hint(path.span.clone(), "listen must name a socket".to_string(), hint);
    } else if bytes > PATH_BYTES_MAX {
        let message = format!(
            "the path of a socket has at most {PATH_BYTES_MAX} bytes; {} has {bytes}",
            full.display()
        );
        let hint = "put it in a folder with a short name, such as /run/portcullis".to_string();
        mistakes.wrong_with_hint(path.span.clone(), message, hint);
    }
    Some(EventSocket { path: full, users: raw.listen_users.iter().map(|user| user.value.clone()).collect() })
}
