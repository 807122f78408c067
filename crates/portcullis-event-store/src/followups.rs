//! One attack is one event: the requests that follow it are counted in it.
//!
//! Where an attack in an address was let through, the browser asks for each picture and style of the page,
//! and sends the address along in the Referer. Such an event, in whose Referer alone something was found,
//! belongs to that of the page if it comes from the same client within ten seconds, was let through as well,
//! and tells of nothing that the page's event does not tell of. The event of a page waits a moment for them;
//! those that come later become one event. An attack that stands in a Referer by itself has no page, and is
//! stored as any other.
//!
//! An attack in a cookie is repeated with each request of the browser. Such events, in whose cookies alone
//! something was found, and the same each time, become one in the same way, whether they were stopped or not.

use std::hash::BuildHasher;
use std::sync::Arc;

use hashbrown::HashMap;
use portcullis_event::{Action, Event, ExceptionCause};

use crate::coalesce::Fate;
use crate::recorded::Recorded;

/// The event of a page waits so long. With a commit each half second it is on disk within one.
const WAIT_MS: u64 = 400;
/// For so long requests are looked for that follow it.
const WINDOW_MS: u64 = 10_000;
/// Pages and cookies that are known at a time; events of further ones do not wait.
const ORIGINS_MAX: usize = 1024;
/// Bytes of a request that waits; with longer ones pages would hold too much memory together.
const REQUEST_BYTES_MAX: usize = 16 << 10;
/// Things that the event of a page may tell of; one that tells of more has no follow-ups.
const FOUND_MAX: usize = 64;

/// The pages of the last seconds, and the attacks in cookies.
#[derive(Default)]
pub(crate) struct FollowUps {
    origins: HashMap<u64, Origin>,
}

/// Causes of follow-up requests: a page, or a cookie.
struct Origin {
    since: u64,
    /// The first event or, when it is stored, the first that came later; and those that it stands for.
    held: Option<(Recorded, u64)>,
    is_stored: bool,
    /// Findings of the event of the page; see [`FollowUps::found`]. Empty for cookies: their key has it.
    found: Box<[u64]>,
}

impl FollowUps {
    /// `now` in milliseconds.
    pub(crate) fn look_at(&mut self, recorded: Recorded, now: u64) -> Fate {
        let request = recorded.request.as_deref().filter(|request| request.bytes.len() <= REQUEST_BYTES_MAX);
        let head = request.and_then(|request| Head::of(&request.bytes));
        let Some((key, part, found)) = head.and_then(|head| self.part_of(&recorded.event, &head)) else {
            return Fate::Stays(recorded);
        };
        let count = recorded.event.count;
        let has_room = self.origins.len() < ORIGINS_MAX;
        let Some(origin) = self.origins.get_mut(&key) else {
            if part == Part::Follows || !has_room {
                return Fate::Stays(recorded);
            }
            let held = Some((recorded, count));
            self.origins.insert(key, Origin { since: now, held, is_stored: false, found: found.into() });
            return Fate::Held;
        };
        let is_known = found.iter().all(|found| origin.found.binary_search(found).is_ok());
        match &mut origin.held {
            _ if part == Part::Begins || !is_known || now.saturating_sub(origin.since) >= WINDOW_MS => {
                Fate::Stays(recorded)
            }
            Some((_, counted)) => {
                *counted = counted.saturating_add(count);
                Fate::Counted
            }
            held => {
                *held = Some((recorded, count));
                Fate::Held
            }
        }
    }

