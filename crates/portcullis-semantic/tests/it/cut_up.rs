//! A payload that is cut into parts which readers join: texts of XML between child elements, parameters and
//! fields of one name, elements of an array.

use std::sync::LazyLock;

use portcullis_semantic::{Analysis, Detectors, Level};

static DETECTORS: LazyLock<Detectors> = LazyLock::new(Detectors::new);

/// The class that `analysis` blocks for, or nothing.
fn blocked(analysis: &Analysis) -> &'static str {
    let worst = analysis.worst(&DETECTORS, Level::Balanced).filter(|worst| worst.blocks(Level::Balanced));
    worst.map_or("", |worst| worst.class.name())
}

/// The class that such a body is blocked for.
fn body(content_type: &str, body: &str) -> &'static str {
    let mut analysis = Analysis::new();
    analysis.request_body(&DETECTORS, content_type.as_bytes(), body.as_bytes());
    blocked(&analysis)
}

fn query(pairs: &str) -> &'static str {
    let mut analysis = Analysis::new();
    analysis.request_head(&DETECTORS, b"GET", format!("/?{pairs}").as_bytes(), std::iter::empty());
    blocked(&analysis)
}

fn multipart(name: &str, values: &[&str]) -> String {
    let field =
        |value: &&str| format!("--b\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n");
    values.iter().map(field).collect::<String>() + "--b--\r\n"
}

/// Payloads with `|` where they may be cut.
const PAYLOADS: &[(&str, &str)] = &[
    ("sqli", "1' UNION| SELECT| password| FROM| users-- -"),
    ("sqli", "1' UNI|ON SEL|ECT password FR|OM users-- -"),
    ("command", "127.0.0.1;c|at /e|tc/pas|swd"),
    ("log4j", "${jn|di:ldap://a.example/x}"),
    ("path", "../|../|../../et|c/passwd"),
    ("template", "{{7*7|}}{{config.__cla|ss__.__init__.__glob|als__}}"),
];

#[test]
fn child_elements_cut_texts() {
    let deep = "<d>".repeat(40) + &"</d>".repeat(40);
    let cuts = ["<b/>", "<b></b>", "<b x='1'/>", "<b/><!-- --><c/>", "<b> </b>", "<b>\n<c/>\n</b>", &deep];
    for (class, payload) in PAYLOADS {
        for cut in cuts {
            // Between words a space is as good as none.
            if cut.contains([' ', '\n']) && cut.starts_with("<b>") && !payload.contains("| ") {
                continue;
            }
            let text = payload.replace('|', cut);
            for (head, tail) in [("<r><id>", "</id></r>"), ("<r>\n  <a>x</a>\n  <id>", "</id>\n</r>")] {
                let document = format!("{head}{text}{tail}");
                assert_eq!(body("text/xml", &document), *class, "{document}");
            }
        }
        // Every second part is a child's.
        let mut text = String::new();
        for (number, part) in payload.split('|').enumerate() {
            text += &if number % 2 == 0 { part.to_owned() } else { format!("<b>{part}</b>") };
        }
        let document = format!("<r><id>{text}</id></r>");
        assert_eq!(body("text/xml", &document), *class, "{document}");
        // Readers that leave out what children have, and long ones.
        for long in ["zz".to_owned(), "zz ".repeat(1 << 12)] {
            let text = payload.replacen('|', &format!("<b>{long}</b>"), 1).replace('|', "");
            let document = format!("<r><id>{text}</id></r>");
            assert_eq!(body("text/xml", &document), *class, "{payload} {}", long.len());
        }
        // A long text before it, and one after it.
        for bytes in [5_000, 8_150, 8_192, 20_000, 100_000] {
            let long = "some words ".repeat(bytes / 11);
            let text = payload.replace('|', "<b/>");
            for text in [format!("<n>{long}</n>{text}"), format!("{text}<n>{long}</n>")] {
                let document = format!("<r><id>{text}</id></r>");
                assert_eq!(body("text/xml", &document), *class, "{payload} {bytes}");
            }
        }
        let open = format!("<r><id>{}", payload.replace('|', "<b/>"));
        assert_eq!(body("text/plain", &open), *class, "{open}");
    }
}

#[test]
fn honest_documents() {
    let documents = [
        "<para>Use <emphasis>select</emphasis> to choose from the <code>users</code> table, and \
         <command>cat</command> to show the file <filename>notes.txt</filename>; or drop it.</para>",
        "<section><title>It's a test</title>\n<para>The <emphasis role=\"bold\">union</emphasis> of both \
         sets isn't empty, and <xref linkend=\"x\"/> -- as we've seen -- <quote>or</quote> 1 = 1 holds; \
         see <link href=\"a\">id</link>.</para>\n</section>",
        "<svg xmlns=\"http://www.w3.org/2000/svg\"><text x=\"1\" y=\"2\">Total: <tspan \
         font-weight=\"bold\">$5</tspan>; <tspan>50%</tspan> of {all}</text></svg>",
        "<soap:Envelope xmlns:soap=\"http://schemas.xmlsoap.org/soap/envelope/\"><soap:Header/><soap:Body>\
         <Login><user>O'Brien</user><pass>x;y--</pass><or>1</or></Login></soap:Body></soap:Envelope>",
        "<rss><channel><item><title>News</title><description>What <b>you</b> select of <i>this</i> list, \
         it's <b>50%</b> off -- <a href=\"https://a.example/x?y=1\">order by Friday</a>!</description></item>\
         </channel></rss>",
        "<html xmlns=\"http://www.w3.org/1999/xhtml\"><body><p>Run <code>make</code>, and see \
         <code>build</code> | <b>or</b> not. \
         Redirecting to... <a>../../../core/index.html</a>.</p>\n<ul><li>One: <a href=\"/1\">1</a></li>\
         <li>I'd like <em>2</em> &amp; 3</li></ul></body></html>",
        "<w:p><w:r><w:t>Don't </w:t></w:r><w:r><w:t>update</w:t></w:r><w:r><w:t> the set</w:t></w:r></w:p>",
        "<m:math xmlns:m=\"x\"><m:mi>x</m:mi>=<m:mn>1</m:mn> or <m:mi>y</m:mi>=<m:mn>1</m:mn></m:math>",
    ];
    for document in documents {
        assert_eq!(body("text/xml", document), "", "{document}");
        let long = format!("<book>Our <b>book</b>: {}</book>", document.repeat(200));
        let mut analysis = Analysis::new();
        analysis.request_body(&DETECTORS, b"application/xml", long.as_bytes());
        assert_eq!(blocked(&analysis), "", "{document} again and again");
        let (done, allowed) = analysis.work();
        assert!(done * 3 < allowed * 2, "{document}: {done} of {allowed}");
    }
}

