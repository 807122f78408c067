use portcullis_identity::{Change, Ending, IdentityError, Role, SESSION_IDLE_S, SESSION_S, User, csrf_token};

use crate::{NOW, Place, me};

#[test]
fn a_session_ends_when_it_is_idle_or_old() {
    let place = Place::new();
    let anna = place.user("anna", Role::Analyst);
    let start = || place.server.start_session(&anna, "192.0.2.1", "Firefox", &me(), NOW).unwrap();
    let is_open = |secret: &str, time| place.server.session_of(secret, "192.0.2.1", time).unwrap().is_some();
    let idle = start();
    assert!(is_open(&idle, NOW + 59) && !is_open(&idle, NOW + SESSION_IDLE_S));
    // A look does not keep it open.
    assert!(place.server.peek_session(&idle, NOW + SESSION_IDLE_S - 1).unwrap().is_some());
    assert!(!is_open(&idle, NOW + SESSION_IDLE_S));
    let used = start();
    let mut time = NOW;
    while time < NOW + SESSION_S {
        assert!(is_open(&used, time), "{}", time - NOW);
        time += SESSION_IDLE_S - 60;
    }
    assert!(!is_open(&used, NOW + SESSION_S));
    for text in ["", "x", &used[1..], &csrf_token(&used)] {
        assert!(!is_open(text, NOW));
    }
}

#[test]
fn a_session_ends_at_logout_and_with_what_it_stands_on() {
    let place = Place::new();
    place.user("root", Role::Admin);
    let is_open = |secret: &str| place.server.session_of(secret, "192.0.2.1", NOW).unwrap().is_some();
    let start = |name: &str| {
        let user = place.server.user(name).unwrap().unwrap();
        place.server.start_session(&user, "192.0.2.1", "Firefox", &me(), NOW).unwrap()
    };
    place.user("anna", Role::Analyst);
    let secret = start("anna");
    place.server.end_session(&secret, &me(), NOW).unwrap();
    assert!(!is_open(&secret));
    let changes = [
        Change { password: Some("another fine password".to_owned()), ..Change::default() },
        Change { disabled: Some(true), ..Change::default() },
    ];
    for change in changes {
        let secret = start("anna");
        assert!(is_open(&secret));
        place.command_line().change_user("anna", None, &change, &me(), NOW).unwrap();
        assert!(!is_open(&secret), "{change:?}");
    }
    // A role counts at once, and a user who is deleted has no session.
    place.user("otto", Role::Admin);
    let secret = start("otto");
    let lower = Change { role: Some(Role::Viewer), ..Change::default() };
    place.server.change_user("otto", None, &lower, &me(), NOW).unwrap();
    assert_eq!(place.server.session_of(&secret, "192.0.2.1", NOW).unwrap().unwrap().user.role, Role::Viewer);
    place.server.delete_user("otto", None, false, &me(), NOW).unwrap();
    assert!(!is_open(&secret));
}

/// Between proof and session the password was changed, perhaps because it was stolen.
#[test]
fn a_proof_is_for_the_user_as_it_was() {
    let place = Place::new();
    let anna = place.user("anna", Role::Admin);
    let change = Change { password: Some("another fine password".to_owned()), ..Change::default() };
    place.server.change_user("anna", None, &change, &me(), NOW).unwrap();
    let result = place.server.start_session(&anna, "192.0.2.1", "Firefox", &me(), NOW);
    assert!(matches!(result, Err(IdentityError::Changed)));
}

#[test]
fn sessions_and_networks_of_a_user_are_bounded() {
    let place = Place::new();
    let anna = place.user("anna", Role::Viewer);
    let start = |number: u64| {
        place
            .server
            .start_session(&anna, &format!("192.0.2.{number}"), "Firefox", &me(), NOW + number)
            .unwrap()
    };
    let all: Vec<String> = (0..20).map(start).collect();
    let open = all
        .iter()
        .filter(|secret| place.server.session_of(secret, "192.0.2.1", NOW + 20).unwrap().is_some())
        .count();
    assert_eq!(open, 16);
    assert!(place.server.session_of(&all[19], "192.0.2.1", NOW + 20).unwrap().is_some());
    let is_known = |name: &str, network: &str| place.server.is_known_network(name, network).unwrap();
    assert!(
        is_known("anna", "192.0.2.19") && !is_known("anna", "192.0.2.0") && !is_known("otto", "192.0.2.19")
    );
}

