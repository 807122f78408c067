//! The messages that are measured. Names stay, so that figures of different days can be compared.

use crate::random::Random;

/// A kind of exchange.
pub struct Case {
    /// As tables of figures have it.
    pub name: &'static str,
    /// Blocked with 403; all others must pass without a logged match.
    pub blocked: bool,
    /// How many different messages to go round.
    pub variants: usize,
    /// The next message.
    pub(crate) make: fn(&mut Random) -> Message,
}

/// The bytes of an exchange.
#[derive(Default)]
pub struct Message {
    /// Request head as it comes over the wire.
    pub head: Vec<u8>,
    /// Empty if there is none.
    pub body: Vec<u8>,
    /// Body of an HTML response; phases 3 and 4 run only if there is one.
    pub response: Option<Vec<u8>>,
}

impl Message {
    /// Of a response with this body.
    pub fn response_head(body: &[u8]) -> String {
        format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\n\r\n",
            body.len()
        )
    }
}

/// All of them.
pub const CASES: &[Case] = &[
    pass("get", 256, |random| {
        get(&format!("/products?category=books&sort=price&page={}", random.below(100)))
    }),
    pass("get_5_args", 256, |random| {
        let args: Vec<String> = ["a", "b", "c", "d", "e"].map(|k| format!("{k}={}", random.word(12))).into();
        get(&format!("/search?{}", args.join("&")))
    }),
    pass("get_browser", 256, browser),
    pass("get_cold", 1024, get_cold),
    pass("get_answered", 256, |random| Message {
        response: Some(b"<p>Nothing to see.</p>\n".to_vec()),
        ..get(&format!("/products?category=books&sort=price&page={}", random.below(100)))
    }),
    pass("json_1k", 128, |random| post("application/json", json(random, 1_000))),
    pass("json_cart", 128, json_cart),
    pass("json_10k", 32, |random| post("application/json", json(random, 10_000))),
    pass("json_1m", 2, json_1m),
    pass("json_text_10k", 32, |random| json_text(random, 10_000)),
    pass("json_text_1m", 2, |random| json_text(random, 1_000_000)),
    pass("json_400_deep", 32, |random| {
        let text = format!("{}\"{}\"{}", "{\"a\":".repeat(400), random.word(8), "}".repeat(400));
        post("application/json", text)
    }),
    pass("form_950", 4, |random| {
        let fields: Vec<String> = (0..950).map(|n| format!("field{n}={}", random.word(100))).collect();
        post("application/x-www-form-urlencoded", fields.join("&"))
    }),
    pass("form_95", 16, |random| {
        let fields: Vec<String> = (0..95).map(|n| format!("field{n}={}", random.word(100))).collect();
        post("application/x-www-form-urlencoded", fields.join("&"))
    }),
    pass("multipart_3x10k", 8, multipart),
    pass("near_miss_text", 64, near_miss),
    pass("html_50k", 4, |random| Message { response: Some(html(random, 50_000)), ..get("/page") }),
    block("sqli_get", |random| {
        get(&format!("/search?q={}%27%20OR%20%271%27%3D%271%27%20--%20", random.below(1000)))
    }),
    block("xss_get", |random| {
        get(&format!("/search?q=%3Cscript%3Ealert%28{}%29%3C%2Fscript%3E", random.below(1000)))
    }),
    block("rce_get", |random| get(&format!("/ping?host={}%3Bcat%20%2Fetc%2Fpasswd", random.word(6)))),
    block("lfi_get", |random| {
        get(&format!("/view?file=..%2F..%2F..%2F..%2Fetc%2Fpasswd%00{}", random.word(4)))
    }),
];

/// Texts that people write where the detector runs: forms, posts with code in them, code itself, files.
pub const TEXTS: &[Case] = &[
    pass("form_1k", 64, |random| form(&[("name", random.prose(20)), ("text", random.prose(900))])),
    pass("markdown_1k", 64, |random| form(&[("title", random.prose(20)), ("body", markdown(random, 900))])),
    pass("code_1k", 64, |random| post("application/json", json_string("source", &code(random, 1_000)))),
    pass("markdown_10k", 16, |random| {
        post("application/json", json_string("body", &markdown(random, 10_000)))
    }),
    pass("markdown_1m", 2, |random| {
        post("application/json", json_string("body", &markdown(random, 1_000_000)))
    }),
    pass("code_10k", 16, |random| post("application/json", json_string("source", &code(random, 10_000)))),
    pass("code_1m", 2, |random| post("application/json", json_string("source", &code(random, 1_000_000)))),
];

