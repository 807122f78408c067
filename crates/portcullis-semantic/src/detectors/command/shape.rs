//! The shape of an argument: path, host, option, number, text.

use portcullis_lex::shell::Marks;

/// The shape of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// A file or folder that tells about the system.
    Sensitive,
    Path,
    /// A URL, a host's name or its address.
    Host,
    Option,
    Number,
    /// Quoted text with signs in it.
    Text,
    /// A variable, a substitution.
    Expansion,
    Glob,
    Word,
}

/// The shape of a word that expands to `text`.
pub(super) fn of(text: &[u8], marks: Marks, is_windows: bool) -> Shape {
    if is_sensitive(text) {
        return Shape::Sensitive;
    }
    let has = |b: u8| text.contains(&b);
    if marks.has(Marks::GLOB) && is_path(text) {
        // `/???/p??s??`
        return if text.iter().filter(|&&b| b == b'?').count() >= 3 { Shape::Sensitive } else { Shape::Path };
    }
    if is_option(text, is_windows) {
        return Shape::Option;
    }
    if text.first().is_some_and(u8::is_ascii_digit) && is_number(text) {
        return Shape::Number;
    }
    if is_host(text) {
        return Shape::Host;
    }
    if is_path(text) {
        return Shape::Path;
    }
    if marks.has(Marks::QUOTED) && (has(b' ') || text.iter().any(|b| b"()[]{};=<>|&$\\'\"!%".contains(b))) {
        return Shape::Text;
    }
    if marks.has(Marks::VARIABLE.with(Marks::SUBSTITUTION).with(Marks::PERCENT)) {
        return Shape::Expansion;
    }
    if marks.has(Marks::GLOB) && text.len() <= 24 {
        return Shape::Glob;
    }
    Shape::Word
}

/// Parts of paths that attackers want to read, in lower case, by their first byte.
fn sensitive(first: u8) -> &'static [&'static [u8]] {
    match first {
        b'/' => {
            &[b"/etc/", b"/proc/", b"/var/log", b"/var/www", b"/root", b"/windows/", b"/dev/tcp", b"/flag"]
        }
        b'\\' => &[b"\\windows", b"\\winnt"],
        b'.' => &[b".ssh", b".htpasswd", b".htaccess", b".bash_history"],
        b'b' => &[b"boot.ini"],
        b'f' => &[b"flag.txt"],
        b'i' => &[b"id_rsa"],
        b'p' => &[b"passwd"],
        b'r' => &[b"repair\\sam", b"repair\\sys"],
        b's' => &[b"shadow", b"system32"],
        b'w' => &[b"win.ini", b"wp-config", b"web.config", b"web-inf"],
        _ => &[],
    }
}

fn is_sensitive(text: &[u8]) -> bool {
    let mut lower = [0; 96];
    let text = &text[..text.len().min(lower.len())];
    let lower = &mut lower[..text.len()];
    lower.copy_from_slice(text);
    lower.make_ascii_lowercase();
    let lower = &*lower;
    if is_secret_dotfile(lower) {
        return true;
    }
    let begins = |at: usize| sensitive(lower[at]).iter().any(|part| lower[at..].starts_with(part));
    memchr::memchr3(b'/', b'\\', b'.', lower).is_some() && (0..lower.len()).any(begins)
}

/// `.env`, `app/.env.local`, `~/.aws/credentials`, `.mysql_history`: where people keep what nobody else is to
/// read.
fn is_secret_dotfile(lower: &[u8]) -> bool {
    const NAMES: &[&[u8]] = words!("command", "secret-dotfiles");
    lower.split(|b| matches!(b, b'/' | b'\\')).any(|part| {
        let Some(name) = part.strip_prefix(b".") else { return false };
        name.ends_with(b"_history")
            || NAMES.iter().any(|known| {
                name.strip_prefix(*known)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with(b".") && *known == b"env")
            })
    })
}

fn is_option(text: &[u8], is_windows: bool) -> bool {
    match text {
        [b'-', b'-', rest @ ..] => rest.first().is_some_and(u8::is_ascii_alphabetic),
        [b'-', rest @ ..] => rest.first().is_some_and(u8::is_ascii_alphanumeric),
        [b'/', rest @ ..] => {
            is_windows
                && rest.len() <= 12
                && rest.first().is_some_and(u8::is_ascii_alphabetic)
                && rest.iter().all(|b| b.is_ascii_alphanumeric() || *b == b':')
        }
        _ => false,
    }
}

