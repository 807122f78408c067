//! External entities, inclusions and entity bombs of XML.
//!
//! A document type with an entity of its own has hardly a legitimate use in a request: external entities read
//! files and send requests, entities made of entities fill the memory. XInclude and XSLT's `document()` do
//! the same without a document type.

use portcullis_types::Span;

use super::scan::{has_at, is_one_of, is_word, run, skip_space};
use crate::{ByteGroups, Class, Detector, Found, Hint, Input, Place, Profile, kinds};

kinds! {
    reference "https://owasp.org/www-community/vulnerabilities/XML_External_Entity_%28XXE%29_Processing";
    ENTITY_EXTERNAL "xxe.entity-external" Critical Quotable
        "an entity whose content comes from a file or another server";
    ENTITY_PARAMETER "xxe.entity-parameter" Critical Quotable
        "a parameter entity: it builds other declarations";
    ENTITY_BOMB "xxe.entity-bomb" Critical Quotable
        "an entity made of many entities, which grows when it is read";
    ENTITY "xxe.entity" Error Quotable "a document that declares entities of its own";
    DOCTYPE_EXTERNAL "xxe.doctype-external" Critical Quotable "a document type that is loaded from elsewhere";
    DOCTYPE_SUBSET "xxe.doctype-subset" Warning Quotable "a document type with declarations of its own";
    ELEMENT "xxe.element" Notice Quotable "declares an element or an attribute list";
    REFERENCE "xxe.reference" Warning Quotable "refers to an entity that XML does not know by itself";
    REFERENCE_PARAMETER "xxe.reference-parameter" Error Quotable "a parameter entity is inserted";
    XINCLUDE "xxe.xinclude" Critical Quotable "XInclude inserts a file or another document";
    STYLESHEET "xxe.stylesheet" Warning Quotable "a style sheet of XSLT";
    STYLESHEET_READS "xxe.stylesheet-reads" Error Quotable
        "a style sheet that reads documents or asks for the processor";
    STYLESHEET_RUNS "xxe.stylesheet-runs" Critical Quotable
        "a style sheet that runs functions of PHP, Java or .NET";
    STYLESHEET_LINK "xxe.stylesheet-link" Error Quotable
        "a style sheet or schema is loaded from a local address";
    SIGNATURE_RUNS "xxe.signature-runs" Critical Quotable
        "a signature is checked by a style sheet of its own, which runs before anything is trusted";
    NAME_SPLIT "xxe.name-split" Critical Quotable
        "a comment stands in the name of who logs in: readers take different parts of it for the whole";
    BUILD_RUNS "xxe.build-runs" Critical Quotable "a build file whose target runs a program";
    LINK "xxe.link" Critical Quotable
        "a picture, style sheet or schema is loaded by a scheme that runs, reads or unpacks";
}

/// See the module.
#[derive(Debug)]
pub struct Xxe;

static PROFILE: Profile = Profile::new(Class::Xxe, KINDS).needs(ByteGroups::of(b"<!")).hints(HINTS);

impl Detector for Xxe {
    fn profile(&self) -> &'static Profile {
        &PROFILE
    }

    fn reads(&self, place: Place) -> bool {
        place.is_value() || matches!(place, Place::XmlDoctype | Place::RawBody)
    }

    fn reads_body(&self, body: &[u8]) -> bool {
        memchr::memchr(b'<', body).is_some()
    }

    fn detect(&self, input: &Input<'_>, found: &mut Found<'_>) {
        let text = input.text;
        // Declarations in prose are an article about XML: they hold only in what is a document from its
        // beginning.
        let start = skip_space(text, 0);
        // A reader of XML refuses JSON at its first sign; its strings are looked at by themselves.
        if input.location.place == Place::RawBody && matches!(text.get(start), Some(b'{' | b'[')) {
            return;
        }
        let is_document = matches!(text.get(start), Some(b'<' | b'"' | b'\'' | b']' | 0xEF))
            || matches!(input.location.place, Place::XmlDoctype | Place::RawBody);
        let mut scan = Scan { text, is_mention: !is_document, found };
        for at in memchr::memchr_iter(b'<', text) {
            match text.get(at + 1) {
                Some(b'!') => scan.declaration(at),
                Some(b'/' | b' ' | b'\n') | None => {}
                Some(_) => scan.element(at),
            }
        }
        if matches!(input.location.place, Place::XmlDoctype) {
            scan.external_id(skip_name(text, start), 0);
        }
    }
}

/// Bytes after a document type in which its entities are looked for.
const REFERENCE_BYTES_MAX: usize = 4_096;

