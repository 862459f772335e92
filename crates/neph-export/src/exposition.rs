//! A page of metrics for Prometheus, a limited number of labelled histograms, and the text format.
//! The other format is in `protobuf`.

use std::collections::BTreeMap;
use std::fmt::Display;

use crate::histogram::{BOUNDS, Histogram, format_seconds};
use crate::metric::{Kind, Metric, Value};

/// The label value of histograms beyond the limit.
const OTHERS: &str = "other";

impl Kind {
    const fn word(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// A snapshot of metrics, to be written in either format of Prometheus.
#[derive(Clone, Debug, Default)]
pub struct Page(Vec<Family>);

/// A metric of a page.
#[derive(Clone, Debug)]
pub(crate) struct Family {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) help: String,
    pub(crate) points: Vec<Point>,
}

/// A value of a page with its labels: pairs of name and value.
#[derive(Clone, Debug)]
pub(crate) struct Point {
    pub(crate) labels: Vec<(String, String)>,
    pub(crate) reading: Reading,
}

/// The value of a point.
#[derive(Clone, Debug)]
pub(crate) enum Reading {
    /// A number as text, without loss.
    Plain(String),
    Histogram(Box<Histogram>),
}

impl Page {
    /// Starts a metric: its name, type and description (one sentence).
    pub fn head(&mut self, name: &str, kind: Kind, help: &str) {
        self.0.push(Family {
            name: name.to_owned(),
            kind,
            help: help.to_owned(),
            points: Vec::new(),
        });
    }

    /// Adds a value to the last metric, with labels as pairs of name and value.
    pub fn value(&mut self, labels: &[(&str, &str)], value: impl Display) {
        self.point(labels, Reading::Plain(value.to_string()));
    }

    fn point(&mut self, labels: &[(&str, &str)], reading: Reading) {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let labels = labels.iter().map(owned).collect();
        if let Some(family) = self.0.last_mut() {
            family.points.push(Point { labels, reading });
        }
    }

    /// Adds a metric with its samples; nothing if it has none.
    pub fn metric(&mut self, metric: &Metric) {
        if metric.samples.is_empty() {
            return;
        }
        let definition = metric.definition;
        self.head(definition.name, definition.kind, definition.help);
        for sample in &metric.samples {
            let labels: Vec<_> = metric.nonempty_labels(sample).collect();
            let reading = match &sample.value {
                Value::Histogram(histogram) => Reading::Histogram(histogram.clone()),
                plain => Reading::Plain(plain.text().unwrap_or_default()),
            };
            self.point(&labels, reading);
        }
    }

    /// A page of these metrics.
    pub fn of(metrics: &[Metric]) -> Self {
        let mut page = Self::default();
        for metric in metrics {
            page.metric(metric);
        }
        page
    }

    /// The metrics.
    pub(crate) fn families(&self) -> &[Family] {
        &self.0
    }

    /// The page in the text format, version 0.0.4.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for family in &self.0 {
            let (name, kind, help) = (&family.name, family.kind.word(), &family.help);
            text.push_str(&format!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
            for point in &family.points {
                match &point.reading {
                    Reading::Plain(value) => line(&mut text, name, &point.labels, None, value),
                    Reading::Histogram(histogram) => {
                        histogram.write(&mut text, name, &point.labels);
                    }
                }
            }
        }
        text
    }
}

/// A line of the text format; `bound` is the upper bound of a bucket.
fn line(
    text: &mut String,
    name: &str,
    labels: &[(String, String)],
    bound: Option<&str>,
    value: &str,
) {
    let pairs = labels
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()));
    let pairs = pairs.chain(bound.map(|bound| ("le", bound)));
    let pairs: Vec<String> = pairs
        .map(|(name, value)| format!("{name}=\"{}\"", escaped(value)))
        .collect();
    if pairs.is_empty() {
        text.push_str(&format!("{name} {value}\n"));
    } else {
        text.push_str(&format!("{name}{{{}}} {value}\n", pairs.join(",")));
    }
}

/// Labelled histograms of times. The number of histograms with owner labels (`O`) is limited;
/// beyond it, times are added to one histogram for each of the other labels (`L`).
#[derive(Debug)]
pub struct Histograms<O, L> {
    by_labels: BTreeMap<(Option<O>, L), Histogram>,
    owner_count: usize,
    max_owners: usize,
}

impl<O: Ord + Clone, L: Ord + Clone> Histograms<O, L> {
    /// At most `max_owners` histograms with owner labels.
    pub const fn new(max_owners: usize) -> Self {
        Self {
            by_labels: BTreeMap::new(),
            owner_count: 0,
            max_owners,
        }
    }

