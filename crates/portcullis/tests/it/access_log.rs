//! The access log of the real program: a line for each request, files that are put aside, a full disk.

use crate::served::*;
use portcullis_testkit::process::{Signal, signal};
use serde_json::Value;

fn deny() -> String {
    rules("SecRule REQUEST_URI \"@contains attack\" \"id:1,phase:1,deny,nolog\"")
}

#[test]
fn a_line_for_each_request() {
    let application = application(|_| says("hello"));
    let more = "[[sites]]\nname = \"plain\"\nhosts = [\"plain\"]\nupstream = \"app\"\nmode = \"off\"\n\
         access_log = { file = \"plain.log\", format = \"combined\" }\n\
         [[sites]]\nname = \"quiet\"\nhosts = [\"quiet\"]\nupstream = \"app\"\naccess_log = { enabled = false }\n\
         [access_log]\nfile = \"access.json\"\n";
    let site = format!("{}\nrate_limits = [{{ name = \"few\", rate = 4, per = \"1h\" }}]", deny());
    let served = Served::start_site(&application, &site, more);
    let ask = |host: &str, target: &str| {
        let head = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: test \"1\"\r\n");
        served.raw(format!("{head}Referer: http://a/?token=secret1\r\nConnection: close\r\n\r\n"))
    };
    served.raw("GET / HTTP/1.1\r\nbad header\r\n\r\n");
    for target in ["/hello?password=hunter2", "/attack", "/", "/limited"] {
        ask("a", target);
    }
    ask("quiet", "/");
    ask("plain", "/x");

    let file = served.folder.path().join("access.json");
    let lines_now: Vec<Value> =
        lines(&file, 5).iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let shown = |line: &Value| {
        let member = |name: &str| line[name].to_string();
        format!("{} {} {}", member("path"), member("status"), member("verdict"))
    };
    let expected = [
        "\"/\" 400 \"refuse\"",
        "\"/hello?password=[redacted]\" 200 \"pass\"",
        "\"/attack\" 403 \"deny\"",
        "\"/\" 200 \"pass\"",
        "\"/limited\" 429 \"deny\"",
    ];
    assert_eq!(lines_now.iter().map(shown).collect::<Vec<_>>(), expected);
    let first = &lines_now[1];
    assert_eq!(first["upstream"], application.address().to_string());
    assert_eq!((&first["bytes"], &first["client"]), (&5.into(), &"127.0.0.1".into()));
    assert_eq!((&first["site"], &first["method"]), (&"site".into(), &"GET".into()));
    assert_eq!(first["referer"], "http://a/?token=[redacted]");
    assert_eq!(first["request_id"].as_str().unwrap().len(), 32);
    assert!(first["duration_us"].as_u64().unwrap() > 0);
    assert_eq!(lines_now[2]["upstream"], Value::Null);
    assert_eq!(lines_now[4]["control"]["name"], "few");
    let line = lines(&served.folder.path().join("plain.log"), 1).remove(0);
    assert!(line.starts_with("127.0.0.1 - - ["), "{line}");
    let end = "\"GET /x HTTP/1.1\" 200 5 \"http://a/?token=[redacted]\" \"test \\x221\\x22\"";
    assert!(line.ends_with(end), "{line}");
    let written = format!("portcullis_access_log_written_total{{file=\"{}\"}}", file.display());
    served.counts(&written, 5.0);

    // Put aside and opened again, without a line lost.
    let aside = served.folder.path().join("access.json.1");
    std::fs::rename(&file, &aside).unwrap();
    signal(served.id(), Signal::USR1).unwrap();
    until(|| file.exists());
    served.raw("GET /later HTTP/1.1\r\nHost: other\r\nConnection: close\r\n\r\n");
    assert!(lines(&file, 1)[0].contains("\"path\":\"/later\""));
    let folder = served.stop();
    assert_eq!(lines(&folder.path().join("access.json.1"), 5).len(), 5);
}

#[test]
fn a_full_disk_costs_lines_and_no_requests() {
    let application = application(|_| says("hello"));
    let more = "[access_log]\nfile = \"/dev/full\"\n";
    let served = Served::start_site(&application, &deny(), more);
    for _ in 0..20 {
        assert_eq!(served.get("/").status(), 200);
    }
    let lost = "portcullis_access_log_dropped_total{file=\"/dev/full\",reason=\"disk_full\"}";
    until(|| served.metric(lost) >= 20.0);
    served.stop();
}

#[test]
fn bytes_are_those_that_the_client_got() {
    let text = "The quick brown fox jumps over the lazy dog. ".repeat(2000);
    let application = application(move |_| {
        let headers = vec![("Content-Type".to_owned(), "text/css".to_owned())];
        Response { headers, ..says(text.clone()) }
    });
    let more = "[access_log]\nfile = \"access.json\"\n";
    let served = Served::start_site(&application, "mode = \"off\"\ncompression = {}", more);
    served.raw("GET / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\nConnection: close\r\n\r\n");
    served.raw("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    let lines = lines(&served.folder.path().join("access.json"), 2);
    let bytes = |line: &str| serde_json::from_str::<Value>(line).unwrap()["bytes"].as_f64().unwrap();
    let coded = served.metric("portcullis_compression_bytes_out_total{site=\"site\",coding=\"gzip\"}");
    assert_eq!((bytes(&lines[0]), bytes(&lines[1])), (coded, 90_000.0));
    assert!(coded > 0.0 && coded < 2000.0, "{coded}");
    served.stop();
}
