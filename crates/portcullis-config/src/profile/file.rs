//! The format of a profile's file.
//!
//! A file is checked as a whole when it is read, by the code that checks documents: what is wrong in it, and
//! what is wider than the answer to a false positive may be, makes it no profile.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use portcullis_types::{Class, Variable};
use serde::Deserialize;

use super::languages::{LANGUAGES, language};
use crate::checked::Policy;
use crate::exclusion_id::{ExclusionIdentity, exclusion_id};
use crate::exclusion_width::exclusion_width;
use crate::mistakes::Mistakes;

/// Bytes of a file; a larger one is none that a person has written.
const BYTES_MAX: usize = 256 << 10;
/// Kinds of addresses that a field may be opened for: those of other services of one's own, written plainly.
const ADDRESSES: [&str; 5] =
    ["ssrf.internal-name", "ssrf.loopback", "ssrf.port", "ssrf.private", "ssrf.short-name"];
/// Stands in a request for the value that is tried.
const VALUE: &str = "VALUE";

/// The exclusions for an application, how it is recognised, and requests that show what the exclusions do.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// The name in `profiles`.
    pub name: String,
    /// The application.
    pub application: String,
    /// What the application is.
    pub about: String,
    /// The versions of the application that it was written for.
    pub versions: String,
    /// The version of the profile.
    pub version: u32,
    /// Its changelog, the newest version first.
    #[serde(rename = "change")]
    pub changes: Vec<ProfileChange>,
    /// What answers of the application show.
    #[serde(rename = "sign", default)]
    pub signs: Vec<Sign>,
    /// The versions of the application that it was written for, as they begin: `6` is for 6.7.1.
    #[serde(default)]
    pub knows: Vec<String>,
    /// Where answers of the application show its version.
    #[serde(rename = "release", default)]
    pub releases: Vec<Release>,
    /// Fields that are made for what is stopped in others.
    #[serde(rename = "field", default)]
    fields: Vec<Field>,
    /// Requests that the application really sends, and attacks in the same places.
    #[serde(rename = "request", default)]
    pub requests: Vec<ProfileRequest>,
}

/// A version of a profile.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProfileChange {
    /// The version.
    pub version: u32,
    /// What is new in it.
    pub what: String,
}

/// A field that is made for what is stopped in others.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Field {
    /// Place and name of the value, for the kinds.
    location: Option<String>,
    /// Kinds of findings.
    #[serde(default)]
    kinds: Vec<String>,
    /// Languages of the texts that the application stores, shows or runs.
    #[serde(default)]
    carries: Vec<String>,
    /// Variable and name of the value, for the rules.
    target: Option<String>,
    /// Ids of rules of the CRS.
    #[serde(default)]
    rules: Vec<u32>,
    /// The classes of findings of its languages.
    #[serde(skip)]
    classes: Vec<Class>,
    /// `rules`, and those of its languages.
    #[serde(skip)]
    all_rules: Vec<u32>,
    /// Paths of requests.
    paths: Vec<String>,
    /// The reason why inspection cannot be right there.
    reason: String,
    /// What no longer stops a request there.
    opens: String,
    /// The classes of attacks of which some pass there, and would be stopped without the entry.
    #[serde(default)]
    lets_pass: Vec<String>,
}

/// A field that is made for what is stopped in others, as its file has it.
#[derive(Clone, Copy, Debug)]
pub struct ProfileField<'p> {
    /// Place and name of the value, for the kinds.
    pub location: Option<&'p str>,
    /// Kinds of findings.
    pub kinds: &'p [String],
    /// Languages of the texts that the application stores, shows or runs.
    pub carries: &'p [String],
    /// The classes of findings of its languages.
    pub classes: &'p [Class],
    /// Variable and name of the value, for the rules.
    pub target: Option<&'p str>,
    /// Ids of rules of the CRS that it names.
    pub rules: &'p [u32],
    /// These, and the rules of its languages.
    pub all_rules: &'p [u32],
    /// Paths of requests.
    pub paths: &'p [String],
    /// The reason why inspection cannot be right there.
    pub reason: &'p str,
    /// What no longer stops a request there.
    pub opens: &'p str,
    /// The classes of attacks of which some pass there.
    pub lets_pass: &'p [String],
}

