use super::*;

/// `root up/climb names flags`
fn read(text: &str) -> String {
    let text = text.as_bytes();
    let path = Path::read(text, 0, |b| b == b'\n');
    let mut buffer = [0; 128];
    let len = path.target(text, &mut buffer);
    let root = match path.root {
        Root::None => "",
        Root::Slash => "/",
        Root::Share => "\\\\",
        Root::Drive => ":",
    };
    let mut out = format!("{root}{} -{}", String::from_utf8_lossy(&buffer[..len]), path.climb);
    for (flag, is_set) in [
        ("encoded", path.ups_encoded > 0),
        ("odd", path.ups_odd > 0),
        ("broken", path.ups_broken > 0),
        ("mixed", path.is_mixed),
        ("doubled", path.is_doubled),
        ("cut", path.is_cut),
    ] {
        if is_set {
            out.push(' ');
            out.push_str(flag);
        }
    }
    out
}

#[track_caller]
fn check(text: &str, want: &str) {
    assert_eq!(read(text), want, "{text}");
}

#[test]
fn plain() {
    check("a/b.txt", "a/b.txt -0");
    check("../img/x.png", "img/x.png -1");
    check("/a/../../b", "/b -1");
    check("/var/www/../../etc/./passwd", "/etc/passwd -0");
    check("C:\\Windows\\Win.ini", ":windows/win.ini -0");
    check("\\\\host\\share\\x", "\\\\host/share/x -0");
    check("...", " -0");
    check("a..b/c", "a..b/c -0");
}

#[test]
fn encoded() {
    for up in ["%2e%2e%2f", "%2e%2e/", "..%2f", ".%2e%5c"] {
        check(&format!("{up}{up}x"), "x -2 encoded");
    }
    for up in [
        "%252e%252e%252f",
        "%25252e%25252e/",
        "%%32%65%%32%65%%32%66",
        "%%32%%65%%32%%65%%32%%66",
        "..%255c",
        "%c0%ae%c0%ae%c0%af",
        "%c0ae%c0ae/",
        "%e0%80%ae%e0%80%ae/",
        "%f8%80%80%80%ae%f8%80%80%80%ae/",
        "%25c0%25ae%25c0%25ae/",
        "%c0%2e%c0%2e%c0%2f",
        "%uff0e%uff0e%u2215",
        "0x2e0x2e0x5c",
        "..%c0%9v",
        "..%bg%qf",
        "..2f",
        "..%c1%9c",
    ] {
        let read = read(&format!("{up}{up}x"));
        assert!(read.starts_with("x -2 encoded odd"), "{up}: {read}");
    }
}

#[test]
fn broken() {
    check("..;/..;/x", "x -2 broken");
    check("..;jsessionid=1/x", "x -1 broken");
    check(".\0./x", "x -1 broken");
    check("\"..\"\\x", "x -1 broken");
    check("..\\/..\\/x", "x -2 mixed doubled");
    check("x.php\0.png", "x.php -0 cut");
    check("/e'tc'/pa\"ss\"wd", "/etc/passwd -0");
}

#[test]
fn ends_anywhere() {
    let text = b"%%32%%65%c0%ae%uff0e0x2e\\x2e%25%f8%80%80%80%ae%E2%88%95\xE2\x88\x95\xC0\xAE..;/a%00";
    for start in 0..text.len() {
        for end in start..text.len() {
            let path = Path::read(&text[..end], start, |_| false);
            assert_eq!(path.span, Span::new(start, end));
        }
    }
}
