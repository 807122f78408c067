//! "Did you mean": the nearest of the known names.

/// A sentence that names the nearest candidate, or lists them all when none is near.
pub(crate) fn suggest(name: &str, candidates: &[impl AsRef<str>]) -> String {
    let nearest = candidates
        .iter()
        .map(|candidate| (distance(name, candidate.as_ref()), candidate.as_ref()))
        .min_by_key(|(distance, _)| *distance);
    match nearest {
        Some((distance, candidate)) if distance <= 1 + candidate.len().min(name.len()) / 4 => {
            format!("did you mean `{candidate}`?")
        }
        Some(_) => {
            let names: Vec<String> =
                candidates.iter().map(|candidate| format!("`{}`", candidate.as_ref())).collect();
            format!("known here: {}", names.join(", "))
        }
        None => "there is none to choose from".to_string(),
    }
}

/// Edits (insert, delete, replace, swap of neighbours) from one name to the other; `-` and `_` count as
/// equal.
fn distance(left: &str, right: &str) -> usize {
    let fold = |text: &str| -> Vec<char> {
        text.chars().map(|c| if c == '-' { '_' } else { c.to_ascii_lowercase() }).collect()
    };
    let (left, right) = (fold(left), fold(right));
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=right.len()).collect();
    for (i, l) in left.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, r) in right.iter().enumerate() {
            let mut best = (last[j] + usize::from(l != r)).min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *l == right[j - 1] && left[i - 1] == *r {
                best = best.min(before[j - 1] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggests_the_nearest_name_and_otherwise_lists_all() {
        let known = ["listen", "workers", "idle_timeout"];
        assert_eq!(suggest("lisen", &known), "did you mean `listen`?");
        assert_eq!(suggest("wokrers", &known), "did you mean `workers`?");
        assert_eq!(suggest("idle-timeout", &known), "did you mean `idle_timeout`?");
        assert_eq!(suggest("colour", &known), "known here: `listen`, `workers`, `idle_timeout`");
    }
}
