//! What the name of a raw-data file tells.
//!
//! The published tool writes `1-130.192.31.242:8080.i250.x1024.csv`: run, endpoint, interval in
//! milliseconds, request size in bytes. `1.endpoint.x250.x1024.csv` and `1-endpoint-250-1024.csv`
//! are understood too.

/// A name's parts. What it does not tell is absent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FileName {
    /// The run, from 1.
    pub(super) run: Option<u32>,
    /// The endpoint; the whole name if nothing else is told.
    pub(super) endpoint: String,
    /// Milliseconds between two requests.
    pub(super) interval_ms: Option<u32>,
    /// Bytes of a request.
    pub(super) request_bytes: Option<u64>,
}

impl FileName {
    /// Parses a name without its extension.
    pub(super) fn parse(stem: &str) -> Self {
        dotted(stem)
            .or_else(|| dashed(stem))
            .unwrap_or_else(|| Self {
                run: None,
                endpoint: stem.to_owned(),
                interval_ms: None,
                request_bytes: None,
            })
    }

    /// Whether the name fixes a scenario.
    pub(super) const fn is_complete(&self) -> bool {
        self.interval_ms.is_some() && self.request_bytes.is_some()
    }
}

/// `<run>-<endpoint>.i<interval>.x<size>` and `<run>.<endpoint>.x<interval>.x<size>`.
fn dotted(stem: &str) -> Option<FileName> {
    let (rest, size) = stem.rsplit_once('.')?;
    let (rest, interval) = rest.rsplit_once('.')?;
    let size = size.strip_prefix('x')?;
    // After `.i` the endpoint may be a bare address: only a dash sets its run apart.
    let (interval, separators): (_, &[char]) = match interval.strip_prefix('i') {
        Some(interval) => (interval, &['-']),
        None => (interval.strip_prefix('x')?, &['-', '.']),
    };
    complete(rest, separators, (interval, size))
}

/// `<run>-<endpoint>-<interval>-<size>`.
fn dashed(stem: &str) -> Option<FileName> {
    let (rest, size) = stem.rsplit_once('-')?;
    let (rest, interval) = rest.rsplit_once('-')?;
    complete(rest, &['-'], (interval, size))
}

fn complete(rest: &str, separators: &[char], (interval, size): (&str, &str)) -> Option<FileName> {
    let interval_ms = number(interval)?;
    let request_bytes = number(size)?;
    let split = rest
        .split_once(separators)
        .and_then(|(run, endpoint)| Some((number(run)?, endpoint)))
        .filter(|(_, endpoint)| !endpoint.is_empty());
    let (run, endpoint) = match split {
        Some((run, endpoint)) => (Some(run), endpoint),
        None => (None, rest),
    };
    Some(FileName {
        run,
        endpoint: endpoint.to_owned(),
        interval_ms: Some(interval_ms),
        request_bytes: Some(request_bytes),
    })
}

/// Digits only: `parse` alone would take a sign.
fn number<T: std::str::FromStr>(text: &str) -> Option<T> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::FileName;

    #[test]
    fn names_tell_run_endpoint_interval_and_size() {
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
                interval_ms: Some(interval),
                request_bytes: Some(size),
            };
            assert_eq!(FileName::parse(stem), expected);
        }
    }

    #[test]
    fn any_other_name_is_the_scenario_itself() {
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
