//! What is counted for Prometheus: round trips by pair of hosts, never by flow, and totals.
//!
//! Owns the buckets, the bound on pairs and the text format. Does not own the door (see `door`).

use std::collections::BTreeMap;
use std::net::IpAddr;

use neph_capture::{Answer, Answered, Between, Half, Method, Name, Others, Question, Sample};
use neph_model::Span;

use super::ears::Seen;
use super::watching::Repairs;

/// Upper bounds of the buckets in nanoseconds, 10 us to 10 s; longer ones count in all only.
const BOUNDS: [u64; 19] = [
    10_000,
    25_000,
    50_000,
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    25_000_000,
    50_000_000,
    100_000_000,
    250_000_000,
    500_000_000,
    1_000_000_000,
    2_500_000_000,
    5_000_000_000,
    10_000_000_000,
];
/// Histograms that pairs of hosts have of their own, four each of 1,000; the rest share one a kind.
const OWN: usize = 4_000;
/// What the rest is called.
const OTHERS: &str = "other";

const TRIPS: &str = "neph_watch_round_trip_seconds";
const OF_NONE: &str = "neph_watch_other_packets_total";
const ALARM: &str = "neph_watch_alarm";

/// Round trips of one kind.
#[derive(Debug, Default)]
struct Histogram {
    buckets: [u64; BOUNDS.len()],
    n: u64,
    nanos: u128,
}

/// Whose, on which side, and what answered: `path`, `with_data` or `delayed` of TCP, `ping`, `dns` or
/// `quic_spin`.
type Labels = (Option<(IpAddr, IpAddr)>, &'static str, &'static str);

#[derive(Debug)]
pub(super) struct Metrics {
    method: Method,
    histograms: BTreeMap<Labels, Histogram>,
    own: usize,
}

/// What else is told.
#[derive(Debug, Clone, Copy)]
pub(super) struct Totals {
    pub(super) seen: Seen,
    pub(super) others: Others,
    /// Of IP, of each packet once.
    pub(super) bytes: u64,
    pub(super) flows: usize,
    pub(super) repairs: Repairs,
}

impl Histogram {
    fn add(&mut self, nanos: u64, weight: u64) {
        let place = BOUNDS.partition_point(|bound| *bound < nanos);
        if let Some(bucket) = self.buckets.get_mut(place) {
            *bucket += weight;
        }
        self.n += weight;
        self.nanos += u128::from(nanos) * u128::from(weight);
    }
}

impl Metrics {
    pub(super) const fn new(method: Method) -> Self {
        Self {
            method,
            histograms: BTreeMap::new(),
            own: 0,
        }
    }

    pub(super) fn sample(&mut self, of: &Name, sample: &Sample) {
        let what = match sample.answer {
            Answer::Handshake | Answer::Bare => "path",
            Answer::WithData => "with_data",
            Answer::Delayed => "delayed",
        };
        if sample.method != self.method {
            return;
        }
        let hosts = (of.client().ip(), of.server().ip());
        let weight = u64::from(sample.weight);
        self.add((hosts, sample.half, what), (sample.round_trip, weight));
    }

    /// A round trip outside of TCP.
    pub(super) fn answered(&mut self, of: &Between, trip: Answered) {
        let what = match of.question {
            Question::Ping => "ping",
            Question::Dns => "dns",
            Question::Quic => "quic_spin",
        };
        let hosts = (of.client.ip(), of.server.ip());
        self.add((hosts, trip.half, what), (trip.round_trip, 1));
    }

