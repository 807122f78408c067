use portcullis_types::Variable;

/// Name and value pairs of a persistent collection.
pub type Entries = Vec<(Vec<u8>, Vec<u8>)>;

/// Where persistent collections (`IP`, `SESSION`, ...) live between transactions. Implementations bound what
/// they keep; the engine only reads at `initcol` and writes at the end of a transaction that changed something.
pub trait Collections: Send + Sync + std::fmt::Debug {
    /// The entries of the collection's record `key`; none if it is unknown or expired.
    fn load(&self, collection: Variable, key: &[u8], epoch_seconds: i64) -> Entries;
    /// Replaces the record.
    fn save(&self, collection: Variable, key: &[u8], epoch_seconds: i64, entries: Entries);
}

/// Keeps nothing: every `initcol` opens an empty record.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoCollections;

impl Collections for NoCollections {
    fn load(&self, _: Variable, _: &[u8], _: i64) -> Entries {
        Vec::new()
    }

    fn save(&self, _: Variable, _: &[u8], _: i64, _: Entries) {}
}
