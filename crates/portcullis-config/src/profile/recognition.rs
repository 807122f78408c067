//! Which application an answer comes from.

use super::markup::{Markup, markup};
use super::{Profile, SignKind, profiles};

/// Points that recognise an application. No sign has as many.
const POINTS_MIN: u32 = 3;
/// Bytes of a body that are looked at: a page names its generator, title and style sheets in its head.
const BODY_BYTES_MAX: usize = 16 << 10;

/// Bytes of a version: a longer one is none.
const VERSION_BYTES_MAX: usize = 24;

/// An answer, as far as it is known.
#[derive(Debug)]
pub struct Answer<'a> {
    /// The host that was asked, with or without its port; empty: it is not known.
    pub host: &'a [u8],
    /// The path that was asked for.
    pub path: &'a [u8],
    /// The status.
    pub status: u16,
    /// The header fields.
    pub fields: &'a [(&'a [u8], &'a [u8])],
    /// The first bytes of the body.
    pub body: &'a [u8],
}

/// An application that an answer comes from.
#[derive(Clone, Debug)]
pub struct Recognised {
    /// Its profile.
    pub profile: &'static Profile,
    /// The signs that the answer shows, in words.
    pub signs: Vec<String>,
}

/// The applications that an answer comes from. Several, where one extends another.
pub fn recognise(answer: &Answer<'_>) -> Vec<Recognised> {
    let page = Page::new(answer);
    profiles().iter().filter_map(|profile| of_profile(profile, &page)).collect()
}

/// A version of an application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// As the answer has it: `6.7.1`.
    pub text: String,
    /// The profile was written for it.
    pub is_known: bool,
}

impl Profile {
    /// The version that an answer of its application shows, if it shows one.
    pub fn version_in(&self, answer: &Answer<'_>) -> Option<Version> {
        if self.releases.is_empty() {
            return None;
        }
        let page = Page::new(answer);
        let text = self.releases.iter().find_map(|release| page.version(&release.0))?;
        let is_of = |known: &String| {
            text.strip_prefix(known.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        Some(Version { is_known: self.knows.iter().any(is_of), text })
    }
}

fn of_profile(profile: &'static Profile, page: &Page<'_>) -> Option<Recognised> {
    let shown = || profile.signs.iter().filter(|sign| page.shows(&sign.kind));
    let points: u32 = shown().map(|sign| sign.weight).sum();
    (points >= POINTS_MIN)
        .then(|| Recognised { profile, signs: shown().map(|sign| words(&sign.kind)).collect() })
}

fn words(kind: &SignKind) -> String {
    match kind {
        SignKind::Header(name, None) => format!("header {name}"),
        SignKind::Header(name, Some(value)) => format!("header {name} with {value}"),
        SignKind::Cookie(name) => format!("cookie {name}"),
        SignKind::Generator(text) => format!("generator {text}"),
        SignKind::Title(text) => format!("title {text}"),
        SignKind::Asset(text) => format!("address {text}"),
        SignKind::Text(text) => format!("text {text}"),
        SignKind::Path(path) => format!("path {path}"),
    }
}

/// An answer in lower case, with the parts of its page that signs are in.
struct Page<'a> {
    answer: &'a Answer<'a>,
    host: String,
    path: String,
    body: String,
    markup: Markup,
    title: Option<(usize, usize)>,
    generators: Vec<String>,
}

impl<'a> Page<'a> {
    fn new(answer: &'a Answer<'a>) -> Page<'a> {
        let body = &answer.body[..answer.body.len().min(BODY_BYTES_MAX)];
        let body = String::from_utf8_lossy(body).to_ascii_lowercase();
        let markup = markup(&body);
        let title = markup.tags.find("<title").and_then(|start| {
            let start = start + body[start..].find('>')? + 1;
            Some((start, start + body[start..].find("</title")?))
        });
        let generators = markup.tags.split("<meta").skip(1).filter_map(generator).collect();
        let lower = |bytes: &[u8]| String::from_utf8_lossy(bytes).to_ascii_lowercase();
        let (host, path) = (host_of(&lower(answer.host)).to_owned(), lower(answer.path));
        Page { answer, host, path, body, markup, title, generators }
    }

    fn shows(&self, kind: &SignKind) -> bool {
        match kind {
            SignKind::Header(name, value) => {
                let mut fields = self.answer.fields.iter();
                fields.any(|(field, content)| {
                    let has = |value: &String| contains(content, value);
                    field.eq_ignore_ascii_case(name.as_bytes()) && value.as_ref().is_none_or(has)
                })
            }
            SignKind::Cookie(name) => {
                let mut fields = self.answer.fields.iter();
                fields.any(|(field, content)| {
                    field.eq_ignore_ascii_case(b"set-cookie")
                        && content
                            .get(..name.len())
                            .is_some_and(|start| start.eq_ignore_ascii_case(name.as_bytes()))
                })
            }
            SignKind::Generator(text) => self.generators.iter().any(|each| each.starts_with(text)),
            SignKind::Title(text) => {
                self.title.is_some_and(|(start, end)| is_titled(&self.body[start..end], text))
            }
            SignKind::Asset(text) => self.has_address(text),
            SignKind::Text(text) => self.markup.code.contains(text),
            SignKind::Path(path) => {
                let is_served = self.answer.status < 400 || matches!(self.answer.status, 401 | 403);
                is_served && self.path.starts_with(path)
            }
        }
    }

