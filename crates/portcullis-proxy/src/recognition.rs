//! Applications that a site's answers look like: told once, so that the operator can take their profile.
//!
//! Only the head of an answer and the first bytes of a page are looked at, that are there anyway, and only
//! until an application is recognised or enough answers were looked at: afterwards an answer costs one load.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use portcullis_config::{Answer, recognise};
use portcullis_http::coding::{CodingDecoder, CodingLimits, codings};
use portcullis_http::message::{RequestHead, ResponseHead};
use portcullis_metrics::{Registry, catalogue};

/// Bytes of a body that are looked at.
const BODY_BYTES_MAX: usize = 16 << 10;
/// What looking at a head costs, and at a page, in the same unit: a page has some thousand bytes to search.
const HEAD_COST: u32 = 1;
const PAGE_COST: u32 = 16;
/// What a site may cost: 64 pages, or 1,024 other answers.
const COST_MAX: u32 = 64 * PAGE_COST;

/// What is known of the application behind a site. Reloads keep it.
pub(crate) struct Recognition {
    site: String,
    /// Profiles that the site takes.
    taken: Vec<String>,
    /// The cost that may still be spent; shared with the generations of before.
    left: Arc<AtomicU32>,
    registry: Arc<Registry>,
    say: Arc<dyn Fn(&str) + Send + Sync>,
}

impl Recognition {
    /// Of a site that takes these profiles; `before` is that of the previous settings.
    pub(crate) fn new(
        site: &portcullis_config::Site,
        before: Option<&Recognition>,
        registry: &Arc<Registry>,
        say: &Arc<dyn Fn(&str) + Send + Sync>,
    ) -> Recognition {
        Recognition {
            site: site.name.clone(),
            taken: site.profiles.clone(),
            left: before
                .map_or_else(|| Arc::new(AtomicU32::new(COST_MAX)), |before| Arc::clone(&before.left)),
            registry: Arc::clone(registry),
            say: Arc::clone(say),
        }
    }

    /// True until the site is known or has cost enough.
    pub(crate) fn is_open(&self) -> bool {
        self.left.load(Ordering::Relaxed) > 0
    }

    /// Looks at an answer; `body` is what is there of it, without its framing or with.
    pub(crate) fn look(&self, request: &RequestHead, head: &ResponseHead, body: &[u8]) {
        let status = head.status();
        // Errors are not the application's own, as a rule, and anybody can have them.
        if !matches!(status, 200..=399 | 401 | 403) {
            return;
        }
        let is_page = head.header("content-type").any(|value| value.starts_with(b"text/html"));
        if !self.spend(if is_page { PAGE_COST } else { HEAD_COST }) {
            return;
        }
        let body = &body[..body.len().min(BODY_BYTES_MAX)];
        let decoded = if is_page { decoded(head, body) } else { body[..body.len().min(1 << 10)].to_vec() };
        let fields: Vec<_> = head.fields().collect();
        let answer = Answer { path: request.path(), status, fields: &fields, body: &decoded };
        let mut found = recognise(&answer);
        if found.is_empty() {
            return;
        }
        // Of two answers that are looked at together, one is told.
        if self.left.swap(0, Ordering::Relaxed) == 0 {
            return;
        }
        for each in &found {
            self.registry
                .gauge(&catalogue::RECOGNISED_APPLICATIONS, &[&self.site, &each.profile.name])
                .set(1);
        }
        found.retain(|each| !self.taken.contains(&each.profile.name));
        for each in found {
            let (name, application) = (&each.profile.name, &each.profile.application);
            (self.say)(&format!(
                "site {}: its answers look like {application} ({}); `profiles = [\"{name}\"]` in the site takes the exclusions \
                 for it, `portcullis profiles {name}` shows what they open",
                self.site,
                each.signs.join(", "),
            ));
        }
    }

    /// Takes a cost off what is left; false if there is not enough.
    fn spend(&self, cost: u32) -> bool {
        let less = |left: u32| left.checked_sub(cost);
        let spent = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        if spent.is_err() {
            self.left.store(0, Ordering::Relaxed);
        }
        spent.is_ok()
    }
}

/// The body without its coding, as far as it can be read.
fn decoded(head: &ResponseHead, body: &[u8]) -> Vec<u8> {
    let Ok(codings) = codings(head.header("content-encoding")) else { return Vec::new() };
    if codings.is_empty() {
        return body.to_vec();
    }
    let limits = CodingLimits { bytes_max: 1 << 20, ratio_max: 100, free_bytes: BODY_BYTES_MAX as u64 };
    let (mut decoder, mut out) = (CodingDecoder::new(&codings, limits), Vec::new());
    // What is wrong with it is not ours to say: the client will see.
    let _ = decoder.feed(body, &mut |piece| {
        out.extend_from_slice(&piece[..piece.len().min(BODY_BYTES_MAX - out.len().min(BODY_BYTES_MAX))]);
    });
    out
}
