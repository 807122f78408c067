use crate::detectors::testing;
use crate::{Class, Place};

fn look(place: Place, name: &str, text: &str) -> (String, bool) {
    testing::look(Class::Ssrf, place, name, text.as_bytes())
}

#[track_caller]
fn check(text: &str, wanted: &str) {
    let (have, blocks) = look(Place::Query, "q", text);
    for kind in wanted.split_whitespace() {
        assert!(have.split_whitespace().any(|k| k == kind), "{text}\n  wanted {kind}\n  have   {have}");
    }
    assert!(blocks, "{text} is not blocked: {have}");
}

#[track_caller]
fn passes(place: Place, name: &str, text: &str) {
    let (have, blocks) = look(place, name, text);
    assert!(!blocks, "{text}: {have}");
}

#[test]
fn addresses() {
    check("http://169.254.169.254/latest/meta-data/", "metadata metadata-path");
    check("http://127.0.0.1:6379/", "loopback port");
    check("http://0x7f000001/", "loopback disguised");
    check("http://2130706433/", "loopback disguised");
    check("http://[::ffff:169.254.169.254]/", "mapped");
    check("http://[::1]:22/", "loopback port");
    check("http://①⑥⑨.②⑤④.①⑥⑨.②⑤④/", "metadata disguised");
    check("http:127.0.0.1:22/", "loopback port");
    check("169.254.169.254/latest/meta-data/", "metadata-address metadata-path");
}

#[test]
fn names() {
    check("http://metadata.google.internal/computeMetadata/v1/", "metadata metadata-path");
    check("http://10.0.0.1.nip.io/", "embedded");
    check("http://a-169-254-169-254.example.net/", "embedded");
    check("http://localhost:11211/", "loopback port");
}

#[test]
fn tricks() {
    check("http://a.example@127.0.0.1/", "loopback user-host");
    check("http://a.example\\@169.254.169.254/", "metadata confused");
    check("http://127.0.0.1#@a.example/", "confused loopback");
    check("gopher://127.0.0.1:25/_EHLO", "scheme loopback");
    check("dict://10.1.2.3:6379/info", "scheme private");
}

#[test]
fn ordinary() {
    passes(Place::Query, "redirect_uri", "http://localhost:3000/callback");
    passes(Place::Query, "url", "https://www.example.com/a?b=c&d=https://cdn.example.org/x.png");
    for text in [
        "how do I open http://localhost:8080 on my router at http://192.168.1.1 ?",
        "http://localhost:8080 doesn't work",
        "http://localhost:8080/health returns 404",
    ] {
        passes(Place::Form, "comment", text);
    }
    passes(Place::Query, "urlref", "http://localhost:3000/");
    passes(Place::Json, "homepage", "http://localhost:3000");
    // {"iss":"http://localhost:8080/realms/a"}
    let token = "Bearer eyJhbGciOiJIUzI1NiJ9.eyJpc3MiOiJodHRwOi8vbG9jYWxob3N0OjgwODAvcmVhbG1zL2EifQ.eA";
    passes(Place::Header, "Authorization", token);
    passes(Place::Header, "Referer", "http://192.168.0.10/intranet/");
    passes(Place::Header, "X-Forwarded-For", "10.0.0.1, 172.16.3.4");
    passes(
        Place::Header,
        "User-Agent",
        "Mozilla/5.0 (compatible; Bot/2.1; +http://www.example.com/bot.html)",
    );
    passes(Place::Json, "json.ip", "127.0.0.1");
    passes(Place::Query, "v", "1.2.3.4");
    passes(Place::Form, "email", "ann@example.com");
    passes(Place::Query, "u", "https://user:secret@git.example.com/repo.git");
    passes(Place::Query, "share", "https://medium.example/@ann/post?x=1#top");
}

/// What people look for is no request of theirs; a scheme, a path or a port of a service makes it one.
#[test]
fn searches() {
    passes(Place::Query, "q", "localhost:3000");
    passes(Place::Query, "search", "192.168.1.1:8080");
    for text in ["http://localhost:3000", "127.0.0.1:6379", "localhost:3000/admin"] {
        let (have, blocks) = look(Place::Query, "q", text);
        assert!(blocks, "{text}: {have}");
    }
    let (have, blocks) = look(Place::Query, "host_url", "localhost:3000");
    assert!(blocks, "{have}");
}

