//! Checks of single values.

use std::ops::RangeInclusive;

use crate::mistakes::Mistakes;
use crate::spanned::Spanned;

/// The number of a setting, which must lie in `range`.
pub(crate) fn number<T: Copy + PartialOrd + std::fmt::Display>(
    mistakes: &mut Mistakes<'_>,
    raw: Option<Spanned<T>>,
    range: RangeInclusive<T>,
    name: &str,
    default: T,
) -> T {
    let Some(Spanned { value, span }) = raw else { return default };
    if range.contains(&value) {
        return value;
    }
    mistakes.wrong(span, format!("{name} must be {} to {}", range.start(), range.end()));
    default
}

/// Returns true if it can be the name of a header or cookie.
pub(crate) fn is_token(name: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(is_part)
}