/// Two users with two sessions each: numbers 1 and 2 are anna's, 3 and 4 otto's.
fn two_with_two(place: &Place) -> ([User; 2], [String; 4]) {
    let users = [place.user("anna", Role::Viewer), place.user("otto", Role::Admin)];
    let start = |at: usize| {
        let agent = format!("Browser\n {at}{}", "x".repeat(300));
        place.server.start_session(&users[at / 2], "192.0.2.1", &agent, &me(), NOW).unwrap()
    };
    let secrets = [0, 1, 2, 3].map(start);
    (users, secrets)
}

#[test]
fn sessions_are_listed_with_where_they_are_used() {
    let place = Place::new();
    let (_, secrets) = two_with_two(&place);
    let list = |user: Option<&str>, after, time| place.server.sessions(user, after, 10, time).unwrap();
    let numbers =
        |user, after| list(user, after, NOW).into_iter().map(|entry| entry.number).collect::<Vec<_>>();
    assert_eq!(numbers(None, None), [1, 2, 3, 4]);
    assert_eq!(numbers(None, Some(3)), [4]);
    assert_eq!(numbers(Some("otto"), None), [3, 4]);
    assert!(numbers(Some("nobody"), None).is_empty());
    // A use from elsewhere shows; the place of the login stays.
    place.server.session_of(&secrets[0], "198.51.100.7", NOW + 60).unwrap().unwrap();
    let first = list(None, None, NOW + 60).remove(0);
    assert_eq!(first.address.as_deref(), Some("192.0.2.1"));
    assert_eq!(first.last_address.as_deref(), Some("198.51.100.7"));
    assert_eq!((first.created, first.last_used), (NOW, NOW + 60));
    assert_eq!(first.expires, NOW + 60 + SESSION_IDLE_S);
    // The browser chooses its name: it has no line of its own, and a bounded length.
    assert!(first.agent.starts_with("Browser 0x") && first.agent.len() == 200, "{}", first.agent);
    // What has ended is not listed, although nobody has deleted it yet.
    let left = list(None, None, NOW + SESSION_IDLE_S);
    assert_eq!(left.into_iter().map(|entry| entry.number).collect::<Vec<_>>(), [1]);
}

/// Each order ends the sessions that it names, at once and for every handle, and no other.
#[test]
fn ending_sessions_ends_exactly_those() {
    type Which = fn(&[User; 2]) -> Ending;
    let cases: [(Which, &[usize]); 6] = [
        (|_| Ending::One(3), &[2]),
        (|_| Ending::One(9), &[]),
        (|users| Ending::Own { user: users[0].id, number: 1 }, &[0]),
        // Sessions of other users are not listed among one's own.
        (|users| Ending::Own { user: users[0].id, number: 3 }, &[]),
        (|users| Ending::Others { user: users[0].id, keep: 2 }, &[0]),
        (|_| Ending::Of("otto".to_owned()), &[2, 3]),
    ];
    for (which, expected) in cases {
        let place = Place::new();
        let (users, secrets) = two_with_two(&place);
        let which = which(&users);
        let ended = place.command_line().end_sessions(&which, &me(), NOW).unwrap();
        assert_eq!(ended, expected.len(), "{which:?}");
        for (at, secret) in secrets.iter().enumerate() {
            let is_open = place.server.session_of(secret, "192.0.2.1", NOW).unwrap().is_some();
            assert_eq!(is_open, !expected.contains(&at), "{which:?}: {at}");
        }
        let last = place.server.audit(None, 1).unwrap().remove(0);
        match expected.first() {
            Some(at) => {
                assert_eq!(
                    (last.action.as_str(), last.object),
                    ("session.end", format!("user {}", users[at / 2].name))
                );
                assert!(
                    last.detail.contains(&format!("session {} from 192.0.2.1", at + 1)),
                    "{}",
                    last.detail
                );
            }
            None => assert_eq!(last.action, "login", "{which:?}"),
        }
    }
    let place = Place::new();
    let nobody = place.server.end_sessions(&Ending::Of("nobody".to_owned()), &me(), NOW);
    assert!(matches!(nobody, Err(IdentityError::NotFound("user"))));
}

/// A number names one session for ever: whoever ends what a page listed does not end a later one.
#[test]
fn numbers_of_sessions_do_not_come_again() {
    let place = Place::new();
    let (users, _) = two_with_two(&place);
    place.server.end_sessions(&Ending::Of("otto".to_owned()), &me(), NOW).unwrap();
    place.server.start_session(&users[1], "192.0.2.1", "Firefox", &me(), NOW).unwrap();
    assert_eq!(place.server.end_sessions(&Ending::One(4), &me(), NOW).unwrap(), 0);
    assert_eq!(place.server.sessions(Some("otto"), None, 10, NOW).unwrap()[0].number, 5);
}
