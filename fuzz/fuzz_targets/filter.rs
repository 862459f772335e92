//! Filters of any hosts, ports and protocols: a program that the kernel takes. It only jumps forwards
//! and into itself, is no longer than allowed, and each way through it ends by keeping all or nothing.
#![no_main]

use std::net::IpAddr;

use libfuzzer_sys::fuzz_target;
use neph_wire::filter::{Protocol, Start, Wanted};

/// BPF_MAXINSNS.
const MAX_INSTRUCTIONS: usize = 4_096;
const SNAP_LENGTH: u32 = 96;
const CLASS_MASK: u16 = 0x07;
const JUMP: u16 = 0x05;
const RETURN: u16 = 0x06;

fn wanted(bytes: &[u8]) -> Wanted {
    let mut wanted = Wanted::default();
    for part in bytes.chunks(17) {
        let [kind, value @ ..] = part else { continue };
        match (kind & 3, value) {
            (0, [a, b, c, d, ..]) => wanted.hosts.push(IpAddr::from([*a, *b, *c, *d])),
            (1, value) => {
                if let Ok(host) = <[u8; 16]>::try_from(value) {
                    wanted.hosts.push(IpAddr::from(host));
                }
            }
            (2, [a, b, ..]) => wanted.ports.push(u16::from_be_bytes([*a, *b])),
            (3, [a, ..]) => wanted.protocols.push(match a % 3 {
                0 => Protocol::Tcp,
                1 => Protocol::Udp,
                _ => Protocol::Icmp,
            }),
            _ => {}
        }
    }
    wanted
}

fuzz_target!(|bytes: &[u8]| {
    // The options of neph ask for fewer; beyond some 400 the kernel's limit is reached.
    let wanted = wanted(&bytes[..bytes.len().min(17 * 100)]);
    for start in [Start::Ethernet, Start::Ip] {
        let program = wanted.program(start, SNAP_LENGTH);
        assert!(!program.is_empty() && program.len() <= MAX_INSTRUCTIONS);
        for (index, instruction) in program.iter().enumerate() {
            let assert_inside = |skipped: usize| assert!(index + 1 + skipped < program.len());
            match instruction.code & CLASS_MASK {
                JUMP if instruction.code == JUMP => assert_inside(instruction.k as usize),
                JUMP => {
                    assert_inside(usize::from(instruction.jt));
                    assert_inside(usize::from(instruction.jf));
                }
                RETURN => assert!(instruction.k == 0 || instruction.k == SNAP_LENGTH),
                _ => assert_inside(0),
            }
        }
    }
});
