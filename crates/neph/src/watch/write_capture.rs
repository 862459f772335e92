//! Writes the packets of an interface to a capture, without analysis: for `--write -`, and for
//! points of `neph hops`.

use std::path::Path;

use neph_listen::recording::record_point;
use neph_listen::{CaptureInterface, CaptureMethod, Listening, OUT, PacketFilter};
use neph_model::{CaptureOrder, Span};
use neph_sys::clock;

use super::Args;
use crate::exit::{Failure, Outcome};
use crate::privileges::{Needs, Row, UserChoice};
use crate::sink::Force;
use crate::{interrupt, output};

/// `--write -`.
pub(super) fn write_to_stdout(args: &Args) -> Result<Outcome, Failure> {
    if args.has_other_output() {
        return Err(Failure::usage(
            "--write - gives standard output to the capture; leave out --format, --samples, --alarm \
             and --prometheus",
        ));
    }
    if output::is_terminal() {
        return Err(Failure::usage(
            "--write - writes a capture, which no terminal can show; let it go to a program or a file",
        ));
    }
    let packet_filter = args.filter.packet_filter();
    packet_filter.check()?;
    let filter_rules = packet_filter.wanted();
    stream(
        &args.capture_settings(&filter_rules)?,
        args.force,
        args.duration,
    )
}

/// Carries out an order: writes the capture to standard output until it ends.
pub(crate) fn carry_out(order: &CaptureOrder) -> Result<Outcome, Failure> {
    let privileges = Needs::of(&Row::WATCH)
        .bpf()
        .enters_namespaces(order.site.is_some());
    privileges.restrict(&UserChoice::default())?;
    let site = order.site.as_deref().map(neph_lab::namespace).transpose();
    let site = site.map_err(Failure::usage)?;
    let filter_rules = PacketFilter::of(order).wanted();
    let listening = Listening {
        interface: &order.interface,
        site: site.as_deref(),
        remote: "the order's site",
        snaplen: order.snaplen,
        ring: order.ring,
        max_packets: u64::MAX,
        wanted: &filter_rules,
        method: Some(CaptureMethod::Ring),
    };
    stream(&listening, Force::default(), None)
}

/// Writes captured packets to standard output, for a duration or until it ends.
fn stream(
    listening: &Listening<'_>,
    force: Force,
    duration: Option<Span>,
) -> Result<Outcome, Failure> {
    let stop = interrupt::stop_on_ctrl_c()?;
    let mut capture_interface = CaptureInterface::open(listening)?;
    let (link_type, snaplen) = capture_interface.format();
    let mut writer = super::write_into(Path::new(OUT), force, (link_type, snaplen))?;
    output::say(&format!(
        "neph watch: looking at {}; ctrl-C ends it",
        listening.interface
    ));
    let start = clock::raw().0;
    let max_duration_ns = duration.map_or(i64::MAX, Span::nanos);
    let record_result = record_point(&mut capture_interface, &mut writer, |_, _| {
        stop.is_set() || clock::raw().0 - start >= max_duration_ns
    });
    let write_result = writer.finish();
    let capture_counters = capture_interface.counters();
    if let Ok(summary) = &write_result {
        output::say(&format!(
            "neph watch: {summary}, {} lost",
            capture_counters.lost
        ));
    }
    record_result?;
    write_result?;
    Ok(match (stop.is_set(), capture_counters.packets) {
        (true, _) => Outcome::Interrupted,
        (false, 0) => Outcome::Nothing,
        (false, _) => Outcome::Done,
    })
}