struct Scan<'s, 't, 'f> {
    text: &'t [u8],
    is_mention: bool,
    found: &'s mut Found<'f>,
}

impl Scan<'_, '_, '_> {
    fn add(&mut self, kind: crate::KindId, from: usize, to: usize) {
        let span = Span::new(from, to.min(self.text.len()));
        match self.is_mention {
            true => self.found.mention(kind, span),
            false => self.found.add(kind, span),
        }
    }

    fn declaration(&mut self, at: usize) {
        let text = self.text;
        let body = at + 2;
        if has_at(text, body, b"entity") && text.get(body + 6).is_some_and(u8::is_ascii_whitespace) {
            self.entity(at, skip_space(text, body + 6));
        } else if has_at(text, body, b"doctype") {
            self.doctype(at, skip_space(text, body + 7));
        } else if has_at(text, body, b"element") || has_at(text, body, b"attlist") {
            self.add(ELEMENT, at, at + 40);
        }
    }

    fn entity(&mut self, at: usize, name: usize) {
        let text = self.text;
        let mut next = name;
        let is_parameter = matches!(text.get(next), Some(b'%'))
            || has_at(text, next, b"&#37;")
            || has_at(text, next, b"&#x25;");
        if is_parameter {
            self.add(ENTITY_PARAMETER, at, at + 80);
            next = skip_space(text, run(text, next, 8, |b| !b.is_ascii_whitespace()));
        }
        next = skip_space(text, skip_name(text, next));
        if has_at(text, next, b"system") || has_at(text, next, b"public") {
            self.add(ENTITY_EXTERNAL, at, at + 120);
            return;
        }
        let Some(quote @ (b'"' | b'\'')) = text.get(next).copied() else { return };
        let value = &text[next + 1..];
        let value = &value[..memchr::memchr(quote, value).unwrap_or(value.len())];
        self.add(ENTITY, at, next + value.len() + 2);
        let references =
            memchr::memchr2_iter(b'&', b'%', value).filter(|&sign| reference(value, sign).is_some()).count();
        if references >= 3 {
            self.add(ENTITY_BOMB, at, next + value.len() + 2);
        }
    }

    fn doctype(&mut self, at: usize, name: usize) {
        let text = self.text;
        let next = skip_space(text, skip_name(text, name));
        self.external_id(next, at);
        let end = run(text, next, 400, |b| !matches!(b, b'[' | b'>'));
        if text.get(end) == Some(&b'[') {
            self.add(DOCTYPE_SUBSET, at, end + 1);
            self.references(end + 1);
        }
    }

    /// `SYSTEM "uri"` or `PUBLIC "id" "uri"`, unless it names a document type that everybody's files begin
    /// with.
    fn external_id(&mut self, at: usize, from: usize) {
        let text = self.text;
        let is_public = has_at(text, at, b"public");
        if !is_public && !has_at(text, at, b"system") {
            return;
        }
        let end = run(text, at, 300, |b| !matches!(b, b'[' | b'>'));
        if !is_known_doctype(&text[at + 6..end], is_public) {
            self.add(DOCTYPE_EXTERNAL, from, end);
        }
    }

    /// References to entities in a document type and after it, as far as they are near.
    fn references(&mut self, from: usize) {
        let text = self.text;
        let near = &text[from..text.len().min(from + REFERENCE_BYTES_MAX)];
        for sign in memchr::memchr2_iter(b'%', b'&', near).map(|at| from + at).take(64) {
            let Some(end) = reference(text, sign) else { continue };
            let kind = if text[sign] == b'%' { REFERENCE_PARAMETER } else { REFERENCE };
            self.add(kind, sign, end);
        }
    }

    fn element(&mut self, at: usize) {
        let text = self.text;
        let end = run(text, at + 1, 80, |b| is_word(b) || matches!(b, b':' | b'-' | b'.'));
        let name = &text[at + 1..end];
        let (prefix, local) = match memchr::memchr(b':', name) {
            Some(colon) => (&name[..colon], &name[colon + 1..]),
            None => (&b""[..], name),
        };
        // XML has no `<` within a tag.
        let tag_end = run(text, end, 2_000, |b| !matches!(b, b'>' | b'<'));
        let tag = &text[end..tag_end];
        self.by_name(at, local, tag_end);
        if prefix.is_empty() && memchr::memchr(b':', tag).is_none() {
            return;
        }
        let has = |word: &[u8]| tag.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word));
        let is_xslt = prefix.eq_ignore_ascii_case(b"xsl");
        // The declaration of the name space includes nothing by itself.
        let is_of_space = !prefix.is_empty() && !is_xslt || has(b"http://www.w3.org/2001/XInclude");
        if local.eq_ignore_ascii_case(b"include") && is_of_space && has(b"href") && !includes_neighbour(tag) {
            self.add(XINCLUDE, at, tag_end);
        }
        if has(b"http://www.w3.org/1999/XSL/Transform")
            || is_xslt && local.eq_ignore_ascii_case(b"stylesheet")
        {
            self.add(STYLESHEET, at, tag_end);
        }
        if is_xslt && (has(b"document(") || has(b"unparsed-text(") || has(b"system-property(")) {
            self.add(STYLESHEET_READS, at, tag_end);
        }
        if is_xslt
            && (local.eq_ignore_ascii_case(b"include") || local.eq_ignore_ascii_case(b"import"))
            && has(b"href")
        {
            self.add(STYLESHEET_READS, at, tag_end);
        }
        // XML-DSig allows it, and every library advises against it.
        if local == b"Transform" && has(b"REC-xslt-19991116") && text[tag_end..].starts_with(b">") {
            self.add(SIGNATURE_RUNS, at, tag_end);
        }
        let runs = has(b"php:function")
            || has(b"http://php.net/xsl")
            || has(b"urn:schemas-microsoft-com:xslt")
            || has(b"xalan/java")
            || has(b"rt:exec")
            || has(b"java.lang.Runtime")
            || has(b"http://exslt.org/common\" extension");
        let is_script = prefix.eq_ignore_ascii_case(b"msxsl")
            || local.eq_ignore_ascii_case(b"document") && prefix.eq_ignore_ascii_case(b"exploit");
        if is_xslt && runs || is_script {
            self.add(STYLESHEET_RUNS, at, tag_end);
        }
        let links = has(b"schemaLocation=") || has(b"xlink:href=") || text[at + 1] == b'?' && has(b"href=");
        if links && has(b"file:/") {
            // Editors write where a schema lies on their machine; nobody draws a picture from there.
            self.add(if has(b"schemaLocation=") { STYLESHEET_LINK } else { LINK }, at, tag_end);
        }
        if links && (has(b"expect:") || has(b"php:") || has(b"gopher:") || has(b"jar:") || has(b"netdoc:")) {
            self.add(LINK, at, tag_end);
        }
    }
}

