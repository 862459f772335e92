//! Clocks as neph-capture follows them, as lines of the figure.

use neph_capture::clocks::course::Course;
use neph_capture::clocks::peer_exchanges::{FigureOffsets, PeerExchanges};
use neph_stats::{ClockFit, ClockStep};

use super::{ClockDrawing, ClockLine, ClockMoment, ClockStepPeriod, clock_course};
use crate::Figure;

/// Draws the clocks of a peer with the name `subject`: the wall clocks, if the peer reports its own, and
/// the raw ones. `None` if the offset is known at one moment only.
pub fn clocks_on_a_connection(
    exchanges: &PeerExchanges,
    course: &Course,
    subject: &str,
) -> Option<Figure> {
    let raw = moments(course);
    let walls =
        (course.figure_fits.iter()).map(|fit| (fit.at, exchanges.reading_from_fit(*fit).wall));
    let walls: Vec<ClockMoment> = walls
        .filter_map(|(at, wall)| {
            let (offset, bound) = wall?;
            Some(ClockMoment { at, offset, bound })
        })
        .collect();
    let raw_steps: Vec<ClockStepPeriod> = course.steps.iter().map(step_period).collect();
    let wall_steps = exchanges.steps.iter().map(|step| ClockStepPeriod {
        after: step.after,
        before: step.before,
    });
    let mut steps: Vec<ClockStepPeriod> = wall_steps.collect();
    steps.extend(&raw_steps);
    // Of the clocks on the wall no rate is fitted, they are steered.
    let wall = ClockLine {
        name: "wall clocks (CLOCK_REALTIME)",
        moments: &walls,
        dots: &exchanges.wall_offsets.points,
        steps: &steps,
        rate: 0.0,
    };
    let raw = ClockLine {
        name: if exchanges.is_third_party {
            "its wall clock against our raw one"
        } else {
            "raw clocks (CLOCK_MONOTONIC_RAW)"
        },
        moments: &raw,
        dots: &exchanges.raw_offsets.points,
        steps: &raw_steps,
        rate: course.drift.map_or(0.0, |drift| drift.rate),
    };
    let lines = [wall, raw];
    clock_course(&ClockDrawing {
        subject: &format!("Clocks of {subject} minus ours"),
        lines: if walls.is_empty() {
            &lines[1..]
        } else {
            &lines
        },
    })
}

/// Draws the clock of one capture against that of another. None as above.
pub fn clocks_of_captures(
    offsets: &FigureOffsets,
    course: &Course,
    subject: &str,
) -> Option<Figure> {
    let steps: Vec<ClockStepPeriod> = course.steps.iter().map(step_period).collect();
    let line = ClockLine {
        name: "",
        moments: &moments(course),
        dots: &offsets.points,
        steps: &steps,
        rate: course.drift.map_or(0.0, |drift| drift.rate),
    };
    clock_course(&ClockDrawing {
        subject: &format!("Clocks of captures, {subject}"),
        lines: &[line],
    })
}

const fn step_period(step: &ClockStep) -> ClockStepPeriod {
    ClockStepPeriod {
        after: step.after,
        before: step.before,
    }
}

fn moments(course: &Course) -> Vec<ClockMoment> {
    let moment = |fit: &ClockFit| ClockMoment {
        at: fit.at,
        offset: fit.offset,
        bound: fit.bound,
    };
    course.figure_fits.iter().map(moment).collect()
}
