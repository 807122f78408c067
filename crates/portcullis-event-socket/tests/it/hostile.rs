//! Peers that lie.

use std::fs::Permissions;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::time::SystemTime;

use portcullis_event::{Event, Timestamp};
use portcullis_event_socket::{CLIENTS_MAX, LINE_BYTES_MAX, OpenError};

use crate::common::{Place, event};

fn refused(place: &Place, reason: &str) -> u64 {
    place.count(&format!("portcullis_event_socket_refused_total{{reason=\"{reason}\"}}"))
}

/// Sends, and reads until the listener ends the connection.
fn until_the_end(place: &Place, bytes: &[u8]) -> String {
    let mut stream = UnixStream::connect(place.path()).unwrap();
    // It may be ended before all is sent.
    let _ = stream.write_all(bytes);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8(answer).unwrap()
}

#[test]
fn lies_end_their_own_connection_and_are_counted() {
    let place = Place::new();
    let _listener = place.open();
    let mut honest = UnixStream::connect(place.path()).unwrap();
    honest.write_all(event("first").json_line().as_bytes()).unwrap();
    place.wait("the first is there", |place| place.ids() == ["first"]);
    let own = Event::new("own", Timestamp::from(SystemTime::now())).json_line();
    let mut many = event("many");
    many.count = u64::MAX;
    let lies = [
        "GET / HTTP/1.1\r\n\r\n".to_owned(),
        "\n".to_owned(),
        "\u{0}\n".to_owned(),
        "[]\n".to_owned(),
        "[".repeat(200_000) + "\n",
        "{\"lost\":{\"queue_full\":-1}}\n".to_owned(),
        "{\"lost\":{},\"schema\":1}\n".to_owned(),
        own,
        many.json_line(),
        event("later").json_line().replace("\"schema\":1", "\"schema\":2"),
    ];
    for (number, lie) in lies.iter().enumerate() {
        assert_eq!(until_the_end(&place, lie.as_bytes()), "", "{lie:.60}");
        place.wait(lie, |place| refused(place, "invalid") == number as u64 + 1);
    }
    // Events before a lie count, and are confirmed.
    let good = event("good").json_line();
    assert_eq!(until_the_end(&place, format!("{good}{good}no\n{good}").as_bytes()), "2\n");
    // A line that is too long, ended or not, and one that is cut.
    let endless = "x".repeat(LINE_BYTES_MAX + 1);
    assert_eq!(until_the_end(&place, endless.as_bytes()), "");
    assert_eq!(until_the_end(&place, format!("{endless}\n").as_bytes()), "");
    place.wait("both are counted", |place| refused(place, "too_long") == 2);
    drop(UnixStream::connect(place.path()).unwrap().write_all(b"{\"schema\":"));
    place.wait("the cut is counted", |place| refused(place, "cut") == 1);
    // All the while another one is served.
    honest.write_all(event("last").json_line().as_bytes()).unwrap();
    place.wait("the last is there", |place| place.ids() == ["first", "good", "good", "last"]);
    let said = place.said.lock().unwrap();
    assert!(said.len() == 1 && said[0].contains("a connection was ended: not an event"), "{said:?}");
}

#[test]
fn names_and_times_that_a_peer_invents_are_bounded() {
    let place = Place::new();
    let _listener = place.open();
    let mut stream = UnixStream::connect(place.path()).unwrap();
    let now = Timestamp::from(SystemTime::now()).epoch_millis();
    let mut lines = Vec::new();
    for (number, at) in [0, now - 2 * 3_600_000, now + 120_000, u64::MAX].into_iter().enumerate() {
        let mut event = event(&format!("time {number}"));
        event.time = Timestamp::from_epoch_millis(at);
        event.write_json_line(&mut lines);
    }
    let mut endless = event("ends in a thousand years");
    endless.duration_us = 1_000 * 365 * 86_400 * 1_000_000;
    endless.write_json_line(&mut lines);
    for number in 0..1000 {
        let mut event = event("site");
        event.site = format!("site {number}").into();
        event.write_json_line(&mut lines);
    }
    stream.write_all(&lines).unwrap();
    stream.write_all(b"{\"lost\":{\"queue_full\":3,\"a reason of tomorrow\":4}}\n").unwrap();
    place.wait("all are counted", |place| {
        (refused(place, "time"), refused(place, "sites"), place.ids().len()) == (5, 936, 64)
            && place.count("portcullis_event_socket_lost_total{reason=\"queue_full\"}") == 3
            && place.count("portcullis_event_socket_lost_total{reason=\"other\"}") == 4
    });
}

#[test]
fn connections_are_bounded_and_peers_that_stall_hold_up_nobody() {
    let place = Place::new();
    let _listener = place.open();
    let mut stalled = Vec::new();
    for _ in 0..CLIENTS_MAX {
        let mut stream = UnixStream::connect(place.path()).unwrap();
        stream.write_all(b"{\"schema\":1,").unwrap();
        stalled.push(stream);
    }
    place.wait("all are there", |place| place.count("portcullis_event_socket_clients") == CLIENTS_MAX as u64);
    assert_eq!(until_the_end(&place, event("more").json_line().as_bytes()), "");
    place.wait("it is counted", |place| refused(place, "clients") == 1);
    stalled.truncate(CLIENTS_MAX / 2);
    place.wait("half are gone", |place| refused(place, "cut") == CLIENTS_MAX as u64 / 2);
    // One that never reads its numbers.
    let mut deaf = UnixStream::connect(place.path()).unwrap();
    let line = event("deaf").json_line();
    (0..20_000).for_each(|_| deaf.write_all(line.as_bytes()).unwrap());
    place.wait("all of them are taken", |place| place.ids().len() == 20_000);
}

#[test]
fn only_named_users_may_send() {
    let place = Place::new();
    let error = place.try_open(false, &["a-user-that-nobody-has"]).unwrap_err();
    assert!(matches!(&error, OpenError::NoUser(name) if name == "a-user-that-nobody-has"), "{error}");
    let mode = |place: &Place| std::fs::metadata(place.path()).unwrap().permissions().mode() & 0o777;
    let listener = place.open();
    assert_eq!(mode(&place), 0o600);
    drop(listener);
    let listener = place.try_open(false, &["nobody"]).unwrap();
    assert_eq!(mode(&place), 0o666);
    drop(listener);
    if std::fs::metadata("/proc/self").unwrap().uid() != 0 {
        eprintln!("left out: peers of another user, since this one may not become them");
        return;
    }
    // Whatever its mode says: the kernel's word counts.
    std::fs::set_permissions(place.folder.path(), Permissions::from_mode(0o755)).unwrap();
    let _listener = place.try_open(false, &["1"]).unwrap();
    let connect = "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); s.recv(1)";
    let mut command = Command::new("python3");
    let other = command.args(["-c", connect]).arg(place.path()).uid(65_534).status().unwrap();
    assert!(other.success(), "it is let in and sent away");
    place.wait("it is counted", |place| refused(place, "user") == 1);
    assert_eq!(place.ids(), [""; 0]);
    let said = place.said.lock().unwrap();
    assert!(said[0].contains("of user 65534 may not send") && said[0].contains("listen_users"), "{said:?}");
}
