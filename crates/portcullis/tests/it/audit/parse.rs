//! Strict readers of what the audit log writes: a record that is not exactly in form is a panic.

use std::collections::BTreeMap;

/// A native record: parts by letter, without the line ends that belong to the boundaries.
#[derive(Debug)]
pub struct Native {
    pub parts: Vec<(char, String)>,
}

impl Native {
    pub fn letters(&self) -> String {
        self.parts.iter().map(|(letter, _)| letter).collect()
    }

    pub fn part(&self, letter: char) -> &str {
        let part = self.parts.iter().find(|(present, _)| *present == letter);
        &part.unwrap_or_else(|| panic!("no part {letter} in {}", self.letters())).1
    }

    /// The values of a name in part H.
    pub fn trailer(&self, name: &str) -> Vec<&str> {
        let prefix = format!("{name}: ");
        self.part('H').lines().filter_map(|line| line.strip_prefix(&prefix)).collect()
    }
}

/// All records of a serial file.
pub fn natives(text: &str) -> Vec<Native> {
    let mut records = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (record, after) = native(rest);
        records.push(record);
        rest = after.strip_prefix('\n').expect("an empty line after a record");
    }
    records
}

/// One record and what follows it.
pub fn native(text: &str) -> (Native, &str) {
    let boundary = &text[2..10];
    assert!(
        boundary.bytes().all(|b| b.is_ascii_hexdigit() && !b.is_ascii_uppercase()),
        "boundary {boundary}"
    );
    let mut parts = Vec::new();
    let mut rest = text;
    loop {
        let head = rest.strip_prefix(&format!("--{boundary}-")).expect("a boundary");
        let letter = head.chars().next().expect("a letter");
        let body = head[1..].strip_prefix("--\n").expect("the end of a boundary");
        if letter == 'Z' {
            parts.push((letter, String::new()));
            return (Native { parts }, body);
        }
        let next = format!("\n--{boundary}-");
        let end = body.find(&next).expect("a next boundary");
        parts.push((letter, body[..end].to_owned()));
        rest = &body[end + 1..];
    }
}

/// A line of the index of concurrent records, field by field as mlogc reads it.
#[derive(Debug)]
pub struct IndexLine {
    pub host: String,
    pub client: String,
    pub request_line: String,
    pub status: String,
    pub id: String,
    pub file: String,
    pub size: usize,
    pub md5: String,
}

pub fn index_line(line: &str) -> IndexLine {
    let (before, rest) = line.split_once(" [").expect("a time");
    let mut who = before.split(' ');
    let (host, client) = (who.next().unwrap(), who.next().unwrap());
    assert_eq!(who.collect::<Vec<_>>(), ["-", "-"]);
    let (time, rest) = rest.split_once("] \"").expect("the end of the time");
    let (stamp, zone) = time.split_once(' ').expect("a zone");
    assert_eq!((stamp.len(), stamp.split(':').count(), zone), (27, 4, "+0000"), "{time}");
    let quote = rest.find("\" ").expect("the end of the request line");
    let (request_line, rest) = (&rest[..quote], &rest[quote + 2..]);
    let fields: Vec<&str> = rest.split(' ').collect();
    let [status, bytes, referer, agent, id, session, file, "0", size, hash, ""] = fields[..] else {
        panic!("fields {fields:?}")
    };
    assert!(bytes.parse::<u64>().is_ok() && session.starts_with('"'));
    assert_eq!((referer, agent), ("\"-\"", "\"-\""));
    IndexLine {
        host: host.into(),
        client: client.into(),
        request_line: request_line.into(),
        status: status.into(),
        id: id.into(),
        file: file.into(),
        size: size.parse().unwrap(),
        md5: hash.strip_prefix("md5:").unwrap().into(),
    }
}

/// Header lines as a map.
pub fn headers(text: &str) -> BTreeMap<&str, &str> {
    text.lines()
        .skip(1)
        .map(|line| line.split_once(": ").unwrap_or_else(|| panic!("line {line:?}")))
        .collect()
}
