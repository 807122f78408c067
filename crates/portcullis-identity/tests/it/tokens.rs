use std::thread;

use portcullis_identity::{IdentityError, NewToken, Role, Sites, TOKEN_PREFIX, random_secret};
use proptest::prelude::*;

use crate::{NOW, Place, me};

fn new(name: &str, expires: Option<u64>) -> NewToken {
    NewToken { name: name.to_owned(), role: Role::Analyst, sites: Sites::All, expires }
}

#[test]
fn a_token_works_until_it_expires_or_is_revoked() {
    let place = Place::new();
    let (token, secret) = place.server.create_token(&new("ci", Some(NOW + 100)), &me(), NOW).unwrap();
    let (other, lasting) = place.server.create_token(&new("other", None), &me(), NOW).unwrap();
    assert!(secret.starts_with("pct_") && secret.len() == 47, "{secret}");
    let found = place.server.token_of(&secret, "192.0.2.1", NOW + 99).unwrap().unwrap();
    assert_eq!((found.id, found.role), (token.id, Role::Analyst));
    assert_eq!(place.server.token_of(&secret, "192.0.2.1", NOW + 100).unwrap(), None);
    // The command line revokes, the server sees it at once.
    place.command_line().revoke_token(other.id, &me(), NOW).unwrap();
    assert_eq!(place.server.token_of(&lasting, "192.0.2.1", NOW).unwrap(), None);
    assert!(!place.server.is_token_valid(other.id, NOW).unwrap());
    assert!(place.server.is_token_valid(token.id, NOW).unwrap());
    // Revoking again changes nothing.
    place.server.revoke_token(other.id, &me(), NOW + 5).unwrap();
    assert_eq!(place.server.tokens(None, 10).unwrap()[1].revoked, Some(NOW));
    assert!(matches!(place.server.revoke_token(99, &me(), NOW), Err(IdentityError::NotFound(_))));
    assert_eq!(place.actions(), ["token.create", "token.create", "token.revoke"]);
}

#[test]
fn the_server_sees_what_the_command_line_creates() {
    let place = Place::new();
    let (_, secret) = place.command_line().create_token(&new("ci", None), &me(), NOW).unwrap();
    assert!(place.server.token_of(&secret, "192.0.2.1", NOW).unwrap().is_some());
}

#[test]
fn the_last_use_is_written_once_a_minute() {
    let place = Place::new();
    let (_, secret) = place.server.create_token(&new("ci", None), &me(), NOW).unwrap();
    let last = || place.server.tokens(None, 1).unwrap()[0].last_used;
    for (time, expected) in [(NOW, NOW), (NOW + 59, NOW), (NOW + 60, NOW + 60), (NOW + 61, NOW + 60)] {
        place.server.token_of(&secret, "192.0.2.1", time).unwrap();
        assert_eq!(last(), Some(expected), "{time}");
    }
}

#[test]
fn names_and_times_are_checked() {
    let place = Place::new();
    for name in ["", "  ", "a\nb", &"x".repeat(101)] {
        assert!(matches!(
            place.server.create_token(&new(name, None), &me(), NOW),
            Err(IdentityError::Invalid(_))
        ));
    }
    for expires in [0, NOW, u64::MAX] {
        let result = place.server.create_token(&new("ci", Some(expires)), &me(), NOW);
        assert!(matches!(result, Err(IdentityError::Invalid(_))), "{expires}");
    }
    assert!(place.server.tokens(None, 10).unwrap().is_empty());
}

#[test]
fn pages_go_by_number() {
    let place = Place::new();
    for number in 0..5 {
        place.server.create_token(&new(&format!("t{number}"), None), &me(), NOW).unwrap();
    }
    let names = |after| {
        let page = place.server.tokens(after, 2).unwrap();
        page.iter().map(|token| (token.id, token.name.clone())).collect::<Vec<_>>()
    };
    assert_eq!(names(None), [(1, "t0".to_owned()), (2, "t1".to_owned())]);
    assert_eq!(names(Some(4)), [(5, "t4".to_owned())]);
    assert_eq!(names(Some(i64::MAX)), []);
}

/// Writers of two processes at the same time wait for each other.
#[test]
fn many_create_at_once() {
    let place = Place::new();
    thread::scope(|scope| {
        for worker in 0..4 {
            let handle = place.command_line();
            scope.spawn(move || {
                for number in 0..25 {
                    let (_, secret) =
                        handle.create_token(&new(&format!("{worker}-{number}"), None), &me(), NOW).unwrap();
                    assert!(handle.token_of(&secret, "192.0.2.1", NOW).unwrap().is_some());
                }
            });
        }
    });
    assert_eq!(place.server.tokens(None, 1000).unwrap().len(), 100);
    assert_eq!(place.actions().len(), 100);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_other_text_is_a_token(text in ".{0,80}", at in 0_usize..47, byte in 0_u8..128) {
        let place = Place::new();
        let (_, secret) = place.server.create_token(&new("ci", None), &me(), NOW).unwrap();
        prop_assert_eq!(place.server.token_of(&text, "192.0.2.1", NOW).unwrap(), None);
        prop_assert_eq!(place.server.token_of(&random_secret(TOKEN_PREFIX).unwrap(), "192.0.2.1", NOW).unwrap(), None);
        let mut other = secret.clone().into_bytes();
        other[at] = byte;
        let other = String::from_utf8(other).unwrap();
        prop_assert_eq!(place.server.token_of(&other, "192.0.2.1", NOW).unwrap().is_some(), other == secret);
    }
}
