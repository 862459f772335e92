//! Guests: a kernel and a network stack of their own, where other sites have a namespace.
//!
//! Owns what all guests share: files in the lab's folder, the boot image ([`image`]), the console for
//! commands ([`console`]), and which guests this host can run ([`fallback`]). [`crate::links`] starts a guest
//! and connects it to its host.

mod console;
mod fallback;
mod image;

use std::path::{Path, PathBuf};

use neph_model::BitRate;

pub(crate) use console::has_console;
pub use console::{Console, ConsoleError};
pub use fallback::FallbackGuests;
pub(crate) use fallback::{replace_unsupported, trial_steps};
pub(crate) use image::write as write_image;

/// The default port of a guest's reflector.
pub(crate) const DEFAULT_PORT: u16 = 8080;

/// A guest of a topology.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guest {
    /// Its index among the sites.
    pub site: usize,
    /// The port of its reflector.
    pub port: u16,
    /// The limit of its tap's bandwidth, if it has one.
    pub bandwidth: Option<BitRate>,
    /// The kind of its kernel.
    pub kernel: Kernel,
}

/// The kind of a guest's kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernel {
    /// A kernel of its own.
    Own,
    /// The kernel of this host: the guest is a namespace.
    Shared,
}

/// The two pipes of a guest's console in the folder of its lab: input, output. No service's file has such a
/// name: names have no dot.
pub(crate) fn console_pipes(folder: &Path, site: &str) -> [PathBuf; 2] {
    ["in", "out"].map(|direction| folder.join(format!("{site}.guest.{direction}")))
}
