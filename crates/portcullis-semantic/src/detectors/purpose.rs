//! What a field is for, as its name tells: `rawSql`, `settings[webhook_url]`, `user.password`.
//!
//! A name proves nothing: these are the few cases in which the same text is an attack in one field and the
//! reason for another. Only bodies count where a form or an API edits settings; what comes in a query string
//! is for the page.

mod settings;

pub(super) use self::settings::{
    is_bare_path, lists_words, names_address, names_own_file, names_server, takes_configuration,
    takes_markup, takes_step, takes_title,
};
use crate::{Class, Location, Place};

/// The field takes whole SQL statements: the editor of a database, a report or an alert.
pub(crate) fn takes_statements(location: Location<'_>) -> bool {
    let part = last_part(location.name);
    is_of_field(location.place) && has_word(part, STATEMENT_WORDS)
        || is_of_body(location.place) && (has_word(part, EDITOR_WORDS) || is_attribute(location))
}

/// The value of an attribute of a span or log record of OpenTelemetry, which tells what a service asked its
/// database.
fn is_attribute(location: Location<'_>) -> bool {
    const VALUES: [&[u8]; 2] = [b"value.stringValue", b"value.string_value"];
    let above = VALUES.iter().find_map(|end| location.name.strip_suffix(*end));
    location.place == Place::Json && above.is_some_and(|above| above.ends_with(b"attributes."))
}

/// The field takes conditions of a query language that is none of a database's (JQL, KQL, OData, ...): they
/// look like SQL's.
pub(super) fn takes_conditions(location: Location<'_>) -> bool {
    const LANGUAGES: &[&[u8]] = &[
        b"jql", b"kql", b"wiql", b"aql", b"nrql", b"spl", b"promql", b"logql", b"lucene", b"soql", b"cql",
        b"odata",
    ];
    let part = last_part(location.name);
    // What map and data services ask for: `where=NAME LIKE '%x%' AND POP > 100`.
    const NAMES: &[&[u8]] = &[b"$filter", b"$search", b"where"];
    // What a saved search, an alert or a rule of a settings page asks for.
    const SAVED: &[&[u8]] =
        &[b"filter", b"filters", b"condition", b"conditions", b"criteria", b"rule", b"clause"];
    is_of_field(location.place) && (has_word(part, LANGUAGES) || NAMES.contains(&part))
        || is_of_body(location.place) && has_word(part, SAVED)
}

/// What is quoted or named there is no attack of `class`: the site made the field for text or for such
/// things, or it is a document by itself: a file, or what the site answers.
pub(crate) fn may_mention(class: Class, location: Location<'_>) -> bool {
    if location.place == Place::FileContent || location.place.is_response() {
        return true;
    }
    location.name.len() <= NAME_BYTES_MAX
        && is_plain_name(location.name)
        && (takes_text(location)
            || match class {
                Class::Sqli => {
                    takes_statements(location)
                        || takes_conditions(location)
                        || takes_password(location)
                        || takes_formula(location)
                }
                Class::Ldap => takes_filters(location),
                Class::Xss => takes_code(location) || quotes_code(location) || lists_words(location),
                Class::Command => {
                    takes_code(location)
                        || takes_command_lines(location)
                        || takes_configuration(location)
                        || takes_step(location)
                }
                Class::Path => {
                    takes_code(location)
                        || takes_configuration(location)
                        || takes_step(location)
                        || takes_title(location)
                        || lists_words(location)
                }
                Class::Ssrf => takes_configuration(location) || takes_step(location),
                Class::Code => takes_code(location),
                Class::Template => takes_templates(location),
                _ => false,
            })
}

/// The field takes texts, templates, code, scripts of pages or whole statements.
pub(crate) fn takes_documents(location: Location<'_>) -> bool {
    is_of_body(location.place)
        && location.name.len() <= NAME_BYTES_MAX
        && is_plain_name(location.name)
        && (takes_text(location)
            || takes_templates(location)
            || takes_scripts(location)
            || takes_statements(location))
}

