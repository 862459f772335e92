//! Saying that a load works, for those who measure under it: once all of its threads or connections do.

use std::sync::atomic::{AtomicUsize, Ordering};

use clap::Args as ClapArgs;

use crate::output;

/// What is said then, on standard error.
pub(crate) const WORKS: &str = "neph stress: it works";

/// Whether it is to be said.
#[derive(Debug, Default, ClapArgs)]
pub(super) struct Announce {
    /// Say on standard error when the load works: each core at its target, an answer on each
    /// connection
    #[arg(long)]
    announce: bool,
}

impl Announce {
    /// It is.
    pub(super) const YES: Self = Self { announce: true };
}

/// How many parts of a load do not work yet.
#[derive(Debug)]
pub(super) struct Beginning {
    asked: bool,
    idle: AtomicUsize,
}

impl Beginning {
    /// Of a load of so many parts.
    pub(super) const fn of(announce: &Announce, parts: usize) -> Self {
        Self {
            asked: announce.announce,
            idle: AtomicUsize::new(parts),
        }
    }

    /// One of them works from now on. It says so once.
    pub(super) fn one_works(&self) {
        let was_last = self.idle.fetch_sub(1, Ordering::Relaxed) == 1;
        if self.asked && was_last {
            output::say(WORKS);
        }
    }
}
