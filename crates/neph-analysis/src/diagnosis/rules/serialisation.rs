//! Serialisation delay: on a slow link the size of a message decides its time, from the first kilobyte on.

use std::collections::BTreeMap;

use neph_model::{ByteSize, INITIAL_WINDOW, Span};

use crate::diagnosis::{Confidence, Level, Need, Rule, RuleInput, RuleResult, Run, SortedValues};
use crate::numbers::millis;
use crate::text::plural;

pub(crate) const RULE: Rule = Rule {
    name: "serialisation",
    title: "serialisation on a slow link",
    limits: "The rule calculates the rate of the slowest link on the forward path. For this it compares requests of different sizes, or requests of one size with ICMP echoes. It covers requests only, and links of at most 50 Mbit/s.",
    covers: &["transmission"],
    needs: &[Need::Network, Need::Sizes],
    evaluate,
};

/// Tens of Mbit/s or less (thesis, section 5.3): above, 100 kB take 16 ms and windows matter more.
const MAX_RATE_MBIT: f64 = 50.0;
/// Minimum difference between the largest and the smallest message, in milliseconds ...
const MIN_MS: f64 = 1.0;
/// ... and as a share of the larger time.
const MIN_SHARE: f64 = 0.05;
/// A size is mentioned if its bytes take at least this share of the path.
const MIN_MENTIONED_SHARE: f64 = 0.1;
/// Rates from different sizes may differ by this factor and still be consistent, because of jitter and window
/// limits.
const MAX_RATE_RATIO: f64 = 1.6;
/// Sizes whose times differ by less than this (in milliseconds) give no rate of their own.
const MIN_RESOLVED_MS: f64 = 0.5;
/// Bytes of a segment's headers.
const HEADER_BYTES: f64 = 66.0;
/// Above this share of the link's rate there is a standing queue. Below it, each message finds the queue
/// empty.
const MAX_UTILISATION: f64 = 0.9;
/// An acknowledgement, also of a proxy, may wait this long for a reply to travel with (Linux), or for a round
/// trip if longer.
const DELAYED_ACK_MS: f64 = 40.0;
/// With fewer messages the minimum is not yet that of the path.
const MIN_MESSAGES: usize = 5;
/// Low enough for messages that did not wait, high enough not to depend on a single one.
const LOW_QUANTILE: f64 = 0.1;

/// Messages of one size at one place.
#[derive(Clone, Copy, Debug)]
struct Point {
    request: ByteSize,
    /// Size with headers.
    bytes: f64,
    /// From sending to the reply, without applications, in milliseconds.
    time: f64,
    /// The network's part of it.
    network: f64,
    interval: f64,
}

