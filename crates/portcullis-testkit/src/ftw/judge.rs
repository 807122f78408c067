//! Evidence to judgement.

use std::collections::BTreeSet;

use regex_automata::meta::Regex;
use regex_automata::util::syntax;

use super::Output;
use crate::client::{Exchange, Failure};

/// A line of the proxy's error log, without its line end.
pub type LogLine = Vec<u8>;

/// The evidence of one stage.
#[derive(Debug)]
pub struct Evidence<'a> {
    /// The response, or why there is none.
    pub exchange: &'a Result<Exchange, Failure>,
    /// Rules that logged.
    pub ids: &'a BTreeSet<u32>,
    /// Lines that were logged.
    pub log: &'a [LogLine],
}

impl Output {
    /// Returns the reasons why the stage failed, one a line; empty if it passed.
    pub fn judge(&self, evidence: &Evidence) -> Vec<String> {
        let response = match (evidence.exchange, self.expect_error) {
            (Err(_), true) => return Vec::new(),
            (Ok(response), true) => {
                return vec![format!("expected no valid response, got status {}", response.status)];
            }
            (Err(failure), false) => return vec![format!("expected a response, got none: {failure}")],
            (Ok(response), false) => response,
        };
        let mut reasons = Vec::new();
        if self.status != 0 && self.status != response.status {
            reasons.push(format!("expected status {}, got {}", self.status, response.status));
        }
        if let Some(pattern) = &self.response_contains
            && !found(pattern, [response.raw.as_slice()], &mut reasons)
        {
            reasons.push(format!("expected `{pattern}` in the response"));
        }
        let log = || evidence.log.iter().map(Vec::as_slice);
        if let Some(pattern) = &self.match_regex
            && !found(pattern, log(), &mut reasons)
        {
            reasons.push(format!("expected `{pattern}` in the log ({} lines)", evidence.log.len()));
        }
        if let Some(pattern) = &self.no_match_regex
            && found(pattern, log(), &mut reasons)
        {
            reasons.push(format!("did not expect `{pattern}` in the log"));
        }
        let missed: Vec<_> = self.expect_ids.iter().filter(|id| !evidence.ids.contains(id)).collect();
        if !missed.is_empty() {
            reasons.push(format!("expected {missed:?}, got {:?}", evidence.ids));
        }
        let extra: Vec<_> = self.no_expect_ids.iter().filter(|id| evidence.ids.contains(id)).collect();
        if !extra.is_empty() {
            reasons.push(format!("did not expect {extra:?}, got {:?}", evidence.ids));
        }
        if self.isolated && evidence.ids.len() != 1 {
            reasons.push(format!("expected this rule alone, got {:?}", evidence.ids));
        }
        reasons
    }
}

/// Returns true if one of the texts matches. A pattern that does not compile is a reason to fail in itself.
fn found<'a>(pattern: &str, texts: impl IntoIterator<Item = &'a [u8]>, reasons: &mut Vec<String>) -> bool {
    let build = Regex::builder().syntax(syntax::Config::new().unicode(false).utf8(false)).build(pattern);
    match build {
        Ok(regex) => texts.into_iter().any(|text| regex.is_match(text)),
        Err(error) => {
            reasons.push(format!("pattern `{pattern}`: {error}"));
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An expectation against status 200, rules 1 and 2, one log line: how many reasons.
    #[track_caller]
    fn check(output: Output, want: usize) {
        let exchange =
            Ok(Exchange { status: 200, raw: b"HTTP/1.1 200 OK\r\n\r\nhello".to_vec(), whole: true });
        let evidence = Evidence {
            exchange: &exchange,
            ids: &BTreeSet::from([1, 2]),
            log: &[b"found within ARGS:x \xff [id \"1\"]".to_vec()],
        };
        let reasons = output.judge(&evidence);
        assert_eq!(reasons.len(), want, "{reasons:?}");
    }

    #[test]
    fn each_field() {
        let some = |text: &str| Some(text.to_string());
        check(Output::default(), 0);
        check(Output { status: 200, ..Output::default() }, 0);
        check(Output { status: 400, ..Output::default() }, 1);
        check(Output { response_contains: some("h.llo"), ..Output::default() }, 0);
        check(Output { response_contains: some("^hello"), ..Output::default() }, 1);
        check(Output { expect_ids: vec![2, 1], ..Output::default() }, 0);
        check(Output { expect_ids: vec![1, 3], ..Output::default() }, 1);
        check(Output { no_expect_ids: vec![3], ..Output::default() }, 0);
        check(Output { no_expect_ids: vec![3, 1], ..Output::default() }, 1);
        check(Output { match_regex: some(r#"ARGS:x . \[id "1"\]$"#), ..Output::default() }, 0);
        check(Output { match_regex: some("ARGS:y"), ..Output::default() }, 1);
        check(Output { no_match_regex: some("ARGS:y"), ..Output::default() }, 0);
        check(Output { no_match_regex: some("ARGS:x"), ..Output::default() }, 1);
        check(Output { match_regex: some("("), ..Output::default() }, 2);
        check(Output { isolated: true, expect_ids: vec![1], ..Output::default() }, 1);
        check(Output { expect_error: true, ..Output::default() }, 1);
    }

    #[test]
    fn no_response() {
        let exchange = Err(Failure::Closed);
        let evidence = Evidence { exchange: &exchange, ids: &BTreeSet::new(), log: &[] };
        assert_eq!(
            Output { expect_error: true, expect_ids: vec![1], ..Output::default() }.judge(&evidence).len(),
            0
        );
        assert_eq!(Output { no_expect_ids: vec![1], ..Output::default() }.judge(&evidence).len(), 1);
    }
}