impl Scan<'_, '_, '_> {
    /// What an element is by its name alone, whatever attributes it has.
    fn by_name(&mut self, at: usize, local: &[u8], tag_end: usize) {
        let text = self.text;
        let tag = &text[at..tag_end];
        let has = |word: &[u8]| memchr::memmem::find(tag, word).is_some();
        // Ant and MSBuild
        if local == b"exec" && has(b" executable=") || local == b"Exec" && has(b" Command=") {
            self.add(BUILD_RUNS, at, tag_end);
        }
        if matches!(local, b"NameID" | b"NameIdentifier") && text.get(tag_end) == Some(&b'>') {
            let content = &text[tag_end + 1..];
            let name = &content[..memchr::memchr(b'<', content).unwrap_or(content.len())];
            if !name.trim_ascii().is_empty() && content[name.len()..].starts_with(b"<!--") {
                self.add(NAME_SPLIT, at, tag_end + 5 + name.len());
            }
        }
    }
}

/// `href="chapter-2.xml"` and nothing about how it is read: a document in pieces that lie beside each other.
fn includes_neighbour(tag: &[u8]) -> bool {
    let is_here = |word: &[u8]| tag.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word));
    let Some(at) = memchr::memmem::find(tag, b"href=") else { return false };
    let value = &tag[at + 5..];
    let Some(quote @ (b'"' | b'\'')) = value.first() else { return false };
    let len = memchr::memchr(*quote, &value[1..]).unwrap_or(0);
    let name = &value[1..1 + len];
    let is_plain = name.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_'));
    let is_one = memchr::memmem::find_iter(tag, b"href").count() == 1;
    is_plain && name.ends_with(b".xml") && is_one && !is_here(b"parse") && !is_here(b"accept")
}