impl Point {
    fn of(runs: &[&Run<'_>]) -> Option<Self> {
        let scenario = runs.first()?.scenario;
        let network_times = || runs.iter().flat_map(|run| &run.network_times);
        let networks: SortedValues = network_times().map(|time| time.network_ms).collect();
        let times: SortedValues = network_times()
            .map(|network_time| network_time.network_ms + network_time.waited_ms)
            .collect();
        if networks.len() < MIN_MESSAGES {
            return None;
        }
        Some(Self {
            request: scenario.request_size,
            bytes: bytes_with_headers(scenario.request_size),
            time: times.quantile(LOW_QUANTILE)?,
            network: networks.quantile(LOW_QUANTILE)?,
            interval: scenario.interval.millis_f64(),
        })
    }

    /// The rate that explains the difference to a smaller size, in Mbit/s.
    fn rate_from(&self, smaller: &Self) -> f64 {
        let micros = (self.time - smaller.time) * 1e3;
        (self.bytes - smaller.bytes) * 8.0 / micros.max(f64::MIN_POSITIVE)
    }

    /// Whether the network stage shows most of the bytes that depart at once. A window cannot cause delay
    /// there.
    #[expect(clippy::cast_precision_loss, reason = "some kilobytes")]
    fn shows_in_the_network(&self, smaller: &Self, rate: f64) -> bool {
        let burst = (self.bytes - smaller.bytes).min(INITIAL_WINDOW.bytes() as f64);
        let expected = burst * 8.0 / rate / 1e3;
        self.network - smaller.network >= 0.5 * expected
    }

    fn leaves_link_idle(&self, rate: f64) -> bool {
        self.bytes * 8.0 / (self.interval * 1e3) <= MAX_UTILISATION * rate
    }
}

fn evaluate(input: &RuleInput<'_>) -> Vec<RuleResult> {
    let pairs = input.pairs_without_load().into_iter();
    pairs
        .filter_map(|(pair, runs)| diagnose_group(&input.name(&pair), &runs))
        .collect()
}

/// A point for each request size, at the longest interval, where the link is idle most of the time; the same
/// for replies.
fn points(runs: &[&Run<'_>]) -> Vec<Point> {
    let mut sizes: BTreeMap<(u64, u64), Vec<&Run<'_>>> = BTreeMap::new();
    for run in runs {
        let scenario = run.scenario;
        let key = (
            scenario.response_size.bytes(),
            scenario.request_size.bytes(),
        );
        sizes.entry(key).or_default().push(run);
    }
    let replies: BTreeMap<u64, usize> = sizes.keys().fold(BTreeMap::new(), |mut counts, key| {
        *counts.entry(key.0).or_insert(0) += 1;
        counts
    });
    let max = replies.into_iter().max_by_key(|(_, count)| *count);
    let of_one_reply = sizes
        .into_iter()
        .filter(|(key, _)| Some(key.0) == max.map(|most_frequent| most_frequent.0));
    of_one_reply
        .filter_map(|(_, runs)| {
            let longest = runs.iter().map(|run| run.scenario.interval).max()?;
            let idle_points = runs
                .into_iter()
                .filter(|run| run.scenario.interval == longest);
            Point::of(&idle_points.collect::<Vec<_>>())
        })
        .collect()
}

/// The path without a message's bytes: an echo or TCP's least round trip.
fn bare_path(runs: &[&Run<'_>]) -> Option<Point> {
    // An echo may use another path; TCP's handshake does not.
    let paths = runs
        .iter()
        .filter_map(|run| run.min_tcp_rtt().or_else(|| run.echoes().min()));
    let time = paths.min_by(f64::total_cmp)?;
    Some(Point {
        request: ByteSize(0),
        bytes: HEADER_BYTES,
        time,
        network: time,
        interval: f64::INFINITY,
    })
}

/// Whether the acknowledgements wait for the bytes like the replies, and not for the replies.
fn is_acknowledged_late(runs: &[&Run<'_>], bare_path: &Point) -> bool {
    let acknowledged = runs.iter().flat_map(|run| &run.flow.exchanges);
    let acknowledged = acknowledged.filter_map(|exchange| exchange.ack.map(Span::millis_f64));
    let replied = runs
        .iter()
        .filter_map(|run| run.sorted_network_times().min());
    let [acknowledged, replied]: [SortedValues; 2] = [acknowledged.collect(), replied.collect()];
    let late = acknowledged.min().zip(replied.min());
    late.is_some_and(|(ack, reply)| {
        let waited = ack - bare_path.time;
        waited >= 0.5 * (reply - bare_path.time) && waited > DELAYED_ACK_MS.max(bare_path.time)
    })
}

/// A line through the points.
struct FittedLine {
    rate: f64,
    /// The rates, of each size that gives one.
    rates: Vec<f64>,
    reference: Point,
    /// The other points, the largest last.
    other_points: Vec<Point>,
    /// Whether the path's round trip lies on the line.
    is_anchored: bool,
}

fn fit_line(runs: &[&Run<'_>]) -> Option<FittedLine> {
    let mut measured = points(runs);
    let bare_path = bare_path(runs);
    if measured.len() < 2 {
        // A proxy in the path would look the same, except for the acknowledgements.
        measured.splice(
            0..0,
            bare_path.filter(|bare_path| is_acknowledged_late(runs, bare_path)),
        );
    }
    let (reference, other_points) = measured.split_first()?;
    let resolved = |point: &&Point| point.time - reference.time >= MIN_RESOLVED_MS;
    let line_through = |other_points: Vec<&Point>| -> Option<FittedLine> {
        let rates: Vec<f64> = other_points
            .iter()
            .map(|point| point.rate_from(reference))
            .collect();
        let rate = rates.iter().copied().collect::<SortedValues>().median()?;
        Some(FittedLine {
            rate,
            rates,
            reference: *reference,
            other_points: other_points.into_iter().copied().collect(),
            is_anchored: false,
        })
    };
    let first_fit = line_through(other_points.iter().filter(resolved).collect())?;
    let idle_points = other_points
        .iter()
        .filter(resolved)
        .filter(|point| point.leaves_link_idle(first_fit.rate));
    let mut fitted = line_through(idle_points.collect())?;
    let is_on_line = bare_path.map(|bare_path| {
        let expected =
            reference.time - (reference.bytes - bare_path.bytes) * 8.0 / fitted.rate / 1e3;
        (expected - bare_path.time).abs() <= MIN_RESOLVED_MS.max(MIN_SHARE * bare_path.time)
    });
    fitted.is_anchored = is_on_line == Some(true);
    Some(fitted)
}

fn diagnose_group(name: &str, runs: &[&Run<'_>]) -> Option<RuleResult> {
    let line = fit_line(runs)?;
    let (small, large) = (line.reference, *line.other_points.last()?);
    let added = large.time - small.time;
    let min = line.rates.iter().copied().fold(f64::INFINITY, f64::min);
    let max = line.rates.iter().copied().fold(0.0, f64::max);
    let is_a_line = max <= MAX_RATE_RATIO * min;
    let matters = added >= MIN_MS.max(MIN_SHARE * small.time);
    if !is_a_line || !matters || line.rate > MAX_RATE_MBIT || line.rate <= 0.0 {
        return None;
    }
    // For a large message, a wait for the window can replace a wait at the link.
    let mut other_points = line.other_points.iter();
    if !other_points.any(|point| point.shows_in_the_network(&small, line.rate)) {
        return None;
    }
    let per_kilobyte = 8.0 / line.rate;
    let path = small.time - (small.bytes * 8.0 / line.rate / 1e3).min(small.time);
    let matters_from = MIN_MENTIONED_SHARE * path / per_kilobyte;
    let smaller = if small.request.bytes() > 0 {
        format!("{} take {}", small.request.exact(), millis(small.time))
    } else {
        format!("a small packet takes {}", millis(small.time))
    };
    let cause = format!(
        "{name}: requests pass a link of about {}. Each kilobyte adds {} to the RTT of {}: {} take {}, {smaller}. From {:.1} kB on, transmission adds more than 10 % to the RTT.",
        rate_text(line.rate),
        millis(per_kilobyte),
        millis(path),
        large.request.exact(),
        millis(large.time),
        matters_from.max(0.1),
    );
    let remedy = "send fewer bytes (compression, differences) or increase the upstream rate; a faster server or a shorter path does not help";
    let mut result = RuleResult::new(cause, remedy.to_owned(), confidence(&line))
        .with_added_latency(added)
        .with("rate", line.rate, "Mbit/s")
        .with("time per kilobyte", per_kilobyte, "ms")
        .with("smallest message", small.time, "ms")
        .with("largest message", large.time, "ms")
        .with("size that adds 10 % to the round trip", matters_from, "kB")
        .with("lowest rate by requests of one size", min, "Mbit/s")
        .with("highest rate by requests of one size", max, "Mbit/s")
        .observed_in(runs.iter().copied());
    for run in runs {
        result = result.explaining(run, transmission_ms(run, line.rate));
    }
    Some(result)
}

/// Transmission time of a scenario's request at that rate, in milliseconds.
fn transmission_ms(run: &Run<'_>, rate: f64) -> f64 {
    bytes_with_headers(run.scenario.request_size) * 8.0 / rate / 1e3
}

/// Bytes with headers.
#[expect(clippy::cast_precision_loss, reason = "sizes of messages")]
fn bytes_with_headers(size: ByteSize) -> f64 {
    size.bytes() as f64 + size.segments() as f64 * HEADER_BYTES
}

fn rate_text(rate: f64) -> String {
    if rate < 10.0 {
        format!("{rate:.1} Mbit/s")
    } else {
        format!("{rate:.0} Mbit/s")
    }
}

fn confidence(line: &FittedLine) -> Confidence {
    let sizes = line.rates.len() + usize::from(line.reference.request.bytes() > 0);
    let on_the_line = sizes + usize::from(line.is_anchored);
    let level = match on_the_line {
        3.. => Level::Sure,
        2 => Level::Likely,
        _ => Level::Possible,
    };
    let anchor = if line.is_anchored {
        " and the RTT of the path"
    } else {
        ""
    };
    let spread = line.rates.iter().copied().fold(0.0, f64::max) / line.rate;
    let reason = format!(
        "{}{anchor} give the same link rate within {:.0} %",
        plural(sizes, "request size"),
        ((spread - 1.0) * 100.0).max(1.0).ceil(),
    );
    Confidence::new(level, reason)
}
