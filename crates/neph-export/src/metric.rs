//! Metrics as values: definition, unit and samples. All exporters render the same values.
//!
//! Owns the definitions and the numbers. Does not own the text format (`page`) and the push format
//! (`otlp`).

use neph_model::Span;

use crate::histogram::{Histogram, format_seconds};

/// The type of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A value that only grows.
    Counter,
    /// The current value.
    Gauge,
    /// A distribution.
    Histogram,
}

/// The unit of a metric's values. The name of the metric ends with it, as in Prometheus.
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
    /// The suffix of a metric's name; empty for a count.
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Seconds => "_seconds",
            Self::Bytes => "_bytes",
        }
    }

    /// The UCUM unit for OpenTelemetry; empty for a count.
    pub const fn ucum(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Seconds => "s",
            Self::Bytes => "By",
        }
    }
}

/// The definition of a metric. The number of its label values is bounded by the configuration
/// (agents, sites, endpoints, kinds, reasons); no label names a flow.
#[derive(Debug, PartialEq, Eq)]
pub struct Definition {
    /// By the conventions of Prometheus: with the unit, and `_total` for a counter.
    pub name: &'static str,
    /// Its description, one sentence.
    pub help: &'static str,
    /// The unit of its values.
    pub unit: Unit,
    /// The type.
    pub kind: Kind,
    /// The label names, in the order of a sample's values.
    pub label_names: &'static [&'static str],
}

/// A value of a metric.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A count, or bytes.
    Count(u64),
    /// A time, exported in seconds.
    Time(Span),
    /// A finite number in the unit of the name or a label.
    Number(f64),
    /// A distribution of times.
    Histogram(Box<Histogram>),
}

impl Value {
    /// As text, without loss; `None` for a histogram.
    pub(crate) fn text(&self) -> Option<String> {
        match self {
            Self::Count(count) => Some(count.to_string()),
            Self::Time(time) => {
                let nanos = time.nanos();
                let sign = if nanos < 0 { "-" } else { "" };
                Some(format!(
                    "{sign}{}",
                    format_seconds(nanos.unsigned_abs().into())
                ))
            }
            Self::Number(number) => Some(number.to_string()),
            Self::Histogram(_) => None,
        }
    }
}

/// A value with its labels.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// One value for each label of the definition. Empty ones are omitted.
    pub label_values: Vec<String>,
    /// The value.
    pub value: Value,
}

/// A metric with its samples.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// The definition.
    pub definition: &'static Definition,
    /// The samples, no two with the same labels.
    pub samples: Vec<Sample>,
}

impl Metric {
    /// A metric without samples.
    pub const fn new(definition: &'static Definition) -> Self {
        Self {
            definition,
            samples: Vec::new(),
        }
    }

    /// Adds a sample.
    pub fn add(&mut self, label_values: &[&str], value: Value) {
        debug_assert_eq!(
            label_values.len(),
            self.definition.label_names.len(),
            "{label_values:?}"
        );
        let label_values = label_values.iter().map(|label| (*label).to_owned());
        let label_values = label_values.collect();
        self.samples.push(Sample {
            label_values,
            value,
        });
    }

    /// A metric with one value.
    pub fn of(definition: &'static Definition, label_values: &[&str], value: Value) -> Self {
        let mut metric = Self::new(definition);
        metric.add(label_values, value);
        metric
    }

    /// The labels of a sample that are not empty.
    pub(crate) fn nonempty_labels<'a>(
        &'a self,
        sample: &'a Sample,
    ) -> impl Iterator<Item = (&'static str, &'a str)> {
        let names = self.definition.label_names.iter().copied();
        let labels = names.zip(sample.label_values.iter().map(String::as_str));
        labels.filter(|(_, value)| !value.is_empty())
    }
}

/// Provides metrics to exporters. An exporter calls it on its own thread at any time. It must not
/// delay the measurement: it reads a copy, or holds a lock only while it copies.
pub trait MetricSource: Send + Sync {
    /// The current metrics.
    fn snapshot(&self) -> Vec<Metric>;
}
