//! The format of a profile's file.
//!
//! A file is checked as a whole when it is read, by the code that checks documents: what is wrong in it, and
//! what is wider than the answer to a false positive may be, makes it no profile.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use portcullis_types::{Class, Variable};
use serde::Deserialize;

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
    /// Variable and name of the value, for the rules.
    target: Option<String>,
    /// Ids of rules of the CRS.
    #[serde(default)]
    rules: Vec<u32>,
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
    /// Variable and name of the value, for the rules.
    pub target: Option<&'p str>,
    /// Ids of rules of the CRS.
    pub rules: &'p [u32],
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

/// An exclusion of a profile, for one path: of a kind of finding at a location, or of rules in a target.
#[derive(Clone, Debug)]
pub struct ProfileExclusion<'p> {
    /// The kind of finding; none: it is of rules.
    pub kind: Option<&'p str>,
    /// Place and name of the value.
    pub location: Option<&'p str>,
    /// The rules; empty: it is of a kind.
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
            [] => ExclusionIdentity::Profile(profile, [None, self.kind, self.location, path]),
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
        let profile: Profile = toml::from_str(text).map_err(|error| error.to_string())?;
        profile.check()?;
        Ok(profile)
    }

    /// Its exclusions, for the application at this path; `""` is the root of the site.
    pub fn exclusions<'p>(&'p self, at: &str) -> impl Iterator<Item = ProfileExclusion<'p>> + use<'p> {
        let at = at.to_owned();
        self.fields.iter().flat_map(move |field| {
            let Field { location, kinds, target, rules, paths, reason, opens, lets_pass } = field;
            let at = at.clone();
            paths.iter().flat_map(move |path| {
                let of = |kind, rules| ProfileExclusion {
                    kind,
                    location: location.as_deref().filter(|_| kind.is_some()),
                    rules,
                    target: target.as_deref().filter(|_| kind.is_none()),
                    path: format!("{at}{path}"),
                    reason,
                    opens,
                    lets_pass,
                };
                let kinds: Vec<_> = kinds.iter().map(|kind| of(Some(kind.as_str()), &[])).collect();
                let rules = (!rules.is_empty()).then(|| of(None, rules.as_slice()));
                kinds.into_iter().chain(rules)
            })
        })
    }

    /// Its fields.
    pub fn fields(&self) -> impl Iterator<Item = ProfileField<'_>> {
        self.fields.iter().map(|field| ProfileField {
            location: field.location.as_deref(),
            kinds: &field.kinds,
            target: field.target.as_deref(),
            rules: &field.rules,
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
                [] => ExclusionIdentity::Semantic([None, each.location, None, each.kind]),
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
    fn check(&self) -> Result<(), String> {
        let Field { location, kinds, target, rules, paths, reason, opens, lets_pass } = self;
        let place = location.as_deref().or(target.as_deref()).unwrap_or_default();
        let wrong = |why: &str| Err(format!("field `{place}`: {why}"));
        if kinds.is_empty() != location.is_none() || rules.is_empty() != target.is_none() {
            return wrong("`kinds` go with a `location`, `rules` with a `target`");
        }
        if kinds.is_empty() && rules.is_empty() {
            return wrong("it has neither kinds nor rules");
        }
        let is_path = |path: &String| path.starts_with('/') && path.len() > 1;
        if paths.is_empty() || !paths.iter().all(is_path) {
            return wrong("paths begin with `/` and are not the root");
        }
        if reason.len() < 20 || opens.len() < 20 {
            return wrong("`reason` and `opens` say it in a sentence");
        }
        // One match of these runs code wherever the value is read, and no editor sends them.
        let classes = kinds.iter().filter_map(|kind| Class::from_name(kind.split_once('.')?.0));
        if let Some(class) = { classes }.find(|class| matches!(class, Class::Log4j | Class::Deserialization))
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

    #[test]
    fn what_is_too_wide_or_wrong_is_no_profile() {
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
        refused("kinds = [\"xss.script-code\"]", "", "`kinds` go with a `location`");
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
