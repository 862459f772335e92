//! Each packet's passage in times: its delay and error bound per segment, and where it was lost.
//!
//! Owns the conversion of timestamps and clocks to times of one packet. Figures and tables use it.

use std::collections::HashMap;

use crate::{Direction, Followed, Passage, RoundTripPair};
use neph_model::{Instant, OneWay, Span};
use neph_wire::ip;

use super::offsets::Offsets;

/// All captures, with their clocks.
#[derive(Debug)]
pub struct Passages {
    /// The points, in order.
    pub names: Vec<String>,
    pub followed: Followed,
    /// For each segment.
    pub clocks: Vec<Offsets>,
    pub round_trip_pairs: Vec<RoundTripPair>,
    /// The order in which packets pass the points, if it differs from that of `names`.
    pub order: Option<Vec<usize>>,
    /// Reasons to doubt the results, one sentence each.
    pub warnings: Vec<String>,
    /// By the number of the forward packet.
    round_trips: HashMap<u32, i64>,
    /// When the first point saw its first packet, by its clock.
    pub first_packet_at: i64,
    /// The longest delays of each segment, forward and reverse, in nanoseconds.
    longest_delays: Vec<[i64; 2]>,
}

/// Where a packet's path ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathEnd {
    /// It passed the last point.
    Arrived,
    /// It entered this segment and did not leave it.
    Lost(usize),
    /// It is not known whether it was lost.
    Unknown(UnknownLossReason),
}

/// Why it is not known whether a packet was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnknownLossReason {
    /// No packet of its hosts ever passed the next point.
    NeverPassed,
    /// Packets of its hosts passed this point, the next one, but none of its protocol and direction: the
    /// capture may have excluded them.
    KindNotSeen(usize),
    /// No packet of its flow passed the next point, which shows it with other addresses or ports.
    AddressTranslated,
    /// The next point's capture had not begun.
    CaptureNotBegun,
    /// The next point's capture was over, or has no packet so late.
    CaptureEnded,
    /// No point's capture has all of its bytes.
    Truncated,
    /// The clocks are not known, or one was set.
    ClockUnknown,
}

/// The expected arrival of a missing packet, compared with the duration of that point's capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ExpectedArrival {
    /// The capture ran from before until after the arrival.
    Within,
    Before,
    After,
}

/// One packet.
#[derive(Debug, Clone)]
pub struct Row {
    pub passage: Passage,
    pub direction: Direction,
    /// When it passed its first point, since the beginning, by the first point's clock. Exact only to within
    /// its delay around a step and where the clocks are not known. `None` if it was not seen on the side of
    /// the first point either.
    pub first_seen: Option<Span>,
    /// Delay of each segment, in the order of the points.
    pub delays: Vec<Option<OneWay>>,
    /// Time until its answer passed the first point, measured with one clock.
    pub round_trip: Option<Span>,
    pub end: PathEnd,
}

impl Passages {
    /// Combines `followed` with the clocks, one for each segment.
    pub fn of(names: Vec<String>, followed: Followed, clocks: Vec<Offsets>) -> Self {
        let round_trip_pairs = followed.round_trips();
        let round_trip = |pair: &RoundTripPair| {
            let (forward, reverse) = (
                followed.passage(pair.forward),
                followed.passage(pair.reverse),
            );
            let (sent_at, returned_at) = (forward.passed_at(0)?, reverse.passed_at(0)?);
            let is_set = clocks
                .first()
                .is_some_and(|offsets| offsets.is_set_between(sent_at, returned_at));
            let has_one_clock = !is_set && !followed.is_set_back(0, (sent_at, returned_at));
            has_one_clock.then_some((pair.forward, returned_at.saturating_sub(sent_at)))
        };
        let round_trips = round_trip_pairs.iter().filter_map(round_trip).collect();
        // If the first point saw nothing, the next one with its clock is used.
        let first_packet_at =
            (0..=followed.segments()).find_map(|point| followed.packet_extent(point));
        let first_packet_at = first_packet_at.map_or(0, |(from, _)| from.unix_nanos());
        let mut passages = Self {
            names,
            longest_delays: vec![[0; 2]; followed.segments()],
            followed,
            clocks,
            round_trip_pairs,
            order: None,
            warnings: Vec::new(),
            round_trips,
            first_packet_at,
        };
        passages.longest_delays = passages.longest_delays();
        passages
    }