    /// The origin that an event may have or be, and what it tells of as far as that is to be compared.
    fn part_of(&self, event: &Event, head: &Head<'_>) -> Option<(u64, Part, Vec<u64>)> {
        if event.request.method != "GET" || event.findings.is_empty() && event.matches.is_empty() {
            return None;
        }
        let is_shown = event.verdict.action == Action::Detect;
        if event.is_only_in_referer(head.target) {
            let page = head.page().filter(|_| is_shown && has_only_findings(event))?;
            return Some((self.key_of_page(event, head.host, page), Part::Follows, self.found(event)));
        }
        if event.is_only_in_cookies(head.target) {
            let key = has_only_findings(event).then(|| self.key_of_cookies(event, head));
            return key.map(|key| (key, Part::Both, Vec::new()));
        }
        let found = is_shown.then(|| self.found(event)).filter(|found| found.len() <= FOUND_MAX)?;
        Some((self.key_of_page(event, head.host, head.target), Part::Begins, found))
    }

    /// Hashes of what a user may look for in an event: kinds of findings, rules, and what was odd or
    /// ambiguous. Sorted.
    fn found(&self, event: &Event) -> Vec<u64> {
        let hasher = self.origins.hasher();
        let kinds = event.findings.iter().map(|found| hasher.hash_one((0, found.class, &*found.kind)));
        let matched = event.matches.iter().map(|found| found.rule.rule_id);
        let rules = matched.chain(event.verdict.rule_id).map(|rule| hasher.hash_one((1, rule)));
        let names = event.request.oddities.iter().chain(&event.ambiguities).map(|name| &**name);
        let names = names.chain(event.trials.iter().map(String::as_str));
        let names = names.map(|name| hasher.hash_one((2, name)));
        let mut found: Vec<u64> = kinds.chain(rules).chain(names).collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Gives out what has waited long enough.
    pub(crate) fn due(&mut self, now: u64) -> Vec<Recorded> {
        let mut due = Vec::new();
        self.origins.retain(|_, origin| {
            let age = now.saturating_sub(origin.since);
            // A clock that went back ends the wait.
            let is_over = age >= WINDOW_MS || now < origin.since;
            if is_over || !origin.is_stored && age >= WAIT_MS {
                origin.is_stored = true;
                due.extend(origin.held.take());
            }
            !is_over
        });
        counted(due)
    }

    /// Gives out what is held back.
    pub(crate) fn flush(&mut self) -> Vec<Recorded> {
        counted(self.origins.drain().filter_map(|(_, origin)| origin.held).collect())
    }

    /// The client and the address of a page.
    fn key_of_page(&self, event: &Event, host: &[u8], page: &[u8]) -> u64 {
        let of_page = (false, &*event.site, &event.client.addr, host.to_ascii_lowercase(), page);
        self.origins.hasher().hash_one(of_page)
    }

    /// The client, its cookies, what was found in them, and the outcome. Their secrets are replaced in
    /// what is kept, which findings and values tell apart.
    fn key_of_cookies(&self, event: &Event, head: &Head<'_>) -> u64 {
        let findings = event.findings.iter().map(|found| (&*found.kind, &found.name, &found.evidence));
        let matches = event.matches.iter().map(|rule| (rule.rule.rule_id, &rule.target, &rule.value));
        let of_cookies = (true, &*event.site, &event.client.addr, head.host.to_ascii_lowercase());
        let found = (findings.collect::<Vec<_>>(), matches.collect::<Vec<_>>(), self.found(event));
        let verdict = &event.verdict;
        let decided = (verdict.action, verdict.rule_id, verdict.class, verdict.status, event.response.status);
        self.origins.hasher().hash_one((of_cookies, decided, &head.cookies, found))
    }
}

/// True if the event reports nothing but findings and rules: no agent, control, fault of the upstream or
/// inspection. That a response was too long to inspect says nothing of the request.
fn has_only_findings(event: &Event) -> bool {
    let mut exceptions = event.exceptions.iter();
    event.agents.is_empty()
        && event.verdict.control.is_none()
        && event.upstream_error.is_none()
        && event.request.body_error.is_none()
        && exceptions.all(|exception| exception.cause == ExceptionCause::ResponseBodyOverLimit)
}

/// Relation of an event to others.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// A page.
    Begins,
    /// It has a page, or is one of its own.
    Follows,
    /// The first is as good as the next.
    Both,
}