/// The site made the field of a body called `name` for what `class` looks for: addresses of services,
/// documents of set-ups, statements, code, markup; or for passwords, in which any signs stand. Rules that
/// match words say nothing there. Fields for text are none of these.
pub fn is_made_for(class: Class, name: &[u8]) -> bool {
    let location = Location::new(Place::Json, name);
    name.len() <= NAME_BYTES_MAX
        && is_plain_name(name)
        && match class {
            Class::Sqli | Class::Xss | Class::Code | Class::Command if takes_password(location) => true,
            Class::Sqli => takes_statements(location),
            Class::Xss => {
                takes_scripts(location)
                    || takes_markup(location)
                    || takes_code(location)
                    || takes_xml(location)
            }
            Class::Code => takes_code(location),
            Class::Command => {
                takes_code(location)
                    || takes_command_lines(location)
                    || takes_configuration(location)
                    || takes_step(location)
            }
            Class::Path => {
                takes_configuration(location)
                    || takes_step(location)
                    || names_own_file(location)
                    || names_own_folder(location)
            }
            Class::Ssrf | Class::RemoteFile => {
                names_address(location)
                    || names_own_service(location)
                    || takes_configuration(location)
                    || names_redirect(location)
            }
            Class::Crlf => takes_scripts(location) || takes_markup(location) || takes_headers(location),
            _ => false,
        }
}

/// No form has longer names.
const NAME_BYTES_MAX: usize = 512;

/// The field takes texts of people, in which they quote what they saw: its innermost name that says something
/// ends in a word for text (`post_content`, `bodyHtml`, `posts[0].content.rendered`, `cells.source`), and is
/// not for a search or a replacement.
pub(crate) fn takes_text(location: Location<'_>) -> bool {
    is_of_body(location.place) && is_text_name(location.name)
}

/// The field is for a document of XML: `xml`, `bpmn`, `plist`.
fn takes_xml(location: Location<'_>) -> bool {
    has_last_word(location.name, &[b"xml", b"bpmn", b"wsdl", b"xsd", b"plist"])
}

/// The field says where a login leads back to: programs for a desk or a terminal wait on the machine itself
/// (RFC 8252).
fn names_redirect(location: Location<'_>) -> bool {
    let last = last_part(location.name);
    has_word(last, &[b"redirect"]) && has_word(last, &[b"uri", b"uris", b"url", b"urls"])
}

/// The field is for a pattern: `pattern`, `regex`.
pub(super) fn takes_pattern(location: Location<'_>) -> bool {
    const PATTERNS: &[&[u8]] = &[b"pattern", b"patterns", b"regex", b"regexp", b"regexes"];
    is_of_body(location.place) && has_word(last_part(location.name), PATTERNS)
}

/// The field is for a formula of a sheet: `formula`.
pub(super) fn takes_formula(location: Location<'_>) -> bool {
    is_of_body(location.place) && has_word(last_part(location.name), &[b"formula", b"formulas", b"formulae"])
}

/// The field is for a file that an editor, a wiki or an interface to a repository keeps as it is: `content`,
/// `source_code`, `wpTextbox1`, `file.data`, `asset.value`.
pub(super) fn takes_file(location: Location<'_>) -> bool {
    takes_page(location)
        || is_of_body(location.place) && has_last_word(location.name, &[b"text", b"plaintext"])
}

/// The field is for a file, and that file may be a page.
pub(super) fn takes_page(location: Location<'_>) -> bool {
    const FILES: &[&[u8]] = &[
        b"content",
        b"contents",
        b"newcontent",
        b"filecontent",
        b"code",
        b"source",
        b"sources",
        b"file",
        b"html",
        b"markup",
        b"template",
        b"textbox1",
        b"wikitext",
        b"snippet",
        b"script",
        b"body",
        b"document",
    ];
    const OWNERS: &[&[u8]] = &[
        b"file",
        b"files",
        b"asset",
        b"assets",
        b"blob",
        b"document",
        b"template",
        b"script",
        b"snippet",
        b"content",
        b"source",
    ];
    let name = location.name;
    if !is_of_body(location.place) || name.len() > NAME_BYTES_MAX || !is_plain_name(name) {
        return false;
    }
    let mut parts = name.rsplit(|b| matches!(b, b'.' | b'[' | b']' | b'/'));
    let mut part = || parts.find(|part| part.iter().any(|b| !b.is_ascii_digit())).unwrap_or_default();
    let (last, above) = (part(), part());
    let is_part = || [&b"data"[..], b"value", b"text"].contains(&last) && has_word(above, OWNERS);
    has_last_word(name, FILES) || is_part()
}

