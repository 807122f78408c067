//! Attributes: handlers, addresses, styles and what a framework evaluates.

use portcullis_lex::html::name_is;
use portcullis_types::Span;

use super::{Reader, script_url, without_seams};
use crate::decode;
use crate::detectors::xss::effects::Effects;
use crate::detectors::xss::names::{Group, Markup, Names};
use crate::detectors::xss::script::walk_code;
use crate::detectors::xss::style::{Style, style};
use crate::detectors::xss::url::{Scheme, begins_scheme, scheme, scheme_in_list};
use crate::detectors::xss::words::{Directive, directive, event_name, is_english, sends_alone};
use crate::detectors::xss::*;

/// Bytes of an address that are cleaned as browsers do.
const ADDRESS_BYTES_MAX: usize = 4_096;

impl Reader<'_, '_, '_, '_> {
    pub(super) fn attribute(&mut self, value: Span, quote: u8) {
        let name = self.element.attribute.of(self.text);
        let bytes = value.of(self.text);
        let whole = Span::new(self.element.attribute.start as usize, value.end as usize);
        if quote == 0 {
            self.glued(value);
        }
        let framework = directive(name);
        if let Some(handler) = event_name(name) {
            self.handler(handler, value, whole);
        } else if let Some(framework) = framework {
            self.framework(framework, value, whole);
        } else if name_is(name, "style") {
            match style(bytes) {
                Some(Style::Runs) => self.run(STYLE_RUNS, whole, false),
                Some(Style::Hides) => self.add(STYLE_HIDDEN, whole, false),
                Some(Style::Imports) => self.add(STYLE_IMPORT, whole, false),
                Some(Style::ImportsFont) | None => {}
            }
        } else if name_is(name, "srcdoc") {
            let is_markup = memchr::memchr2(b'<', b'&', bytes).is_some();
            self.add(if is_markup { SRCDOC } else { FRAME }, whole, false);
        } else if name_is(name, "language") || name_is(name, "type") || name_is(name, "contentscripttype") {
            let names = |word: &[u8]| bytes.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word));
            let in_style = name_is(self.element.name.of(self.text), "style");
            self.element.is_script_language |= names(b"vbs") || (in_style && names(b"script"));
            if name_is(name, "type") && !std::mem::replace(&mut self.element.has_type, true) {
                let kind = bytes.trim_ascii();
                let quiet = ["hidden", "submit", "button", "image", "reset"];
                self.element.is_password = name_is(kind, "password");
                self.element.is_quiet = quiet.iter().any(|known| name_is(kind, known));
                self.element.is_data = is_data(kind);
            }
        } else if name_is(name, "attributename") {
            if event_name(bytes).is_some() {
                self.run(EVENT_ATTRIBUTE, whole, false);
            }
        } else if name_is(name, "ev:event") || name_is(name, "ev:handler") || self.listens(name) {
            self.run(EVENT_ATTRIBUTE, whole, false);
        } else if name_is(name, "implementation") && name_is(self.element.name.of(self.text), "import") {
            self.run(PLUGIN, whole, false);
        } else if name_is(name, "dataformatas") || name_is(name, "datasrc") && bytes.starts_with(b"#") {
            self.add(DATA_BINDING, whole, false);
        } else if name_is(name, "charset") && hides_markup(bytes) {
            self.add(CHARSET, whole, false);
        } else if name_is(name, "http-equiv") {
            self.element.is_refresh |= bytes.eq_ignore_ascii_case(b"refresh");
        } else if name_is(name, "rel") {
            let style = |part: &[u8]| {
                part.eq_ignore_ascii_case(b"stylesheet") || part.eq_ignore_ascii_case(b"import")
            };
            self.element.has_style_relation |= bytes.split(u8::is_ascii_whitespace).any(style);
        } else {
            self.address(name, value, whole, quote);
        }
    }

    /// `<listener event=...>` of XML Events.
    fn listens(&self, name: &[u8]) -> bool {
        name_is(name, "event") && name_is(self.element.name.of(self.text), "listener")
    }

    /// An attribute of a client-side framework.
    fn framework(&mut self, framework: Directive, value: Span, whole: Span) {
        let bytes = value.of(self.text);
        let (from, to) = (value.start as usize, value.end as usize);
        match framework {
            Directive::Code => {
                let Some(outcome) = self.walk(from, to) else { return };
                let writes = Effects::WRITE.or(Effects::NAVIGATE).or(Effects::DATA).or(Effects::SEND);
                let acts = outcome.effects.any(Effects::ASSIGN) || outcome.effects.any(Effects::CALL);
                // What leads elsewhere or sends something is what a page's own buttons do, too.
                let takes = outcome.effects.any(Effects::GLOBAL) || outcome.effects.any(Effects::DATA);
                if outcome.leaves_scope() || acts && takes && outcome.effects.any(writes) {
                    self.run(CLIENT_TEMPLATE, whole, false);
                } else if memchr::memchr(b'|', bytes).is_some() {
                    // AngularJS: `(z=alert)(1)` in the argument of a filter is an expression of its own.
                    for at in memchr::memchr2_iter(b'\'', b'"', bytes) {
                        let Some(outcome) = self.walk(from + at + 1, to) else { return };
                        if outcome.leaves_scope() {
                            self.run(CLIENT_TEMPLATE, whole, false);
                            break;
                        }
                    }
                }
            }
            Directive::Handler => self.handler(b"onevent", value, whole),
            Directive::Markup => {
                let Some(outcome) = self.walk(from, to) else { return };
                let reads = Effects::GLOBAL.or(Effects::DATA).or(Effects::DECODE);
                if outcome.leaves_scope() {
                    self.run(CLIENT_TEMPLATE, whole, false);
                } else if outcome.effects.any(reads) || bytes.contains(&b'<') {
                    self.run(SHOWS_INPUT, whole, false);
                }
            }
            Directive::Binds(_) => {
                // A string is the handler's text.
                let quoted = bytes.trim_ascii().first().is_some_and(|b| matches!(b, b'\'' | b'"' | b'`'));
                let inner = from + usize::from(quoted);
                let sinks = self.walk(inner, to).is_some_and(|outcome| outcome.effects.any(Effects::SINKS));
                self.add(if sinks { CLIENT_TEMPLATE } else { BOUND_HANDLER }, whole, false);
            }
            Directive::Request => {
                self.element.sends = true;
                if is_foreign(bytes.trim_ascii_start()) {
                    self.run(SENDS, whole, false);
                }
            }
            Directive::Trigger => self.element.sends_alone |= sends_alone(bytes),
            Directive::Values => {
                let code = bytes.trim_ascii_start();
                if code.get(..3).is_some_and(|head| head.eq_ignore_ascii_case(b"js:")) {
                    let from = from + (bytes.len() - code.len()) + 3;
                    let sinks =
                        self.walk(from, to).is_some_and(|outcome| outcome.effects.any(Effects::SINKS));
                    self.run(if sinks { EVENT_SINK } else { EVENT_ODD }, whole, false);
                }
            }
        }
    }

    /// A handler that a slash or a plus sign joins to a name or a value, which some filters read as
    /// white space.
    pub(super) fn glued(&mut self, span: Span) {
        let bytes = span.of(self.text);
        let Some(at) = first_event(bytes) else { return };
        let Some(value) = memchr::memchr(b'=', &bytes[at..]) else { return };
        let from = span.start as usize + at + value + 1;
        if let Some(outcome) = self.walk(from, span.end as usize)
            && outcome.effects.any(Effects::SINKS)
        {
            self.run(EVENT_SINK, span, false);
        }
    }

    fn address(&mut self, name: &[u8], value: Span, whole: Span, quote: u8) {
        let bytes = value.of(self.text);
        let is_address = self.names.is_url_attribute(name);
        if is_address && !self.element.in_page {
            self.element.has_source |= !name_is(name, "content") && !bytes.is_empty();
            let bytes = bytes.trim_ascii_start();
            let is_foreign = is_foreign(bytes);
            self.element.has_foreign_source |= is_foreign;
            self.element.has_plain_source |=
                bytes.get(..5).is_some_and(|head| head.eq_ignore_ascii_case(b"http:"));
            self.element.submits_elsewhere |= is_foreign && name_is(name, "formaction");
            self.element.is_secure |= quote != 0 && name_is(name, "src") && bytes.starts_with(b"https://");
            self.element.is_widget |= name_is(name, "src") && is_widget(bytes);
            self.element.is_local = quote != 0
                && !self.element.has_foreign_source
                && memchr::memchr(b':', bytes).is_none()
                && memchr::memchr(b'/', bytes).is_some();
            let loads = matches!(self.element.kind, None | Some(Markup::Frame | Markup::Page));
            // Who writes an address by hand writes its scheme, and an editor writes quotes.
            let is_bare =
                quote == 0 && [&b"//"[..], b"\\\\", b"/\\"].iter().any(|start| bytes.starts_with(start));
            if quote == 0 && loads && self.element.has_foreign_source || is_bare {
                self.add(UNQUOTED_ADDRESS, whole, false);
            }
        }
        if name_is(name, "content") {
            let at = bytes.windows(8).position(|part| part.eq_ignore_ascii_case(b"charset="));
            if at.is_some_and(|at| hides_markup(&bytes[at + 8..])) {
                self.add(CHARSET, whole, false);
            }
        }
        if is_address {
            self.hidden_scheme(bytes, whole);
            let shown = bytes.trim_ascii_start().get(..12);
            if shown.is_some_and(|head| head.eq_ignore_ascii_case(b"view-source:")) {
                self.add(VIEW_SOURCE, whole, false);
            }
        }
        let found = if is_address { scheme_in_list(bytes) } else { scheme(bytes) };
        match found {
            Some((Scheme::Script, at)) => {
                let outcome = self.walk(value.start as usize + at, value.end as usize);
                let Some(outcome) = outcome else { return };
                let kind = script_url(&outcome);
                if is_address || outcome.effects.any(Effects::SINKS) {
                    self.run(kind, whole, false);
                }
            }
            Some((Scheme::Image, _)) if self.shows_images() => {}
            Some((Scheme::Data | Scheme::Image, _)) if is_address && !name_is(name, "content") => {
                self.run(DATA_URL, whole, false)
            }
            _ => {}
        }
    }

    /// Browsers decode references first and then take tabs and line ends out of an address. White space that
    /// is written as a reference would end the value if the whole text were decoded. Comments and sections
    /// are seams in a data island.
    fn hidden_scheme(&mut self, bytes: &[u8], whole: Span) {
        let head = &bytes[..bytes.len().min(ADDRESS_BYTES_MAX)];
        // Netscape ran `&{...}`.
        if let Some(code) = head.strip_prefix(b"&{") {
            if walk_code(code, 0, self.names).effects.any(Effects::SINKS) {
                self.run(SCRIPT_URL, whole, false);
            }
            return;
        }
        let has_seams = memchr::memmem::find(head, b"<!").is_some();
        if !has_seams && !head.iter().take(24).any(|b| matches!(b, b'&' | b'\t' | b'\n' | b'\r')) {
            return;
        }
        let mut plain = decode::entities(head);
        plain.retain(|b| !matches!(b, b'\t' | b'\n' | b'\r'));
        if has_seams {
            plain = without_seams(&plain);
        }
        match scheme(&plain) {
            Some((Scheme::Script, at)) => {
                if walk_code(&plain, at, self.names).effects.any(Effects::SINKS) {
                    self.run(SCRIPT_URL, whole, false);
                } else if !matches!(scheme(bytes), Some((Scheme::Script, _))) {
                    self.run(HIDDEN_SCHEME, whole, false);
                }
            }
            // White space cut it off.
            None if head.contains(&b'#') && begins_scheme(plain.trim_ascii()) => {
                self.run(HIDDEN_SCHEME, whole, false);
            }
            _ => {}
        }
    }

    /// True for elements that show an image and run nothing of it.
    fn shows_images(&self) -> bool {
        let name = self.element.name.of(self.text);
        self.element.in_page
            || ["img", "image", "source", "input", "video", "link", "td", "table", "body"]
                .iter()
                .any(|known| name_is(name, known))
    }

    fn handler(&mut self, name: &[u8], value: Span, whole: Span) {
        let bytes = value.of(self.text);
        let start = match scheme(bytes) {
            Some((Scheme::Script, at)) => value.start as usize + at,
            _ => value.start as usize,
        };
        // `onLoad === 'function'`: no script begins with an equals sign.
        if is_inert(bytes) || bytes.starts_with(b"=") {
            return;
        }
        // A page opens another page of the site.
        if self.is_own_page && is_popup(bytes) {
            return;
        }
        let Some(outcome) = self.walk(start, value.end as usize) else { return };
        let kind = if outcome.effects.any(Effects::SINKS) {
            EVENT_SINK
        } else if self.element.in_page && !self.is_quoted {
            // Without a quote of the page before it, `once = f(x)` is an assignment.
            EVENT_ODD
        } else if outcome.effects.any(Effects::ACTS) && !bytes.starts_with(b"{") {
            match self.is_of_visitor(name, bytes) && is_own_call(bytes, self.names) {
                true => EVENT_ODD,
                false => EVENT_CODE,
            }
        } else if is_english(name) || bytes.is_empty() {
            return;
        } else if self.element.in_page || bytes.starts_with(b"{") {
            // In braces it is a component's property in many a code sample.
            EVENT_ODD
        } else {
            EVENT_ATTRIBUTE
        };
        // A page calls functions of its own; what shows, sends, loads or reads something is found as that.
        let is_own = kind != EVENT_SINK && !self.element.in_page && self.takes_page();
        self.run(kind, whole, is_own);
    }

    /// What the forms and buttons of a page do: nothing but a visitor's deed brings these events about. The
    /// outcome of a click on a link has to tell whether it is followed.
    fn is_of_visitor(&self, name: &[u8], handler: &[u8]) -> bool {
        let is_link = || name_is(self.element.name.of(self.text), "a");
        ["onsubmit", "onchange", "onreset"].iter().any(|known| name_is(name, known))
            || name_is(name, "onclick") && (!is_link() || handler.trim_ascii_start().starts_with(b"return "))
    }
}