/// `ids` are the quoted strings after PUBLIC or SYSTEM. The last one is an address: of a publisher of
/// document types, or none at all. A public identifier alone proves nothing: parsers load what the address
/// says.
fn is_known_doctype(ids: &[u8], is_public: bool) -> bool {
    let mut strings = [&b""[..]; 2];
    let mut at = 0;
    for string in &mut strings {
        let Some(open) = ids[at..].iter().position(|b| matches!(b, b'"' | b'\'')).map(|open| at + open)
        else {
            break;
        };
        let len = memchr::memchr(ids[open], &ids[open + 1..]).unwrap_or(ids.len() - open - 1);
        *string = &ids[open + 1..open + 1 + len];
        at = (open + len + 2).min(ids.len());
    }
    let (public, system) = if is_public { (strings[0], strings[1]) } else { (&b""[..], strings[0]) };
    let host = ["http://", "https://"].iter().find_map(|scheme| system.strip_prefix(scheme.as_bytes()));
    match host {
        Some(rest) => {
            let host = &rest[..rest
                .iter()
                .position(|b| matches!(b, b'/' | b'?' | b'#' | b'@' | b':'))
                .unwrap_or(rest.len())];
            rest.get(host.len()) == Some(&b'/') && is_one_of(host, PUBLISHERS)
        }
        // `-//W3C//DTD HTML 4.01//EN` without an address, or a declaration beside the document.
        None => {
            let is_plain = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_');
            let is_beside = system.ends_with(b".dtd") || public.starts_with(b"-//");
            // `urn:fontconfig:fonts.dtd`: a name that leads nowhere; `../fonts.dtd`: a folder up at most.
            let name = system.strip_prefix(b"urn:");
            let is_name = name.is_some_and(|name| name.iter().all(|b| is_plain(b) || *b == b':'));
            let system_name = system.strip_prefix(b"../").unwrap_or(system);
            system == b"about:legacy-compat" || is_name || is_beside && system_name.iter().all(is_plain)
        }
    }
}

/// Hosts that publish the document types of formats: W3C, OASIS, Apple's property lists, and what Java's
/// frameworks begin their files with. From the formats' own specifications and manuals.
const PUBLISHERS: &[&[u8]] = words!("xxe", "publishers");

fn skip_name(text: &[u8], at: usize) -> usize {
    run(text, at, 200, |b| !b.is_ascii_whitespace() && !matches!(b, b'"' | b'\'' | b'[' | b'>'))
}

/// The end of a reference to an entity at `at`, if it is one that XML does not know by itself.
fn reference(text: &[u8], at: usize) -> Option<usize> {
    let end = run(text, at + 1, 64, |b| is_word(b) || matches!(b, b'-' | b'.'));
    let name = &text[at + 1..end];
    let is_name = name.first().is_some_and(u8::is_ascii_alphabetic) && text.get(end) == Some(&b';');
    let is_known = matches!(name, b"lt" | b"gt" | b"amp" | b"quot" | b"apos" | b"nbsp" | b"copy");
    (is_name && !is_known).then_some(end + 1)
}

const HINTS: &[Hint] = hints!("xxe", "gate");

#[cfg(test)]
mod tests {
    use crate::Class::Xxe;
    use crate::Place;
    use crate::detectors::testing::{blocks, blocks_at, passes, passes_at};

    #[test]
    fn entities() {
        blocks(
            Xxe,
            "<?xml version=\"1.0\"?><!DOCTYPE a [<!ENTITY x SYSTEM \"file:///x\">]><a>&x;</a>",
            "entity-external doctype-subset reference",
        );
        blocks(
            Xxe,
            "<!DOCTYPE a [<!ENTITY % p SYSTEM 'http://a.example/x.dtd'> %p;]>",
            "entity-parameter entity-external reference-parameter",
        );
        blocks(Xxe, "<!DOCTYPE a PUBLIC \"any\" \"http://a.example/x.dtd\"><a/>", "doctype-external");
        blocks(
            Xxe,
            "<!DOCTYPE z [<!ENTITY a \"x\"><!ENTITY b \"&a;&a;&a;&a;\">]><z>&b;</z>",
            "entity-bomb entity",
        );
        // A public identifier does not say where the document type is loaded from.
        for address in [
            "http://a.example/x.dtd",
            "file:///etc/passwd",
            "http://www.w3.org@a.example/",
            "http://www.w3.org:80@a.example/",
            "../../x",
            "../../x.dtd",
            "../etc/x.dtd",
            "\\\\a\\b",
        ] {
            let document =
                format!("<!DOCTYPE a PUBLIC \"-//W3C//DTD XHTML 1.0 Strict//EN\" \"{address}\"><a/>");
            blocks(Xxe, &document, "doctype-external");
        }
        blocks_at(Xxe, Place::Text, "  <!doctype a[<!entity x system 'file:///x'>]>", "entity-external");
    }