impl<'p> ProfileField<'p> {
    /// Place and name, as far as there are any.
    pub fn place(&self) -> &'p str {
        self.location.or(self.target).unwrap_or_default()
    }

    /// False if it is about the method or a header field: no value that an application reads.
    pub fn is_of_value(&self) -> bool {
        self.location.is_some()
            || self
                .target
                .is_some_and(|target| ["ARGS", "REQUEST_BODY"].iter().any(|part| target.starts_with(part)))
    }
}

/// Something that answers of an application show, and how much that says: 1 or 2 points, of which
/// [`crate::recognise`] needs 3.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "RawSign")]
pub struct Sign {
    /// What is looked for.
    pub kind: SignKind,
    /// Points.
    pub weight: u32,
}

/// What is looked for in an answer; upper and lower case are the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SignKind {
    /// A header field of this name, with this text in it, if there is one.
    Header(String, Option<String>),
    /// A cookie is set whose name begins so.
    Cookie(String),
    /// The meta element `generator` of a page begins so.
    Generator(String),
    /// The title of a page has this text in it.
    Title(String),
    /// The address of a script, style sheet, picture or link of a page has this text in it.
    Asset(String),
    /// The first bytes of the body have this text in them.
    Text(String),
    /// The path that was asked for begins so, and the answer is no error other than 401 or 403.
    Path(String),
}

/// Where an answer shows the version of its application: right behind this text.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "RawRelease")]
pub struct Release(pub SignKind);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRelease {
    header: Option<String>,
    value: Option<String>,
    generator: Option<String>,
    asset: Option<String>,
    text: Option<String>,
}

impl TryFrom<RawRelease> for Release {
    type Error = String;

    fn try_from(raw: RawRelease) -> Result<Release, String> {
        let RawRelease { header, value, generator, asset, text } = raw;
        let sign = RawSign { header, value, generator, asset, text, weight: 1, ..RawSign::default() };
        let Sign { kind, .. } = sign.try_into()?;
        Ok(Release(kind))
    }
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSign {
    header: Option<String>,
    value: Option<String>,
    cookie: Option<String>,
    generator: Option<String>,
    title: Option<String>,
    asset: Option<String>,
    text: Option<String>,
    path: Option<String>,
    weight: u32,
}

impl TryFrom<RawSign> for Sign {
    type Error = String;

    fn try_from(raw: RawSign) -> Result<Sign, String> {
        let RawSign { header, value, cookie, generator, title, asset, text, path, weight } = raw;
        let lower = |text: String| text.to_ascii_lowercase();
        let (has_header, value) = (header.is_some(), value.map(lower));
        let kinds = [
            header.map(|name| SignKind::Header(lower(name), value.clone())),
            cookie.map(|text| SignKind::Cookie(lower(text))),
            generator.map(|text| SignKind::Generator(lower(text))),
            title.map(|text| SignKind::Title(lower(text))),
            asset.map(|text| SignKind::Asset(lower(text))),
            text.map(|text| SignKind::Text(lower(text))),
            path.map(|text| SignKind::Path(lower(text))),
        ];
        let mut kinds = kinds.into_iter().flatten();
        let (Some(kind), None) = (kinds.next(), kinds.next()) else {
            return Err("a sign is one of header, cookie, generator, title, asset, text, path".to_owned());
        };
        if value.is_some() && !has_header {
            return Err("`value` is for a header".to_owned());
        }
        if !(1..=2).contains(&weight) {
            return Err("the weight of a sign is 1 or 2, so that one alone recognises nothing".to_owned());
        }
        Ok(Sign { kind, weight })
    }
}

/// A request that the application really sends, with one value in it in the place of `VALUE`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProfileRequest {
    /// What a user does.
    pub what: String,
    /// By default POST with a body, GET without.
    pub method: Option<String>,
    /// Path and query, below the root of the application.
    pub uri: String,
    /// The content type.
    #[serde(rename = "type")]
    content_type: Option<String>,
    /// Other header fields.
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// The body.
    body: Option<String>,
    /// The legitimate value.
    pub value: Option<String>,
    /// Values in the same place that have to be stopped with the profile, too.
    #[serde(default)]
    pub attacks: Vec<String>,
}

/// An exclusion of a profile, for one path: of a class or a kind of finding at a location, or of rules in a
/// target.
#[derive(Clone, Debug)]
pub struct ProfileExclusion<'p> {
    /// The class of findings, where the field carries a language.
    pub class: Option<Class>,
    /// The kind of finding; without it and a class it is of rules.
    pub kind: Option<&'p str>,
    /// Place and name of the value.
    pub location: Option<&'p str>,
    /// The rules; empty: it is of findings.
    pub rules: &'p [u32],
    /// Variable and name of the value.
    pub target: Option<&'p str>,
    /// The path of requests.
    pub path: String,
    /// The reason why inspection cannot be right there.
    pub reason: &'p str,
    /// What no longer stops a request there.
    pub opens: &'p str,
    /// The classes of attacks of which some pass there.
    pub lets_pass: &'p [String],
}

