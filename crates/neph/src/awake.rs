//! `--awake`: keeps CPU cores out of idle states while a command measures or replies.
//!
//! Otherwise measured times include the wake-up of a core: about 100 us on a virtual machine, up to
//! milliseconds.

use clap::Args as ClapArgs;
use neph_sys::awake::{self, Awake};

use crate::output;

/// Whether all CPU cores stay out of idle states.
#[derive(Clone, Copy, Debug, ClapArgs)]
pub(crate) struct AwakeChoice {
    /// Keep all CPU cores of this host out of idle states (C-states) while neph runs; costs power, needs root
    #[arg(long)]
    awake: bool,
}

impl AwakeChoice {
    /// Keeps all cores out of idle states until the result is dropped, if that is requested and
    /// permitted.
    pub(crate) fn keep(self) -> Option<Awake> {
        if !self.awake {
            return None;
        }
        let awake = Awake::keep();
        output::say(&awake_message(awake.as_ref().map(|_| ())));
        awake.ok()
    }
}

fn awake_message(result: Result<(), &std::io::Error>) -> String {
    match result {
        Ok(()) => "neph: all cores of this machine are kept awake".to_owned(),
        Err(error) => format!(
            "neph: --awake: cores may sleep as ever, /dev/cpu_dma_latency cannot be written ({error}); run it as root"
        ),
    }
}

/// Whether any process currently prevents idle states; `None` if that cannot be read.
pub(crate) fn is_cpu_idle_disabled() -> Option<bool> {
    awake::permitted_us()
        .ok()
        .map(|permitted_us| permitted_us == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_permission_is_reported_with_its_remedy() {
        let error = std::io::Error::from(std::io::ErrorKind::PermissionDenied);
        let message = awake_message(Err(&error));
        assert!(message.contains("cores may sleep as ever"), "{message}");
        assert!(message.ends_with("run it as root"), "{message}");
        assert!(!message.contains('\n'), "{message}");
    }
}