/// `<Issuer>http://localhost:8080/idp</Issuer>`, with and without line ends in the Base64.
#[test]
fn assertions() {
    let text = "PHNhbWw6SXNzdWVyIHhtbG5zOnNhbWw9InVybiI+aHR0cDovL2xvY2FsaG9zdDo4MDgwL2lkcDwvc2FtbDpJc3N1ZXI+";
    passes(Place::Form, "SAMLResponse", text);
    passes(Place::Form, "SAMLResponse", &format!("{}\r\n{}", &text[..40], &text[40..]));
    let (have, blocks) = look(Place::Form, "Response", text);
    assert!(blocks, "{have}");
}

#[test]
fn settings_of_an_installation() {
    for url in
        ["http://localhost:3000/api/hooks", "http://192.168.1.20:8123/api/webhook/a", "http://grafana:3000"]
    {
        passes(Place::Json, "settings.webhook_url", url);
        passes(Place::Form, "baseUrl", url);
    }
    passes(Place::Json, "cors.origins", "http://localhost:3000");
    passes(Place::Json, "view.url", "http://127.0.0.1:5173/#/home");
    passes(Place::Json, "request.url", "http://localhost:3000/app?x=1");
    passes(Place::Form, "ldap_uri", "ldap://ldap.corp.example.com:389");
    // The name does not excuse what no installation has there.
    for url in [
        "http://169.254.169.254/latest/meta-data/",
        "http://0x7f.1/",
        "gopher://127.0.0.1:25/_EHLO",
        "http://127.0.0.1:6379/",
    ] {
        let (have, blocks) = look(Place::Json, "webhook_url", url);
        assert!(blocks, "{url}: {have}");
    }
    check("http://192.168.1.20:8123/api/webhook/a", "private port");
}

/// An internal address stays one in every notation.
#[test]
fn notation_does_not_hide() {
    for address in [[127u32, 0, 0, 1], [169, 254, 169, 254], [127, 9, 8, 7]] {
        let [a, b, c, d] = address;
        let number = a << 24 | b << 16 | c << 8 | d;
        let spellings = [
            format!("{a}.{b}.{c}.{d}"),
            format!("{number}"),
            format!("{number:#x}"),
            format!("0{number:o}"),
            format!("{a:#x}.{b:#x}.{c:#x}.{d:#x}"),
            format!("0{a:o}.0{b:o}.{c}.{d}"),
            format!("{a}.{}", b << 16 | c << 8 | d),
            format!("[::ffff:{a}.{b}.{c}.{d}]"),
            format!("{a}.{b}.{c}.{d}.nip.io"),
        ];
        for host in spellings {
            for url in [format!("http://{host}:22/x"), format!("HTTP://a.example@{host}:22/x")] {
                let (have, blocks) = look(Place::Query, "url", &url);
                assert!(blocks, "{url}: {have}");
            }
        }
    }
}

#[test]
fn pages_as_browsers_write_them() {
    let is_blocked = |text: &str| look(Place::Query, "u", text).1;
    for text in [
        "http://foo@127.0.0.1:80@a.example/",
        "http://[0:0:0:0:0:0:0:1]/",
        "http:\\\\127.0.0.1\\",
        "ldap://localhost:389/x",
    ] {
        assert!(is_blocked(text), "{text}");
    }
    for text in ["http://127.0.0.1:3000/x", "http://[::1]/", "http://localhost/a?b=c"] {
        assert!(!is_blocked(text), "{text}");
    }
}

