//! Points that are live: recorded first, and then captures like any others.

use neph_probe::Stop;

use super::alarms::Rules;
use super::point::Point;
use super::{Args, analyse, nat};
use crate::exit::{self, Failure, Outcome};
use crate::{output, recording};

/// The live points, or none where all are files.
///
/// # Errors
/// Some are live and some are files, one is written wrongly, or an option is not for them.
pub(super) fn points(args: &Args) -> Result<Option<Vec<recording::Point>>, Failure> {
    let parsed = args.points.iter().map(|text| recording::Point::parse(text));
    let parsed: Vec<Option<recording::Point>> = parsed.collect::<Result<_, _>>()?;
    let file = (args.points.iter().zip(&parsed)).find(|(_, live)| live.is_none());
    let points: Vec<recording::Point> = parsed.iter().flatten().cloned().collect();
    match file {
        Some(_) if points.is_empty() => {
            args.live.refuse_for_files()?;
            Ok(None)
        }
        Some((file, _)) => Err(Failure::usage(format!(
            "{file} is a file, and other points are live; record these first (--save FOLDER), then \
             give all files"
        ))),
        None => Ok(Some(points)),
    }
}

/// Records these points and tells what their captures say.
pub(super) fn run(
    args: &Args,
    points: &[recording::Point],
    stop: &Stop,
) -> Result<Outcome, Failure> {
    // What the captures cannot be told with is refused before they are made.
    let planned: Vec<Point> = points.iter().map(|point| named(&point.name)).collect();
    for rule in &args.nat {
        nat(rule, &planned)?;
    }
    let names: Vec<String> = planned.into_iter().map(|point| point.name).collect();
    Rules::parse(&args.alarms, &names)?;
    let recording = recording::record(points, &args.live, stop)?;
    let told = tell(args, &recording);
    let is_alarmed = matches!(told, Ok(Outcome::Alarmed));
    if let Some(fault) = recording.fault {
        if is_alarmed {
            exit::say(&fault);
            return told;
        }
        return Err(fault);
    }
    let outcome = told?;
    Ok(if stop.is_set() && !is_alarmed {
        Outcome::Interrupted
    } else {
        outcome
    })
}

fn named(name: &str) -> Point {
    Point {
        name: name.to_owned(),
        host: None,
        path: std::path::PathBuf::new(),
    }
}

fn tell(args: &Args, recording: &recording::Recording) -> Result<Outcome, Failure> {
    let silent = recording.points.iter().find(|point| point.packets == 0);
    if let Some(point) = silent {
        output::say(&format!(
            "neph hops: no packet passed {}: there is nothing to compare",
            point.name
        ));
        return Ok(Outcome::Nothing);
    }
    let points = recording.points.iter().map(|recorded| Point {
        host: Some(recorded.host.clone()),
        path: recorded.file.clone(),
        ..named(&recorded.name)
    });
    let points: Vec<Point> = points.collect();
    // A ctrl-C has ended the recording, which is told now; another one ends that.
    analyse(args, &points, &Stop::new())
}
