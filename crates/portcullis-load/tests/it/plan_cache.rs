//! A plan cache never changes what is loaded, and one that cannot be trusted is not used.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use portcullis_config::Policy;
use portcullis_load::{Patterns, PlanCache, PlanCacheError, load_sharing};

const RULES: &str = r#"
SecRuleEngine On
SecRule ARGS "@rx (?i)union\s+(?:all\s+)?select" "id:1,phase:2,deny"
SecRule ARGS "@rx (?:^|[;|&])\s*(cat|ls|id)\b" "id:2,phase:2,deny,capture"
SecRule ARGS "@rx (?<!un)safe" "id:3,phase:2,deny"
SecRule REQUEST_HEADERS:User-Agent "@pm nikto sqlmap" "id:4,phase:1,deny"
SecRule ARGS "@rx (?:[!=]|union|exec)\s*[a-z]{20}" "id:5,phase:2,deny"
"#;

/// The result of a load.
struct Load {
    plan: String,
    /// Patterns and lists that were not made anew, those that every policy has not counted.
    known: usize,
    error: Option<PlanCacheError>,
    written: bool,
}

/// In rules that are always loaded.
fn of_defaults() -> usize {
    static COUNT: OnceLock<usize> = OnceLock::new();
    *COUNT.get_or_init(count_defaults)
}

fn count_defaults() -> usize {
    let patterns = Patterns::default();
    patterns.remembering(Default::default());
    load_sharing(&Policy::default(), &patterns).unwrap_or_else(|error| panic!("{error}"));
    let used = patterns.used();
    used.regexes.len() + used.words.len()
}

fn load(rules: &str, cache: &Path) -> Load {
    let policy = Policy { directives: Some(rules.to_owned()), ..Policy::default() };
    load_policy(&policy, cache)
}

fn load_policy(policy: &Policy, cache: &Path) -> Load {
    let patterns = Patterns::default();
    let (cache, error) = PlanCache::open(cache, &patterns);
    let loaded = load_sharing(policy, &patterns).unwrap_or_else(|error| panic!("{error}"));
    // With the prefilter, which the facts are for.
    let plan = format!("{}\n{:?}", loaded.plan, loaded.plan.candidates);
    let used = patterns.used();
    let written = cache.keep(&used).unwrap_or_else(|error| panic!("{error}"));
    let known = used.known.saturating_sub(of_defaults());
    Load { plan, known, error, written }
}

fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("plan.cache");
    (folder, cache)
}

