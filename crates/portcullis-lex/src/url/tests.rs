use super::*;

fn host(text: &str) -> String {
    let host = Host::read(text.as_bytes());
    let address = host.address.map(|address| match address {
        Address::V4 { address, is_odd } => format!("{}{address}", if is_odd { "odd " } else { "" }),
        Address::V6(address) => match Address::V6(address).to_v4() {
            Some(inner) => format!("{address} for {inner}"),
            None => address.to_string(),
        },
    });
    let port = host.port.map(|port| format!(" port {port}")).unwrap_or_default();
    format!("{}{port}", address.unwrap_or_else(|| String::from_utf8_lossy(host.name()).into_owned()))
}

#[test]
fn addresses() {
    for (text, want) in [
        ("127.0.0.1:80", "127.0.0.1 port 80"),
        ("0x7f000001", "odd 127.0.0.1"),
        ("2130706433", "odd 127.0.0.1"),
        ("017700000001", "odd 127.0.0.1"),
        ("0177.0.0.1", "odd 127.0.0.1"),
        ("0x7f.0.0.0x1", "odd 127.0.0.1"),
        ("127.1", "odd 127.0.0.1"),
        ("0", "odd 0.0.0.0"),
        ("425.510.425.510", "odd 169.254.169.254"),
        ("169.16689662", "odd 169.254.169.254"),
        ("①②⑦.⓪.⓪.①", "127.0.0.1"),
        ("127。0。0。1", "127.0.0.1"),
        ("%31%32%37.0.0.1", "127.0.0.1"),
        ("[::1]:6379", "::1 port 6379"),
        ("[::ffff:127.0.0.1]", "::ffff:127.0.0.1 for 127.0.0.1"),
        ("[::ffff:7f00:1]", "::ffff:127.0.0.1 for 127.0.0.1"),
        ("[0:0:0:0:0:0:127.0.0.1]", "::7f00:1 for 127.0.0.1"),
        ("ⓛⓞcalhost", "localhost"),
        ("LOCALHOST.", "localhost"),
        ("a.example:8080", "a.example port 8080"),
        ("1.2.3.4.5", "1.2.3.4.5"),
        ("1.2.3.example", "1.2.3.example"),
    ] {
        assert_eq!(host(text), want, "{text}");
    }
}

#[test]
fn taken_apart() {
    let read = |text: &str| {
        let colon = memchr::memchr(b':', text.as_bytes()).unwrap();
        let url = Url::read(text.as_bytes(), 0, colon, |b| b == b'"').unwrap();
        let hosts: Vec<_> = url.hosts(text.as_bytes()).map(String::from_utf8_lossy).collect();
        format!(
            "{} {}{}",
            hosts.join("|"),
            String::from_utf8_lossy(url.path.of(text.as_bytes())),
            if url.is_confused { " confused" } else { "" }
        )
    };
    assert_eq!(read("http://a.example/x?y"), "a.example /x?y");
    assert_eq!(read("http:\\\\a.example/x"), "a.example /x");
    assert_eq!(read("http://u:p@a.example:80/"), "a.example:80|u:p /");
    assert_eq!(read("http://a.example\\@b.example/"), "b.example||a.example / confused");
    assert_eq!(read("http://a.example#@b.example/"), "b.example||a.example / confused");
    assert_eq!(read("http://a.example/?q=me@b.example"), "a.example /?q=me@b.example");
    assert_eq!(read("http://1.1.1.1 &@2.2.2.2# @3.3.3.3/"), "3.3.3.3|||2.2.2.2 / confused");
}

#[test]
fn any_bytes() {
    let text = b"http://\xE2\x91@[::%\\1].0x.0.256.99999999999999999999:99999/@#?";
    for start in 5..text.len() {
        for end in start..text.len() {
            let _ = Host::read(&text[start..end]);
            let _ = Url::read(&text[..end], 0, 4, |_| false).map(|url| url.hosts(text).count());
        }
    }
}
