//! `Include`, `Define`, macros and the sections that only ask for modules: what is left is one list of
//! directives.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::macros::Macros;
use super::syntax::{Directive, enter, parse};
use crate::error::Error;
use crate::report::Ledger;
use crate::sources::{INCLUDE_DEPTH_MAX, Sources, absolute};

/// Directives after all includes and macros; what is included or used often counts each time.
const DIRECTIVES_MAX: usize = 200_000;
/// What a file of rules has in its place once it has been recognized.
pub(crate) const RULES: &str = "#rules";

/// Replaces includes by what they include, but files of rules, which are named.
pub(crate) struct Includes<'a> {
    pub sources: &'a mut Sources,
    pub ledger: &'a mut Ledger,
    /// `ServerRoot`.
    pub folder: String,
    defined: BTreeMap<String, String>,
    parsed: BTreeMap<String, Rc<Vec<Directive>>>,
    entered: BTreeSet<String>,
    macros: Macros,
    count: usize,
}

impl<'a> Includes<'a> {
    pub fn new(sources: &'a mut Sources, ledger: &'a mut Ledger, folder: &str) -> Includes<'a> {
        Includes {
            sources,
            ledger,
            folder: folder.to_owned(),
            defined: BTreeMap::new(),
            parsed: BTreeMap::new(),
            entered: BTreeSet::new(),
            macros: Macros::default(),
            count: 0,
        }
    }

    /// All directives of the file `name`, which is part of the configuration itself.
    pub fn file(&mut self, name: &str, chain: &mut Vec<String>) -> Result<Vec<Directive>, Error> {
        let mut parsed = self.parsed(name)?;
        if self.entered.insert(name.to_owned()) {
            let mut items = parsed.to_vec();
            enter(&mut items, self.sources, self.ledger)?;
            parsed = Rc::new(items);
            self.parsed.insert(name.to_owned(), parsed.clone());
        }
        chain.push(name.to_owned());
        let expanded = self.expand(&parsed, chain);
        chain.pop();
        expanded
    }

    fn parsed(&mut self, name: &str) -> Result<Rc<Vec<Directive>>, Error> {
        if let Some(parsed) = self.parsed.get(name) {
            return Ok(parsed.clone());
        }
        let file = self.sources.open(name)?;
        let parsed = Rc::new(parse(self.sources, file)?);
        self.parsed.insert(name.to_owned(), parsed.clone());
        Ok(parsed)
    }

    fn expand(&mut self, items: &[Directive], chain: &mut Vec<String>) -> Result<Vec<Directive>, Error> {
        let mut expanded = Vec::new();
        for item in items {
            self.count += 1;
            if self.count > DIRECTIVES_MAX {
                let message = format!(
                    "more than {DIRECTIVES_MAX} directives, with those that are included and those of macros"
                );
                return Err(self.sources.error(item.place, message));
            }
            let mut item = self.replaced(item);
            let Some(entry) = item.entry else { continue };
            match item.name.as_str() {
                "include" | "includeoptional" => expanded.extend(self.include(&item, chain)?),
                "serverroot" => {
                    self.folder = absolute("/", item.arg(0));
                    self.ledger.taken(entry, "relative names start from it");
                }
                "define" => {
                    self.defined.insert(item.arg(0).to_owned(), item.arg(1).to_owned());
                    self.ledger.taken(entry, "replaced where it is used");
                }
                "undefine" => {
                    self.defined.remove(item.arg(0));
                    self.ledger.taken(entry, "replaced no longer");
                }
                "macro" => self.macros.define(&item, self.sources, self.ledger)?,
                "undefmacro" => self.macros.undefine(&item, self.sources, self.ledger)?,
                "use" => expanded.extend(self.used(&item, chain)?),
                "ifmodule" | "ifversion" if !item.arg(0).starts_with('!') => {
                    self.ledger.taken(entry, "read as if it were not there");
                    expanded.extend(self.expand(item.children(), chain)?);
                }
                "ifdefine" if self.is_defined(item.arg(0)) => {
                    self.ledger.taken(entry, "read");
                    expanded.extend(self.expand(item.children(), chain)?);
                }
                "ifmodule" | "ifdefine" | "ifversion" => {
                    self.leave(&item, "this is not so: it is passed over");
                }
                _ => {
                    let block = item.block.take();
                    item.block = block.map(|block| self.expand(&block, chain)).transpose()?;
                    expanded.push(item);
                }
            }
        }
        Ok(expanded)
    }

    /// What a `Use` stands for, with all that is used and included in it.
    fn used(&mut self, item: &Directive, chain: &mut Vec<String>) -> Result<Vec<Directive>, Error> {
        let name = format!("macro {}", item.arg(0).to_ascii_lowercase());
        if chain.contains(&name) {
            let message = format!("the macro `{}` is used in itself", item.arg(0));
            return Err(self.sources.error(item.place, message));
        }
        if chain.len() == INCLUDE_DEPTH_MAX {
            let message = format!(
                "the macro `{}` is used below more than {INCLUDE_DEPTH_MAX} files and macros",
                item.arg(0)
            );
            return Err(self.sources.error(item.place, message));
        }
        let body = self.macros.expand(item, self.sources, self.ledger)?;
        if let Some(entry) = item.entry {
            self.ledger.taken(entry, "the lines of the macro, with these values");
        }
        chain.push(name);
        let expanded = self.expand(&body, chain);
        chain.pop();
        expanded
    }

    /// Settles what was defined and not used.
    pub fn finish(self) -> String {
        self.macros.finish(self.ledger);
        self.folder
    }

    fn is_defined(&self, name: &str) -> bool {
        match name.strip_prefix('!') {
            Some(name) => !self.defined.contains_key(name),
            None => self.defined.contains_key(name),
        }
    }

    fn leave(&mut self, item: &Directive, why: &str) {
        if let Some(entry) = item.entry {
            self.ledger.left(entry, why);
        }
        for inner in item.children() {
            self.leave(inner, why);
        }
    }

    /// A directive with `${NAME}` replaced.
    fn replaced(&self, item: &Directive) -> Directive {
        let mut item = item.clone();
        if self.defined.is_empty() || !item.text.contains("${") {
            return item;
        }
        for (name, value) in &self.defined {
            let variable = format!("${{{name}}}");
            for text in item.args.iter_mut().chain([&mut item.text]) {
                if text.contains(&variable) && text.len() + value.len() < 4096 {
                    *text = text.replace(&variable, value);
                }
            }
        }
        item
    }

    fn include(&mut self, item: &Directive, chain: &mut Vec<String>) -> Result<Vec<Directive>, Error> {
        let Some(entry) = item.entry else { return Ok(Vec::new()) };
        let pattern = absolute(&self.folder, item.arg(0));
        // A folder stands for all files in it.
        let pattern = if self.sources.on_disk(&pattern).is_dir() { format!("{pattern}/*") } else { pattern };
        let names = self.sources.matching(&pattern);
        let optional = item.name == "includeoptional";
        if names.is_empty() {
            if optional || portcullis_seclang::glob::is_pattern(&pattern) {
                self.ledger.taken(entry, "no file has such a name");
                return Ok(Vec::new());
            }
            return Err(self.sources.error(item.place, format!("{pattern} is not there")).with_help(
                "of a copy of another machine's files, name the folder that stands for `/` with --root",
            ));
        }
        let mut rules = Vec::with_capacity(names.len());
        for name in &names {
            rules.push(is_rules(&self.parsed(name)?));
        }
        if rules.iter().all(|is_rules| *is_rules) {
            return Ok(vec![named(item, &pattern)]);
        }
        match names.len() {
            1 => self.ledger.taken(entry, "read"),
            count => self.ledger.taken(entry, format!("read, {count} files")),
        }
        let mut included = Vec::new();
        for (name, is_rules) in names.iter().zip(rules) {
            if is_rules {
                included.push(named(item, name));
                continue;
            }
            if chain.contains(name) {
                return Err(self.sources.error(item.place, format!("{name} includes itself")));
            }
            if chain.len() == INCLUDE_DEPTH_MAX {
                let message = format!("more than {INCLUDE_DEPTH_MAX} files that include each other");
                return Err(self.sources.error(item.place, message));
            }
            included.extend(self.file(name, chain)?);
        }
        Ok(included)
    }
}

/// What stands for a file of rules.
fn named(item: &Directive, path: &str) -> Directive {
    Directive { name: RULES.to_owned(), args: vec![path.to_owned()], block: None, ..item.clone() }
}

/// True for a file that only ModSecurity reads.
fn is_rules(items: &[Directive]) -> bool {
    fn only(items: &[Directive], seen: &mut bool) -> bool {
        items.iter().all(|item| match item.name.as_str() {
            "include" | "includeoptional" => true,
            "ifmodule" | "ifversion" | "ifdefine" | "location" | "locationmatch" => {
                only(item.children(), seen)
            }
            _ => {
                *seen |= item.is_rule();
                item.is_rule() && item.block.is_none()
            }
        })
    }
    let mut seen = false;
    only(items, &mut seen) && seen
}
