//! The native format: parts between boundaries.
//!
//! Bodies and header values go out as they came: that is what the format is for, and what its readers expect.
//! A boundary is eight random digits, which a client cannot know.

use std::io::Write as _;

use crate::show::{quoted, reason};
use crate::{AuditRule, Record};

/// `dashes`: before a boundary and behind it.
pub(crate) fn write(record: &Record, dashes: [&'static str; 2], boundary: &str, out: &mut Vec<u8>) {
    let mut parts = Parts { out, dashes, boundary, begun: false };
    parts.begin('A');
    let (client, server) = (&record.client, &record.server);
    parts.text(format_args!(
        "[{}] {} {} {} {} {}",
        record.time.common_log(),
        record.unique_id,
        client.0,
        client.1,
        server.0,
        server.1
    ));
    request(record, &mut parts);
    response(record, &mut parts);
    if record.has('H') {
        parts.begin('H');
        trailer(record, &mut parts);
    }
    if let Some(uploads) = record.uploads.as_ref().filter(|_| record.has('J')) {
        parts.begin('J');
        for upload in uploads {
            let content_type = upload.content_type.as_deref().unwrap_or(b"<Unknown ContentType>");
            let (name, content_type) = (quoted(&upload.name), quoted(content_type));
            parts.text(format_args!("{},{},\"{name}\",\"{content_type}\"\n", upload.part, upload.size));
        }
        parts.text(format_args!("Total,{}\n", uploads.iter().map(|upload| upload.size).sum::<u64>()));
    }
    if record.has('K') {
        parts.begin('K');
        for rule in &record.rules {
            rule_text(rule, &mut parts);
        }
    }
    parts.begin('Z');
}

fn request(record: &Record, parts: &mut Parts<'_>) {
    let request = &record.request;
    if record.has('B') {
        parts.begin('B');
        parts.bytes(&request.line);
        parts.bytes(b"\n");
        parts.headers(&request.headers);
    }
    // Where I is asked for, C stands in for it if there is nothing to make up.
    let whole = record.has('C') || (record.has('I') && request.fake_body.is_none());
    if let Some(body) = request.body.as_ref().filter(|_| whole) {
        parts.begin('C');
        parts.bytes(body);
    }
    if let Some(body) = request.fake_body.as_ref().filter(|_| record.has('I')) {
        parts.begin('I');
        parts.bytes(body);
    }
}

fn response(record: &Record, parts: &mut Parts<'_>) {
    if record.has('F') {
        parts.begin('F');
        if let Some(response) = &record.response {
            parts.bytes(&response.protocol);
            parts.text(format_args!(" {} {}\n", response.status, reason(response.status)));
            parts.headers(&response.headers);
        }
    }
    if let Some(body) = record.response.as_ref().and_then(|r| r.body.as_ref()).filter(|_| record.has('E')) {
        parts.begin('E');
        parts.bytes(body);
    }
}

fn trailer(record: &Record, parts: &mut Parts<'_>) {
    let remark = record.body_error.as_deref();
    for text in remark.into_iter().chain(record.messages.iter().map(|message| &*message.text)) {
        parts.text(format_args!("Message: {text}\n"));
    }
    if let Some(action) = &record.action {
        parts.text(format_args!("Action: Intercepted (phase {})\n", action.phase));
    }
    let begun = record.time.epoch_millis() * 1000;
    parts.text(format_args!("Stopwatch: {begun} {} (- - -)\n", record.duration_us));
    if record.has('E') && record.response.as_ref().is_some_and(|response| response.body.is_some()) {
        parts.text(format_args!("Response-Body-Transformed: Dechunked\n"));
    }
    parts.text(format_args!("Producer: {}", record.producer()));
    for component in record.components.iter() {
        parts.text(format_args!("; {component}"));
    }
    parts.text(format_args!(".\nServer: {}\n", record.server_software));
    for (name, values) in [
        ("Sanitised-Args", &record.hidden.args),
        ("Sanitised-Request-Headers", &record.hidden.request_headers),
        ("Sanitised-Response-Headers", &record.hidden.response_headers),
    ] {
        if !values.is_empty() {
            let values: Vec<String> =
                values.iter().map(|v| format!("\"{}\"", quoted(v.as_bytes()))).collect();
            parts.text(format_args!("{name}: {}.\n", values.join(", ")));
        }
    }
    if let Some(app) = &record.web_app {
        let show = |value: &Option<String>| value.as_ref().map_or("-".into(), |v| quoted(v.as_bytes()));
        let (id, session, user) = (show(&app.id), show(&app.session), show(&app.user));
        parts.text(format_args!("WebApp-Info: \"{id}\" \"{session}\" \"{user}\"\n"));
    }
    if let Some(sensor) = &record.sensor_id {
        parts.text(format_args!("Sensor-Id: \"{}\"\n", quoted(sensor.as_bytes())));
    }
    if let Some(mode) = record.engine_mode() {
        parts.text(format_args!("Engine-Mode: \"{mode}\"\n"));
    }
}

fn rule_text(rule: &AuditRule, parts: &mut Parts<'_>) {
    for link in &rule.links {
        parts.text(format_args!("{}\n", link.text));
    }
    parts.bytes(b"\n");
}

struct Parts<'a> {
    out: &'a mut Vec<u8>,
    dashes: [&'static str; 2],
    boundary: &'a str,
    begun: bool,
}

impl Parts<'_> {
    fn begin(&mut self, letter: char) {
        let line_end = if std::mem::replace(&mut self.begun, true) { "\n" } else { "" };
        let ([before, behind], boundary) = (self.dashes, self.boundary);
        self.text(format_args!("{line_end}{before}{boundary}{behind}{letter}--\n"));
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    fn text(&mut self, text: std::fmt::Arguments<'_>) {
        // Writing to memory does not fail.
        let _ = self.out.write_fmt(text);
    }

    fn headers(&mut self, headers: &[(Vec<u8>, Vec<u8>)]) {
        for (name, value) in headers {
            self.bytes(name);
            self.bytes(b": ");
            self.bytes(value);
            self.bytes(b"\n");
        }
    }
}

impl Record {
    pub(crate) fn producer(&self) -> String {
        concat!("Portcullis/", env!("CARGO_PKG_VERSION")).to_owned()
    }

    pub(crate) fn engine_mode(&self) -> Option<&'static str> {
        match self.engine {
            portcullis_event::EngineMode::Blocking => Some("ENABLED"),
            portcullis_event::EngineMode::DetectionOnly => Some("DETECTION_ONLY"),
            portcullis_event::EngineMode::Off => None,
        }
    }
}