/// The innermost name ends in a word of `list`, but for a number.
fn has_last_word(name: &[u8], list: &[&[u8]]) -> bool {
    let words = words(last_part(name)).filter(|word| !word.iter().all(u8::is_ascii_digit));
    words.last().is_some_and(|word| list.iter().any(|known| word.eq_ignore_ascii_case(known)))
}

/// Every reader takes the whole of it for the name. PHP ends names at a NUL (`id%00comment`) and behind
/// brackets (`id[]comment`).
fn is_plain_name(name: &[u8]) -> bool {
    let is_usual = |b: &u8| b.is_ascii_graphic() || *b >= 0x80;
    let is_glued = |pair: &[u8]| pair[0] == b']' && pair[1].is_ascii_alphanumeric();
    name.iter().all(is_usual) && !name.windows(2).any(is_glued)
}

fn is_text_name(name: &[u8]) -> bool {
    const PARTS_MAX: usize = 4;
    let parts = name.rsplit(|b| matches!(b, b'.' | b'[' | b']' | b'/'));
    let telling = parts.filter(|part| part.iter().any(|b| b.is_ascii_alphabetic()));
    for part in telling.take(PARTS_MAX) {
        let (mut last, mut is_of_search) = (None, false);
        for word in words(part) {
            let is_one_of = |list: &[&[u8]]| list.iter().any(|known| word.eq_ignore_ascii_case(known));
            is_of_search |= is_one_of(SEARCH_WORDS);
            // `message_2`, `content_html`, `textEn`
            let is_form = word.iter().all(u8::is_ascii_digit) || is_one_of(FORM_WORDS);
            if !is_form || is_one_of(TEXT_WORDS) {
                last = Some(is_one_of(TEXT_WORDS));
            }
        }
        match last {
            _ if is_of_search => return false,
            Some(is_text) => return is_text,
            // It says in which form something is: what it is stands above.
            None => {}
        }
    }
    false
}

/// The field takes templates: of pages, mails and reports.
pub(super) fn takes_templates(location: Location<'_>) -> bool {
    const TEMPLATES: &[&[u8]] = &[
        b"template",
        b"templates",
        b"layout",
        b"theme",
        b"partial",
        b"liquid",
        b"jinja",
        b"twig",
        b"handlebars",
        b"mustache",
        b"newcontent",
        b"tpl",
    ];
    takes_code(location) || is_of_body(location.place) && has_word(last_part(location.name), TEMPLATES)
}

/// The field holds command lines of a project: `scripts` of a package, steps of a pipeline.
pub(super) fn takes_command_lines(location: Location<'_>) -> bool {
    let last = last_part(location.name);
    let above = &location.name[..location.name.len() - last.len()];
    location.place == Place::Json
        && (last_part(above) == b"scripts"
            || !above.is_empty() && [&b"run"[..], b"entrypoint"].contains(&last))
}

/// The field takes the header fields of a message: what a browser or a proxy reports of a request.
pub(super) fn takes_headers(location: Location<'_>) -> bool {
    is_of_body(location.place) && has_word(last_part(location.name), &[b"header", b"headers"])
}

/// The field is for what people look for: they look for names of functions, too.
pub(crate) fn is_search(location: Location<'_>) -> bool {
    const SEARCHES: &[&[u8]] =
        &[b"q", b"query", b"search", b"s", b"k", b"keyword", b"keywords", b"term", b"terms", b"find"];
    has_word(last_part(location.name), SEARCHES)
}

/// The field says where files of an installation lie: `upload_dir`, `logfile`.
pub(super) fn names_own_folder(location: Location<'_>) -> bool {
    const FOLDERS: &[&[u8]] = &[
        b"dir",
        b"directory",
        b"log",
        b"logs",
        b"logfile",
        b"root",
        b"socket",
        b"mount",
        b"volume",
        b"workdir",
    ];
    is_of_body(location.place) && has_word(last_part(location.name), FOLDERS)
}