/// `window.open('help.html', '', 'width=300'); return false;`: a page beside this one in a window, and
/// nothing else.
pub(in crate::detectors::xss) fn is_popup(handler: &[u8]) -> bool {
    let handler = handler.trim_ascii();
    let handler = handler.strip_suffix(b";").unwrap_or(handler).trim_ascii_end();
    let handler = handler.strip_suffix(b"return false").unwrap_or(handler).trim_ascii_end();
    let handler = handler.strip_suffix(b";").unwrap_or(handler);
    let Some(arguments) = handler.strip_prefix(b"window.open(").and_then(|rest| rest.strip_suffix(b")"))
    else {
        return false;
    };
    let is_part = |b: &u8| b.is_ascii_alphanumeric() || b"._/-=, ?#%&".contains(b);
    let mut arguments = arguments.split(|b| *b == b'\'');
    let is_first = arguments.next().is_some_and(|before| before.trim_ascii().is_empty());
    let address = arguments.next().unwrap_or_default();
    is_first
        && address.first().is_some_and(u8::is_ascii_alphanumeric)
        && address.iter().all(is_part)
        && arguments.all(|rest| rest.iter().all(is_part))
}

/// A type of a script element that no browser runs and no framework makes code of: `text/x-template`,
/// `application/ld+json`.
fn is_data(kind: &[u8]) -> bool {
    // `text/typescript` and `text/babel` are made code, AngularJS runs what is in its templates.
    const CODE: &[&str] = &["script", "babel", "jsx", "ng-", "vbs", "java", "module"];
    let has = |word: &&str| kind.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word.as_bytes()));
    let is_part = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'+' | b'.' | b'/');
    let Some(at) = memchr::memchr(b'/', kind) else { return false };
    at > 0 && at + 1 < kind.len() && kind.iter().all(is_part) && !CODE.iter().any(has)
}

