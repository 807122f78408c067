//! "Did you mean": the nearest name of a table.

/// Longest text that is compared, in characters; the work is its square for each name.
const COMPARED_CHARS_MAX: usize = 48;

/// The candidate that is fewest edits away from `word` in any ASCII case, if it is near enough to be what was
/// meant.
pub(crate) fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word: Vec<char> = word.to_ascii_lowercase().chars().take(COMPARED_CHARS_MAX + 1).collect();
    if word.is_empty() || word.len() > COMPARED_CHARS_MAX {
        return None;
    }
    let near_enough = (word.len() / 3).min(4);
    // Each edit changes the length by one at most, so most names need no comparing.
    let similar = candidates.into_iter().filter(|name| name.len().abs_diff(word.len()) <= near_enough);
    let scored = similar.map(|name| {
        let other: Vec<char> = name.to_ascii_lowercase().chars().collect();
        (distance(&word, &other), name)
    });
    let (score, name) = scored.min_by_key(|&(score, _)| score)?;
    (score <= near_enough).then_some(name)
}

/// `did you mean NAME?`, if one is near.
pub(crate) fn hint<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(word, candidates).map(|name| format!("did you mean {name}?"))
}

/// Edits (insert, remove, replace, swap neighbours) from one to the other.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before_last: Vec<usize> = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let replace = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = replace.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before_last[j - 2] + 1);
            }
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_found_and_far_ones_are_not() {
        let names = ["ARGS", "ARGS_NAMES", "REQUEST_URI", "REQUEST_URI_RAW"];
        assert_eq!(nearest("ARGZ", names), Some("ARGS"));
        assert_eq!(nearest("RAGS", names), Some("ARGS"));
        assert_eq!(nearest("request_ur", names), Some("REQUEST_URI"));
        assert_eq!(nearest("COMPLETELY", names), None);
        assert_eq!(nearest("", names), None);
        assert_eq!(nearest(&"x".repeat(100_000), names), None);
    }
}
