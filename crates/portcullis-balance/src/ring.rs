//! Consistent hashing on a ring, as Ketama has it: each endpoint has points on a circle of hashes, and a key
//! belongs to the first point behind its own hash. If an endpoint goes away, only its own keys move, to the
//! points behind them; all nodes with the same endpoints agree without asking each other.

use crate::random::mix;

/// Points for each unit of weight, as nginx and HAProxy have it.
const POINTS: u64 = 160;
/// Points of all endpoints together, beyond which each unit gets fewer.
const POINTS_MAX: u64 = 1 << 18;

/// The points of all endpoints, sorted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ring(Vec<(u64, u32)>);

impl Ring {
    /// A ring of endpoints, given as name and weight; the index is their number.
    pub(crate) fn new<'a>(endpoints: impl Iterator<Item = (&'a str, u32)> + Clone) -> Ring {
        let total: u64 = endpoints.clone().map(|(_, weight)| u64::from(weight)).sum();
        let each = POINTS.min(POINTS_MAX / total.max(1)).max(1);
        let mut points = Vec::new();
        for (number, (name, weight)) in endpoints.enumerate() {
            let base = hash(name.as_bytes());
            for point in 0..each * u64::from(weight) {
                points.push((mix(base ^ mix(point + 1)), number as u32));
            }
        }
        points.sort_unstable();
        Ring(points)
    }

    /// The endpoints to ask for a key, the best first; one may come several times.
    pub(crate) fn walk(&self, key: u64) -> impl Iterator<Item = usize> + '_ {
        let start = self.0.partition_point(|(hash, _)| *hash < key);
        let (before, behind) = self.0.split_at(start);
        behind.iter().chain(before).map(|(_, number)| *number as usize)
    }
}

/// The hash of a key (FNV-1a, its bits spread): the same on every node and in every version.
pub fn hash(key: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    mix(key.iter().fold(0xcbf2_9ce4_8422_2325, step))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring(names: &[&str]) -> Ring {
        Ring::new(names.iter().map(|name| (*name, 1)))
    }

    fn owner(ring: &Ring, names: &[&str], key: u64) -> String {
        names[ring.walk(mix(key)).next().expect("a point")].to_string()
    }

    #[test]
    fn only_the_keys_of_an_endpoint_that_goes_move() {
        let all = ["a:80", "b:80", "c:80", "d:80", "e:80"];
        let without = ["a:80", "b:80", "d:80", "e:80"];
        let (before, after) = (ring(&all), ring(&without));
        let mut moved = 0;
        for key in 0..20_000 {
            let old = owner(&before, &all, key);
            let new = owner(&after, &without, key);
            if old == "c:80" {
                moved += 1;
                let next = before.walk(mix(key)).map(|at| all[at]).find(|name| *name != "c:80");
                assert_eq!(next, Some(new.as_str()), "where it goes when c is only down");
            } else {
                assert_eq!(old, new);
            }
        }
        assert!((2_000..6_000).contains(&moved), "c had {moved} of 20000 keys");
    }

    #[test]
    fn keys_spread_by_weight() {
        let ring = Ring::new([("a:80", 1), ("b:80", 2), ("c:80", 5)].into_iter());
        let mut counts = [0u32; 3];
        for key in 0..80_000 {
            counts[ring.walk(mix(key)).next().expect("a point")] += 1;
        }
        for (count, expected) in counts.into_iter().zip([10_000f64, 20_000., 50_000.]) {
            let ratio = f64::from(count) / expected;
            assert!((0.75..1.25).contains(&ratio), "{counts:?}");
        }
    }

    #[test]
    fn hashes_do_not_change_between_versions() {
        // A node with another value would send the same client elsewhere.
        assert_eq!(hash(b""), 0xf52a_15e9_a9b5_e89b);
        assert_eq!(hash(b"192.0.2.1"), 0x4d0e_1bc6_8452_59f5);
    }
}
