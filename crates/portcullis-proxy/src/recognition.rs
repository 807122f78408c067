//! Applications that a site's answers look like: told once, so that the operator can take their profile, and
//! once more if their version is none that the profile was written for.
//!
//! Only the head of an answer and the first bytes of a page are looked at, that are there anyway, and only
//! until an application is recognised or enough answers were looked at: afterwards an answer costs one load.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use portcullis_config::{Answer, Profile, Recognised, Version, recognise};
use portcullis_http::coding::{CodingDecoder, CodingLimits, codings};
use portcullis_http::message::{RequestHead, ResponseHead};
use portcullis_metrics::{Registry, catalogue};

/// Bytes of a body that are looked at.
const BODY_BYTES_MAX: usize = 16 << 10;
/// Cost of examining a head, and a page, in the same unit: a page has some thousand bytes to search.
const HEAD_COST: u32 = 1;
const PAGE_COST: u32 = 16;
/// Largest cost of a site: 64 pages, or 1,024 other answers.
const COST_MAX: u32 = 64 * PAGE_COST;

/// Knowledge of the application behind a site. Reloads keep it.
pub(crate) struct Recognition {
    site: String,
    /// Profiles that the site takes.
    taken: Vec<String>,
    /// Shared with the previous generations.
    state: Arc<State>,
    registry: Arc<Registry>,
    say: Arc<dyn Fn(&str) + Send + Sync>,
}

/// Findings so far, and the cost that is left.
struct State {
    left: AtomicU32,
    found: Mutex<Found>,
}

#[derive(Default)]
struct Found {
    /// The application: several profiles where one extends another.
    recognised: Vec<Recognised>,
    /// Names of profiles of whose application an answer has shown the version.
    versions: BTreeSet<&'static str>,
}

impl Recognition {
    /// Of a site that takes these profiles; `before` is that of the previous settings.
    pub(crate) fn new(
        site: &portcullis_config::Site,
        before: Option<&Recognition>,
        registry: &Arc<Registry>,
        say: &Arc<dyn Fn(&str) + Send + Sync>,
    ) -> Recognition {
        let state = || Arc::new(State { left: AtomicU32::new(COST_MAX), found: Mutex::default() });
        Recognition {
            site: site.name.clone(),
            taken: site.profiles.clone(),
            state: before.map_or_else(state, |before| Arc::clone(&before.state)),
            registry: Arc::clone(registry),
            say: Arc::clone(say),
        }
    }

    /// True until the application and its version are known, or looking has cost enough.
    pub(crate) fn is_open(&self) -> bool {
        self.state.left.load(Ordering::Relaxed) > 0
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
        let answer =
            Answer { host: request.host(), path: request.path(), status, fields: &fields, body: &decoded };
        // Of two answers that are examined at the same time, one is reported.
        let mut found = self.state.found.lock().unwrap_or_else(PoisonError::into_inner);
        if found.recognised.is_empty() {
            found.recognised = recognise(&answer);
            found.recognised.iter().for_each(|each| self.tell(each));
        }
        let profiles: Vec<&'static Profile> = found.recognised.iter().map(|each| each.profile).collect();
        if profiles.is_empty() {
            return;
        }
        for &profile in &profiles {
            if !found.versions.contains(profile.name.as_str())
                && let Some(version) = profile.version_in(&answer)
            {
                found.versions.insert(&profile.name);
                self.tell_version(profile, &version);
            }
        }
        let versions = &found.versions;
        let is_settled =
            profiles.iter().all(|each| each.releases.is_empty() || versions.contains(each.name.as_str()));
        if is_settled {
            self.state.left.store(0, Ordering::Relaxed);
        }
    }

    /// The application, as far as the site does not take its profiles.
    pub(crate) fn offers(&self) -> Vec<Recognised> {
        let found = self.state.found.lock().unwrap_or_else(PoisonError::into_inner);
        found.recognised.iter().filter(|each| !self.taken.contains(&each.profile.name)).cloned().collect()
    }

    fn tell(&self, recognised: &Recognised) {
        let Recognised { profile, signs } = recognised;
        let Profile { name, application, .. } = profile;
        self.registry.gauge(&catalogue::RECOGNISED_APPLICATIONS, &[&self.site, name]).set(1);
        if self.taken.contains(name) {
            return;
        }
        (self.say)(&format!(
            "site {}: its answers look like {application} ({}); `profiles = [\"{name}\"]` in the site takes the exclusions for \
             it, `portcullis profiles {name}` shows what they open",
            self.site,
            signs.join(", "),
        ));
    }

    fn tell_version(&self, profile: &Profile, version: &Version) {
        if version.is_known {
            return;
        }
        let Profile { name, application, knows, .. } = profile;
        self.registry.gauge(&catalogue::UNKNOWN_APPLICATION_VERSIONS, &[&self.site, name]).set(1);
        (self.say)(&format!(
            "site {}: {application} answers as version {}, the profile `{name}` is for {}; its exclusions may not fit: \
             `portcullis profiles test {name} --requests work.har` shows what is refused with it",
            self.site,
            version.text,
            knows.join(", "),
        ));
    }

    /// Takes a cost off what is left; false if there is not enough.
    fn spend(&self, cost: u32) -> bool {
        let less = |left: u32| left.checked_sub(cost);
        let spent = self.state.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        if spent.is_err() {
            self.state.left.store(0, Ordering::Relaxed);
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
