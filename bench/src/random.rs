//! Values that no cache has seen: a seeded generator, so that two runs measure the same bytes.

/// A seeded generator.
pub struct Random(u64);

impl Random {
    /// The generator of this seed.
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// xorshift64*.
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below a bound.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() >> 33) as usize % bound
    }

    /// One of several texts.
    pub fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }

    /// Small letters and digits.
    pub fn word(&mut self, length: usize) -> String {
        (0..length).map(|_| char::from(b"abcdefghijklmnopqrstuvwxyz0123456789"[self.below(36)])).collect()
    }

    /// English of sorts, about `length` bytes.
    pub fn prose(&mut self, length: usize) -> String {
        let mut text = String::new();
        while text.len() < length {
            if !text.is_empty() {
                text.push_str([" ", " ", " ", " ", ", ", ". "][self.below(6)]);
            }
            text.push_str(self.pick(&WORDS));
        }
        text
    }
}

/// None of them is a word of any language that rules look for.
const WORDS: [&str; 48] = [
    "garden", "river", "yellow", "winter", "morning", "people", "bridge", "summer", "quiet", "window",
    "letter", "mountain", "small", "village", "green", "music", "paper", "station", "journey", "kitchen",
    "simple", "weather", "evening", "market", "blue", "forest", "holiday", "teacher", "story", "picture",
    "bread", "coffee", "gentle", "autumn", "piano", "dinner", "friendly", "house", "silver", "lake",
    "distant", "harbour", "orange", "cloud", "narrow", "street", "bright", "stone",
];
