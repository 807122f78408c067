//! A document read for all its mistakes: what is wrong in one place does not keep the others from being
//! looked at.

use std::cell::RefCell;
use std::collections::HashSet;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::de::{DeError, Typed};
use crate::node::{Node, Value};
use crate::{Config, ConfigError, DocumentText, Format, Mistake, check, raw, syntax};

/// A document, its mistakes, and what could be understood of it.
#[derive(Debug)]
pub struct Survey {
    /// The configuration from the parts without mistakes; `None` if hardly anything could be understood. Good
    /// for looking at the files that it names, not for serving.
    pub config: Option<Config>,
    /// The mistakes, in the order of the text.
    pub mistakes: Vec<Mistake>,
    name: String,
    text: String,
    /// The texts of the document, as paths.
    paths: Vec<Named>,
    /// The keys of the document, each with the place of its value.
    keys: Vec<(String, Range<usize>)>,
    pointers: Pointers,
}

/// The places of keys and values in the text, each with the JSON Pointer to the value.
#[derive(Debug, Default)]
struct Pointers(Vec<(Range<usize>, String)>);

/// A text that may name a file.
#[derive(Debug)]
struct Named {
    span: Range<usize>,
    /// The keys that lead to it, with dots between them.
    key: String,
    path: PathBuf,
}

/// A mistake: its place, the message and the hint.
type Found = (Range<usize>, String, Option<String>);

/// A document turned into its raw form, and the mistakes that this showed.
pub(crate) struct Typing {
    pub(crate) document: Option<raw::Document>,
    pub(crate) mistakes: Vec<Found>,
    /// Nothing but unknown keys and single values is missing in it.
    pub(crate) is_whole: bool,
}

impl Survey {
    /// Reads the document at `path`.
    pub fn of_file(path: &Path) -> Result<Survey, ConfigError> {
        let DocumentText { text, format, name } = DocumentText::read(path)?;
        Survey::of_text(text, format, name)
    }

    /// Reads a document that is at hand; files that it names are relative to the folder of `name`.
    pub fn of_text(text: String, format: Format, name: String) -> Result<Survey, ConfigError> {
        let tree = syntax::parse(&text, format).map_err(|error| error.in_text(&text, &name))?;
        let base = Path::new(&name).parent().unwrap_or(Path::new("")).to_path_buf();
        let mut paths = Vec::new();
        texts(&tree, "", &mut |span, key, text| {
            paths.push(Named { span: span.clone(), key: key.to_string(), path: base.join(text) });
        });
        let mut keys = Vec::new();
        all_keys(&tree, "", &mut keys);
        let mut pointers = Pointers::default();
        pointers.add(&tree, String::new());
        let Typing { document, mut mistakes, is_whole } = typed(tree);
        let config = document.map(|document| {
            let mut checker = check::Checker::new(&base);
            let config = checker.config(document);
            // If a whole table is missing, references to it are no mistakes.
            if is_whole {
                mistakes.append(&mut checker.into_mistakes());
            }
            config
        });
        let mut survey = Survey { config, mistakes: Vec::new(), name, text, paths, keys, pointers };
        let at = |(span, message, hint)| survey.mistake_in(span, message, hint);
        let mistakes = mistakes.into_iter().map(at).collect();
        survey.mistakes = ConfigError::new(mistakes).into_mistakes();
        Ok(survey)
    }

    /// The settings, if there are no mistakes.
    pub fn into_config(self) -> Result<Config, ConfigError> {
        match self.config {
            Some(config) if self.mistakes.is_empty() => Ok(config),
            _ => Err(ConfigError::new(self.mistakes)),
        }
    }

    /// A mistake that showed elsewhere, at the place of the document that names the path which `message` is
    /// about; of several places that of the key which it names, or the first.
    pub fn mistake(&self, message: &str) -> Mistake {
        let words: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
        let fit = |named: &&Named| {
            let is_key = words.iter().any(|word| word.contains('.') && named.key.ends_with(word));
            (named.path.as_os_str().len(), is_key)
        };
        let is_named = |named: &&Named| {
            let shown = named.path.display().to_string();
            shown.len() > 1 && message.contains(&shown)
        };
        // Of equal ones the last counts here.
        self.at(self.paths.iter().rev().filter(is_named).max_by_key(fit), message)
    }

    /// A mistake at the place of the first text that is `value`.
    pub fn mistake_at(&self, value: &str, message: &str) -> Mistake {
        self.at(self.paths.iter().find(|named| named.path.ends_with(value)), message)
    }

    /// A mistake at the place of the first key that is called so, or ends so: `admin.listen`.
    pub fn mistake_at_key(&self, key: &str, message: &str) -> Mistake {
        let is_it = |name: &str| name.strip_suffix(key).is_some_and(|above| above.ends_with('.'));
        match self.keys.iter().find(|(name, _)| is_it(name)) {
            Some((_, span)) => self.mistake_in(span.clone(), message.to_string(), None),
            None => Mistake::plain(&self.name, message.to_string()),
        }
    }

    fn at(&self, named: Option<&Named>, message: &str) -> Mistake {
        match named {
            Some(named) => self.mistake_in(named.span.clone(), message.to_string(), None),
            None => Mistake::plain(&self.name, message.to_string()),
        }
    }

