//! A flood, what is kept, and nodes that tell each other.

use std::collections::HashSet;

use proptest::prelude::*;

use super::*;

const NOW: u64 = 1_700_000_000_000;
const CLIENT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));

/// The cookies of one site, which has so many bytes.
fn within(bytes: usize) -> Arc<IssuedCookies> {
    IssuedSites::new(IssuedKey([7; 32]), bytes).site("a")
}

fn cookies() -> Arc<IssuedCookies> {
    within(ISSUED_COOKIE_BYTES_MAX)
}

fn knows(cookies: &IssuedCookies, number: u32) -> bool {
    cookies.has(b"id", &number.to_be_bytes(), CLIENT, NOW)
}

fn client(number: u32) -> IpAddr {
    IpAddr::V4((number << 8).into())
}

#[test]
fn what_a_browser_sends_back_of_a_set_cookie_field() {
    for (field, expected) in [
        ("a=1", Some(("a", "1"))),
        ("session=eyJ.x; Path=/; HttpOnly; Max-Age=9", Some(("session", "eyJ.x"))),
        (" a \t=  b=c ;x", Some(("a", "b=c"))),
        ("a=\"b c\"; Secure", Some(("a", "\"b c\""))),
        ("a=%3Cb%3E", Some(("a", "%3Cb%3E"))),
        ("A=1", Some(("A", "1"))),
        ("a=; Max-Age=0", None),
        ("=b", None),
        ("a", None),
        ("; a=1", None),
        ("", None),
    ] {
        let expected = expected.map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        assert_eq!(set_cookie(field.as_bytes()), expected, "{field}");
    }
    assert_eq!(set_cookie(&[b"a=".as_slice(), &[b'x'; SET_COOKIE_BYTES_MAX + 1]].concat()), None);
}

proptest! {
    /// It knows what was noted, and nothing else, whatever ends of names and values meet.
    #[test]
    fn it_is_a_set(
        noted in prop::collection::vec(("[a-c]{1,3}", "[a-c=\"%]{1,4}"), 0..400),
        asked in prop::collection::vec(("[a-cA-C]{1,3}", "[a-c=\"%]{1,4}"), 0..400),
    ) {
        let cookies = cookies();
        for (name, value) in &noted {
            cookies.note(name.as_bytes(), value.as_bytes(), CLIENT, NOW);
        }
        let known: HashSet<_> = noted.iter().collect();
        prop_assert_eq!(cookies.statistics().held, known.len() as u64);
        for pair in noted.iter().chain(&asked) {
            let has = cookies.has(pair.0.as_bytes(), pair.1.as_bytes(), CLIENT, NOW);
            prop_assert_eq!(has, known.contains(pair), "{:?}", pair);
        }
    }
}

/// A million cookies of many networks: the bytes stay within the limit, the last ones are known.
#[test]
fn a_flood_takes_no_more_than_its_bytes() {
    let bytes = 1 << 20;
    let cookies = within(bytes);
    for number in 0..1_000_000u32 {
        cookies.note(b"id", &number.to_be_bytes(), client(number % 5_000), NOW);
    }
    let tables = cookies.shards.iter().map(|shard| {
        let shard = shard.lock().unwrap();
        shard.bytes()
    });
    let taken = tables.sum::<usize>();
    assert!(taken <= bytes && taken == cookies.bytes());
    let IssuedStatistics { held, rotations, .. } = cookies.statistics();
    assert!(rotations > 16 && held > bytes as u64 / 8 / 4 && held < bytes as u64 / 8, "{held}");
    let known = (999_000..1_000_000u32).filter(|n| cookies.has(b"id", &n.to_be_bytes(), CLIENT, NOW));
    assert_eq!(known.count(), 1_000);
    assert!(!cookies.has(b"id", &7u32.to_be_bytes(), CLIENT, NOW));
}

/// One network fills its part and pushes out nobody else's.
#[test]
fn one_network_cannot_fill_it() {
    let cookies = within(1 << 18);
    cookies.note(b"session", b"theirs", client(1), NOW);
    for number in 0..100_000u32 {
        cookies.note(b"id", &number.to_be_bytes(), client(2), NOW);
    }
    assert!(cookies.has(b"session", b"theirs", client(1), NOW));
    let IssuedStatistics { held, declined, rotations, .. } = cookies.statistics();
    assert_eq!((held + declined, rotations), (100_001, 0));
    assert!(held as usize <= 1 + SHARDS * capacity(cookies.slots_max) / ISSUED_COOKIE_SHARES, "{held}");
}

