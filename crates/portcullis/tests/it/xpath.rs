//! XPath targets in the real program: what they select, and what is refused when rules are loaded.

use std::process::Command;

use crate::served::{self, Served, application, document, free_address, program, says};

const ORDER: &str = "<?xml version='1.0'?>\n\
    <s:Envelope xmlns:s='http://schemas.xmlsoap.org/soap/envelope/' xmlns='urn:shop'><s:Body>\
    <order id='7'><item kind='book'>Faust</item><item kind='film'>Metro<![CDATA[polis]]></item><note/></order>\
    </s:Body></s:Envelope>";

#[test]
fn selects_values() {
    let app = application(|_| says("app"));
    let name = "xmlns:s=http://schemas.xmlsoap.org/soap/envelope/,xmlns:o=urn:shop";
    let paths = [
        ("/s:Envelope/s:Body/o:order/o:item", "Faust,Metropolis"),
        ("//o:item[2]", "Metropolis"),
        ("//o:item[@kind='book']", "Faust"),
        ("//o:order[o:item='Faust']/@id", "7"),
        ("//o:order/o:*[last()]", ""),
        ("//item", "none"),
        ("//@kind", "book,film"),
        ("//o:item/text()", "Faust,Metropolis"),
        ("//*[local-name()='item']", "Faust,Metropolis"),
        ("//o:item/@*[local-name()='kind']", "book,film"),
        ("//*[text()='Faust']/@kind", "book"),
    ];
    // Each rule writes the values of its path into TX, one behind the other; the last one sends them back.
    let mut rules = String::from(
        "SecAction \"id:1,phase:1,pass,nolog,ctl:requestBodyProcessor=XML\"\n\
         SecRule \"XML:'/s:Envelope|//o:nothing'\" \"@rx .\" \"id:2,phase:2,pass,nolog,xmlns:s=http://schemas.xmlsoap.org/soap/envelope/,xmlns:o=urn:shop\"\n",
    );
    for (at, (path, _)) in paths.iter().enumerate() {
        rules += &format!(
            "SecAction \"id:{0},phase:2,pass,nolog,setvar:tx.v=none,setvar:tx.c=0\"\n\
             SecRule \"XML:{path}\" \"@unconditionalMatch\" \"id:{1},phase:2,pass,nolog,{name},setvar:'tx.l_%{{tx.c}}=%{{MATCHED_VAR}}',setvar:tx.c=+1\"\n\
             SecRule REQUEST_URI \"@endsWith /{at}\" \"id:{2},phase:2,redirect:'http://h/%{{tx.c}}/%{{tx.l_0}},%{{tx.l_1}}',nolog\"\n\
             SecAction \"id:{3},phase:2,pass,nolog,setvar:!tx.l_0,setvar:!tx.l_1\"\n",
            10 + at * 4,
            11 + at * 4,
            12 + at * 4,
            13 + at * 4,
        );
    }
    let served = Served::start(&app, &rules, "");
    for (at, (path, values)) in paths.iter().enumerate() {
        let location = served.post(&format!("/{at}"), "text/xml", ORDER).header("location").unwrap();
        let count = if *values == "none" { 0 } else { values.split(',').count() };
        let values = match count {
            0 => ",".to_owned(),
            1 => format!("{values},"),
            _ => values.to_string(),
        };
        assert_eq!(location, format!("http://h/{count}/{values}"), "{path}");
    }
}

/// A document with more nodes than are searched is an error of the body, so it is denied and not passed
/// unsearched.
#[test]
fn too_many_nodes() {
    let app = application(|_| says("app"));
    let rules = "SecRule XML://b \"@contains attack\" \"id:1,phase:2,deny,status:409\"\n";
    let served = Served::start(&app, rules, "");
    let nodes = |count: usize, end: &str| format!("<a>{}<b>{end}</b></a>", "<b/>".repeat(count));
    assert_eq!(served.post("/", "text/xml", nodes(90_000, "")).status(), 200);
    assert_eq!(served.post("/", "text/xml", nodes(90_000, "attack")).status(), 409);
    assert_eq!(served.post("/", "text/xml", nodes(110_000, "attack")).status(), 400);
    assert!(served.events(2).join("").contains("more nodes than are searched"));
}

/// ModSecurity loads any text for a path; one that cannot be read finds nothing, which is said.
#[test]
fn paths_that_cannot_be_read_are_warnings() {
    for (path, words) in [
        ("//x:a", "no xmlns:x=URI"),
        ("a/b", "begins with /"),
        ("/child::a", "axes are not supported"),
        ("//a[count(b)]", "this function is not supported"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let rules = format!("SecRule \"XML:{path}\" \"@rx x\" \"id:1,phase:2,deny\"");
        let config = document(
            folder.path(),
            free_address(),
            free_address(),
            free_address(),
            &served::rules(&rules),
            "",
        );
        for (arguments, code) in [(&["check", "--config"][..], 0), (&["check", "--strict", "--config"], 1)] {
            let output = Command::new(program()).args(arguments).arg(&config).output().unwrap();
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            assert_eq!(output.status.code(), Some(code), "{path}: {text}");
            assert!(
                text.contains(words)
                    && text.contains("finds nothing")
                    && text.contains("supported are paths")
                    && text.contains("^"),
                "{path}: {text}"
            );
        }
    }
}
