//! TUN interfaces: packets that the kernel routes into one are read here, and the other way round.
//!
//! Owns attaching to an existing interface (`ip tuntap add dev NAME mode tun`). Does not
//! make or remove interfaces, and knows nothing of what is in a packet.

#![expect(
    unsafe_code,
    reason = "system calls; each block states why it is sound"
)]

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::mem::zeroed;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

const DEVICE: &str = "/dev/net/tun";

/// An interface that could not be attached to.
#[derive(Debug, thiserror::Error)]
#[error("attach to the TUN interface {interface}: {source}")]
pub struct TunError {
    interface: String,
    source: io::Error,
}

/// A TUN interface: whole IP packets, without Ethernet header. Reading and writing never wait.
#[derive(Debug)]
pub struct Tun(File);

impl Tun {
    /// Attaches to `interface` of the calling thread's network namespace, which must be a TUN
    /// interface without another user. If there is none, it creates one that is removed with this
    /// value. Attach before the interface is set up: an interface that is up gets its new carrier
    /// up to a second later, and the kernel drops what is sent until then.
    ///
    /// # Errors
    /// Not permitted, busy, of another kind, or the kernel has no TUN.
    pub fn attach(interface: &str) -> Result<Self, TunError> {
        Self::open(interface).map_err(|source| TunError {
            interface: interface.to_owned(),
            source,
        })
    }

    fn open(interface: &str) -> io::Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
            .open(DEVICE)?;
        // SAFETY: ifreq is plain C data for which all zeros is valid.
        let mut request: libc::ifreq = unsafe { zeroed() };
        if interface.len() >= request.ifr_name.len() {
            return Err(io::Error::from(io::ErrorKind::InvalidInput));
        }
        for (slot, byte) in request.ifr_name.iter_mut().zip(interface.bytes()) {
            *slot = libc::c_char::from_ne_bytes([byte]);
        }
        let flags = libc::IFF_TUN | libc::IFF_NO_PI;
        request.ifr_ifru.ifru_flags = libc::c_short::try_from(flags).expect("0x1001 fits");
        // SAFETY: TUNSETIFF reads and writes the ifreq, which lives until the call returns.
        // The cast: glibc's ioctl takes an unsigned long, musl's an int.
        let outcome = unsafe {
            libc::ioctl(
                file.as_raw_fd(),
                libc::TUNSETIFF as libc::Ioctl,
                &raw mut request,
            )
        };
        match outcome {
            0 => Ok(Self(file)),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Reads the next packet that was routed into the interface; its length, or none for now.
    ///
    /// # Errors
    /// The interface is down or gone.
    pub fn read(&self, packet: &mut [u8]) -> io::Result<Option<usize>> {
        match (&self.0).read(packet) {
            Ok(length) => Ok(Some(length)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Hands `packet` to the kernel as if it had come in by the interface.
    ///
    /// # Errors
    /// It is no IP packet, or the interface is down or gone.
    pub fn write(&self, packet: &[u8]) -> io::Result<()> {
        (&self.0).write(packet).map(|_| ())
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::time::Duration;

    use super::*;
    use crate::netns::{NetNs, remove, with_namespace};
    use crate::ppoll::{Awaited, wait};
    use crate::process;

    /// 10.7.0.1 sends "hello" to 10.7.0.2, which lies behind the interface; the packet is sent
    /// back with the addresses exchanged, as its echo.
    fn exchange() {
        let ip = |line: &str| {
            let done = process::command("ip").args(line.split(' ')).status();
            assert!(done.expect("the ip program").success(), "ip {line}");
        };
        ip("tuntap add dev t0 mode tun");
        let tun = Tun::attach("t0").expect("attach");
        ip("addr add 10.7.0.1/24 dev t0");
        ip("link set t0 up");
        let second = Tun::attach("t0").expect_err("it is taken");
        assert!(second.to_string().contains("t0"), "{second}");
        let socket = UdpSocket::bind("10.7.0.1:7000").expect("bind");
        socket.send_to(b"hello", "10.7.0.2:7000").expect("send");
        let mut packet = [0; 1500];
        let length = loop {
            let mut awaited = [Awaited::readable(tun.as_fd())];
            wait(&mut awaited, Some(Duration::from_secs(2))).expect("wait");
            assert!(awaited[0].has_something(), "nothing came in time");
            match tun.read(&mut packet).expect("read") {
                Some(length) if packet[0] >> 4 == 4 => break length,
                _ => {}
            }
        };
        assert_eq!(&packet[28..length], b"hello");
        // Neither the IP nor the UDP checksum changes when source and destination change places.
        let (source, destination) = (12..16, 16..20);
        let from: [u8; 4] = packet[source.clone()].try_into().expect("four bytes");
        packet.copy_within(destination.clone(), source.start);
        packet[destination].copy_from_slice(&from);
        tun.write(&packet[..length]).expect("write");
        socket
            .set_read_timeout(Some(Duration::from_secs(2)))
            .expect("timeout");
        let mut answer = [0; 16];
        let (length, from) = socket.recv_from(&mut answer).expect("an answer");
        assert_eq!(
            (&answer[..length], from.to_string().as_str()),
            (b"hello".as_slice(), "10.7.0.2:7000")
        );
    }

    #[test]
    fn a_tun_sends_and_receives_a_packet() {
        // SAFETY: geteuid cannot fail and touches no memory.
        if unsafe { libc::geteuid() } != 0 {
            assert!(std::env::var("CI").as_deref() != Ok("true"), "needs root");
            println!("SKIP a_tun_sends_and_receives_a_packet: TUN interfaces need root");
            return;
        }
        let name = format!("nephtun-{}", std::process::id());
        let ns = NetNs::create(&name).expect("make a namespace");
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            with_namespace(&ns, exchange)
        }));
        remove(&name).expect("remove");
        outcome
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            .expect("enter");
    }
}
