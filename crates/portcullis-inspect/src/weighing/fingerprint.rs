//! A rule's fingerprint: what it looks at and looks for. Ids recur across versions of the CRS with other
//! contents, and operators give their own rules any id, so a weight is good for a rule only if it says what
//! it said when the weight was learned.
//!
//! In it, for each link: the targets, transformations, `multiMatch`, negation, the operator with its
//! argument, and the words of a file that it names. Not in it: exclusions (an operator who takes a parameter
//! away from a rule has not written another one), messages, tags, severities and actions.

use std::fmt::Write;

use portcullis_engine::{KeyFilter, Link, Operator, Plan, Rule, Target, XmlPath};

/// The fingerprint of `rule`.
pub fn fingerprint(plan: &Plan, rule: &Rule) -> u64 {
    let mut hash = Hash(OFFSET);
    for link in plan.links_of(rule) {
        // A hash takes any text.
        let _ = write_link(&mut hash, plan, link);
    }
    hash.0
}

fn write_link(hash: &mut Hash, plan: &Plan, link: &Link) -> std::fmt::Result {
    // The order of targets changes nothing but the order of matches.
    let mut targets: Vec<String> = link.targets.include.iter().map(target).collect();
    targets.sort_unstable();
    targets.dedup();
    writeln!(hash, "targets {}", targets.join("|"))?;
    let names: Vec<&str> = plan.chains.transformations(link.chain).iter().map(|t| t.name()).collect();
    writeln!(hash, "transformations {}{}", names.join(","), if link.multi_match { " each" } else { "" })?;
    writeln!(hash, "operator {}{}", if link.negated { "!" } else { "" }, link.operator_text)?;
    if let Operator::Pm(words) = &link.operator {
        let mut words: Vec<&[u8]> = words.words().iter().map(Vec::as_slice).collect();
        words.sort_unstable();
        for word in words {
            hash.bytes(word);
            hash.bytes(b"\n");
        }
    }
    Ok(())
}

fn target(target: &Target) -> String {
    let count = if target.count { "&" } else { "" };
    let key = match &target.filter {
        KeyFilter::All => String::new(),
        KeyFilter::Key(key) => format!(":{}", key.to_ascii_lowercase().escape_ascii()),
        KeyFilter::Regex(regex) => format!(":/{}/", regex.pattern().escape_ascii()),
        KeyFilter::Xml(XmlPath::Text) => ":/*".to_owned(),
        KeyFilter::Xml(XmlPath::Attributes) => "://@*".to_owned(),
        KeyFilter::Xml(XmlPath::Search(path)) => format!(":{}", path.text),
    };
    format!("{count}{}{key}", target.variable.name())
}

const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0100_0000_01b3;

/// FNV-1a. It tells contents apart that differ by chance or by their authors' work; no attacker gains by two
/// that are alike.
struct Hash(u64);

impl Hash {
    fn bytes(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(PRIME);
        }
    }
}

impl Write for Hash {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.bytes(text.as_bytes());
        Ok(())
    }
}
