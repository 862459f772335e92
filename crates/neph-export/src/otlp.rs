//! Metrics as an OTLP request: the JSON encoding of opentelemetry-proto's
//! `ExportMetricsServiceRequest`.
//!
//! In that encoding, 64-bit integers are decimal strings and enumerations are numbers.

use neph_model::{Span, Wall};
use serde_json::{Value as Json, json};

use crate::histogram::{BOUNDS, Histogram};
use crate::metric::{Kind, Metric, Sample, Value};

/// `AGGREGATION_TEMPORALITY_CUMULATIVE`: each push counts from the start, so a lost push loses no
/// data.
const CUMULATIVE: u8 = 2;

/// The exporting program.
#[derive(Clone, Copy, Debug)]
pub struct Resource {
    /// The command: `neph agent`.
    pub service: &'static str,
    /// The version of the program.
    pub version: &'static str,
}

/// The time range of a push.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Period {
    /// When counting started.
    pub(crate) from: Wall,
    /// Now.
    pub(crate) until: Wall,
}

/// The request with these metrics, without those that have no sample.
pub(crate) fn request(resource: Resource, metrics: &[Metric], period: Period) -> Json {
    let metrics = metrics.iter().filter(|metric| !metric.samples.is_empty());
    let metrics: Vec<Json> = metrics.map(|metric| written(metric, period)).collect();
    let Resource { service, version } = resource;
    json!({
        "resourceMetrics": [{
            "resource": {"attributes": [
                attribute("service.name", service),
                attribute("service.version", version),
            ]},
            "scopeMetrics": [{
                "scope": {"name": "nephoscope", "version": version},
                "metrics": metrics,
            }],
        }],
    })
}

fn attribute(key: &str, value: &str) -> Json {
    json!({"key": key, "value": {"stringValue": value}})
}

fn written(metric: &Metric, period: Period) -> Json {
    let definition = metric.definition;
    let point = |sample: &Sample| point(metric, sample, period);
    let points: Vec<Json> = metric.samples.iter().map(point).collect();
    let (field, data) = match definition.kind {
        Kind::Gauge => ("gauge", json!({"dataPoints": points})),
        Kind::Counter => (
            "sum",
            json!({
                "dataPoints": points,
                "aggregationTemporality": CUMULATIVE,
                "isMonotonic": true,
            }),
        ),
        Kind::Histogram => (
            "histogram",
            json!({"dataPoints": points, "aggregationTemporality": CUMULATIVE}),
        ),
    };
    json!({
        "name": definition.name,
        "description": definition.help,
        "unit": definition.unit.ucum(),
        field: data,
    })
}

fn point(metric: &Metric, sample: &Sample, period: Period) -> Json {
    let attributes = metric
        .nonempty_labels(sample)
        .map(|(name, value)| attribute(name, value));
    let mut point = json!({
        "attributes": attributes.collect::<Vec<_>>(),
        "timeUnixNano": nanos(period.until),
    });
    if metric.definition.kind != Kind::Gauge {
        point["startTimeUnixNano"] = nanos(period.from).into();
    }
    match &sample.value {
        // OTLP has signed 64-bit integers.
        Value::Count(count) => {
            point["asInt"] = i64::try_from(*count).unwrap_or(i64::MAX).to_string().into();
        }
        Value::Time(time) => point["asDouble"] = seconds(*time).into(),
        Value::Number(number) => point["asDouble"] = (*number).into(),
        Value::Histogram(histogram) => distribution(&mut point, histogram),
    }
    point
}

fn distribution(point: &mut Json, histogram: &Histogram) {
    let bounded_count: u64 = histogram.buckets.iter().sum();
    // The last bucket counts the times above all bounds.
    let overflow_count = histogram.n.saturating_sub(bounded_count);
    let counts = histogram.buckets.iter().copied().chain([overflow_count]);
    let counts: Vec<String> = counts.map(|count| count.to_string()).collect();
    let bounds =
        BOUNDS.map(|bound| seconds(Span::from_nanos(bound.try_into().unwrap_or(i64::MAX))));
    let sum = i64::try_from(histogram.nanos).unwrap_or(i64::MAX);
    point["count"] = histogram.n.to_string().into();
    point["sum"] = seconds(Span::from_nanos(sum)).into();
    point["bucketCounts"] = counts.into();
    point["explicitBounds"] = bounds.to_vec().into();
}

fn nanos(at: Wall) -> String {
    at.unix_nanos().max(0).to_string()
}

#[expect(clippy::cast_precision_loss, reason = "JSON has doubles here")]
fn seconds(time: Span) -> f64 {
    time.nanos() as f64 / 1e9
}

