//! From a finished inspection to its audit record and its part of the debug log.

use std::fmt;
use std::sync::Arc;

use portcullis_audit::mask::{Place, Secret, Secrets};
use portcullis_audit::{
    Action as Interrupted, AuditLink, AuditRule, Hidden, Message, Record, RequestPart, ResponsePart, Upload,
    WebApp,
};
use portcullis_engine::{AuditEngine, BodyProcessor, Class, HiddenIn, Plan, Rule, RuleEngine};
use portcullis_event::{Action, EngineMode, Redactor, RuleMatch, modsecurity_finding, modsecurity_message};
use portcullis_types::Variable;

use crate::exchange::Outcome;
use crate::inspection::Inspection;
use crate::inspector::engine_mode;

/// Takes what the audit log and the debug log are to have. Called on the worker, so it must not wait.
pub trait AuditSink: fmt::Debug + Send + Sync {
    /// A record, with nothing in it that must not be shown.
    fn record(&self, record: Record);
    /// Lines for the debug log, each with its newline.
    fn debug(&self, lines: String);
}

/// The policy's fields of audit records; built once.
#[derive(Debug)]
pub(crate) struct AuditNames {
    sink: Arc<dyn AuditSink>,
    shows_secrets: bool,
    components: Arc<[String]>,
    server_software: Arc<str>,
    sensor_id: Option<Arc<str>>,
    web_app_id: Option<String>,
    /// By index of the rule; empty if no record can show rules.
    rules: Vec<Arc<AuditRule>>,
}

impl AuditNames {
    pub(crate) fn new(plan: &Plan, sink: Arc<dyn AuditSink>, shows_secrets: bool) -> AuditNames {
        let settings = &plan.settings;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let named = |bytes: &Option<Vec<u8>>| bytes.as_deref().map(text).filter(|name| name != "default");
        let wants_rules = !plan.rule_texts.is_empty();
        let signature = settings.server_signature.as_deref().map(text).filter(|text| !text.is_empty());
        AuditNames {
            sink,
            shows_secrets,
            components: settings.component_signatures.iter().map(|name| text(name)).collect(),
            server_software: signature.map_or_else(
                || concat!("Portcullis/", env!("CARGO_PKG_VERSION")).into(),
                |signature| signature.into(),
            ),
            sensor_id: named(&settings.audit.sensor_id).map(Arc::from),
            web_app_id: named(&Some(settings.web_app_id.clone())),
            rules: match wants_rules {
                true => plan.rules.iter().map(|rule| Arc::new(audit_rule(plan, rule))).collect(),
                false => Vec::new(),
            },
        }
    }
}

fn audit_rule(plan: &Plan, rule: &Rule) -> AuditRule {
    let first = rule.first_link as usize;
    let links = plan.links_of(rule).iter().enumerate().map(|(at, link)| {
        let text = link.operator_text.trim_start_matches('@');
        let (operator, argument) = text.split_once(' ').unwrap_or((text, ""));
        AuditLink {
            text: plan.rule_texts.get(first + at).cloned().unwrap_or_default(),
            operator: if link.unconditional { "unconditionalMatch" } else { operator }.into(),
            argument: argument.into(),
            negated: link.negated,
        }
    });
    let metadata = &rule.metadata;
    let tags = metadata.tags.iter().filter_map(|tag| tag.as_literal());
    AuditRule {
        links: links.collect(),
        id: rule.id.0,
        rev: metadata.rev.clone(),
        ver: metadata.ver.clone(),
        severity: metadata.severity.map(|severity| severity.number()),
        accuracy: metadata.accuracy,
        maturity: metadata.maturity,
        phase: rule.phase.number(),
        tags: tags.map(|tag| String::from_utf8_lossy(tag).into()).collect(),
        file: plan.files.get(metadata.place.file as usize).cloned().unwrap_or_else(|| Arc::from("")),
        line: metadata.place.line,
    }
}

