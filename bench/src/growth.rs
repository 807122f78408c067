//! How the cost of a message grows with its length: see docs/performance.md, "Worst case".

use portcullis_semantic::{Analysis, Detectors};

use crate::exchange::Engine;
use crate::worst::{cost, message, places};

/// Bytes of text: each is twice the one before.
const SIZES: std::ops::RangeInclusive<u32> = 8..=17;

/// Prints for each place of a request, or those whose names contain `place`, what `unit`, said again and
/// again, costs: CPU microseconds per KB, and below it the bytes that the semantic detector reads for each
/// byte of the message.
pub fn growth(engine: &mut Engine, unit: &str, place: &str) {
    let sizes = SIZES.map(|power| format!("{:>8}", 1 << power));
    println!("{:<26} {}", "bytes", sizes.collect::<String>());
    let detectors = Detectors::new();
    let mut analysis = Analysis::new();
    for of in places(place) {
        let (mut times, mut readings) = (String::new(), String::new());
        for bytes in SIZES.map(|power| 1 << power) {
            let cost = cost(engine, of, unit, bytes);
            times += &format!("{:>8.1}", cost.us_per_kb());
            let Some(message) = message(of, unit, bytes) else { continue };
            message.analyse(&detectors, &mut analysis);
            readings += &format!("{:>8.1}", analysis.work().0 as f64 / cost.bytes.max(1) as f64);
        }
        let name = format!("{of:?}");
        let verdict = message(of, unit, 1 << SIZES.end()).map(|message| engine.exchange(&message));
        let rules: Vec<u32> = verdict.iter().flat_map(|verdict| &verdict.rules).map(|rule| rule.0).collect();
        println!("{name:<14} rules {rules:?}");
        println!("{name:<14} us per KB   {times}\n{:<14} bytes read  {readings}", "");
    }
}