/// The host counts whatever the scheme is.
#[test]
fn other_schemes() {
    for (text, kinds) in [
        ("redis://127.0.0.1:6379/", "loopback"),
        ("tcp://127.0.0.1:2375", "loopback service-port"),
        ("rtsp://169.254.169.254/", "metadata"),
        ("git+http://169.254.169.254/", "metadata"),
        ("hls+http://127.0.0.1:22/", "loopback"),
        ("hls+http://127.0.0.1/", "loopback"),
        ("tcp://10.0.0.5:2375", "private service-port"),
        ("redis://localhost:6379/", "loopback"),
        ("tcp://[::1]:2375", "loopback"),
        ("rtsp://2130706433:554/", "loopback"),
        ("http://unix:/var/run/docker.sock:/containers/json", "scheme"),
    ] {
        check(text, kinds);
    }
    for text in [
        "redis://cache",
        "redis://cache:6379/0",
        "postgres://db.example.com/x",
        "postgres://app:secret@db.example.com:5432/x",
        "capacitor://localhost",
        "chrome-extension://abcdefghijklmnop/page.html",
        "content://0@media/external/images/1",
        "app://123/x",
        "git+https://github.com/a/b.git",
        "android-app://com.example.app/",
        "ssh://git@localhost:3035/a/b.git",
    ] {
        passes(Place::Query, "q", text);
        passes(Place::Json, "name", text);
    }
    for (name, text) in [
        ("redis_url", "redis://127.0.0.1:6379/0"),
        ("database.url", "postgres://app@10.0.0.5:5432/app"),
        ("mongo_uri", "mongodb://127.0.0.1:27017/app"),
        ("broker", "amqp://192.168.1.4:5672"),
    ] {
        passes(Place::Json, name, text);
    }
    passes(Place::Query, "q", "connect on the default port (`mongodb://localhost:27017`)");
    passes(Place::Json, "value", "DB_HOST=127.0.0.1\nREDIS_URL=redis://localhost:6379/0\nX=1");
    passes(Place::Header, "Origin", "exp://192.168.1.5:8081");
}

/// The strings of a binary message: samples and traces name where they come from in each of them.
#[test]
fn origins_in_binary_messages() {
    for text in ["10.0.0.5:9090", "localhost:9100", "127.0.0.1:6379", "192.168.1.20:443", "10.0.0.5"] {
        passes(Place::Text, "", text);
    }
    for text in
        ["http://10.0.0.5:9090/", "127.0.0.1:6379/", "//127.0.0.1/", "169.254.169.254/latest/meta-data/"]
    {
        assert!(look(Place::Text, "", text).1, "{text}");
    }
    assert!(look(Place::Query, "q", "127.0.0.1:6379").1);
}

/// What answers at an address is the same in every notation and for every field; that a field may name a
/// service of the installation opens private networks, not what hands out keys.
#[test]
fn services_of_clouds() {
    for host in [
        "168.63.129.16",
        "169.254.170.2",
        "169.254.170.23",
        "169.254.169.123",
        "100.100.100.200",
        "[fd00:ec2::254]",
        "[fd00:ec2::23]",
        "[fd20:ce::254]",
        "0xa83f8110",
        "168.63.33040",
        "[::ffff:168.63.129.16]",
        "metadata",
    ] {
        for name in ["url", "webhook_url", "server_url", "avatar", "next", "proxy"] {
            let (have, blocks) = look(Place::Form, name, &format!("http://{host}/machine"));
            assert!(blocks, "{name}={host}: {have}");
        }
    }
    for (name, text) in [("host", "168.63.129.16"), ("server", "metadata.google.internal")] {
        assert!(look(Place::Form, name, text).1, "{name}={text}");
    }
    for host in ["169.254.169.254", "metadata.google.internal"] {
        assert!(look(Place::Header, "X-Forwarded-Host", host).1, "{host}");
    }
    for host in ["shop.example", "10.0.0.5", "metadata", "localhost", "169.253.169.254"] {
        passes(Place::Header, "X-Forwarded-Host", host);
    }
    // A cookie of a visitor's address and the time.
    passes(Place::Cookie, "k", "10.35.61.122.1394059811");
    for (name, text) in
        [("host", "10.0.0.5"), ("host", "metadata"), ("q", "168.63.129.17"), ("ip", "192.0.2.1")]
    {
        passes(Place::Form, name, text);
    }
    for url in ["http://168.63.129.17/", "http://169.253.169.254/", "http://99.254.169.254/"] {
        passes(Place::Form, "url", url);
    }
}

/// A local address that is written so that lists do not know it is disguised, whatever the field is for.
#[test]
fn oddly_written_local_hosts() {
    for url in [
        "http://LOCALHOST/",
        "http://localhost./admin",
        "http:///127.0.0.1/",
        "http://\u{FF11}\u{FF12}\u{FF17}.0.0.1/",
        "http://lOcAlHoSt:3000/api",
    ] {
        for name in ["url", "webhook_url", "next"] {
            let (have, blocks) = look(Place::Form, name, url);
            assert!(blocks, "{name}={url}: {have}");
        }
    }
    for url in ["http://localhost:3000", "http://Localhost:3000", "http://127.0.0.1:5000/api"] {
        passes(Place::Form, "webhook_url", url);
    }
    check("http://shop.example.com@evil.example", "user-host");
    check("ssh://-oProxyCommand=id/x", "confused");
}

