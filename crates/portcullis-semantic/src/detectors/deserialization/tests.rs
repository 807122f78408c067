use crate::detectors::testing::look;
use crate::{Class, Place};

fn run(place: Place, name: &str, bytes: &[u8]) -> (String, bool) {
    look(Class::Deserialization, place, name, bytes)
}

#[track_caller]
fn attack(bytes: &[u8], want: &str) {
    let (have, blocks) = run(Place::Cookie, "session", bytes);
    assert!(have.split(' ').any(|kind| kind == want), "{}: {have}", bytes.escape_ascii());
    assert!(blocks, "{}: {have}", bytes.escape_ascii());
}

#[test]
fn streams() {
    attack(b"rO0ABXNyABFqYXZhLnV0aWwuSGFzaE1hcA==", "java-stream");
    attack(b"\xAC\xED\x00\x05sr\x00\x11java.util.HashMap", "java-stream");
    attack(b"aced00057372001", "java-stream");
    attack(b"AAEAAAD/////AQAAAAAAAAAMAgAAAF5NaWNy", "dotnet-stream");
    attack(b"/wEykQYAAQAAAP////8BAAAAAAAAAAwCAAAA", "dotnet-stream");
    attack(b"BAhvOhVHZW06OlJlcXVpcmVtZW50", "marshal-gadget");
    attack(b"cos\nsystem\n(S'id'\ntR.", "pickle");
    attack(b"Y29zCnN5c3RlbQooUydpZCcKdFIu", "pickle");
    attack(b"\x80\x04\x95\x1d\0\0\0\0\0\0\0\x8c\x05posix\x94\x8c\x06system\x94\x93\x94\x8c\x02id\x94\x85\x94R\x94.", "pickle");
}

/// Whatever module a pickle calls something of, in whatever protocol and packing.
#[test]
fn pickles_of_all_protocols() {
    attack(b"(lp0\ncany\nmodule\np1\n(tRp2\na.", "pickle");
    attack(b"(cos\nsystem\nS'touch x'\no.", "pickle");
    attack(b"crunpy\nrun_path\n(V/tmp/x.py\ntR.", "pickle");
    attack(b"cany.module\nat_all\np0\n((lp1\nVx\np2\natp3\nRp4\n.", "pickle");
    attack(b"cposix\nsystem\nq\0(X\x02\0\0\0idq\x01tq\x02Rq\x03.", "pickle");
    attack(b"\x80\x04\x8c\x05posix\x8c\x06system\x93\x8c\x02id\x85R.", "pickle");
    for text in [
        "gASMBXBvc2l4jAZzeXN0ZW2TjAJpZIVSLg==",
        // Protocol 1; gzip and zlib around protocol 4.
        "Y3Bvc2l4CnN5c3RlbQpxAChYAgAAAGlkcQF0cQJScQMu",
        "H4sIAAAAAAACA2tg6WEtyC/OrOhhK64sLknNndzDlJnSGqQHAEvXjJUZAAAA",
        "eJxrYOlhLcgvzqzoYSuuLC5JzZ3cw5SZ0hqkBwB54Alz",
    ] {
        attack(text.as_bytes(), "pickle");
    }
    for bytes in [
        &b"\x80\x04\x95\x0b\0\0\0\0\0\0\0}\x94\x8c\x01a\x94K\x01s."[..],
        b"gASVCwAAAAAAAAB9lIwBYZRLAXMu",
        b"cdatetime\ndate\n(S'x'\ntR.",
        // A date in protocol 3: no text, and no command on a line of its own.
        b"gAN9cQAoWAEAAABkcQFjZGF0ZXRpbWUKZGF0ZQpxAkMEB+gBAXEDhXEEUnEFWAEAAAB4cQZLAXUu",
        b"Common\nsense\n(really)\n",
    ] {
        let (have, blocks) = run(Place::Cookie, "session", bytes);
        assert!(!blocks, "{}: {have}", bytes.escape_ascii());
    }
}

/// A handle of `%TAG` stands for what it declares.
#[test]
fn handles_of_tags() {
    for text in [
        "%TAG !p! tag:yaml.org,2002:python/\n---\na: !p!name:os.environ",
        "%TAG !! tag:yaml.org,2002:python/object/apply:os.\n---\n!!system [x]",
        "%TAG !x! tag:yaml.org,2002:pyth\n---\n!x!on/object/apply:os.system [x]",
        "%TAG ! tag:yaml.org,2002:python/\r\n---\r\n!object/apply:os.system [x]",
        "%TAG !j! tag:yaml.org,2002:javax.script.\n---\n!j!ScriptEngineManager []",
    ] {
        attack(text.as_bytes(), "yaml-object");
    }
    for text in
        ["%TAG !e! tag:example.com,2024:\n---\na: !e!point {x: 1}", "%TAG ! !my-\n---\n!light fluorescent"]
    {
        let (have, blocks) = run(Place::Form, "text", text.as_bytes());
        assert!(!blocks, "{text}: {have}");
    }
}

