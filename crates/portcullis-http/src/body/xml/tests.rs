//! XML documents in, events or an error out.

use proptest::prelude::*;

use super::*;
use crate::body::test_sink::{Event, Recorder, assert_chunking_is_irrelevant};

fn parse_with(limits: Limits, doctype: Doctype, document: &[u8]) -> (Recorder, Report) {
    let mut sink = Recorder::default();
    let mut parser = Xml::with_doctype(limits, doctype);
    parser.feed(document, &mut sink);
    let report = parser.finish(&mut sink);
    (sink, report)
}

fn parse(document: &[u8]) -> (Recorder, Report) {
    parse_with(Limits::default(), Doctype::Refuse, document)
}

fn check_text(document: &[u8], text: &str) {
    let (sink, report) = parse(document);
    assert_eq!(report.error, None, "{}", document.escape_ascii());
    assert_eq!(String::from_utf8_lossy(&sink.text()), text, "{}", document.escape_ascii());
}

fn check_error(document: &[u8], error: Error, position: u64) {
    let expected = Some(BodyError { kind: BodyErrorKind::Xml(error), position });
    assert_eq!(parse(document).1.error, expected, "{}", document.escape_ascii());
    let mut parser = Xml::new(Limits::default());
    for byte in document {
        parser.feed(&[*byte], &mut Recorder::default());
    }
    let report = parser.finish(&mut Recorder::default());
    assert_eq!(report.error, expected, "byte by byte: {}", document.escape_ascii());
}

#[test]
fn events() {
    let bytes = |s: &str| s.as_bytes().to_vec();
    let document = "<?xml version=\"1.0\"?>\n<!-- c --><a x='1' y = \"&lt;\t2\"><b/>t&#x41;<![CDATA[<&]]]]></a><?p d ?>\n";
    let (sink, report) = parse(document.as_bytes());
    assert_eq!(report.error, None);
    assert_eq!(
        sink.events,
        [
            Event::XmlComment(bytes(" c ")),
            Event::XmlStart(bytes("a")),
            Event::XmlAttribute(bytes("x"), bytes("1")),
            Event::XmlAttribute(bytes("y"), bytes("< 2")),
            Event::XmlStart(bytes("b")),
            Event::XmlEnd(bytes("b")),
            Event::XmlText(bytes("tA<&]]")),
            Event::XmlEnd(bytes("a")),
            Event::XmlInstruction(bytes("p"), bytes("d ")),
        ]
    );
}

#[test]
fn texts() {
    check_text(b"<a>x<b>y</b>z</a>", "xyz");
    check_text(b"<a> &amp;&lt;&gt;&quot;&apos; </a>", " &<>\"' ");
    check_text(b"<a>&#60;&#x3C;&#x1F600;</a>", "<<\u{1F600}");
    check_text(b"<a>a\r\nb\rc\r\r\nd</a>", "a\nb\nc\n\nd");
    check_text(b"<a>\r<b/>\n</a>", "\n\n");
    check_text(b"<a><![CDATA[x]]><![CDATA[]]><![CDATA[]y]]]></a>", "x]y]");
    check_text(b"<a>] ]] > ]>]]</a>", "] ]] > ]>]]");
    check_text(b"\xEF\xBB\xBF<a>x</a>", "x");
    check_text("<é ü='ö'>日</é>".as_bytes(), "日");
    check_text(b"<a:b xmlns:a='u'>x</a:b >", "x");
    check_text(b"<a b='>' c='\"'>x</a>", "x");
}

#[test]
fn encodings() {
    let utf16 = |text: &str, big: bool| -> Vec<u8> {
        text.encode_utf16().flat_map(|u| if big { u.to_be_bytes() } else { u.to_le_bytes() }).collect()
    };
    for big in [false, true] {
        check_text(&utf16("\u{feff}<a>é\u{1F600}</a>", big), "é\u{1F600}");
        check_text(&utf16("<?xml version='1.0' encoding='utf-16'?><a>é</a>", big), "é");
    }
    check_text(b"<?xml version='1.0' encoding='ISO-8859-1'?><a>\xe9</a>", "é");
    check_text(b"<?xml version='1.0' encoding=\"windows-1252\"?><a>\x80\x93</a>", "€“");
    check_error(b"<?xml version='1.0' encoding='utf-7'?><a/>", Error::Encoding, 0);
    check_error(b"<?xml version='1.0' encoding='IBM037'?><a/>", Error::Encoding, 0);
    check_error(b"<?xml version='1.0' encoding='utf-16'?><a/>", Error::Encoding, 0);
    check_error(b"\x4C\x6F\xA7\x94\x93\x40", Error::Encoding, 0);
    check_error(b"\0\0\0<\0\0\0a", Error::Encoding, 0);
    check_error(b"\xFF\xFE\0\0<\0\0\0", Error::Encoding, 0);
    check_error(b"\xFF\xFE<\0a\0/\0>", Error::Character, 3);
    check_error(b"<?xml version='1.0' encoding='us-ascii'?><a>\xe9</a>", Error::Character, 44);
}