#[test]
fn a_cookie_is_forgotten_unless_it_comes_back() {
    let cookies = cookies();
    for name in [b"seen", b"left"] {
        cookies.note(name, b"1", CLIENT, NOW);
    }
    let week = ISSUED_COOKIE_MILLIS;
    assert!(cookies.has(b"seen", b"1", CLIENT, NOW + week + week / 2));
    assert!(cookies.has(b"seen", b"1", CLIENT, NOW + 3 * week - 1));
    assert!(!cookies.has(b"left", b"1", CLIENT, NOW + 2 * week));
    // A clock that is set back forgets nothing, and generations end by the new time.
    assert!(cookies.has(b"seen", b"1", CLIENT, NOW - 9 * week));
    assert!(cookies.has(b"seen", b"1", CLIENT, NOW - 8 * week));
    assert!(!cookies.has(b"seen", b"1", CLIENT, NOW - 5 * week));
}

/// The same cookie of two sites, or with two keys, has two hashes.
#[test]
fn hashes_are_those_of_a_site_and_a_key() {
    let sites = [1, 2].map(|key| IssuedSites::new(IssuedKey([key; 32]), 1 << 20));
    let cookies: Vec<_> = sites.iter().flat_map(|sites| ["a", "b"].map(|name| sites.site(name))).collect();
    let hashes: HashSet<u64> = cookies.iter().map(|cookies| cookies.hash(b"a", b"b")).collect();
    assert_eq!(hashes.len(), 4);
    assert_ne!(IssuedSites::default().key(), IssuedSites::default().key());
    cookies[0].note(b"a", b"b", CLIENT, NOW);
    assert!(cookies[0].has(b"a", b"b", CLIENT, NOW) && !cookies[1].has(b"a", b"b", CLIENT, NOW));
}

/// Whatever one site has to remember, all together take no more than their bytes, and another site
/// has the room of its share.
#[test]
fn a_site_cannot_starve_others() {
    let bytes = 1 << 20;
    let sites = IssuedSites::new(IssuedKey([7; 32]), bytes);
    let [greedy, quiet, late] = ["greedy", "quiet", "late"].map(|name| sites.site(name));
    (0..1_000).for_each(|number| quiet.note(b"id", &u32::to_be_bytes(number), client(number), NOW));
    for number in 0..200_000u32 {
        greedy.note(b"id", &number.to_be_bytes(), client(number % 5_000), NOW);
    }
    assert!(sites.bytes() <= bytes && greedy.bytes() > bytes / 2, "{}", greedy.bytes());
    assert!((0..1_000).all(|number| knows(&quiet, number)));
    // What is left of the share is there, although the memory is full.
    let own = 8_000;
    for number in 0..own {
        late.note(b"id", &u32::to_be_bytes(number), client(number), NOW);
        greedy.note(b"id", &(200_000 + number).to_be_bytes(), client(number), NOW);
        assert!(sites.bytes() <= bytes);
    }
    assert_eq!((0..own).filter(|number| knows(&late, *number)).count(), own as usize);
    assert!((0..1_000).all(|number| knows(&quiet, number)));
    let counts = [&greedy, &quiet, &late].map(|site| site.statistics());
    assert!(counts[0].rotations > 0 && counts[1].rotations == 0 && counts[2].rotations == 0);
    assert_eq!(counts.iter().map(|site| site.bytes).sum::<usize>(), sites.bytes());
    drop((greedy, quiet));
    assert_eq!(sites.bytes(), late.bytes());
}

/// Many sites at once, from several threads: never more bytes than there are.
#[test]
fn the_bytes_hold_whoever_takes_them() {
    let bytes = 1 << 18;
    let sites = IssuedSites::new(IssuedKey([7; 32]), bytes);
    let all: Vec<_> = (0..40).map(|number| sites.site(&number.to_string())).collect();
    std::thread::scope(|scope| {
        for thread in 0..4u32 {
            let (all, sites) = (&all, &sites);
            scope.spawn(move || {
                for number in 0..40_000u32 {
                    let site = &all[(number * 7 + thread) as usize % all.len()];
                    site.note(b"id", &(number << 2 | thread).to_be_bytes(), client(number), NOW);
                    assert!(sites.bytes() <= bytes);
                }
            });
        }
    });
    assert!(all.iter().all(|site| site.statistics().held > 0));
    assert_eq!(all.iter().map(|site| site.bytes()).sum::<usize>(), sites.bytes());
}

#[test]
fn what_is_kept_is_known_again() {
    let cookies = within(1 << 18);
    let week = ISSUED_COOKIE_MILLIS;
    for number in 0..3_000u32 {
        cookies.note(b"old", &number.to_be_bytes(), client(number), NOW - week);
    }
    for number in 0..3_000u32 {
        cookies.note(b"id", &number.to_be_bytes(), client(2), NOW);
    }
    let state = cookies.state();
    let again = within(1 << 18);
    again.take_over(&state, NOW).unwrap();
    assert_eq!(again.statistics().held, cookies.statistics().held);
    // Taken over twice, nothing is there twice.
    again.take_over(&state, NOW).unwrap();
    assert_eq!(again.statistics().held, cookies.statistics().held);
    for number in 0..3_000u32 {
        assert_eq!(knows(&again, number), knows(&cookies, number));
        assert!(again.has(b"old", &number.to_be_bytes(), client(number), NOW), "{number}");
    }
    // The part of a network, and the time, are the previous ones.
    for number in 0..30_000u32 {
        again.note(b"more", &number.to_be_bytes(), client(2), NOW);
    }
    let of_network = SHARDS * capacity(again.slots_max) / ISSUED_COOKIE_SHARES;
    let young = again.shards.iter().map(|shard| lock(shard).young.len()).sum::<usize>();
    assert!(young <= 3_000 + of_network, "{young}");
    assert!(!knows(&again, 3_001) && !again.has(b"id", &1u32.to_be_bytes(), CLIENT, NOW + 2 * week));
}

