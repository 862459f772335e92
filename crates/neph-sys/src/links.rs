//! Interfaces that go down or away, or come up, as rtnetlink reports them (rtnetlink(7)).
//!
//! Owns the netlink socket and which interfaces there are. Does not change any, and needs no privilege.

#![expect(
    unsafe_code,
    reason = "system calls; each block states why it is sound"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// `RTM_NEWLINK`, `RTM_DELLINK` and `RTM_GETLINK` of linux/rtnetlink.h.
const NEW: u16 = 16;
const GONE: u16 = 17;
const GET: u16 = 18;
/// `NLMSG_DONE` of linux/netlink.h: all requested interfaces were reported.
const DONE: u16 = 3;
/// `RTMGRP_LINK`.
const ALL_LINKS: u32 = 1;
/// `NLM_F_REQUEST` and `NLM_F_DUMP` of linux/netlink.h.
const ASK_FOR_ALL: u16 = 0x301;
/// `NLM_F_MULTI` and `NLM_F_DUMP_INTR` there: the answer may lack some, since they changed meanwhile.
const TORN: u16 = 0x12;
/// `IFLA_IFNAME` of `linux/if_link.h`.
const NAME: u16 = 3;
/// `IFF_UP`.
const UP: u32 = 1;
/// `AF_UNSPEC`: a message about the interface itself. A bridge reports with `AF_BRIDGE` that a port has
/// left it, although the port stays up.
const ITSELF: u8 = 0;
/// Bytes of a `struct nlmsghdr` and of a `struct ifinfomsg`.
const HEADER: usize = 16;
const ABOUT: usize = 16;
/// The kernel puts no more into one datagram.
const ROOM: usize = 1 << 15;

/// Which interfaces of a network namespace there are, and which of them are up.
#[derive(Debug)]
pub struct Links {
    socket: OwnedFd,
    /// By number.
    known: BTreeMap<u32, Link>,
    /// Interfaces that were reported since all were requested, until the reply is complete.
    incoming: Option<BTreeSet<u32>>,
    /// Whether some of the news did not fit the socket's memory.
    has_missed: bool,
    /// For a datagram.
    room: Vec<u8>,
}

/// What became of an interface, by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// It was up, and went down or away.
    Down(String),
    /// It is up, and was not, or not there.
    Up(String),
}

#[derive(Debug, PartialEq, Eq)]
struct Link {
    name: String,
    is_up: bool,
}

/// What the kernel reports about an interface.
#[derive(Debug, PartialEq, Eq)]
enum Reported {
    Present(u32, Link),
    Removed(u32),
    /// All existing interfaces were reported.
    EndOfListing,
    /// The answer to what was asked may lack some.
    Truncated,
}

impl Links {
    /// Listens in the calling thread's network namespace.
    ///
    /// # Errors
    /// The kernel has no netlink, or no memory.
    pub fn listen() -> io::Result<Self> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: takes no memory of this process.
        let number = unsafe { libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_ROUTE) };
        if number < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the socket was just made, and it has no other owner.
        let socket = unsafe { OwnedFd::from_raw_fd(number) };
        bind(&socket)?;
        let mut links = Self {
            socket,
            known: BTreeMap::new(),
            incoming: None,
            has_missed: false,
            room: vec![0; ROOM],
        };
        links.ask()?;
        links.changes();
        Ok(links)
    }

    /// The number of the interface with this name, if it is up by the latest report.
    pub fn number_of_up(&self, name: &str) -> Option<u32> {
        let is_it = |link: &Link| link.is_up && link.name == name;
        let found = self.known.iter().find(|(_, link)| is_it(link));
        found.map(|(number, _)| *number)
    }

    /// Whether the interface with this number exists, by the latest report.
    pub fn has(&self, number: u32) -> bool {
        self.known.contains_key(&number)
    }

    /// Asks for all interfaces: the answers come among the news.
    fn ask(&mut self) -> io::Result<()> {
        let mut request = [0_u8; HEADER + ABOUT];
        let length = u32::try_from(request.len()).expect("32 fits");
        request[..4].copy_from_slice(&length.to_ne_bytes());
        request[4..6].copy_from_slice(&GET.to_ne_bytes());
        request[6..8].copy_from_slice(&ASK_FOR_ALL.to_ne_bytes());
        // SAFETY: the kernel reads no more than the request's bytes, which live until the call returns.
        let sent = unsafe {
            libc::send(
                self.socket.as_raw_fd(),
                request.as_ptr().cast(),
                request.len(),
                0,
            )
        };
        if sent < 0 {
            return Err(io::Error::last_os_error());
        }
        (self.incoming, self.has_missed) = (Some(BTreeSet::new()), false);
        Ok(())
    }

    /// What became of interfaces since the last question. Never waits.
    pub fn changes(&mut self) -> Vec<Change> {
        let mut changes = self.take();
        // Only now: the kernel sends no news until its earlier messages were read. If the request fails,
        // the next call repeats it.
        if self.has_missed && self.incoming.is_none() && self.ask().is_ok() {
            changes.extend(self.take());
        }
        changes
    }

    /// What there is to take.
    fn take(&mut self) -> Vec<Change> {
        let mut changes = Vec::new();
        let mut room = std::mem::take(&mut self.room);
        while let Some(length) = self.receive(&mut room) {
            for notice in links(&room[..length]) {
                changes.extend(self.see(notice));
            }
        }
        self.room = room;
        changes
    }

    /// What this changes.
    fn see(&mut self, notice: Reported) -> Vec<Change> {
        if let (Some(incoming), Reported::Present(number, _) | Reported::Removed(number)) =
            (&mut self.incoming, &notice)
        {
            incoming.insert(*number);
        }
        let change = match notice {
            Reported::Present(number, link) => self.update_link(number, link),
            Reported::Removed(number) => self.known.remove(&number).and_then(Link::down_change),
            Reported::Truncated => {
                self.has_missed = true;
                None
            }
            Reported::EndOfListing => return self.remove_unlisted(),
        };
        change.into_iter().collect()
    }

    fn update_link(&mut self, number: u32, link: Link) -> Option<Change> {
        let (name, is_up) = (link.name.clone(), link.is_up);
        let before = self.known.insert(number, link);
        let was_up = before.is_some_and(|before| before.is_up);
        match (was_up, is_up) {
            (true, false) => Some(Change::Down(name)),
            (false, true) => Some(Change::Up(name)),
            _ => None,
        }
    }

    /// What was up and is no longer there, unless more was missed since the request for all.
    fn remove_unlisted(&mut self) -> Vec<Change> {
        let incoming = self.incoming.take().filter(|_| !self.has_missed);
        let Some(incoming) = incoming else {
            return Vec::new();
        };
        let removed = self
            .known
            .extract_if(.., |number, _| !incoming.contains(number));
        removed.filter_map(|(_, link)| link.down_change()).collect()
    }

    /// Takes a datagram, if there is one; notes where some did not fit the socket's memory.
    fn receive(&mut self, room: &mut [u8]) -> Option<usize> {
        loop {
            // SAFETY: the kernel writes no more than the room's bytes; only this call uses it meanwhile.
            let received = unsafe {
                libc::recv(
                    self.socket.as_raw_fd(),
                    room.as_mut_ptr().cast(),
                    room.len(),
                    0,
                )
            };
            if let Ok(length) = usize::try_from(received) {
                return Some(length.min(room.len()));
            }
            match io::Error::last_os_error().raw_os_error() {
                Some(libc::ENOBUFS) => self.has_missed = true,
                Some(libc::EINTR) => {}
                _ => return None,
            }
        }
    }
}

