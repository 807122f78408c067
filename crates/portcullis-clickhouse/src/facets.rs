//! Values of fields, counted by the database.

use std::collections::BTreeMap;

use portcullis_event_store::{Facet, FacetRequest, Facets, QueryError};
use portcullis_query::{Field, Filter};
use serde::Deserialize;

use crate::answer::{number, rows};
use crate::condition::{column, is_absent_as_zero};
use crate::link::Deadline;
use crate::source::Database;

/// Values of one field that are counted apart; events with further ones are counted together.
const VALUES_MAX: usize = 100_000;

/// A value and the requests that have it.
#[derive(Deserialize)]
struct Counted {
    /// The place of the field among those that were asked for, in two digits.
    f: String,
    /// The same with the value behind it.
    k: String,
    #[serde(deserialize_with = "number")]
    n: u64,
}

impl Database {
    /// The counts of one question, in two statements whatever the number of fields. An event with several
    /// values of a field counts for each. Rows that are the same count once (`FINAL`).
    pub(crate) fn count(&self, request: &FacetRequest<'_>) -> Result<Facets, QueryError> {
        let deadline = self.link.deadline(request.patience);
        let fields: Vec<Field> = request.fields.iter().copied().filter(|field| Facets::has(*field)).collect();
        let sums = self.sums(request.filter, &fields, deadline)?;
        let sum = |name: String| sums.get(&name).and_then(|text| text.parse().ok()).unwrap_or(0u64);
        let mut facets = Facets { total: sum("t".to_owned()), complete: true, ..Facets::default() };
        let mut found = match fields.is_empty() {
            true => Vec::new(),
            false => self.top(request, &fields, deadline)?,
        };
        for (number, &field) in fields.iter().enumerate() {
            let mark = mark(number);
            let counted = found.extract_if(.., |row| row.f == mark);
            let values: Vec<(String, u64)> =
                counted.map(|row| (row.k.get(mark.len()..).unwrap_or_default().to_owned(), row.n)).collect();
            let of_values = values.iter().fold(0u64, |sum, (_, count)| sum.saturating_add(*count));
            let others = sum(format!("a{number}")).saturating_sub(of_values);
            facets.fields.push(Facet { field, values, others, without: sum(format!("w{number}")) });
        }
        Ok(facets)
    }

    /// Requests in all (`t`), without a value of a field (`w0`) and with one (`a0`).
    fn sums(
        &self,
        filter: &Filter,
        fields: &[Field],
        deadline: Deadline,
    ) -> Result<BTreeMap<String, String>, QueryError> {
        let mut statement = "SELECT toString(sum(count)) AS t".to_owned();
        for (number, &field) in fields.iter().enumerate() {
            let without = absent(field);
            let values = match field.is_list() {
                true => format!("length({})", column(field)),
                false => format!("if({without}, 0, 1)"),
            };
            statement += &format!(
                ", toString(sum(if({without}, count, 0))) AS w{number}, toString(sum(count * {values})) AS a{number}"
            );
        }
        statement = format!("{statement} {}", self.rows_of(filter, true, None));
        Ok(rows(&self.link.ask(&statement, "", deadline)?)?.into_iter().next().unwrap_or_default())
    }

    /// The most frequent values of each field. Each row becomes its values, with the mark of the field before
    /// them.
    fn top(
        &self,
        request: &FacetRequest<'_>,
        fields: &[Field],
        deadline: Deadline,
    ) -> Result<Vec<Counted>, QueryError> {
        let lists = fields.iter().enumerate().map(|(number, &field)| {
            let (mark, column) = (mark(number), column(field));
            match field.is_list() {
                true => format!("arrayMap(x -> concat('{mark}', toString(x)), {column})"),
                false => format!("[if({}, '', concat('{mark}', toString({column})))]", absent(field)),
            }
        });
        let lists: Vec<String> = lists.collect();
        // New values beyond the limit are left out here, not of the sums: they are among the others.
        let statement = format!(
            "SELECT substring(k, 1, 2) AS f, k, toString(sum(c)) AS n \
             FROM (SELECT arrayJoin(arrayConcat({})) AS k, count AS c {}) \
             GROUP BY k HAVING k != '' ORDER BY sum(c) DESC, k ASC LIMIT {} BY f",
            lists.join(", "),
            self.rows_of(request.filter, true, None),
            request.top,
        );
        let values_max = VALUES_MAX * fields.len();
        let more = format!(", max_rows_to_group_by = {values_max}, group_by_overflow_mode = 'any'");
        rows(&self.link.ask(&statement, &more, deadline)?)
    }
}

fn mark(number: usize) -> String {
    format!("{number:02}")
}

/// True for rows without a value of this field.
fn absent(field: Field) -> String {
    if is_absent_as_zero(field) {
        format!("{} = 0", column(field))
    } else if field.is_list() {
        format!("empty({})", column(field))
    } else {
        format!("{} = ''", column(field))
    }
}