impl Inspection {
    /// Hands the record of the exchange, if it is worth one, to the sink, and the lines that the debug log
    /// wants.
    pub(crate) fn audit(&self, action: Action, outcome: &Outcome) {
        let Some(names) = &self.inspector.audit else { return };
        let recorded = self.is_recorded(outcome);
        let level = self.transaction.audit().debug_level;
        if !recorded && level == 0 {
            return;
        }
        let messages = self.audit_messages(action, outcome, names.shows_secrets);
        if level > 0 {
            let lines = self.debug_lines(level, action, outcome, &messages, recorded);
            if !lines.is_empty() {
                names.sink.debug(lines);
            }
        }
        if recorded {
            names.sink.record(self.record(names, messages, outcome));
        }
    }

    fn is_recorded(&self, outcome: &Outcome) -> bool {
        let (settings, state) = (&self.inspector.plan.settings, self.transaction.audit());
        // With SecRuleEngine Off nothing is looked at, and nothing recorded.
        if settings.audit.log.is_none()
            || (settings.rule_engine == RuleEngine::Off && self.transaction.rule_engine() == RuleEngine::Off)
        {
            return false;
        }
        let upstream = self.transaction.scalar_text(Variable::ResponseStatus);
        let upstream = upstream.and_then(|text| std::str::from_utf8(text).ok()?.parse().ok());
        let statuses = [outcome.status, upstream];
        match state.engine {
            AuditEngine::Off => false,
            AuditEngine::On => true,
            AuditEngine::RelevantOnly => {
                state.relevant
                    || self.unread_by_rules().is_some()
                    || self.semantic.as_ref().is_some_and(|semantic| semantic.decision().is_some())
                    || statuses.iter().flatten().any(|&status| settings.audit.relevant_status.has(status))
            }
        }
    }

    /// The matches that asked for `log` or `auditlog`, with nothing in them that must not be shown.
    fn audit_messages(&self, action: Action, outcome: &Outcome, shows_secrets: bool) -> Vec<Message> {
        let shown = || self.transaction.matches().iter().filter(|found| found.log || found.audit_log);
        let mut found: Vec<RuleMatch> = shown().map(|found| self.rule_match(found)).collect();
        self.redact_hidden(&mut found);
        if !shows_secrets {
            self.redact_matches(&mut found);
        }
        let verdict = self.verdict(action, outcome);
        let text = |logged: bool, found: &RuleMatch| {
            let decided = verdict.rule_id == Some(found.rule.rule_id);
            modsecurity_message(logged.then_some(&verdict), decided, found)
        };
        let of_rules =
            shown().zip(found).map(|(record, found)| Message { text: text(record.log, &found), found });
        of_rules.chain(self.semantic_messages(&verdict)).collect()
    }

    fn record(&self, names: &AuditNames, messages: Vec<Message>, outcome: &Outcome) -> Record {
        let transaction = &self.transaction;
        let parts = transaction.audit().parts;
        let secrets = self.secrets();
        let rules = transaction.matches().iter().filter_map(|found| names.rules.get(found.rule.0 as usize));
        let mut rules: Vec<Arc<AuditRule>> =
            if parts.has(b'K') { rules.cloned().collect() } else { Vec::new() };
        rules.dedup_by(|a, b| Arc::ptr_eq(a, b));
        let session = transaction.opened(Variable::Session).map(|text| portcullis_event::text(text, 1024));
        let user = transaction.opened(Variable::User).map(|text| portcullis_event::text(text, 1024));
        let web_app = WebApp { id: names.web_app_id.clone(), session, user };
        let known = web_app.id.is_some() || web_app.session.is_some() || web_app.user.is_some();
        let multipart = transaction.request_body_processor() == Some(BodyProcessor::Multipart);
        let mut record = Record {
            parts: ('A'..='K').filter(|&letter| parts.has(letter as u8)).collect(),
            time: self.time(),
            duration_us: outcome.duration.as_micros().try_into().unwrap_or(u64::MAX),
            unique_id: self.connection.request_id.clone(),
            client: (self.connection.client.ip().to_string(), self.connection.client.port()),
            server: (self.connection.server.ip().to_string(), self.connection.server.port()),
            host: without_port(&self.seen.host()).to_owned(),
            request: self.request_part(multipart, &secrets),
            response: self.response_part(outcome),
            bytes_sent: outcome.response_body_bytes + outcome.own_body_bytes,
            action: self.interrupted(&messages),
            body_error: self.unread_by_rules().map(str::to_owned),
            messages,
            components: Arc::clone(&names.components),
            server_software: Arc::clone(&names.server_software),
            web_app: known.then_some(web_app),
            sensor_id: names.sensor_id.clone(),
            engine: engine_mode(transaction.rule_engine()),
            hidden: self.hidden_names(),
            uploads: (multipart && parts.has(b'J')).then(|| self.uploads()),
            rules,
        };
        // ctl:ruleEngine=Off ends the rules, but the policy's engine runs.
        if record.engine == EngineMode::Off {
            record.engine = engine_mode(self.inspector.plan.settings.rule_engine);
        }
        let args: Vec<_> = transaction.values_of(Class::ArgsPost).collect();
        let form = !matches!(
            transaction.request_body_processor(),
            Some(BodyProcessor::Multipart | BodyProcessor::Json | BodyProcessor::Xml)
        );
        secrets.hide(&mut record, &args, form);
        if !names.shows_secrets {
            hide_by_name(&mut record, &self.inspector.redactor);
        }
        record
    }

