//! Metrics as values: what each means, in which unit, and its samples. Each exporter renders the same values.
//!
//! Owns the words and the numbers. How a text or a push looks is for `page` and `otlp`.

use neph_model::Span;

use crate::histogram::{Histogram, seconds};

/// What kind of metric it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It only grows.
    Counter,
    /// It is what it is now.
    Gauge,
    /// Counts by bounds.
    Histogram,
}

/// What its values are in. The name of a metric ends with it, as Prometheus has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A count, or 0 and 1.
    None,
    /// Seconds.
    Seconds,
    /// Bytes.
    Bytes,
}

impl Unit {
    /// The end of a metric's name; empty for a count.
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Seconds => "_seconds",
            Self::Bytes => "_bytes",
        }
    }

    /// The unit by UCUM, as OpenTelemetry writes it; empty for a count.
    pub const fn ucum(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Seconds => "s",
            Self::Bytes => "By",
        }
    }
}

/// What a metric means. Its labels are bounded by what is configured (agents, sites, endpoints, kinds, reasons),
/// and never name a flow.
#[derive(Debug, PartialEq, Eq)]
pub struct Definition {
    /// By the conventions of Prometheus: unit in the name, `_total` for a counter.
    pub name: &'static str,
    /// One sentence.
    pub help: &'static str,
    /// What its values are in.
    pub unit: Unit,
    /// What kind it is.
    pub kind: Kind,
    /// The names of its labels, in the order of a sample's.
    pub labels: &'static [&'static str],
}

/// A value of a metric.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A count, or bytes.
    Count(u64),
    /// A time, exported in seconds.
    Time(Span),
    /// A number in the unit that the name or a label has. Finite.
    Number(f64),
    /// Times counted by bounds.
    Histogram(Box<Histogram>),
}

impl Value {
    /// As text, without loss; `None` of a histogram.
    pub(crate) fn text(&self) -> Option<String> {
        match self {
            Self::Count(count) => Some(count.to_string()),
            Self::Time(time) => {
                let nanos = time.nanos();
                let sign = if nanos < 0 { "-" } else { "" };
                Some(format!("{sign}{}", seconds(nanos.unsigned_abs().into())))
            }
            Self::Number(number) => Some(number.to_string()),
            Self::Histogram(_) => None,
        }
    }
}

/// A value with its labels.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// The values of the labels, as many as the definition names. An empty one is left out.
    pub labels: Vec<String>,
    /// The value.
    pub value: Value,
}

/// A metric with its samples.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// What it means.
    pub definition: &'static Definition,
    /// Its samples, no two with the same labels.
    pub samples: Vec<Sample>,
}

impl Metric {
    /// Without a sample.
    pub const fn new(definition: &'static Definition) -> Self {
        Self {
            definition,
            samples: Vec::new(),
        }
    }

    /// With this sample too.
    pub fn add(&mut self, labels: &[&str], value: Value) {
        debug_assert_eq!(labels.len(), self.definition.labels.len(), "{labels:?}");
        let labels = labels.iter().map(|label| (*label).to_owned()).collect();
        self.samples.push(Sample { labels, value });
    }

    /// A metric with one value.
    pub fn of(definition: &'static Definition, labels: &[&str], value: Value) -> Self {
        let mut metric = Self::new(definition);
        metric.add(labels, value);
        metric
    }

    /// The labels of a sample that have a value.
    pub(crate) fn labelled<'a>(
        &'a self,
        sample: &'a Sample,
    ) -> impl Iterator<Item = (&'static str, &'a str)> {
        let names = self.definition.labels.iter().copied();
        let labels = names.zip(sample.labels.iter().map(String::as_str));
        labels.filter(|(_, value)| !value.is_empty())
    }
}

/// What is exported. It is asked on a thread of the exporter's, at any time, and must not hold up who measures:
/// it reads a copy, or holds a lock no longer than a copy takes.
pub trait Exported: Send + Sync {
    /// All metrics as they are now.
    fn snapshot(&self) -> Vec<Metric>;
}
