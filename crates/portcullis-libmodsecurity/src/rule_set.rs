//! The rules of one scope of a server's configuration.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use portcullis_seclang::Root;

use crate::cache::Cache;
use crate::ready::Ready;

/// Texts and files that one rule set may be made of.
const ROOTS_MAX: usize = 10_000;

/// A rule set: its sources, in order, and behind it the scopes that it was merged with. It is
/// loaded whenever something is added, so that a mistake is reported where it is made.
#[derive(Debug)]
pub struct RuleSet {
    /// Its own rules first, then those of the scopes around it.
    scopes: Vec<Vec<Root>>,
    ready: OnceLock<Arc<Ready>>,
}

impl Default for RuleSet {
    fn default() -> RuleSet {
        RuleSet { scopes: vec![Vec::new()], ready: OnceLock::new() }
    }
}

impl RuleSet {
    /// Adds the rules of a file; its name may hold `*`. Returns how many there are more.
    pub fn add_file(&mut self, path: PathBuf, cache: &Cache) -> Result<usize, String> {
        self.add(Root::File(path), cache)
    }

    /// Adds rules. Returns how many there are more.
    pub fn add_text(&mut self, text: &[u8], cache: &Cache) -> Result<usize, String> {
        self.add(Root::Text { name: "<inline rules>".into(), text: text.to_vec() }, cache)
    }

    /// Adds the rules of a server, as `SecRemoteRules` does: `url` ends in `#sha256:` and the checksum of the
    /// file, without which nobody could tell whether it is the right one. Returns how many there are more.
    pub fn add_remote(&mut self, key: &str, url: &str, cache: &Cache) -> Result<usize, String> {
        let Some((url, checksum)) = url.split_once('#').filter(|(_, rest)| rest.starts_with("sha256:"))
        else {
            return Err(format!(
                "Rules error. {url}: remote rules need the checksum of the file. Hint: write \
                 {url}#sha256:CHECKSUM, with what `sha256sum FILE` prints"
            ));
        };
        if [key, url, checksum].iter().any(|word| word.contains(['"', '\n', '\r', '\\'])) {
            return Err(format!(
                "Rules error. {url}: key and address must not hold quotes, backslashes or line ends"
            ));
        }
        let text = format!("SecRemoteRules \"{key}\" \"{url}\" \"{checksum}\"\n");
        self.add(Root::Text { name: "<remote rules>".into(), text: text.into_bytes() }, cache)
    }

    fn add(&mut self, root: Root, cache: &Cache) -> Result<usize, String> {
        let before = self.ready.get().map_or(0, |ready| ready.rule_count());
        if self.scopes.iter().map(Vec::len).sum::<usize>() >= ROOTS_MAX {
            return Err(format!("Rules error. A rule set is made of at most {ROOTS_MAX} files and texts"));
        }
        cache.begin_reading();
        let mut scopes = self.scopes.clone();
        match scopes.first_mut() {
            Some(own) => own.push(root),
            None => scopes.push(vec![root]),
        }
        let ready = cache.load(&scopes)?;
        let after = ready.rule_count();
        (self.scopes, self.ready) = (scopes, OnceLock::from(ready));
        Ok(after.saturating_sub(before))
    }

    /// Puts this rule set inside `outer`: its rules run before those of `outer`, and its settings hold where
    /// both have them. Returns how many rules there are more.
    pub fn merge(&mut self, outer: &RuleSet, cache: &Cache) -> Result<usize, String> {
        let before = self.ready.get().map_or(0, |ready| ready.rule_count());
        let around = outer.scopes.iter().filter(|scope| !scope.is_empty()).cloned();
        let is_empty = self.scopes.iter().all(Vec::is_empty);
        let mut scopes: Vec<Vec<Root>> =
            self.scopes.iter().filter(|scope| !scope.is_empty()).cloned().collect();
        scopes.extend(around);
        let ready = match is_empty {
            true => outer.ready(cache)?,
            false => cache.load(&scopes)?,
        };
        let after = ready.rule_count();
        // Its own scope stays the first, whether there is something in it or not.
        if is_empty {
            scopes.insert(0, Vec::new());
        }
        (self.scopes, self.ready) = (scopes, OnceLock::from(ready));
        Ok(after.saturating_sub(before))
    }

    /// The rules.
    pub(crate) fn ready(&self, cache: &Cache) -> Result<Arc<Ready>, String> {
        if let Some(ready) = self.ready.get() {
            return Ok(Arc::clone(ready));
        }
        let scopes: Vec<Vec<Root>> = self.scopes.iter().filter(|scope| !scope.is_empty()).cloned().collect();
        let ready = cache.load(&scopes)?;
        Ok(Arc::clone(self.ready.get_or_init(|| ready)))
    }

    /// Its sources, for people.
    pub fn describe(&self) -> String {
        let mut text = String::new();
        for root in self.scopes.iter().flatten() {
            match root {
                Root::File(path) | Root::Optional(path) => {
                    text.push_str(&format!("file {}\n", path.display()))
                }
                Root::Text { name, text: content } => {
                    text.push_str(&format!("{} bytes of {}\n", content.len(), name.display()));
                }
            }
        }
        let rules = self.ready.get().map_or(0, |ready| ready.rule_count());
        text.push_str(&format!("{rules} rules\n"));
        text
    }
}
