//! Lookups of log4j.
//!
//! What it does: evaluates `${prefix:key:-default}` as log4j 2 would, nested as deep as it may be, with a
//! bounded stack and buffer, and asks what name a lookup has once its inner ones are resolved:
//! `${${lower:j}n${::-d}i:...}` is `${jndi:...}`. What another machine's variables hold is not known; their
//! default is what they resolve to.
//!
//! Why it is dangerous: `jndi` loads code from another machine (CVE-2021-44228); other lookups tell keys and
//! variables.
//!
//! References: <https://logging.apache.org/log4j/2.x/manual/lookups.html>.

mod lookup;

use portcullis_types::Span;

use self::lookup::{Event, Resolver};
use super::purpose;
use crate::{ByteGroups, Class, Detector, Found, Hint, Input, Place, Profile, kinds};

kinds! {
    reference "https://logging.apache.org/security.html#CVE-2021-44228";
    JNDI "log4j.jndi" Critical Active "a lookup by JNDI, which loads code from another machine";
    BUILT "log4j.built" Error Active "lookups inside a lookup make up its name or text letter by letter";
    NAMELESS "log4j.nameless" Critical Active
        "a lookup without a name that stands for its default: `${::-x}`";
    CASE "log4j.case" Warning Active
        "a lookup that changes case or decodes: lower, upper, base64, date with a quoted text";
    VARIABLE "log4j.variable" Warning Active "a lookup of a variable of the system: env, sys, java, ...";
    ALONE "log4j.alone" Error Active
        "such a lookup stands in a parameter, header or cookie, or is all of a field: settings that have them are no part of a request";
}

/// See the module.
#[derive(Debug)]
pub struct Log4j;

const HINTS: &[Hint] = &[Hint::text("${")];

static PROFILE: Profile = Profile::new(Class::Log4j, KINDS).needs(ByteGroups::of(b"$")).hints(HINTS);

impl Detector for Log4j {
    fn profile(&self) -> &'static Profile {
        &PROFILE
    }

    fn reads_bytes(&self) -> bool {
        true
    }

    fn detect(&self, input: &Input<'_>, found: &mut Found<'_>) {
        let mut resolver = Resolver::new(input.text);
        while let Some((event, start, end)) = resolver.next_event() {
            let kind = match event {
                Event::Jndi => JNDI,
                Event::Built => BUILT,
                Event::Nameless => NAMELESS,
                Event::Case => CASE,
                Event::Variable => VARIABLE,
            };
            found.add(kind, Span::new(start, end));
            // In a body it may be the settings of a program: many take variables of the environment so, none
            // of the others.
            let is_value = match input.location.place {
                Place::Query | Place::Name | Place::Header | Place::Cookie | Place::PathSegment => true,
                Place::Form | Place::Json | Place::MultipartField | Place::XmlText => {
                    !starts_any_case(&input.text[start..], b"${env:") || asks_secret(input, start, end)
                }
                Place::Method
                | Place::Path
                | Place::QueryString
                | Place::XmlAttribute
                | Place::XmlDoctype
                | Place::FileName
                | Place::FileContent
                | Place::PartHeader
                | Place::HeaderName
                | Place::Text
                | Place::RawBody
                | Place::ResponseBody
                | Place::ResponseHeader => false,
            };
            // No page has them in its query or the fields of a head; in a body they may be part of a setting.
            let is_all = || input.text[start..end].len() == input.text.trim_ascii().len();
            let is_of_head = matches!(
                input.location.place,
                Place::Query | Place::Name | Place::Header | Place::Cookie | Place::PathSegment
            );
            if matches!(event, Event::Variable | Event::Case) && is_value && (is_of_head || is_all()) {
                found.add(ALONE, Span::new(start, end));
            }
        }
    }
}

/// `${env:DB_PASSWORD}` where no settings belong: the variable's name says that it is a secret.
fn asks_secret(input: &Input<'_>, start: usize, end: usize) -> bool {
    let name = input.text.get(start + 6..end.saturating_sub(1)).unwrap_or_default();
    let name = &name[..name.iter().position(|b| *b == b':').unwrap_or(name.len())];
    purpose::names_secret(name)
        && !purpose::takes_configuration(input.location)
        && !purpose::takes_step(input.location)
        && !purpose::takes_code(input.location)
        && !purpose::takes_text(input.location)
}

fn starts_any_case(text: &[u8], start: &[u8]) -> bool {
    text.get(..start.len()).is_some_and(|head| head.eq_ignore_ascii_case(start))
}