#[test]
fn php() {
    attack(b"O:8:\"Example1\":1:{s:4:\"file\";s:11:\"/etc/passwd\";}", "php-object");
    attack(b"a:1:{i:0;O:+8:\"stdClass\":0:{}}", "php-object");
    attack(b"user|O:4:\"User\":0:{}", "php-object");
    attack(b"C:11:\"ArrayObject\":37:{x:i:0;a:0:{};m:a:0:{}}", "php-object");
}

#[test]
fn named_types() {
    attack(b"!!python/object/apply:os.system [\"id\"]", "yaml-object");
    attack(b"--- !ruby/object:Gem::Installer\ni: x\n", "yaml-object");
    attack(b"!!javax.script.ScriptEngineManager [!!java.net.URLClassLoader [[]]]", "yaml-object");
    attack(b"{\"a\":\"_$$ND_FUNC$$_function(){}()\"}", "node-function");
    attack(b"{\"@type\":\"com.sun.rowset.JdbcRowSetImpl\",\"autoCommit\":true}", "gadget-type");
    attack(b"{\"\\u0040type\":\"org.apache.xbean.propertyeditor.JndiConverter\"}", "gadget-type");
    attack(b"'$type':'System.Windows.Data.ObjectDataProvider, PresentationFramework'", "gadget-type");
    attack(
        b"[\"org.springframework.context.support.ClassPathXmlApplicationContext\",\"http://a.example/\"]",
        "gadget-type",
    );
    attack(b"<java version=\"1.8\" class=\"java.beans.XMLDecoder\"><object/></java>", "xml-gadget");
    attack(b"<java.util.PriorityQueue serialization=\"custom\"/>", "xml-gadget");
    let (have, blocks) = run(Place::Json, "json.@type", b"com.sun.rowset.JdbcRowSetImpl");
    assert!(have == "gadget-type" && blocks, "{have}");
}

#[test]
fn benign() {
    for text in [
        "{\"@context\":\"https://schema.org\",\"@type\":\"Product\",\"name\":\"x\"}",
        "{\"@type\":\"com.example.shop.Order\",\"id\":1}",
        "a:2:{i:0;s:1:\"a\";i:1;s:1:\"b\";}",
        "<div class=\"com.example\">x</div>",
        "<input type=\"text\" class=\"form-control\">",
        "BAh7B0kiD3Nlc3Npb25faWQGOgZFVA==",
        "/wEPDwUKLTEzNDk2NzU5MWRk",
        "Hello!! python is great",
        "wow!!! really",
        "key: !!str 12",
        "O: 3:\"x\"",
        "cosine\nsystem\nof",
        "{\"logger\":\"org.hibernate.SQL.Query\",\"class\":\"java.io.FileNotFoundException\"}",
        "[\"org.hibernate.SQL.Query\",\"org.h2.jdbc.Main\"]",
        "com.sun.faces.config is where it is set",
        "org.apache.commons",
        "gAN",
        "AAEAAAD is not one",
    ] {
        let (have, blocks) = run(Place::Form, "text", text.as_bytes());
        assert!(!blocks, "{text}: {have}");
    }
}

/// Changing what does not matter to the reader keeps the detection.
#[test]
fn mutations_keep_a_detection() {
    for name in ["A", "Monolog\\Handler\\SyslogUdpHandler", "x_1"] {
        for sign in ["", "+"] {
            for before in ["", "a:1:{i:0;", "user|", " "] {
                let text = format!("{before}O:{sign}{}:\"{name}\":2:{{s:1:\"a\";N;}}", name.len());
                let (have, blocks) = run(Place::Query, "q", text.as_bytes());
                assert!(blocks, "{text}: {have}");
            }
        }
    }
}