impl Link {
    /// It is no longer there.
    fn down_change(self) -> Option<Change> {
        self.is_up.then_some(Change::Down(self.name))
    }
}

/// Hears of all interfaces.
fn bind(socket: &OwnedFd) -> io::Result<()> {
    // SAFETY: sockaddr_nl is plain C data for which all zeros is valid.
    let mut address: libc::sockaddr_nl = unsafe { zeroed() };
    address.nl_family = libc::sa_family_t::try_from(libc::AF_NETLINK).expect("16 fits");
    address.nl_groups = ALL_LINKS;
    let length = libc::socklen_t::try_from(size_of::<libc::sockaddr_nl>()).expect("12 fits");
    // SAFETY: the address lives until the call returns, and `length` is its size.
    match unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The reports about interfaces in a datagram of rtnetlink.
fn links(mut datagram: &[u8]) -> Vec<Reported> {
    let mut links = Vec::new();
    while let Some(header) = datagram.get(..HEADER) {
        let length = usize::try_from(word(header, 0)).unwrap_or(usize::MAX);
        let Some(message) = datagram.get(HEADER..length) else {
            break;
        };
        if half(header, 6) & TORN == TORN {
            links.push(Reported::Truncated);
        }
        if half(header, 4) == DONE {
            links.push(Reported::EndOfListing);
        }
        links.extend(link(half(header, 4), message));
        datagram = datagram.get(length.next_multiple_of(4)..).unwrap_or(&[]);
    }
    links
}

/// The report of a message about an interface itself; `None` for an existing one without a name.
fn link(kind: u16, message: &[u8]) -> Option<Reported> {
    let is_of_link = kind == NEW || kind == GONE;
    if !is_of_link || message.len() < ABOUT || message[0] != ITSELF {
        return None;
    }
    let number = word(message, 4);
    if kind == GONE {
        return Some(Reported::Removed(number));
    }
    let link = Link {
        name: name(&message[ABOUT..])?,
        is_up: word(message, 8) & UP != 0,
    };
    Some(Reported::Present(number, link))
}

/// The name among an interface's attributes.
fn name(mut attributes: &[u8]) -> Option<String> {
    loop {
        let head = attributes.get(..4)?;
        let length = usize::from(half(head, 0));
        let value = attributes.get(4..length)?;
        if half(head, 2) == NAME {
            let text = value.split(|byte| *byte == 0).next()?;
            return Some(String::from_utf8_lossy(text).into_owned());
        }
        attributes = attributes.get(length.next_multiple_of(4)..)?;
    }
}

fn half(bytes: &[u8], at: usize) -> u16 {
    u16::from_ne_bytes([bytes[at], bytes[at + 1]])
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[cfg(test)]
mod tests;
