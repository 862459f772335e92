//! The text format of Prometheus: metrics with their heads, and histograms of which few have labels of
//! their own.

use std::collections::BTreeMap;
use std::fmt::Display;

use crate::histogram::{BOUNDS, Histogram, seconds};
use crate::metric::{Kind, Metric, Value};

/// What stands in the labels of those that have none of their own.
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

/// A page of metrics.
#[derive(Clone, Debug, Default)]
pub struct Page(String);

impl Page {
    /// What comes next: a metric's name, kind and meaning, in a sentence.
    pub fn head(&mut self, name: &str, kind: Kind, what: &str) {
        let kind = kind.word();
        self.0
            .push_str(&format!("# HELP {name} {what}\n# TYPE {name} {kind}\n"));
    }

    /// A value; each label is a name and its value.
    pub fn value(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        if labels.is_empty() {
            self.0.push_str(&format!("{name} {value}\n"));
            return;
        }
        let labels = written(labels);
        self.0.push_str(&format!("{name}{{{labels}}} {value}\n"));
    }

    /// A metric with its head and its samples; nothing where it has no sample.
    pub fn metric(&mut self, metric: &Metric) {
        if metric.samples.is_empty() {
            return;
        }
        let name = metric.definition.name;
        self.head(name, metric.definition.kind, metric.definition.help);
        for sample in &metric.samples {
            let labels: Vec<_> = metric.labelled(sample).collect();
            match &sample.value {
                Value::Histogram(histogram) => histogram.write(self, name, &labels),
                plain => self.value(name, &labels, plain.text().unwrap_or_default()),
            }
        }
    }

    /// All metrics.
    pub fn of(metrics: &[Metric]) -> Self {
        let mut page = Self::default();
        for metric in metrics {
            page.metric(metric);
        }
        page
    }

    /// The page as text.
    pub fn into_text(self) -> String {
        self.0
    }
}

fn written(labels: &[(&str, &str)]) -> String {
    let each = labels
        .iter()
        .map(|(name, value)| format!("{name}=\"{}\"", escaped(value)));
    each.collect::<Vec<_>>().join(",")
}

/// Histograms of times, each with labels. Whose they are (`O`) is bounded; the rest share one for each
/// of the labels that remain (`L`).
#[derive(Debug)]
pub struct Histograms<O, L> {
    all: BTreeMap<(Option<O>, L), Histogram>,
    own: usize,
    most: usize,
}

impl<O: Ord + Clone, L: Ord + Clone> Histograms<O, L> {
    /// At most so many have their own labels.
    pub const fn new(most: usize) -> Self {
        Self {
            all: BTreeMap::new(),
            own: 0,
            most,
        }
    }

    /// Adds a time, nanoseconds, that stands for `weight` of them.
    pub fn add(&mut self, owner: O, labels: L, nanos: u64, weight: u64) {
        self.of(owner, labels).add(nanos, weight);
    }

    /// The histogram with these labels, or that of the rest where there are too many.
    fn of(&mut self, owner: O, labels: L) -> &mut Histogram {
        let own = (Some(owner), labels);
        let is_known = self.all.contains_key(&own);
        let is_room = self.own < self.most;
        self.own += usize::from(!is_known && is_room);
        let key = if is_known || is_room {
            own
        } else {
            (None, own.1)
        };
        self.all.entry(key).or_default()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Writes them under one name. `labels` names those of an owner, which are `other` for the rest, and
    /// those that remain.
    pub fn write(
        &self,
        page: &mut Page,
        (name, what): (&str, &str),
        labels: impl Fn(Option<&O>, &L) -> Vec<(&'static str, Option<String>)>,
    ) {
        page.head(name, Kind::Histogram, what);
        for ((owner, rest), histogram) in &self.all {
            let all = labels(owner.as_ref(), rest);
            let labels: Vec<(&str, &str)> = all
                .iter()
                .map(|(name, value)| (*name, value.as_deref().unwrap_or(OTHERS)))
                .collect();
            histogram.write(page, name, &labels);
        }
    }
}

impl Histogram {
    fn write(&self, page: &mut Page, name: &str, labels: &[(&str, &str)]) {
        let bucket = format!("{name}_bucket");
        let mut up_to = 0;
        let mut bounded = |bound: &str, count: u64| {
            let all: Vec<(&str, &str)> = labels.iter().copied().chain([("le", bound)]).collect();
            page.value(&bucket, &all, count);
        };
        for (bound, count) in BOUNDS.iter().zip(self.buckets) {
            up_to += count;
            bounded(&seconds((*bound).into()), up_to);
        }
        bounded("+Inf", self.n);
        page.value(&format!("{name}_sum"), labels, seconds(self.nanos));
        page.value(&format!("{name}_count"), labels, self.n);
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

    fn written(all: &Histograms<u32, &'static str>) -> String {
        let mut page = Page::default();
        all.write(&mut page, (NAME, "Times."), |owner, what| {
            vec![
                ("of", owner.map(u32::to_string)),
                ("what", Some((*what).to_owned())),
            ]
        });
        page.into_text()
    }

    #[test]
    fn a_time_is_in_each_bucket_that_is_not_below_it() {
        let mut all = Histograms::new(10);
        for nanos in [10_000, 10_001, 99_000_000_000] {
            all.add(1, "path", nanos, 1);
        }
        let page = written(&all);
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
    fn owners_beyond_the_bound_share_a_histogram() {
        let mut all = Histograms::new(40);
        for owner in 0..100 {
            all.add(owner, "path", 1, 1);
        }
        all.add(7, "path", 1, 1);
        assert_eq!(all.len(), 41);
        assert_eq!(all.of(7, "path").n, 2);
        assert_eq!(all.of(99, "path").n, 60);
        assert!(written(&all).contains("_count{of=\"other\",what=\"path\"} 60\n"));
    }

    #[test]
    fn what_stands_in_a_label_cannot_end_it() {
        let mut page = Page::default();
        page.head("x", Kind::Gauge, "What.");
        page.value("x", &[("rule", "path > \"2ms\"\n\\")], 1);
        let expected = "# HELP x What.\n# TYPE x gauge\nx{rule=\"path > \\\"2ms\\\"\\n\\\\\"} 1\n";
        assert_eq!(page.into_text(), expected);
    }
}
