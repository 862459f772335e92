//! The text of a measure, as plans and stores write it.

use std::fmt;
use std::str::FromStr;

use super::{
    Measure, MediaMeasure, ThroughputMeasure, TransactionKind, TransactionMeasure,
    TransferDirection, TransferTransport,
};
use crate::{BitRate, NoRate};

/// A text that names nothing that can be measured.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseMeasureError {
    /// Its first words are unknown.
    #[error("'{0}' names nothing that is measured")]
    Unknown(String),
    /// A word of it is unknown.
    #[error("'{word}' does not belong to {subject}")]
    Word {
        /// What is measured.
        subject: &'static str,
        /// The word.
        word: String,
    },
    /// More streams than allowed.
    #[error("{0} streams or clients are more than the 64 that are possible, or none")]
    Streams(u64),
    /// A rate that is none.
    #[error(transparent)]
    Rate(#[from] NoRate),
    /// Less than the minimum rate.
    #[error("{0} is less than the least rate, 1kbit/s")]
    BelowMinimumRate(BitRate),
    /// UDP does not adapt its rate to the path.
    #[error(
        "udp throughput has no rate: write one, such as 100Mbit/s, or max for the highest possible"
    )]
    UdpWithoutRate,
}

impl ParseMeasureError {
    /// What to write instead.
    pub const REMEDY: &str = "write \"messages\", \"tcp throughput\", \"udp throughput 100Mbit/s\", \
                              \"udp rr\", \"tcp rr\", \"tcp crr\" or \"media 3 clients\". \
                              Optional at the end: 4 streams; for throughput also up, down or both, and a rate or max";
}

/// `messages`, `media 3 clients`, `tcp crr 4 streams`, `tcp throughput down`, `udp throughput max`.
impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Messages => f.write_str("messages"),
            Self::Throughput(test) => test.fmt(f),
            Self::Transactions(test) => test.fmt(f),
            Self::Media(MediaMeasure { clients: 1 }) => f.write_str("media"),
            Self::Media(MediaMeasure { clients }) => write!(f, "media {clients} clients"),
        }
    }
}

impl fmt::Display for ThroughputMeasure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.transport.text())?;
        match self.direction {
            TransferDirection::Up => {}
            TransferDirection::Down => f.write_str(" down")?,
            TransferDirection::Both => f.write_str(" both")?,
        }
        if self.streams != 1 {
            write!(f, " {} streams", self.streams)?;
        }
        match (self.rate, self.transport) {
            (Some(rate), _) => write!(f, " {}", rate.exact()),
            (None, TransferTransport::Udp) => f.write_str(" max"),
            (None, TransferTransport::Tcp) => Ok(()),
        }
    }
}

impl fmt::Display for TransactionMeasure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.text())?;
        if self.streams != 1 {
            write!(f, " {} streams", self.streams)?;
        }
        Ok(())
    }
}

impl TransactionKind {
    const ALL: [Self; 3] = [Self::Udp, Self::Tcp, Self::Connection];

    const fn text(self) -> &'static str {
        match self {
            Self::Udp => "udp rr",
            Self::Tcp => "tcp rr",
            Self::Connection => "tcp crr",
        }
    }
}

impl TransferTransport {
    const fn text(self) -> &'static str {
        match self {
            Self::Tcp => "tcp throughput",
            Self::Udp => "udp throughput",
        }
    }
}

impl FromStr for Measure {
    type Err = ParseMeasureError;

    fn from_str(text: &str) -> Result<Self, ParseMeasureError> {
        let fields: Vec<&str> = text.split_whitespace().collect();
        match fields.as_slice() {
            ["messages"] => Ok(Self::Messages),
            ["tcp", "throughput", options @ ..] => {
                throughput(TransferTransport::Tcp, options).map(Self::Throughput)
            }
            ["udp", "throughput", options @ ..] => {
                throughput(TransferTransport::Udp, options).map(Self::Throughput)
            }
            ["media"] => Ok(Self::Media(MediaMeasure { clients: 1 })),
            ["media", count, "client" | "clients"] => {
                let unread = |_| ParseMeasureError::Word {
                    subject: "media",
                    word: (*count).to_owned(),
                };
                let clients = streams(count.parse().map_err(unread)?)?;
                Ok(Self::Media(MediaMeasure { clients }))
            }
            [first, second, options @ ..] => {
                let name_text = format!("{first} {second}");
                let mut kinds = TransactionKind::ALL.into_iter();
                let kind = kinds.find(|kind| kind.text() == name_text);
                let unknown = || ParseMeasureError::Unknown(text.to_owned());
                transactions(kind.ok_or_else(unknown)?, options).map(Self::Transactions)
            }
            _ => Err(ParseMeasureError::Unknown(text.to_owned())),
        }
    }
}