#[test]
fn other_containers() {
    attack(b"{\"py/object\":\"os.system\"}", "gadget-type");
    attack(b"{\"__type\":\"System.Windows.Data.ObjectDataProvider, PresentationFramework\"}", "gadget-type");
    attack(
        b"<wddxPacket><data><struct type='xcom.sun.rowset.JdbcRowSetImplx'></struct></data></wddxPacket>",
        "xml-gadget",
    );
    attack(b"<linked-hash-set><sun.reflect.A serialization=\"custom\"/></linked-hash-set>", "xml-gadget");
    attack(
        b"<root type=\"System.Data.Services.Internal.ExpandedWrapper`2[[a]], System.Data\"/>",
        "xml-gadget",
    );
    attack(b"{\"as \":{\"class\":\"A\",\"__construct()\":[1]}}", "constructor-key");
    attack(b"\\GuzzleHttp\\Psr7\\FnStream", "gadget-type");
    attack(b"{\"__jsonclass__\":[\"os.system\",\"id\"]}", "gadget-type");
    attack(b"<tree-map><comparator class=\"groovy.util.Expando\"/></tree-map>", "xml-gadget");
    attack(b"{\"^o\":\"Gem::SpecFetcher\"}", "gadget-type");
    attack(
        b"{\"type\":\"org.apache.xbean.propertyeditor.JndiConverter\",\"asText\":\"ldap://a.example/a\"}",
        "gadget-type",
    );
    let (have, blocks) = run(Place::Form, "driver", b"javax.naming.InitialContext");
    assert!(blocks, "{have}");
    let (have, blocks) = run(Place::Form, "driver", b"com.mysql.jdbc.Driver");
    assert!(!blocks, "{have}");
    attack(b"<ResourceDictionary xmlns:s=\"clr-namespace:System;assembly=mscorlib\"/>", "xml-gadget");
    attack(b"<sorted-set><string>a</string><dynamic-proxy/></sorted-set>", "xml-proxy");
    let (have, blocks) = run(Place::Name, "", b"config.as xyz.__construct().config");
    assert!(blocks, "{have}");
}

/// What stands in a string of a serialised value is looked at by itself, in whatever it is encoded.
#[test]
fn strings_in_what_php_serialised() {
    use crate::detectors::testing::look;
    for (class, text) in [
        (Class::Command, "a:1:{s:1:\"x\";s:24:\"O2NhdCAvZXRjL3Bhc3N3ZA==\";}"),
        (Class::Command, "cart|a:1:{s:1:\"x\";s:4:\"O2lk\";}"),
        (Class::Sqli, "a:1:{s:4:\"name\";s:13:\"x' or 'a'='a'\";}"),
    ] {
        assert!(look(class, Place::Cookie, "cart", text.as_bytes()).1, "{text}");
    }
    assert!(
        !look(Class::Sqli, Place::Cookie, "cart", b"a:2:{s:4:\"name\";s:7:\"O'Brien\";s:1:\"n\";i:3;}").1
    );
}

/// A type of the table is found as a value in JSON whatever words are in it: the key is the evidence.
#[test]
fn every_row_of_the_table_passes_the_gate_as_a_value() {
    let rows = include_str!("../../../data/serial-types.tsv").lines().filter(|line| !line.starts_with('#'));
    let mut count = 0;
    for (name, language) in rows.filter_map(|row| row.split_once('\t')) {
        let whole = match name.strip_suffix('*') {
            Some(start) if language == "ruby" => format!("{start}::Xy"),
            Some(start) => format!("{start}Xy"),
            None if name.starts_with('.') => format!("A.B{name}"),
            None if language == "python" => format!("{name}.x"),
            None => name.to_owned(),
        };
        let key = match language {
            "python" => "json.a.py/type",
            "ruby" => "json.^o",
            "dotnet" => "json.$type",
            _ => "json.@type",
        };
        // Names without a dot or a colon are those of streams only.
        if !whole.contains(['.', ':']) {
            continue;
        }
        let (have, blocks) = run(Place::Json, key, whole.as_bytes());
        assert!(have.split(' ').any(|kind| kind == "gadget-type") && blocks, "{whole}: {have}");
        count += 1;
    }
    assert!(count > 150, "{count}");
}

#[test]
fn values_under_keys_that_name_a_type() {
    for (key, text, wanted) in [
        ("py/reduce.py/type", "os.system", true),
        ("py/reduce.py/type", "pty.spawn", true),
        ("a.^o", "Gem::Requirement", true),
        ("__jsonclass__", "subprocess.Popen", true),
        ("@type", "ch.qos.logback.core.db.JNDIConnectionSource", true),
        ("@type", "Product", false),
        ("@type", "io.example.app.OrderPlaced", false),
        ("$type", "order", false),
        ("$type", "Shop.Orders.Order, Shop", false),
        ("json_class", "User", false),
        ("type", "Gem::Requirement", false),
        ("__jsonclass__", "order of the day", false),
    ] {
        let (have, blocks) = run(Place::Json, key, text.as_bytes());
        assert_eq!(blocks, wanted, "{key}={text}: {have}");
    }
}