    /// The version that stands right behind what a release names.
    fn version(&self, kind: &SignKind) -> Option<String> {
        match kind {
            SignKind::Header(name, before) => {
                let mut fields = self.answer.fields.iter();
                let (_, content) = fields.find(|(field, _)| field.eq_ignore_ascii_case(name.as_bytes()))?;
                let content = String::from_utf8_lossy(content).to_ascii_lowercase();
                version(&content[before.as_ref().map_or(Some(0), |text| behind(&content, text))?..])
            }
            SignKind::Generator(text) => {
                self.generators.iter().find_map(|each| version(each.strip_prefix(text.as_str())?))
            }
            SignKind::Asset(text) => {
                let mut places = self.markup.tags.match_indices(text.as_str());
                places.find_map(|(at, _)| {
                    self.is_address(at).then(|| version(&self.body[at + text.len()..])).flatten()
                })
            }
            // Data of the page count: by now it is known whose they are.
            SignKind::Text(text) => version(&self.body[behind(&self.body, text)?..]),
            SignKind::Cookie(_) | SignKind::Title(_) | SignKind::Path(_) => None,
        }
    }

    /// The text stands in the value of a `src` or `href` attribute that leads to the same host. What a page
    /// only mentions, and what it links or embeds from elsewhere, is none.
    fn has_address(&self, text: &str) -> bool {
        self.markup.tags.match_indices(text).any(|(at, _)| self.is_address(at))
    }

    /// What stands here is in the value of such an attribute.
    fn is_address(&self, at: usize) -> bool {
        let before = &self.markup.tags[..at];
        let start = before.rfind(['"', '\'', '=', ' ', '>', '<']).map_or(0, |start| start + 1);
        let attribute = before[..start].trim_end_matches(['"', '\'']).trim_end();
        let attribute = attribute.strip_suffix('=').map(str::trim_end);
        attribute.is_some_and(|before| before.ends_with("src") || before.ends_with("href"))
            && self.is_own(&self.markup.tags[start..])
    }

    /// True if an address begins with a path, or with the host that was asked.
    fn is_own(&self, address: &str) -> bool {
        let rest =
            address.strip_prefix("https:").or_else(|| address.strip_prefix("http:")).unwrap_or(address);
        match rest.strip_prefix("//") {
            Some(rest) => {
                let end = rest.find(['/', '?', '#', '"', '\'', ' ', '>']).unwrap_or(rest.len());
                !self.host.is_empty() && host_of(&rest[..end]) == self.host
            }
            None => true,
        }
    }
}

/// A host without its port, and without the `www.` that sites have or have not.
fn host_of(authority: &str) -> &str {
    let port =
        authority.rfind(':').filter(|at| authority[at + 1..].bytes().all(|byte| byte.is_ascii_digit()));
    let host = &authority[..port.unwrap_or(authority.len())];
    host.strip_prefix("www.").unwrap_or(host)
}

/// True if a part of a title is the text with one more word at most (`Strapi Admin`, `n8n.io`), or greets
/// with it (`Sign in to Keycloak`). In the title of a page about it there is more.
fn is_titled(title: &str, text: &str) -> bool {
    let title = title.replace(" - ", "|").replace("&lsaquo;", "|").replace("&mdash;", "|");
    let end = |char: char| "|·—–«»‹›:;,[](){}/".contains(char);
    title.split(end).any(|part| {
        let part = part.trim();
        let greeting = ["sign in to ", "log in to ", "login to ", "welcome to "]
            .iter()
            .find_map(|words| part.strip_prefix(words));
        let rest = greeting.unwrap_or(part).strip_prefix(text);
        // A text of several words is no name that pages about it have as their title.
        rest.is_some_and(|rest| {
            text.contains(' ')
                || !rest.starts_with(char::is_alphanumeric) && rest.split_whitespace().count() <= 1
        })
    })
}

/// The content of a meta element that names a generator, from behind its `<meta`.
fn generator(element: &str) -> Option<String> {
    let element = &element[..element.find('>')?];
    let value = |name: &str| {
        let rest = element[element.find(name)? + name.len()..].trim_start().strip_prefix('=')?.trim_start();
        match rest.chars().next().filter(|sign| matches!(sign, '"' | '\'')) {
            Some(quote) => rest[1..].split(quote).next(),
            None => rest.split([' ', '/']).next(),
        }
    };
    (value("name")?.trim() == "generator").then(|| value("content").map(|text| text.trim().to_owned()))?
}

/// Where the text ends that stands in `content`.
fn behind(content: &str, text: &str) -> Option<usize> {
    content.find(text).map(|at| at + text.len())
}

/// The version that a text begins with: numbers and dots.
fn version(text: &str) -> Option<String> {
    let text = text.trim_start();
    let text = text.strip_prefix('v').unwrap_or(text);
    let end = text.find(|sign: char| !sign.is_ascii_digit() && sign != '.').unwrap_or(text.len());
    let version = text[..end].trim_end_matches('.');
    let is_one =
        version.starts_with(|sign: char| sign.is_ascii_digit()) && version.len() <= VERSION_BYTES_MAX;
    is_one.then(|| version.to_owned())
}

/// True if `text`, which is in lower case, stands in `content`.
fn contains(content: &[u8], text: &str) -> bool {
    content.windows(text.len().max(1)).any(|part| part.eq_ignore_ascii_case(text.as_bytes()))
}
