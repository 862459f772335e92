//! `neph hops`: delay and loss of each segment of a path, from captures at its points.
//!
//! Connects captures, packet matching (neph-capture), clocks and output.

mod alarm_reporter;
mod alarms;
mod figure;
mod final_alarms;
mod live;
mod writing;

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};
use neph_capture::{DuplicateFilter, Followed, Hops, Mapping};
use neph_model::{Stop, Wall};
use neph_wire::dissect::NoPacket;

use crate::clock::parse_ppm;
use crate::exit::{self, Failure, Outcome};
use crate::live_point_options::LivePointOptions;
use crate::metrics::{BoundExporters, MetricsArgs};
use crate::privileges::{Needs, Row, UserChoice};
use crate::read as captures;
use crate::sink::Force;
use crate::{format, interrupt, output};
use alarm_reporter::AlarmReporter;
use final_alarms::Alarms;
use neph_capture::clocks::nature;
use neph_capture::path::clocks::{KnownClocks, segment_clocks};
use neph_capture::path::passages::Passages;
use neph_capture::path::point::Point;
use neph_capture::reading::packets::read_packets;
use neph_capture::reading::parts::capture_files;
use neph_documents::Format;
use neph_listen::recording;
use neph_text::counted::counted;

/// The clock of points that do not name their hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Clock {
    /// Each point has its own clock: neph estimates the clock offsets from the packets, with an error bound
    Fit,
    /// All points have the same clock, for example interfaces of one host
    Same,
}

/// Options of `neph hops`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "POINT: capture file of one point of the path, FILE or NAME=FILE. NAME@HOST=FILE: points with the same HOST \
share one clock.\nTAP with one file per direction: NAME=a.pcap+b.pcap; neph merges them by time.\nLive point: NAME=iface:eth0, NAME=iface:eth0@SITE, NAME=ssh:user@host/eth0, or \
NAME=agent:AGENT/eth0 with --control; neph captures at all live points at the same time.\nExit status: 0 measured, 1 no delay known, 2 usage error or no common packets, 3 alarm raised, 130 interrupted by ctrl-C."
)]
pub(crate) struct Args {
    /// 2 to 8 capture files or live capture points, in the order of the path from client to server
    #[arg(required = true, num_args = 2..=Hops::MAX_POINTS, value_name = "POINT")]
    points: Vec<String>,
    /// Output format
    #[arg(long, default_value = "text", value_parser = format::one_of(format::ALL))]
    format: Format,
    /// Also write each packet with its timestamp at every point (needs --format json or ndjson)
    #[arg(long)]
    packets: bool,
    /// Clocks of points without @HOST; same: all use one clock; fit: neph estimates their clock offsets
    #[arg(long, value_enum, default_value = "fit")]
    clock: Clock,
    /// Maximum change of the clock drift in 100 s that neph assumes, in ppm, 0 to 1000 [default: 2]
    #[arg(long, value_name = "PPM", value_parser = parse_ppm)]
    wander: Option<f64>,
    /// NAT rule: packets at POINT show address OUTER where the other points show INNER; IP or IP:PORT;
    /// repeatable
    #[arg(long, value_name = "POINT:OUTER=INNER")]
    nat: Vec<String>,
    /// Write figures to this folder (SVG, PNG, PDF): segment delays over time, distributions, slowest packets
    #[arg(long, value_name = "FOLDER")]
    figure: Option<PathBuf>,
    #[command(flatten)]
    force: Force,
    #[command(flatten)]
    user: UserChoice,
    #[command(flatten)]
    alarms: alarms::AlarmArgs,
    #[command(flatten)]
    live: LivePointOptions,
    #[command(flatten)]
    metrics: MetricsArgs,
}

impl Args {
    /// The privileges that the command keeps if all points are files.
    fn needs(&self, points: &[Point]) -> Needs {
        let files = points.iter().flat_map(|point| capture_files(&point.path));
        files
            .fold(Needs::of(&Row::HOPS), |needs, file| {
                needs.reads(Some(&file))
            })
            .creates_files_in(self.figure.as_deref())
    }

    /// As above for live points; `None` if ssh is started or a controller is used, which need the
    /// original privileges.
    fn needs_live(&self, points: &[recording::Point]) -> Option<Needs> {
        let is_remote = |point: &recording::Point| point.is_remote() || point.agent().is_some();
        if points.iter().any(is_remote) {
            return None;
        }
        let needs = Needs::of(&Row::HOPS_LIVE)
            .enters_namespaces(points.iter().any(recording::Point::has_site))
            .creates_files_in(Some(&self.live.folder()))
            .creates_files_in(self.figure.as_deref());
        Some(needs)
    }
}