fn counted(held: Vec<(Recorded, u64)>) -> Vec<Recorded> {
    let counted = held.into_iter().map(|(recorded, count)| match count == recorded.event.count {
        true => recorded,
        false => {
            let mut event = Event::clone(&recorded.event);
            event.count = count;
            Recorded { event: Arc::new(event), ..recorded }
        }
    });
    let mut events: Vec<Recorded> = counted.collect();
    events.sort_by_key(|recorded| recorded.event.time);
    events
}

/// Parts of a kept request that are read.
struct Head<'r> {
    target: &'r [u8],
    host: &'r [u8],
    /// None: there is none, or several.
    referer: Option<&'r [u8]>,
    /// Of each field `Cookie`.
    cookies: Vec<&'r [u8]>,
}

impl<'r> Head<'r> {
    fn of(request: &'r [u8]) -> Option<Head<'r>> {
        let mut lines =
            request.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
        let target = lines.next()?.split(|byte| *byte == b' ').nth(1)?;
        let (mut host, mut referers, mut cookies) = (&b""[..], Vec::new(), Vec::new());
        for line in lines.take_while(|line| !line.is_empty()) {
            let colon = line.iter().position(|byte| *byte == b':')?;
            let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
            if name.eq_ignore_ascii_case(b"host") {
                host = value;
            } else if name.eq_ignore_ascii_case(b"referer") {
                referers.push(value);
            } else if name.eq_ignore_ascii_case(b"cookie") {
                cookies.push(value);
            }
        }
        let referer = if referers.len() == 1 { referers.pop() } else { None };
        Some(Head { target, host, referer, cookies })
    }

    /// The target of the page that the Referer names, if it is one of the same host. Browsers leave the
    /// fragment out, so that one with a fragment was made up.
    fn page(&self) -> Option<&'r [u8]> {
        let referer = self.referer.filter(|referer| !referer.contains(&b'#'))?;
        let rest = referer.strip_prefix(b"https://").or_else(|| referer.strip_prefix(b"http://"))?;
        let end = rest.iter().position(|byte| matches!(byte, b'/' | b'?'))?;
        let is_own = !self.host.is_empty() && rest[..end].eq_ignore_ascii_case(self.host);
        is_own.then_some(&rest[end..])
    }
}

#[cfg(test)]
mod tests {
    use portcullis_event::{
        AgentOutcome, AgentWord, Control, ControlKind, Finding, KeptRequest, Timestamp, UpstreamError,
    };
    use portcullis_types::{Class, Place};

    use super::*;

    const ATTACK: &str = "/find?q=%27+or+1=1--";

    fn recorded(client: &str, target: &str, referer: Option<&str>, place: Place) -> Recorded {
        let mut event = Event::new("r", Timestamp::from_epoch_millis(5000));
        event.client.addr = client.to_owned();
        (event.request.method, event.request.target) = ("GET".to_owned(), target.to_owned());
        event.verdict.action = Action::Detect;
        event.push_finding(Finding {
            class: Class::Sqli,
            kind: "sqli.tautology".into(),
            place,
            name: if place == Place::Header { "Referer" } else { "q" }.to_owned(),
            decoded: Vec::new(),
            span: None,
            evidence: "' or 1=1--".to_owned(),
            count: 1,
            below: false,
            mentioned: false,
            suppressed_by: None,
            points: 5.0,
            reason: "".into(),
            reference: "".into(),
        });
        let referer = referer.map_or(String::new(), |referer| format!("Referer: {referer}\r\n"));
        let bytes = format!("GET {target} HTTP/1.1\r\nHost: a\r\n{referer}\r\n").into_bytes();
        let request = Some(Arc::new(KeptRequest { bytes, omitted: 0 }));
        Recorded { event: Arc::new(event), request }
    }

