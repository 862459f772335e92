//! Which neph measured, and on what host.

/// Which neph measured.
#[derive(Clone, Copy, Debug)]
pub struct Origin {
    /// The version.
    pub version: &'static str,
    /// The commit.
    pub commit: &'static str,
    /// Whether no core of this machine may sleep; `None` where that cannot be read.
    pub cpu_idle_disabled: Option<bool>,
}
