//! Predicts from the delays of a topology when the first reply of a protocol arrives.
//!
//! Owns the list of protocols and the calculation: round trips, transmission times, slow start. Excludes
//! jitter, loss, queues of other messages and time in hosts. So a measured excess is not caused by the
//! network, and twice the delay over a new connection is no fault.

use neph_model::{BitRate, ByteSize, INITIAL_WINDOW, SEGMENT, Span};

use crate::gate::transmission_time;
use crate::route;
use crate::topology::Topology;

/// Headers around a segment's payload, Ethernet included.
const HEADERS: u32 = 66;

/// A protocol, reduced to its delays: the exchanges before the request can be sent.
#[derive(Clone, Copy, Debug)]
pub struct Protocol {
    /// The name on screen.
    pub name: &'static str,
    /// Bytes of whole frames in each exchange before the request: forward and reverse path.
    opening: &'static [[u32; 2]],
    /// Whether the congestion window is the initial one of a connection.
    is_new: bool,
}

/// A TCP handshake: SYN and SYN-ACK. These frames, and those below, are as tshark showed them between neph's
/// prober and reflector, whose certificate has 0.4 kB.
const HANDSHAKE: [u32; 2] = [74, 74];
/// Both hellos, the certificate and the server's Finished.
const TLS_13: [u32; 2] = [276, 729];
/// Both hellos, the certificate, the server's key; then the client's key and both Finished.
const TLS_12: [[u32; 2]; 2] = [[198, 611], [159, 117]];

/// The predicted protocols, fastest first. TLS 1.3: RFC 8446, figure 1; TLS 1.2: RFC 5246, figure 1.
pub const PROTOCOLS: &[Protocol] = &[
    Protocol {
        name: "established connection, or UDP, ICMP",
        opening: &[],
        is_new: false,
    },
    Protocol {
        name: "new connection",
        opening: &[HANDSHAKE],
        is_new: true,
    },
    Protocol {
        name: "new connection, TLS 1.3",
        opening: &[HANDSHAKE, TLS_13],
        is_new: true,
    },
    Protocol {
        name: "new connection, TLS 1.2",
        opening: &[HANDSHAKE, TLS_12[0], TLS_12[1]],
        is_new: true,
    },
];

impl Protocol {
    /// Round trips until a small reply arrives.
    pub const fn round_trips(&self) -> usize {
        self.opening.len() + 1
    }
}

/// The path between two sites, both directions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forecast {
    forward: PathDirection,
    reverse: PathDirection,
}

/// One direction of a path: consecutive links.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct PathDirection {
    delay: Span,
    rates: Vec<BitRate>,
}

impl PathDirection {
    fn add(&mut self, shape: &crate::gate::Shape) {
        self.delay += shape.min_delay();
        self.rates.extend(shape.rate);
    }

    /// The delay of a frame on an idle path.
    fn unloaded_delay(&self, bytes: u32) -> Span {
        let transmitted = self
            .rates
            .iter()
            .map(|rate| transmission_time(bytes, *rate));
        transmitted.fold(self.delay, |sum, time| sum + time)
    }

    /// Interval at the end of the path between two frames that entered together.
    fn frame_interval(&self, bytes: u32) -> Span {
        let times = self
            .rates
            .iter()
            .map(|rate| transmission_time(bytes, *rate));
        times.max().unwrap_or_default()
    }
}

impl Forecast {
    /// The path of packets between two sites of `topology`, by index; `None` for a site and itself.
    pub fn between(topology: &Topology, from: usize, to: usize) -> Option<Self> {
        Some(Self {
            forward: path_direction(topology, from, to)?,
            reverse: path_direction(topology, to, from)?,
        })
    }

    /// The round trip of the smallest packets.
    pub fn echo(&self) -> Span {
        self.forward.unloaded_delay(64) + self.reverse.unloaded_delay(64)
    }

    /// Time from the first packet of `protocol` to a small reply to a request of `size`.
    pub fn predict(&self, protocol: &Protocol, size: ByteSize) -> Span {
        let opening = protocol.opening.iter();
        let opening_times = opening.map(|[forward, reverse]| {
            self.forward.unloaded_delay(*forward) + self.reverse.unloaded_delay(*reverse)
        });
        let opening_time = opening_times.fold(Span::ZERO, |sum, span| sum + span);
        let window = if protocol.is_new {
            count(INITIAL_WINDOW.segments())
        } else {
            usize::MAX
        };
        opening_time + self.transfer_time(size, window) + self.reverse.unloaded_delay(HEADERS + 1)
    }

