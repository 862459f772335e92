//! Metrics of `neph watch` for Prometheus: round trips by pair of hosts (not by flow), and totals.
//!
//! Owns the metrics and the limit on pairs; the text format is in `neph-export`.

use std::net::IpAddr;

use neph_capture::{
    Answer, ExchangeKey, ExchangeProtocol, ExchangeRoundTrip, FlowName, Half, Method, OtherPackets,
    Sample,
};
use neph_export::{Histograms, Kind, Page};
use neph_model::Span;

use neph_listen::CaptureCounters;

use super::RetransmissionCounters;

/// Histograms for 1,000 pairs of hosts, four each. All other pairs share one histogram per kind.
const MAX_HISTOGRAMS: usize = 4_000;

const ROUND_TRIP_METRIC: &str = "neph_watch_round_trip_seconds";
const OTHER_PACKETS_METRIC: &str = "neph_watch_other_packets_total";
const ALARM_METRIC: &str = "neph_watch_alarm";

/// Side, and kind of answer: `path`, `with_data` or `delayed` for TCP, `ping`, `dns` or
/// `quic_spin`.
type Labels = (&'static str, &'static str);

#[derive(Debug)]
pub struct Metrics {
    method: Method,
    histograms: Histograms<(IpAddr, IpAddr), Labels>,
}

/// Further totals.
#[derive(Debug, Clone, Copy)]
pub struct Totals {
    pub capture_counters: CaptureCounters,
    pub others: OtherPackets,
    /// Bytes of IP; each packet counts once.
    pub bytes: u64,
    pub flows: usize,
    pub retransmission_counters: RetransmissionCounters,
}

/// A round trip, and the number of round trips that it represents.
#[derive(Clone, Copy)]
struct WeightedRoundTrip {
    trip: Span,
    weight: u64,
}

impl Metrics {
    pub const fn new(method: Method) -> Self {
        Self {
            method,
            histograms: Histograms::new(MAX_HISTOGRAMS),
        }
    }

    pub fn sample(&mut self, flow_name: &FlowName, sample: &Sample) {
        let answer = match sample.answer {
            Answer::Handshake | Answer::Bare => "path",
            Answer::WithData => "with_data",
            Answer::Delayed => "delayed",
        };
        if sample.method != self.method {
            return;
        }
        let hosts = (flow_name.client().ip(), flow_name.server().ip());
        let round_trip = WeightedRoundTrip {
            trip: sample.round_trip,
            weight: u64::from(sample.weight),
        };
        self.add(hosts, sample.half, answer, round_trip);
    }

    /// A round trip outside of TCP.
    pub fn add_exchange(&mut self, key: &ExchangeKey, answer: ExchangeRoundTrip) {
        let kind = match key.protocol {
            ExchangeProtocol::Ping => "ping",
            ExchangeProtocol::Dns => "dns",
            ExchangeProtocol::Quic => "quic_spin",
        };
        let hosts = (key.client.ip(), key.server.ip());
        let round_trip = WeightedRoundTrip {
            trip: answer.round_trip,
            weight: 1,
        };
        self.add(hosts, answer.half, kind, round_trip);
    }

    fn add(
        &mut self,
        hosts: (IpAddr, IpAddr),
        side: Half,
        answer: &'static str,
        weighted: WeightedRoundTrip,
    ) {
        let side = match side {
            Half::Client => "client",
            Half::Server => "server",
        };
        let nanos = u64::try_from(weighted.trip.nanos()).unwrap_or(0);
        self.histograms
            .add(hosts, (side, answer), nanos, weighted.weight);
    }

    /// The page with the current values.
    pub fn page(&self, totals: &Totals, alarms: &[(&str, bool)]) -> Page {
        let mut page = Page::default();
        self.round_trips(&mut page);
        totals.write(&mut page);
        if !alarms.is_empty() {
            page.head(ALARM_METRIC, Kind::Gauge, "1 where an alarm is raised.");
        }
        for (rule, is_raised) in alarms {
            page.value(&[("rule", rule)], u8::from(*is_raised));
        }
        page
    }

    fn round_trips(&self, page: &mut Page) {
        let name = (ROUND_TRIP_METRIC, "Round trips by pair of hosts.");
        self.histograms.write(page, name, |hosts, (side, answer)| {
            vec![
                ("client", hosts.map(|(client, _)| client.to_string())),
                ("server", hosts.map(|(_, server)| server.to_string())),
                ("half", Some((*side).to_owned())),
                ("answer", Some((*answer).to_owned())),
            ]
        });
    }
}