    fn mistake_in(&self, span: Range<usize>, message: String, hint: Option<String>) -> Mistake {
        let pointer = self.pointers.of(&span);
        Mistake::at(&self.name, &self.text, span, message, hint).about(pointer)
    }
}

impl Pointers {
    fn add(&mut self, node: &Node, pointer: String) {
        match &node.value {
            Value::List(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.add(item, format!("{pointer}/{index}"));
                }
            }
            Value::Table(entries) => {
                for (key, item) in entries {
                    let below = format!("{pointer}/{}", key.name.replace('~', "~0").replace('/', "~1"));
                    self.0.push((key.span.clone(), below.clone()));
                    self.add(item, below);
                }
            }
            Value::Null | Value::Bool(_) | Value::Integer(_) | Value::Float(_) | Value::Text(_) => {}
        }
        self.0.push((node.span.clone(), pointer));
    }

    /// The value that is spelled by these bytes, otherwise the smallest one around them.
    fn of(&self, span: &Range<usize>) -> Option<String> {
        let around =
            |(place, _): &&(Range<usize>, String)| place.start <= span.start && span.end <= place.end;
        let is_it = |(place, _): &&(Range<usize>, String)| place == span;
        // A table that one key after the other leads to has their place: the last one is meant.
        let found = self.0.iter().filter(is_it).max_by_key(|(_, pointer)| pointer.len());
        let found = found.or_else(|| self.0.iter().filter(around).min_by_key(|(place, _)| place.len()));
        found.map(|(_, pointer)| pointer.clone())
    }
}

/// Turns a tree into a document. Unknown keys are passed over; any other mistake is noted, what it is in is
/// taken out, and the rest is tried again, so that all of them are found.
pub(crate) fn typed(mut tree: Node) -> Typing {
    let mut mistakes: Vec<Found> = Vec::new();
    let (mut seen, mut cut) = (HashSet::new(), HashSet::new());
    let mut is_whole = true;
    let mut note = |mistakes: &mut Vec<Found>, span: Range<usize>, error: DeError| {
        if seen.insert((span.clone(), error.message.clone())) {
            mistakes.push((span, error.message, error.hint));
        }
    };
    loop {
        let unknown = RefCell::new(Vec::new());
        let result = raw::Document::deserialize(Typed::new(&tree, &unknown));
        for error in unknown.into_inner() {
            note(&mut mistakes, error.span.clone().unwrap_or(0..0), error);
        }
        let error = match result {
            Ok(document) => return Typing { document: Some(document), mistakes, is_whole },
            Err(error) => error,
        };
        let span = error.span.clone().unwrap_or(0..0);
        // That a key is missing which was taken out before is no mistake of its own.
        if error.is_missing_key {
            is_whole = false;
        }
        let is_misspelt = |(_, message, hint): &Found| {
            let key = error.message.split('`').nth(1).unwrap_or_default();
            let meant = hint.as_ref().is_some_and(|hint| hint.contains(&format!("did you mean `{key}`")));
            message.starts_with("unknown key") && meant
        };
        if !(error.is_missing_key && (cut.contains(&span) || mistakes.iter().any(is_misspelt))) {
            note(&mut mistakes, span.clone(), error);
        }
        match without(&mut tree, &span) {
            Some(parent) => {
                cut.insert(parent);
            }
            None => return Typing { document: None, mistakes, is_whole: false },
        }
    }
}

/// Takes the value at `span` out of the table or list that it is in, whose place it gives; none if there is
/// no such value.
fn without(tree: &mut Node, span: &Range<usize>) -> Option<Range<usize>> {
    let own = tree.span.clone();
    let taken = match &mut tree.value {
        Value::Table(entries) => {
            if let Some(place) = entries.iter_mut().find_map(|(_, node)| without(node, span)) {
                return Some(place);
            }
            let before = entries.len();
            entries.retain(|(key, node)| node.span != *span && key.span != *span);
            entries.len() < before
        }
        Value::List(items) => {
            if let Some(place) = items.iter_mut().find_map(|node| without(node, span)) {
                return Some(place);
            }
            let before = items.len();
            items.retain(|node| node.span != *span);
            items.len() < before
        }
        Value::Null | Value::Bool(_) | Value::Integer(_) | Value::Float(_) | Value::Text(_) => false,
    };
    taken.then_some(own)
}

/// The keys of the tree, with the places of their values.
fn all_keys(node: &Node, above: &str, keys: &mut Vec<(String, Range<usize>)>) {
    match &node.value {
        Value::List(items) => items.iter().for_each(|item| all_keys(item, above, keys)),
        Value::Table(entries) => {
            for (own, item) in entries {
                let key = format!("{above}.{}", own.name);
                keys.push((key.clone(), item.span.clone()));
                all_keys(item, &key, keys);
            }
        }
        Value::Null | Value::Bool(_) | Value::Integer(_) | Value::Float(_) | Value::Text(_) => {}
    }
}

/// Shows every text of the tree, with the keys that lead to it.
fn texts(node: &Node, key: &str, show: &mut impl FnMut(&Range<usize>, &str, &str)) {
    match &node.value {
        Value::Text(text) => show(&node.span, key, text),
        Value::List(items) => items.iter().for_each(|item| texts(item, key, show)),
        Value::Table(entries) => {
            for (own, item) in entries {
                texts(item, &format!("{key}.{}", own.name), show);
            }
        }
        Value::Null | Value::Bool(_) | Value::Integer(_) | Value::Float(_) => {}
    }
}