/// What is taken over costs nothing of what is known, whichever parts of the table the two are in.
#[test]
fn what_is_kept_adds_up() {
    for number in 0..200u32 {
        let tables = [(); 2].map(|()| within(1 << 18));
        for (table, name) in tables.iter().zip([b"one", b"two"]) {
            table.note(name, &number.to_be_bytes(), CLIENT, NOW);
        }
        tables[0].take_over(&tables[1].state(), NOW).unwrap();
        for name in [b"one", b"two"] {
            assert!(tables[0].has(name, &number.to_be_bytes(), CLIENT, NOW), "{number}");
        }
    }
}

/// Less memory than there was, or a clock that was wrong.
#[test]
fn what_is_kept_is_known_as_far_as_there_is_room_and_time() {
    let cookies = within(1 << 20);
    for number in 0..20_000u32 {
        cookies.note(b"id", &number.to_be_bytes(), client(number), NOW + 40 * ISSUED_COOKIE_MILLIS);
    }
    let small = within(1 << 15);
    small.take_over(&cookies.state(), NOW).unwrap();
    assert!(small.bytes() <= 1 << 15 && small.statistics().held > 1_000);
    let again = within(1 << 20);
    again.take_over(&cookies.state(), NOW).unwrap();
    assert!(knows(&again, 7));
    assert!(!again.has(b"id", &8u32.to_be_bytes(), CLIENT, NOW + 2 * ISSUED_COOKIE_MILLIS));
}

/// Cut at each byte, changed in each byte, of another site or key: nothing of it counts.
#[test]
fn a_damaged_state_is_refused_as_a_whole() {
    let cookies = within(1 << 18);
    for number in 0..20u32 {
        cookies.note(b"id", &number.to_be_bytes(), client(number), NOW);
    }
    let state = cookies.state();
    let again = within(1 << 18);
    for end in 0..state.len() {
        assert_eq!(again.take_over(&state[..end], NOW), Err(IssuedStateError::Damaged), "{end}");
    }
    for at in 0..state.len() {
        let mut changed = state.clone();
        changed[at] ^= 1 << (at % 8);
        assert!(again.take_over(&changed, NOW).is_err(), "{at}");
    }
    assert!(again.take_over(&[&state[..], b"x"].concat(), NOW).is_err());
    let sites = IssuedSites::new(IssuedKey([7; 32]), 1 << 18);
    assert_eq!(sites.site("b").take_over(&state, NOW), Err(IssuedStateError::Damaged));
    let sites = IssuedSites::new(IssuedKey([8; 32]), 1 << 18);
    assert_eq!(sites.site("a").take_over(&state, NOW), Err(IssuedStateError::OtherKey));
    assert_eq!((again.statistics().held, again.bytes()), (0, 0));
}

/// What one node notes another one knows, and it does not come back.
#[test]
fn nodes_tell_each_other() {
    let nodes = [(); 2].map(|()| IssuedSites::new(IssuedKey([7; 32]), 1 << 20));
    let [first, second] = [0, 1].map(|node| nodes[node].site("a"));
    first.note(b"id", b"before", CLIENT, NOW);
    nodes.iter().for_each(|node| node.set_shared(true));
    first.note(b"id", b"after", CLIENT, NOW);
    first.note(b"id", b"after", CLIENT, NOW);
    let fresh = first.take_fresh();
    assert_eq!(fresh.len(), 1);
    assert!(fresh.iter().all(|one| second.learn(*one, NOW) && !second.learn(*one, NOW)));
    assert!(second.has(b"id", b"after", CLIENT, NOW) && !second.has(b"id", b"before", CLIENT, NOW));
    assert!(second.take_fresh().is_empty() && first.take_fresh().is_empty());
    first.offer_all();
    assert_eq!(first.take_fresh().iter().filter(|one| second.learn(**one, NOW)).count(), 1);
    assert!(second.has(b"id", b"before", CLIENT, NOW));
    // A node that nobody listens to keeps no more than can wait.
    for number in 0..40_000u32 {
        first.note(b"id", &number.to_be_bytes(), client(number), NOW);
    }
    let unshared = first.statistics().unshared;
    assert!(
        unshared > 0 && first.take_fresh().len() as u64 + unshared + first.statistics().declined >= 40_000
    );
    // Another key: nothing is known.
    nodes[0].set_key(IssuedKey([9; 32]));
    assert_eq!((first.statistics().held, nodes[0].bytes()), (0, 0));
}