/// Reads the captures and reports the result.
pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    if args.packets && !matches!(args.format, Format::Json | Format::Ndjson) {
        return Err(Failure::usage("--packets needs --format json or ndjson"));
    }
    figure::check(args.figure.as_deref(), args.force)?;
    if let Some(points) = live::parse_points(args)? {
        let exporters = bind_exporters(args, &points)?;
        if let Some(needs) = args.needs_live(&points) {
            needs.restrict(&args.user)?;
        } else if args.user.is_named() {
            return Err(Failure::usage(
                "--user: ssh and the controller's folder need the rights of the user who started neph; leave out \
                 --user, or name no ssh: or agent: point",
            ));
        }
        return live::run(args, &points, exporters);
    }
    if args.metrics.is_requested() {
        return Err(Failure::usage(
            "--prometheus and --otlp are for live points only",
        ));
    }
    let points = neph_capture::path::point::parse_all(&args.points)?;
    args.needs(&points).restrict(&args.user)?;
    let stop = interrupt::stop_on_ctrl_c()?;
    let alarm_reporter = AlarmReporter::new(args, &stop);
    let analysis = analyse(args, &points, &stop, &alarm_reporter);
    alarm_reporter.finish();
    analysis.map(|analysis| analysis.outcome)
}

/// The exporters of live points; `None` if no export is requested.
fn bind_exporters(
    args: &Args,
    points: &[recording::Point],
) -> Result<Option<BoundExporters>, Failure> {
    if !args.metrics.is_requested() {
        return Ok(None);
    }
    if points.iter().take_while(|point| point.is_local()).count() < 2 {
        return Err(Failure::usage(
            "--prometheus and --otlp need two interfaces of this machine as the first points: only these are \
             known to have one clock while they record",
        ));
    }
    args.metrics.bind("neph hops").map(Some)
}

/// The result of an analysis.
#[derive(Clone, Copy, Debug)]
struct AnalysisResult {
    outcome: Outcome,
    /// All segments have delays, in path order: no other options would show more.
    is_complete: bool,
}

impl AnalysisResult {
    const fn incomplete(outcome: Outcome) -> Self {
        Self {
            outcome,
            is_complete: false,
        }
    }
}

fn say(sentence: &str) {
    output::say(&format!("neph hops: {sentence}"));
}

/// Why there are no clocks. If reading was interrupted, the unread part may have common packets.
fn clock_failure(failure: Failure, is_cut: bool) -> Failure {
    match failure {
        Failure::Usage(_) if is_cut => Failure::Interrupted(
            "interrupted before the captures that were read had enough in common".to_owned(),
        ),
        failure => failure,
    }
}

/// Analyses captures, one per point in path order. Reports only alarms that were not reported before.
///
/// # Errors
/// A file that is not a capture, points without common packets, or clocks that were set back.
fn analyse(
    args: &Args,
    points: &[Point],
    stop: &Stop,
    alarm_reporter: &AlarmReporter,
) -> Result<AnalysisResult, Failure> {
    let names: Vec<String> = points.iter().map(|point| point.name.clone()).collect();
    let rules = args.alarms.rules(&names)?;
    let one_clock: Vec<bool> = points
        .windows(2)
        .map(|pair| args.clock == Clock::Same || pair[0].has_clock_of(&pair[1]))
        .collect();
    let mut hops = Hops::with_points(points.len());
    for (index, mapping) in parse_nat_rules(args, &names)? {
        hops.add_nat_rule(index, mapping);
    }
    let points = &points[..read_captures(&mut hops, points, stop)?];
    let is_cut = stop.is_set();
    let one_clock = &one_clock[..points.len() - 1];
    hops.keep_first_points(points.len());
    report_idle_rules(&hops, &args.nat);
    let followed = hops.end(one_clock);
    let order = find_order(&names[..points.len()], &followed, one_clock);
    let known_clocks = KnownClocks {
        nature: nature(args.wander),
        one_clock,
    };
    let (clocks, false_clocks) = segment_clocks(points, &followed, &known_clocks, &say)
        .map_err(|error| clock_failure(Failure::from(error), is_cut))?;
    let mut passages = Passages::of(names[..points.len()].to_vec(), followed, clocks);
    let (order, order_doubt) = order.unzip();
    passages.warnings = order_doubt.into_iter().chain(false_clocks).collect();
    for warning in &passages.warnings {
        say(warning);
    }
    passages.order = order;
    let are_all_segments_crossed =
        (0..one_clock.len()).all(|segment| passages.followed.has_common_packets(segment));
    let alarms = Alarms::of(rules.evaluate(&passages), alarm_reporter);
    let write_result = write_results(args, &passages, &alarms, alarm_reporter);
    // Alarms are sent even if the results cannot be written.
    let is_alarmed = alarms.report(alarm_reporter);
    let is_measured = match write_result {
        Err(fault) if is_alarmed => {
            exit::report_failure(&fault);
            None
        }
        write_result => write_result?,
    };
    let Some(is_measured) = is_measured else {
        return Ok(AnalysisResult::incomplete(Outcome::Alarmed));
    };
    let outcome = match (is_alarmed, is_cut, is_measured) {
        (true, _, _) => Outcome::Alarmed,
        (false, true, _) => Outcome::Interrupted,
        (false, false, true) => Outcome::Done,
        (false, false, false) => Outcome::Nothing,
    };
    Ok(AnalysisResult {
        outcome,
        is_complete: is_measured && are_all_segments_crossed && passages.order.is_none(),
    })
}

