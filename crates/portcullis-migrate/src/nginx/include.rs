//! `include`: the directives of other files, in its place.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::syntax::{Directive, parse};
use crate::error::Error;
use crate::report::Ledger;
use crate::sources::{INCLUDE_DEPTH_MAX, Sources, absolute};

/// Directives after all `include`s have been replaced; a file that is included often counts each time.
const DIRECTIVES_MAX: usize = 200_000;

/// Replaces `include`s. Relative names start from the folder of the main file, as in nginx.
pub(crate) struct Includes<'a> {
    pub sources: &'a mut Sources,
    pub ledger: &'a mut Ledger,
    folder: String,
    parsed: BTreeMap<String, Rc<Vec<Directive>>>,
    count: usize,
}

impl<'a> Includes<'a> {
    pub fn new(sources: &'a mut Sources, ledger: &'a mut Ledger, folder: &str) -> Includes<'a> {
        Includes { sources, ledger, folder: folder.to_owned(), parsed: BTreeMap::new(), count: 0 }
    }

    /// All directives of the file `name`. `chain` are the files that include each other down to it.
    pub fn file(&mut self, name: &str, chain: &mut Vec<String>) -> Result<Vec<Directive>, Error> {
        let parsed = match self.parsed.get(name) {
            Some(parsed) => parsed.clone(),
            None => {
                let file = self.sources.open(name)?;
                let parsed = Rc::new(parse(self.sources, file, self.ledger)?);
                self.parsed.insert(name.to_owned(), parsed.clone());
                parsed
            }
        };
        chain.push(name.to_owned());
        let expanded = self.expand(&parsed, chain);
        chain.pop();
        expanded
    }

    /// Blocks are nested as deep as `parse` allows, files as deep as `chain` does.
    fn expand(&mut self, items: &[Directive], chain: &mut Vec<String>) -> Result<Vec<Directive>, Error> {
        let mut expanded = Vec::new();
        for item in items {
            self.count += 1;
            if self.count > DIRECTIVES_MAX {
                let message = format!("more than {DIRECTIVES_MAX} directives, with those that are included");
                return Err(self.sources.error(item.place, message));
            }
            if item.name == "include" && item.block.is_none() {
                expanded.extend(self.include(item, chain)?);
                continue;
            }
            let block = item.block.as_ref().map(|block| self.expand(block, chain)).transpose()?;
            expanded.push(Directive { block, ..shallow(item) });
        }
        Ok(expanded)
    }

    fn include(&mut self, item: &Directive, chain: &mut Vec<String>) -> Result<Vec<Directive>, Error> {
        let pattern = absolute(&self.folder, item.arg(0));
        let is_pattern = portcullis_seclang::glob::is_pattern(&pattern);
        let names = if is_pattern { self.sources.matching(&pattern) } else { vec![pattern] };
        match names.len() {
            0 => self.ledger.taken(item.entry, "no file has such a name"),
            1 => self.ledger.taken(item.entry, "read"),
            count => self.ledger.taken(item.entry, format!("read, {count} files")),
        }
        let mut included = Vec::new();
        for name in names {
            if chain.contains(&name) {
                let message = format!("{name} includes itself");
                return Err(self.sources.error(item.place, message));
            }
            if chain.len() == INCLUDE_DEPTH_MAX {
                let message = format!("more than {INCLUDE_DEPTH_MAX} files that include each other");
                return Err(self.sources.error(item.place, message));
            }
            if !self.sources.on_disk(&name).exists() {
                self.ledger.left(
                    item.entry,
                    format!(
                        "{name} is not there, so nothing that it says is here, restrictions neither: of a copy of \
                         another machine's files, name the folder that stands for `/` with --root"
                    ),
                );
                continue;
            }
            included.extend(self.file(&name, chain)?);
        }
        Ok(included)
    }
}

/// A directive without its block.
fn shallow(item: &Directive) -> Directive {
    Directive {
        name: item.name.clone(),
        args: item.args.clone(),
        entry: item.entry,
        place: item.place,
        block: None,
    }
}
