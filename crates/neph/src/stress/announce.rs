//! Saying that a load works, for those who measure under it: once all of its threads or connections do.

use clap::Args as ClapArgs;

use neph_load::WORKS;

use crate::output;

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

    /// The load works: says so, if it is to.
    pub(super) fn works(&self) {
        if self.announce {
            output::say(WORKS);
        }
    }
}