/// Memory is bounded, and so is the work, or it is told.
#[test]
fn deep_and_mixed() {
    for depth in [8, 100, 250] {
        for text in ["x", "it's ", "{{7*", &"select a from ".repeat(700)] {
            let nest = format!("<a>{text}").repeat(depth) + text + &format!("</a>{text}").repeat(depth - 1);
            let mut analysis = Analysis::new();
            let document = format!("{nest}</a>");
            analysis.request_body(&DETECTORS, b"text/xml", document.as_bytes());
            let (done, allowed) = analysis.work();
            assert!(done <= allowed + 12 * (64 << 10), "{depth} {text}: {done} of {allowed}");
            assert_eq!(analysis.bytes_cut() > 0, done > allowed, "{depth} {text}");
        }
    }
}

/// Parts with a comment around each comma.
const PARTS: &[&[&str]] = &[
    &["1/*", "*/UNION/*", "*/SELECT/*", "*/password/*", "*/FROM/*", "*/users"],
    &["x'/*", "*/or/*", "*/1=1/*", "*/-- -"],
];

#[test]
fn parameters_and_arrays() {
    for parts in PARTS {
        for index in ["", "[]", "[0]", "[n]", "[0][n]", "[n][]"] {
            let name = |n: usize| format!("id{}", index.replace('n', &n.to_string()));
            let pairs: Vec<String> =
                parts.iter().enumerate().map(|(n, part)| format!("{}={part}", name(n))).collect();
            let pairs = pairs.join("&");
            assert_eq!(query(&pairs), "sqli", "{pairs}");
            let escaped = pairs.replace('[', "%5B").replace(']', "%5d").replace(' ', "+");
            assert_eq!(query(&escaped), "sqli", "{escaped}");
            assert_eq!(body("application/x-www-form-urlencoded", &escaped), "sqli", "{escaped}");
            let fields = multipart(&name(0), parts);
            assert_eq!(body("multipart/form-data; boundary=b", &fields), "sqli", "{fields}");
        }
        let strings: Vec<String> = parts.iter().map(|part| format!("\"{part}\"")).collect();
        let strings = strings.join(",");
        for json in [
            format!("{{\"id\":[{strings}]}}"),
            format!("[{strings}]"),
            format!("{{\"a\":{{\"id\":[{}]}}}}", strings.replace(',', ",3,\"x\",")),
            format!("{{\"id\":[{}]}}", strings.replace('*', "\\u002a")),
            format!("{{\"{}\":[{strings}]}}", "n".repeat(300)),
            format!("{{\"a\":1}}\n{{\"id\":[{strings}]}}\n"),
        ] {
            assert_eq!(body("application/json", &json), "sqli", "{json}");
        }
    }
    let many = (0..3_000).map(|n| format!("\"k{n}\":\"*/\",")).collect::<String>();
    let json = format!("{{{many}\"id\":[\"1/*\",\"*/UNION/*\",\"*/SELECT/*\",\"*/a FROM b\"]}}");
    assert_eq!(body("application/json", &json), "sqli");
}

#[test]
fn honest_arrays() {
    let values: &[&[&str]] = &[
        &["src/**/*.ts", "test/*", "*/node_modules/*", "!**/*.d.ts"],
        &["image/*", "video/*", "*/*"],
        &["*/5 * * * *", "0 */2 * * 1-5", "0 0 * * *"],
        &["/* a comment */", "select { color: red }", "/* from here */", "a { top: 0 }"],
        &["/**", " * Sets the name.", " */", "function set(name) {", "/* it's one */", "}"],
        &["1", "2", "3"],
        &["O'Brien", "5*3", "a -- b"],
    ];
    for values in values {
        for name in ["a", "a[]", "a[0]"] {
            assert_eq!(body("multipart/form-data; boundary=b", &multipart(name, values)), "", "{values:?}");
        }
        let strings: Vec<String> = values.iter().map(|value| format!("\"{value}\"")).collect();
        let json = format!("{{\"include\":[{}]}}", strings.join(",\n"));
        assert_eq!(body("application/json", &json), "", "{json}");
        let pairs: Vec<String> =
            values.iter().map(|value| format!("a[]={}", value.replace(' ', "+"))).collect();
        assert_eq!(query(&pairs.join("&")), "", "{values:?}");
    }
}