    /// Adds a time in nanoseconds, `weight` times.
    pub fn add(&mut self, owner: O, labels: L, nanos: u64, weight: u64) {
        self.entry(owner, labels).add(nanos, weight);
    }

    /// The histogram with these labels, or the shared one beyond the limit.
    fn entry(&mut self, owner: O, labels: L) -> &mut Histogram {
        let key = (Some(owner), labels);
        let is_known = self.by_labels.contains_key(&key);
        let has_room = self.owner_count < self.max_owners;
        self.owner_count += usize::from(!is_known && has_room);
        let key = if is_known || has_room {
            key
        } else {
            (None, key.1)
        };
        self.by_labels.entry(key).or_default()
    }

    /// Number of histograms.
    pub fn len(&self) -> usize {
        self.by_labels.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.by_labels.is_empty()
    }

    /// Writes all histograms as one metric. `labels` returns names and values of the owner's and of
    /// the other labels; a missing value becomes `other`.
    pub fn write(
        &self,
        page: &mut Page,
        (name, help): (&str, &str),
        labels: impl Fn(Option<&O>, &L) -> Vec<(&'static str, Option<String>)>,
    ) {
        page.head(name, Kind::Histogram, help);
        for ((owner, other_labels), histogram) in &self.by_labels {
            let label_pairs = labels(owner.as_ref(), other_labels);
            let labels: Vec<(&str, &str)> = label_pairs
                .iter()
                .map(|(name, value)| (*name, value.as_deref().unwrap_or(OTHERS)))
                .collect();
            page.point(&labels, Reading::Histogram(Box::new(histogram.clone())));
        }
    }
}

impl Histogram {
    fn write(&self, text: &mut String, name: &str, labels: &[(String, String)]) {
        let bucket = format!("{name}_bucket");
        let mut cumulative_count = 0;
        for (bound, count) in BOUNDS.iter().zip(self.buckets) {
            cumulative_count += count;
            let bound = format_seconds((*bound).into());
            line(
                text,
                &bucket,
                labels,
                Some(&bound),
                &cumulative_count.to_string(),
            );
        }
        line(text, &bucket, labels, Some("+Inf"), &self.n.to_string());
        line(
            text,
            &format!("{name}_sum"),
            labels,
            None,
            &format_seconds(self.nanos),
        );
        line(
            text,
            &format!("{name}_count"),
            labels,
            None,
            &self.n.to_string(),
        );
    }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: &str = "t_seconds";

    fn written(histograms: &Histograms<u32, &'static str>) -> String {
        let mut page = Page::default();
        histograms.write(&mut page, (NAME, "Times."), |owner, kind| {
            vec![
                ("of", owner.map(u32::to_string)),
                ("what", Some((*kind).to_owned())),
            ]
        });
        page.text()
    }

    #[test]
    fn a_value_counts_in_each_bucket_with_an_upper_bound_at_or_above_it() {
        let mut histograms = Histograms::new(10);
        for nanos in [10_000, 10_001, 99_000_000_000] {
            histograms.add(1, "path", nanos, 1);
        }
        let page = written(&histograms);
        let labels = "of=\"1\",what=\"path\"";
        for (line, value) in [
            (format!("_bucket{{{labels},le=\"0.00001\"}}"), "1"),
            (format!("_bucket{{{labels},le=\"0.000025\"}}"), "2"),
            (format!("_bucket{{{labels},le=\"10\"}}"), "2"),
            (format!("_bucket{{{labels},le=\"+Inf\"}}"), "3"),
            (format!("_sum{{{labels}}}"), "99.000020001"),
            (format!("_count{{{labels}}}"), "3"),
        ] {
            let line = format!("{NAME}{line} {value}\n");
            assert!(page.contains(&line), "{line}{page}");
        }
    }

    #[test]
    fn owners_beyond_the_maximum_share_a_histogram() {
        let mut histograms = Histograms::new(40);
        for owner in 0..100 {
            histograms.add(owner, "path", 1, 1);
        }
        histograms.add(7, "path", 1, 1);
        assert_eq!(histograms.len(), 41);
        assert_eq!(histograms.entry(7, "path").n, 2);
        assert_eq!(histograms.entry(99, "path").n, 60);
        assert!(written(&histograms).contains("_count{of=\"other\",what=\"path\"} 60\n"));
    }

    #[test]
    fn label_values_are_escaped() {
        let mut page = Page::default();
        page.head("x", Kind::Gauge, "What.");
        page.value(&[("rule", "path > \"2ms\"\n\\")], 1);
        let expected = "# HELP x What.\n# TYPE x gauge\nx{rule=\"path > \\\"2ms\\\"\\n\\\\\"} 1\n";
        assert_eq!(page.text(), expected);
    }
}
