//! "Did you mean": the nearest of the known names.

use portcullis_types::nearest;

/// A sentence that names the nearest candidate, or lists them all when none is near.
pub(crate) fn suggest(name: &str, candidates: &[impl AsRef<str>]) -> String {
    let names = || candidates.iter().map(AsRef::as_ref);
    match nearest(name, names()) {
        Some(candidate) => format!("did you mean `{candidate}`?"),
        None if candidates.is_empty() => "there is none to choose from".to_string(),
        None => {
            let names: Vec<String> = names().map(|name| format!("`{name}`")).collect();
            format!("known here: {}", names.join(", "))
        }
    }
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