    fn page(client: &str) -> Recorded {
        recorded(client, ATTACK, None, Place::Query)
    }

    fn follows(client: &str, referer: &str) -> Recorded {
        recorded(client, "/style.css?v=1", Some(referer), Place::Header)
    }

    fn counts(events: &[Recorded]) -> Vec<(String, u64)> {
        events.iter().map(|found| (found.event.request.target.clone(), found.event.count)).collect()
    }

    #[test]
    fn requests_of_a_page_are_counted_in_its_event() {
        let mut followups = FollowUps::default();
        assert!(matches!(followups.look_at(page("192.0.2.7"), 1000), Fate::Held));
        let referer = format!("https://A{ATTACK}");
        for _ in 0..30 {
            assert!(matches!(followups.look_at(follows("192.0.2.7", &referer), 1100), Fate::Counted));
        }
        assert!(followups.due(1399).is_empty());
        assert_eq!(counts(&followups.due(1400)), [(ATTACK.to_owned(), 31)]);
        // Those that come later become one event, and what comes too late is one of its own.
        assert!(matches!(followups.look_at(follows("192.0.2.7", &referer), 2000), Fate::Held));
        assert!(matches!(followups.look_at(follows("192.0.2.7", &referer), 9000), Fate::Counted));
        assert!(followups.due(10_999).is_empty());
        assert_eq!(counts(&followups.due(11_000)), [("/style.css?v=1".to_owned(), 2)]);
        assert!(matches!(followups.look_at(follows("192.0.2.7", &referer), 11_001), Fate::Stays(_)));
        assert!(followups.origins.is_empty() && followups.flush().is_empty());
    }

    /// Nobody hides an attack by calling it a follow-up.
    #[test]
    fn an_attack_of_its_own_is_an_event_of_its_own() {
        let mut followups = FollowUps::default();
        assert!(matches!(followups.look_at(page("192.0.2.7"), 1000), Fate::Held));
        let referer = format!("https://a{ATTACK}");
        let mut two = follows("192.0.2.7", &referer);
        let bytes = format!("GET /x HTTP/1.1\r\nHost: a\r\nReferer: {referer}\r\nReferer: {referer}\r\n\r\n");
        two.request = Some(Arc::new(KeptRequest { bytes: bytes.into_bytes(), omitted: 0 }));
        let not_kept = Recorded { request: None, ..follows("192.0.2.7", &referer) };
        let mut also = follows("192.0.2.7", &referer);
        Arc::make_mut(&mut also.event).findings_omitted = 1;
        for other in [
            follows("192.0.2.8", &referer),
            follows("192.0.2.7", "https://b/find?q=%27+or+1=1--"),
            follows("192.0.2.7", &format!("{referer}x")),
            follows("192.0.2.7", &format!("{referer}#${{jndi:ldap://x}}")),
            follows("192.0.2.7", "https://a"),
            follows("192.0.2.7", ATTACK),
            recorded("192.0.2.7", "/other?q=%27+or+1", Some(&referer), Place::Query),
            two,
            not_kept,
            also,
        ] {
            let shown = format!("{other:?}");
            let fate = followups.look_at(other, 1100);
            assert!(matches!(fate, Fate::Stays(_) | Fate::Held), "{shown}");
        }
        let due = followups.due(1400);
        assert_eq!(due.iter().map(|found| found.event.count).max(), Some(1));
        // One that was stopped does not wait: no page was shown.
        let mut stopped = page("192.0.2.9");
        Arc::make_mut(&mut stopped.event).verdict.action = Action::Deny;
        assert!(matches!(followups.look_at(stopped, 2000), Fate::Stays(_)));
        assert!(matches!(followups.look_at(follows("192.0.2.9", &referer), 2000), Fate::Stays(_)));
    }