/// The value is part of what a browser reports of itself: the page, the request or the error it tells of
/// stands above it.
pub(super) fn is_of_report(location: Location<'_>) -> bool {
    const REPORTS: &[&[u8]] = &[
        b"request",
        b"view",
        b"page",
        b"document",
        b"window",
        b"context",
        b"location",
        b"report",
        b"event",
        b"breadcrumbs",
    ];
    let last = last_part(location.name);
    let above = &location.name[..location.name.len() - last.len()];
    // Where the browser is, whatever stands above it: `$current_url`, `pageUrl`.
    let is_current = || has_word(last, &[b"url"]) && has_word(last, &[b"current", b"page"]);
    location.place == Place::Json && (has_word(above, REPORTS) || is_current())
}

/// The field takes code: snippets of an editor, scripts of a page.
pub(super) fn takes_code(location: Location<'_>) -> bool {
    const CODE: &[&[u8]] = &[
        b"code",
        b"snippet",
        b"script",
        b"js",
        b"javascript",
        b"source",
        b"groovy",
        b"lua",
        b"powershell",
        b"func",
        b"newcontent",
    ];
    is_of_body(location.place) && has_word(last_part(location.name), CODE)
}

/// A browser quotes code that it did not run: the report of a content security policy.
pub(super) fn quotes_code(location: Location<'_>) -> bool {
    const SAMPLES: &[&[u8]] = &[b"script-sample", b"scriptSample", b"sample"];
    let last = last_part(location.name);
    let above = &location.name[..location.name.len() - last.len()];
    location.place == Place::Json
        && SAMPLES.contains(&last)
        && (has_word(above, &[b"report", b"body"]) || above.is_empty())
}

/// The field holds the command that something is to run, by its name.
pub(super) fn runs_commands(location: Location<'_>) -> bool {
    let is_field = matches!(location.place, Place::Query | Place::Form | Place::Header | Place::Cookie);
    is_field && names_command(location)
}

/// The field is named as one for a command, wherever it stands; an interface may mean its own.
pub(super) fn names_command(location: Location<'_>) -> bool {
    const COMMANDS: &[&[u8]] = &[b"cmd", b"command", b"exec", b"execute", b"shell"];
    has_word(last_part(location.name), COMMANDS)
}

/// The parameter of a page says which file it is about.
pub(super) fn asks_for_file(location: Location<'_>) -> bool {
    const FILES: &[&[u8]] = &[
        b"file",
        b"filename",
        b"filepath",
        b"path",
        b"template",
        b"include",
        b"download",
        b"doc",
        b"document",
    ];
    // `fileName`, `file_name`, `filePath`
    location.place == Place::Query && has_word(last_part(location.name), FILES)
}

/// The field takes what the site's pages are to have in them: a tag manager's snippet, a counter's, styles
/// and scripts of a theme.
pub(super) fn takes_scripts(location: Location<'_>) -> bool {
    const WORDS: &[&[u8]] = &[
        b"js",
        b"javascript",
        b"script",
        b"scripts",
        b"tracking",
        b"analytics",
        b"gtm",
        b"gtag",
        b"pixel",
        b"embed",
        b"injection",
        b"newcontent",
        b"snippet",
        b"snippets",
    ];
    const CODE: &[&[u8]] = &[b"code", b"html", b"tags", b"markup", b"content"];
    const PARTS: &[&[u8]] = &[b"head", b"header", b"footer", b"custom", b"body", b"theme", b"inject"];
    let last = last_part(location.name);
    is_of_body(location.place) && (has_word(last, WORDS) || has_word(last, CODE) && has_word(last, PARTS))
}

