//! Heads in parts, and answers.

use portcullis_binding::{Answer, Head, Settings, Waf};

const ATTACK: &[u8] = b"a=1' UNION SELECT password FROM users-- -";

fn head(version: &str, fields: &[(&str, &str)], may_have_body: bool) -> Head {
    let bytes = |text: &str| text.as_bytes().to_vec();
    let mut all = vec![(bytes("host"), bytes("a")), (bytes("content-type"), bytes("text/plain"))];
    all.extend(fields.iter().map(|(name, value)| (bytes(name), bytes(value))));
    Head {
        method: bytes("POST"),
        target: bytes("/"),
        version: version.to_owned(),
        fields: all,
        client: "192.0.2.7".to_owned(),
        port: 5,
        tls: true,
        may_have_body,
    }
}

/// The status of the answer to a body, if the body is wanted; zero if it passes.
fn shown(waf: &Waf, head: &Head) -> Option<u16> {
    let mut exchange = head.begin(waf);
    if !exchange.wants_request_body() {
        return None;
    }
    exchange.request_body(ATTACK);
    exchange.request_end();
    Some(Answer::of(&exchange).map_or(0, |answer| answer.status))
}

/// A body is inspected however it is framed, and one that nothing announces, too.
#[test]
fn bodies_are_inspected_however_they_are_framed() {
    let (waf, events) = Settings::default().open().unwrap();
    let length = ATTACK.len().to_string();
    assert_eq!(shown(&waf, &head("1.1", &[("Content-Length", &length)], false)), Some(403));
    assert_eq!(shown(&waf, &head("1.1", &[("Transfer-Encoding", "chunked")], false)), Some(403));
    assert_eq!(shown(&waf, &head("2", &[("content-length", &length)], true)), Some(403));
    assert_eq!(shown(&waf, &head("2", &[], true)), Some(403));
    assert_eq!(shown(&waf, &head("3", &[], true)), Some(403));
    assert_eq!(shown(&waf, &head("1.1", &[], false)), Some(403));
    let lines = events.take();
    assert_eq!(lines.len(), 6);
    assert!(lines[0].contains("192.0.2.7"), "{}", lines[0]);
}

/// An address that cannot be read does not stop the inspection.
#[test]
fn clients_may_be_unknown() {
    let (waf, events) = Settings::default().open().unwrap();
    for client in ["", "unix:", "not an address", "::1%lo"] {
        let length = ATTACK.len().to_string();
        let head = Head { client: client.to_owned(), ..head("1.1", &[("Content-Length", &length)], false) };
        assert_eq!(shown(&waf, &head), Some(403), "{client}");
        assert!(events.take()[0].contains("\"0.0.0.0\""));
    }
}

#[test]
fn heads_that_are_none_are_refused() {
    let (waf, _) = Settings::default().open().unwrap();
    let status = |head: Head| Answer::of(&head.begin(&waf)).map(|answer| answer.status);
    let odd = |change: fn(&mut Head)| {
        let mut head = head("1.1", &[("Content-Length", "0")], false);
        change(&mut head);
        head
    };
    assert_eq!(status(odd(|_| {})), None);
    assert_eq!(status(odd(|head| head.method = b"GE T".to_vec())), Some(400));
    assert_eq!(status(odd(|head| head.target = b"/a b".to_vec())), Some(400));
    assert_eq!(status(odd(|head| head.fields.push((b"a\r\nb".to_vec(), b"c".to_vec())))), Some(400));
    assert_eq!(status(odd(|head| head.fields.push((b"a".to_vec(), b"c\r\nd: e".to_vec())))), Some(400));
}