/// A number, also with a unit of time.
fn is_number(text: &[u8]) -> bool {
    let digits = text.strip_suffix(b"s").or(text.strip_suffix(b"m")).unwrap_or(text);
    if let [b'0', b'x' | b'X', hex @ ..] = text {
        return !hex.is_empty() && hex.len() <= 8 && hex.iter().all(u8::is_ascii_hexdigit);
    }
    let zeros = digits.iter().take_while(|b| **b == b'0').count();
    digits.len() - zeros <= 12
        && digits.iter().all(|b| b.is_ascii_digit() || *b == b'.')
        && digits.iter().filter(|b| **b == b'.').count() <= 1
}

fn is_host(text: &[u8]) -> bool {
    if memchr::memmem::find(text, b"://").is_some() {
        return true;
    }
    let host = &text[..text.iter().position(|&b| matches!(b, b'/' | b':')).unwrap_or(text.len())];
    let host = host.rsplit(|&b| b == b'@').next().unwrap_or(host);
    if host == b"localhost" {
        return true;
    }
    let mut labels = 0;
    let mut last: &[u8] = b"";
    for label in host.split(|&b| b == b'.') {
        if label.is_empty() && labels > 0
            || !label.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
        {
            return false;
        }
        labels += 1;
        last = label;
    }
    let is_address = labels == 4 && host.iter().all(|b| b.is_ascii_digit() || *b == b'.');
    let is_name =
        labels >= 2 && last.len() >= 2 && last.iter().all(u8::is_ascii_alphabetic) && !is_extension(last);
    is_address || is_name
}

/// Endings of files, which are not those of hosts.
fn is_extension(last: &[u8]) -> bool {
    let mut lower = [0; 5];
    let Some(lower) = lower.get_mut(..last.len()) else { return false };
    lower.copy_from_slice(last);
    lower.make_ascii_lowercase();
    #[rustfmt::skip]
    let known = matches!(
        &*lower,
        b"txt" | b"php" | b"html" | b"htm" | b"jpg" | b"png" | b"gif" | b"pdf" | b"xml" | b"json" | b"conf" | b"cfg" | b"ini"
            | b"log" | b"sql" | b"bak" | b"exe" | b"bat" | b"dll" | b"py" | b"pl" | b"rb" | b"js" | b"jsp" | b"asp" | b"aspx"
            | b"java" | b"class" | b"jar" | b"war" | b"zip" | b"gz" | b"tar" | b"key" | b"pem" | b"csv" | b"yml" | b"yaml"
            | b"md" | b"db" | b"sh" | b"ps1" | b"vbs" | b"tgz"
    );
    known
}

pub(super) fn is_path(text: &[u8]) -> bool {
    match text {
        [b'/', next, ..] => !matches!(next, b'*'),
        [b'/'] | [b'~'] => true,
        [b'~', b'/', ..] | [b'.', b'/' | b'\\', ..] | [b'.', b'.', b'/' | b'\\', ..] | [b'\\', b'\\', ..] => {
            true
        }
        [drive, b':', rest @ ..] if drive.is_ascii_alphabetic() => {
            rest.is_empty() || matches!(rest[0], b'\\' | b'/')
        }
        [b'.', b'.'] => true,
        // A file that begins with a dot.
        [b'.', letter, ..] if letter.is_ascii_alphabetic() => true,
        _ => {
            let slashes = text.iter().filter(|&&b| matches!(b, b'/' | b'\\')).count();
            let last = text.rsplit(|&b| b == b'.').next().unwrap_or_default();
            let named_so =
                last.len() < text.len() && is_extension(last) && text.iter().all(|b| b.is_ascii_graphic());
            slashes >= 2
                || named_so
                || slashes == 1 && (text[0] == b'~' || text[0] == b'*' || begins_like_root(text))
        }
    }
}

fn begins_like_root(text: &[u8]) -> bool {
    [&b"etc/"[..], b"usr/", b"bin/", b"var/", b"tmp/", b"home/", b"dev/", b"opt/", b"proc/"]
        .iter()
        .any(|root| text.starts_with(root))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes() {
        for (text, want) in [
            ("/etc/passwd", Shape::Sensitive),
            ("C:\\Windows\\win.ini", Shape::Sensitive),
            ("/tmp/x", Shape::Path),
            ("config.php", Shape::Path),
            ("c:\\", Shape::Path),
            ("and/or", Shape::Word),
            ("food", Shape::Word),
            ("http://a.example/x", Shape::Host),
            ("127.0.0.1", Shape::Host),
            ("evil.example", Shape::Host),
            ("5", Shape::Number),
            ("-la", Shape::Option),
            ("-", Shape::Word),
        ] {
            assert_eq!(of(text.as_bytes(), Marks::NONE, false), want, "{text}");
        }
        assert_eq!(of(b"/ADD", Marks::NONE, true), Shape::Option);
        assert_eq!(of(b"/???/p??s??", Marks::GLOB, false), Shape::Sensitive);
        assert_eq!(of(b"", Marks::VARIABLE, false), Shape::Expansion);
    }
}
