//! Macros of mod_macro: `<Macro NAME $parameter ...>`, `Use NAME value ...` and `UndefMacro NAME`.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::syntax::{Directive, reread};
use crate::error::Error;
use crate::report::Ledger;
use crate::sources::{BYTES_MAX, Sources};

/// Bytes of one line of a macro once its parameters are replaced.
const LINE_MAX: usize = 64 << 10;

/// The macros that are defined at one point of the configuration.
#[derive(Default)]
pub(crate) struct Macros {
    /// By name in lower case, as Apache compares them.
    known: BTreeMap<String, Macro>,
    /// Bytes of all lines that came out of macros.
    bytes: u64,
}

struct Macro {
    section: Directive,
    body: Rc<Vec<Directive>>,
    used: bool,
}

impl Macros {
    /// `<Macro NAME $a $b>`; one of the same name is replaced, as in Apache.
    pub fn define(&mut self, item: &Directive, sources: &Sources, ledger: &mut Ledger) -> Result<(), Error> {
        let Some((name, parameters)) = item.args.split_first().filter(|(name, _)| !name.is_empty()) else {
            return Err(sources.error(item.place, "<Macro> without a name"));
        };
        for (index, parameter) in parameters.iter().enumerate() {
            if parameter.is_empty() || parameters[..index].contains(parameter) {
                let message = format!("macro `{name}`: the parameter `{parameter}` is empty or stands twice");
                return Err(sources.error(item.place, message));
            }
        }
        let body = Rc::new(item.children().to_vec());
        let section = Directive { block: None, ..item.clone() };
        let defined = Macro { section, body, used: false };
        if let Some(replaced) = self.known.insert(name.to_ascii_lowercase(), defined) {
            replaced.settle(ledger);
        }
        Ok(())
    }

    /// `UndefMacro NAME`.
    pub fn undefine(
        &mut self,
        item: &Directive,
        sources: &Sources,
        ledger: &mut Ledger,
    ) -> Result<(), Error> {
        let Some(gone) = self.known.remove(&item.arg(0).to_ascii_lowercase()) else {
            return Err(sources.error(item.place, format!("macro `{}` is not defined", item.arg(0))));
        };
        gone.settle(ledger);
        if let Some(entry) = item.entry {
            ledger.taken(entry, "the macro is not known behind it");
        }
        Ok(())
    }

    /// The directives that a `Use` stands for, with its values in place of the parameters.
    pub fn expand(
        &mut self,
        item: &Directive,
        sources: &Sources,
        ledger: &mut Ledger,
    ) -> Result<Vec<Directive>, Error> {
        let name = item.arg(0);
        let Some(found) = self.known.get_mut(&name.to_ascii_lowercase()) else {
            return Err(sources
                .error(item.place, format!("Use of the macro `{name}`, which is not defined"))
                .with_help("name the file that defines it, too, before this one"));
        };
        found.used = true;
        let (parameters, values) = (found.section.args.get(1..), item.args.get(1..));
        let (parameters, values) = (parameters.unwrap_or_default(), values.unwrap_or_default());
        if parameters.len() != values.len() {
            return Err(sources.error(
                item.place,
                format!(
                    "the macro `{name}` of {} has {} parameters, and is used with {} values",
                    sources.show(found.section.place),
                    parameters.len(),
                    values.len()
                ),
            ));
        }
        let pairs: Vec<(&str, &str)> =
            parameters.iter().zip(values).map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let mut replacing = Replacing { item, pairs, bytes: &mut self.bytes, sources, ledger };
        replacing.all(&found.body)
    }

    /// Settles the macros that are left at the end.
    pub fn finish(self, ledger: &mut Ledger) {
        self.known.into_values().for_each(|known| known.settle(ledger));
    }
}

impl Macro {
    fn settle(&self, ledger: &mut Ledger) {
        match (self.used, self.section.entry) {
            (true, Some(entry)) => ledger.taken(entry, "read where it is used"),
            _ => {
                unused(std::slice::from_ref(&self.section), ledger);
                unused(&self.body, ledger);
            }
        }
    }
}

fn unused(items: &[Directive], ledger: &mut Ledger) {
    for item in items {
        if let Some(entry) = item.entry {
            ledger.left_if_unsettled(entry, "no Use of this macro");
        }
        unused(item.children(), ledger);
    }
}

/// One `Use` in the making.
struct Replacing<'a> {
    item: &'a Directive,
    pairs: Vec<(&'a str, &'a str)>,
    bytes: &'a mut u64,
    sources: &'a Sources,
    ledger: &'a mut Ledger,
}

impl Replacing<'_> {
    fn all(&mut self, items: &[Directive]) -> Result<Vec<Directive>, Error> {
        let mut replaced = Vec::with_capacity(items.len());
        for item in items {
            let text = self.line(item)?;
            if text.is_empty() || text.starts_with('#') {
                if let Some(entry) = item.entry {
                    self.ledger.taken(entry, "nothing with these values");
                }
                continue;
            }
            let mut new = reread(item, &text).ok_or_else(|| self.error(item, "opens or closes a section"))?;
            new.block = item.block.as_ref().map(|block| self.all(block)).transpose()?;
            replaced.push(new);
        }
        Ok(replaced)
    }

    /// A line with the values in place of the parameters: the leftmost first, of several there the longest.
    /// What is put in is not looked at again.
    fn line(&mut self, item: &Directive) -> Result<String, Error> {
        let (mut text, mut rest) = (String::new(), item.text.as_str());
        let next = |rest: &str| {
            let found = self.pairs.iter().filter_map(|pair| Some((rest.find(pair.0)?, *pair)));
            found.min_by_key(|(at, (name, _))| (*at, std::cmp::Reverse(name.len())))
        };
        while let Some((at, (name, value))) = next(rest) {
            text.push_str(&rest[..at]);
            text.push_str(value);
            rest = &rest[at + name.len()..];
            if text.len() > LINE_MAX {
                return Err(self.error(item, &format!("has more than {LINE_MAX} bytes")));
            }
        }
        text.push_str(rest);
        *self.bytes += text.len() as u64;
        if *self.bytes > BYTES_MAX {
            return Err(self.error(item, &format!("makes all macros more than {BYTES_MAX} bytes")));
        }
        Ok(text.trim().to_owned())
    }

    fn error(&self, item: &Directive, what: &str) -> Error {
        let place = self.sources.show(item.place);
        let message =
            format!("the line {place} of the macro `{}` {what} with these values", self.item.arg(0));
        self.sources.error(self.item.place, message)
    }
}