impl ProfileExclusion<'_> {
    /// Its id at a site that takes this profile.
    pub fn id(&self, site: Option<&str>, profile: &str) -> String {
        exclusion_id(site, None, &self.identity(profile))
    }

    fn identity<'s>(&'s self, profile: &'s str) -> ExclusionIdentity<'s> {
        let path = Some(self.path.as_str());
        match self.rules {
            [] => {
                let class = self.class.map(|class| class.name());
                ExclusionIdentity::Profile(profile, [class, self.kind, self.location, path])
            }
            rules => ExclusionIdentity::ProfileRule(profile, rules, [self.target, path]),
        }
    }
}

impl Profile {
    /// Reads a file. The error says what is wrong with it.
    pub fn from_toml(text: &str) -> Result<Profile, String> {
        if text.len() > BYTES_MAX {
            return Err(format!("larger than {} KiB", BYTES_MAX >> 10));
        }
        let mut profile: Profile = toml::from_str(text).map_err(|error| error.to_string())?;
        profile.fields.iter_mut().try_for_each(Field::take_languages)?;
        profile.check()?;
        Ok(profile)
    }

    /// The profile whose field number `field` does not carry this language.
    pub fn without_language(&self, field: usize, language: &str) -> Profile {
        let mut profile = self.clone();
        if let Some(field) = profile.fields.get_mut(field) {
            field.carries.retain(|name| name != language);
            // All others have been found before.
            let _ = field.take_languages();
        }
        profile
    }

    /// Its exclusions, for the application at this path; `""` is the root of the site.
    pub fn exclusions<'p>(&'p self, at: &str) -> impl Iterator<Item = ProfileExclusion<'p>> + use<'p> {
        let at = at.to_owned();
        self.fields.iter().flat_map(move |field| {
            let Field {
                location, kinds, classes, target, all_rules, paths, reason, opens, lets_pass, ..
            } = field;
            let at = at.clone();
            paths.iter().flat_map(move |path| {
                let of = |class, kind, rules: &'p [u32]| ProfileExclusion {
                    class,
                    kind,
                    location: location.as_deref().filter(|_| rules.is_empty()),
                    rules,
                    target: target.as_deref().filter(|_| !rules.is_empty()),
                    path: format!("{at}{path}"),
                    reason,
                    opens,
                    lets_pass,
                };
                let classes = classes.iter().filter(|_| location.is_some());
                let classes = classes.map(|class| of(Some(*class), None, &[]));
                let kinds = kinds.iter().map(|kind| of(None, Some(kind.as_str()), &[]));
                let rules = (target.is_some() && !all_rules.is_empty()).then(|| of(None, None, all_rules));
                classes.chain(kinds).chain(rules).collect::<Vec<_>>()
            })
        })
    }

    /// Its fields.
    pub fn fields(&self) -> impl Iterator<Item = ProfileField<'_>> {
        self.fields.iter().map(|field| ProfileField {
            location: field.location.as_deref(),
            kinds: &field.kinds,
            carries: &field.carries,
            classes: if field.location.is_some() { &field.classes } else { &[] },
            target: field.target.as_deref(),
            rules: &field.rules,
            all_rules: if field.target.is_some() { &field.all_rules } else { &[] },
            paths: &field.paths,
            reason: &field.reason,
            opens: &field.opens,
            lets_pass: &field.lets_pass,
        })
    }

    fn check(&self) -> Result<(), String> {
        let is_plain = |sign: char| sign.is_ascii_lowercase() || sign.is_ascii_digit() || sign == '-';
        if self.name.is_empty() || !self.name.chars().all(is_plain) {
            return Err("the name is of a-z, 0-9 and `-`".to_owned());
        }
        if self.changes.first().is_none_or(|change| change.version != self.version)
            || self.changes.windows(2).any(|pair| pair[0].version <= pair[1].version)
        {
            return Err("the changelog begins with the version, the newest first".to_owned());
        }
        let is_version = |text: &String| {
            text.split('.').all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
        };
        if !self.knows.iter().all(is_version) || self.knows.is_empty() != self.releases.is_empty() {
            return Err("`knows` has versions as they begin, such as `6` or `1.39`, and goes with `release`"
                .to_owned());
        }
        for field in &self.fields {
            field.check()?;
        }
        for request in &self.requests {
            request.check().map_err(|why| format!("request `{}`: {why}", request.what))?;
        }
        let mut ids = BTreeSet::new();
        for each in self.exclusions("") {
            if !ids.insert(each.id(None, &self.name)) {
                return Err(format!("{each:?} is there twice"));
            }
            let parts = match each.rules {
                [] => {
                    let class = each.class.map(|class| class.name());
                    ExclusionIdentity::Semantic([class, each.location, None, each.kind])
                }
                rules => ExclusionIdentity::Rule(rules, [each.target, None]),
            };
            // The path alone would be enough for exclusions of documents.
            if let Some(width) = exclusion_width(&parts, |_| false) {
                return Err(format!("{each:?}: {width}"));
            }
        }
        let mut mistakes = Mistakes::new(Path::new(""));
        self.add("", &mut mistakes, &mut Policy::default());
        match mistakes.into_found().first() {
            Some((_, message, _)) => Err(message.clone()),
            None => Ok(()),
        }
    }
}

