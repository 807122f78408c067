//! "Did you mean": the nearest of the known names.

/// The known name that is nearest to a mistyped one; none if none is near. Case does not count, and `-` is
/// `_`.
pub fn nearest<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let (distance, nearest) =
        known.map(|known| (distance(name, known), known)).min_by_key(|(distance, _)| *distance)?;
    (distance <= 1 + nearest.len().min(name.len()) / 4).then_some(nearest)
}

/// Characters that are compared; no name is longer.
const COMPARED: usize = 64;

/// Edits (insert, delete, replace, swap of neighbours) from one name to the other.
fn distance(left: &str, right: &str) -> usize {
    let fold = |text: &str| -> Vec<char> {
        let letters = text.chars().take(COMPARED);
        letters.map(|c| if c == '-' { '_' } else { c.to_ascii_lowercase() }).collect()
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
    use super::nearest;

    #[test]
    fn the_nearest_name_is_found_or_none() {
        let known = ["listen", "workers", "idle_timeout"];
        for (name, expected) in [
            ("lisen", Some("listen")),
            ("wokrers", Some("workers")),
            ("Idle-Timeout", Some("idle_timeout")),
            ("colour", None),
            ("", None),
        ] {
            assert_eq!(nearest(name, known.into_iter()), expected, "{name}");
        }
        assert_eq!(nearest(&"x".repeat(100_000), known.into_iter()), None);
    }
}
