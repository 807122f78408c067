//! Mistakes in rules as one line of text, which is what the interface has room for.

use std::fmt::Write as _;

use portcullis_load::Mistake;

/// Longest text: nginx cuts what is longer than 1,024 bytes, with the place in its own configuration.
const BYTES_MAX: usize = 800;

/// The first mistake with its place and a fix, in the form of libmodsecurity, and where the others are.
pub(crate) fn describe(mistakes: &[Mistake]) -> String {
    let Some((first, others)) = mistakes.split_first() else {
        return "Rules error. The rules cannot be loaded.".to_owned();
    };
    let Mistake { file, line, column, message, hint } = first;
    let mut text = format!("Rules error. File: {file}. Line: {line}. Column: {column}. {message}");
    if let Some(hint) = hint {
        let _ = write!(text, ". Hint: {hint}");
    }
    for (told, Mistake { file, line, message, .. }) in others.iter().enumerate() {
        let more = format!("; {file}:{line}: {message}");
        if text.len() + more.len() > BYTES_MAX {
            let _ = write!(text, "; and {} more", others.len() - told);
            break;
        }
        text.push_str(&more);
    }
    text.replace(['\n', '\r', '\0'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_has_its_place_and_the_way_out_and_the_rest_is_counted() {
        let mistake = |line| Mistake {
            file: "/r.conf".to_owned(),
            line,
            column: 9,
            message: "unknown variable ARGZ".to_owned(),
            hint: (line == 1).then(|| "did you mean ARGS?".to_owned()),
        };
        let text = describe(&(1..=100).map(mistake).collect::<Vec<_>>());
        assert!(
            text.starts_with(
                "Rules error. File: /r.conf. Line: 1. Column: 9. unknown variable ARGZ. Hint: did you mean ARGS?; /r.conf:2:"
            ),
            "{text}"
        );
        assert!(text.len() < BYTES_MAX + 20 && text.ends_with(" more"), "{text}");
    }
}