const fn pass(name: &'static str, variants: usize, make: fn(&mut Random) -> Message) -> Case {
    Case { name, blocked: false, variants, make }
}

const fn block(name: &'static str, make: fn(&mut Random) -> Message) -> Case {
    Case { name, blocked: true, variants: 256, make }
}

const FEW_HEADERS: &str = "Host: shop.example.com\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64) bench\r\n\
     Accept: text/html,application/json;q=0.9,*/*;q=0.8\r\n";

pub fn get(target: &str) -> Message {
    Message { head: format!("GET {target} HTTP/1.1\r\n{FEW_HEADERS}\r\n").into_bytes(), ..Message::default() }
}

pub fn post(content_type: &str, body: impl Into<Vec<u8>>) -> Message {
    let body = body.into();
    let length = body.len();
    let head = format!(
        "POST /api HTTP/1.1\r\n{FEW_HEADERS}Content-Type: {content_type}\r\nContent-Length: {length}\r\n\r\n"
    );
    Message { head: head.into_bytes(), body, response: None }
}

/// As `get`, from clients of which no two say the same of themselves: nothing is known of their headers.
fn get_cold(random: &mut Random) -> Message {
    let (page, host, system) = (random.below(100), random.word(6), random.word(8));
    let head = format!(
        "GET /products?category=books&sort=price&page={page} HTTP/1.1\r\nHost: {host}.example.com\r\n\
         User-Agent: Mozilla/5.0 (X11; {system} x86_64) bench\r\n\
         Accept: text/html,application/{};q=0.9,*/*;q=0.8\r\n\r\n",
        random.word(4)
    );
    Message { head: head.into_bytes(), ..Message::default() }
}

/// What a browser sends: fifteen headers, four cookies.
fn browser(random: &mut Random) -> Message {
    let head = format!(
        "GET /articles/{}?ref=home&lang=en HTTP/1.1\r\nHost: shop.example.com\r\nConnection: keep-alive\r\n\
         sec-ch-ua: \"Chromium\";v=\"126\", \"Not.A/Brand\";v=\"24\"\r\nsec-ch-ua-mobile: ?0\r\n\
         sec-ch-ua-platform: \"Linux\"\r\nUpgrade-Insecure-Requests: 1\r\n\
         User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36\r\n\
         Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8\r\n\
         Sec-Fetch-Site: same-origin\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\n\
         Referer: https://shop.example.com/articles/{}\r\nAccept-Encoding: gzip, deflate, br\r\n\
         Accept-Language: en-GB,en;q=0.9,de;q=0.7\r\n\
         Cookie: session={}; theme=dark; consent=yes; visit={}\r\n\r\n",
        random.below(10_000),
        random.below(10_000),
        random.word(32),
        random.below(1_000_000_000)
    );
    Message { head: head.into_bytes(), ..Message::default() }
}

/// An order with as many items as fit.
fn json(random: &mut Random, length: usize) -> String {
    let mut text = format!(
        "{{\"id\":{},\"user\":{{\"name\":\"user {}\",\"email\":\"{}@example.com\",\"tags\":[\"{}\",\"{}\"]}},\"items\":[",
        random.below(1_000_000),
        random.word(6),
        random.word(8),
        random.word(5),
        random.word(5)
    );
    let mut comma = "";
    while text.len() < length - 20 {
        let (sku, quantity, price) = (random.word(10), random.below(9) + 1, random.below(9_999));
        text.push_str(&format!("{comma}{{\"sku\":\"{sku}\",\"qty\":{quantity},\"price\":{price}}}"));
        comma = ",";
    }
    text + "]}"
}

/// A cart of 63 short values in about 950 bytes: what an exchange costs for each value, whatever is in it.
fn json_cart(random: &mut Random) -> Message {
    let item = |random: &mut Random| {
        let (sku, color) = (random.word(7), random.word(5));
        let (quantity, price) = (random.below(9) + 1, random.below(9_000) + 1_000);
        format!(
            "{{\"sku\":\"{sku}\",\"qty\":{quantity},\"price\":{price},\"color\":\"{color}\",\"gift\":false}}"
        )
    };
    let items: Vec<String> = (0..12).map(|_| item(random)).collect();
    let (id, total) = (random.word(8), random.below(90_000) + 10_000);
    let text = format!(
        "{{\"cart\":\"{id}\",\"currency\":\"EUR\",\"total\":{total},\"items\":[{}]}}",
        items.join(",")
    );
    post("application/json", text)
}

