//! An interface's packets into a capture, and nothing else: for standard output (`--write -`), and for
//! a point of `neph hops`.

use std::path::Path;
use std::time::Duration;

use neph_sys::clock;

use super::Args;
use crate::exit::{Failure, Outcome};
use crate::{interrupt, output};
use neph_listen::Courtesy;
use neph_listen::OUT;
use neph_listen::Writing;
use neph_listen::{Ears, Seen};

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
    let stop = interrupt::stop_on_ctrl_c()?;
    let mut ears = Ears::open(&args.listening(&args.choice.wanted())?)?;
    let (link, kept) = ears.format();
    let mut writing = super::write_into(Path::new(OUT), args.force, (link, kept))?;
    output::say(&format!(
        "neph watch: looking at {}; ctrl-C ends it",
        args.interface
    ));
    let began = clock::raw().0;
    let length = args.duration.map_or(i64::MAX, neph_model::Span::nanos);
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
