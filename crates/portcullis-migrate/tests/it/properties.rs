//! Whatever the configuration: it ends, without a panic; what is written is a valid document; and every
//! directive stands in the report once.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

use portcullis_migrate::{From, Migrated, Options, migrate};
use proptest::prelude::*;

use crate::generated::*;

fn run(from: From, name: &str, text: &str) -> Result<Migrated, String> {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join(name);
    fs::write(&path, text).unwrap();
    let options = Options { root: root.path().to_owned(), ..Options::default() };
    migrate(from, &[path], &options).map_err(|error| error.to_string())
}

/// Each of these lines, and no other, is in the report once; or there is an error that is not ours.
fn check(from: From, name: &str, text: &str, lines: Vec<usize>) -> Result<(), TestCaseError> {
    match run(from, name, text) {
        Ok(migrated) => {
            let expected: BTreeMap<usize, usize> = lines.into_iter().map(|line| (line, 1)).collect();
            prop_assert_eq!(reported(&migrated), expected, "{}", text);
        }
        Err(error) => prop_assert!(!error.contains("a mistake of ours"), "{}\n{}", error, text),
    }
    Ok(())
}

/// The number of directives of each line in the report.
fn reported(migrated: &Migrated) -> BTreeMap<usize, usize> {
    let mut lines = BTreeMap::new();
    for item in &migrated.report.items {
        let (_, line) = item.place.rsplit_once(':').unwrap();
        *lines.entry(line.parse().unwrap()).or_default() += 1;
        assert!(!item.note.is_empty(), "{item:?}");
    }
    lines
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn every_directive_of_nginx_is_reported_once(inner in items()) {
        let (mut text, mut lines) = (String::new(), Vec::new());
        print(&served(inner), &mut text, &mut lines);
        // A site may have no address that can be said.
        check(From::Nginx, "nginx.conf", &text, lines)?;
    }

    #[test]
    fn every_directive_of_apache_is_reported_once(inner in sections()) {
        let (mut text, mut lines) = (String::new(), Vec::new());
        text.push_str("Listen 8081\n<VirtualHost *:8081>\nServerName sure.example\nProxyPass / http://127.0.0.1:9000/\n");
        lines.extend(1..=4);
        print_apache(&inner, &mut text, &mut lines);
        text.push_str("</VirtualHost>\n");
        print_apache(&inner, &mut text, &mut lines);
        check(From::Apache, "apache2.conf", &text, lines)?;
    }

    /// What a macro stands for is read as if it were written where it is used.
    #[test]
    fn a_macro_is_its_text(inner in sections()) {
        let begin = "Listen 8081\n<VirtualHost *:8081>\nServerName sure.example\nProxyPass / http://127.0.0.1:9000/\n";
        let (mut lines, mut body) = (String::new(), Vec::new());
        print_apache(&inner, &mut lines, &mut body);
        let with = lines.replace("/a", "$place");
        let by_macro =
            format!("<Macro Inner $place>\n{with}</Macro>\n{begin}uSe INNER /a\n</VirtualHost>\n");
        let written = format!("{begin}{lines}</VirtualHost>\n");
        let document = |text: &str| run(From::Apache, "apache2.conf", text).map(|migrated| migrated.document);
        match (document(&by_macro), document(&written)) {
            (Ok(by_macro), Ok(written)) => prop_assert_eq!(by_macro, written, "{}", lines),
            (by_macro, written) => prop_assert!(by_macro.is_err() && written.is_err(), "{}", lines),
        }
    }

    #[test]
    fn every_directive_of_caddy_is_reported_once(inner in blocks()) {
        let (mut text, mut lines) = (String::new(), Vec::new());
        text.push_str("http://sure.example {\n");
        lines.push(1);
        print_caddy(&inner, &mut text, &mut lines);
        text.push_str("reverse_proxy 127.0.0.1:9000\n}\n");
        lines.push(text.matches('\n').count() - 1);
        check(From::CorazaCaddy, "Caddyfile", &text, lines)?;
    }

    #[test]
    fn every_annotation_is_reported_once(annotations in annotations(), keys in annotations()) {
        let mut text = "kind: Ingress\nmetadata:\n  name: a\n  annotations:\n    other: x\n".to_owned();
        let mut lines = vec![1, 5];
        for (name, value) in &annotations {
            lines.push(text.matches('\n').count() + 1);
            let _ = writeln!(text, "    nginx.ingress.kubernetes.io/{name}: {value:?}");
        }
        text.push_str("spec:\n  rules:\n    - host: a.example\n      http:\n        paths:\n");
        lines.push(text.matches('\n').count() - 2);
        text.push_str("          - { path: /x(.*), backend: { service: { name: s, port: { number: 80 } } } }\n");
        lines.push(text.matches('\n').count());
        text.push_str("---\nkind: ConfigMap\ndata:\n  ssl-redirect: \"false\"\n");
        lines.extend([text.matches('\n').count() - 2, text.matches('\n').count()]);
        for (name, value) in keys.iter().filter(|(name, _)| **name != "ssl-redirect") {
            lines.push(text.matches('\n').count() + 1);
            let _ = writeln!(text, "  {name}: {value:?}");
        }
        check(From::IngressNginx, "all.yaml", &text, lines)?;
    }

    #[test]
    fn every_setting_of_bunkerweb_is_reported_once(settings in settings()) {
        let mut text = "SERVER_NAME=sure.example\nUSE_REVERSE_PROXY=yes\nREVERSE_PROXY_HOST=http://a:80\n".to_owned();
        for (prefix, name, suffix, value) in settings {
            let _ = writeln!(text, "{prefix}{name}{suffix}={value}");
        }
        let lines = (1..=text.matches('\n').count()).collect();
        check(From::BunkerWeb, "variables.env", &text, lines)?;
    }

    #[test]
    fn any_text_ends_without_a_panic(
        from in prop::sample::select(&From::ALL[..]),
        text in "(?s)(http|server|location|listen 80|proxy_pass http://a|[ \n;{}\"'#$\\\\]|.){0,60}") {
        let name = if from == From::IngressNginx { "a.yaml" } else { "a" };
        if let Err(error) = run(from, name, &text) {
            prop_assert!(!error.contains("a mistake of ours"), "{}\n{}", error, text);
        }
    }
}
