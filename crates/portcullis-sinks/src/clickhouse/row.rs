//! Events as rows: one JSON object a line (`JSONEachRow`).

use std::net::IpAddr;

use portcullis_event::Event;
use portcullis_query::Field;
use serde_json::{Value, json};

use crate::form;

/// Appends the row of an event of this node and a newline.
pub(super) fn write(event: &Event, node: &str, out: &mut Vec<u8>) {
    let lead = event.lead();
    let word = |field: Field| field.word(event).into_owned();
    let number = |field: Field| field.number(event).unwrap_or(0);
    let list = |field: Field| {
        let mut list: Vec<String> = Vec::new();
        field.list(event, |text| {
            if !list.iter().any(|known| known == text) {
                list.push(text.to_owned());
            }
        });
        list
    };
    let rules: Vec<u32> = list(Field::Rule).iter().filter_map(|id| id.parse().ok()).collect();
    let finding = match (lead.rule, lead.kind) {
        (Some(rule), _) => format!("{rule} {}", lead.title),
        (None, "") => lead.title.to_string(),
        (None, kind) => format!("{kind} {}", lead.title),
    };
    let row: Value = json!({
        "time": event.time.epoch_millis() / 1000,
        "time_ms": event.time.epoch_millis(),
        "id": event.request_id,
        "node": node,
        "site": word(Field::Site),
        "route": word(Field::Route),
        "verdict": word(Field::Verdict),
        "status": number(Field::Status),
        "class": list(Field::Class),
        "rule": rules,
        "client": word(Field::Client),
        "client_hex": hex(&event.client.addr),
        "country": word(Field::Country),
        "asn": number(Field::Asn),
        "method": word(Field::Method),
        "host": word(Field::Host),
        "path": word(Field::Path),
        "user_agent": word(Field::Agent),
        "upstream": word(Field::Upstream),
        "control": word(Field::Control),
        "refusal": word(Field::Refusal),
        "mode": word(Field::Mode),
        "engine": word(Field::Engine),
        "duration_us": number(Field::Duration),
        "count": number(Field::Count),
        "finding": finding,
        "location": lead.location,
        "evidence": lead.evidence,
        "event": form::text(event, portcullis_config::EventForm::Json),
    });
    out.extend_from_slice(row.to_string().as_bytes());
    out.push(b'\n');
}

/// An address as IPv6, in digits.
fn hex(address: &str) -> String {
    let bits = match address.parse::<IpAddr>() {
        Ok(IpAddr::V4(address)) => address.to_ipv6_mapped().to_bits(),
        Ok(IpAddr::V6(address)) => address.to_bits(),
        Err(_) => return String::new(),
    };
    format!("{bits:032x}")
}

#[cfg(test)]
mod tests {
    use super::hex;

    #[test]
    fn networks_are_ranges_of_texts() {
        assert_eq!(hex("192.0.2.7"), "00000000000000000000ffffc0000207");
        assert_eq!(hex("::ffff:192.0.2.7"), hex("192.0.2.7"));
        assert_eq!(hex("2001:db8::1"), "20010db8000000000000000000000001");
        assert_eq!(hex("nobody"), "");
    }
}