/// The address names a host.
fn is_foreign(address: &[u8]) -> bool {
    let starts =
        |start: &[u8]| address.get(..start.len()).is_some_and(|head| head.eq_ignore_ascii_case(start));
    [&b"http:"[..], b"https:", b"//", b"\\\\", b"/\\", b"ftp:"].iter().any(|start| starts(start))
}

/// `return validate(this)`, `show('main')`: one call of a function of the page's own, with plain arguments.
fn is_own_call(handler: &[u8], names: &Names) -> bool {
    let call = handler.trim_ascii();
    let call = call.strip_suffix(b";").unwrap_or(call);
    let call = call.strip_prefix(b"return ").unwrap_or(call);
    let Some((name, arguments)) = memchr::memchr(b'(', call).map(|at| call.split_at(at)) else {
        return false;
    };
    let Some(arguments) = arguments[1..].strip_suffix(b")") else { return false };
    let is_plain =
        |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b' ' | b',' | b'\'' | b'#');
    handler.len() <= OWN_CALL_BYTES_MAX
        && name.len() > 2
        && name.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'_')
        && names.script(name) == Group::Any
        && arguments.iter().all(is_plain)
}

/// A longer handler is more than a call.
const OWN_CALL_BYTES_MAX: usize = 64;

/// Handlers of ordinary pages, which tell and change nothing: another image, `return false`, a form sent, a
/// page printed.
fn is_inert(handler: &[u8]) -> bool {
    const STATEMENTS: &[&[u8]] = words!("xss", "inert-statements");
    // The address of an image in the place of one that is missing.
    let is_image = |statement: &[u8]| {
        let address = statement.strip_prefix(b"this.src").map(<[u8]>::trim_ascii_start);
        let address = address.and_then(|rest| rest.strip_prefix(b"=")).map(<[u8]>::trim_ascii);
        let text = address.and_then(|text| {
            text.strip_prefix(b"'")
                .and_then(|text| text.strip_suffix(b"'"))
                .or_else(|| text.strip_prefix(b"\"").and_then(|text| text.strip_suffix(b"\"")))
        });
        text.is_some_and(|text| {
            scheme(text).is_none()
                && text.iter().all(|b| b.is_ascii_alphanumeric() || b"/.-_:%?=".contains(b))
        })
    };
    !handler.is_empty()
        && handler.len() <= INERT_BYTES_MAX
        && handler.split(|b| *b == b';').all(|part| {
            let part = part.trim_ascii();
            STATEMENTS.contains(&part) || is_image(part)
        })
}

