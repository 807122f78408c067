//! Pages of lists.

use serde::Deserialize;
use utoipa::IntoParams;

use crate::problem::{Kind, Problem};

/// Items of a page, at most.
pub(crate) const LIMIT_MAX: u32 = 1000;
/// Items of a page, unless said otherwise.
pub(crate) const LIMIT: u32 = 100;

/// The page of a list that is asked for.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct PageQuery {
    /// Items of the page, at most. Default: 100.
    #[param(minimum = 1, maximum = 1000)]
    pub(crate) limit: Option<u32>,
    /// `next` of the page before; without it the first page.
    #[param(pattern = "^[0-9]{1,18}$")]
    pub(crate) cursor: Option<String>,
}

impl PageQuery {
    /// The number of items, within bounds.
    pub(crate) fn limit(&self) -> Result<usize, Problem> {
        limit(self.limit)
    }

    /// The cursor as a number.
    pub(crate) fn number(&self) -> Result<Option<i64>, Problem> {
        let parse = |text: &String| text.parse().map_err(|_| Problem::of(Kind::Cursor));
        self.cursor.as_ref().map(parse).transpose()
    }
}

/// A number of items, within bounds.
pub(crate) fn limit(asked: Option<u32>) -> Result<usize, Problem> {
    match asked.unwrap_or(LIMIT) {
        limit @ 1..=LIMIT_MAX => Ok(limit as usize),
        _ => Err(Problem::with(Kind::Malformed, format!("the query: limit must be 1 to {LIMIT_MAX}"))),
    }
}

/// Takes one item more than fits off a list: then there is a page behind it, which begins after the last that
/// fits.
pub(crate) fn next<T>(items: &mut Vec<T>, limit: usize, cursor: impl Fn(&T) -> String) -> Option<String> {
    if items.len() <= limit {
        return None;
    }
    items.truncate(limit);
    items.last().map(cursor)
}
