//! Settings that contradict each other, or name what is not there.

use portcullis_binding::Settings;

#[test]
fn mistakes_say_what_to_do() {
    let text = |text: &str| Some(text.to_owned());
    let wrong = [
        (Settings { mode: text("semantik"), ..Settings::default() }, "semantic, crs or both"),
        (Settings { level: text("strickt"), ..Settings::default() }, "balanced or strict"),
        (Settings { mode: text("both"), ..Settings::default() }, "needs rules"),
        (Settings { paranoia: Some(2), ..Settings::default() }, "does not read the CRS"),
        (Settings { document: Some("/nonexistent/a.toml".into()), ..Settings::default() }, "no such file"),
        (
            Settings { document: Some("a.toml".into()), mode: text("crs"), ..Settings::default() },
            "leave them out here",
        ),
        (
            Settings { document: Some("a.toml".into()), fail_open: true, ..Settings::default() },
            "comes from a document",
        ),
        (Settings { directives: text("SecRule ARGS \"@rx (\" \"id:1\""), ..Settings::default() }, ":1:"),
    ];
    for (settings, expected) in wrong {
        let error = settings.open().map(|_| ()).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn rules_alone_are_a_policy_without_the_detector() {
    let directives = Some("SecRule ARGS \"@streq bad\" \"id:1,phase:1,deny\"".to_owned());
    assert!(Settings { directives, ..Settings::default() }.open().is_ok());
    assert!(Settings::default().open().is_ok());
}