#[test]
fn errors() {
    for (document, error, position) in [
        (&b" "[..], Error::Truncated, 1),
        (b"<", Error::Truncated, 1),
        (b"<a", Error::Truncated, 2),
        (b"<a>", Error::Truncated, 3),
        (b"<a>x&am", Error::Truncated, 7),
        (b"<a><![CDATA[x]]", Error::Truncated, 15),
        (b"<!-- x", Error::Truncated, 6),
        (b"<!---><a/>", Error::Truncated, 10),
        (b"<!-- -- --><a/>", Error::Markup, 0),
        (b"<!-- ---><a/>", Error::Markup, 0),
        (b"x", Error::OutsideRoot, 0),
        (b" &lt;", Error::OutsideRoot, 1),
        (b"<a/>x", Error::OutsideRoot, 4),
        (b"<a/><b/>", Error::OutsideRoot, 4),
        (b"<a/><![CDATA[]]>", Error::OutsideRoot, 4),
        (b"<a></b>", Error::MismatchedTag, 3),
        (b"<a><b></a></b>", Error::MismatchedTag, 6),
        (b"</a>", Error::MismatchedTag, 0),
        (b"<a></a x>", Error::Markup, 3),
        (b"<a>< b/></a>", Error::Markup, 3),
        (b"<1/>", Error::Markup, 0),
        (b"<!ELEMENT a>", Error::Markup, 0),
        (b"<a/ >", Error::Markup, 0),
        (b"<a/b>", Error::Markup, 0),
        (b"<a b>", Error::Attribute, 0),
        (b"<a b=c>", Error::Attribute, 0),
        (b"<a b='1'c='2'/>", Error::Attribute, 0),
        (b"<a b='<'/>", Error::Attribute, 0),
        (b"<a <b/>", Error::Attribute, 0),
        (b"<a b='1' c='' b='2'/>", Error::DuplicateAttribute, 0),
        (b"<a>&x;</a>", Error::Entity, 3),
        (b"<a b='&x;'/>", Error::Entity, 0),
        (b"<a>&;</a>", Error::Reference, 3),
        (b"<a>& b;</a>", Error::Reference, 3),
        (b"<a>&#;</a>", Error::Reference, 3),
        (b"<a>&#x;</a>", Error::Reference, 3),
        (b"<a>&#12a;</a>", Error::Reference, 3),
        (b"<a>&#0;</a>", Error::Character, 3),
        (b"<a>&#xD800;</a>", Error::Character, 3),
        (b"<a>&#99999999999;</a>", Error::Character, 3),
        (b"<a b='&'/>", Error::Reference, 0),
        (b"<a>]]></a>", Error::CdataEnd, 5),
        (b"<a>]]]></a>", Error::CdataEnd, 6),
        (b"<a>\x01</a>", Error::Character, 3),
        (b"<a>\xC0\xAF</a>", Error::Character, 3),
        (b"<a>\xEF\xBF\xBF</a>", Error::Character, 3),
        (b"<a>\xE2\x82</a>", Error::Character, 3),
        (b"<a/>\xE2\x82", Error::Character, 4),
        (b" <?xml version='1.0'?><a/>", Error::Markup, 1),
        (b"<?XML version='1.0'?><a/>", Error::Markup, 0),
        (b"<?xml?><a/>", Error::Markup, 0),
        (b"<?xml encoding='utf-8'?><a/>", Error::Markup, 0),
        (b"<?xml version='2.0'?><a/>", Error::Markup, 0),
        (b"<!DOCTYPE a><a/>", Error::DocumentType, 0),
        (b"<!DOCTYPE a [<!ENTITY x 'y'>]><a>&x;</a>", Error::DocumentType, 0),
    ] {
        check_error(document, error, position);
    }
    let far = [b"<a>&", "x".repeat(100).as_bytes(), b";</a>"].concat();
    check_error(&far, Error::Reference, 3);
    assert_eq!(parse(b"").1.error, None);
}

#[test]
fn doctype_skipped() {
    let inner = " a SYSTEM '>' [<!ENTITY x \"]>\"> <!-- ]>' --> <?p ]>' ?>]";
    let document = format!("<!DOCTYPE{inner} ><a>x</a>");
    let run = |document: &str| parse_with(Limits::default(), Doctype::Skip, document.as_bytes());
    let (sink, report) = run(&document);
    assert_eq!(report.error, None);
    assert_eq!(sink.events[0], Event::XmlDoctype(format!("{inner} ").into_bytes()));
    assert!(report.ambiguities.contains(Ambiguity::DocumentType));
    let kind = |document: &str| run(document).1.error.map(|error| error.kind);
    assert_eq!(kind(&document.replace(">x<", ">&x;<")), Some(BodyErrorKind::Xml(Error::Entity)));
    assert_eq!(kind("<!DOCTYPE a><!DOCTYPE a><a/>"), Some(BodyErrorKind::Xml(Error::Markup)));
    assert_eq!(kind("<a/><!DOCTYPE a>"), Some(BodyErrorKind::Xml(Error::Markup)));
}