impl Field {
    /// Notes the classes and rules of its languages.
    fn take_languages(&mut self) -> Result<(), String> {
        let (mut classes, mut rules) = (BTreeSet::new(), BTreeSet::from_iter(self.rules.iter().copied()));
        for name in &self.carries {
            let Some(known) = language(name) else {
                let names = LANGUAGES.iter().map(|language| language.name).collect::<Vec<_>>().join(", ");
                return Err(format!("`carries`: there is no language `{name}`, only {names}"));
            };
            classes.extend(known.classes);
            rules.extend(known.rules.iter().copied().flatten());
        }
        self.classes = classes.into_iter().collect();
        self.all_rules =
            if self.carries.is_empty() { self.rules.clone() } else { rules.into_iter().collect() };
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        let Field {
            location, kinds, carries, classes, target, rules, paths, reason, opens, lets_pass, ..
        } = self;
        let place = location.as_deref().or(target.as_deref()).unwrap_or_default();
        let wrong = |why: &str| Err(format!("field `{place}`: {why}"));
        let (of_kinds, of_rules) = (!kinds.is_empty(), !rules.is_empty());
        if of_kinds && location.is_none() || of_rules && target.is_none() {
            return wrong("`kinds` go with a `location`, `rules` with a `target`");
        }
        let is_said = |part: bool| part || !carries.is_empty();
        if location.is_some() && !is_said(of_kinds) || target.is_some() && !is_said(of_rules) {
            return wrong("it has neither kinds nor rules, and carries no language");
        }
        if location.is_none() && target.is_none() {
            return wrong("it names no `location` and no `target`");
        }
        if carries.iter().collect::<BTreeSet<_>>().len() != carries.len() {
            return wrong("a language is there twice");
        }
        let class_of = |kind: &String| Class::from_name(kind.split_once('.')?.0);
        if let Some(kind) = kinds.iter().find(|kind| class_of(kind).is_some_and(|of| classes.contains(&of))) {
            return wrong(&format!("{kind} is excluded by a language that it carries"));
        }
        let is_path = |path: &String| path.starts_with('/') && path.len() > 1;
        if paths.is_empty() || !paths.iter().all(is_path) {
            return wrong("paths begin with `/` and are not the root");
        }
        if reason.len() < 20 || opens.len() < 20 {
            return wrong("`reason` and `opens` say it in a sentence");
        }
        // One match of these runs code wherever the value is read, and no editor sends them.
        if let Some(class) = kinds
            .iter()
            .filter_map(class_of)
            .find(|class| matches!(class, Class::Log4j | Class::Deserialization))
        {
            return wrong(&format!("no profile excludes {}", class.name()));
        }
        let address =
            kinds.iter().find(|kind| kind.starts_with("ssrf.") && !ADDRESSES.contains(&kind.as_str()));
        if let Some(kind) = address {
            return wrong(&format!("no profile excludes {kind}, only {}", ADDRESSES.join(", ")));
        }
        if let Some(name) = lets_pass.iter().find(|name| Class::from_name(name).is_none()) {
            return wrong(&format!("`lets_pass`: there is no class `{name}`"));
        }
        if lets_pass.iter().any(|name| matches!(name.as_str(), "log4j" | "deserialization")) {
            return wrong("no profile lets log4j or deserialization pass");
        }
        let variable = target.as_deref().and_then(|target| target.split(':').next());
        if variable.and_then(Variable::from_name) == Some(Variable::Tx) {
            return wrong("scores are no field");
        }
        Ok(())
    }
}

