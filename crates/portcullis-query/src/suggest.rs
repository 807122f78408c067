//! "Did you mean": the nearest of the known names.

/// The nearest name as a question; none if nothing is near.
pub(crate) fn nearest<'n>(name: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let nearest = names.map(|known| (distance(name, known), known)).min_by_key(|(distance, _)| *distance);
    let (distance, known) = nearest?;
    (distance <= 1 + known.len().min(name.len()) / 4).then_some(known)
}

/// Edits (insert, delete, replace, swap of neighbours) from one name to the other, without regard to case.
fn distance(left: &str, right: &str) -> usize {
    let fold = |text: &str| text.chars().take(64).map(|c| c.to_ascii_lowercase()).collect::<Vec<char>>();
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