    fn request_part(&self, multipart: bool, secrets: &Secrets) -> RequestPart {
        let transaction = &self.transaction;
        let parts = transaction.audit().parts;
        let scalar = |variable| transaction.scalar_text(variable).unwrap_or_default().to_vec();
        let body = (parts.has(b'C') || parts.has(b'I')).then(|| transaction.audited_request_body()).flatten();
        RequestPart {
            line: scalar(Variable::RequestLine),
            method: scalar(Variable::RequestMethod),
            target: scalar(Variable::RequestUriRaw),
            protocol: scalar(Variable::RequestProtocol),
            headers: if parts.has(b'B') { self.pairs(Class::RequestHeaders) } else { Vec::new() },
            body: body.map(<[u8]>::to_vec),
            fake_body: body.filter(|_| multipart && parts.has(b'I')).map(|_| self.fake_body(secrets)),
        }
    }

    fn response_part(&self, outcome: &Outcome) -> Option<ResponsePart> {
        let parts = self.transaction.audit().parts;
        let status = outcome.status?;
        if let Some(headers) = &outcome.own_headers {
            let (protocol, headers) = (b"HTTP/1.1".to_vec(), headers.clone());
            return Some(ResponsePart { protocol, status, headers, body: None });
        }
        let scalar = |variable| self.transaction.scalar_text(variable).map(<[u8]>::to_vec);
        Some(ResponsePart {
            protocol: scalar(Variable::ResponseProtocol).unwrap_or_else(|| b"HTTP/1.1".to_vec()),
            status,
            headers: if parts.has(b'F') { self.pairs(Class::ResponseHeaders) } else { Vec::new() },
            // One that is not inspected is empty.
            body: scalar(Variable::ResponseBody).filter(|body| parts.has(b'E') && !body.is_empty()),
        })
    }

    fn pairs(&self, class: Class) -> Vec<(Vec<u8>, Vec<u8>)> {
        self.transaction.values_of(class).map(|(name, value)| (name.to_vec(), value.to_vec())).collect()
    }

    /// The fields of a multipart body as a form.
    fn fake_body(&self, secrets: &Secrets) -> Vec<u8> {
        let mut form = Vec::new();
        for (name, value) in self.transaction.values_of(Class::ArgsPost) {
            if !form.is_empty() {
                form.push(b'&');
            }
            url_encode(name, &mut form);
            form.push(b'=');
            let mut value = value.to_vec();
            secrets.mask(Place::Arg, name, &mut value);
            url_encode(&value, &mut form);
        }
        form
    }

