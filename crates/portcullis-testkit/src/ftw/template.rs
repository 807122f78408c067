//! The little of Go's templates that test bodies use.

/// Expands `{{ "text" | repeat N }}` and `{{ repeat N "text" }}`. Anything else between braces is an error:
/// go-ftw would evaluate it, so sending it unexpanded would test something else.
pub(super) fn expand(text: &str) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("{{") {
        let end = rest[start..].find("}}").ok_or("template without its `}}`")? + start;
        out.push_str(&rest[..start]);
        let action = rest[start + 2..end].trim();
        let (word, count) = repeat(action).ok_or_else(|| format!("template `{action}` is not known here"))?;
        out.push_str(&word.repeat(count));
        rest = &rest[end + 2..];
    }
    out.push_str(rest);
    Ok(out)
}

/// Longest repetition of any test; a larger count is a mistake in the test, not a reason to fill the memory.
const REPEAT_MAX: usize = 10_000_000;

fn repeat(action: &str) -> Option<(String, usize)> {
    let (word, count) = match action.strip_prefix("repeat ") {
        Some(rest) => rest.trim().split_once(' ').map(|(count, word)| (word, count))?,
        None => {
            let (word, function) = action.rsplit_once('|')?;
            (word, function.trim().strip_prefix("repeat ")?)
        }
    };
    let count = count.trim().parse().ok().filter(|&count| count <= REPEAT_MAX)?;
    let word = word.trim().strip_prefix('"')?.strip_suffix('"')?;
    (!word.contains(['"', '\\'])).then(|| (word.to_string(), count))
}

#[cfg(test)]
mod tests {
    use super::expand;

    #[test]
    fn repeats() {
        assert_eq!(expand("a").as_deref(), Ok("a"));
        assert_eq!(expand("a{{ \"1\" | repeat 3 }}b{{repeat 2 \"xy\"}}").as_deref(), Ok("a111bxyxy"));
    }

    #[test]
    fn what_is_not_known_is_an_error() {
        for text in ["{{", "{{ env \"HOME\" }}", "{{constructor()}}", "{{ \"1\" | repeat 99999999999 }}"] {
            assert!(expand(text).is_err(), "{text}");
        }
    }
}