    /// Time until the last byte of a message arrives. The window limits the segments in flight, and each
    /// acknowledged segment increases it by one (slow start, RFC 5681). Linux acknowledges every segment of a
    /// new connection at once.
    fn transfer_time(&self, size: ByteSize, window: usize) -> Span {
        let segments = count(size.segments());
        let mut acknowledged: Vec<Span> = Vec::new();
        let mut last: Option<Span> = None;
        for number in 0..segments {
            let sent = match allowing_segment(number, window) {
                Some(allowing) => acknowledged[allowing],
                None => Span::ZERO,
            };
            let payload = size
                .bytes()
                .saturating_sub(number as u64 * SEGMENT.bytes())
                .min(SEGMENT.bytes());
            let bytes = HEADERS + u32::try_from(payload).expect("at most a segment");
            let earliest_arrival = last.map(|last| last + self.forward.frame_interval(bytes));
            let arrived = (sent + self.forward.unloaded_delay(bytes))
                .max(earliest_arrival.unwrap_or_default());
            last = Some(arrived);
            acknowledged.push(arrived + self.reverse.unloaded_delay(HEADERS));
        }
        last.unwrap_or_default()
    }
}

/// The segment whose acknowledgement allows segment `number`; `None` for those of the initial window. An
/// acknowledgement allows two segments: it frees its own place and adds one.
const fn allowing_segment(number: usize, window: usize) -> Option<usize> {
    match number.checked_sub(window) {
        None => None,
        Some(beyond) => Some(beyond / 2),
    }
}

/// Saturates: so many segments are never in flight.
fn count(segments: u64) -> usize {
    usize::try_from(segments).unwrap_or(usize::MAX)
}

fn path_direction(topology: &Topology, from: usize, to: usize) -> Option<PathDirection> {
    let mut direction = PathDirection::default();
    for shape in route::path_shapes(topology, from, to)? {
        direction.add(shape);
    }
    Some(direction)
}

#[cfg(test)]
mod tests {
    use neph_text::Source;

    use super::*;

    fn path(link: &str) -> Forecast {
        let text = format!(
            "version = 1\n[[site]]\nname = \"a\"\naddress = \"10.0.0.1\"\n\
             [[site]]\nname = \"b\"\naddress = \"10.0.0.2\"\n\
             [[link]]\na = \"a\"\nb = \"b\"\n{link}\n"
        );
        let topology = Topology::parse(&Source::new("lab", text)).expect("fine");
        assert_eq!(Forecast::between(&topology, 0, 0), None);
        Forecast::between(&topology, 0, 1).expect("they are joined")
    }

    #[test]
    fn a_small_message_takes_as_many_round_trips_as_its_protocol() {
        let path = path("delay = \"20ms\"");
        assert_eq!(path.echo(), Span::from_millis(40));
        for (protocol, millis) in PROTOCOLS.iter().zip([40, 80, 120, 160]) {
            let small = path.predict(protocol, ByteSize(64));
            assert_eq!(small, Span::from_millis(millis), "{}", protocol.name);
            let round_trips = i64::try_from(protocol.round_trips()).expect("at most four");
            assert_eq!(path.echo().times(round_trips), small);
        }
    }

    /// 100 kB are 70 segments: 10, 20 and 40 of them in three round trips. Measured in this lab after an idle
    /// second: 120.4 ms.
    #[test]
    fn a_large_message_over_a_new_connection_waits_for_its_window() {
        let path = path("delay = \"20ms\"");
        let [reused, new, ..] = PROTOCOLS else {
            panic!("four protocols")
        };
        assert_eq!(
            path.predict(reused, ByteSize(100_000)),
            Span::from_millis(40)
        );
        assert_eq!(path.predict(new, ByteSize(100_000)), Span::from_millis(160));
        assert_eq!(path.predict(new, ByteSize(14_480)), Span::from_millis(80));
        assert_eq!(path.predict(new, ByteSize(14_481)), Span::from_millis(120));
    }

    #[test]
    fn all_links_of_the_path_count_including_those_behind_switches() {
        let text = "version = 1\nsite = [{ name = \"a\" }, { name = \"b\" }]\n\
                    switch = [{ name = \"s\" }, { name = \"t\" }]\nlink = [\n\
                    { a = \"a\", b = \"s\", delay = \"10ms\" },\n\
                    { a = \"t\", b = \"s\", delay = \"5ms\" },\n\
                    { a = \"t\", b = \"b\", delay = \"1ms\", rate = \"8Mbit/s\" }]\n";
        let topology = Topology::parse(&Source::new("lab", text.to_owned())).expect("fine");
        let forecast = Forecast::between(&topology, 0, 1).expect("they are joined");
        let slow = transmission_time(64, BitRate(8_000_000)).times(2);
        assert_eq!(forecast.echo(), Span::from_millis(32) + slow);
    }

    /// 10 kB are 7 segments: 10,000 bytes and 7 times 66 of headers at 3 Mbit/s are 27.9 ms.
    #[test]
    fn a_slow_link_adds_every_byte_in_its_direction_only() {
        let path = path("delay = \"6ms\"\na_to_b = { rate = \"3Mbit/s\" }");
        let reused = &PROTOCOLS[0];
        let predicted = path.predict(reused, ByteSize(10_000));
        // Seven times rounded to the nanosecond.
        let error = predicted - Span::from_millis(12) - Span::from_nanos(27_898_667);
        assert!(error.abs() < Span::from_nanos(10), "{error}");
        let echo = transmission_time(64, BitRate(3_000_000));
        assert_eq!(path.echo(), Span::from_millis(12) + echo);
    }
}
