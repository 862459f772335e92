//! Owns what a store is opened for.

/// What a store is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Looking only: needs no lock and may happen while another process writes.
    Read,
    /// Measuring or importing: needs the workspace for oneself.
    Write,
}
