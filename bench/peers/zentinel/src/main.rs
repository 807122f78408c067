//! What zentinel-modsec takes for the messages of engine-bench: zentinel RULES FOLDER CASE SECONDS, as
//! modsecurity3.c has it.

use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use zentinel_modsec::{ModSecurity, Transaction};

struct Message {
    first: Vec<String>,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [rules, folder, case, seconds] = arguments.as_slice() else {
        return Err("usage: zentinel RULES FOLDER CASE SECONDS".into());
    };
    let engine = ModSecurity::from_file(rules)?;
    let seconds = Duration::from_secs_f64(seconds.parse()?);
    let mut messages = Vec::new();
    loop {
        let path = |part: &str| Path::new(folder).join(format!("{case}.{}.{part}", messages.len()));
        let Some(request) = read(&path("request"))? else { break };
        let response = read(&path("response"))?;
        messages.push((request, response));
    }
    if messages.is_empty() {
        return Err(format!("no such case: {case}").into());
    }
    exchange(&engine, &messages[0])?;
    let (mut refusals, mut exchanges) = (0, 0);
    let (begin, started) = (cpu(), Instant::now());
    while exchanges == 0 || started.elapsed() < seconds {
        refusals += usize::from(exchange(&engine, &messages[exchanges % messages.len()])?);
        exchanges += 1;
    }
    let micros = (cpu() - begin) * 1e6 / exchanges as f64;
    println!("{micros:.1} {refusals} of {exchanges} refused");
    Ok(())
}

/// None if there is no such file.
fn read(path: &Path) -> Result<Option<Message>, Box<dyn Error>> {
    let text = match std::fs::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("{}: {error}", path.display()).into()),
    };
    let end = text.windows(4).position(|bytes| bytes == b"\r\n\r\n").ok_or("a message without a head")?;
    let head = std::str::from_utf8(&text[..end])?;
    let mut lines = head.split("\r\n");
    let first = lines.next().unwrap_or_default().splitn(3, ' ').map(str::to_owned).collect();
    let headers = lines.filter_map(|line| line.split_once(": "));
    let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    Ok(Some(Message { first, headers, body: text[end + 4..].to_vec() }))
}

/// Whether it is refused.
fn exchange(
    engine: &ModSecurity,
    (request, response): &(Message, Option<Message>),
) -> Result<bool, Box<dyn Error>> {
    let mut transaction = engine.new_transaction();
    transaction.set_client_addr("192.0.2.7", 4711);
    transaction.set_server_addr("192.0.2.7", 4711);
    let refused = phases(&mut transaction, request, response.as_ref())?;
    transaction.process_logging()?;
    Ok(refused)
}

fn phases(
    transaction: &mut Transaction,
    request: &Message,
    response: Option<&Message>,
) -> Result<bool, Box<dyn Error>> {
    let [method, target, protocol] = request.first.as_slice() else { return Err("a bad request line".into()) };
    transaction.process_uri(target, method, protocol)?;
    for (name, value) in &request.headers {
        transaction.add_request_header(name, value)?;
        if name.eq_ignore_ascii_case("host") {
            transaction.set_server_name(value);
        }
    }
    transaction.process_request_headers()?;
    if transaction.intervention().is_some() {
        return Ok(true);
    }
    if !request.body.is_empty() {
        transaction.append_request_body(&request.body)?;
    }
    transaction.process_request_body()?;
    if transaction.intervention().is_some() {
        return Ok(true);
    }
    let Some(response) = response else { return Ok(false) };
    for (name, value) in &response.headers {
        transaction.add_response_header(name, value)?;
    }
    transaction.process_response_headers()?;
    if transaction.intervention().is_some() {
        return Ok(true);
    }
    transaction.append_response_body(&response.body)?;
    transaction.process_response_body()?;
    Ok(transaction.intervention().is_some())
}

fn cpu() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
