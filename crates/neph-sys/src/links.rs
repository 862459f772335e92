//! Interfaces that go down or away, as rtnetlink tells them (rtnetlink(7)).
//!
//! Owns the netlink socket and which interfaces are up. Does not change any, and needs no privilege.

#![expect(unsafe_code, reason = "system calls; each block says why it is sound")]

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// `RTM_NEWLINK`, `RTM_DELLINK` and `RTM_GETLINK` of linux/rtnetlink.h.
const NEW: u16 = 16;
const GONE: u16 = 17;
const GET: u16 = 18;
/// `NLMSG_DONE` of linux/netlink.h: all interfaces were told that were asked for.
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
/// `AF_UNSPEC`: said of the interface itself. A bridge says of a port that leaves it (`AF_BRIDGE`) that
/// it is gone, and it stays up.
const ITSELF: u8 = 0;
/// Bytes of a `struct nlmsghdr` and of a `struct ifinfomsg`.
const HEADER: usize = 16;
const ABOUT: usize = 16;
/// The kernel puts no more into one datagram.
const ROOM: usize = 1 << 15;

/// Which interfaces of a network namespace are up.
#[derive(Debug)]
pub struct Links {
    socket: OwnedFd,
    /// Names by number.
    up: BTreeMap<u32, String>,
    /// Which were heard of since all were asked for, until all are told.
    heard: Option<BTreeSet<u32>>,
    /// Whether some of the news did not fit the socket's memory.
    has_missed: bool,
    /// For a datagram.
    room: Vec<u8>,
}

/// What the kernel says of an interface.
#[derive(Debug, PartialEq, Eq)]
enum Told {
    Up(u32, String),
    /// Down or gone.
    Down(u32),
    /// All that are there were told.
    All,
    /// The answer to what was asked may lack some.
    Torn,
}

