//! `import`: snippets and files, in its place.

use std::collections::BTreeMap;

use super::syntax::{Directive, parse};
use crate::error::Error;
use crate::report::Ledger;
use crate::sources::{INCLUDE_DEPTH_MAX, Sources, absolute, folder};

/// Directives after all imports.
const DIRECTIVES_MAX: usize = 200_000;

/// Replaces imports.
pub(crate) struct Imports<'a> {
    pub sources: &'a mut Sources,
    pub ledger: &'a mut Ledger,
    snippets: BTreeMap<String, Vec<Directive>>,
    parsed: BTreeMap<String, Vec<Directive>>,
    count: usize,
}

impl<'a> Imports<'a> {
    pub fn new(sources: &'a mut Sources, ledger: &'a mut Ledger) -> Imports<'a> {
        Imports { sources, ledger, snippets: BTreeMap::new(), parsed: BTreeMap::new(), count: 0 }
    }

    /// All directives of the file `name`.
    pub fn file(&mut self, name: &str, chain: &mut Vec<String>) -> Result<Vec<Directive>, Error> {
        let parsed = match self.parsed.get(name) {
            Some(parsed) => parsed.clone(),
            None => {
                let file = self.sources.open(name)?;
                let parsed = parse(self.sources, file, self.ledger)?;
                self.parsed.insert(name.to_owned(), parsed.clone());
                parsed
            }
        };
        chain.push(name.to_owned());
        let expanded = self.expand(parsed, folder(name), chain);
        chain.pop();
        expanded
    }

    fn expand(
        &mut self,
        items: Vec<Directive>,
        at: &str,
        chain: &mut Vec<String>,
    ) -> Result<Vec<Directive>, Error> {
        let mut expanded = Vec::new();
        for mut item in items {
            self.count += 1;
            if self.count > DIRECTIVES_MAX {
                let message = format!("more than {DIRECTIVES_MAX} directives, with those that are imported");
                return Err(self.sources.error(item.place, message));
            }
            let name = item.name();
            if let Some(name) = name.strip_prefix('(').and_then(|name| name.strip_suffix(')')) {
                self.ledger.taken(item.entry, "what is in it, where it is imported");
                self.snippets.insert(name.to_owned(), item.block.take().unwrap_or_default());
                continue;
            }
            if name == "import" {
                expanded.extend(self.import(&item, at, chain)?);
                continue;
            }
            item.block = item.block.take().map(|block| self.expand(block, at, chain)).transpose()?;
            expanded.push(item);
        }
        Ok(expanded)
    }

    fn import(
        &mut self,
        item: &Directive,
        at: &str,
        chain: &mut Vec<String>,
    ) -> Result<Vec<Directive>, Error> {
        let name = item.arg(0);
        if chain.len() == INCLUDE_DEPTH_MAX {
            let message = format!("more than {INCLUDE_DEPTH_MAX} imports inside each other");
            return Err(self.sources.error(item.place, message));
        }
        if let Some(snippet) = self.snippets.get(name) {
            let snippet = with_args(snippet, item.args().get(1..).unwrap_or_default());
            self.ledger.taken(item.entry, "read");
            chain.push(format!("({name})"));
            let expanded = self.expand(snippet, at, chain);
            chain.pop();
            return expanded;
        }
        let pattern = absolute(at, name);
        let names = self.sources.matching(&pattern);
        if names.is_empty() && !portcullis_seclang::glob::is_pattern(&pattern) {
            return Err(self
                .sources
                .error(item.place, format!("there is no snippet and no file {name}"))
                .with_help(
                    "of a copy of another machine's files, name the folder that stands for `/` with --root",
                ));
        }
        match names.len() {
            0 => self.ledger.taken(item.entry, "no file has such a name"),
            1 => self.ledger.taken(item.entry, "read"),
            count => self.ledger.taken(item.entry, format!("read, {count} files")),
        }
        let mut imported = Vec::new();
        for name in names {
            if chain.contains(&name) {
                return Err(self.sources.error(item.place, format!("{name} imports itself")));
            }
            imported.extend(self.file(&name, chain)?);
        }
        Ok(imported)
    }
}

/// A snippet with `{args[0]}` and `{args.0}` replaced.
fn with_args(items: &[Directive], args: &[String]) -> Vec<Directive> {
    let replaced = |word: &String| {
        args.iter().take(16).enumerate().fold(word.clone(), |word, (index, arg)| {
            word.replace(&format!("{{args[{index}]}}"), arg).replace(&format!("{{args.{index}}}"), arg)
        })
    };
    let item = |item: &Directive| Directive {
        words: item.words.iter().map(replaced).collect(),
        block: item.block.as_ref().map(|block| with_args(block, args)),
        ..item.clone()
    };
    items.iter().map(item).collect()
}
