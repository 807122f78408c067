//! A gate never holds back a text in which something matches.

use portcullis_match::{Gate, LiteralTable, Regex, RegexFlags};
use portcullis_types::ByteSet;
use proptest::prelude::*;

/// Patterns of a few letters with every construct that gates look into.
fn pattern() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        4 => "[abcA]{1,4}",
        1 => Just("[ab]".to_owned()),
        1 => Just("[^a]".to_owned()),
        1 => Just("[a-z]".to_owned()),
        1 => Just(r"\b".to_owned()),
        1 => Just(r"\s".to_owned()),
        1 => Just("^".to_owned()),
        1 => Just("$".to_owned()),
        1 => Just(".".to_owned()),
        1 => Just("(?i:bC)".to_owned()),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            3 => prop::collection::vec(inner.clone(), 1..4).prop_map(|parts| parts.concat()),
            3 => prop::collection::vec(inner.clone(), 1..4).prop_map(|parts| format!("(?:{})", parts.join("|"))),
            1 => inner.clone().prop_map(|part| format!("(?:{part})?")),
            1 => inner.clone().prop_map(|part| format!("(?:{part})*")),
            1 => inner.clone().prop_map(|part| format!("(?:{part})+")),
            1 => inner.clone().prop_map(|part| format!("(?:{part}){{2}}")),
            1 => inner.prop_map(|part| format!("({part}){{1,3}}")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, ..ProptestConfig::default() })]

    #[test]
    fn what_matches_is_admitted(pattern in pattern(), texts in prop::collection::vec("[abcABC \n]{0,12}", 8)) {
        let flags = RegexFlags::default();
        let regex = Regex::new(pattern.as_bytes(), flags).unwrap();
        let hir = Regex::syntax(pattern.as_bytes(), flags).unwrap();
        let gate = Gate::of_hir(&hir);
        for text in texts {
            if regex.is_match(text.as_bytes()) {
                prop_assert!(gate.admits(text.as_bytes()), "{pattern:?} {text:?} {gate:?}");
                let alphabet = ByteSet::of(text.as_bytes()).union(ByteSet::of(b"aA"));
                let within = Gate::of_hir_within(&hir, &alphabet);
                prop_assert!(within.is_some_and(|gate| gate.admits(text.as_bytes())), "{pattern:?} {text:?}");
                if !regex.is_match_at_start(text.as_bytes()) {
                    let behind = Gate::of_hir_behind_start(&hir, &alphabet);
                    prop_assert!(behind.is_some_and(|gate| gate.admits(text.as_bytes())), "{pattern:?} {text:?}");
                }
                let both_cases = ByteSet::of(text.to_ascii_lowercase().as_bytes())
                    .union(ByteSet::of(text.to_ascii_uppercase().as_bytes()));
                let within = gate.within(&both_cases);
                prop_assert!(within.is_some_and(|gate| gate.admits(text.as_bytes())), "{pattern:?} {text:?}");
            }
        }
    }

    #[test]
    fn the_finder_finds_what_is_there(
        words in prop::collection::vec("[abcB@`]{2,7}", 1..12),
        text in "[abcABC@`\\[{]{0,40}",
    ) {
        let finder = LiteralTable::new(&words.iter().map(String::as_bytes).collect::<Vec<_>>());
        let mut found = vec![0; words.len()];
        let mut places = vec![0];
        finder.find(text.as_bytes(), |word, place| {
            found[word as usize] += 1;
            places.push(place);
        });
        prop_assert!(places.is_sorted() && places.iter().all(|&place| place < text.len().max(1)));
        let lower = text.to_ascii_lowercase();
        for (word, times) in words.iter().zip(found) {
            let word = word.to_ascii_lowercase();
            let there = (0..lower.len()).filter(|&at| lower[at..].starts_with(&word)).count();
            prop_assert_eq!(times, there, "{} in {}", word, text);
        }
    }
}

#[test]
fn what_begins_behind_the_start_needs_words() {
    let hir = Regex::syntax(br"(?i)(?:^|busybox|[=\n])\s*q[a-z0-9]\.", RegexFlags::default()).unwrap();
    let plain = ByteSet::range(b'a', b'z').union(ByteSet::range(b'A', b'Z')).union(ByteSet::of(b" .="));
    assert!(Gate::of_hir_within(&hir, &plain).unwrap().words.is_empty());
    let behind = Gate::of_hir_behind_start(&hir, &plain).unwrap();
    assert!(behind.words.contains(&vec![b"=".to_vec(), b"busybox".to_vec()]), "{behind:?}");
    // Nothing that has to begin with the text begins elsewhere.
    let hir = Regex::syntax(b"^(?:ls|cat)", RegexFlags::default()).unwrap();
    assert_eq!(Gate::of_hir_behind_start(&hir, &plain), None);
}

#[test]
fn gates_of_known_patterns() {
    let gate =
        |pattern: &str| Gate::of_hir(&Regex::syntax(pattern.as_bytes(), RegexFlags::default()).unwrap());
    assert!(!gate(r"(?i)<script[^>]*>").admits(b"the script of the play"));
    assert!(gate(r"(?i)<script[^>]*>").admits(b"<SCRIPT src=x>"));
    assert!(!gate(r"\bselect\b.{1,100}\bfrom\b").admits(b"select one for me"));
    assert!(!gate(r"a{3}").admits(b"aa"));
    assert!(gate(r"a*").admits(b""));
}
