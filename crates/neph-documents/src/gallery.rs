//! `neph gallery`: the published findings that neph reproduces.

crate::rows! {
    /// An entry of the gallery: a published finding.
    pub struct EntryRow {
        /// Name of the entry.
        name: &'static str => left "NAME",
        /// The finding.
        finding: &'static str => left "FINDING",
        /// Publication of the finding.
        published: &'static str => left "PUBLISHED",
    }
}