/// Numbers with a slash behind them are what people write of documents, prices and versions. Where a field
/// may be for an address, or the number cannot be another thing, they are the short notation of one.
#[test]
fn numbers_that_are_no_addresses() {
    for text in [
        "10.1000/xyz",
        "10.1038/nphys1170",
        "10.1093/acref/9780198606871.001.0001",
        "10.48550/arXiv.2101.00001",
        "10.50/hour",
        "10.00/month",
        "250.50/night",
        "0.5/kg",
        "10.15.7/Safari",
        "10.2/10.3",
    ] {
        for (place, name) in
            [(Place::Json, "items.DOI"), (Place::Query, "q"), (Place::Form, "rate"), (Place::Query, "id")]
        {
            passes(place, name, text);
        }
        for name in
            ["url", "image", "target_host", "feedUrl", "import.source", "url.value", "next", "webhook"]
        {
            for place in [Place::Query, Place::Json] {
                let (have, _) = look(place, name, text);
                assert!(!have.contains("!numbers"), "{name}={text}: {have}");
            }
        }
    }
    for name in ["image", "target", "feed"] {
        for text in ["10.1/admin", "10.65793/x", "10.0.1/secret", "10.1000/xyz"] {
            let (have, blocks) = look(Place::Query, name, text);
            assert!(blocks, "{name}={text}: {have}");
        }
    }
    for text in [
        "127.1/admin",
        "127.0.1/admin",
        "10.1:8080/x",
        "10.0.0.5/admin",
        "http://10.1000/xyz",
        "http:10.1000/xyz",
        "//10.1/x",
        "169.254.43518/latest/meta-data",
        "10.1000@127.0.0.1/x",
    ] {
        let (have, _) = look(Place::Json, "DOI", text);
        assert!(!have.contains("!numbers"), "{text}: {have}");
    }
}

/// What a renderer of a text loads by itself is asked for, whatever the field is for.
#[test]
fn addresses_that_a_text_loads() {
    for text in [
        "![logo](http://169.254.169.254/latest/meta-data/)",
        "> ![a](http://169.254.169.254/latest/meta-data/)",
        "> <img src=\"http://169.254.169.254/latest/meta-data/\">",
        &format!("<img {}src=\"http://169.254.169.254/latest/meta-data/\">", "a ".repeat(600)),
        "see <iframe src=\"http://169.254.169.254/latest/user-data\" width=800></iframe>",
        "![x](http://2852039166/latest/meta-data/iam/)",
        "<svg><image href=\"http://169.254.169.254/latest/meta-data/\"/></svg>",
        "<p style=\"background:url(http://169.254.169.254/latest/)\">x</p>",
        "[![a](http://[::ffff:169.254.169.254]/)](https://example.com)",
        "<img src=\"http://127.0.0.1:8500/v1/kv/?recurse\">",
        "<object data='http://metadata.google.internal/computeMetadata/v1/'></object>",
    ] {
        for name in ["comment", "body", "description"] {
            let (have, blocks) = look(Place::Json, name, text);
            assert!(blocks, "{name}={text}: {have}");
        }
    }
    for text in [
        "![screen](http://localhost:3000/logo.png) is what I see",
        "<img src=\"http://10.0.0.5/logo.png\">",
        "The page http://169.254.169.254/latest/meta-data/ answers with keys.",
        "Read [the docs](http://169.254.169.254/latest/) first.",
        "<a href=\"http://169.254.169.254/latest/meta-data/\">the address</a>",
        "`![logo](http://169.254.169.254/latest/meta-data/)` asks for keys",
        "```html\n<img src=\"http://169.254.169.254/latest/meta-data/\">\n```\n",
        "<iframe src=\"https://player.example/v/1\" width=\"560\"></iframe>",
        "![chart](http://192.168.1.5:8080/chart.png)",
        "curl http://127.0.0.1:9200/_search",
        "<a href=\"http://localhost:8500/ui\">consul</a>",
    ] {
        passes(Place::Json, "comment", text);
    }
}