/// Writes all results. Returns whether any delay is known. `None` if nothing can be written: a line
/// of an alarm that was reported live is missing, and no output may follow it.
fn write_results(
    args: &Args,
    passages: &Passages,
    alarms: &Alarms,
    alarm_reporter: &AlarmReporter,
) -> Result<Option<bool>, Failure> {
    if alarm_reporter.is_cut_off() {
        return Ok(None);
    }
    let is_measured = writing::write_report(args, passages, alarms)?;
    figure::write(passages, args.figure.as_deref(), args.force)?;
    Ok(Some(is_measured))
}

/// Reads the captures in order. Returns the number of captures that were started: all, unless
/// interrupted.
///
/// # Errors
/// A file that is not a capture; interrupted before the second one.
fn read_captures(hops: &mut Hops, points: &[Point], stop: &Stop) -> Result<usize, Failure> {
    let reader = captures::reader(stop, &say);
    let indexed_points = points.iter().enumerate();
    for (index, point) in indexed_points.filter(|(_, point)| !point.is_silent) {
        let mut duplicates = DuplicateFilter::default();
        read_packets(&point.path, reader, |timestamp, interface, packet| {
            let time = Wall::from_unix_nanos(timestamp);
            match packet {
                Ok(packet) if !duplicates.is_copy(time, interface, packet) => {
                    hops.add_packet(index, timestamp, packet);
                }
                Err(NoPacket::Cut) => hops.count_cut_packet(index, timestamp),
                _ => hops.record_running(index, timestamp),
            }
        })?;
        if !stop.is_set() {
            for timestamp in point.listened.into_iter().flatten() {
                hops.record_running(index, timestamp.unix_nanos());
            }
            continue;
        }
        let name = &point.name;
        if index == 0 {
            return Err(Failure::Interrupted(format!(
                "interrupted while reading {name}: no other point was read yet to compare it with"
            )));
        }
        let skipped_text = match points.len() - index - 1 {
            0 => String::new(),
            count => format!("; {} behind it left out", counted(count as u64, "point")),
        };
        output::say(&format!(
            "neph hops: interrupted while reading {name}: the result covers what was read{skipped_text}"
        ));
        return Ok(index + 1);
    }
    Ok(points.len())
}

/// Reports which NAT rules changed no address.
fn report_idle_rules(hops: &Hops, rules: &[String]) {
    for rule in hops.unused_rules().filter_map(|rule| rules.get(rule)) {
        output::say(&format!(
            "neph hops: --nat '{rule}' changed nothing: no packet of its point has such an address, or \
             a rule before it was applied"
        ));
    }
}

/// The actual order of the points if it differs from the given one, and the resulting doubt.
fn find_order(
    names: &[String],
    followed: &Followed,
    one_clock: &[bool],
) -> Option<(Vec<usize>, String)> {
    let list_names = |order: &[usize]| {
        let order: Vec<&str> = order.iter().map(|point| names[*point].as_str()).collect();
        order.join(", ")
    };
    if let Some(order) = followed.order_of_points(one_clock) {
        let doubt = format!(
            "packets pass these points in the order {}, or in reverse: give them in this order; the results below are not usable",
            list_names(&order)
        );
        return Some((order, doubt));
    }
    followed.is_started_from_far().then(|| {
        let order: Vec<usize> = (0..names.len()).rev().collect();
        let doubt = format!(
            "nearly all flows are started from the end of {}: give the points from there ({}); a round trip \
             here is the time from an answer to the next question",
            names[order[0]],
            list_names(&order)
        );
        (order, doubt)
    })
}

/// NAT rules, each with the index of its point.
fn parse_nat_rules(args: &Args, points: &[String]) -> Result<Vec<(usize, Mapping)>, Failure> {
    args.nat
        .iter()
        .map(|rule| parse_nat_rule(rule, points))
        .collect()
}

/// A NAT rule, and the index of its point.
fn parse_nat_rule(rule: &str, points: &[String]) -> Result<(usize, Mapping), Failure> {
    let usage_error = |reason: String| Failure::usage(format!("--nat '{rule}': {reason}"));
    let (name, mapping) = rule
        .split_once(':')
        .ok_or_else(|| usage_error("write POINT:OUTER=INNER".to_owned()))?;
    let index = points.iter().position(|point| point == name);
    let index = index.ok_or_else(|| {
        usage_error(format!(
            "no point is called '{name}'; there are {}",
            points.join(", ")
        ))
    })?;
    let mapping = mapping
        .parse()
        .map_err(|error: neph_capture::MappingError| usage_error(error.to_string()))?;
    Ok((index, mapping))
}