/// A longer handler does more than those.
const INERT_BYTES_MAX: usize = 200;

/// Character sets in which other bytes than those of ASCII, or other letters, make tags.
fn hides_markup(label: &[u8]) -> bool {
    let label = label.trim_ascii();
    let begins = |start: &str| {
        label.get(..start.len()).is_some_and(|head| head.eq_ignore_ascii_case(start.as_bytes()))
    };
    [
        "utf-7",
        "utf7",
        "unicode-1-1-utf-7",
        "x-imap4",
        "x-mac-farsi",
        "mac-farsi",
        "x-mac-arabic",
        "x-mac-hebrew",
        "hz-gb",
    ]
    .iter()
    .any(|start| begins(start))
}

/// A script of a service that measures visits or shows what the page embeds. It takes no code from who names
/// it: containers of tag managers, in which anybody writes what they like, are not among them.
fn is_widget(address: &[u8]) -> bool {
    const SCRIPTS: &[&[u8]] = words!("xss", "widgets");
    let rest = address.strip_prefix(b"https:").unwrap_or(address);
    let Some(rest) = rest.strip_prefix(b"//") else { return false };
    let is_plain = |tail: &[u8]| tail.iter().all(|b| b.is_ascii_alphanumeric() || b"-_./?=&".contains(b));
    SCRIPTS
        .iter()
        .any(|known| rest.strip_prefix(*known).is_some_and(|tail| is_plain(tail) && !tail.contains(&b'&')))
}
