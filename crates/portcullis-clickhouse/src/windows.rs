//! Windows of time that are asked one after another: the rows next to a place stand in the first ones, for
//! most filters, so that a page does not read the whole table.

use crate::cursor::Side;

/// Seconds of the first window.
const FIRST_SECONDS: u64 = 60;
/// Each further window reaches so many times as far.
const GROWTH: u64 = 8;
/// Windows; the last one is all that is left. The one before it reaches back for three weeks.
const WINDOWS: usize = 7;

/// The conditions of windows on one side of the second `edge`, the next one first, to the second `far`,
/// beyond which nothing is looked for. Each row up to there is in one of them: those on the other side of
/// `edge` are in the first.
pub(crate) fn windows(edge: u64, far: u64, side: Side) -> impl Iterator<Item = String> {
    let [edge, far] = [edge, far].map(|second| u32::try_from(second).unwrap_or(u32::MAX));
    let reaches = std::iter::successors(Some(FIRST_SECONDS), |reach| Some(reach * GROWTH));
    // The window that reaches `far` is the last one, and has no end of its own.
    let ends = reaches.take(WINDOWS - 1).map_while(move |reach| {
        let reach = u32::try_from(reach).ok()?;
        match side {
            Side::Before => edge.checked_sub(reach).filter(|end| *end > far),
            Side::After => edge.checked_add(reach).filter(|end| *end < far),
        }
    });
    let (inside, outside) = match side {
        Side::Before => (">=", "<"),
        Side::After => ("<=", ">"),
    };
    let mut last = None;
    ends.map(Some).chain([None]).map(move |end| {
        let from = last.map(|last| format!("time {outside} toDateTime({last})"));
        let to = end.map(|end| format!("time {inside} toDateTime({end})"));
        last = end;
        let parts: Vec<String> = from.into_iter().chain(to).collect();
        if parts.is_empty() { "1".to_owned() } else { parts.join(" AND ") }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a condition as the database does.
    fn holds(condition: &str, time: u32) -> bool {
        condition.split(" AND ").all(|part| {
            let [_, sign, edge] = *part.split(' ').collect::<Vec<_>>() else { return part == "1" };
            let edge: u32 = edge.trim_start_matches("toDateTime(").trim_end_matches(')').parse().unwrap();
            match sign {
                "<" => time < edge,
                "<=" => time <= edge,
                ">" => time > edge,
                ">=" => time >= edge,
                _ => panic!("{part}"),
            }
        })
    }

    #[test]
    fn each_second_is_in_one_window_and_the_next_ones_come_first() {
        for side in [Side::Before, Side::After] {
            for edge in [0, 1, 59, 60, 61, 1_000_000, 1_795_651_200, u64::from(u32::MAX) - 70, u64::MAX] {
                let far = if side == Side::Before { 0 } else { u64::MAX };
                let windows: Vec<String> = windows(edge, far, side).collect();
                assert!(windows.len() <= WINDOWS);
                let edge = u32::try_from(edge).unwrap_or(u32::MAX);
                let steps =
                    (0..32).flat_map(|bit| [1u32 << bit, (1 << bit) - 1]).chain([60, 480, 3_840, 30_720]);
                let mut times: Vec<u32> =
                    steps.flat_map(|step| [edge.saturating_sub(step), edge.saturating_add(step)]).collect();
                times.sort_unstable();
                if side == Side::Before {
                    times.reverse();
                }
                let places = times.iter().map(|time| {
                    let mut places = (0..windows.len()).filter(|&at| holds(&windows[at], *time));
                    let place = places.next().unwrap();
                    assert_eq!(places.next(), None, "{time} {windows:?}");
                    place
                });
                assert!(places.is_sorted(), "{edge} {windows:?}");
                assert!(holds(&windows[0], edge));
            }
        }
    }

    #[test]
    fn nothing_is_asked_beyond_what_is_looked_for() {
        let count = |edge, far, side| windows(edge, far, side).count();
        assert_eq!(count(1_000_000, 999_950, Side::Before), 1);
        assert_eq!(count(1_000_000, 999_940, Side::Before), 1);
        assert_eq!(count(1_000_000, 999_939, Side::Before), 2);
        assert_eq!(count(1_000_000, 1_000_060, Side::After), 1);
        assert_eq!(count(1_000_000, 1_000_061, Side::After), 2);
        assert_eq!(count(1_000_000, 2_000_000, Side::Before), 1);
        assert_eq!(count(1_000_000_000, 0, Side::Before), WINDOWS);
    }
}