fn transactions(
    kind: TransactionKind,
    fields: &[&str],
) -> Result<TransactionMeasure, ParseMeasureError> {
    let message = kind.text();
    let unread = |word: &str| ParseMeasureError::Word {
        subject: message,
        word: word.to_owned(),
    };
    let streams = match fields {
        [] => 1,
        [count, "stream" | "streams"] => streams(count.parse().map_err(|_| unread(count))?)?,
        [word, ..] => return Err(unread(word)),
    };
    Ok(TransactionMeasure { kind, streams })
}

fn throughput(
    transport: TransferTransport,
    fields: &[&str],
) -> Result<ThroughputMeasure, ParseMeasureError> {
    let mut test = ThroughputMeasure {
        transport,
        direction: TransferDirection::Up,
        streams: 1,
        rate: None,
    };
    let mut is_limited = transport == TransferTransport::Tcp;
    let mut fields = fields.iter().peekable();
    while let Some(word) = fields.next() {
        match *word {
            "up" => test.direction = TransferDirection::Up,
            "down" => test.direction = TransferDirection::Down,
            "both" => test.direction = TransferDirection::Both,
            "max" => is_limited = true,
            number if number.bytes().all(|byte| byte.is_ascii_digit()) => {
                let of_streams = fields.next_if(|next| matches!(**next, "stream" | "streams"));
                let count = of_streams.and_then(|_| number.parse::<u64>().ok());
                let unread = || ParseMeasureError::Word {
                    subject: transport.text(),
                    word: number.to_owned(),
                };
                test.streams = streams(count.ok_or_else(unread)?)?;
            }
            rate if rate.ends_with("bit/s") => {
                let rate: BitRate = rate.parse()?;
                if rate < ThroughputMeasure::MIN_RATE {
                    return Err(ParseMeasureError::BelowMinimumRate(rate));
                }
                test.rate = Some(rate);
                is_limited = true;
            }
            word => {
                return Err(ParseMeasureError::Word {
                    subject: transport.text(),
                    word: word.to_owned(),
                });
            }
        }
    }
    if is_limited {
        Ok(test)
    } else {
        Err(ParseMeasureError::UdpWithoutRate)
    }
}

fn streams(count: u64) -> Result<u16, ParseMeasureError> {
    let fits = u16::try_from(count).ok();
    let fits = fits.filter(|count| (1..=ThroughputMeasure::MAX_STREAMS).contains(count));
    fits.ok_or(ParseMeasureError::Streams(count))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{Just, Strategy, prop_oneof};

    use super::*;

    fn test() -> impl Strategy<Value = ThroughputMeasure> {
        let transport = prop_oneof![Just(TransferTransport::Tcp), Just(TransferTransport::Udp)];
        let direction = prop_oneof![
            Just(TransferDirection::Up),
            Just(TransferDirection::Down),
            Just(TransferDirection::Both)
        ];
        let rate = proptest::option::of((1_000_u64..=1_000_000_000_000).prop_map(BitRate));
        (transport, direction, 1_u16..=64, rate).prop_map(
            |(transport, direction, streams, rate)| ThroughputMeasure {
                transport,
                direction,
                streams,
                rate,
            },
        )
    }

    proptest::proptest! {
        #[test]
        fn measures_roundtrip_through_text(test in test()) {
            let measure = Measure::Throughput(test);
            proptest::prop_assert_eq!(measure.to_string().parse(), Ok(measure));
        }

        #[test]
        fn arbitrary_text_never_panics(text in ".*") {
            let _ = text.parse::<Measure>();
        }
    }

    #[test]
    fn words_may_be_in_any_order() {
        let read = |text: &str| text.parse::<Measure>().expect(text).to_string();
        assert_eq!(read("messages"), "messages");
        assert_eq!(read("udp rr"), "udp rr");
        assert_eq!(read("media 1 client"), "media");
        assert_eq!(read("media 9 clients"), "media 9 clients");
        assert_eq!(read("tcp crr 4 streams"), "tcp crr 4 streams");
        assert_eq!(read("tcp throughput up"), "tcp throughput");
        assert_eq!(
            read("udp throughput 5Mbit/s 1 stream both"),
            "udp throughput both 5Mbit/s"
        );
        assert_eq!(
            read("tcp  throughput 4 streams down"),
            "tcp throughput down 4 streams"
        );
    }

    #[test]
    fn mistakes_are_reported_with_the_word() {
        for (text, part) in [
            ("ping", "'ping' names nothing"),
            ("tcp", "'tcp' names nothing"),
            ("media 9", "'media 9' names nothing"),
            ("tcp rrr", "'tcp rrr' names nothing"),
            ("udp rr 5Mbit/s", "'5Mbit/s'"),
            ("tcp throughput sideways", "'sideways'"),
            ("tcp throughput 4", "'4'"),
            ("tcp throughput 65 streams", "65 streams"),
            ("tcp throughput 0 streams", "0 streams"),
            ("tcp throughput 10bit/s", "least rate"),
            ("udp throughput", "or max"),
            ("udp throughput 1.5Mbit/s", "no rate"),
        ] {
            let found = text.parse::<Measure>().expect_err(text).to_string();
            assert!(found.contains(part), "{found}");
        }
    }
}
