use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Statuses with a label value of their own: those of the IANA registry, and the common ones beside it.
const CODES: [u16; 66] = [
    100, 101, 102, 103, 200, 201, 202, 203, 204, 205, 206, 207, 208, 226, 300, 301, 302, 303, 304, 305, 307,
    308, 400, 401, 402, 403, 404, 405, 406, 407, 408, 409, 410, 411, 412, 413, 414, 415, 416, 417, 418, 421,
    422, 423, 424, 425, 426, 428, 429, 431, 444, 451, 499, 500, 501, 502, 503, 504, 505, 506, 507, 508, 510,
    511, 520, 599,
];
/// Other statuses count by class; an upstream may answer with any number.
const CLASSES: [&str; 6] = ["none", "1xx", "2xx", "3xx", "4xx", "5xx"];
const ROWS: usize = CODES.len() + CLASSES.len();

/// Status to row, for 0 to 599.
static ROW: [u8; 600] = rows();

const fn rows() -> [u8; 600] {
    let mut table = [0; 600];
    let mut status = 0;
    while status < table.len() {
        // Below 100 there is no status: "none".
        table[status] = (CODES.len() + status / 100) as u8;
        status += 1;
    }
    let mut row = 0;
    while row < CODES.len() {
        table[CODES[row] as usize] = row as u8;
        row += 1;
    }
    table
}

/// Requests of one route by status and verdict.
#[derive(Clone, Debug)]
pub struct RequestCounters(Arc<Table>);

#[derive(Debug)]
struct Table {
    verdicts: Vec<&'static str>,
    cells: Box<[AtomicU64]>,
}

impl RequestCounters {
    pub(crate) fn new(verdicts: &[&'static str]) -> RequestCounters {
        let cells = std::iter::repeat_with(AtomicU64::default).take(ROWS * verdicts.len().max(1)).collect();
        let verdicts = if verdicts.is_empty() { vec![crate::OTHER] } else { verdicts.to_vec() };
        RequestCounters(Arc::new(Table { verdicts, cells }))
    }

    /// Counts a request. `status` is what was sent, 0 if nothing was; `verdict` is its index in the table of
    /// names.
    pub fn inc(&self, status: u16, verdict: usize) {
        let table = &*self.0;
        let row = usize::from(ROW[usize::from(status).min(ROW.len() - 1)]);
        let column = verdict.min(table.verdicts.len() - 1);
        table.cells[row * table.verdicts.len() + column].fetch_add(1, Relaxed);
    }

    /// Status, verdict and count, where the count is not zero.
    pub(crate) fn values(&self) -> impl Iterator<Item = (String, &'static str, u64)> + '_ {
        let columns = self.0.verdicts.len();
        self.0.cells.iter().enumerate().filter_map(move |(i, cell)| {
            let status = match CODES.get(i / columns) {
                Some(code) => code.to_string(),
                None => CLASSES[i / columns - CODES.len()].to_owned(),
            };
            let n = cell.load(Relaxed);
            (n > 0).then(|| (status, self.0.verdicts[i % columns], n))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_has_a_row_that_names_it_or_its_class() {
        assert!(CODES.is_sorted());
        for status in (0..=700).chain([u16::MAX]) {
            let counters = RequestCounters::new(&["pass", "deny"]);
            counters.inc(status, 1);
            let (label, verdict, n) = counters.values().next().expect("one row counts");
            let class = match status {
                0..100 => "none".to_owned(),
                100..600 => format!("{}xx", status / 100),
                _ => "599".to_owned(),
            };
            assert!(label == status.to_string() || label == class, "{status} counts as {label}");
            assert_eq!((verdict, n), ("deny", 1));
        }
    }
}
