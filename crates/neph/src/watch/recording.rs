//! An interface's packets into a capture, and nothing else: for standard output (`--write -`), and for
//! a point of `neph hops`.

use std::path::Path;
use std::time::Duration;

use neph_listen::{Courtesy, Ears, Listening, OUT, Seen, Way, Writing};
use neph_model::{CaptureOrder, CaptureProtocol, Span};
use neph_sys::clock;
use neph_wire::filter::{Protocol, Wanted};

use super::Args;
use crate::exit::{Failure, Outcome};
use crate::privileges::{Needs, Row, UserChoice};
use crate::sink::Force;
use crate::{interrupt, output, site};

/// That it is over is noticed after this long, at most.
const PATIENCE: Duration = Duration::from_millis(50);

/// Writes each packet until `is_over` says so, which is shown what was counted and the bytes of the
/// capture, or no more can be written. What arrived until then is written too.
pub(crate) fn record(
    ears: &mut Ears,
    writing: &mut Writing,
    mut is_over: impl FnMut(Seen, u64) -> bool,
) -> Result<(), Failure> {
    let mut fault = Ok(());
    let courtesy = Courtesy::begin(ears.gauge());
    while fault.is_ok()
        && !ears.is_full()
        && !writing.is_refused()
        && !is_over(ears.seen(), writing.bytes())
    {
        if ears.has_all() {
            courtesy.caught_up();
        }
        fault = ears.wait(PATIENCE);
        if ears.take_some(|packet, _| writing.packet(packet)) {
            writing.flush();
            ears.count();
        }
    }
    drop(courtesy);
    ears.take_rest(|packet, _| writing.packet(packet));
    writing.flush();
    fault.map_err(Failure::from)
}

/// `--write -`.
pub(super) fn write_out(args: &Args) -> Result<Outcome, Failure> {
    if args.tells_more() {
        return Err(Failure::usage(
            "--write - gives standard output to the capture; leave out --format, --samples, --alarm \
             and --prometheus",
        ));
    }
    if output::is_read_by_people() {
        return Err(Failure::usage(
            "--write - writes a capture, which no terminal can show; let it go to a program or a file",
        ));
    }
    args.choice.check()?;
    let wanted = args.choice.wanted();
    stream(&args.listening(&wanted)?, args.force, args.duration)
}

/// Carries an order out: the capture goes to standard output until it is ended.
pub(crate) fn carry_out(order: &CaptureOrder) -> Result<Outcome, Failure> {
    let needs = Needs::of(&Row::WATCH).bpf().entering(order.site.is_some());
    needs.restrict(&UserChoice::default())?;
    let site = order.site.as_deref().map(site::namespace).transpose();
    let site = site.map_err(Failure::usage)?;
    let protocol = |one: &CaptureProtocol| match one {
        CaptureProtocol::Tcp => Protocol::Tcp,
        CaptureProtocol::Udp => Protocol::Udp,
        CaptureProtocol::Icmp => Protocol::Icmp,
    };
    let wanted = Wanted {
        hosts: order.hosts.clone(),
        ports: order.ports.clone(),
        protocols: order.protocols.iter().map(protocol).collect(),
    };
    let listening = Listening {
        interface: &order.interface,
        site: site.as_deref(),
        elsewhere: "the order's site",
        kept: order.kept,
        ring: order.ring,
        most: u64::MAX,
        wanted: &wanted,
        way: Some(Way::Ring),
    };
    stream(&listening, Force::default(), None)
}

/// Writes what is listened to to standard output, for so long or until it is ended.
fn stream(
    listening: &Listening<'_>,
    force: Force,
    duration: Option<Span>,
) -> Result<Outcome, Failure> {
    let stop = interrupt::stop_on_ctrl_c()?;
    let mut ears = Ears::open(listening)?;
    let (link, kept) = ears.format();
    let mut writing = super::write_into(Path::new(OUT), force, (link, kept))?;
    output::say(&format!(
        "neph watch: looking at {}; ctrl-C ends it",
        listening.interface
    ));
    let began = clock::raw().0;
    let length = duration.map_or(i64::MAX, Span::nanos);
    let recorded = record(&mut ears, &mut writing, |_, _| {
        stop.is_set() || clock::raw().0 - began >= length
    });
    let written = writing.finish();
    let seen = ears.seen();
    if let Ok(written) = &written {
        output::say(&format!("neph watch: {written}, {} lost", seen.lost));
    }
    recorded?;
    written?;
    Ok(match (stop.is_set(), seen.packets) {
        (true, _) => Outcome::Interrupted,
        (false, 0) => Outcome::Nothing,
        (false, _) => Outcome::Done,
    })
}
