//! Persistent collections as transactions see them: in memory, and in a folder that processes share.

use std::path::Path;
use std::time::{Duration, Instant};

use modsecurity::{Cache, RuleSet, Transaction};

/// A process of a server: what it has loaded, it shares with nobody.
struct Process {
    cache: Cache,
    rules: RuleSet,
}

fn process(text: &str) -> Result<Process, String> {
    let (cache, mut rules) = (Cache::default(), RuleSet::default());
    rules.add_text(text.as_bytes(), &cache)?;
    Ok(Process { cache, rules })
}

impl Process {
    fn begin(&self, key: &str) -> Transaction {
        let mut transaction = Transaction::new(&self.rules, None, &self.cache).unwrap();
        transaction.connection(("192.0.2.7", 4711), ("127.0.0.1", 80));
        transaction.uri(b"/", b"GET", b"1.1");
        transaction.add_request_header(b"User-Agent", key.as_bytes());
        transaction
    }

    /// The messages of the rules that matched in a whole transaction.
    fn messages(&self, key: &str) -> Vec<String> {
        let mut transaction = self.begin(key);
        transaction.request_headers();
        transaction.logging();
        transaction.take_lines().iter().map(|line| message(line)).collect()
    }
}

fn message(line: &str) -> String {
    let message = line.split("[msg \"").nth(1).and_then(|rest| rest.split('"').next());
    message.unwrap_or(line).to_owned()
}

/// Tells what the record has: before and behind a change, and at the end.
fn rules(folder: Option<&Path>) -> String {
    let folder = folder.map_or_else(String::new, |folder| format!("SecDataDir {}\n", folder.display()));
    format!(
        "SecRuleEngine On\n{folder}\
         SecAction \"id:1,phase:1,pass,nolog,initcol:ip=%{{REQUEST_HEADERS.User-Agent}}\"\n\
         SecAction \"id:2,phase:1,pass,log,msg:'%{{ip.is_new}} %{{ip.update_counter}} %{{ip.n}}'\"\n\
         SecAction \"id:3,phase:1,pass,nolog,setvar:ip.n=+2,setvar:ip.word=ab,setvar:!ip.gone\"\n\
         SecAction \"id:4,phase:1,pass,log,msg:'%{{ip.is_new}} %{{ip.n}} %{{ip.word}}'\"\n\
         SecAction \"id:5,phase:1,pass,nolog,setvar:ip.n=-1,setvar:ip.gone=1\"\n\
         SecAction \"id:6,phase:5,pass,nolog,setvar:ip.n=+10\"\n\
         SecAction \"id:7,phase:5,pass,log,msg:'%{{ip.n}} %{{ip.gone}}'\"\n"
    )
}

#[test]
fn a_transaction_sees_the_same_in_memory_and_in_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    for folder in [None, Some(folder.path())] {
        let one = process(&rules(folder)).unwrap();
        assert_eq!(one.messages("a"), ["1 0 ", "1 2 ab", "11 1"]);
        assert_eq!(one.messages("a"), [" 1 11", " 13 ab", "22 1"]);
        assert_eq!(one.messages("b"), ["1 0 ", "1 2 ab", "11 1"]);
        // One update for each transaction, however often it is stored.
        assert_eq!(one.messages("a")[0], " 2 22");
    }
    let two = process(&rules(Some(folder.path()))).unwrap();
    assert_eq!(two.messages("a")[0], " 3 33", "another process goes on");
}

#[test]
fn a_change_is_there_for_others_when_its_phase_is_over() {
    let folder = tempfile::tempdir().unwrap();
    let text = |folder: &Path| {
        format!(
            "SecRuleEngine On\nSecDataDir {}\n\
             SecAction \"id:1,phase:1,pass,nolog,initcol:ip=%{{REQUEST_HEADERS.User-Agent}}\"\n\
             SecRule IP:n \"@ge 1\" \"id:2,phase:1,deny,log\"\n\
             SecAction \"id:3,phase:1,pass,nolog,setvar:ip.n=+1\"\n",
            folder.display()
        )
    };
    let (one, two) = (process(&text(folder.path())).unwrap(), process(&text(folder.path())).unwrap());
    // Still in the middle of it.
    let mut first = one.begin("a");
    first.request_headers();
    assert_eq!(first.take_intervention(), None);
    let mut second = two.begin("a");
    second.request_headers();
    assert!(second.take_intervention().is_some());
    first.logging();
    second.logging();

    // Another folder is another world.
    let other = tempfile::tempdir().unwrap();
    let mut third = process(&text(other.path())).unwrap().begin("a");
    third.request_headers();
    assert_eq!(third.take_intervention(), None);
}

