//! `limits`: what clients may take.

use crate::checked::Limits;
use crate::mistakes::Mistakes;
use crate::raw;
use crate::spanned::Spanned;

/// The checked settings.
pub(super) fn check(mistakes: &mut Mistakes<'_>, raw: raw::Limits) -> Limits {
    let default = Limits::default();
    let mut at_least_one = |name: &str, given: Option<Spanned<u32>>| {
        let number = given?;
        if *number == 0 {
            mistakes.wrong(number.span, format!("{name} must be at least 1"));
            return Some(1);
        }
        Some(number.value)
    };
    let connections = at_least_one("connections", raw.connections)
        .map_or(default.connections_max, |number| number as usize);
    let of_network = at_least_one("network_connections", raw.network_connections);
    let bodies = at_least_one("network_bodies", raw.network_bodies).unwrap_or(default.network_bodies_max);
    let memory_part = raw.memory_part.map_or(default.memory_part_thousandths, |part| {
        if !(0.1..=1.0).contains(&part.value) {
            mistakes.wrong(part.span, "memory_part must be 0.1 to 1".to_string());
            return default.memory_part_thousandths;
        }
        (part.value * 1_000.0).round() as u32
    });
    let mut prefix =
        |name: &str, given: Option<Spanned<u8>>, range: std::ops::RangeInclusive<u8>, default| {
            let Some(bits) = given else { return default };
            if !range.contains(&bits.value) {
                let (start, end) = range.into_inner();
                mistakes.wrong(bits.span, format!("{name} must be {start} to {end} bits"));
                return default;
            }
            bits.value
        };
    let held = raw.held_bodies.map_or(default.held_body_bytes_max, |size| size.0);
    Limits {
        connections_max: connections,
        network_connections_max: of_network.map_or(connections.div_ceil(2), |number| number as usize),
        held_body_bytes_max: held,
        network_held_body_bytes_max: raw.network_held_bodies.map_or(held.div_ceil(2), |size| size.0),
        network_bodies_max: bodies,
        held_body_wait_max: raw.held_bodies_wait.map_or(default.held_body_wait_max, |time| time.0),
        memory_part_thousandths: memory_part,
        network_prefix_v4: prefix(
            "network_prefix_v4",
            raw.network_prefix_v4,
            8..=32,
            default.network_prefix_v4,
        ),
        network_prefix_v6: prefix(
            "network_prefix_v6",
            raw.network_prefix_v6,
            16..=128,
            default.network_prefix_v6,
        ),
        overload_lag_max: raw.overload_lag.map_or(default.overload_lag_max, |time| time.0),
        pause_max: raw.pause.map_or(default.pause_max, |time| time.0),
        pauses_max: raw.pauses.map_or(default.pauses_max, |number| number as usize),
        linger_bytes_max: raw.linger.map_or(default.linger_bytes_max, |size| size.0),
        issued_cookie_bytes_max: raw.issued_cookies.map_or(default.issued_cookie_bytes_max, |size| size.0),
    }
}
