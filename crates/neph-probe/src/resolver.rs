//! The resolver of every command: from a target to the one address that is measured.
//!
//! Owns the order in which a host's addresses are tried (RFC 8305) and what counts as an answer. Does not own
//! the traffic to the chosen address afterwards.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;

use neph_model::{IpVersion, Permit, Span, Target, bare};
use neph_sys::place::Placement;

use crate::datagram;
use crate::kinds::{self, Opener};
use crate::spec::FlowSpec;
use crate::target_error::TargetError;

/// The next address is tried when the one before has not answered for this long (RFC 8305, section 5:
/// "Connection Attempt Delay").
const ATTEMPT_DELAY: Span = Span::from_millis(250);

/// How an address is found.
#[derive(Clone, Debug)]
pub struct Resolving {
    /// The only IP version; `None`: either.
    pub version: Option<IpVersion>,
    /// How long each address has to answer.
    pub patience: Span,
    /// The place (a lab's site) to resolve from; `None` is the current one.
    pub site: Option<Placement>,
    /// The address of an earlier measurement: it stays as long as the host has it and it answers.
    pub keep: Option<IpAddr>,
    /// Addresses that it forbids are not asked and not chosen.
    pub permit: Permit,
}

impl Resolving {
    /// Any version, from here, with 2 s for each address.
    pub const fn here(version: Option<IpVersion>) -> Self {
        Self {
            version,
            patience: Span::from_secs(2),
            site: None,
            keep: None,
            permit: Permit::ANYTHING,
        }
    }
}

/// The address of a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// The first that answered; the first of all where none did.
    pub address: SocketAddr,
    /// Whether it answered; `None` for the only address, which is not asked.
    pub answered: Option<bool>,
    /// Addresses that were tried and did not answer, each with the reason.
    pub silent: Vec<Silent>,
}

/// An address that did not answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Silent {
    /// The address.
    pub address: SocketAddr,
    /// Why, in a few words.
    pub reason: String,
}

impl fmt::Display for Silent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.address.ip(), self.reason)
    }
}

impl Resolved {
    /// Which other addresses did not answer, in a sentence; `None` if there were none.
    pub fn remark(&self, target: &Target) -> Option<String> {
        if self.silent.is_empty() {
            return None;
        }
        let silent: Vec<String> = self.silent.iter().map(Silent::to_string).collect();
        let silent = silent.join(", ");
        Some(if self.answered == Some(false) {
            format!(
                "none of the addresses of {} answers: {silent}",
                target.host()
            )
        } else {
            format!(
                "{} is measured at {}; these addresses of it do not answer: {silent}",
                target.host(),
                self.address.ip()
            )
        })
    }
}

/// Finds the address of a target.
pub trait Resolve {
    /// Every address of the host, in the order of tries: the resolver's (RFC 6724), with alternating IP
    /// versions (RFC 8305, section 4). A link-local address has its zone.
    ///
    /// # Errors
    /// [`TargetError::Unresolved`] with the resolver's error, [`TargetError::OtherVersion`] where the host is
    /// an address already.
    fn addresses(&self, version: Option<IpVersion>) -> Result<Vec<SocketAddr>, TargetError>;

    /// Finds the address to measure. Several addresses are tried as in RFC 8305: the next one after 250 ms
    /// without an answer, or at once after a refusal. TCP kinds connect, UDP sends a STAMP request, ICMP an
    /// echo request.
    ///
    /// # Errors
    /// As [`Self::addresses`], [`TargetError::Forbidden`] where the permit allows none of them, and when the
    /// site cannot be entered.
    fn find(&self, resolving: &Resolving) -> Result<Resolved, TargetError>;
}

impl Resolve for Target {
    fn addresses(&self, version: Option<IpVersion>) -> Result<Vec<SocketAddr>, TargetError> {
        check_version(self, version)?;
        let unresolved = |reason: String| TargetError::Unresolved {
            host: self.host().to_owned(),
            version: match version {
                None => "",
                Some(IpVersion::V4) => " to IPv4",
                Some(IpVersion::V6) => " to IPv6",
            },
            reason,
        };
        let resolved = (self.host(), self.port())
            .to_socket_addrs()
            .map_err(|error| unresolved(error.to_string()))?;
        let mut wanted: Vec<SocketAddr> = Vec::new();
        for address in resolved {
            let fits = match version {
                None => true,
                Some(IpVersion::V4) => address.is_ipv4(),
                Some(IpVersion::V6) => address.is_ipv6(),
            };
            if fits && !wanted.contains(&address) {
                wanted.push(address);
            }
        }
        if wanted.is_empty() {
            return Err(unresolved("no address of that version".to_owned()));
        }
        Ok(taking_turns(&wanted))
    }

    fn find(&self, resolving: &Resolving) -> Result<Resolved, TargetError> {
        match &resolving.site {
            None => find_here(self, resolving),
            Some(site) => {
                site.run(|| find_here(self, resolving))
                    .map_err(|error| TargetError::Site {
                        reason: error.to_string(),
                    })?
            }
        }
    }
}