    #[test]
    fn documents_that_run_or_split() {
        let project = "<project><target name=\"x\"><exec executable=\"calc\"/></target></project>";
        blocks_at(Xxe, Place::RawBody, project, "build-runs");
        blocks_at(
            Xxe,
            Place::RawBody,
            "<Project><Target><Exec Command=\"calc\"/></Target></Project>",
            "build-runs",
        );
        blocks(Xxe, "<a:NameID>admin@a.example<!-- -->.b.example</a:NameID>", "name-split");
        blocks_at(
            Xxe,
            Place::RawBody,
            "<ds:Transform Algorithm=\"http://www.w3.org/TR/1999/REC-xslt-19991116\"><xsl:stylesheet/></ds:Transform>",
            "signature-runs",
        );
        passes(Xxe, "<NameID>admin@a.example</NameID><!-- x -->");
        passes(Xxe, "<exec>run</exec>");
        passes(Xxe, "<Transform Algorithm=\"http://www.w3.org/2001/10/xml-exc-c14n#\"/>");
    }

    #[test]
    fn inclusions() {
        blocks(
            Xxe,
            "<a xmlns:xi=\"http://www.w3.org/2001/XInclude\"><xi:include parse=\"text\" href=\"file:///x\"/></a>",
            "xinclude",
        );
        blocks(
            Xxe,
            "<xsl:stylesheet xmlns:php=\"http://php.net/xsl\"><xsl:value-of select=\"php:function('x')\"/></xsl:stylesheet>",
            "stylesheet stylesheet-runs",
        );
        blocks(
            Xxe,
            "<xsl:stylesheet version=\"1.0\"><xsl:copy-of select=\"document('/x')\"/></xsl:stylesheet>",
            "stylesheet-reads",
        );
    }

    #[test]
    fn links() {
        blocks(Xxe, "<svg><image xlink:href=\"expect://ls\"></image></svg>", "link");
        blocks(Xxe, "<?xml-stylesheet type=\"text/xsl\" href=\"file:///etc/passwd\"?><a/>", "link");
        passes(Xxe, "<a xsi:schemaLocation=\"urn:a file:///C:/work/a.xsd\"/>");
    }

    #[test]
    fn documents_in_pieces() {
        let space = "xmlns:xi=\"http://www.w3.org/2001/XInclude\"";
        passes(Xxe, &format!("<book {space}><xi:include href=\"chapter-2.xml\"/></book>"));
        passes(Xxe, "<!DOCTYPE fontconfig SYSTEM \"../fonts.dtd\"><fontconfig/>");
        passes(Xxe, "<!DOCTYPE fontconfig SYSTEM \"urn:fontconfig:fonts.dtd\"><fontconfig/>");
        for include in [
            "href=\"file:///etc/passwd\"",
            "href=\"x.xml\" parse=\"text\"",
            "href=\"web.config\"",
            "href=\"../x.xml\"",
            "href=\"/x.xml\"",
            "href=\"http://a.example/x.xml\"",
            "href=\"x.xml\" href=\"/etc/passwd\"",
            "href=x.xml",
        ] {
            blocks(Xxe, &format!("<a {space}><xi:include {include}/></a>"), "xinclude");
        }
        blocks(Xxe, "<include xmlns=\"http://www.w3.org/2001/XInclude\" href=\"/etc/passwd\"/>", "xinclude");
    }

    #[test]
    fn ordinary() {
        passes(Xxe, "<!DOCTYPE html><html><body>Hello &amp; welcome</body></html>");
        passes(
            Xxe,
            "<!DOCTYPE html PUBLIC \"-//W3C//DTD XHTML 1.0 Strict//EN\" \"http://www.w3.org/TR/xhtml1/DTD/xhtml1-strict.dtd\">",
        );
        passes(
            Xxe,
            "<!DOCTYPE hibernate-mapping PUBLIC \"-//Hibernate/Hibernate Mapping DTD 3.0//EN\" \"http://www.hibernate.org/dtd/hibernate-mapping-3.0.dtd\"><hibernate-mapping/>",
        );
        for id in ["PUBLIC '-//W3C//DTD HTML 4.01//EN'", "SYSTEM 'about:legacy-compat'", "SYSTEM 'a.dtd'"] {
            passes(Xxe, &format!("<!DOCTYPE html {id}>"));
        }
        passes(Xxe, "<?xml version=\"1.0\"?><order><id>5</id><note>a &lt; b</note></order>");
        passes(Xxe, "In XML one writes <!ENTITY name \"value\"> inside the document type.");
        passes_at(Xxe, Place::XmlText, "a", "<svg xmlns:xlink=\"x\"><image xlink:href=\"pic.png\"/></svg>");
    }
}