impl Totals {
    fn write(&self, page: &mut Page) {
        let Self {
            capture_counters,
            others,
            bytes,
            flows,
            retransmission_counters,
        } = self;
        let counters = [
            ("packets", "Packets looked at.", capture_counters.packets),
            ("bytes", "Bytes of IP, of each packet once.", *bytes),
            (
                "packets_lost",
                "Packets lost because the ring was full.",
                capture_counters.lost,
            ),
            (
                "ring_full",
                "How often the ring was full.",
                capture_counters.frozen,
            ),
            (
                "retransmissions",
                "TCP segments that were retransmitted, spurious ones included.",
                retransmission_counters.retransmissions,
            ),
            (
                "spurious_retransmissions",
                "Retransmissions of what had arrived: no loss.",
                retransmission_counters.spurious,
            ),
            (
                "segments_not_tracked",
                "TCP segments not followed because the window was too large. A sample represents them.",
                retransmission_counters.segments_not_tracked,
            ),
        ];
        let counters = counters
            .map(|(name, help, value)| (format!("{name}_total"), Kind::Counter, help, value));
        let flows = (
            "flows".to_owned(),
            Kind::Gauge,
            "TCP flows at the moment.",
            *flows as u64,
        );
        for (name, kind, help, value) in counters.into_iter().chain([flows]) {
            let name = format!("neph_watch_{name}");
            page.head(&name, kind, help);
            page.value(&[], value);
        }
        write_other_packets(page, others, capture_counters.not_ip);
    }
}

fn write_other_packets(page: &mut Page, others: &OtherPackets, not_ip: u64) {
    page.head(
        OTHER_PACKETS_METRIC,
        Kind::Counter,
        "Packets of no flow here.",
    );
    for (kind, value) in [
        ("udp", others.udp),
        ("icmp", others.icmp),
        ("fragment", others.fragments),
        ("unread", others.other_protocols),
        ("cut_off", others.truncated),
        ("not_ip", not_ip),
    ] {
        page.value(&[("kind", kind)], value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(metrics: &Metrics) -> String {
        let totals = Totals {
            capture_counters: CaptureCounters::default(),
            others: OtherPackets::default(),
            bytes: 0,
            flows: 3,
            retransmission_counters: RetransmissionCounters {
                retransmissions: 5,
                spurious: 2,
                segments_not_tracked: 9,
            },
        };
        metrics.page(&totals, &[("path > \"2ms\"", true)]).text()
    }

    #[test]
    fn the_metrics_page_has_counters_and_alarms() {
        let page = page(&Metrics::new(Method::Echo));
        for line in [
            "neph_watch_flows 3\n",
            "neph_watch_retransmissions_total 5\n",
            "neph_watch_spurious_retransmissions_total 2\n",
            "neph_watch_segments_not_tracked_total 9\n",
            "neph_watch_alarm{rule=\"path > \\\"2ms\\\"\"} 1\n",
        ] {
            assert!(page.contains(line), "{line}{page}");
        }
    }

    #[test]
    fn non_tcp_round_trips_are_counted_by_hosts_and_kind_not_by_flow() {
        let mut metrics = Metrics::new(Method::Echo);
        let answer = ExchangeRoundTrip {
            at: neph_model::Wall::from_unix_nanos(0),
            half: Half::Server,
            round_trip: Span::from_micros(70),
        };
        for port in [4000, 4001] {
            let key = ExchangeKey {
                protocol: ExchangeProtocol::Quic,
                client: (IpAddr::from([1, 0, 0, 1]), port).into(),
                server: (IpAddr::from([9, 9, 9, 9]), 443).into(),
                vlan: None,
                tunnel: None,
            };
            for protocol in ExchangeProtocol::ALL {
                let key = ExchangeKey { protocol, ..key };
                metrics.add_exchange(&key, answer);
            }
        }
        assert_eq!(metrics.histograms.len(), 3);
        let page = page(&metrics);
        for kind in ["ping", "dns", "quic_spin"] {
            let line = format!(
                "_count{{client=\"1.0.0.1\",server=\"9.9.9.9\",half=\"server\",answer=\"{kind}\"}} 2\n"
            );
            assert!(page.contains(&line), "{line}{page}");
        }
    }
}
