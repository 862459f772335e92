//! What a capture takes of memory: whatever lengths, counts and times it claims, no more than 64 bytes
//! for each of its own, beside what is there from the beginning. Its packets are taken again from other
//! hosts, so that flows, pairs and identities become many.
#![no_main]

use std::net::{IpAddr, Ipv4Addr};
use std::ops::ControlFlow;

use libfuzzer_sys::fuzz_target;
use neph_capture::{
    CaptureMatcher, DuplicateFilter, Exchanges, Limits, Listener, Table, read_capture,
};
use neph_model::Wall;
use neph_wire::dissect::{Dissected, dissect};

#[path = "../checks/peak_memory.rs"]
mod peak_memory;

/// Bytes of memory for a byte of capture.
const MAX_BYTES_PER_CAPTURE_BYTE: usize = 64;
/// The reader's window, the packets that are fetched together, those that may pass twice.
const BASE_BYTES: usize = 1 << 19;

struct NullListener;

impl Listener for NullListener {}

/// Each packet of a capture, from so many hosts.
fn packets(file: &[u8], hosts: u32, mut on_packet: impl FnMut(i64, u32, &Dissected<'_>)) {
    read_capture(&mut &*file, |record| {
        let Some(mut packet) = dissect(record.link, record.bytes, record.length) else {
            return ControlFlow::Continue(());
        };
        let source = packet.ip.source;
        for host in 0..hosts {
            if let IpAddr::V4(address) = source {
                packet.ip.source = Ipv4Addr::from_bits(address.to_bits() ^ host << 8).into();
            }
            on_packet(record.at.unwrap_or(0), record.interface, &packet);
        }
        ControlFlow::Continue(())
    });
}

fuzz_target!(|bytes: &[u8]| {
    let Some((&hosts, file)) = bytes.split_first() else {
        return;
    };
    let hosts = u32::from(hosts & 31) + 1;
    let allowed = file.len() * hosts as usize * MAX_BYTES_PER_CAPTURE_BYTE + BASE_BYTES;
    let limits = Limits::default();
    let (peak_bytes, ()) = peak_memory::measure(|| {
        let (mut table, mut duplicate_filter) = (Table::new(limits), DuplicateFilter::default());
        let mut exchanges = Exchanges::new(limits.max_flows, limits.idle_timeout);
        packets(file, hosts, |at, interface, packet| {
            let at = Wall::from_unix_nanos(at);
            if !duplicate_filter.is_copy(at, interface, packet)
                && !exchanges.add_packet_with(at, packet, |_| {})
            {
                table.add_packet(at, packet, &mut NullListener);
            }
        });
        table.end(&mut NullListener);
        exchanges.end(|_| {});
    });
    assert!(
        peak_bytes <= allowed,
        "{peak_bytes} bytes of memory for {} of capture",
        file.len() * hosts as usize
    );
    // Both captures count.
    let (peak_bytes, ()) = peak_memory::measure(|| {
        let mut matcher = CaptureMatcher::default();
        packets(file, hosts, |at, _, packet| matcher.add_first(at, packet));
        packets(file, hosts, |at, _, packet| matcher.add_second(at, packet));
        drop(matcher.end());
    });
    assert!(
        peak_bytes <= 2 * allowed,
        "{peak_bytes} bytes of memory for two of {}",
        file.len() * hosts as usize
    );
});
