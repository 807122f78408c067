//! Bans in the real program: attack, be banned, be listed, be let in again; and over a restart.

use std::process::Command;

use crate::served::*;

fn bans(arguments: &[&str]) -> (bool, String) {
    let out = Command::new(program()).arg("bans").args(arguments).output().unwrap();
    let text = [out.stdout, out.stderr].concat();
    (out.status.success(), String::from_utf8(text).unwrap())
}

#[test]
fn from_attack_to_ban_and_back() {
    let application = application(|_| says("hello"));
    let site = format!(
        "{}\nban = {{ score = 30, duration = \"1h\" }}",
        rules("SecRule REQUEST_URI \"@contains attack\" \"id:1,phase:1,deny,nolog\"")
    );
    let served = Served::start_site(&application, &site, "");
    let admin = served.admin.to_string();
    let config = served.folder.path().join("portcullis.toml").display().to_string();
    assert_eq!(bans(&["--admin", &admin]), (true, "no client is banned\n".into()));
    for _ in 0..3 {
        assert_eq!(served.get("/attack").status(), 403);
    }
    assert_eq!(served.get("/").status(), 403);
    let (ok, text) = bans(&["--config", &config, "list"]);
    let line = text.lines().nth(1).unwrap_or_default();
    assert!(ok && line.starts_with("127.0.0.1 ") && line.contains(" site "), "{text}");
    let (ok, text) = bans(&["--admin", &admin, "list", "--json"]);
    let page: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert!(ok && page["bans"][0]["client"] == "127.0.0.1" && page["bans"][0]["count"] == 1, "{text}");
    assert_eq!(
        bans(&["--admin", &admin, "lift", "192.0.2.1"]),
        (false, "error: 192.0.2.1 is not banned\n".into())
    );
    assert_eq!(
        bans(&["--admin", &admin, "lift", "127.0.0.1", "--ban", "site"]).1,
        "the ban of 127.0.0.1 is lifted\n"
    );
    assert_eq!(served.get("/").status(), 200);
    assert!(!bans(&["--admin", &admin, "lift", "somebody"]).0);
    // By hand, whatever it did.
    assert_eq!(
        bans(&["--admin", &admin, "add", "127.0.0.1", "--for", "10m"]),
        (true, "127.0.0.1 is banned for 600 s\n".into())
    );
    assert_eq!(served.get("/").status(), 403);
    // A shorter one takes nothing from it.
    assert!(bans(&["--admin", &admin, "add", "127.0.0.1", "--for", "5s"]).0);
    let page: serde_json::Value =
        serde_json::from_str(&bans(&["--admin", &admin, "list", "--json"]).1).unwrap();
    assert!(page["bans"][0]["seconds_left"].as_u64().unwrap() > 60, "{page}");
    assert!(bans(&["--admin", &admin, "lift", "127.0.0.1"]).0);
    assert_eq!(served.get("/").status(), 200);
    let (ok, text) = bans(&["--admin", &admin, "add", "127.0.0.1", "--ban", "nowhere"]);
    assert!(!ok && text.contains("is not banned"), "{text}");
    served.stop();
    assert!(!bans(&["--admin", &admin]).0, "nobody answers any more");
}
