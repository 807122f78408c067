//! `POST /explain`: which message is meant, and errors.

use portcullis_api::{
    AdviceOrder, CheckedDocument, CheckedRules, Explained, ReplayChange, ReplayError, ReplayOrder,
    ReplayRequest, Replayed, SinkOrder, SinkTestError, SinkTested, Trial, TrialError, Trials,
};
use portcullis_config::{Config, Format, Survey};
use portcullis_identity::Role;
use serde_json::{Value, json};

use crate::server::Server;

/// A program that tells the trial it got, or the error that the site is named for.
pub struct Echo;

impl Trials for Echo {
    fn explain(&self, trial: Trial) -> Result<Explained, TrialError> {
        let site = trial.site.unwrap_or_default();
        let route = trial.route.unwrap_or_default();
        match site.as_str() {
            "nowhere" => return Err(TrialError::NoSite),
            "plain" => return Err(TrialError::NotInspected { site, route }),
            "odd" => return Err(TrialError::Ambiguous),
            _ => {}
        }
        if let Some(rule) = trial.rule.filter(|rule| *rule == 7) {
            return Err(TrialError::NoRule(rule));
        }
        let explanation = json!({
            "request": String::from_utf8_lossy(&trial.request),
            "response": trial.response.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
            "client": trial.client,
            "notes": trial.notes,
            "all": trial.all,
            "rule": trial.rule,
        });
        Ok(Explained { site, route, generation: 7, explanation: explanation.to_string() })
    }

    fn advise(&self, order: AdviceOrder) -> Result<String, String> {
        if order.text.contains("unadvised") {
            return Err("there is nothing to exclude".to_owned());
        }
        let request = String::from_utf8_lossy(&order.request.request).into_owned();
        let others: Vec<String> = order.others.into_iter().map(|other| other.id).collect();
        Ok(json!({ "request": request, "site": order.site, "route": order.route, "others": others })
            .to_string())
    }

    /// Requests with `attack` are stopped, but by a text with `loose`.
    fn replay(&self, order: ReplayOrder) -> Result<Replayed, ReplayError> {
        if let Err(error) = Config::parse(&order.text, order.format, &order.file) {
            return Err(ReplayError::Document(error.mistakes().to_vec()));
        }
        if order.site.as_deref() == Some("nowhere") {
            return Err(ReplayError::Unfit("the document has no site nowhere".to_owned()));
        }
        let stops = |text: &str, request: &ReplayRequest| {
            request.request.windows(6).any(|part| part == b"attack") && !text.contains("loose")
        };
        let mut replayed = Replayed { requests: order.requests.len(), ..Replayed::default() };
        for request in &order.requests {
            let (was, is) = (stops(&order.against, request), stops(&order.text, request));
            replayed.stopped += usize::from(is);
            replayed.incomplete += usize::from(request.omitted > 0);
            if was && !is {
                replayed.lost += 1;
                replayed.changes.push(ReplayChange {
                    is_lost: true,
                    id: request.id.clone(),
                    site: request.site.clone(),
                    client: request.client,
                    line: "GET /".to_owned(),
                    reason: "a reason".to_owned(),
                });
            }
        }
        Ok(replayed)
    }

    /// Sinks called so that `silent` fails.
    fn test_sink(&self, order: SinkOrder) -> Result<SinkTested, SinkTestError> {
        let config = Config::parse(&order.text, order.format, &order.file)
            .map_err(|error| SinkTestError::Document(error.mistakes().to_vec()))?;
        let names: Vec<String> = config.event_sinks.iter().map(|sink| sink.name.clone()).collect();
        if !names.contains(&order.sink) {
            return Err(SinkTestError::NoSink(names));
        }
        let error = (order.sink == "silent").then(|| format!("no answer for {}", order.by));
        let is_confirmed = order.sink == "pager";
        Ok(SinkTested { time: std::time::Duration::from_millis(7), error, is_confirmed })
    }

    fn check(&self, text: String, format: Format, file: String) -> CheckedDocument {
        let text_of_rule = text.contains("SecWrong");
        let survey = Survey::of_text(text, format, file);
        let mistakes = survey.map_or_else(|error| error.mistakes().to_vec(), |survey| survey.mistakes);
        let errors = if text_of_rule { vec!["a rule".to_owned()] } else { Vec::new() };
        let rules = CheckedRules { rules: 0, errors, warnings: Vec::new() };
        CheckedDocument { mistakes, warnings: Vec::new(), rules: vec![rules] }
    }
}

fn ask(server: &Server, token: &str, body: &Value) -> (u16, Value) {
    let answer = server.ask("POST", "/explain").bearer(token).json(body).send();
    (answer.status, answer.json())
}

