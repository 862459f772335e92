//! The neph that measured, and its host.

/// The neph that measured.
#[derive(Clone, Copy, Debug)]
pub struct Origin {
    /// Version of neph.
    pub version: &'static str,
    /// Commit of neph.
    pub commit: &'static str,
    /// Whether the CPU idle states of all cores are disabled; `None` if they cannot be read.
    pub cpu_idle_disabled: Option<bool>,
}
