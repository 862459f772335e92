//! The thread of a point, local or over ssh: it writes one capture.

use std::sync::atomic::Ordering;

use neph_model::{ClockReading, Span, Wall};
use neph_sys::clock;

use super::point::record;
use super::point_text::{Host, Interface, Point, PointLocation};
use super::relay::relay;
use super::remote::Output;
use super::started_capture::{Outcome, SharedState, StartedCapture, kernel, unwritten};
use super::{PointRecording, RecordingOptions};
use crate::{CaptureInterface, CaptureMethod, ListenError, Listening, Writing};

/// Opens the local interfaces of these points, in their order.
pub(super) fn open_these<'p>(
    points: impl Iterator<Item = &'p Point>,
    options: &RecordingOptions,
) -> Result<Vec<CaptureInterface>, ListenError> {
    let wanted = options.packet_filter.wanted();
    let open = |point: &Point| match &point.location {
        PointLocation::Local(Interface { name, site }) => {
            Some(CaptureInterface::open(&Listening {
                interface: name,
                site: site.as_deref(),
                remote: "iface:INTERFACE@SITE",
                snaplen: options.snaplen,
                ring: options.ring,
                max_packets: options.count.unwrap_or(u64::MAX),
                wanted: &wanted,
                method: Some(CaptureMethod::Ring),
            }))
        }
        PointLocation::Remote(..) | PointLocation::Agent(..) => None,
    };
    points.filter_map(open).collect()
}

fn now() -> Wall {
    Wall::from_unix_nanos(clock::wall().0)
}

/// Records a local interface.
pub(super) fn listen(
    started: StartedCapture<'_>,
    mut capture_interface: CaptureInterface,
    shared: SharedState<'_>,
) -> Outcome {
    let StartedCapture {
        point,
        path,
        file,
        tally,
    } = started;
    let (link, snaplen) = capture_interface.format();
    let mut writing = Writing::with_header(file, link, snaplen);
    tally.mark_begun();
    let (from, mut until) = (now(), None);
    let recorded = record(
        &mut capture_interface,
        &mut writing,
        |capture_counters, bytes| {
            tally.counted(capture_counters.packets, bytes);
            tally.lost(capture_counters.lost);
            let is_over = tally.is_enough() || shared.is_over.load(Ordering::Relaxed);
            // Packets that have passed by now are still read.
            until = is_over.then(now);
            is_over
        },
    );
    let until = until.filter(|_| !capture_interface.is_full() && !writing.is_refused());
    let counters = capture_interface.counters();
    let packets = writing.packets();
    tally.counted(counters.packets, writing.bytes());
    tally.mark_ended();
    Outcome {
        recorded: PointRecording {
            name: point.name.clone(),
            file: path,
            host: kernel(),
            packets,
            lost: Some(counters.lost + counters.packets.saturating_sub(packets)),
            listened: until.map(|until| [from, until]),
            clock: own_clock(from),
        },
        fault: recorded.err().or_else(|| {
            let refused = writing.close().err()?;
            Some(unwritten(&point.name, packets, &refused, shared.options))
        }),
    }
}

/// The offset of this host's clock to itself, from `from` until now: 0.
fn own_clock(from: Wall) -> Vec<ClockReading> {
    let exact = |at| ClockReading {
        at,
        offset: Span::ZERO,
        bound: Span::ZERO,
    };
    vec![exact(from), exact(now())]
}

/// Receives the capture of a point on another host.
pub(super) fn fetch(
    started: StartedCapture<'_>,
    host: &Host,
    output: Output,
    shared: SharedState<'_>,
) -> Outcome {
    let StartedCapture {
        point,
        path,
        mut file,
        tally,
    } = started;
    let ((relayed, was_asked), remote_report) = output.read(|capture| {
        let relayed = relay(capture, &mut file, tally);
        let was_asked = shared.is_over.load(Ordering::Relaxed);
        tally.mark_ended();
        (relayed, was_asked)
    });
    file.flush();
    let packets = file.packets();
    let destination = &host.destination;
    let fault = match (relayed, file.close()) {
        (Err(error), _) => Some(ListenError::refused(format!(
            "{}: {error}; what a login at {destination} prints must go to standard error",
            point.name
        ))),
        (Ok(()), Err(refused)) => Some(unwritten(&point.name, packets, &refused, shared.options)),
        (Ok(()), Ok(())) if was_asked => None,
        (Ok(()), Ok(())) => Some(ListenError::refused(format!(
            "{}: {}",
            point.name,
            remote_report.failure_reason(destination)
        ))),
    };
    Outcome {
        recorded: PointRecording {
            name: point.name.clone(),
            file: path,
            host: remote_report.kernel().unwrap_or(destination).to_owned(),
            packets,
            lost: remote_report.lost(),
            listened: None,
            clock: Vec::new(),
        },
        fault,
    }
}
