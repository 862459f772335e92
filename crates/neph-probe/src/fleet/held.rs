//! Ports that are held open as far as files go, so that nobody else takes them.

use std::collections::BTreeMap;

use neph_sys::files;
use socket2::Socket;

/// Holders of ports. Half of the process's files are left to others: beyond that a port is only
/// looked at when it is taken.
#[derive(Debug)]
pub(crate) struct Held {
    holders: BTreeMap<u16, Socket>,
    most: usize,
}

impl Held {
    pub(crate) fn new() -> Self {
        let files = files::raise_limit().unwrap_or(0);
        Self {
            holders: BTreeMap::new(),
            most: usize::try_from(files / 2).unwrap_or(usize::MAX),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_files_are_held_than_there_is_room_for() {
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