#[cfg(test)]
mod tests {
    use crate::detectors::testing::{blocks_at, passes_at};
    use crate::{Analysis, Class, Detectors, Level, Location, Place};

    fn kinds(text: &str) -> (String, bool) {
        let detectors = Detectors::new();
        let mut analysis = Analysis::new();
        analysis.value(&detectors, Location::new(Place::Header, b"X-Api-Version"), text.as_bytes());
        let of_this = analysis.findings().iter().filter(|f| f.kind.id.starts_with("log4j."));
        let names: Vec<&str> = of_this.map(|f| &f.kind.id["log4j.".len()..]).collect();
        let blocks =
            analysis.scores(&detectors).any(|s| s.class.name() == "log4j" && s.blocks(Level::Balanced));
        (names.join(" "), blocks)
    }

    #[track_caller]
    fn check(text: &str, want: &str, blocked: bool) {
        let (have, blocks) = kinds(text);
        for kind in want.split_whitespace() {
            assert!(have.split_whitespace().any(|k| k == kind), "{text}: {have}");
        }
        assert_eq!(blocks, blocked, "{text}: {have}");
    }

    #[test]
    fn jndi_however_it_is_written() {
        check("${jndi:ldap://a.example/x}", "jndi", true);
        check("Mozilla ${JnDi:rmi://a.example/x} x", "jndi", true);
        check("${${lower:j}${upper:n}d${lower:I}:ldap://a.example}", "jndi built case", true);
        check("${${::-j}${::-n}${::-d}${::-i}:dns://a.example}", "jndi nameless", true);
        check("${${env:NOPE:-j}ndi${env:NOPE:-:}${sys:x:-l}dap://a.example}", "jndi built", true);
        check("${j${${:-l}${:-o}${:-w}${:-e}${:-r}:n}di:ldap://a.example}", "jndi", true);
        check("${jnd${upper:\u{131}}:ldap://a.example}", "jndi", true);
        check("${${date:'j'}${date:'n'}di:ldap://a.example}", "jndi", true);
        check("${${base64:am5kaTpsZGFwOi8vYS5leGFtcGxl}}", "jndi", true);
        check("${jndi:ldap://a.example/${env:USER}", "jndi", true);
        check("$${jndi:ldap://a.example/}", "jndi", true);
        check("%24%7bjndi:ldap://a.example%7d", "jndi", true);
        check("\\u0024\\u007bjndi:ldap://a.example}", "jndi", true);
        check("${ctx:loginId:-${jndi:dns://a.example}}", "jndi", true);
    }

    #[test]
    fn variables_alone() {
        check("${env:PATH}", "variable alone", true);
        check("${lower:X}", "case alone", true);
        check("${marker:a}", "variable alone", true);
        check("%24%7Bsys:java.version%7D", "variable alone", true);
        passes_at(Class::Log4j, Place::Json, "env", "${env:PATH}");
        passes_at(Class::Log4j, Place::Json, "config", "${env:DB_PASSWORD}");
        blocks_at(Class::Log4j, Place::Json, "${env:DB_PASSWORD}", "variable alone");
        passes_at(Class::Log4j, Place::Form, "args", "${env:HOME}");
        passes_at(Class::Log4j, Place::Form, "config", "region: ${env:AWS_REGION}");
        check("region: ${env:AWS_REGION}", "variable alone", true);
        check("${${::-j}}", "nameless", true);
        passes_at(Class::Log4j, Place::Json, "dir", "${sys:user.home}/logs");
        blocks_at(Class::Log4j, Place::Json, "${sys:java.version}", "variable alone");
        blocks_at(Class::Log4j, Place::Form, "${docker:containerId}", "variable alone");
        blocks_at(Class::Log4j, Place::Json, "${base64:JHtqbmRpOmxkYXA6Ly94fQ==}", "jndi");
    }

    #[test]
    fn not_log4j() {
        for text in [
            "Dear ${customer.name}, total: ${order.total}",
            "${variable} in bash",
            "image: ${REGISTRY:-docker.io}/app:${TAG:-latest}",
            "`v=${v}` and ${items.map(i => `${i}`)}",
            "${{ github.ref }}",
            "jndi lookup what is it",
            "${workspaceFolder}",
            "${",
            "}}}}${}",
        ] {
            check(text, "", false);
        }
    }

    #[test]
    fn hostile_nesting_ends() {
        for unit in ["${", "${${lower:", "${::-", "${a:-", "}", "${x}", "${base64:"] {
            kinds(&unit.repeat(20_000));
        }
    }
}
