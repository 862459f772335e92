//! Ports that are held open as far as files go, so that nobody else takes them.

use std::collections::BTreeMap;
use std::fs;

use socket2::Socket;

/// What Linux gives a process if nobody says otherwise.
const USUAL_FILES: usize = 1_024;

/// Holders of ports. Half of the process's files are left to others: beyond that a port is only
/// looked at when it is taken.
#[derive(Debug)]
pub(crate) struct Held {
    holders: BTreeMap<u16, Socket>,
    most: usize,
}

impl Held {
    pub(crate) fn new() -> Self {
        let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
        Self {
            holders: BTreeMap::new(),
            most: files(&limits).unwrap_or(USUAL_FILES) / 2,
        }
    }

    /// Keeps the port, if there is room for its holder.
    pub(crate) fn keep(&mut self, port: u16, holder: Socket) {
        if self.holders.len() < self.most {
            self.holders.insert(port, holder);
        }
    }

    pub(crate) fn let_go(&mut self, port: u16) {
        self.holders.remove(&port);
    }
}

/// The soft limit on open files.
fn files(limits: &str) -> Option<usize> {
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_files_are_ours() {
        let told = "Limit   Soft Limit   Hard Limit   Units\n\
                    Max processes             31477      31477      processes\n\
                    Max open files            1024       524288     files\n";
        assert_eq!(files(told), Some(1024));
        assert_eq!(
            files("Max open files            unlimited  unlimited  files\n"),
            None
        );
        let mut held = Held {
            holders: BTreeMap::new(),
            most: 1,
        };
        for port in [0, 1] {
            let any = (std::net::Ipv4Addr::LOCALHOST, 0).into();
            held.keep(port, crate::raw_tcp::hold(any).expect("a port"));
        }
        assert_eq!(held.holders.len(), 1);
        held.let_go(0);
        assert!(held.holders.is_empty());
    }
}
