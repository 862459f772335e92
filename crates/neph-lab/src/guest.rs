//! Guests: a kernel of its own with a network stack of its own, where other sites have a namespace.
//!
//! Owns what every guest has, whatever runs it: its files in the lab's folder, the image that it
//! starts from ([`image`]) and the console that commands reach it by ([`console`]); and which guests
//! this machine can have ([`settle`]). How a guest is started and joined to its host is in
//! [`crate::links`].

mod console;
mod image;
mod settle;

use std::path::{Path, PathBuf};

use neph_model::BitRate;

pub(crate) use console::has_console;
pub use console::{Console, ConsoleError};
pub(crate) use image::write as write_image;
pub use settle::StandIn;
pub(crate) use settle::{settle, trial_steps};

/// The port that a guest's reflector listens on unless its table says otherwise.
pub(crate) const PORT: u16 = 8080;

/// A guest of a topology.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guest {
    /// Its index among the sites.
    pub site: usize,
    /// The port of the reflector that runs in it.
    pub port: u16,
    /// What its tap lets in, where that has a ceiling.
    pub bandwidth: Option<BitRate>,
    /// Whose kernel it has.
    pub kernel: Kernel,
}

/// Whose kernel a guest has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernel {
    /// One of its own.
    Own,
    /// That of this machine: it is a namespace.
    Shared,
}

/// The two pipes of a guest's console in the folder of its lab: what goes in, what comes out. No
/// service's file is called so: names have no dot.
pub(crate) fn pipes(folder: &Path, site: &str) -> [PathBuf; 2] {
    ["in", "out"].map(|way| folder.join(format!("{site}.guest.{way}")))
}