/// A client that takes its time with its body gains nothing: what it is counted for lasts from then on.
#[test]
fn what_a_slow_request_is_counted_for_lasts_from_its_end() {
    let folder = tempfile::tempdir().unwrap();
    for settings in [String::new(), format!("SecDataDir {}\n", folder.path().display())] {
        let one = process(&format!(
            "SecRuleEngine On\n{settings}SecCollectionTimeout 2\n\
             SecAction \"id:1,phase:1,pass,nolog,initcol:ip=%{{REQUEST_HEADERS.User-Agent}}\"\n\
             SecAction \"id:2,phase:1,pass,log,msg:'%{{ip.n}}'\"\n\
             SecAction \"id:3,phase:2,pass,nolog,setvar:ip.n=+1,expirevar:ip.n=2\"\n"
        ))
        .unwrap();
        let mut slow = one.begin("a");
        slow.request_headers();
        std::thread::sleep(Duration::from_secs(3));
        slow.request_body();
        slow.logging();
        assert_eq!(one.messages("a"), ["1"], "{settings}");
    }
}

#[test]
fn a_folder_that_is_not_there_is_a_mistake_where_it_is_used() {
    let used = "SecDataDir /nonexistent/data\nSecAction \"id:1,phase:1,pass,initcol:ip=a\"";
    let said = process(used).err().unwrap();
    assert!(
        said.starts_with(
            "Rules error. File: <inline rules>. Line: 1. Column: 1. SecDataDir: /nonexistent/data: No such file"
        ) && said.contains("Hint: make it"),
        "{said}"
    );
    assert!(process("SecDataDir /nonexistent/data\nSecAction \"id:1,phase:1,pass\"").is_ok());
}

/// What clients send as a key: long, many, binary.
#[test]
fn keys_of_clients_have_any_length() {
    let folder = tempfile::tempdir().unwrap();
    let one = process(&rules(Some(folder.path()))).unwrap();
    for key in ["", "x", &"long ".repeat(20_000), "\u{1}\u{7f}\"\\"] {
        assert_eq!(one.messages(key), ["1 0 ", "1 2 ab", "11 1"], "{} bytes", key.len());
        assert_eq!(one.messages(key)[0], " 1 11", "{} bytes", key.len());
    }
}

/// The cost of a transaction with a counter, beside one without and one in memory:
/// `cargo test --release -p portcullis-libmodsecurity --test it cost -- --ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
fn cost() {
    let folder = tempfile::tempdir().unwrap();
    let plain = "SecRuleEngine On\nSecAction \"id:1,phase:1,pass,nolog,setvar:tx.n=+1\"\n\
                 SecRule TX:n \"@gt 1000000\" \"id:2,phase:1,deny\"\n";
    let counting = "SecRuleEngine On\n\
                    SecAction \"id:1,phase:1,pass,nolog,initcol:ip=%{REQUEST_HEADERS.User-Agent}\"\n\
                    SecAction \"id:2,phase:1,pass,nolog,setvar:ip.n=+1,expirevar:ip.n=60\"\n\
                    SecRule IP:n \"@gt 1000000\" \"id:3,phase:1,deny\"\n";
    let shared = format!("SecDataDir {}\n{counting}", folder.path().display());
    for (name, text) in [("without", plain), ("in memory", counting), ("in a folder", &shared)] {
        let process = process(text).unwrap();
        for keys in [100, 100_000] {
            let mut times: Vec<f64> = (0..3)
                .map(|_| {
                    let begin = Instant::now();
                    for number in 0..100_000 {
                        let mut transaction = process.begin(&format!("client {}", number % keys));
                        transaction.request_headers();
                        assert_eq!(transaction.take_intervention(), None);
                        transaction.logging();
                    }
                    begin.elapsed().as_secs_f64() * 10.0
                })
                .collect();
            times.sort_by(f64::total_cmp);
            println!("{name}, {keys} keys: {:.1} us", times[0]);
        }
    }
}
