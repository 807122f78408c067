//! Attacks on the library itself: calls in any order, any bytes, many threads.

use modsecurity::{Cache, RuleSet, Transaction};

const RULES: &str = "\
SecRuleEngine On
SecRequestBodyAccess On
SecResponseBodyAccess On
SecRequestBodyLimit 5000
SecResponseBodyLimit 5000
SecResponseBodyLimitAction ProcessPartial
SecResponseBodyMimeType text/html
SecRule REQUEST_HEADERS|ARGS|REQUEST_URI \"@rx (?i)select|\\x00\" \"id:1,phase:1,pass,log,logdata:'%{MATCHED_VAR}'\"
SecRule ARGS|REQUEST_BODY \"@contains evil\" \"id:2,phase:2,deny,log\"
SecRule RESPONSE_HEADERS|RESPONSE_BODY \"@contains evil\" \"id:3,phase:4,redirect:http://b/%{MATCHED_VAR},log\"
SecSemanticDetector Strict
";

/// Numbers that are the same in each run (xorshift).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    /// Bytes of all kinds, with words that rules look for.
    fn bytes(&mut self) -> Vec<u8> {
        const WORDS: [&[u8]; 9] = [
            b"evil",
            b"select",
            b"/",
            b"?q=",
            b"%00",
            b"\r\n",
            b"\0",
            b"text/html",
            b"multipart/form-data; boundary=a",
        ];
        let mut bytes = Vec::new();
        for _ in 0..self.below(6) {
            match self.below(3) {
                0 => bytes.extend((0..self.below(200)).map(|_| 0).collect::<Vec<u8>>()),
                1 => bytes.extend_from_slice(WORDS[self.below(WORDS.len() as u64) as usize]),
                _ => {
                    bytes.extend((0..self.below(20)).map(|at| (at * 37 + self.0) as u8).collect::<Vec<u8>>())
                }
            }
        }
        bytes
    }
}

fn rules(cache: &Cache) -> RuleSet {
    let mut rules = RuleSet::default();
    rules.add_text(RULES.as_bytes(), cache).unwrap();
    rules
}

/// One transaction, of calls in an order that no connector has.
fn wild(rules: &RuleSet, cache: &Cache, numbers: &mut Numbers) {
    let id = numbers.bytes();
    let mut transaction = Transaction::new(rules, Some(&id), cache).unwrap();
    let mut interventions = 0;
    for _ in 0..numbers.below(40) {
        let (one, other) = (numbers.bytes(), numbers.bytes());
        let text = String::from_utf8_lossy(&one).into_owned();
        match numbers.below(17) {
            0 => transaction.connection((&text, 1), (&text, 2)),
            1 => transaction.set_hostname(&text),
            2 => transaction.uri(&one, &other, b"1.1"),
            3 => transaction.uri(&one, b"POST", &other),
            4..=6 => transaction.add_request_header(&one, &other),
            7 => transaction.request_headers(),
            8 | 9 => transaction.append_request_body(&one),
            10 => transaction.request_body(),
            11 => transaction.add_response_header(&one, &other),
            12 => transaction.response_headers(numbers.below(70_000) as u16, &one),
            13 => transaction.append_response_body(&one),
            14 => transaction.response_body(),
            15 => transaction.logging(),
            _ => assert!(transaction.shown_response_body().ends_with(b"\0")),
        }
        for line in transaction.take_lines() {
            assert!(line.bytes().all(|byte| (0x20..0x7f).contains(&byte)), "{line:?}");
        }
        if let Some(found) = transaction.take_intervention() {
            interventions += 1;
            assert!((300..600).contains(&found.status), "{found:?}");
            assert!(!found.log.contains(['\n', '\r', '\0']), "{found:?}");
            assert!(!found.url.unwrap_or_default().contains(&b'\n'));
        }
    }
    assert!(interventions <= 1, "a transaction is decided once");
}

#[test]
fn whatever_is_called_in_whatever_order() {
    let cache = Cache::default();
    let rules = rules(&cache);
    for seed in 1..2_000 {
        wild(&rules, &cache, &mut Numbers(seed * 0x9e37_79b9));
    }
}

#[test]
fn transactions_of_many_threads_share_their_rules() {
    let cache = Cache::default();
    let rules = rules(&cache);
    std::thread::scope(|scope| {
        for thread in 1..=4 {
            let (rules, cache) = (&rules, &cache);
            scope.spawn(move || {
                for seed in 1..200 {
                    wild(rules, cache, &mut Numbers(seed * 0x9e37_79b9 * thread));
                }
            });
        }
    });
    // One that is begun here and ends there.
    let mut transaction = Transaction::new(&rules, None, &cache).unwrap();
    transaction.uri(b"/?q=select", b"GET", b"1.1");
    transaction.request_headers();
    let lines = std::thread::spawn(move || {
        transaction.logging();
        transaction.take_lines()
    });
    assert!(!lines.join().unwrap().is_empty());
}

#[test]
fn rule_texts_of_any_bytes_are_rules_or_errors() {
    let cache = Cache::default();
    let mut numbers = Numbers(7);
    for _ in 0..200 {
        let mut rules = RuleSet::default();
        let text = [b"SecRule ".to_vec(), numbers.bytes(), b" \"".to_vec(), numbers.bytes()].concat();
        if let Err(error) = rules.add_text(&text, &cache) {
            assert!(
                error.starts_with("Rules error.") && !error.contains('\n') && error.len() < 1_500,
                "{error}"
            );
        }
    }
    assert_eq!(cache.loaded(), 0);
}
