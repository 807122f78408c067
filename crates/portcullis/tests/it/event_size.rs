//! Events of the real program are small whatever a client sends, and tell what decided; error-log lines name
//! every match.

use serde_json::Value;

use crate::served::*;

/// Sixty rules that log and score, and one that blocks.
fn scoring() -> String {
    let mut text = "SecRuleEngine On\nSecRequestBodyAccess On\n".to_owned();
    for number in 0..60 {
        text.push_str(&format!(
            "SecRule ARGS \"@rx (?i)union.{{0,9}}select|script|{number}zz\" \"id:{},phase:2,pass,log,msg:'Attack {number}',\
             logdata:'Matched Data: %{{TX.0}} found within %{{MATCHED_VAR_NAME}}: %{{MATCHED_VAR}}',\
             tag:'attack-sqli',severity:'CRITICAL',setvar:'tx.blocking_inbound_anomaly_score=+5'\"\n",
            1000 + number
        ));
    }
    text + "SecRule TX:BLOCKING_INBOUND_ANOMALY_SCORE \"@ge 1000000\" \"id:2000,phase:2,deny,log\""
}

#[test]
fn a_form_full_of_attacks_makes_a_small_event() {
    let application = application(|_| says("hello"));
    let site = format!("mode = \"both\"\n{}", rules(&scoring()));
    let served = Served::start_site(&application, &site, "[error_log]\nfile = \"error.log\"\n");
    let attack = "1%27%20UNION%20SELECT%20password%20FROM%20users--%20%3Cscript%3Ealert(1)%3C/script%3E";
    let padding = "%01%22%FFx".repeat(300);
    let form: Vec<String> = (0..40).map(|number| format!("p{number}={attack}{padding}")).collect();
    for body in [format!("comment={attack}"), form.join("&")] {
        assert_eq!(served.post("/posts", "application/x-www-form-urlencoded", body).status(), 403);
    }
    let lines = served.events(2);
    // One attack; and the most that a client can make of it.
    assert!(lines[0].len() < 6 << 10, "{} bytes", lines[0].len());
    assert!(lines[1].len() < 16 << 10, "{} bytes", lines[1].len());
    for line in &lines {
        let event: Value = serde_json::from_str(line).unwrap();
        let class = event["verdict"]["class"].as_str().unwrap();
        let decided = &event["scores"]["semantic"][0];
        assert_eq!((&decided["outcome"], &decided["class"]), (&"blocked".into(), &class.into()));
        let of_value = |finding: &&Value| {
            finding["class"] == class
                && finding["place"] == decided["place"]
                && finding["name"] == decided["name"]
        };
        assert!(event["findings"].as_array().unwrap().iter().any(|finding| of_value(&finding)), "{event}");
        let named = |list: &str| event[list].as_array().map_or(0, Vec::len);
        assert!(named("matches") + named("also_matched") >= 4, "{event}");
    }
    let first: Value = serde_json::from_str(&lines[0]).unwrap();
    let named = |list: &str| first[list].as_array().map_or(0, Vec::len);
    assert_eq!(named("matches") + named("also_matched"), 60);
    // A line for each rule of the first, and for each match of the second that was kept.
    let id = first["request_id"].as_str().unwrap();
    let log = crate::served::lines(&served.folder.path().join("error.log"), 61 + 200);
    let of_first: Vec<&String> = log.iter().filter(|line| line.contains(id)).collect();
    assert!((1000..1060).all(|rule| of_first.iter().any(|line| line.contains(&format!("[id \"{rule}\"]")))));
}