impl ProfileRequest {
    fn check(&self) -> Result<(), String> {
        if !self.uri.starts_with('/') || self.uri.contains(|sign: char| sign.is_ascii_whitespace()) {
            return Err("the uri begins with `/` and has no blanks".to_owned());
        }
        let lines = self.headers.iter().chain(self.content_type.iter().map(|text| (&self.what, text)));
        if lines.into_iter().any(|(name, value)| [name, value].iter().any(|text| text.contains(['\r', '\n'])))
        {
            return Err("header fields are of one line".to_owned());
        }
        let parts = [Some(&self.uri), self.body.as_ref()];
        let has_place = parts.into_iter().flatten().any(|text| text.contains(VALUE))
            || self.headers.values().any(|text| text.contains(VALUE));
        if has_place != self.value.is_some() || (!has_place && !self.attacks.is_empty()) {
            return Err(format!("`{VALUE}` stands for the value, and attacks stand in its place"));
        }
        Ok(())
    }

    /// The request with this value (none: the legitimate one), for the application at this path.
    pub fn bytes(&self, at: &str, value: Option<&str>) -> Vec<u8> {
        let value = value.or(self.value.as_deref()).unwrap_or_default();
        let content_type = self.content_type.as_deref().unwrap_or_default();
        let body = self.body.as_ref().map(|body| {
            let filled = |value: &str| body.replace(VALUE, value);
            match content_type {
                json if json.contains("json") => filled(&serde_json::Value::from(value).to_string()),
                form if form.contains("x-www-form-urlencoded") => filled(&percent(value)),
                // Its lines are those of mail.
                parts if parts.starts_with("multipart/") => body.replace('\n', "\r\n").replace(VALUE, value),
                _ => filled(value),
            }
        });
        let method = self.method.as_deref().unwrap_or(if body.is_some() { "POST" } else { "GET" });
        let uri = self.uri.replace(VALUE, &percent(value));
        let mut text = format!(
            "{method} {at}{uri} HTTP/1.1\r\nHost: app.example\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:140.0) \
             Gecko/20100101 Firefox/140.0\r\nAccept: */*\r\nAccept-Language: en\r\n"
        );
        for (name, each) in &self.headers {
            text += &format!("{name}: {}\r\n", each.replace(VALUE, value));
        }
        if let Some(body) = &body {
            text += &format!("Content-Type: {content_type}\r\nContent-Length: {}\r\n", body.len());
        }
        text += "\r\n";
        text += body.as_deref().unwrap_or_default();
        text.into_bytes()
    }
}

