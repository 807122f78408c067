//! The list of rules that ModSecurity 2 loads, shown to ModSecurity 2: what `portcullis-compile` promises to
//! load is what Apache does.
//!
//! Left out where Apache or its module is not installed; required where `CI` is set.

use std::path::Path;
use std::process::Command;

const LIST: &str = include_str!("../../../portcullis-compile/tests/loads/modsecurity2.txt");
const APACHE: &str = "/usr/sbin/apache2";
const MODULES: &str = "/usr/lib/apache2/modules";

#[test]
fn apache_loads_the_list() {
    if !Path::new(APACHE).exists() || !Path::new(MODULES).join("mod_security2.so").exists() {
        assert!(std::env::var_os("CI").is_none(), "install apache2 and libapache2-mod-security2");
        return eprintln!("left out: apache2 with libapache2-mod-security2 is not installed");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("empty.txt"), "").unwrap();
    std::fs::write(path("t.lua"), "function main()\n  return nil\nend\n").unwrap();
    let mut start =
        format!("ServerRoot {0}\nServerName localhost\nErrorLog {0}/error.log\n", folder.path().display());
    for module in ["mpm_event", "authz_core", "unique_id", "security2"] {
        let file = Path::new(MODULES).join(format!("mod_{module}.so"));
        if file.exists() {
            start.push_str(&format!("LoadModule {module}_module {}\n", file.display()));
        }
    }
    let mut refused = Vec::new();
    for line in LIST.lines().filter(|line| !line.starts_with('#')) {
        let rules = line[2..].replace(" ++ ", "\n").replace("FOLDER", &folder.path().to_string_lossy());
        std::fs::write(path("rules.conf"), rules + "\n").unwrap();
        std::fs::write(path("httpd.conf"), format!("{start}Include {}\n", path("rules.conf").display()))
            .unwrap();
        let out = Command::new(APACHE).arg("-t").arg("-f").arg(path("httpd.conf")).output().unwrap();
        if !out.status.success() {
            refused.push(format!("{line}\n{}", String::from_utf8_lossy(&out.stderr)));
        }
    }
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}
