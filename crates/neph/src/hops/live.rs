//! Live points: they record first, then their captures are analysed like files.

use neph_lab::quoted;
use neph_model::Stop;

use super::alarm_reporter::AlarmReporter;
use super::{AnalysisResult, Args, Clock, analyse, parse_nat_rules};
use crate::alarm::check_duration;
use crate::exit::{self, Failure, Outcome};
use crate::interrupt::{self, SecondInterruptMessage};
use crate::metrics::BoundExporters;
use crate::metrics::hops::HopsMetrics;
use crate::{agent_points, output};
use neph_capture::path::point::Point;
use neph_listen::recording::{self, LiveEvaluation, LiveEvaluationSpec, Received};

/// The live points; `None` if all points are files.
///
/// # Errors
/// Live points and files are mixed, a point has a syntax error, or an option does not apply.
pub(super) fn parse_points(args: &Args) -> Result<Option<Vec<recording::Point>>, Failure> {
    let parsed_points = args
        .points
        .iter()
        .map(|text| recording::Point::parse(text, &neph_lab::namespace));
    let parsed_points: Vec<Option<recording::Point>> = parsed_points.collect::<Result<_, _>>()?;
    let file = (args.points.iter().zip(&parsed_points)).find(|(_, live)| live.is_none());
    let points: Vec<recording::Point> = parsed_points.iter().flatten().cloned().collect();
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

/// Records at these points and reports the results of their captures.
pub(super) fn run(
    args: &Args,
    points: &[recording::Point],
    exporters: Option<BoundExporters>,
) -> Result<Outcome, Failure> {
    let second_interrupt = SecondInterruptMessage::default();
    let stop = interrupt::stop_on_ctrl_c_with_message(&second_interrupt)?;
    let metrics = exporters.as_ref().map(|_| HopsMetrics::default());
    let bound = exporters.zip(metrics.clone());
    let running_exporters = bound.map(|(exporters, metrics)| exporters.begin(metrics));
    let running_exporters = running_exporters.transpose()?;
    let alarm_reporter = AlarmReporter::new(args, &stop).with_metrics(metrics);
    let outcome = record_and_report(args, points, alarm_reporter, &stop, &second_interrupt);
    if let Some(running_exporters) = running_exporters {
        running_exporters.finish();
    }
    // The captures are deleted, or in their folder.
    second_interrupt.set(None);
    outcome
}

fn record_and_report(
    args: &Args,
    points: &[recording::Point],
    alarm_reporter: AlarmReporter,
    stop: &Stop,
    second_interrupt: &SecondInterruptMessage,
) -> Result<Outcome, Failure> {
    // Options that the analysis cannot use are refused before the captures are made.
    let names: Vec<String> = points.iter().map(|point| point.name.clone()).collect();
    let options = args.live.to_recording_options();
    let rules = args.alarms.rules(&names)?;
    check_duration(rules.rules(), options.duration)?;
    let agents =
        agent_points::connect_agents(points, args.live.controller_folder(), options.duration)?;
    let evaluation = LiveEvaluation::begin(LiveEvaluationSpec {
        points,
        rules: &rules,
        mappings: &parse_nat_rules(args, &names)?,
        listener: alarm_reporter,
        say: output::say,
    });
    let set_interrupt_message = |recorded: &[recording::PointRecording]| {
        let command = repeat_command(args, recorded);
        second_interrupt.set(Some(format!(
            "neph hops: ended before any result; the captures stay: {command}"
        )));
    };
    let on_start = |recorded: &[recording::PointRecording]| {
        set_interrupt_message(recorded);
        evaluation.hear(recorded);
    };
    let recording_result = recording::record(
        points,
        &options,
        agents,
        Received {
            stop,
            begins: &on_start,
            live: evaluation.samples(),
            say: &output::say,
            progress: output::can_rewrite().then_some(&output::rewrite),
        },
    );
    let alarm_reporter = evaluation.end();
    let mut recording = recording_result?;
    set_interrupt_message(&recording.points);
    let analysis = analyse_recording(args, &recording, &alarm_reporter);
    let is_complete = analysis.as_ref().is_ok_and(|analysis| analysis.is_complete);
    let outcome = analysis.map(|analysis| analysis.outcome);
    let is_empty = recording.points.iter().all(|point| point.packets == 0);
    // Live traffic cannot be repeated: other options may show more of the captures.
    if !is_complete && !is_empty && !args.live.keeps_captures() {
        recording.stay();
        let command = repeat_command(args, &comparable_points(&recording.points));
        output::say(&format!("neph hops: the captures stay: {command}"));
    }
    let is_alarmed = alarm_reporter.is_alarmed() || matches!(outcome, Ok(Outcome::Alarmed));
    alarm_reporter.finish();
    let outcome = recording.fault.map_or(outcome, |fault| Err(fault.into()));
    match outcome {
        Err(fault) if is_alarmed => exit::report_failure(&fault),
        Ok(_) if is_alarmed => {}
        Ok(_) if stop.is_set() => return Ok(Outcome::Interrupted),
        _ => return outcome,
    }
    Ok(Outcome::Alarmed)
}

fn analyse_recording(
    args: &Args,
    recording: &recording::Recording,
    alarm_reporter: &AlarmReporter,
) -> Result<AnalysisResult, Failure> {
    let silent_points = recording.points.iter().filter(|point| point.packets == 0);
    let silent_points: Vec<&str> = silent_points.map(|point| point.name.as_str()).collect();
    // Otherwise the points with packets are analysed, and neph reports why the others have none.
    if silent_points.len() + 1 >= recording.points.len() {
        output::say(&format!(
            "neph hops: no packet of {} was recorded: there is nothing to compare",
            silent_points.join(", ")
        ));
        return Ok(AnalysisResult::incomplete(Outcome::Nothing));
    }
    if args.live.keeps_captures() {
        let command = repeat_command(args, &comparable_points(&recording.points));
        output::say(&format!("neph hops: the same again: {command}"));
    }
    let points = recording.points.iter().map(|recorded| Point {
        name: recorded.name.clone(),
        host: Some(recorded.host.clone()),
        path: recorded.file.clone(),
        listened: recorded.listened,
        is_silent: recorded.packets == 0,
        clock: recorded.clock.clone(),
    });
    let points: Vec<Point> = points.collect();
    // Ctrl-C ended the recording. A second ctrl-C ends the analysis.
    analyse(args, &points, &Stop::new(), alarm_reporter)
}

/// The points with packets, if they can be compared: files without packets are refused.
fn comparable_points(recordings: &[recording::PointRecording]) -> Vec<recording::PointRecording> {
    let points_with_packets = recordings.iter().filter(|point| point.packets > 0).cloned();
    let points_with_packets: Vec<recording::PointRecording> = points_with_packets.collect();
    if points_with_packets.len() < 2 {
        return recordings.to_vec();
    }
    points_with_packets
}

/// The command that repeats the analysis with the same clocks: a capture file does not record which
/// kernel took its timestamps.
fn repeat_command(args: &Args, recordings: &[recording::PointRecording]) -> String {
    let mut command_args = vec!["neph".to_owned(), "hops".to_owned()];
    command_args.extend(recordings.iter().map(|point| {
        let mut points_of_host = recordings.iter().filter(|other| other.host == point.host);
        let first = points_of_host
            .next()
            .filter(|_| points_of_host.next().is_some());
        let host = first.map_or(String::new(), |first| format!("@{}", first.name));
        format!("{}{host}={}", point.name, point.file.display())
    }));
    if args.clock == Clock::Same {
        command_args.extend(["--clock", "same"].map(str::to_owned));
    }
    if let Some(wander) = args.wander {
        command_args.extend(["--wander".to_owned(), wander.to_string()]);
    }
    for rule in &args.nat {
        command_args.extend(["--nat".to_owned(), rule.clone()]);
    }
    let command_args: Vec<String> = command_args.iter().map(|word| quoted(word)).collect();
    command_args.join(" ")
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct CommandLine {
        #[command(flatten)]
        args: Args,
    }

    fn point_recording(name: &str, host: &str) -> recording::PointRecording {
        recording::PointRecording {
            name: name.to_owned(),
            file: format!("my captures/{name}.pcap").into(),
            host: host.to_owned(),
            packets: 1,
            lost: None,
            listened: None,
            clock: Vec::new(),
        }
    }

    #[test]
    fn the_repeat_command_of_saved_captures_names_shared_clocks() {
        let line = "neph iface:a iface:b ssh:c/eth0 --nat a:10.0.0.1=10.0.0.2 --wander 2";
        let args = CommandLine::try_parse_from(line.split(' '))
            .expect("options")
            .args;
        let points = [("a", "k1"), ("c", "k2"), ("b", "k1")];
        let command = repeat_command(
            &args,
            &points.map(|(name, host)| point_recording(name, host)),
        );
        assert_eq!(
            command,
            "neph hops 'a@a=my captures/a.pcap' 'c=my captures/c.pcap' 'b@a=my captures/b.pcap' \
             --wander 2 --nat a:10.0.0.1=10.0.0.2"
        );
    }
}