impl Links {
    /// Listens in the calling thread's network namespace.
    ///
    /// # Errors
    /// The kernel has no netlink, or no memory.
    pub fn listen() -> io::Result<Self> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: takes no memory of ours.
        let number = unsafe { libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_ROUTE) };
        if number < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the socket was just made, and nobody else has it.
        let socket = unsafe { OwnedFd::from_raw_fd(number) };
        bind(&socket)?;
        let mut links = Self {
            socket,
            up: BTreeMap::new(),
            heard: None,
            has_missed: false,
            room: vec![0; ROOM],
        };
        links.ask()?;
        links.fallen();
        Ok(links)
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
        (self.heard, self.has_missed) = (Some(BTreeSet::new()), false);
        Ok(())
    }

    /// Names of interfaces that were up and went down or away since the last question. Never waits.
    pub fn fallen(&mut self) -> Vec<String> {
        let mut fallen = self.take();
        // Only now: the kernel tells no news until what it has told already was taken. Who cannot be
        // asked now is asked the next time.
        if self.has_missed && self.heard.is_none() && self.ask().is_ok() {
            fallen.extend(self.take());
        }
        fallen
    }

    /// What there is to take.
    fn take(&mut self) -> Vec<String> {
        let mut fallen = Vec::new();
        let mut room = std::mem::take(&mut self.room);
        while let Some(length) = self.receive(&mut room) {
            for told in links(&room[..length]) {
                fallen.extend(self.see(told));
            }
        }
        self.room = room;
        fallen
    }

    /// The names of those that fell by this.
    fn see(&mut self, told: Told) -> Vec<String> {
        if let (Some(heard), Told::Up(number, _) | Told::Down(number)) = (&mut self.heard, &told) {
            heard.insert(*number);
        }
        match told {
            Told::Up(number, name) => drop(self.up.insert(number, name)),
            Told::Down(number) => return self.up.remove(&number).into_iter().collect(),
            Told::Torn => self.has_missed = true,
            Told::All => return self.unheard(),
        }
        Vec::new()
    }

    /// What was up and is no longer there, unless more was missed since all were asked for.
    fn unheard(&mut self) -> Vec<String> {
        let heard = self.heard.take().filter(|_| !self.has_missed);
        let Some(heard) = heard else {
            return Vec::new();
        };
        let gone = self.up.extract_if(.., |number, _| !heard.contains(number));
        gone.map(|(_, name)| name).collect()
    }

    /// Takes a datagram, if there is one; notes where some did not fit the socket's memory.
    fn receive(&mut self, room: &mut [u8]) -> Option<usize> {
        loop {
            // SAFETY: the kernel writes no more than the room's bytes, which is ours until it returns.
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

/// What a datagram of rtnetlink says of interfaces.
fn links(mut datagram: &[u8]) -> Vec<Told> {
    let mut links = Vec::new();
    while let Some(header) = datagram.get(..HEADER) {
        let length = usize::try_from(word(header, 0)).unwrap_or(usize::MAX);
        let Some(message) = datagram.get(HEADER..length) else {
            break;
        };
        if half(header, 6) & TORN == TORN {
            links.push(Told::Torn);
        }
        if half(header, 4) == DONE {
            links.push(Told::All);
        }
        links.extend(link(half(header, 4), message));
        datagram = datagram.get(length.next_multiple_of(4)..).unwrap_or(&[]);
    }
    links
}

/// What a message says of an interface itself; nothing of one that is up and has no name.
fn link(kind: u16, message: &[u8]) -> Option<Told> {
    let is_of_link = kind == NEW || kind == GONE;
    if !is_of_link || message.len() < ABOUT || message[0] != ITSELF {
        return None;
    }
    let number = word(message, 4);
    if kind == NEW && word(message, 8) & UP != 0 {
        return Some(Told::Up(number, name(&message[ABOUT..])?));
    }
    Some(Told::Down(number))
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
mod tests {
    use super::*;

    /// A message about interface 7: its address first, then its name.
    fn message(kind: u16, flags: u32) -> Vec<u8> {
        let mut about = vec![0, 0, 1, 0];
        about.extend(7_u32.to_ne_bytes());
        about.extend(flags.to_ne_bytes());
        about.extend([0; 4]);
        about.extend([10_u16, 1].map(u16::to_ne_bytes).as_flattened());
        about.extend([2; 6]);
        about.extend([0; 2]);
        about.extend([9_u16, NAME].map(u16::to_ne_bytes).as_flattened());
        about.extend(b"eth1\0\0\0\0");
        let length = u32::try_from(HEADER + about.len()).expect("short");
        let mut message = length.to_ne_bytes().to_vec();
        message.extend([kind, 0].map(u16::to_ne_bytes).as_flattened());
        message.extend([0; 8]);
        message.extend(about);
        message
    }

    #[test]
    fn an_interface_that_is_up_has_its_name_and_one_that_is_not_has_none() {
        let datagram = [
            message(NEW, UP | 0x40),
            message(NEW, 0x40),
            message(GONE, UP),
        ]
        .concat();
        assert_eq!(
            links(&datagram),
            [Told::Up(7, "eth1".to_owned()), Told::Down(7), Told::Down(7)]
        );
    }

    #[test]
    fn what_a_bridge_says_of_a_port_that_leaves_it_is_not_said_of_the_interface() {
        const AF_BRIDGE: u8 = 7;
        let mut left = message(GONE, UP | 0x40);
        assert_eq!(links(&left), [Told::Down(7)], "by itself");
        left[HEADER] = AF_BRIDGE;
        assert_eq!(links(&left), []);
    }

    #[test]
    fn an_interface_that_is_up_and_has_no_name_is_passed_over() {
        let mut nameless = message(NEW, UP);
        let at = nameless.len() - 10;
        nameless[at..at + 2].copy_from_slice(&(NAME + 1).to_ne_bytes());
        assert_eq!(links(&nameless), []);
    }

    #[test]
    fn a_datagram_that_is_cut_anywhere_is_read_up_to_there() {
        let datagram = [message(NEW, UP), message(GONE, 0)].concat();
        for end in 0..datagram.len() {
            assert!(links(&datagram[..end]).len() <= 1, "{end}");
        }
        // Lengths that lie.
        for length in [0_u32, 3, 17, u32::MAX] {
            let mut lying = datagram.clone();
            lying[..4].copy_from_slice(&length.to_ne_bytes());
            assert!(links(&lying).len() <= 1, "{length}");
        }
    }

    #[test]
    fn what_was_up_and_is_not_there_when_all_are_told_anew_has_fallen() {
        let mut links = Links::listen().expect("netlink");
        let away = "away0".to_owned();
        links.up.insert(u32::MAX, away.clone());
        assert!(!links.fallen().contains(&away), "nothing says so");
        links.has_missed = true;
        // Others may change their interfaces just then, and all are asked for again.
        let told = (0..1000).filter(|_| links.fallen().contains(&away));
        assert_eq!(told.count(), 1);
    }

    #[test]
    fn an_answer_that_may_lack_some_makes_none_fall() {
        let mut links = Links::listen().expect("netlink");
        links.up.insert(u32::MAX, "there0".to_owned());
        for told in [Told::Torn, Told::All] {
            links.heard.get_or_insert_default();
            assert_eq!(links.see(told), [""; 0]);
        }
        assert!(links.has_missed, "asked again");
    }

    /// The names of those that are up, as the kernel's files have them.
    fn up() -> BTreeSet<String> {
        let all = std::fs::read_dir("/sys/class/net").expect("a list");
        let all = all.filter_map(|one| one.ok()?.file_name().into_string().ok());
        let is_up = |name: &String| {
            let flags = std::fs::read_to_string(format!("/sys/class/net/{name}/flags"));
            flags.is_ok_and(|flags| {
                let digits = flags.trim().trim_start_matches("0x");
                u32::from_str_radix(digits, 16).expect("flags") & UP != 0
            })
        };
        all.filter(is_up).collect()
    }

    #[test]
    fn who_listens_knows_the_interfaces_that_are_up_and_no_others() {
        let look = || {
            let links = Links::listen().expect("netlink");
            (links.up.into_values().collect::<BTreeSet<_>>(), up())
        };
        // Others may change theirs between the two.
        let is_equal = (0..100).any(|_| {
            let (heard, there) = look();
            heard == there
        });
        assert!(is_equal, "{:?}", look());
    }
}
