//! `neph gallery`: the published findings that neph reproduces.

crate::rows! {
    /// An entry of the gallery.
    pub struct EntryRow {
        /// Its name.
        name: &'static str => left "NAME",
        /// What was found.
        finding: &'static str => left "FINDING",
        /// Where it was published.
        published: &'static str => left "PUBLISHED",
    }
}
