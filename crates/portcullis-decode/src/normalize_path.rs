//! # `normalizePath`, `normalizePathWin`
//!
//! Turns runs of slashes into one, drops `.` segments, and lets `..` drop the segment before it, but never
//! the root of an absolute path, nor a `..` at the start of a relative one. A slash at the end stays if there
//! was one. `normalizePathWin` first turns every backslash into a slash.
//!
//! The details are ModSecurity's. A segment that ends with two dots counts as `..` if it is not the start of
//! a relative path (`/ab../c` becomes `/c`).
//!
//! Result: at most as long as the input. Not idempotent, because of the details.
//! Example: `/a/./b//../c` becomes `/a/c`.
//!
//! In a run of three or more backslashes ModSecurity leaves one of them; ours leaves a slash.

pub(crate) fn normalize(input: &[u8], windows: bool, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(input);
    let len = match out.get_mut(start..) {
        Some([]) | None => 0,
        Some(path) => {
            if windows {
                path.iter_mut().filter(|b| **b == b'\\').for_each(|b| *b = b'/');
            }
            normalize_in_place(path)
        }
    };
    out.truncate(start + len);
}

/// Moves what stays to the front of `path`, which is not empty; returns its length. One pass: what is written
/// was read before, and dropping a segment walks only over bytes that were written.
fn normalize_in_place(path: &mut [u8]) -> usize {
    let last = path.len() - 1;
    let relative = path[0] != b'/';
    let ends_with_slash = path[last] == b'/';
    let mut at_root = false;
    let mut write = 0;
    let mut read = 0;
    while read <= last {
        let at_end = read == last;
        let ends_segment = at_end || path[read + 1] == b'/';
        if ends_segment && path[read] == b'.' {
            match dots(&path[..write]) {
                // `..` with nothing to drop: copied.
                Dots::Two if relative && (at_root || write <= 2) => at_root = true,
                Dots::Two => {
                    write = start_of_segment(path, write.saturating_sub(3));
                    if write == 0 {
                        at_root = true;
                        // The root's own slash stays; elsewhere the next slash is copied anew.
                        write = usize::from(!relative && at_end);
                    }
                    read += 1;
                }
                Dots::One => {
                    // The slash before it is dropped; the one behind it is copied.
                    write -= usize::from(write > 0 && !at_end);
                    read += 1;
                }
                Dots::PartOfName => {}
            }
            if read > last {
                break;
            }
        } else if ends_segment && write > 0 && (at_end || path[read] != b'/') {
            at_root = false;
        }

        if path[read] == b'/' {
            while read < last && path[read + 1] == b'/' {
                read += 1;
            }
            if relative && write == 0 {
                read += 1;
                continue;
            }
        }
        path[write] = path[read];
        write += 1;
        read += 1;
    }
    if !ends_with_slash && write > 0 && path[write - 1] == b'/' {
        write -= 1;
    }
    write
}

/// The effect of a dot at the end of a segment, by the bytes written before it.
enum Dots {
    One,
    Two,
    PartOfName,
}

fn dots(written: &[u8]) -> Dots {
    match written.last() {
        Some(b'.') => Dots::Two,
        None | Some(b'/') => Dots::One,
        Some(_) => Dots::PartOfName,
    }
}

/// The last slash at or before `at`, or 0.
fn start_of_segment(path: &[u8], at: usize) -> usize {
    path[..=at].iter().rposition(|&b| b == b'/').unwrap_or(0)
}

#[cfg(test)]
mod tests {
    /// This property lets callers skip most texts with dots.
    #[test]
    fn without_a_slash_only_a_final_dot_matters() {
        let alphabet = [b'.', b'a', b'-'];
        for number in 0..3usize.pow(7) {
            let text: Vec<u8> = (0..7).map(|at| alphabet[number / 3usize.pow(at) % 3]).collect();
            for text in (1..=7).map(|length| &text[..length]).filter(|text| !text.ends_with(b".")) {
                let mut out = Vec::new();
                super::normalize(text, false, &mut out);
                assert_eq!(out, text);
            }
        }
    }
}