/// A value as forms and queries have it.
fn percent(value: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    value
        .bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
name = "forum"
application = "Forum"
about = "a forum"
versions = "2"
version = 2

[[change]]
version = 2
what = "second"

[[change]]
version = 1
what = "first"

[[sign]]
cookie = "forum_"
weight = 2

[[field]]
location = "form:style"
kinds = ["xss.script-code"]
target = "ARGS:style"
rules = [941100]
paths = ["/admin/style"]
reason = "the administrator writes scripts there"
opens = "scripts, by whoever may change the style"

[[request]]
what = "change the style"
uri = "/admin/style"
type = "application/x-www-form-urlencoded"
body = "style=VALUE"
value = "<script>let a = 1;</script>"
attacks = ["${jndi:ldap://a.example/x}"]
"#;

    fn refused(from: &str, to: &str, why: &str) {
        assert!(GOOD.contains(from), "{from}");
        let error = Profile::from_toml(&GOOD.replace(from, to)).unwrap_err();
        assert!(error.contains(why), "{to}: {error}");
    }

    #[test]
    fn a_file_is_read_and_expanded() {
        let profile = Profile::from_toml(GOOD).unwrap();
        let found: Vec<_> = profile.exclusions("/x").collect();
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].kind, found[0].target), (Some("xss.script-code"), None));
        assert_eq!((found[1].rules, found[1].location), (&[941_100][..], None));
        assert!(found.iter().all(|each| each.path == "/x/admin/style"));
        let request = String::from_utf8(profile.requests[0].bytes("/x", None)).unwrap();
        assert!(request.starts_with("POST /x/admin/style HTTP/1.1\r\n"), "{request}");
        assert!(
            request.ends_with("\r\n\r\nstyle=%3Cscript%3Elet%20a%20%3D%201%3B%3C%2Fscript%3E"),
            "{request}"
        );
    }

    /// A field that carries a language is opened for its classes and rules, and for the kinds that it names.
    #[test]
    fn a_language_is_expanded() {
        let carrying = |languages: &str| {
            let with = format!("carries = [{languages}]\nkinds = [\"redirect.host\"]");
            Profile::from_toml(&GOOD.replace("kinds = [\"xss.script-code\"]", &with)).unwrap()
        };
        let classes = |profile: &Profile| profile.fields().next().unwrap().classes.to_vec();
        let profile = carrying("\"sql\", \"shell\"");
        assert_eq!(classes(&profile), [Class::Sqli, Class::Command, Class::Path]);
        let found: Vec<_> = profile.exclusions("").collect();
        assert_eq!(found.len(), 5, "three classes, a kind, and rules in one entry");
        assert!(found.iter().all(|each| each.location.is_some() != each.target.is_some()));
        let rules = found[4].rules;
        assert!([932_130, 941_100, 942_100].iter().all(|id| rules.contains(id)) && rules.is_sorted());
        assert_eq!(profile.fields().next().unwrap().rules, [941_100]);
        let without = profile.without_language(0, "sql");
        assert_eq!(classes(&without), [Class::Command, Class::Path]);
        assert!(!without.exclusions("").any(|each| each.rules.contains(&942_100)));
        // What no text in a language is stays, in whatever mixture.
        let all: Vec<String> = LANGUAGES.iter().map(|language| format!("{:?}", language.name)).collect();
        let profile = carrying(&all.join(", "));
        let open = classes(&profile);
        let closed =
            [Class::Log4j, Class::Deserialization, Class::Xxe, Class::Ssrf, Class::Upload, Class::Crlf];
        assert!(!closed.iter().any(|class| open.contains(class)), "{open:?}");
        let rules = profile.exclusions("").last().unwrap().rules;
        for severe in
            [944_150, 944_151, 944_152, 944_200, 944_210, 944_240, 933_170, 934_110, 934_130, 932_170]
        {
            assert!(!rules.contains(&severe), "{severe}");
        }
    }

    #[test]
    fn what_is_too_wide_or_wrong_is_no_profile() {
        let carries = |languages: &str| format!("kinds = [\"xss.script-code\"]\ncarries = [{languages}]");
        let from = "kinds = [\"xss.script-code\"]";
        refused(from, &carries("\"english\""), "there is no language `english`, only markup, ");
        refused(from, &carries("\"sql\", \"sql\""), "a language is there twice");
        refused(from, &carries("\"markup\""), "xss.script-code is excluded by a language");
        refused("form:style", "form", "it applies to every field");
        refused("form:style", "form:*", "it applies to every field");
        refused("form:style", "shelf:style", "there is no place `shelf`");
        refused("ARGS:style", "ARGS", "it applies to every field");
        refused("ARGS:style", "TX:score", "scores are no field");
        refused("[941100]", "[949110]", "blocks by it");
        refused("\"xss.script-code\"", "\"xss\"", "is no kind of finding");
        refused("[\"xss.script-code\"]", "[\"xss.script-code\", \"xss.script-code\"]", "is there twice");
        refused("\"xss.script-code\"", "\"log4j.jndi\"", "no profile excludes log4j");
        for kind in ["ssrf.metadata", "ssrf.metadata-path", "ssrf.disguised", "ssrf.scheme"] {
            refused("\"xss.script-code\"", &format!("{kind:?}"), "no profile excludes ssrf.");
        }
        refused("\"/admin/style\"]", "\"/\"]", "are not the root");
        refused("\"/admin/style\"]", "\"*/style\"]", "are not the root");
        refused("kinds = [\"xss.script-code\"]", "", "neither kinds nor rules");
        refused("kinds =", "class = \"xss\"\nkinds =", "unknown field `class`");
        refused("weight = 2", "weight = 3", "the weight of a sign is 1 or 2");
        refused("cookie = \"forum_\"", "cookie = \"a\"\ntitle = \"b\"", "a sign is one of");
        refused("version = 2\nwhat", "version = 3\nwhat", "begins with the version");
        refused("style=VALUE", "style=a", "`VALUE` stands for the value");
        refused("name = \"forum\"", "name = \"../forum\"", "the name is of");
        let long = format!("{GOOD}#{}", "x".repeat(BYTES_MAX));
        assert!(Profile::from_toml(&long).unwrap_err().contains("larger than"));
    }
}
