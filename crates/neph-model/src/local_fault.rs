//! The fault of this host that a failed system call names, and the call in a sentence.

use std::io;

use crate::{Answer, LocalFault};

/// errno values of Linux that `io::ErrorKind` does not name, or not on stable Rust.
mod errno {
    pub(super) const EPERM: i32 = 1;
    pub(super) const ENOMEM: i32 = 12;
    pub(super) const EACCES: i32 = 13;
    pub(super) const ENFILE: i32 = 23;
    pub(super) const EMFILE: i32 = 24;
    pub(super) const EMSGSIZE: i32 = 90;
    pub(super) const EADDRINUSE: i32 = 98;
    pub(super) const EADDRNOTAVAIL: i32 = 99;
    pub(super) const ENETDOWN: i32 = 100;
    pub(super) const ENETUNREACH: i32 = 101;
    pub(super) const ENOBUFS: i32 = 105;
}

impl LocalFault {
    /// The fault of this host that the error names; `None` if the network or the peer caused it.
    pub fn of(error: &io::Error) -> Option<Self> {
        Some(match error.raw_os_error()? {
            errno::EADDRNOTAVAIL | errno::EADDRINUSE => Self::NoPort,
            errno::EMFILE | errno::ENFILE => Self::NoDescriptor,
            errno::ENOBUFS => Self::NoBuffer,
            errno::ENOMEM => Self::NoMemory,
            errno::EPERM | errno::EACCES => Self::Forbidden,
            errno::ENETUNREACH | errno::ENETDOWN => Self::NoRoute,
            errno::EMSGSIZE => Self::TooLarge,
            _ => return None,
        })
    }
}

/// A call that failed during `action`, in a sentence: a fault of this host is named as
/// such, with a remedy.
pub fn failed_call(action: &str, error: &io::Error, fault: Option<LocalFault>) -> String {
    let text = error.to_string();
    let operation = text.split(" (os error").next().unwrap_or(&text);
    match fault {
        Some(fault) => format!(
            "{action}: {} ({operation}); {}",
            Answer::Local(fault).description(),
            fault.remedy()
        ),
        None => format!("{action}: {operation}"),
    }
}