fn find_here(target: &Target, resolving: &Resolving) -> Result<Resolved, TargetError> {
    let mut addresses = permitted(
        target,
        target.addresses(resolving.version)?,
        &resolving.permit,
    )?;
    if let Some(index) = addresses
        .iter()
        .position(|at| Some(at.ip()) == resolving.keep)
    {
        addresses[..=index].rotate_right(1);
    }
    let [address] = addresses[..] else {
        let (target, patience) = (target.clone(), resolving.patience);
        return Ok(race(&addresses, resolving, move |at| {
            attempt(&target, at, patience)
        }));
    };
    Ok(Resolved {
        address,
        answered: None,
        silent: Vec::new(),
    })
}

/// The permitted addresses; at least one.
fn permitted(
    target: &Target,
    mut addresses: Vec<SocketAddr>,
    permit: &Permit,
) -> Result<Vec<SocketAddr>, TargetError> {
    let mut refused = None;
    addresses.retain(|address| match permit.check(*address) {
        Ok(()) => true,
        Err(reason) => {
            refused.get_or_insert(reason);
            false
        }
    });
    match refused {
        Some(reason) if addresses.is_empty() => Err(TargetError::Forbidden {
            host: target.host().to_owned(),
            reason,
        }),
        _ => Ok(addresses),
    }
}

fn check_version(target: &Target, version: Option<IpVersion>) -> Result<(), TargetError> {
    let other = |is, requested, option| TargetError::OtherVersion {
        host: target.host().to_owned(),
        is,
        requested,
        option,
    };
    match (bare(target.host()).parse(), version) {
        (Ok(IpAddr::V6(_)), Some(IpVersion::V4)) => Err(other("IPv6", "IPv4", "-4")),
        (Ok(IpAddr::V4(_)), Some(IpVersion::V6)) => Err(other("IPv4", "IPv6", "-6")),
        _ => Ok(()),
    }
}

/// The addresses with alternating IP versions, beginning with that of the first; each version in its order.
fn taking_turns(addresses: &[SocketAddr]) -> Vec<SocketAddr> {
    let first = addresses.first().is_some_and(SocketAddr::is_ipv6);
    let of = |is_ipv6: bool| {
        let candidates = addresses.iter().copied();
        candidates.filter(move |address| address.is_ipv6() == is_ipv6)
    };
    let (mut same_version, mut other_version) = (of(first), of(!first));
    let mut turns = Vec::with_capacity(addresses.len());
    while turns.len() < addresses.len() {
        turns.extend(same_version.next());
        turns.extend(other_version.next());
    }
    turns
}

/// Tries the addresses one after the other, each on its own thread.
fn race(
    addresses: &[SocketAddr],
    resolving: &Resolving,
    attempt: impl Fn(SocketAddr) -> io::Result<()> + Clone + Send + 'static,
) -> Resolved {
    let (teller, receiver) = mpsc::channel();
    let mut silent: Vec<Silent> = Vec::new();
    let mut waiting = addresses.iter();
    let mut under_way = 0;
    loop {
        if let Some(address) = waiting.next().copied() {
            let (teller, attempt, site) = (teller.clone(), attempt.clone(), resolving.site.clone());
            let work = move || {
                // A site that could be entered a moment ago and cannot now: the attempt fails.
                let tried = match site {
                    None => attempt(address),
                    Some(site) => site
                        .enter()
                        .map_err(io::Error::other)
                        .and_then(|()| attempt(address)),
                };
                // The receiver may have its answer already.
                let _ = teller.send((address, tried));
            };
            match thread::Builder::new()
                .name("neph-resolve".to_owned())
                .spawn(work)
            {
                Ok(_) => under_way += 1,
                Err(error) => silent.push(Silent {
                    address,
                    reason: error.to_string(),
                }),
            }
        } else if under_way == 0 {
            return Resolved {
                address: addresses[0],
                answered: Some(false),
                silent,
            };
        }
        let patience = if waiting.len() > 0 {
            ATTEMPT_DELAY
        } else {
            resolving.patience + ATTEMPT_DELAY
        };
        match receiver.recv_timeout(patience.to_duration()) {
            Ok((address, Ok(()))) => {
                return Resolved {
                    address,
                    answered: Some(true),
                    silent,
                };
            }
            Ok((address, Err(error))) => {
                under_way -= 1;
                silent.push(Silent {
                    address,
                    reason: reason(&error, resolving.patience),
                });
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
        }
    }
}

fn reason(error: &io::Error, patience: Span) -> String {
    match error.kind() {
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => format!("no answer in {patience}"),
        _ => {
            let text = error.to_string();
            text.split(" (os error")
                .next()
                .unwrap_or(&text)
                .to_lowercase()
        }
    }
}

/// Checks whether one address answers.
fn attempt(target: &Target, address: SocketAddr, patience: Span) -> io::Result<()> {
    if target.kind().is_datagram() {
        let mut spec = FlowSpec::plain(target.clone(), address);
        spec.request_size = 64;
        if let Some(Opener::Datagram(open)) = kinds::opener(&spec) {
            let opened = open(&spec).map_err(io::Error::other)?;
            return datagram::ask_once(opened, patience);
        }
    }
    TcpStream::connect_timeout(&address, patience.to_duration()).map(drop)
}

#[cfg(test)]
mod tests;