#[test]
fn doctype_that_declares_nothing() {
    let run = |document: &str| parse_with(Limits::default(), Doctype::SkipExternal, document.as_bytes());
    let plist =
        " plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\"";
    for inner in [plist, " html", " a SYSTEM 'b>.dtd' "] {
        let (sink, report) = run(&format!("<?xml version='1.0'?>\n<!DOCTYPE{inner}><a>x</a>"));
        assert_eq!(report.error, None, "{inner}");
        assert!(sink.events.contains(&Event::XmlDoctype(inner.as_bytes().to_vec())), "{:?}", sink.events);
        assert!(report.ambiguities.contains(Ambiguity::DocumentType));
    }
    let kind = |document: &str| run(document).1.error.map(|error| error.kind);
    for inner in
        ["a []", "a SYSTEM 'b' [<!ENTITY x 'y'>]", "a [<!ENTITY % x SYSTEM 'y'> %x;]", "a SYSTEM '['"]
    {
        let document = format!("<!DOCTYPE {inner}><a>x</a>");
        assert_eq!(kind(&document), Some(BodyErrorKind::Xml(Error::DocumentType)), "{inner}");
    }
    // Entities that it may define stay unknown.
    assert_eq!(kind("<!DOCTYPE a SYSTEM 'b'><a>&x;</a>"), Some(BodyErrorKind::Xml(Error::Entity)));
}

#[test]
fn limits() {
    let limits =
        Limits { xml_depth_max: 2, xml_attributes_max: 2, xml_markup_bytes_max: 20, ..Limits::default() };
    let error = |document: &str| {
        parse_with(limits.clone(), Doctype::Refuse, document.as_bytes()).1.error.map(|error| error.kind)
    };
    assert_eq!(error("<a><b/></a>"), None);
    assert_eq!(error("<a><b><c/></b></a>"), Some(BodyErrorKind::Xml(Error::Depth(2))));
    assert_eq!(error("<a a='' b=''/>"), None);
    assert_eq!(error("<a a='' b='' c=''/>"), Some(BodyErrorKind::Xml(Error::Attributes(2))));
    assert_eq!(error("<a b='0123456789abc'>"), Some(BodyErrorKind::Xml(Error::MarkupLength(20))));
    assert_eq!(error("<!--0123456789abcdefghij"), Some(BodyErrorKind::Xml(Error::MarkupLength(20))));
    assert_eq!(error(&format!("<a>{}</a>", "x".repeat(100))), None);
}

/// A second opinion: quick-xml with the checks it has, over the same text.
fn quick_xml_text(document: &str) -> Option<String> {
    use quick_xml::events::Event as E;
    let mut reader = quick_xml::Reader::from_str(document);
    let (mut text, mut depth) = (String::new(), 0);
    loop {
        match reader.read_event().ok()? {
            E::Start(_) => depth += 1,
            E::End(_) => depth -= 1,
            E::Text(t) if depth > 0 => text.push_str(&t),
            E::CData(t) => text.push_str(&t),
            E::GeneralRef(r) => text.push_str(match &*r {
                "lt" => "<",
                "amp" => "&",
                _ => return None,
            }),
            E::Eof => return Some(text),
            _ => {}
        }
    }
}

proptest! {
    #[test]
    fn any_chunking(
        pieces in proptest::collection::vec(
            prop_oneof![
                Just("<a>"), Just("</a>"), Just("<a>"), Just("</a>"), Just("<b x='1' y=\"&lt;\"/>"), Just("text"), Just("&amp;"),
                Just("&#x41;"), Just("<![CDATA["), Just("]]>"), Just("]"), Just("<!--"), Just("-->"), Just("<?p q?>"),
                Just("é日"), Just("\r\n"), Just("\r"), Just(" "), Just("<"), Just("&"), Just("\u{ffff}"), Just("\u{1}"),
                Just("<?xml version='1.0'?>"), Just("<?xml version='1.0' encoding='iso-8859-1'?>"), Just("<!DOCTYPE a>"),
            ],
            0..14,
        ),
        cuts in proptest::collection::vec(1usize..6, 0..8),
        doctype in prop_oneof![Just(Doctype::Refuse), Just(Doctype::SkipExternal), Just(Doctype::Skip)],
        wide in any::<bool>(),
    ) {
        let text = pieces.concat();
        let body = match wide {
            true => text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
            false => text.clone().into_bytes(),
        };
        let new = || Xml::with_doctype(Limits::default(), doctype);
        assert_chunking_is_irrelevant(&body, &cuts, new, Xml::feed, Xml::finish);
        let (sink, report) = parse_with(Limits::default(), doctype, text.as_bytes());
        if report.error.is_none() && !text.contains('\r') && !text.contains("&#") && !text.contains("iso-8859-1") {
            prop_assert_eq!(Some(String::from_utf8_lossy(&sink.text()).into_owned()), quick_xml_text(&text), "{}", text);
        }
    }
}
