use portcullis_identity::{Change, IdentityError, Role, SESSION_IDLE_S, SESSION_S, csrf_token};

use crate::{NOW, Place, me};

#[test]
fn a_session_ends_when_it_is_idle_or_old() {
    let place = Place::new();
    let anna = place.user("anna", Role::Analyst);
    let start = || place.server.start_session(&anna, "192.0.2.1", &me(), NOW).unwrap();
    let is_open = |secret: &str, time| place.server.session_of(secret, time).unwrap().is_some();
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
    let is_open = |secret: &str| place.server.session_of(secret, NOW).unwrap().is_some();
    let start = |name: &str| {
        let user = place.server.user(name).unwrap().unwrap();
        place.server.start_session(&user, "192.0.2.1", &me(), NOW).unwrap()
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
    assert_eq!(place.server.session_of(&secret, NOW).unwrap().unwrap().user.role, Role::Viewer);
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
    let result = place.server.start_session(&anna, "192.0.2.1", &me(), NOW);
    assert!(matches!(result, Err(IdentityError::Changed)));
}

#[test]
fn sessions_and_networks_of_a_user_are_bounded() {
    let place = Place::new();
    let anna = place.user("anna", Role::Viewer);
    let start = |number: u64| {
        place.server.start_session(&anna, &format!("192.0.2.{number}"), &me(), NOW + number).unwrap()
    };
    let all: Vec<String> = (0..20).map(start).collect();
    let open =
        all.iter().filter(|secret| place.server.session_of(secret, NOW + 20).unwrap().is_some()).count();
    assert_eq!(open, 16);
    assert!(place.server.session_of(&all[19], NOW + 20).unwrap().is_some());
    let is_known = |name: &str, network: &str| place.server.is_known_network(name, network).unwrap();
    assert!(
        is_known("anna", "192.0.2.19") && !is_known("anna", "192.0.2.0") && !is_known("otto", "192.0.2.19")
    );
}
