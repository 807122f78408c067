//! What languages keep of the machine, by the names that all of it stands below.

/// What has to stand behind the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Root {
    /// A call or an element: `File.read`, `os.listdir`.
    Called,
    /// A member of a member is enough: `process.env.HOME`.
    Deep,
    /// Any member, or an element: `ENV.to_h`, `ENV["HOME"]`.
    Any,
}

/// The root that `name` is.
pub(super) fn root(name: &[u8]) -> Option<Root> {
    Some(match name {
        // Node.js, Deno, Bun
        b"process" | b"global" | b"globalThis" | b"Deno" => Root::Deep,
        b"Bun" => Root::Called,
        // Ruby
        b"ENV" | b"ARGF" => Root::Any,
        b"File" | b"IO" | b"Dir" | b"Kernel" | b"Process" | b"ObjectSpace" | b"FileUtils" | b"Etc"
        | b"Pathname" | b"Open3" | b"Marshal" | b"PTY" | b"TCPSocket" => Root::Called,
        b"Rails" => Root::Deep,
        // Python, Lua
        b"os" | b"sys" | b"subprocess" | b"shutil" | b"pathlib" | b"platform" | b"importlib"
        | b"builtins" | b"__builtins__" | b"io" | b"pty" | b"ctypes" => Root::Called,
        // Java, Groovy, .NET
        b"System" | b"Runtime" | b"ProcessBuilder" | b"Environment" | b"Files" | b"Paths" => Root::Called,
        // PHP, ASP
        b"FFI" | b"Server" | b"Response" => Root::Called,
        _ => return None,
    })
}

/// The variable holds what the machine or the request gave a program of PHP or Perl.
pub(super) fn is_superglobal(name: &[u8]) -> bool {
    matches!(name, b"$_SERVER" | b"$_ENV" | b"$GLOBALS" | b"$ENV" | b"$_SESSION")
}

/// A call without arguments that gives all names of a program, or ends it.
pub(super) fn tells_names(name: &[u8]) -> bool {
    matches!(
        name,
        b"globals"
            | b"locals"
            | b"vars"
            | b"instance_variables"
            | b"global_variables"
            | b"local_variables"
            | b"get_defined_vars"
            | b"get_defined_constants"
            | b"phpinfo"
            | b"getenv"
            | b"quit"
            | b"abort"
            | b"opcache_reset"
    )
}

/// Prints or hands over what it is given, as a statement or as a function.
pub(super) fn prints(name: &[u8]) -> bool {
    matches!(
        name,
        b"echo"
            | b"print"
            | b"printf"
            | b"var_dump"
            | b"print_r"
            | b"var_export"
            | b"die"
            | b"exit"
            | b"puts"
            | b"p"
            | b"pp"
            | b"say"
            | b"println"
            | b"json_encode"
            | b"serialize"
            | b"implode"
            | b"join"
            | b"stringify"
            | b"repr"
            | b"str"
            | b"list"
            | b"sorted"
            | b"dump"
            | b"dd"
            | b"fpassthru"
            | b"highlight_string"
            | b"inspect"
    )
}

/// Prints as a statement, without parentheses.
pub(super) fn is_statement(name: &[u8]) -> bool {
    matches!(
        name,
        b"echo"
            | b"print"
            | b"die"
            | b"exit"
            | b"puts"
            | b"p"
            | b"say"
            | b"println"
            | b"return"
            | b"new"
            | b"await"
            | b"async"
            | b"yield"
            | b"throw"
            | b"raise"
            | b"var"
            | b"let"
            | b"const"
            | b"my"
            | b"our"
            | b"local"
            | b"lambda"
            | b"delete"
            | b"typeof"
            | b"void"
            | b"not"
            | b"foreach"
            | b"for"
            | b"while"
            | b"if"
            | b"with"
            | b"do"
            | b"else"
            | b"def"
            | b"function"
            | b"try"
            | b"static"
            | b"import"
            | b"include"
            | b"include_once"
            | b"require"
            | b"require_once"
    )
}

/// Stands between two operands.
pub(super) fn is_operator(name: &[u8]) -> bool {
    matches!(
        name,
        b"and"
            | b"or"
            | b"xor"
            | b"in"
            | b"of"
            | b"is"
            | b"if"
            | b"else"
            | b"unless"
            | b"while"
            | b"for"
            | b"as"
            | b"instanceof"
            | b"do"
            | b"then"
            | b"x"
    )
}

/// A function of styles, which takes an address or a name, too.
pub(super) fn is_of_styles(name: &[u8]) -> bool {
    matches!(name, b"url" | b"format" | b"local" | b"attr" | b"var" | b"image" | b"set" | b"src" | b"layer")
}

/// The constant names a file, a folder, an address or a pattern of files, by its shape.
pub(super) fn names_file(text: &[u8]) -> bool {
    const TYPES: &[&[u8]] =
        &[b"text", b"image", b"audio", b"video", b"application", b"multipart", b"font", b"model", b"message"];
    const FOLDERS: &[&[u8]] = words!("code", "folders");
    let is_letter = |b: &u8| b.is_ascii_alphabetic();
    if text.is_empty() || text.len() > 200 || text.contains(&b'\n') {
        return false;
    }
    if matches!(text, b"." | b".." | b"/" | b"*" | b"~" | b"./" | b"../") || text.starts_with(b"|") {
        return true;
    }
    if text.iter().any(u8::is_ascii_whitespace) {
        return false;
    }
    let is_pattern = text.contains(&b'*') && text.iter().any(|b| matches!(b, b'.' | b'/'));
    let slash = memchr::memchr2(b'/', b'\\', text);
    let is_type = || slash.is_some_and(|at| TYPES.contains(&&text[..at]));
    // `/api/items` is a page; a folder of the machine, or a file, is none.
    let is_page = || {
        let first = text[1..].split(|b| *b == b'/').next().unwrap_or_default();
        text[0] == b'/' && !text.starts_with(b"//") && !FOLDERS.contains(&first)
    };
    let has_slash = slash.is_some() && text.iter().any(is_letter) && !is_type() && !is_page();
    let has_extension = || {
        let dot = memchr::memrchr(b'.', text).unwrap_or(text.len());
        let end = text.get(dot + 1..).unwrap_or_default();
        let stem = &text[..dot.min(text.len())];
        let stem = &stem[stem.iter().rposition(|b| matches!(b, b'/' | b'\\')).map_or(0, |at| at + 1)..];
        (1..=5).contains(&end.len())
            && end[0].is_ascii_alphabetic()
            && end.iter().all(u8::is_ascii_alphanumeric)
            && stem.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'))
            && (stem.is_empty() || stem.iter().any(is_letter))
    };
    is_pattern || has_slash || has_extension()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files() {
        for text in [
            "config.php",
            "/a/x.php",
            ".",
            "/",
            "*.txt",
            "/etc/x",
            "a/b",
            "http://a.example/x",
            "|id",
            ".env",
            "C:\\x",
        ] {
            assert!(names_file(text.as_bytes()), "{text}");
        }
        for text in [
            "",
            "/api",
            "/api/items",
            "text/html",
            "2024/05/01",
            "1.5",
            "hello",
            "a b/c",
            "Status",
            "v1.2.3",
            "en-US",
            "#x",
        ] {
            assert!(!names_file(text.as_bytes()), "{text}");
        }
    }
}
