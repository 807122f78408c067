//! How the cost of a message grows with its length: see docs/performance.md, "Worst case".

use portcullis_semantic::{Analysis, Detectors};

use crate::exchange::Engine;
use crate::worst::{PLACES, cost, message};

/// Bytes of text: each is twice the one before.
const SIZES: std::ops::RangeInclusive<u32> = 8..=17;

/// Prints for each place of a request, or those whose names contain `place`, what `unit`, said again and again, costs: CPU microseconds
/// per KB, and below it the bytes that the semantic detector reads for each byte of the message.
pub fn growth(engine: &mut Engine, unit: &str, place: &str) {
    let sizes = SIZES.map(|power| format!("{:>8}", 1 << power));
    println!("{:<26} {}", "bytes", sizes.collect::<String>());
    let detectors = Detectors::new();
    let mut analysis = Analysis::new();
    let is_wanted = |name: &str| name.to_lowercase().contains(&place.to_lowercase());
    for of in PLACES.into_iter().filter(|of| is_wanted(&format!("{of:?}"))) {
        let (mut times, mut readings) = (String::new(), String::new());
        for bytes in SIZES.map(|power| 1 << power) {
            let (us, length) = cost(engine, of, unit, bytes);
            times += &format!("{:>8.1}", us * 1024.0 / length as f64);
            let Some(message) = message(of, unit, bytes) else { continue };
            message.analyse(&detectors, &mut analysis);
            readings += &format!("{:>8.1}", analysis.work().0 as f64 / length as f64);
        }
        let name = format!("{of:?}");
        println!("{name:<14} us per KB   {times}\n{:<14} bytes read  {readings}", "");
    }
}