/// As many fields as the limit on arguments allows.
fn json_1m(random: &mut Random) -> Message {
    let texts: Vec<String> = (0..900).map(|_| format!("\"{}\"", random.prose(1_100))).collect();
    post("application/json", format!("[{}]", texts.join(",")))
}

/// One long text.
fn json_text(random: &mut Random, length: usize) -> Message {
    post("application/json", format!("{{\"text\":\"{}\"}}", random.prose(length)))
}

fn multipart(random: &mut Random) -> Message {
    let mut body = String::new();
    for n in 0..3 {
        body.push_str(&format!(
            "--frontier7461\r\nContent-Disposition: form-data; name=\"part{n}\"; filename=\"notes{n}.txt\"\r\n\
             Content-Type: text/plain\r\n\r\n{}\r\n",
            random.prose(10_000)
        ));
    }
    body.push_str("--frontier7461--\r\n");
    post("multipart/form-data; boundary=frontier7461", body)
}

/// Prose with the words that rules look for, used as people use them.
fn near_miss(random: &mut Random) -> Message {
    let pieces = [
        "please select the union representative at the office where you work",
        "they drop the table off at noon and update your address",
        "the script for the play is on order, scene by scene",
        "the shell company will echo the sentiment of our cat",
        "insert the key and delete the old one",
        "she had a cast of load bearing actors, if you exec the plan",
        "the python and the perl of great price, and the java class begins at ten",
    ];
    let mut text = String::new();
    while text.len() < 900 {
        text.push_str(random.pick(&pieces));
        text.push_str(" and then ");
        text.push_str(&random.prose(30));
        text.push_str(". ");
    }
    post("application/x-www-form-urlencoded", format!("comment={}&page=3", text.replace(' ', "+")))
}

fn html(random: &mut Random, length: usize) -> Vec<u8> {
    let mut page = String::from("<!doctype html><html><head><title>Articles</title></head><body>\n");
    while page.len() < length {
        let (class, link) = (random.word(6), random.below(100_000));
        page.push_str(&format!(
            "<div class=\"{class}\"><a href=\"/articles/{link}\">{}</a><p>{}</p></div>\n",
            random.prose(30),
            random.prose(200)
        ));
    }
    (page + "</body></html>\n").into_bytes()
}

pub(crate) fn form(fields: &[(&str, String)]) -> Message {
    let encode = |text: &str| -> String {
        let byte = |b: u8| match b {
            b' ' => "+".to_owned(),
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'*' => char::from(b).to_string(),
            _ => format!("%{b:02X}"),
        };
        text.bytes().map(byte).collect()
    };
    let fields: Vec<String> = fields.iter().map(|(name, text)| format!("{name}={}", encode(text))).collect();
    post("application/x-www-form-urlencoded", fields.join("&"))
}

pub(crate) fn json_string(name: &str, text: &str) -> String {
    let each = |c: char| match c {
        '"' | '\\' => format!("\\{c}"),
        '\n' => "\\n".to_owned(),
        '\0'..' ' => format!("\\u{:04x}", u32::from(c)),
        c => c.to_string(),
    };
    let text: String = text.chars().map(each).collect();
    format!("{{\"{name}\":\"{text}\"}}")
}

/// A post of a developers' forum: paragraphs, a list, a link, a block of code.
fn markdown(random: &mut Random, length: usize) -> String {
    let mut text = String::from("# How we store sessions\n\n");
    while text.len() < length {
        let (word, link) = (random.word(8), random.below(1_000));
        text.push_str(&format!(
            "{}, see [{word}](https://docs.example.com/guide/{link}#{word}).\n\n- **{word}**: it's `{word}.get(\"id\")`\n\
             - {} (about {link} ms)\n\n```\n{}```\n\n",
            random.prose(180),
            random.prose(40),
            code(random, 160)
        ));
    }
    text
}

/// Functions as programs have them.
fn code(random: &mut Random, length: usize) -> String {
    let mut text = String::new();
    while text.len() < length {
        let (name, field, number) = (random.word(8), random.word(6), random.below(1_000));
        text.push_str(&format!(
            "function {name}(items, {field}) {{\n  const total = items.filter(x => x.{field} > {number}).length;\n  \
             if (!{field} || total === 0) {{ return null; }}\n  return {{ {field}: total / 2, label: \"{name}\" }};\n}}\n\n"
        ));
    }
    text
}