#[test]
fn a_message_is_given_in_one_of_four_ways() {
    let server = Server::start();
    let analyst = server.token(Role::Analyst);
    let wire = "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx";
    let (status, answer) = ask(&server, &analyst, &json!({ "request": wire, "site": "shop", "route": "/" }));
    assert_eq!(status, 200, "{answer}");
    assert_eq!(
        (&answer["site"], &answer["route"], &answer["generation"]),
        (&"shop".into(), &"/".into(), &7.into())
    );
    assert_eq!(answer["explanation"]["request"], wire);
    assert_eq!(answer["explanation"]["client"], "192.0.2.1");

    // As a person types it.
    let typed = json!({ "request": "POST /a HTTP/1.1\nHost: a\n\nx", "all": true, "rule": 5.0 });
    let answer = ask(&server, &analyst, &typed).1;
    assert_eq!(answer["explanation"]["request"], wire);
    assert_eq!(answer["explanation"]["notes"].as_array().unwrap().len(), 2, "{answer}");
    assert_eq!((&answer["explanation"]["all"], &answer["explanation"]["rule"]), (&true.into(), &5.into()));

    let coded =
        json!({ "request_base64": data_encoding::BASE64.encode(wire.as_bytes()), "client": "2001:db8::7" });
    let answer = ask(&server, &analyst, &coded).1;
    assert_eq!(answer["explanation"]["request"], wire);
    assert_eq!(answer["explanation"]["client"], "2001:db8::7");

    let response = "HTTP/1.1 200 OK\n\nroot:x:0:0";
    let line = json!({ "curl": "curl http://a/?q=1 -A x", "response": response });
    let answer = ask(&server, &analyst, &line).1;
    assert_eq!(
        answer["explanation"]["request"],
        "GET /?q=1 HTTP/1.1\r\nHost: a\r\nUser-Agent: x\r\nAccept: */*\r\n\r\n"
    );
    assert!(answer["explanation"]["response"].as_str().unwrap().ends_with("\r\n\r\nroot:x:0:0"), "{answer}");
}

#[test]
fn mistakes_and_roles() {
    let server = Server::start();
    let analyst = server.token(Role::Analyst);
    for (body, status) in [
        (json!({}), 422),
        (json!({ "request": "GET / HTTP/1.1\n\n", "curl": "curl http://a" }), 422),
        (json!({ "request_base64": "!" }), 422),
        (json!({ "curl": "curl --config x http://a" }), 422),
        (json!({ "request": "x", "client": "nobody" }), 422),
        (json!({ "request": "x", "rule": -1 }), 422),
        (json!({ "request": "x", "rule": 4_294_967_296_u64 }), 422),
        (json!({ "request": "x", "what": 1 }), 422),
        (json!({ "request": "x".repeat((1 << 20) + 1) }), 413),
        (json!({ "request": "x", "response": "x".repeat((1 << 20) + 1) }), 413),
        (json!({ "request_id": "none" }), 404),
        (json!({ "request": "x", "rule": 7 }), 404),
        (json!({ "request": "x", "site": "nowhere" }), 404),
        (json!({ "request": "x", "site": "plain" }), 409),
        (json!({ "request": "x", "site": "odd" }), 409),
    ] {
        let (found, answer) = ask(&server, &analyst, &body);
        assert_eq!(found, status, "{body}: {answer}");
        assert!(answer["detail"].is_string(), "{answer}");
    }
    let viewer = server.token(Role::Viewer);
    assert_eq!(ask(&server, &viewer, &json!({ "request": "x" })).0, 403);
    assert_eq!(server.ask("POST", "/explain").json(json!({ "request": "x" })).send().status, 401);
}

#[test]
fn a_text_is_checked_with_its_rules() {
    let server = Server::start();
    let admin = server.token(Role::Admin);
    let check = |body: Value, token: &str| server.ask("POST", "/check").bearer(token).json(&body).send();
    let answer = check(json!({ "text": "workers = \"many\"" }), &admin);
    let told = answer.json();
    assert_eq!(
        (answer.status, &told["valid"], &told["mistakes"][0]["line"]),
        (200, &false.into(), &1.into()),
        "{told}"
    );
    let told = check(json!({ "text": server.text() }), &admin).json();
    assert_eq!((&told["valid"], &told["mistakes"]), (&true.into(), &json!([])), "{told}");
    let wrong = format!("# SecWrong\n{}", server.text());
    let told = check(json!({ "text": wrong }), &admin).json();
    assert_eq!((&told["valid"], &told["rules"][0]["errors"][0]), (&false.into(), &"a rule".into()), "{told}");
    // A change that is only tried is checked likewise.
    let body = json!({ "text": wrong, "dry_run": true });
    let tried = server.ask("PUT", "/config").bearer(&admin).header("If-Match", "*").json(&body).send();
    assert_eq!((tried.status, &tried.json()["detail"]), (422, &"a rule".into()), "{}", tried.text());
    assert_eq!(check(json!({}), &admin).status, 422);
    assert_eq!(check(json!({ "text": "x".repeat((1 << 20) + 1) }), &admin).status, 413);
    // Whoever may name files learns of their contents.
    assert_eq!(check(json!({ "text": "" }), &server.token(Role::Analyst)).status, 403);
}
