//! Quantities: the results of a transfer as numbers, one row each.
//!
//! Owns the names, the units and which direction is better. Measuring them is neph-load's.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Span;

/// The unit of a quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuantityUnit {
    /// Bits per second.
    BitsPerSecond,
    /// Nanoseconds.
    Nanoseconds,
    /// So many a second.
    PerSecond,
    /// Percent.
    Percent,
    /// A score from 1 (bad) to 5 (excellent).
    Score,
    /// A number of things.
    Count,
}

/// Whether higher or lower values are better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// More.
    Higher,
    /// Less.
    Lower,
}

/// The properties of a quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuantityProperties {
    /// The name in files, with the unit.
    pub name: &'static str,
    /// The name on screen.
    pub title: &'static str,
    /// Its unit.
    pub unit: QuantityUnit,
    /// Whether higher or lower values are better.
    pub better: Better,
}

macro_rules! quantities {
    ($($(#[$about:meta])* $variant:ident = $name:literal, $title:literal, $unit:ident, $better:ident;)*) => {
        /// A numeric result of a transfer, or of all messages of an experiment. Ordered as
        /// displayed.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(into = "&'static str", try_from = "String")]
        #[schemars(with = "String")]
        pub enum Quantity {
            $($(#[$about])* $variant,)*
        }

        impl Quantity {
            /// Every one, in their order.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The properties of the quantity.
            pub const fn properties(self) -> QuantityProperties {
                match self {
                    $(Self::$variant => QuantityProperties {
                        name: $name,
                        title: $title,
                        unit: QuantityUnit::$unit,
                        better: Better::$better,
                    },)*
                }
            }
        }
    };
}

quantities! {
    /// The median of a flow's response times.
    ResponseP50 = "response_p50_ns", "p50", Nanoseconds, Lower;
    /// The 99th percentile of a flow's response times.
    ResponseP99 = "response_p99_ns", "p99", Nanoseconds, Lower;
    /// The mean difference between consecutive response times.
    ResponseJitter = "response_jitter_ns", "jitter", Nanoseconds, Lower;
    /// Share of the messages sent that were lost.
    MessageLoss = "message_loss_percent", "loss", Percent, Lower;
    /// Transactions with a reply.
    Transactions = "transactions_per_s", "transaction rate", PerSecond, Higher;
    /// The shortest round-trip time of a transaction.
    RttMin = "rtt_min_ns", "RTT min", Nanoseconds, Lower;
    /// The mean round-trip time of transactions.
    RttMean = "rtt_mean_ns", "RTT mean", Nanoseconds, Lower;
    /// The standard deviation of round-trip times of transactions.
    RttDeviation = "rtt_deviation_ns", "RTT deviation", Nanoseconds, Lower;
    /// The median round-trip time of transactions.
    RttP50 = "rtt_p50_ns", "RTT p50", Nanoseconds, Lower;
    /// The 99th percentile of round-trip times of transactions.
    RttP99 = "rtt_p99_ns", "RTT p99", Nanoseconds, Lower;
    /// The longest round-trip time of a transaction.
    RttMax = "rtt_max_ns", "RTT max", Nanoseconds, Lower;
    /// The mean difference between consecutive round-trip times of transactions.
    RttJitter = "rtt_jitter_ns", "RTT jitter", Nanoseconds, Lower;
    /// Share of the transactions that had no reply in time.
    TransactionLoss = "transaction_loss_percent", "lost transactions", Percent, Lower;
    /// The busiest thread of the measuring site, percent of a core.
    AskerCpu = "asker_cpu_percent", "client CPU", Percent, Lower;
    /// The busiest thread of the endpoint, percent of a core.
    AnswererCpu = "answerer_cpu_percent", "server CPU", Percent, Lower;
    /// The mean bit rate of a stream; the mean over streams.
    MediaRate = "media_rate_bit_s", "bit rate", BitsPerSecond, Higher;
    /// The lowest bit rate of a stream in a second.
    MediaRateLeast = "media_rate_least_bit_s", "lowest bit rate", BitsPerSecond, Higher;
    /// The highest bit rate of a stream in a second.
    MediaRateMost = "media_rate_most_bit_s", "highest bit rate", BitsPerSecond, Higher;
    /// The mean interarrival jitter (RFC 3550) of a stream, by send times if the server reports
    /// them; the mean over streams.
    MediaJitter = "media_jitter_ns", "jitter", Nanoseconds, Lower;
    /// Share of the packets of all streams that were lost.
    MediaLoss = "media_loss_percent", "loss", Percent, Lower;
    /// Share of the packets of all streams that arrived after their frame was due.
    MediaLate = "media_late_percent", "late packets", Percent, Lower;
    /// Number of stalls of all streams.
    MediaStalls = "media_stalls", "stalls", Count, Lower;
    /// The estimated quality of the worst stream.
    MediaQuality = "media_quality_score", "quality (MOS)", Score, Higher;
    /// Payload per time that the endpoint received during the test.
    UpGoodput = "up_goodput_bit_s", "goodput up", BitsPerSecond, Higher;
    /// Payload per time that the measuring site received during the test.
    DownGoodput = "down_goodput_bit_s", "goodput down", BitsPerSecond, Higher;
    /// Payload per time that the measuring site's kernel accepted.
    UpSent = "up_sent_bit_s", "sent up", BitsPerSecond, Higher;
    /// Payload per time that the endpoint's kernel accepted.
    DownSent = "down_sent_bit_s", "sent down", BitsPerSecond, Higher;
    /// Share of the datagrams sent up that were lost.
    UpLoss = "up_loss_percent", "loss up", Percent, Lower;
    /// Share of the datagrams sent down that were lost.
    DownLoss = "down_loss_percent", "loss down", Percent, Lower;
    /// Interarrival jitter up (RFC 3550), of the stream with the largest.
    UpJitter = "up_jitter_ns", "jitter up", Nanoseconds, Lower;
    /// Interarrival jitter down (RFC 3550), of the stream with the largest.
    DownJitter = "down_jitter_ns", "jitter down", Nanoseconds, Lower;
    /// 95th percentile of the packet delay variation up (RFC 5481).
    UpPdvP95 = "up_pdv_p95_ns", "PDV p95 up", Nanoseconds, Lower;
    /// 95th percentile of the packet delay variation down (RFC 5481).
    DownPdvP95 = "down_pdv_p95_ns", "PDV p95 down", Nanoseconds, Lower;
    /// Segments that TCP retransmitted up.
    UpRetransmissions = "up_retransmissions", "retransmissions up", Count, Lower;
    /// Segments that TCP retransmitted down.
    DownRetransmissions = "down_retransmissions", "retransmissions down", Count, Lower;
    /// TCP's smoothed round-trip time while sending up.
    UpSrtt = "up_srtt_ns", "RTT under load up", Nanoseconds, Lower;
    /// TCP's smoothed round-trip time while sending down.
    DownSrtt = "down_srtt_ns", "RTT under load down", Nanoseconds, Lower;
    /// The busiest sending thread of the measuring site, percent of a core.
    UpSenderCpu = "up_sender_cpu_percent", "sender CPU up", Percent, Lower;
    /// The busiest receiving thread of the endpoint, percent of a core.
    UpReceiverCpu = "up_receiver_cpu_percent", "receiver CPU up", Percent, Lower;
    /// The busiest sending thread of the endpoint, percent of a core.
    DownSenderCpu = "down_sender_cpu_percent", "sender CPU down", Percent, Lower;
    /// The busiest receiving thread of the measuring site, percent of a core.
    DownReceiverCpu = "down_receiver_cpu_percent", "receiver CPU down", Percent, Lower;
    /// Payload per time of a background load that its receiver received.
    LoadGoodput = "load_goodput_bit_s", "load's goodput", BitsPerSecond, Higher;
}

impl Quantity {
    /// The quantity of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        let mut quantities = Self::ALL.iter().copied();
        quantities.find(|quantity| quantity.properties().name == name)
    }

    /// A value with its unit, as text: `93.4 Mbit/s`, `0.20 %`, `1.204 ms`.
    pub fn to_text(self, value: f64) -> String {
        match self.properties().unit {
            QuantityUnit::BitsPerSecond => rate_in_words(value),
            QuantityUnit::Nanoseconds => time_in_words(value),
            QuantityUnit::PerSecond if value.abs() < 100.0 => format!("{value:.2}/s"),
            QuantityUnit::PerSecond => format!("{value:.0}/s"),
            QuantityUnit::Percent => format!("{value:.2} %"),
            QuantityUnit::Count => format!("{value:.0}"),
            QuantityUnit::Score => format!("{value:.2}"),
        }
    }
}

fn rate_in_words(value: f64) -> String {
    let units = [(1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s")];
    let fits = |(unit, _): &(f64, &str)| value.abs() >= *unit;
    match units.into_iter().find(fits) {
        Some((unit, name)) => format!("{:.2} {name}", value / unit),
        None => format!("{value:.0} bit/s"),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "a time in nanoseconds fits far more than a life"
)]
fn time_in_words(value: f64) -> String {
    Span::from_nanos(value.round() as i64).to_string()
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.properties().name)
    }
}

impl From<Quantity> for &'static str {
    fn from(quantity: Quantity) -> Self {
        quantity.properties().name
    }
}

impl TryFrom<String> for Quantity {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        Self::from_name(&name).ok_or_else(|| format!("there is no quantity '{name}'"))
    }
}

/// The results of a transfer over its whole duration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Quantities {
    /// Address and port of the other end.
    pub peer: SocketAddr,
    /// Each measured quantity with its value, in the unit of its name.
    pub values: BTreeMap<Quantity, f64>,
    /// What limited the transfer, one sentence per direction.
    pub limits: Vec<String>,
}