/// The parameter says where a page leads: back, on, or out.
pub(super) fn leads_elsewhere(location: Location<'_>) -> bool {
    const WORDS: &[&[u8]] = &[
        b"url",
        b"uri",
        b"next",
        b"return",
        b"redirect",
        b"redir",
        b"continue",
        b"dest",
        b"destination",
        b"goto",
        b"forward",
        b"back",
        b"callback",
        b"target",
        b"jump",
        b"out",
        b"exit",
        b"success",
        b"cancel",
    ];
    // Written in one.
    const WHOLE: &[&[u8]] = &[
        b"returnto",
        b"returnurl",
        b"redirecturl",
        b"redirecturi",
        b"redirectto",
        b"backurl",
        b"nexturl",
        b"rurl",
        b"relaystate",
        b"targeturl",
        b"gotourl",
        b"forwardurl",
        b"service",
        b"continueurl",
        b"to",
        b"go",
    ];
    let last = last_part(location.name);
    has_word(last, WORDS) || WHOLE.iter().any(|known| last.eq_ignore_ascii_case(known))
}

/// The field names a function or method that something calls.
pub(super) fn names_function(location: Location<'_>) -> bool {
    const FUNCTIONS: &[&[u8]] = &[
        b"function",
        b"func",
        b"fn",
        b"method",
        b"callback",
        b"call",
        b"hook",
        b"filter",
        b"action",
        b"handler",
        b"vars",
    ];
    is_of_field(location.place) && has_word(last_part(location.name), FUNCTIONS)
}

/// The field is for one host, file, user or password: signs that join names of columns elsewhere join nothing
/// there.
pub(super) fn takes_single_name(location: Location<'_>) -> bool {
    const SINGLE: &[&[u8]] = &[
        b"host",
        b"hostname",
        b"ip",
        b"addr",
        b"address",
        b"domain",
        b"target",
        b"server",
        b"ping",
        b"file",
        b"filename",
        b"path",
        b"dir",
        b"device",
        b"interface",
        b"iface",
        b"port",
        b"user",
        b"username",
        b"login",
        b"password",
        b"passwd",
        b"pass",
        b"pwd",
        b"old",
        b"email",
        b"cmd",
        b"command",
    ];
    has_word(last_part(location.name), SINGLE)
}

/// The field takes filters of a directory: the settings of a login by LDAP.
pub(super) fn takes_filters(location: Location<'_>) -> bool {
    let last = last_part(location.name);
    // `user_search`, `group_search_base`
    let is_search = || {
        has_word(last, &[b"search"])
            && has_word(last, &[b"user", b"users", b"group", b"groups", b"member", b"account"])
    };
    is_of_body(location.place) && (has_word(last, &[b"filter", b"ldap"]) || is_search())
}

/// The field says where an installation stands or what belongs to it: `baseUrl`, `webhook_url`, `redis_url`.
pub(super) fn names_own_service(location: Location<'_>) -> bool {
    let last = last_part(location.name);
    // `servers.url`, `bugs.url`, `remote.host`: the word stands before it.
    let above = location.name[..location.name.len() - last.len()].strip_suffix(b".");
    let above = above.filter(|_| has_word(last, &[b"url", b"uri", b"host", b"hosts", b"address"]));
    is_of_body(location.place)
        && (has_word(last, SERVICE_WORDS) || above.is_some_and(|above| has_word(last_part(above), OWNERS)))
}

/// The field says where a database, a cache or a queue is, whose ports are none of the web.
pub(super) fn names_database(location: Location<'_>) -> bool {
    const STORES: &[&[u8]] = &[
        b"database",
        b"db",
        b"datasource",
        b"redis",
        b"broker",
        b"elasticsearch",
        b"prometheus",
        b"mongo",
        b"mongodb",
        b"postgres",
        b"mysql",
        b"amqp",
        b"rabbitmq",
        b"kafka",
        b"mqtt",
        b"dsn",
        b"connection",
        b"remote",
        b"consul",
        b"ldap",
        b"smtp",
    ];
    let last = last_part(location.name);
    let above = location.name[..location.name.len() - last.len()].strip_suffix(b".").unwrap_or_default();
    is_of_body(location.place) && (has_word(last, STORES) || has_word(last_part(above), STORES))
}

/// The field is for an address of a machine, with its port as people write it and no scheme.
pub(super) fn takes_host(location: Location<'_>) -> bool {
    const HOSTS: &[&[u8]] = &[
        b"host",
        b"hosts",
        b"hostname",
        b"addr",
        b"addrs",
        b"address",
        b"addresses",
        b"ip",
        b"ips",
        b"server",
        b"servers",
        b"node",
        b"nodes",
        b"peer",
        b"peers",
        b"listen",
        b"bind",
        b"instance",
        b"broker",
        b"brokers",
        b"cluster",
        b"targets",
    ];
    is_of_body(location.place) && has_word(last_part(location.name), HOSTS)
}

