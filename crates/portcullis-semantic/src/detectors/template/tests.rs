use crate::detectors::testing::look;
use crate::{Class, Place};

fn run(text: &str) -> (String, bool) {
    look(Class::Template, Place::Form, "text", text.as_bytes())
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
fn probes() {
    for text in [
        "{{7*7}}",
        "${7*7}",
        "#{7*7}",
        "<%= 7 * 7 %>",
        "{{7*'7'}}",
        "${{7*7}}",
        "*{7*7}",
        "@(6+5)",
        "{{ 31337 * 2 }}",
        "[[7*7]]",
        "abc{{9-1}}def",
        "${{3*3}}",
        "{233*233}",
        "{% print 7*7 %}",
        "{{364|add:733}}",
    ] {
        attack(text, "arithmetic");
    }
    attack("a{*comment*}b", "comment-probe");
    attack("${{<%[%'\"}}%\\", "polyglot");
}

#[test]
fn engines() {
    attack("{{ ''.__class__.__mro__[2].__subclasses__() }}", "literal-member code");
    attack("{{config.__class__.__init__.__globals__['os'].popen('ls').read()}}", "object code");
    attack("{{request|attr('__class__')}}", "attribute");
    attack("{{['id']|filter('system')}}", "filter");
    attack("{{_self.env.registerUndefinedFilterCallback('exec')}}", "code filter");
    attack("${\"freemarker.template.utility.Execute\"?new()(\"id\")}", "builtin");
    attack("<#assign ex='freemarker.template.utility.Execute'?new()>${ex('id')}", "builtin");
    attack("#set($e=$x.getClass().forName('java.lang.Runtime'))", "code velocity-set");
    attack("{$smarty.version}", "smarty");
    attack("{php}echo `id`;{/php}", "php-block");
    attack("<%= system('id') %>", "code");
    attack("<%= `ls /` %>", "code");
    attack("${T(java.lang.Runtime).getRuntime().exec('id')}", "code");
    attack("__${new java.util.Scanner(x).next()}__::.x", "preprocessing");
    attack("{% import os %}{{os.system('id')}}", "import code");
    attack("{{constructor.constructor('x')()}}", "code");
    attack("#{root.process.mainModule.require('child_process').spawnSync('id')}", "code");
}

#[test]
fn variables_are_no_attack() {
    for text in [
        "Hi {{first_name}}, your order #{{order.id}} ships {{ship_date | date: \"%B %d\"}}",
        "{{ user.name | upper }}",
        "Dear ${customer.name}, total: ${order.total}",
        "${{ github.ref }} and ${{ secrets.TOKEN }}",
        "<%= user.name %> joined",
        "{% if user %}Welcome{% endif %}",
        "{{Infobox person|name=Ada|born={{birth date|1815|12|10}}}}",
        "[[Template:Infobox|name=Foo]]",
        "{app=\"nginx\"} |= \"error\" | json | line_format \"{{.msg}}\"",
        "@media (max-width: 600px) { .a { display: none } }",
        "console.log(`v=${v}`)",
        "\\frac{a}{b} \\sum_{i=1}^n x_i",
        "{{ 'cart.title' | t }}",
        "{{> partial}} {{#each items}}{{this.name}}{{/each}}",
        "{{ _(\"Welcome\") }} {{ url_for('index') }}",
        "#{count} items",
        "{\"a\":{\"b\":[1,2]}}",
        "[[2024-05-01]]",
        "x{2,3}y{4}",
    ] {
        let (have, blocks) = run(text);
        assert!(!blocks, "{text}: {have}");
    }
}

/// Spaces and the numbers do not matter.
#[test]
fn mutations_keep_a_detection() {
    for (open, close) in
        [("{{", "}}"), ("${", "}"), ("#{", "}"), ("<%=", "%>"), ("*{", "}"), ("@(", ")"), ("${{", "}}")]
    {
        for space in ["", " ", "\t", "  "] {
            for sum in ["7*7", "13 * 37", "99+1", "8-3", "(2)*(3)", "4*4*4", "6/2+1"] {
                let text = format!("{open}{space}{sum}{space}{close}");
                let (have, blocks) = run(&text);
                assert!(blocks, "{text}: {have}");
            }
        }
    }
}

#[test]
fn hostile_texts_end() {
    for unit in ["{{", "${", "{%", "<%", "{{'a'.", "#set(", "{{7*", "@(", "{*", "{1", "{{a|b("] {
        run(&unit.repeat(10_000));
    }
}

#[test]
fn files_and_what_engines_tell_of_themselves() {
    attack("{% include '/etc/passwd' %}", "shell-text");
    attack("{fetch file=\"/etc/passwd\"}", "shell-text");
    attack("#parse(\"/etc/passwd\")", "shell-text");
    attack("${.data_model}", "object object-call");
    attack("{{request.environ}}", "object object-call");
    attack("{{'a'*5}}", "arithmetic");
    attack("{Smarty_Internal_Write_File::writeFile('x.php','',self::clearConfig())}", "code");
    for text in [
        "{{#each items}}<li>{{this}}</li>{{/each}}",
        "${.now}",
        "{% include 'a.html' %}",
        "{include file=\"a.tpl\"}",
    ] {
        let (have, blocks) = run(text);
        assert!(!blocks, "{text}: {have}");
    }
}

/// White space, the marks that take it away, the sort of quotes and text around an expression keep the
/// detection.
#[test]
fn what_engines_do_not_care_about() {
    let inner = [
        "7*7",
        "config.items()",
        "''.__class__.__mro__",
        "['id']|map('system')",
        "cycler.__init__.__globals__.os.popen('id').read()",
    ];
    for inner in inner {
        let forms = [
            format!("{{{{{inner}}}}}"),
            format!("{{{{  {inner}  }}}}"),
            format!("{{{{\n{inner}\n}}}}"),
            format!("{{{{- {inner} -}}}}"),
            format!("{{{{~ {inner} ~}}}}"),
            format!("hello {{{{{inner}}}}} world"),
            format!("{{{{{}}}}}", inner.replace('\'', "\"")),
            format!("{{%print({inner})%}}"),
        ];
        for form in forms {
            let (have, blocks) = run(&form);
            assert!(blocks, "{form}: {have}");
        }
    }
    for (open, close) in [("${", "}"), ("#{", "}"), ("*{", "}"), ("<%= ", " %>"), ("@(", ")"), ("~{", "}")] {
        for inner in ["7*7", " 7 * 7 ", "7\n*\n7"] {
            let form = format!("{open}{inner}{close}");
            let (have, blocks) = run(&form);
            assert!(blocks, "{form}: {have}");
        }
    }
}

#[test]
fn probes_of_variables() {
    attack("{{ someString.toUpperCase() }}", "call method whole");
    attack("{{= _.VERSION}}", "object");
    attack("{% set cmd = 'id' %}", "directive shell-text");
    attack("%{#a=1}", "code");
    for text in [
        "Dear {{ user.first_name }},\n{% if order %}Order #{{ order.id }}{% endif %}\nBye",
        "${{ github.ref }} {{ x }}",
        "{% set title = 'Home' %}",
        "${#dates.format(now)}",
    ] {
        let (have, blocks) = run(text);
        assert!(!blocks, "{text}: {have}");
    }
}

#[test]
fn conditions_of_constants_and_names_of_dotnet() {
    use crate::detectors::testing::{blocks, passes_at};
    for text in [
        "{% if 1 == 1 %}x{% endif %}",
        "{% if 'a' != 'b' %}x{% endif %}",
        "<%! import os %>",
        "{% load log %}{% get_admin_log 10 as log %}",
        "@System.IO.File.ReadAllText(\"/etc/passwd\")",
        "{{this.constructor}}",
        "@(System.IO.File.ReadAllText(\"x\"))",
    ] {
        blocks(Class::Template, text, "");
    }
    for text in ["{% if page == 1 %}x{% endif %}", "{{race.constructor}}", "me@System.example", "${a.class}"]
    {
        passes_at(Class::Template, Place::Query, "q", text);
    }
}

/// What engines keep their inside in is shown as a whole by an expression of any form.
#[test]
fn engine_objects_as_operands() {
    for text in [
        "{{ config|pprint }}",
        "{{ config|dictsort }}",
        "{% with a=config %}{{ a }}{% endwith %}",
        "{% set a=config %}{{ a }}",
        "{% print(config) %}",
        "{{ (config) }}",
        "{{ config, }}",
        "{{ dict(config) }}",
        "{{ config or 1 }}",
        "{% for k in config %}{{ k }}{% endfor %}",
        "{{ not config }}",
        "<%= ENV %>",
        "{{ 1 | plus: 1 }}",
        "{var_dump($this)}",
        "{{ request|string }}",
        "{{ [config]|first }}",
        "{{ [lipsum]|map(attribute=request.args.a~request.args.b)|list }}",
        "{{ (1)[request.args.a] }}",
        "{% include request.args.a %}",
        "{{ range(99999999)|list }}",
        "{{ 'x'|center(999999999) }}",
        "{% for a in range(9999) %}{% for b in range(9999) %}x{% endfor %}{% endfor %}",
        "{% for i in 1..99999999 %}x{% endfor %}",
        "#foreach($i in [1..99999999])x#end",
    ] {
        let (have, blocks) = look(Class::Template, Place::Form, "name", text.as_bytes());
        assert!(blocks, "{text}: {have}");
    }
    for text in [
        "{{ config(materialized='table') }}",
        "{{ config.title }} {{ site.config.url }}",
        "{% if config %}x{% endif %}",
        "{{ app.name|upper }} {{ user.config }}",
        "{{ messages|length }}",
        "{% for i in range(10) %}{{ i }}{% endfor %}",
        "{{ article(12345678) }}",
        "{{ page(config='a') }}",
    ] {
        let (have, blocks) = look(Class::Template, Place::Form, "text", text.as_bytes());
        assert!(!blocks, "{text}: {have}");
    }
}

/// An expression is a program of the language below the engine, and may reach all of it.
#[test]
fn programs_in_expressions() {
    for text in [
        "{{ open('config.php').read() }}",
        "{% for x in open('config.php') %}{{x}}{% end %}",
        "${python: open('config.php').read()}",
        "<p tal:content=\"python:open('config.php').read()\"/>",
        "<%= ENV.to_h %>",
        "<%= File.read \"config.php\" %>",
        "<%= Dir[\"*\"] %>",
        "<% Dir.glob('*').each do |f| %><%= f %><% end %>",
        "#{File.read('x')}",
        "{{ constant('DB_PASSWORD') }}",
        "{{ source('config.php') }}",
        "{{ ['config.php']|map('readfile')|join }}",
        "{{ ['SECRET']|map('getenv')|join }}",
        "{=getenv('SECRET')}",
        "{!! env('APP_KEY') !!}",
        "[=7*7]",
        "%import os\n{{os.environ}}",
        "\\immediate\\write18{touch x}",
    ] {
        let (have, blocks) = look(Class::Template, Place::Form, "name", text.as_bytes());
        assert!(blocks, "{text}: {have}");
    }
    for text in [
        "{{ asset('css/app.css') }} {{ url('/img/x.png') }}",
        "{{ items|map('upper')|join }}",
        "<%= image_tag 'logo.png' %>",
        "${file.name} ${env}",
        "{{ t('cart.title') }}",
        "{{ source('header.twig') }}",
        "[=] equals",
        "100 %import duty",
        "{=name}",
    ] {
        let (have, blocks) = look(Class::Template, Place::Form, "text", text.as_bytes());
        assert!(!blocks, "{text}: {have}");
    }
}

/// A placeholder of one word prints one object; what lies below it is another matter, and a page's query has
/// no placeholders.
#[test]
fn placeholders_of_one_word() {
    for text in [
        "Answer with the context below.\n\n{{context}}",
        "${request}",
        "<svg class=\"icon {{ class }}\">",
        "Dear {{application}}, see {{session}} and {{ application.name }}",
    ] {
        for name in ["prompt", "name", "body"] {
            let (have, blocks) = look(Class::Template, Place::Json, name, text.as_bytes());
            assert!(!blocks, "{name}={text}: {have}");
        }
    }
    for text in [
        "{{config}}",
        "{{self.__dict__}}",
        "{{_self.env}}",
        "{{settings.SECRET_KEY}}",
        "{{request.application.__globals__}}",
        "{{application.__init__}}",
        "${class.getClassLoader()}",
        "{{lipsum.__globals__}}",
        "{{cycler.__init__.__globals__}}",
    ] {
        let (have, blocks) = look(Class::Template, Place::Json, "name", text.as_bytes());
        assert!(blocks, "{text}: {have}");
    }
    assert!(look(Class::Template, Place::Query, "q", b"{{request}}").1);
    for (name, blocks) in [("promo_code", true), ("utm_source", true), ("source", false)] {
        assert_eq!(look(Class::Template, Place::Form, name, b"{{7*7}}").1, blocks, "{name}");
    }
}

#[test]
fn filters_directives_and_lookups() {
    use crate::detectors::testing::{blocks, passes_at};
    for text in [
        "{{ (([lipsum]|map(attribute='__glo''bals__.os.popen')|first)('id')).read() }}",
        "{% for p in [lipsum]|map(attribute='__globals__.os.popen') %}{{p('id').read()}}{% endfor %}",
        "{\"id\"|system}",
        "{'id'|@system}",
        "{['id']|@array_map:'system'}",
        "{math equation='(\"\\163\\171\\163\\164\\145\\155\")(\"\\151\\144\")'}",
        "{function name='rce(){};x(\"id\");function '}{/function}",
        "#evaluate($request.getParameter(\"a\"))",
        "[% INCLUDE /etc/passwd %]",
        "[%- INSERT \"../../etc/passwd\" -%]",
        "[% PERL %] system 'id'; [% END %]",
        "{{ lookup('pipe','id') }}",
        "{{ query('ansible.builtin.pipe', 'id') }}",
    ] {
        blocks(Class::Template, text, "");
        assert!(look(Class::Template, Place::Json, "name", text.as_bytes()).1, "{text}");
    }
    for text in [
        "{name|upper}",
        "{\"a b\"|upper}",
        "{['a','b']|join}",
        "{{ items|map(attribute='name')|join(', ') }}",
        "[% name %]",
        "[% INCLUDE header title='x' %]",
        "100 [%] of [%d] %]",
        "#include <stdio.h>",
        "{math equation='x + y' x=1 y=2}",
        "{function name='menu'}",
        "{function name(a) { return a }}",
        "{{ lookup('env','HOME') }}",
        "{[a]: 'b'}|{[c]: 'd'}",
    ] {
        passes_at(Class::Template, Place::Json, "name", text);
        passes_at(Class::Template, Place::Form, "text", text);
    }
}

/// What an engine keeps is shown by no field's name: a template computes, and has no use for it.
#[test]
fn objects_in_fields_for_templates() {
    for text in ["{{config}}", "<pre>{{config}}</pre>", "{{self}}"] {
        let (have, is_blocked) = look(Class::Template, Place::Json, "template", text.as_bytes());
        assert!(is_blocked, "{text}: {have}");
    }
    for text in ["{{ 7*7 }}", "{{ config.title }}", "Dear {{ user.name }}"] {
        let (have, is_blocked) = look(Class::Template, Place::Json, "template", text.as_bytes());
        assert!(!is_blocked, "{text}: {have}");
    }
}

/// Terms and comments without effect hide nothing in an expression, at whatever length.
#[test]
fn padded_expressions() {
    for times in [1, 100, 3_000] {
        for text in [
            format!("{{{{{}config}}}}", "0 or ".repeat(times)),
            format!("<%=/*{}*/process.env.SECRET%>", "rows ".repeat(times)),
            format!("${{{}T(java.lang.Runtime).getRuntime()}}", "'a'+".repeat(times)),
            format!("{{#{}#}}{{{{config|string}}}}", "rows ".repeat(times)),
        ] {
            let (have, is_blocked) = look(Class::Template, Place::Form, "name", text.as_bytes());
            assert!(is_blocked, "{times}: {have}");
        }
    }
    for text in ["{% include 'config.php' %}", "<#assign x=7*7>${x}", "{{[7,7]|sum*6}}", "${sum(1024, 123)}"]
    {
        let (have, is_blocked) = look(Class::Template, Place::Form, "name", text.as_bytes());
        assert!(is_blocked, "{text}: {have}");
    }
    for text in ["{% include 'header.html' %}", "{% set x = y %}", "${sum(a, b)}"] {
        let (have, is_blocked) = look(Class::Template, Place::Form, "name", text.as_bytes());
        assert!(!is_blocked, "{text}: {have}");
    }
}

/// A program that typesets a text with TeX opens what it names, in a field for text above all.
#[test]
fn files_of_tex() {
    let blanks = format!("\\input{}/etc/group", " ".repeat(200));
    for text in [
        &blanks,
        "\\input{/etc/passwd}",
        "\\input{%\n/etc/group}",
        "\\input % a\n % b\n {/etc/group}",
        "\\include{../../../../etc/passwd}",
        "Text \\lstinputlisting[language=C]{/proc/self/environ} text",
        "\\newread\\f\\openin\\f=/etc/passwd\\loop\\read\\f to\\l\\l\\repeat",
        "\\openout5=/var/www/x.php",
        "\\verbatiminput{/root/.ssh/id_rsa}",
        "\\input|\"id\"",
        "\\input{|id}",
        "\\input /etc/hosts ",
        "\\immediate\\write18{id}",
    ] {
        let (have, blocks) = look(Class::Template, Place::Json, "description", text.as_bytes());
        assert!(blocks, "{text}: {have}");
    }
    for text in [
        "\\input{chapters/intro}",
        "\\input{../preamble.tex}",
        "\\include{results}",
        "\\input{/home/ann/thesis/preamble}",
        "\\input{/usr/share/texmf/tex/plain.tex}",
        "\\includegraphics[width=5cm]{/var/figures/a.png}",
        "\\lstinputlisting[language=Python]{code/a.py}",
        "\\openin5=data.txt",
        "\\usepackage[utf8]{inputenc}",
        "C:\\include\\etc",
        "use \\input{file} to take in a file",
        "\\verbatiminput{src/main.rs}",
    ] {
        let (have, blocks) = look(Class::Template, Place::Json, "description", text.as_bytes());
        assert!(!blocks, "{text}: {have}");
    }
}

/// Perl computes lists in its texts.
#[test]
fn lists_in_texts_of_perl() {
    for text in [
        "@{[`id`]}",
        "Total: @{[ `cat x` ]} items",
        "Hi @{[readpipe 'id']}",
        "@{[map{open F,$_;<F>}'config.php']}",
        "a @{[system('id')]} b",
    ] {
        for name in ["description", "name", "template"] {
            let (have, blocks) = look(Class::Template, Place::Json, name, text.as_bytes());
            assert!(blocks, "{name}={text}: {have}");
        }
    }
    for text in [
        "print \"Total: @{[ $a + $b ]}\\n\";",
        "@{[ scalar @list ]} items",
        "@{[ map { $_->name } @items ]}",
        "\"@{[ join ', ', sort keys %h ]}\"",
        "@{[]}",
        "`@{[`",
        "@{items}",
        "mail me @{[home]}",
        "@{[ $open ? 'yes' : 'no' ]}",
        "@{[ uc $name ]} and `code`",
        "@media{[a]}",
    ] {
        let (have, blocks) = look(Class::Template, Place::Json, "description", text.as_bytes());
        assert!(!blocks, "{text}: {have}");
    }
}
