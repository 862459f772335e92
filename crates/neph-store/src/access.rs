//! Owns the access modes of a store.

/// What a store is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Read only: needs no lock; another process may write at the same time.
    Read,
    /// Measure or import: needs the workspace lock.
    Write,
}