/// The quantities in a line about a transfer.
const FIRST: [Quantity; 10] = [
    Quantity::MediaRate,
    Quantity::MediaLoss,
    Quantity::MediaStalls,
    Quantity::Transactions,
    Quantity::RttP50,
    Quantity::TransactionLoss,
    Quantity::UpGoodput,
    Quantity::UpLoss,
    Quantity::DownGoodput,
    Quantity::DownLoss,
];

impl Quantities {
    /// The first of them as one line: `goodput up 93.40 Mbit/s, loss up 0.20 %`.
    pub fn in_a_line(&self) -> String {
        let parts = FIRST.iter().filter_map(|quantity| {
            let value = self.values.get(quantity)?;
            let title = quantity.properties().title;
            Some(format!("{title} {}", quantity.to_text(*value)))
        });
        parts.collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_quantity_is_found_by_its_name_and_only_by_it() {
        for quantity in Quantity::ALL {
            let name = quantity.properties().name;
            assert_eq!(Quantity::from_name(name), Some(*quantity));
            let fits = match quantity.properties().unit {
                QuantityUnit::BitsPerSecond => name.ends_with("_bit_s"),
                QuantityUnit::Nanoseconds => name.ends_with("_ns"),
                QuantityUnit::PerSecond => name.ends_with("_per_s"),
                QuantityUnit::Percent => name.ends_with("_percent"),
                QuantityUnit::Count => true,
                QuantityUnit::Score => name.ends_with("_score"),
            };
            assert!(fits, "{name} has another unit");
        }
        assert_eq!(Quantity::from_name("goodput"), None);
    }

    #[test]
    fn values_print_with_their_unit() {
        assert_eq!(Quantity::UpGoodput.to_text(93.4e6), "93.40 Mbit/s");
        assert_eq!(Quantity::UpJitter.to_text(1_204_000.0), "1.20 ms");
        assert_eq!(Quantity::UpLoss.to_text(0.2), "0.20 %");
        assert_eq!(Quantity::UpRetransmissions.to_text(12.0), "12");
    }

    #[test]
    fn quantities_roundtrip_through_text() {
        let quantities = Quantities {
            peer: ([192, 0, 2, 1], 7420).into(),
            values: [(Quantity::UpGoodput, 1.5e9)].into(),
            limits: vec!["The path is the limit.".to_owned()],
        };
        let json = serde_json::to_string(&quantities).expect("it is data");
        assert!(json.contains("\"up_goodput_bit_s\":1500000000.0"), "{json}");
        assert_eq!(
            serde_json::from_str::<Quantities>(&json).expect("it"),
            quantities
        );
        assert_eq!(quantities.in_a_line(), "goodput up 1.50 Gbit/s");
    }
}