/// The field is for a password or a secret: any signs may stand in it.
pub(super) fn takes_password(location: Location<'_>) -> bool {
    has_word(last_part(location.name), &[b"password", b"passwd", b"passwort", b"passphrase", b"pwd", b"pass"])
        || settings::takes_secret(location)
}

/// `tq` is for queries of charts over sheets.
const STATEMENT_WORDS: &[&[u8]] =
    &[b"sql", b"soql", b"hql", b"jpql", b"cql", b"ksql", b"tsql", b"plsql", b"tq"];

const EDITOR_WORDS: &[&[u8]] = &[
    b"query",
    b"queries",
    b"statement",
    b"stmt",
    b"code",
    b"snippet",
    b"script",
    b"source",
    // The editor of a view.
    b"select",
    b"definition",
];

const TEXT_WORDS: &[&[u8]] = &[
    b"post",
    b"comment",
    b"comments",
    b"message",
    b"messages",
    b"msg",
    b"text",
    b"texts",
    b"body",
    b"description",
    b"descriptions",
    b"desc",
    b"content",
    b"contents",
    b"note",
    b"notes",
    b"question",
    b"answer",
    b"answers",
    b"details",
    b"log",
    b"stack",
    b"markdown",
    b"md",
    b"html",
    b"snippet",
    // Of a notebook.
    b"cell",
    b"cells",
    // Of an editor of themes.
    b"newcontent",
    b"code",
    b"template",
    b"readme",
    b"ticket",
    b"issue",
    b"reply",
    b"summary",
    b"prompt",
    // What a program says of itself.
    b"err",
    b"error",
    b"errors",
    b"exception",
    b"review",
    b"reviews",
    b"bio",
    b"biography",
    b"about",
    b"feedback",
    b"remark",
    b"remarks",
    b"caption",
    b"excerpt",
    b"abstract",
    b"article",
    b"story",
    b"letter",
    b"memo",
    b"instructions",
    b"explanation",
    b"transcript",
    b"paragraph",
    b"annotation",
    b"plaintext",
    b"richtext",
    b"draft",
    b"changelog",
    b"documentation",
    b"footnote",
    b"announcement",
    b"bodytext",
    b"textarea",
    b"textbox",
    b"textbox1",
    b"wikitext",
    b"info",
    b"fulltext",
    b"longdesc",
    b"traceback",
    b"stacktrace",
    b"stdout",
    b"stderr",
    b"output",
    b"diff",
    b"patch",
    b"license",
];

/// Words that say in which form, language or version something is, not what it is.
const FORM_WORDS: &[&[u8]] = &[
    b"rendered",
    b"raw",
    b"html",
    b"plain",
    b"value",
    b"values",
    b"data",
    b"default",
    b"md",
    b"en",
    b"de",
    b"fr",
    b"es",
    b"it",
    b"pt",
    b"ja",
    b"zh",
    b"ru",
    b"us",
    b"gb",
    b"new",
    b"draft",
    b"full",
    b"long",
    b"short",
    b"formatted",
    b"string",
    b"input",
    b"source",
];

/// What is looked for, or put in its place, is no text of its own.
const SEARCH_WORDS: &[&[u8]] =
    &[b"search", b"find", b"replace", b"replacement", b"pattern", b"query", b"regex"];

const SERVICE_WORDS: &[&[u8]] = &[
    b"cors",
    b"origins",
    b"webhook",
    b"webhooks",
    b"hook",
    b"hooks",
    b"site",
    b"base",
    b"public",
    b"external",
    b"app",
    b"database",
    b"db",
    b"datasource",
    b"redis",
    b"broker",
    b"registry",
    b"ldap",
    b"smtp",
    b"prometheus",
    b"grafana",
    b"elasticsearch",
    b"endpoint",
    b"endpoints",
    b"api",
    b"backend",
    b"upstream",
    b"server",
    b"proxy",
    b"mongo",
    b"mongodb",
    b"postgres",
    b"mysql",
    b"amqp",
    b"rabbitmq",
    b"kafka",
    b"mqtt",
    b"otlp",
    b"consul",
    b"minio",
    b"issuer",
    b"dsn",
    b"connection",
    // What packages and descriptions of interfaces say of themselves.
    b"homepage",
    b"repository",
    b"bugs",
    b"servers",
];