    /// A round trip, and how many it stands for.
    fn add(
        &mut self,
        (hosts, half, what): ((IpAddr, IpAddr), Half, &'static str),
        (trip, weight): (Span, u64),
    ) {
        let half = match half {
            Half::Client => "client",
            Half::Server => "server",
        };
        let nanos = u64::try_from(trip.nanos()).unwrap_or(0);
        self.of((Some(hosts), half, what)).add(nanos, weight);
    }

    /// The histogram with these labels, or that of the rest where there are too many.
    fn of(&mut self, labels: Labels) -> &mut Histogram {
        let (_, half, what) = labels;
        let is_known = self.histograms.contains_key(&labels);
        let is_room = self.own < OWN;
        self.own += usize::from(!is_known && is_room);
        let labels = if is_known || is_room {
            labels
        } else {
            (None, half, what)
        };
        self.histograms.entry(labels).or_default()
    }

    /// The page, in the text format of Prometheus.
    pub(super) fn page(&self, totals: &Totals, alarms: &[(&str, bool)]) -> String {
        let mut page = String::new();
        self.round_trips(&mut page);
        totals.write(&mut page);
        if !alarms.is_empty() {
            head(&mut page, ALARM, "gauge", "1 where an alarm is raised.");
        }
        for (rule, is_raised) in alarms {
            let rule = escaped(rule);
            let value = u8::from(*is_raised);
            page.push_str(&format!("{ALARM}{{rule=\"{rule}\"}} {value}\n"));
        }
        page
    }

    fn round_trips(&self, page: &mut String) {
        head(page, TRIPS, "histogram", "Round trips by pair of hosts.");
        for ((hosts, half, what), histogram) in &self.histograms {
            let (client, server) = hosts.map_or_else(
                || (OTHERS.to_owned(), OTHERS.to_owned()),
                |(client, server)| (client.to_string(), server.to_string()),
            );
            let labels = format!(
                "client=\"{client}\",server=\"{server}\",half=\"{half}\",answer=\"{what}\""
            );
            let mut up_to = 0;
            for (bound, count) in BOUNDS.iter().zip(histogram.buckets) {
                up_to += count;
                let bound = seconds((*bound).into());
                page.push_str(&format!(
                    "{TRIPS}_bucket{{{labels},le=\"{bound}\"}} {up_to}\n"
                ));
            }
            let (n, sum) = (histogram.n, seconds(histogram.nanos));
            page.push_str(&format!("{TRIPS}_bucket{{{labels},le=\"+Inf\"}} {n}\n"));
            page.push_str(&format!(
                "{TRIPS}_sum{{{labels}}} {sum}\n{TRIPS}_count{{{labels}}} {n}\n"
            ));
        }
    }
}

impl Totals {
    fn write(&self, page: &mut String) {
        let Self {
            seen,
            others,
            bytes,
            flows,
            repairs,
        } = self;
        for (name, kind, what, value) in [
            (
                "packets_total",
                "counter",
                "Packets looked at.",
                seen.packets,
            ),
            (
                "bytes_total",
                "counter",
                "Bytes of IP, of each packet once.",
                *bytes,
            ),
            (
                "packets_lost_total",
                "counter",
                "Packets lost because the ring was full.",
                seen.lost,
            ),
            (
                "ring_full_total",
                "counter",
                "How often the ring was full.",
                seen.frozen,
            ),
            (
                "retransmissions_total",
                "counter",
                "TCP segments that were retransmitted, spurious ones included.",
                repairs.retransmissions,
            ),
            (
                "spurious_retransmissions_total",
                "counter",
                "Retransmissions of what had arrived: no loss.",
                repairs.spurious,
            ),
            (
                "segments_not_followed_total",
                "counter",
                "TCP segments of windows too large to follow all; others stand for them.",
                repairs.not_followed,
            ),
            ("flows", "gauge", "TCP flows at the moment.", *flows as u64),
        ] {
            let name = format!("neph_watch_{name}");
            head(page, &name, kind, what);
            page.push_str(&format!("{name} {value}\n"));
        }
        head(page, OF_NONE, "counter", "Packets of no flow here.");
        for (kind, value) in [
            ("udp", others.udp),
            ("icmp", others.icmp),
            ("fragment", others.fragments),
            ("unread", others.unread),
            ("cut_off", others.cut),
            ("not_ip", seen.not_ip),
        ] {
            page.push_str(&format!("{OF_NONE}{{kind=\"{kind}\"}} {value}\n"));
        }
    }
}

fn head(page: &mut String, name: &str, kind: &str, what: &str) {
    page.push_str(&format!("# HELP {name} {what}\n# TYPE {name} {kind}\n"));
}

/// Nanoseconds as seconds, exactly.
fn seconds(nanos: u128) -> String {
    const IN_SECOND: u128 = 1_000_000_000;
    let text = format!("{}.{:09}", nanos / IN_SECOND, nanos % IN_SECOND);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(number: u32) -> Labels {
        let hosts = (
            IpAddr::from(number.to_be_bytes()),
            IpAddr::from([9, 9, 9, 9]),
        );
        (Some(hosts), "server", "path")
    }

    fn page(metrics: &Metrics) -> String {
        let totals = Totals {
            seen: Seen::default(),
            others: Others::default(),
            bytes: 0,
            flows: 3,
            repairs: Repairs {
                retransmissions: 5,
                spurious: 2,
                not_followed: 9,
            },
        };
        metrics.page(&totals, &[("path > \"2ms\"", true)])
    }

    #[test]
    fn a_round_trip_is_in_each_bucket_that_is_not_below_it() {
        let mut metrics = Metrics::new(Method::Echo);
        for nanos in [10_000, 10_001, 99_000_000_000] {
            metrics.of(pair(1)).add(nanos, 1);
        }
        let page = page(&metrics);
        let labels = "client=\"0.0.0.1\",server=\"9.9.9.9\",half=\"server\",answer=\"path\"";
        for (line, value) in [
            (format!("_bucket{{{labels},le=\"0.00001\"}}"), "1"),
            (format!("_bucket{{{labels},le=\"0.000025\"}}"), "2"),
            (format!("_bucket{{{labels},le=\"10\"}}"), "2"),
            (format!("_bucket{{{labels},le=\"+Inf\"}}"), "3"),
            (format!("_sum{{{labels}}}"), "99.000020001"),
            (format!("_count{{{labels}}}"), "3"),
        ] {
            let line = format!("neph_watch_round_trip_seconds{line} {value}\n");
            assert!(page.contains(&line), "{line}{page}");
        }
        for line in [
            "neph_watch_flows 3\n",
            "neph_watch_retransmissions_total 5\n",
            "neph_watch_spurious_retransmissions_total 2\n",
            "neph_watch_segments_not_followed_total 9\n",
        ] {
            assert!(page.contains(line), "{line}{page}");
        }
        assert!(page.contains("neph_watch_alarm{rule=\"path > \\\"2ms\\\"\"} 1\n"));
    }

    #[test]
    fn what_is_asked_outside_of_tcp_counts_by_hosts_and_kind_and_not_by_flow() {
        let mut metrics = Metrics::new(Method::Echo);
        let trip = Answered {
            at: neph_model::Wall::from_unix_nanos(0),
            half: Half::Server,
            round_trip: Span::from_micros(70),
        };
        for port in [4000, 4001] {
            let of = Between {
                question: Question::Quic,
                client: (IpAddr::from([1, 0, 0, 1]), port).into(),
                server: (IpAddr::from([9, 9, 9, 9]), 443).into(),
                vlan: None,
                tunnel: None,
            };
            for question in Question::ALL {
                let of = Between { question, ..of };
                metrics.answered(&of, trip);
            }
        }
        assert_eq!(metrics.histograms.len(), 3);
        let page = page(&metrics);
        for what in ["ping", "dns", "quic_spin"] {
            let line = format!(
                "_count{{client=\"1.0.0.1\",server=\"9.9.9.9\",half=\"server\",answer=\"{what}\"}} 2\n"
            );
            assert!(page.contains(&line), "{line}{page}");
        }
    }

    #[test]
    fn pairs_beyond_the_bound_share_a_histogram() {
        let mut metrics = Metrics::new(Method::Echo);
        for number in 0..10_000 {
            metrics.of(pair(number)).add(1, 1);
        }
        metrics.of(pair(7)).add(1, 1);
        assert_eq!(metrics.histograms.len(), OWN + 1);
        assert_eq!(metrics.of(pair(7)).n, 2);
        assert_eq!(metrics.of(pair(9_999)).n, 6_000);
    }
}