    /// What a user may look for in an event is never hidden in the count of another.
    #[test]
    fn what_the_page_does_not_tell_of_is_an_event_of_its_own() {
        let referer = format!("https://a{ATTACK}");
        let check = |what: &str, change: &dyn Fn(&mut Event)| {
            let mut followups = FollowUps::default();
            let mut first = page("192.0.2.7");
            Arc::make_mut(&mut first.event).trials.push("t".to_owned());
            assert!(matches!(followups.look_at(first, 1000), Fate::Held));
            // While the page's event waits, and when it is stored.
            for now in [1100, 1100, 2000, 2000] {
                let mut other = follows("192.0.2.7", &referer);
                change(Arc::make_mut(&mut other.event));
                let fate = followups.look_at(other, now);
                assert!(!matches!(fate, Fate::Counted), "{what} at {now}");
                let due = if now == 2000 { followups.due(now) } else { Vec::new() };
                assert!(due.iter().all(|given| given.event.count == 1), "{what} at {now}");
            }
        };
        check("refused as HTTP", &|event| {
            (event.verdict.action, event.refusal) = (Action::Refuse, Some("length-and-coding".into()));
        });
        check("a refusal that is only told of", &|event| event.refusal = Some("length-and-coding".into()));
        check("stopped", &|event| event.verdict.action = Action::Deny);
        check("another class", &|event| event.findings[0].class = Class::Xss);
        check("another kind", &|event| event.findings[0].kind = "sqli.union".into());
        check("one kind more", &|event| {
            let mut more = event.findings[0].clone();
            more.kind = "sqli.union".into();
            event.push_finding(more);
        });
        check("a rule", &|event| event.verdict.rule_id = Some(portcullis_types::RuleId(1)));
        check("another method", &|event| event.request.method = "POST".to_owned());
        check("an agent", &|event| {
            event.agents.push(AgentWord {
                name: "virus".into(),
                outcome: AgentOutcome::Block,
                score: 0,
                tags: Vec::new(),
                reason: String::new(),
            });
        });
        check("a control", &|event| {
            event.verdict.control = Some(Control { by: ControlKind::RateLimit, name: "login".into() });
        });
        check("the upstream", &|event| event.upstream_error = Some(UpstreamError::ResponseTimeout));
        check("an oddity", &|event| event.request.oddities.push("length-dropped".into()));
        check("another trial", &|event| event.trials.push("u".to_owned()));
    }

    #[test]
    fn a_page_with_more_findings_than_are_remembered_has_no_follow_ups() {
        let mut followups = FollowUps::default();
        let mut much = page("192.0.2.7");
        let event = Arc::make_mut(&mut much.event);
        event.request.oddities.extend((0..FOUND_MAX).map(|number| number.to_string().into()));
        assert!(matches!(followups.look_at(much, 1000), Fate::Stays(_)));
        let fate = followups.look_at(follows("192.0.2.7", &format!("https://a{ATTACK}")), 1000);
        assert!(matches!(fate, Fate::Stays(_)) && followups.origins.is_empty());
    }

    fn with_cookie(target: &str, cookie: &str, evidence: &str) -> Recorded {
        let mut found = recorded("192.0.2.7", target, None, Place::Cookie);
        let event = Arc::make_mut(&mut found.event);
        event.verdict.action = Action::Deny;
        event.findings[0].name = "lang".to_owned();
        event.findings[0].evidence = evidence.to_owned();
        let bytes = format!("GET {target} HTTP/1.1\r\nHost: a\r\nCookie: {cookie}\r\n\r\n").into_bytes();
        found.request = Some(Arc::new(KeptRequest { bytes, omitted: 0 }));
        found
    }

