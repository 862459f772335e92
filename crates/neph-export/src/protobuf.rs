//! The protobuf format of Prometheus: length-prefixed `io.prometheus.client.MetricFamily` messages
//! (metrics.proto of `prometheus/client_model`). Only this format has native histograms.
//!
//! Owns the encoding of the few needed fields, written by hand: a code generator would be larger.

use crate::exposition::{Family, Page, Point, Reading};
use crate::histogram::{BOUNDS, Histogram, SCHEMA, ZERO};
use crate::metric::Kind;

/// The content type.
pub(crate) const TYPE: &str =
    "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited";

/// The encoded page.
pub(crate) fn written(page: &Page) -> Vec<u8> {
    let mut document = Message::default();
    for family in page.families() {
        let message = of_family(family);
        document.varint(message.0.len() as u64);
        document.0.extend_from_slice(&message.0);
    }
    document.0
}

/// A message: fields by number.
#[derive(Debug, Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            #[expect(clippy::cast_possible_truncation, reason = "seven bits")]
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        #[expect(clippy::cast_possible_truncation, reason = "below 128")]
        self.0.push(value as u8);
    }

    fn number(mut self, field: u64, value: u64) -> Self {
        self.varint(field << 3);
        self.varint(value);
        self
    }

    /// A signed number, zigzag-encoded.
    fn signed(self, field: u64, value: i64) -> Self {
        self.number(field, zigzag(value))
    }

    fn double(mut self, field: u64, value: f64) -> Self {
        self.varint(field << 3 | 1);
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    fn bytes(mut self, field: u64, value: &[u8]) -> Self {
        self.varint(field << 3 | 2);
        self.varint(value.len() as u64);
        self.0.extend_from_slice(value);
        self
    }
}

const fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)).cast_unsigned()
}

fn of_family(family: &Family) -> Message {
    let kind = match family.kind {
        Kind::Counter => 0,
        Kind::Gauge => 1,
        Kind::Histogram => 4,
    };
    let head = Message::default()
        .bytes(1, family.name.as_bytes())
        .bytes(2, family.help.as_bytes())
        .number(3, kind);
    let points = family.points.iter();
    points.fold(head, |message, point| {
        message.bytes(4, &of_point(point, family.kind).0)
    })
}

fn of_point(point: &Point, kind: Kind) -> Message {
    let labels = point.labels.iter();
    let message = labels.fold(Message::default(), |message, (name, value)| {
        let pair = Message::default()
            .bytes(1, name.as_bytes())
            .bytes(2, value.as_bytes());
        message.bytes(1, &pair.0)
    });
    match &point.reading {
        Reading::Histogram(histogram) => message.bytes(7, &of_histogram(histogram).0),
        Reading::Plain(text) => {
            let value = Message::default().double(1, text.parse().unwrap_or(f64::NAN));
            let field = if kind == Kind::Counter { 3 } else { 2 };
            message.bytes(field, &value.0)
        }
    }
}

/// A histogram with classic and native buckets.
#[expect(clippy::cast_precision_loss, reason = "seconds as doubles")]
fn of_histogram(histogram: &Histogram) -> Message {
    let mut message = Message::default()
        .number(1, histogram.n)
        .double(2, histogram.nanos as f64 / 1e9);
    let mut cumulative_count = 0;
    for (bound, count) in BOUNDS.iter().zip(histogram.buckets) {
        cumulative_count += count;
        let bucket = Message::default()
            .number(1, cumulative_count)
            .double(2, *bound as f64 / 1e9);
        message = message.bytes(3, &bucket.0);
    }
    let encoded = Message::default()
        .number(1, histogram.n)
        .double(2, f64::INFINITY);
    let message = message
        .bytes(3, &encoded.0)
        .signed(5, SCHEMA.into())
        .double(6, ZERO)
        .number(7, histogram.zero);
    native(message, histogram)
}

/// Adds the native buckets: spans of consecutive buckets, each with the number of empty buckets
/// before it, and the difference of each bucket's count to the one before.
fn native(mut message: Message, histogram: &Histogram) -> Message {
    let buckets: Vec<(i32, u64)> = histogram.native.iter().map(|(at, n)| (*at, *n)).collect();
    let mut after = 0;
    for run in buckets.chunk_by(|(bucket, _), (next, _)| bucket + 1 == *next) {
        let first = run.first().map_or(0, |(bucket, _)| *bucket);
        let span = Message::default()
            .signed(1, i64::from(first) - i64::from(after))
            .number(2, run.len() as u64);
        message = message.bytes(12, &span.0);
        after = run.last().map_or(0, |(bucket, _)| bucket + 1);
    }
    let mut deltas = Message::default();
    let mut before = 0;
    for (_, count) in buckets {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        deltas.varint(zigzag(count - before));
        before = count;
    }
    // Without any bucket, an empty span marks the histogram as native.
    if histogram.native.is_empty() {
        let span = Message::default().signed(1, 0).number(2, 0);
        return message.bytes(12, &span.0);
    }
    message.bytes(13, &deltas.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_are_encoded_as_protobuf_specifies() {
        let message = Message::default().number(1, 300).signed(5, -3);
        assert_eq!(message.0, [0x08, 0xac, 0x02, 0x28, 0x05]);
        let message = Message::default().bytes(2, b"ab").double(6, 1.0);
        assert_eq!(
            message.0,
            [0x12, 2, b'a', b'b', 0x31, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f]
        );
    }

    #[test]
    fn native_buckets_are_encoded_as_spans_and_deltas() {
        let mut histogram = Histogram::default();
        // Bucket 0 has one time, bucket 1 three, bucket 16 two.
        for (nanos, weight) in [(1_000_000_000, 1), (1_050_000_000, 3), (4_000_000_000, 2)] {
            histogram.add(nanos, weight);
        }
        let message = native(Message::default(), &histogram);
        let spans = [0x62, 4, 0x08, 0, 0x10, 2, 0x62, 4, 0x08, 28, 0x10, 1];
        let deltas = [0x6a, 3, 2, 4, 1];
        assert_eq!(message.0, [&spans[..], &deltas[..]].concat());
    }

    #[test]
    fn each_metric_is_preceded_by_its_length() {
        let mut page = Page::default();
        page.head("x", Kind::Gauge, "y");
        page.value(&[("a", "b")], 2);
        let bytes = written(&page);
        assert_eq!(usize::from(bytes[0]), bytes.len() - 1);
        let label = [0x0a, 6, 0x0a, 1, b'a', 0x12, 1, b'b'];
        assert!(
            bytes.windows(label.len()).any(|part| part == label),
            "{bytes:?}"
        );
    }
}
