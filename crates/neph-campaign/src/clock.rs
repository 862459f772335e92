//! The clock of a campaign: it is given to it, so that a test can run in virtual time.

use std::fmt::Debug;

use neph_model::{Stop, Wall};

/// Reads the time and waits. The campaign reads no clock itself.
pub trait Clock: Debug {
    /// Now.
    fn now(&self) -> Wall;
    /// Waits until `until`, or until `stop` is set, whichever comes first; at once if it is past.
    fn wait_until(&self, until: Wall, stop: &Stop);
}
