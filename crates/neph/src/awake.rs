//! `--awake`: the machine's cores do not sleep while a command measures or answers.
//!
//! Without it the waking of a core is part of what a program waits: some 100 us on a virtual machine,
//! at worst milliseconds.

use clap::Args as ClapArgs;
use neph_sys::awake::{self, Awake};

use crate::output;

/// Whether the cores are to be kept awake.
#[derive(Clone, Copy, Debug, ClapArgs)]
pub(crate) struct AwakeChoice {
    /// Keep all cores of this machine awake meanwhile, so that nobody waits for one to wake; costs
    /// power, and needs root
    #[arg(long)]
    awake: bool,
}

impl AwakeChoice {
    /// Keeps them awake as long as what it returns lives, where that was asked for and is permitted.
    pub(crate) fn keep(self) -> Option<Awake> {
        if !self.awake {
            return None;
        }
        let kept = Awake::keep();
        output::say(&reported(kept.as_ref().map(|_| ())));
        kept.ok()
    }
}

fn reported(kept: Result<(), &std::io::Error>) -> String {
    match kept {
        Ok(()) => "neph: all cores of this machine are kept awake".to_owned(),
        Err(error) => format!(
            "neph: --awake: cores may sleep as ever, /dev/cpu_dma_latency cannot be written ({error}); run it as root"
        ),
    }
}

/// Whether no core may sleep at the moment, by the request of any process; `None` if it cannot be read.
pub(crate) fn is_kept() -> Option<bool> {
    awake::permitted_us().ok().map(|permitted| permitted == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_permitted_is_said_with_its_remedy() {
        let error = std::io::Error::from(std::io::ErrorKind::PermissionDenied);
        let reported = reported(Err(&error));
        assert!(reported.contains("cores may sleep as ever"), "{reported}");
        assert!(reported.ends_with("run it as root"), "{reported}");
        assert!(!reported.contains('\n'), "{reported}");
    }
}