    #[test]
    fn an_attack_in_a_cookie_is_one_event() {
        let mut followups = FollowUps::default();
        let attack = |target: &str| with_cookie(target, "lang=' or 1=1--", "' or 1=1--");
        assert!(matches!(followups.look_at(attack("/"), 1000), Fate::Held));
        for number in 0..30 {
            let fate = followups.look_at(attack(&format!("/image-{number}.png")), 1100);
            assert!(matches!(fate, Fate::Counted));
        }
        assert_eq!(counts(&followups.due(1400)), [("/".to_owned(), 31)]);
        assert!(matches!(followups.look_at(attack("/later"), 2000), Fate::Held));
        assert_eq!(counts(&followups.due(11_000)), [("/later".to_owned(), 1)]);
    }

    /// Neither another cookie, nor the same shape of another attack, nor what else is in the request hides
    /// behind it.
    #[test]
    fn another_attack_beside_a_cookie_is_an_event_of_its_own() {
        let mut followups = FollowUps::default();
        let cookie = "lang=' or 1=1--";
        assert!(matches!(followups.look_at(with_cookie("/", cookie, "' or 1=1--"), 1000), Fate::Held));
        let mut of_query = with_cookie("/x?q=%27+or+2=2", cookie, "' or 1=1--");
        let mut finding = of_query.event.findings[0].clone();
        finding.place = Place::Query;
        Arc::make_mut(&mut of_query.event).push_finding(finding);
        let mut posted = with_cookie("/x", cookie, "' or 1=1--");
        Arc::make_mut(&mut posted.event).request.method = "POST".to_owned();
        let mut passed = with_cookie("/x", cookie, "' or 1=1--");
        Arc::make_mut(&mut passed.event).verdict.action = Action::Detect;
        let mut also = with_cookie("/x", cookie, "' or 1=1--");
        Arc::make_mut(&mut also.event).findings_omitted = 1;
        let changed = |change: &dyn Fn(&mut Event)| {
            let mut changed = with_cookie("/x", cookie, "' or 1=1--");
            change(Arc::make_mut(&mut changed.event));
            changed
        };
        for other in [
            with_cookie("/x", "lang=' or 2=2--", "' or 1=1--"),
            with_cookie("/x", cookie, "' or 2=2--"),
            of_query,
            posted,
            passed,
            also,
            changed(&|event| event.refusal = Some("length-and-coding".into())),
            changed(&|event| event.verdict.rule_id = Some(portcullis_types::RuleId(1))),
            changed(&|event| event.response.status = Some(500)),
            changed(&|event| event.upstream_error = Some(UpstreamError::ResponseTimeout)),
            changed(&|event| event.request.oddities.push("length-dropped".into())),
        ] {
            let shown = format!("{other:?}");
            let fate = followups.look_at(other, 1100);
            assert!(matches!(fate, Fate::Stays(_) | Fate::Held), "{shown}");
        }
        assert_eq!(followups.due(1500).iter().map(|found| found.event.count).max(), Some(1));
    }

    #[test]
    fn memory_is_bounded_and_nothing_is_lost() {
        let mut followups = FollowUps::default();
        let mut stayed = 0;
        for number in 0..5000 {
            let target = format!("/{number}?q=%27");
            let fate = followups.look_at(recorded("192.0.2.7", &target, None, Place::Query), 1000);
            stayed += usize::from(matches!(fate, Fate::Stays(_)));
        }
        assert_eq!((followups.origins.len(), stayed), (ORIGINS_MAX, 5000 - ORIGINS_MAX));
        // A clock that goes back ends every wait.
        assert_eq!(followups.due(0).len(), ORIGINS_MAX);
        assert!(matches!(followups.look_at(page("192.0.2.7"), 1000), Fate::Held));
        assert_eq!(followups.flush().len(), 1);
        for bytes in ["", "\r\n", "GET", "GET / HTTP/1.1\r\nno colon\r\n\r\n"] {
            let request = Some(Arc::new(KeptRequest { bytes: bytes.into(), omitted: 0 }));
            let fate = followups.look_at(Recorded { request, ..page("192.0.2.7") }, 1000);
            assert!(matches!(fate, Fate::Stays(_)), "{bytes:?}");
        }
    }
}
