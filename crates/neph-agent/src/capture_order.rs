//! A capture as an order: packets of an interface of this host go into a file, which is a part of the result.
//!
//! Owns how much that may be, and what is reported of it. How packets come and are written is neph-listen's.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::thread;

use neph_listen::recording::{kernel, record_point};
use neph_listen::{CaptureFile, CaptureInterface, CaptureMethod, Listening, PacketFilter, Writing};
use neph_model::{ByteSize, CaptureOrder, Captured, OrderFailed, Progress, Span, Update};
use neph_sys::clock;

use crate::capture_samples;
use crate::failure::failed;
use crate::order_context::OrderContext;
use crate::wall_clock::now;

/// Memory in which packets wait, at most: it is locked.
const MAX_RING: ByteSize = ByteSize(64 << 20);
/// Time between two reports.
const REPORT_INTERVAL: Span = Span::from_millis(500);

/// Where a capture goes, and where its events are reported.
#[derive(Debug)]
pub(crate) struct CaptureOutput<'a> {
    /// The folder of captures, which is made if it is not there.
    pub(crate) folder: &'a Path,
    /// Names the file in it.
    pub(crate) name: String,
    pub(crate) context: &'a OrderContext,
}

impl CaptureOutput<'_> {
    fn path(&self) -> PathBuf {
        self.folder.join(format!("{}.pcap", self.name))
    }

    /// Begins the file.
    fn create_file(&self) -> io::Result<CaptureFile> {
        // Only the owner may read the packets.
        let created = DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(self.folder);
        created.and_then(|()| CaptureFile::create(&self.path()))
    }
}

/// Captures until the end. The first progress is reported when packets are taken, the file at the end.
pub(crate) fn capture(
    order: &CaptureOrder,
    output: &CaptureOutput<'_>,
) -> Result<Captured, OrderFailed> {
    let operation = || format!("capture at {}", order.interface);
    if order.site.is_some() {
        return Err(failed(operation(), "it names a site of a lab"));
    }
    let filter = PacketFilter::of(order);
    let filter_rules = filter.wanted();
    let mut capture_interface = CaptureInterface::open(&Listening {
        interface: &order.interface,
        site: None,
        remote: "an agent there",
        snaplen: order.snaplen,
        ring: order.ring.min(MAX_RING),
        max_packets: u64::MAX,
        wanted: &filter_rules,
        method: Some(CaptureMethod::Ring),
    })
    .map_err(|reason| failed(operation(), reason))?;
    let file = output.create_file().map_err(|reason| {
        let path = output.path();
        failed(operation(), format!("write {}: {reason}", path.display()))
    })?;
    let captured = thread::scope(|scope| {
        let _sampler = order
            .samples
            .then(|| capture_samples::begin(scope, output.path(), output.context));
        record(order, &mut capture_interface, file, output.context)
    });
    output.context.report(Update::Captured(output.path()));
    Ok(captured)
}

fn record(
    order: &CaptureOrder,
    capture_interface: &mut CaptureInterface,
    file: CaptureFile,
    context: &OrderContext,
) -> Captured {
    let (link_type, snaplen) = capture_interface.format();
    let mut writer = Writing::with_header(file, link_type, snaplen);
    let start = clock::raw();
    let max_duration_ns = order.duration.map_or(i64::MAX, Span::nanos);
    let max_bytes = order.limit.map_or(u64::MAX, |ByteSize(bytes)| bytes);
    let (from, mut until, mut next_report_at) = (now(), None, Span::ZERO);
    let recorded = record_point(capture_interface, &mut writer, |capture_counters, bytes| {
        let elapsed = Span::from_nanos(clock::raw().0 - start.0);
        if elapsed >= next_report_at {
            next_report_at = elapsed + REPORT_INTERVAL;
            let packets = capture_counters.packets;
            context.report(Update::Progress(Progress {
                elapsed,
                due: packets,
            }));
        }
        let is_over =
            context.stop().is_set() || elapsed.nanos() >= max_duration_ns || bytes >= max_bytes;
        // What has passed by now is still taken.
        until = is_over.then(now);
        is_over
    });
    let until = until.filter(|_| !writer.is_refused());
    let (counters, packets) = (capture_interface.counters(), writer.packets());
    let written = writer.close().map_err(|reason| reason.to_string());
    let fault = recorded
        .map_err(|reason| reason.to_string())
        .and(written)
        .err();
    Captured {
        kernel: kernel(),
        packets,
        lost: counters.lost + counters.packets.saturating_sub(packets),
        listened: until.map(|until| [from, until]),
        fault,
        clock: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use neph_model::{Executor, Order};

    use crate::LocalExecutor;

    use super::*;

    /// What becomes of an order that has this interface.
    fn run_failing_capture(interface: &str, executor: &mut LocalExecutor) -> String {
        executor.submit(Order::Capture(CaptureOrder {
            duration: Some(Span::from_secs(1)),
            limit: Some(ByteSize(1 << 20)),
            ..CaptureOrder::of(interface.to_owned(), 96, ByteSize(2 << 20))
        }));
        for _ in 0..200 {
            let updates = executor.poll(Span::from_millis(100)).expect("it is there");
            match updates.into_iter().next() {
                Some((_, Update::Done(result))) => {
                    return result.expect_err("it cannot be").to_string();
                }
                Some(other) => panic!("{other:?}"),
                None => {}
            }
        }
        panic!("nothing is reported")
    }

    #[test]
    fn a_capture_on_a_missing_interface_fails_without_a_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let captures = folder.path().join("captures");
        let mut executor = LocalExecutor::new().with_captures(captures.clone());
        let reason = run_failing_capture("no-such-one", &mut executor);
        assert!(
            reason.starts_with("capture at no-such-one failed: "),
            "{reason}"
        );
        assert!(!captures.exists());
        let reason = run_failing_capture("lo", &mut LocalExecutor::new());
        assert!(reason.contains("a stream of bytes"), "{reason}");
    }
}
