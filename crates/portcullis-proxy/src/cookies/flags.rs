//! Attributes that cookies of upstreams are given, where they have none.

use portcullis_config::CookieFlags;

/// A value of `Set-Cookie` with the attributes that it lacks; none if it lacks none. `is_secure`: the client
/// has come by TLS; without it a browser would not keep a cookie that is `Secure`.
pub(crate) fn flagged(flags: &CookieFlags, field: &[u8], is_secure: bool) -> Option<Vec<u8>> {
    let mut pieces = field.split(|b| *b == b';');
    let pair = pieces.next()?;
    let name = pair.split(|b| *b == b'=').next()?.trim_ascii();
    let attributes: Vec<&[u8]> =
        pieces.filter_map(|piece| piece.split(|b| *b == b'=').next()).map(<[u8]>::trim_ascii).collect();
    let has = |attribute: &str| attributes.iter().any(|own| own.eq_ignore_ascii_case(attribute.as_bytes()));
    let mut more = String::new();
    let becomes_secure = flags.secure && is_secure && !has("secure");
    if becomes_secure {
        more.push_str("; Secure");
    }
    if flags.http_only.iter().any(|of| of == "*" || of.as_bytes() == name) && !has("httponly") {
        more.push_str("; HttpOnly");
    }
    // Browsers refuse `None` without `Secure`.
    let same_site = flags.same_site.filter(|site| *site != "None" || has("secure") || becomes_secure);
    if let Some(site) = same_site.filter(|_| !has("samesite")) {
        more.push_str("; SameSite=");
        more.push_str(site);
    }
    if more.is_empty() {
        return None;
    }
    let end = field.iter().rposition(|b| !matches!(b, b';' | b' ' | b'\t')).map_or(0, |at| at + 1);
    Some([&field[..end], more.as_bytes()].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_missing_is_added() {
        let all = CookieFlags { secure: true, http_only: vec!["*".to_owned()], same_site: Some("Lax") };
        let none = CookieFlags { same_site: Some("None"), ..all.clone() };
        let some = CookieFlags { secure: false, http_only: vec!["sid".to_owned()], same_site: None };
        for (flags, field, is_secure, expected) in [
            (&all, "a=1", true, Some("a=1; Secure; HttpOnly; SameSite=Lax")),
            (&all, "a=1", false, Some("a=1; HttpOnly; SameSite=Lax")),
            (&all, "a=1; path=/; ", true, Some("a=1; path=/; Secure; HttpOnly; SameSite=Lax")),
            (&all, "a=1; SECURE;httponly; samesite = Strict", true, None),
            (&all, "a=secure; HttpOnly", true, Some("a=secure; HttpOnly; Secure; SameSite=Lax")),
            (&all, "a=\u{1}\u{e4}", false, Some("a=\u{1}\u{e4}; HttpOnly; SameSite=Lax")),
            (&none, "a=1", true, Some("a=1; Secure; HttpOnly; SameSite=None")),
            (&none, "a=1", false, Some("a=1; HttpOnly")),
            (&none, "a=1; Secure", false, Some("a=1; Secure; HttpOnly; SameSite=None")),
            (&none, "a=1; HttpOnly; Secure", true, Some("a=1; HttpOnly; Secure; SameSite=None")),
            (&some, "sid=1", true, Some("sid=1; HttpOnly")),
            (&some, "Sid=1", true, None),
            (&some, "csrf=1", true, None),
        ] {
            let found = flagged(flags, field.as_bytes(), is_secure);
            assert_eq!(found.as_deref(), expected.map(str::as_bytes), "{field}");
        }
    }
}
