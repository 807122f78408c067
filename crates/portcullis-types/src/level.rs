/// The level of the semantic detector, which sets the threshold for blocking.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Level {
    /// One false positive in 2,000 values that make a detector look at all.
    #[default]
    Balanced,
    /// One in 330; more attacks are caught.
    Strict,
}

impl Level {
    /// All levels.
    pub const ALL: &'static [Level] = &[Level::Balanced, Level::Strict];

    /// The level of that name.
    pub fn from_name(name: &str) -> Option<Level> {
        Level::ALL.iter().copied().find(|level| level.name() == name)
    }

    /// The name in configuration and events.
    pub fn name(self) -> &'static str {
        match self {
            Level::Balanced => "balanced",
            Level::Strict => "strict",
        }
    }
}
