//! Edits of a document's text. Comments, order and the spelling of everything else stay.

mod clients;
mod exclusion;
mod site;
mod tables;
mod values;

use portcullis_config::Format;
use toml_edit::{DocumentMut, Table};

use crate::error::RevisionError;

/// A change of the document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Another text.
    Text(String),
    /// The text of an earlier revision.
    Restore(i64),
    /// A change of single settings.
    Edit(Edit),
}

/// A change of single settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Edit {
    /// Adds an exclusion.
    AddExclusion(Scope, Exclusion),
    /// Removes an exclusion, by its id; of several with this id, which differ in their end, the one that ends
    /// first.
    RemoveExclusion(String),
    /// Ends the trial of an exclusion, by its id: it counts.
    EnforceExclusion(String),
    /// Several edits, one after the other, as one change: all of them or none.
    All(Vec<Edit>),
    /// Sets what is inspected at a site or route, and how.
    Settings(Scope, SiteSettings),
    /// Adds an address or network to a list of clients.
    AddClient(Scope, ClientList, String),
    /// Removes an address or network from a list of clients, as it is written there.
    RemoveClient(Scope, ClientList, String),
    /// Sets, adds or removes a value.
    Value(ValueEdit),
}

/// Another value at a place of the document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueEdit {
    /// The place, a JSON Pointer (RFC 6901): `/sites/0/mode`; `-` stands for the place behind the last one of
    /// a list.
    pub pointer: String,
    /// The value. What is equal in it stays as it is written, comments included. None removes what is there.
    pub value: Option<serde_json::Value>,
}

/// A part of the document with settings of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Scope {
    /// The site's name; none for the whole document.
    pub site: Option<String>,
    /// The name of a route of the site, or its path if it has no name; none for the site itself.
    pub route: Option<String>,
}

impl std::fmt::Display for Scope {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (&self.site, &self.route) {
            (Some(site), Some(route)) => write!(f, "the route `{route}` of the site `{site}`"),
            (Some(site), None) => write!(f, "the site `{site}`"),
            (None, _) => f.write_str("the document"),
        }
    }
}

/// Something that does not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exclusion {
    /// Findings of the semantic detector.
    Semantic(SemanticExclusion),
    /// Matches of a rule.
    Rule(RuleExclusion),
}

/// Findings of the semantic detector that do not count: those to which all that is said here applies. The
/// texts are those of `semantic.exclude` in the document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SemanticExclusion {
    /// The class of attacks.
    pub class: Option<String>,
    /// The kind of finding: `sqli.union`.
    pub kind: Option<String>,
    /// Place and name of the value: `form:comment`.
    pub location: Option<String>,
    /// A prefix of the path; with `*` or `{id}` the whole path.
    pub path: Option<String>,
    /// Its end: a day or a time.
    pub until: Option<String>,
    /// The reason for it.
    pub reason: Option<String>,
    /// Who adds it.
    pub author: Option<String>,
    /// It is only tried.
    pub trial: bool,
}

/// Matches of a rule that do not count. The texts are those of `rules.exclude` in the document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleExclusion {
    /// The rule.
    pub rule_id: u32,
    /// The value in which its matches do not count: `ARGS:comment`; none: every value.
    pub target: Option<String>,
    /// A prefix of the path; with `*` or `{id}` the whole path.
    pub path: Option<String>,
    /// Its end: a day or a time.
    pub until: Option<String>,
    /// The reason for it.
    pub reason: Option<String>,
    /// Who adds it.
    pub author: Option<String>,
    /// It is only tried.
    pub trial: bool,
}

/// The settings of inspection. `None` leaves a setting as it is; `Some(None)` goes back to its default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SiteSettings {
    /// `semantic`, `crs`, `both`, `off`.
    pub mode: Option<Option<String>>,
    /// `blocking`, `detection_only`.
    pub engine: Option<Option<String>>,
    /// `balanced`, `strict`.
    pub level: Option<Option<String>>,
    /// The paranoia level of the CRS.
    pub paranoia: Option<Option<u8>>,
}

/// Lists of clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientList {
    /// Clients that are neither inspected nor limited.
    Bypass,
    /// Clients that are let in although another list refuses them.
    Allow,
    /// Clients that are refused.
    Deny,
}

impl ClientList {
    /// All lists.
    pub const ALL: [ClientList; 3] = [ClientList::Bypass, ClientList::Allow, ClientList::Deny];

    /// Its key in the document.
    pub fn name(self) -> &'static str {
        match self {
            ClientList::Bypass => "bypass",
            ClientList::Allow => "allow",
            ClientList::Deny => "deny",
        }
    }
}

/// The text of a document after an edit, unchecked.
pub fn edited(edit: &Edit, text: &str, format: Format) -> Result<String, RevisionError> {
    if format != Format::Toml {
        return Err(unfit(
            "single settings are changed in documents in TOML only; send the whole text of this one in YAML",
        ));
    }
    let mut document: DocumentMut =
        text.parse().map_err(|error| unfit(format!("the document is not TOML: {error}")))?;
    carry_out(edit, document.as_table_mut())?;
    Ok(document.to_string())
}

fn carry_out(edit: &Edit, root: &mut Table) -> Result<(), RevisionError> {
    match edit {
        Edit::AddExclusion(scope, exclusion) => exclusion::add(root, scope, exclusion),
        Edit::RemoveExclusion(id) => exclusion::remove(root, id),
        Edit::EnforceExclusion(id) => exclusion::enforce(root, id),
        Edit::All(edits) => edits.iter().try_for_each(|edit| carry_out(edit, root)),
        Edit::Settings(scope, settings) => site::set(root, scope, settings),
        Edit::AddClient(scope, list, client) => clients::add(root, scope, *list, client),
        Edit::RemoveClient(scope, list, client) => clients::remove(root, scope, *list, client),
        Edit::Value(edit) => values::set(root, edit),
    }
}

fn unfit(why: impl Into<String>) -> RevisionError {
    RevisionError::Unfit(why.into())
}