/// What has a `url` of its own in a document that describes a package or an interface, or that sets up a
/// service.
const OWNERS: &[&[u8]] = &[
    b"repository",
    b"bugs",
    b"servers",
    b"settings",
    b"config",
    b"configuration",
    b"service",
    b"datasource",
    b"connection",
    b"integration",
    b"remote",
    b"options",
    b"env",
];

fn is_of_body(place: Place) -> bool {
    matches!(place, Place::Form | Place::Json | Place::MultipartField | Place::XmlText | Place::XmlAttribute)
}

fn is_of_field(place: Place) -> bool {
    is_of_body(place) || place == Place::Query
}

/// The innermost name of a path of names that is no number: `sql` of `panels.0.sql`, `url` of `hook[url]`.
fn last_part(name: &[u8]) -> &[u8] {
    let mut parts = name.rsplit(|b| matches!(b, b'.' | b'[' | b']' | b'/'));
    parts.find(|part| part.iter().any(|b| !b.is_ascii_digit())).unwrap_or_default()
}

/// One of the words of `name` is in `list`, in any case.
fn has_word(name: &[u8], list: &[&[u8]]) -> bool {
    words(name).any(|word| list.iter().any(|known| word.eq_ignore_ascii_case(known)))
}

/// The words of a name. Signs part them, and so do capitals behind small letters.
fn words(name: &[u8]) -> impl Iterator<Item = &[u8]> {
    let is_end = |pair: &[u8]| {
        !pair[1].is_ascii_alphanumeric() || pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase()
    };
    let mut rest = name;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = rest.windows(2).position(is_end).map_or(rest.len(), |at| at + 1);
        let (word, after) = rest.split_at(end);
        rest = after;
        // The sign that parted it from the word before: `_`, `-`, a dot, a bracket.
        Some(match word {
            [sign, word @ ..] if !sign.is_ascii_alphanumeric() => word,
            _ => word,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(place: Place, name: &str) -> Location<'_> {
        Location::new(place, name.as_bytes())
    }

    #[test]
    fn fields_for_statements() {
        for name in ["sql", "rawSql", "json.panels.0.raw_sql", "report[sql][0]", "SQL", "sql-text"] {
            assert!(
                takes_statements(at(Place::Json, name)) && takes_statements(at(Place::Query, name)),
                "{name}"
            );
        }
        assert!(takes_statements(at(Place::Form, "query")) && !takes_statements(at(Place::Query, "query")));
        let attribute = "resourceSpans.scopeSpans.spans.attributes.attributes.value.stringValue";
        assert!(takes_statements(at(Place::Json, attribute)));
        assert!(!takes_statements(at(Place::Json, "value.stringValue")));
        for name in ["q", "sqlite", "text", "id", "", "sql.x", "nosql"] {
            assert!(!takes_statements(at(Place::Form, name)), "{name}");
        }
        assert!(!takes_statements(at(Place::Cookie, "sql")) && !takes_statements(at(Place::Header, "X-Sql")));
    }

    #[test]
    fn fields_for_text() {
        for name in [
            "comment",
            "message",
            "post_content",
            "bodyHtml",
            "posts[0].content.rendered",
            "variables.input.description",
            "blocks.text",
            "messages.content",
            "content.cells.cells.source.source",
            "outputs.data.text/plain",
            "user[bio]",
            "message_2",
            "release_notes",
            "html",
            "description_en",
        ] {
            assert!(takes_text(at(Place::Json, name)) && takes_text(at(Place::Form, name)), "{name}");
            assert!(!takes_text(at(Place::Query, name)) && !takes_text(at(Place::Header, name)), "{name}");
        }
        for name in [
            "id",
            "q",
            "host",
            "url",
            "file",
            "name",
            "page",
            "",
            "content_type",
            "messageId",
            "comment_post_ID",
            "textColor",
            "replaceText",
            "search_text",
            "body_class",
            "posts[0].id",
            "context",
            "value",
            "data.value",
            "0",
            "a.b.c",
            "log_level",
            "glueSource",
            "source",
            "commentator",
            "notebook",
        ] {
            assert!(!takes_text(at(Place::Json, name)), "{name}");
        }
    }

    /// No name that another reader takes for another field.
    #[test]
    fn names_that_end_early() {
        let may = |name: &str| may_mention(Class::Command, at(Place::Form, name));
        assert!(may("comment") && may("user[comment]") && may("posts[0].content") && may("a[][comment]"));
        for name in ["id\0comment", "id[]comment", "id[x]message", "id comment", "id\tcomment", "id\rcomment"]
        {
            assert!(!may(name), "{name:?}");
        }
    }

    #[test]
    fn fields_that_rules_leave_out() {
        for name in ["redirect_uri", "redirectUris", "oauth[redirect_uri]", "post_logout_redirect_uri"] {
            assert!(is_made_for(Class::Ssrf, name.as_bytes()), "{name}");
        }
        for name in ["uri", "redirect", "next", "return_url", "image_redirect"] {
            assert!(!names_redirect(at(Place::Json, name)), "{name}");
        }
        assert!(is_made_for(Class::Xss, b"bpmn_xml") && !is_made_for(Class::Xss, b"xml_id"));
        assert!(!is_made_for(Class::Sqli, b"redirect_uri") && !is_made_for(Class::Sqli, b"xml"));
    }

    #[test]
    fn fields_for_files() {
        for name in [
            "content",
            "files.contents",
            "source_code",
            "wpTextbox1",
            "file.data",
            "asset[value]",
            "body_html",
        ] {
            assert!(takes_page(at(Place::Json, name)) && takes_page(at(Place::Form, name)), "{name}");
            assert!(!takes_page(at(Place::Query, name)) && !takes_file(at(Place::Header, name)), "{name}");
        }
        assert!(takes_file(at(Place::Json, "text")) && !takes_page(at(Place::Json, "text")));
        for name in [
            "content_type",
            "code_id",
            "id",
            "q",
            "data",
            "value",
            "comment",
            "message",
            "description",
            "filename",
            "bodyClass",
            "url",
        ] {
            assert!(!takes_file(at(Place::Json, name)), "{name}");
        }
        assert!(!takes_page(at(Place::Form, "id[]content")) && !takes_page(at(Place::Form, "id\0content")));
    }

    #[test]
    fn other_fields() {
        assert!(names_own_service(at(Place::Json, "json.settings.webhookUrl")));
        assert!(
            !names_own_service(at(Place::Json, "imageUrl"))
                && !names_own_service(at(Place::Query, "webhook"))
        );
        assert!(names_own_service(at(Place::Json, "homepage")));
        assert!(names_own_service(at(Place::Json, "servers.servers.url")));
        assert!(
            !names_own_service(at(Place::Json, "image.url")) && !names_own_service(at(Place::Json, "url"))
        );
        assert!(
            takes_filters(at(Place::Form, "ldap_user_filter")) && !takes_filters(at(Place::Form, "filtered"))
        );
        assert!(takes_code(at(Place::Form, "page_script")) && !takes_code(at(Place::Query, "code")));
        assert!(quotes_code(at(Place::Json, "csp-report.script-sample")));
        assert!(quotes_code(at(Place::Json, "array.array.body.sample")));
        assert!(is_of_report(at(Place::Json, "array.properties.$current_url")));
        assert!(is_of_report(at(Place::Json, "a.page.url")) && !is_of_report(at(Place::Json, "image_url")));
        assert!(!quotes_code(at(Place::Json, "items.sample")) && !quotes_code(at(Place::Form, "sample")));
        assert!(runs_commands(at(Place::Header, "X-Api-Cmd")) && !runs_commands(at(Place::Json, "command")));
        assert!(
            takes_single_name(at(Place::Query, "host")) && !takes_single_name(at(Place::Query, "sort_by"))
        );
        assert!(
            takes_password(at(Place::Form, "user[newPassword]"))
                && !takes_password(at(Place::Form, "passenger"))
        );
    }
}
