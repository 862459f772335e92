//! Parses and writes the name of a raw-data file.
//!
//! The published tool writes `1-130.192.31.242:8080.i250.x1024.csv`: run, endpoint, interval in
//! milliseconds, request size in bytes. `1.endpoint.x250.x1024.csv` and `1-endpoint-250-1024.csv`
//! are accepted too, and `.i2.5`, which exports of neph write if an interval is no whole
//! millisecond.

use std::fmt;

use neph_model::Span;
use neph_text::visible;

use super::decimal::parse_scaled;

/// The parts of a name. A part that the name lacks is absent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileName {
    /// The run, from 1.
    pub(crate) run: Option<u32>,
    /// The endpoint; the whole name if it has no other part.
    pub(crate) endpoint: String,
    /// Time from one request to the next.
    pub(crate) interval: Option<Span>,
    /// Size of a request in bytes.
    pub(crate) request_bytes: Option<u64>,
}

/// The published tool's format, without the extension.
impl fmt::Display for FileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(run) = self.run {
            write!(f, "{run}-")?;
        }
        f.write_str(&self.endpoint)?;
        if let Some(interval) = self.interval {
            let (milliseconds, submillis_ns) =
                (interval.nanos() / 1_000_000, interval.nanos() % 1_000_000);
            let fraction = format!(".{submillis_ns:06}");
            let fraction = fraction.trim_end_matches('0').trim_end_matches('.');
            write!(f, ".i{milliseconds}{fraction}")?;
        }
        match self.request_bytes {
            Some(bytes) => write!(f, ".x{bytes}"),
            None => Ok(()),
        }
    }
}

impl FileName {
    /// Parses a name without its extension. Hidden characters are removed from the endpoint's name.
    pub(super) fn parse(stem: &str) -> Self {
        let stem = &*visible(stem);
        parse_dotted(stem)
            .or_else(|| parse_dashed(stem))
            .unwrap_or_else(|| Self {
                run: None,
                endpoint: stem.to_owned(),
                interval: None,
                request_bytes: None,
            })
    }

    /// Whether the name determines a scenario.
    pub(super) const fn is_complete(&self) -> bool {
        self.interval.is_some() && self.request_bytes.is_some()
    }
}

/// `<run>-<endpoint>.i<interval>.x<size>` and `<run>.<endpoint>.x<interval>.x<size>`.
fn parse_dotted(stem: &str) -> Option<FileName> {
    let (name_part, size) = stem.rsplit_once(".x")?;
    let decimal_interval = name_part
        .rsplit_once(".i")
        .and_then(|(name_part, interval)| Some((name_part, parse_decimal_millis(interval)?)));
    // After `.i` the endpoint may be a plain address: only a dash separates its run.
    if let Some((name_part, interval)) = decimal_interval {
        return build_file_name(name_part, &['-'], interval, size);
    }
    let (name_part, interval) = name_part.rsplit_once(".x")?;
    build_file_name(name_part, &['-', '.'], parse_millis(interval)?, size)
}

/// `<run>-<endpoint>-<interval>-<size>`.
fn parse_dashed(stem: &str) -> Option<FileName> {
    let (name_part, size) = stem.rsplit_once('-')?;
    let (name_part, interval) = name_part.rsplit_once('-')?;
    build_file_name(name_part, &['-'], parse_millis(interval)?, size)
}

fn parse_millis(text: &str) -> Option<Span> {
    parse_digits::<u32>(text).map(|millis| Span::from_millis(millis.into()))
}

/// `250` or `2.5`.
fn parse_decimal_millis(text: &str) -> Option<Span> {
    text.starts_with(|character: char| character.is_ascii_digit())
        .then(|| parse_scaled(text, 6).map(Span::from_nanos))
        .flatten()
}

fn build_file_name(
    name_part: &str,
    separators: &[char],
    interval: Span,
    size: &str,
) -> Option<FileName> {
    let request_bytes = parse_digits(size)?;
    let split = name_part
        .split_once(separators)
        .and_then(|(run, endpoint)| Some((parse_digits(run)?, endpoint)))
        .filter(|(_, endpoint)| !endpoint.is_empty());
    let (run, endpoint) = match split {
        Some((run, endpoint)) => (Some(run), endpoint),
        None => (None, name_part),
    };
    Some(FileName {
        run,
        endpoint: endpoint.to_owned(),
        interval: Some(interval),
        request_bytes: Some(request_bytes),
    })
}

/// Digits only: `parse` alone would accept a sign.
fn parse_digits<T: std::str::FromStr>(text: &str) -> Option<T> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_name_contains_run_endpoint_interval_and_size() {
        let cases = [
            (
                "1-130.192.31.242:8080.i250.x1024",
                (Some(1), "130.192.31.242:8080", 250, 1024),
            ),
            (
                "12-1_Example-Address.i25.x102400",
                (Some(12), "1_Example-Address", 25, 102_400),
            ),
            (
                "130.192.31.242.i250.x1024",
                (None, "130.192.31.242", 250, 1024),
            ),
            ("2.edge.x100.x64", (Some(2), "edge", 100, 64)),
            ("3-cloud-eu-400-10240", (Some(3), "cloud-eu", 400, 10_240)),
        ];
        for (stem, (run, endpoint, interval, size)) in cases {
            let expected = FileName {
                run,
                endpoint: endpoint.to_owned(),
                interval: Some(Span::from_millis(interval)),
                request_bytes: Some(size),
            };
            assert_eq!(FileName::parse(stem), expected);
        }
    }

    #[test]
    fn a_written_file_name_is_read_back() {
        for (endpoint, interval, stem) in [
            ("a-b.i1.x2", Span::from_millis(250), "3-a-b.i1.x2.i250.x64"),
            (
                "1.2.3.4:80",
                Span::from_micros(2_500),
                "3-1.2.3.4:80.i2.5.x64",
            ),
            ("x", Span::from_micros(40), "3-x.i0.04.x64"),
        ] {
            let name = FileName {
                run: Some(3),
                endpoint: endpoint.to_owned(),
                interval: Some(interval),
                request_bytes: Some(64),
            };
            assert_eq!(name.to_string(), stem);
            assert_eq!(FileName::parse(stem), name);
        }
    }

    #[test]
    fn any_other_file_name_is_the_endpoint() {
        for stem in [
            "log",
            "tool-rtt_log",
            "a.b.c",
            "x-+1-2",
            "",
            "-.i1.",
            "é.iñ.x",
        ] {
            let name = FileName::parse(stem);
            assert_eq!((name.endpoint.as_str(), name.is_complete()), (stem, false));
        }
    }
}
