//! Events as comma-separated values (RFC 4180), for spreadsheets.

use serde_json::Value;

use crate::event_text::text;

/// Names of the columns.
pub const HEAD: &str = "time,request_id,count,site,route,verdict,status,class,rule,client,country,method,host,target,\
duration_us,upstream,reason\r\n";

/// Where the columns are in an event.
const COLUMNS: [&str; 17] = [
    "/time",
    "/request_id",
    "/count",
    "/site",
    "/route",
    "/verdict/action",
    "/response/status",
    "/verdict/class",
    "/verdict/rule_id",
    "/client/addr",
    "/client/country",
    "/request/method",
    "/server/host",
    "/request/target",
    "/duration_us",
    "/upstream",
    "/verdict/reason",
];

/// The line of an event.
pub fn line(event: &Value) -> String {
    let mut line = String::new();
    for (number, path) in COLUMNS.iter().enumerate() {
        if number > 0 {
            line.push(',');
        }
        match event.pointer(path) {
            Some(Value::Number(value)) => line.push_str(&value.to_string()),
            None if *path == "/count" => line.push('1'),
            _ => cell(text(event, path), &mut line),
        }
    }
    line.push_str("\r\n");
    line
}

/// A cell: what a client sends ends neither it nor its line, and no spreadsheet takes it for a formula.
fn cell(text: &str, line: &mut String) {
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n']);
    if !is_formula && !text.contains([',', '"', '\r', '\n']) {
        line.push_str(text);
        return;
    }
    line.push('"');
    if is_formula {
        line.push('\'');
    }
    line.push_str(&text.replace('"', "\"\""));
    line.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_the_columns_whatever_clients_send() {
        let event = serde_json::json!({
            "time": "2026-11-26T00:00:00.000Z", "request_id": "r1", "site": "shop",
            "verdict": {"action": "deny", "rule_id": 942100, "reason": "a \"b\", c\r\nd"},
            "response": {"status": 403}, "request": {"method": "=cmd|' /C calc'!A0", "target": "/"},
        });
        let expected = "2026-11-26T00:00:00.000Z,r1,1,shop,,deny,403,,942100,,,\"'=cmd|' /C calc'!A0\",,/,,,\
            \"a \"\"b\"\", c\r\nd\"\r\n";
        assert_eq!(line(&event), expected);
        assert_eq!(HEAD.split(',').count(), COLUMNS.len());
    }
}