    /// Each packet whose direction is known.
    pub fn rows(&self) -> impl Iterator<Item = Row> + '_ {
        let passages = self.followed.passages();
        passages.filter_map(|passage| {
            passage
                .direction
                .map(|direction| self.row(passage, direction))
        })
    }

    fn row(&self, passage: Passage, direction: Direction) -> Row {
        Row {
            first_seen: self.first_seen(&passage, direction),
            delays: (0..self.followed.segments())
                .map(|segment| self.delay(&passage, direction, segment))
                .collect(),
            round_trip: (self.round_trips.get(&passage.number))
                .map(|nanos| Span::from_nanos(*nanos)),
            end: self.path_end(&passage, direction),
            passage,
            direction,
        }
    }

    /// Its delay in a segment.
    pub fn delay(&self, passage: &Passage, direction: Direction, segment: usize) -> Option<OneWay> {
        let (first_time, second_time) = self.comparable_times(passage, segment)?;
        let offset = self.clocks[segment].around(first_time, second_time)?;
        let one_way = match direction {
            Direction::Forward => offset.forward(
                Instant::from_nanos(first_time),
                Instant::from_nanos(second_time),
            ),
            Direction::Reverse => offset.reverse(
                Instant::from_nanos(second_time),
                Instant::from_nanos(first_time),
            ),
        };
        Some(OneWay {
            delay: one_way.delay,
            bound: one_way.bound + self.rounding_error(segment),
        })
    }

    /// When it passed both points of a segment, in times that its clocks compare. `None` where their one
    /// clock was set back in between.
    fn comparable_times(&self, passage: &Passage, segment: usize) -> Option<(i64, i64)> {
        let (first_at, second_at) = (passage.passed_at(segment)?, passage.passed_at(segment + 1)?);
        if !matches!(self.clocks[segment], Offsets::Same) {
            return Some((first_at, second_at));
        }
        let is_set = self
            .followed
            .is_set_back_in_flight(segment, (first_at, second_at));
        let stamp = |point, at| self.followed.stamp(point, at);
        (!is_set).then(|| (stamp(segment, first_at), stamp(segment + 1, second_at)))
    }

    /// Rounding error of timestamps in micro- or milliseconds.
    fn rounding_error(&self, segment: usize) -> Span {
        let resolution = |point| self.followed.point(point).resolution;
        let coarser = resolution(segment).max(resolution(segment + 1));
        Span::from_nanos(if coarser > 1 { coarser } else { 0 })
    }

    fn first_seen(&self, passage: &Passage, direction: Direction) -> Option<Span> {
        let mut points = 0..=self.followed.segments();
        let observed = |point: &usize| passage.passed_at(*point).is_some();
        let first = match direction {
            Direction::Forward => points.find(observed),
            Direction::Reverse => points.rfind(observed),
        };
        self.time_at_point(passage, first?)
    }

    /// When it entered a segment, by the same rules as [`Row::first_seen`].
    pub fn entered(&self, passage: &Passage, direction: Direction, segment: usize) -> Option<Span> {
        self.time_at_point(passage, direction.enters(segment))
    }

    /// When it passed a point, since the beginning, by the first point's clock.
    fn time_at_point(&self, passage: &Passage, mut point: usize) -> Option<Span> {
        let mut at = passage.passed_at(point)?;
        while point > 0 {
            let clocks = &self.clocks[point - 1];
            let earlier_at = passage.passed_at(point - 1);
            if matches!(clocks, Offsets::Same) {
                let converted = self.followed.convert_time(point, at, point - 1);
                at = converted.or(earlier_at).unwrap_or(at);
                point -= 1;
                continue;
            }
            // Its own timestamp shows on which side of a step it passed.
            let offset = earlier_at.map_or_else(
                || clocks.at_later_point(at),
                |first_at| clocks.around(first_at, at),
            );
            (point, at) = match offset {
                Some(offset) => (point - 1, at.saturating_sub(offset.value().nanos())),
                None => (0..point)
                    .rev()
                    .find_map(|point| Some((point, passage.passed_at(point)?)))?,
            };
        }
        Some(Span::from_nanos(at.saturating_sub(self.first_packet_at)))
    }

    fn path_end(&self, passage: &Passage, direction: Direction) -> PathEnd {
        let last = self.followed.segments();
        let has_passed = |point: &usize| passage.passed_at(*point).is_some();
        // The last point it passed, the next one, and the segment between.
        let (at, next, segment) = match direction {
            Direction::Forward => match (0..=last).rev().find(has_passed) {
                Some(at) if at == last => return PathEnd::Arrived,
                Some(at) => (at, at + 1, at),
                None => return PathEnd::Unknown(UnknownLossReason::Truncated),
            },
            Direction::Reverse => match (0..=last).find(has_passed) {
                Some(0) => return PathEnd::Arrived,
                Some(at) => (at, at - 1, at - 1),
                None => return PathEnd::Unknown(UnknownLossReason::Truncated),
            },
        };
        let passed_at = passage.passed_at(at);
        let arrival = passed_at
            .and_then(|passed_at| self.expected_arrival(passed_at, (next, segment), direction));
        // If the capture did not run then, the packet's absence shows nothing.
        match arrival {
            Some(ExpectedArrival::Before) => {
                return PathEnd::Unknown(UnknownLossReason::CaptureNotBegun);
            }
            Some(ExpectedArrival::After) => {
                return PathEnd::Unknown(UnknownLossReason::CaptureEnded);
            }
            Some(ExpectedArrival::Within) | None => {}
        }
        if !self.followed.has_host_pair_crossed(passage, segment) {
            return PathEnd::Unknown(UnknownLossReason::NeverPassed);
        }
        if self.followed.is_translated(passage, segment) {
            return PathEnd::Unknown(UnknownLossReason::AddressTranslated);
        }
        if !self.followed.has_flow_kind_crossed(passage, segment) {
            return PathEnd::Unknown(UnknownLossReason::KindNotSeen(next));
        }
        match arrival {
            Some(_) => PathEnd::Lost(segment),
            None => PathEnd::Unknown(UnknownLossReason::ClockUnknown),
        }
    }

    /// Latest arrival at the next point, by the longest delay seen in the segment, compared with the duration
    /// of that point's capture.
    fn expected_arrival(
        &self,
        passed_at: i64,
        (next, segment): (usize, usize),
        direction: Direction,
    ) -> Option<ExpectedArrival> {
        let clocks = &self.clocks[segment];
        let point = segment + usize::from(next == segment);
        let passed_at = if matches!(clocks, Offsets::Same) {
            self.followed.convert_time(point, passed_at, next)?
        } else {
            passed_at
        };
        let (offset, sign) = match direction {
            Direction::Forward => (clocks.at(passed_at)?, 1),
            Direction::Reverse => (clocks.at_later_point(passed_at)?, -1),
        };
        let (from, until) = self.followed.capture_extent(next)?;
        let bound = offset.bound().nanos();
        let expected = passed_at.saturating_add(sign * offset.value().nanos());
        let longest = self.longest_delays[segment][direction as usize];
        let latest = expected.saturating_add(bound).saturating_add(longest);
        Some(if expected.saturating_sub(bound) < from.unix_nanos() {
            ExpectedArrival::Before
        } else if latest > until.unix_nanos() {
            ExpectedArrival::After
        } else {
            ExpectedArrival::Within
        })
    }

    fn longest_delays(&self) -> Vec<[i64; 2]> {
        let mut longest_delays = vec![[0; 2]; self.followed.segments()];
        for passage in self.followed.passages() {
            let Some(direction) = passage.direction else {
                continue;
            };
            for (segment, by_direction) in longest_delays.iter_mut().enumerate() {
                let delay = self.delay(&passage, direction, segment);
                let longest = &mut by_direction[direction as usize];
                *longest = delay.map_or(*longest, |delay| delay.delay.nanos().max(*longest));
            }
        }
        longest_delays
    }
}

/// `a - b` for each pair of neighbours.
pub fn segment_names(names: &[String]) -> Vec<String> {
    let pairs = names.windows(2);
    pairs
        .map(|pair| format!("{} - {}", pair[0], pair[1]))
        .collect()
}

/// The protocols that are distinguished, in output order.
pub const PROTOCOLS: [&str; 4] = ["icmp", "tcp", "udp", "other"];

/// Index into [`PROTOCOLS`] for a protocol number in IP.
pub const fn protocol_index(number: u8) -> usize {
    match number {
        ip::ICMP | ip::ICMPV6 => 0,
        ip::TCP => 1,
        ip::UDP => 2,
        _ => 3,
    }
}