/// The message about a partially accepted request; `None` if all was accepted.
pub(crate) fn rejection(answer: &str) -> Option<String> {
    let answer: Json = serde_json::from_str(answer).ok()?;
    let partial = answer.get("partialSuccess")?;
    let count = partial.get("rejectedDataPoints")?;
    let count = count
        .as_str()
        .and_then(|text| text.parse().ok())
        .or_else(|| count.as_u64())?;
    let reason = partial.get("errorMessage").and_then(Json::as_str);
    (count > 0).then(|| {
        format!(
            "it rejected {count} data points: {:?}",
            reason.unwrap_or("no reason")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::{Definition, Unit};

    const TRIPS: Definition = Definition {
        name: "t_seconds",
        help: "Times.",
        unit: Unit::Seconds,
        kind: Kind::Histogram,
        label_names: &["site", "kind"],
    };
    const SPENT: Definition = Definition {
        name: "t_bytes_total",
        help: "Bytes.",
        unit: Unit::Bytes,
        kind: Kind::Counter,
        label_names: &[],
    };
    const OFFSET: Definition = Definition {
        name: "t_offset_seconds",
        help: "Offset.",
        unit: Unit::Seconds,
        kind: Kind::Gauge,
        label_names: &["agent"],
    };

    fn wall(nanos: i64) -> Wall {
        Wall::from_unix_nanos(nanos)
    }

    fn metrics() -> Vec<Metric> {
        let mut histogram = Histogram::default();
        for nanos in [10_000, 10_001, 99_000_000_000] {
            histogram.add(nanos, 1);
        }
        vec![
            Metric::of(&TRIPS, &["ams", ""], Value::Histogram(Box::new(histogram))),
            Metric::of(&SPENT, &[], Value::Count(u64::MAX)),
            Metric::of(&OFFSET, &["ams"], Value::Time(Span::from_micros(-1500))),
            Metric::new(&OFFSET),
        ]
    }

    #[test]
    fn a_request_has_the_fields_of_the_specification() {
        let resource = Resource {
            service: "neph test",
            version: "1",
        };
        let (from, until) = (
            wall(1_000_000_000_000_000_000),
            wall(1_000_000_015_000_000_000),
        );
        let request = request(resource, &metrics(), Period { from, until });
        let resource_metrics = &request["resourceMetrics"][0];
        assert_eq!(
            resource_metrics["resource"]["attributes"][0],
            json!({"key": "service.name", "value": {"stringValue": "neph test"}})
        );
        let metrics = &resource_metrics["scopeMetrics"][0]["metrics"];
        assert_eq!(
            metrics.as_array().map(Vec::len),
            Some(3),
            "one has no sample"
        );
        let histogram = &metrics[0]["histogram"];
        assert_eq!(histogram["aggregationTemporality"], 2);
        let point = &histogram["dataPoints"][0];
        let attributes = json!([{"key": "site", "value": {"stringValue": "ams"}}]);
        assert_eq!(point["attributes"], attributes, "an empty label is none");
        assert_eq!(point["startTimeUnixNano"], "1000000000000000000");
        assert_eq!(point["timeUnixNano"], "1000000015000000000");
        assert_eq!(
            (&point["count"], &point["sum"]),
            (&json!("3"), &json!(99.000_020_001))
        );
        let counts = point["bucketCounts"].as_array().expect("counts");
        let bounds = point["explicitBounds"].as_array().expect("bounds");
        assert_eq!(counts.len(), bounds.len() + 1);
        assert_eq!(counts[..2], [json!("1"), json!("1")]);
        assert_eq!(counts[bounds.len()], "1", "above all bounds");
        assert_eq!(bounds[0], 0.000_01);
        let sum = &metrics[1]["sum"];
        assert_eq!(sum["isMonotonic"], true);
        assert_eq!(metrics[1]["unit"], "By");
        assert_eq!(sum["dataPoints"][0]["asInt"], i64::MAX.to_string());
        let gauge = &metrics[2]["gauge"]["dataPoints"][0];
        assert_eq!(gauge["asDouble"], -0.001_5);
        assert!(gauge.get("startTimeUnixNano").is_none());
    }

    #[test]
    fn rejected_data_points_are_found_in_the_otlp_answer() {
        let answer = |count: Json| {
            let partial = json!({"rejectedDataPoints": count, "errorMessage": "old"});
            json!({"partialSuccess": partial}).to_string()
        };
        for count in [json!("4"), json!(4)] {
            let rejection = rejection(&answer(count)).expect("some");
            assert_eq!(rejection, "it rejected 4 data points: \"old\"");
        }
        for accepted in [&answer(json!("0")), "{}", "{\"partialSuccess\":{}}", "ok"] {
            assert_eq!(rejection(accepted), None);
        }
    }
}