#[test]
fn the_second_load_knows_what_the_first_found_out() {
    let (folder, cache) = folder();
    let first = load(RULES, &cache);
    assert!((first.known, first.error.is_none(), first.written) == (0, true, true));
    let second = load(RULES, &cache);
    // Not the one that backtracks.
    assert!((second.known, second.error.is_none(), second.written) == (4, true, false));
    assert_eq!(first.plan, second.plan);
    let files: Vec<_> =
        fs::read_dir(folder.path()).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(files, ["plan.cache"], "nothing is left beside it");
    assert_eq!(fs::metadata(&cache).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_rule_that_changed_is_read_anew() {
    let (_folder, cache) = folder();
    load(RULES, &cache);
    let changed = RULES.replace("(cat|ls|id)", "(cat|ls|who)").replace("nikto", "nmap");
    let (_other, none) = self::folder();
    let with = load(&changed, &cache);
    assert_eq!(with.known, 2, "only the rules that did not change");
    assert_eq!(with.plan, load(&changed, &none).plan);
    assert!(with.written);
    assert_eq!(load(&changed, &cache).known, 4);
    // Other reading of the same text: `^` and `$` at line ends.
    let other = format!("SecRuleEngine On\n{RULES}");
    assert_eq!(load(&other, &cache).plan, load(&other, &none).plan);
}

#[test]
fn data_files_count_by_what_is_in_them() {
    let (folder, cache) = folder();
    let (rules, words) = (folder.path().join("a.conf"), folder.path().join("words.data"));
    fs::write(&rules, "SecRule ARGS \"@pmFromFile words.data\" \"id:1,phase:2,deny\"\n").unwrap();
    fs::write(&words, "first\nsecond\n").unwrap();
    let policy = Policy { include: vec![rules], ..Policy::default() };
    load_policy(&policy, &cache);
    assert_eq!(load_policy(&policy, &cache).known, 1);
    fs::write(&words, "first\nthird\n").unwrap();
    let changed = load_policy(&policy, &cache);
    assert_eq!(changed.known, 0);
    assert_eq!(changed.plan, load_policy(&policy, &folder.path().join("other.cache")).plan);
}

#[test]
fn a_damaged_file_is_refused_and_replaced() {
    let (_folder, cache) = folder();
    let clean = load(RULES, &cache).plan;
    let good = fs::read(&cache).unwrap();
    let check = |content: &[u8], reason: &str| {
        fs::write(&cache, content).unwrap();
        let load = load(RULES, &cache);
        let error = load.error.map(|error| error.to_string()).unwrap_or_default();
        assert!(error.contains(reason), "{reason}: {error:?}");
        assert_eq!((load.known, &load.plan), (0, &clean));
        assert_eq!(fs::read(&cache).unwrap(), good, "it is written anew");
    };
    check(b"", "ends too early");
    check(&good[..11], "ends too early");
    check(b"PLANFCT1, as it once was, with a longer checksum", "another version");
    check(b"something else that is long enough to have a head", "not a plan cache");
    for at in (8..good.len()).step_by(997) {
        let mut content = good.clone();
        content[at] ^= 0x10;
        check(&content, "checksum");
    }
    for length in (13..good.len()).step_by(997) {
        check(&good[..length], "checksum");
    }
}

/// With the right checksum: made so that it looks good.
#[test]
fn a_forged_file_is_refused_or_says_what_it_can() {
    let (_folder, cache) = folder();
    let clean = load(RULES, &cache).plan;
    let good = fs::read(&cache).unwrap();
    let body = &good[12..];
    let with_sum = |body: &[u8]| [&good[..8], &crc32fast::hash(body).to_le_bytes()[..], body].concat();
    let error = |body: &[u8]| {
        fs::write(&cache, with_sum(body)).unwrap();
        let (_, error) = PlanCache::open(&cache, &Patterns::default());
        error.map(|error| error.to_string()).unwrap_or_default()
    };
    assert_eq!(error(body), "");
    let version_length = 4 + u32::from_le_bytes(body[..4].try_into().unwrap()) as usize;
    let mut other = body.to_vec();
    other[version_length - 1] ^= 1;
    assert!(error(&other).contains("another version"));
    for length in 0..body.len() {
        assert_ne!(error(&body[..length]), "", "{length} of {}", body.len());
    }
    assert_ne!(error(&[body, b"x"].concat()), "");
    // Counts and lengths that promise more than is there.
    for at in (version_length..body.len().min(version_length + 400)).step_by(3) {
        let mut huge = body.to_vec();
        let end = huge.len().min(at + 4);
        huge[at..end].fill(0xff);
        let _ = error(&huge);
    }
    fs::write(&cache, &good).unwrap();
    assert_eq!(load(RULES, &cache).plan, clean);
}

#[test]
fn a_file_that_others_can_write_is_refused() {
    let (folder, cache) = folder();
    load(RULES, &cache);
    for mode in [0o620, 0o602] {
        fs::set_permissions(&cache, fs::Permissions::from_mode(mode)).unwrap();
        let load = load(RULES, &cache);
        assert!(matches!(load.error, Some(PlanCacheError::Foreign(_))), "{mode:o}");
        assert_eq!(load.known, 0);
        fs::set_permissions(&cache, fs::Permissions::from_mode(0o600)).unwrap();
    }
    assert!(matches!(load_at(folder.path()).error, Some(PlanCacheError::Foreign(_))));
}

/// A folder where the file should be: it cannot be replaced, and the load succeeds.
fn load_at(path: &Path) -> Load {
    let patterns = Patterns::default();
    let (cache, error) = PlanCache::open(path, &patterns);
    let policy = Policy { directives: Some(RULES.to_owned()), ..Policy::default() };
    load_sharing(&policy, &patterns).unwrap_or_else(|error| panic!("{error}"));
    let used = patterns.used();
    assert!(cache.keep(&used).is_err());
    Load { plan: String::new(), known: 0, error, written: false }
}