    fn uploads(&self) -> Vec<Upload> {
        let transaction = &self.transaction;
        let sizes: Vec<u64> = transaction
            .values_of(Class::FilesSizes)
            .map(|(_, size)| std::str::from_utf8(size).ok().and_then(|size| size.parse().ok()).unwrap_or(0))
            .collect();
        let content_type = |field: &[u8]| {
            transaction.values_of(Class::MultipartPartHeaders).find_map(|(part, line)| {
                let (name, value) = line.split_at_checked(13)?;
                let wanted = part == field && name.eq_ignore_ascii_case(b"content-type:");
                wanted.then(|| value.trim_ascii().to_vec())
            })
        };
        let names: Vec<&[u8]> = transaction.values_of(Class::MultipartName).map(|(name, _)| name).collect();
        let mut part = 0;
        transaction
            .values_of(Class::Files)
            .enumerate()
            .map(|(at, (field, name))| {
                part =
                    names.iter().skip(part).position(|name| *name == field).map_or(part, |more| part + more)
                        + 1;
                Upload {
                    part,
                    size: sizes.get(at).copied().unwrap_or(0),
                    name: name.to_vec(),
                    content_type: content_type(field),
                }
            })
            .collect()
    }

    fn interrupted(&self, messages: &[Message]) -> Option<Interrupted> {
        let (found, phase) = match self.interrupted_by() {
            Some((rule, phase)) => {
                (messages.iter().rfind(|message| message.found.rule.rule_id == rule), phase)
            }
            None => self.semantic_interruption(messages)?,
        };
        let message = found.map_or_else(String::new, |message| modsecurity_finding(&message.found));
        Some(Interrupted { phase: phase.number(), message })
    }

    fn secrets(&self) -> Secrets {
        let state = self.transaction.audit();
        let secret = |hidden: &portcullis_engine::Hidden| Secret {
            place: match hidden.place {
                HiddenIn::Arg => Place::Arg,
                HiddenIn::RequestHeader => Place::RequestHeader,
                HiddenIn::ResponseHeader => Place::ResponseHeader,
            },
            name: hidden.name.clone(),
            bytes: hidden
                .bytes
                .as_ref()
                .map(|bytes| (bytes.text.clone(), bytes.keep_first.into(), bytes.keep_last.into())),
        };
        Secrets {
            list: state.hidden.iter().map(secret).collect(),
            all: state.hide_all,
            separator: self.inspector.plan.settings.argument_separator,
        }
    }

    /// Names for part H: of arguments, those that there are.
    fn hidden_names(&self) -> Hidden {
        let state = self.transaction.audit();
        let names = |place: HiddenIn| {
            let mut names: Vec<String> = Vec::new();
            for hidden in state.hidden.iter().filter(|hidden| hidden.place == place) {
                let name = String::from_utf8_lossy(&hidden.name).into_owned();
                if !names.iter().any(|known| known.eq_ignore_ascii_case(&name)) {
                    names.push(name);
                }
            }
            names
        };
        let mut args = names(HiddenIn::Arg);
        args.retain(|name| {
            [Class::ArgsGet, Class::ArgsPost].into_iter().any(|class| {
                self.transaction.values_of(class).any(|(arg, _)| arg.eq_ignore_ascii_case(name.as_bytes()))
            })
        });
        Hidden {
            args,
            request_headers: names(HiddenIn::RequestHeader),
            response_headers: names(HiddenIn::ResponseHeader),
        }
    }
}

/// Hides the values of secret names wherever a record has something of the message.
fn hide_by_name(record: &mut Record, redactor: &Redactor) {
    let request = &mut record.request;
    let body = request.body.iter_mut().chain(&mut request.fake_body);
    for text in [&mut request.line, &mut request.target].into_iter().chain(body) {
        redactor.hide_in(text);
    }
    let response = record.response.iter_mut();
    for part in response {
        part.headers.iter_mut().for_each(|(name, value)| redactor.hide_in_header(name, value));
        part.body.iter_mut().for_each(|body| redactor.hide_in(body));
    }
    request.headers.iter_mut().for_each(|(name, value)| redactor.hide_in_header(name, value));
    // The key of the collection SESSION is the id of a session.
    let session = record.web_app.iter_mut().filter_map(|web_app| web_app.session.as_mut());
    session.for_each(|id| *id = "*".repeat(id.len()));
}

/// As a form writes it.
fn url_encode(text: &[u8], out: &mut Vec<u8>) {
    for &byte in text {
        match byte {
            b' ' => out.push(b'+'),
            b'*' | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => out.push(byte),
            _ => out.extend_from_slice(format!("%{byte:02x}").as_bytes()),
        }
    }
}

/// A host without its port.
fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) && !name.is_empty() => name,
        _ => host,
    }
}
