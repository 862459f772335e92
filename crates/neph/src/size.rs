//! `neph size`: how many servers or pods a rate and a latency goal need.
//!
//! Owns options and the reading of levels. neph-analysis has the formulas.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::Args as ClapArgs;
use neph_analysis::queueing::sizing::{Goal, size};
use neph_documents::Format;
use neph_documents::load::{SizeDocument, size_text};
use neph_documents::rows;
use neph_documents::version::Version;
use neph_model::{RequestRate, Span};
use serde_json::Value;

use crate::exit::{Failure, Outcome};
use crate::{format, output, text_file, value};

/// Options of `neph size`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Exit status: 0 there is a size, 1 no number of servers reaches the goal, 2 usage error."
)]
pub(crate) struct Args {
    /// Requests per second, for example 500/s
    #[arg(long, value_name = "RATE")]
    rate: RequestRate,
    /// Largest allowed response time: 'p99 < 100ms', also p50, p90, p95, p99.9 or mean
    #[arg(long, value_name = "GOAL")]
    goal: TimeGoal,
    /// Mean service time of a request without waiting
    #[arg(long, value_name = "TIME", value_parser = value::positive_span,
          required_unless_present = "levels", conflicts_with = "levels")]
    service_time: Option<Span>,
    /// File with the output of neph load --levels or --find-knee with --format json: its fitted model
    /// (M/M/c//N) has the service time
    #[arg(long, value_name = "FILE")]
    levels: Option<PathBuf>,
    /// Number of pods that were measured for the file of --levels; neph then also computes pods
    #[arg(long, value_name = "N", requires = "levels", value_parser = clap::value_parser!(u32).range(1..))]
    pods: Option<u32>,
    /// Output format
    #[arg(long, default_value = "text", value_parser = format::one_of(format::DOCUMENT))]
    format: Format,
}

/// A goal with its text.
#[derive(Clone, Debug)]
struct TimeGoal {
    text: String,
    goal: Goal,
}

impl FromStr for TimeGoal {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = || {
            let (subject, limit) = text.split_once('<')?;
            let quantile = match subject.trim() {
                "mean" => None,
                "p50" => Some(0.5),
                "p90" => Some(0.9),
                "p95" => Some(0.95),
                "p99" => Some(0.99),
                "p99.9" => Some(0.999),
                _ => return None,
            };
            let limit = Span::from_compact(&limit.replace(' ', ""))?;
            (limit > Span::ZERO).then(|| Goal {
                quantile,
                limit: limit.secs_f64(),
            })
        };
        let goal = parsed().ok_or("write for example 'p99 < 100ms' or 'mean < 50ms'")?;
        Ok(Self {
            text: text.trim().to_owned(),
            goal,
        })
    }
}

/// What is known of the service.
struct Known {
    service: Span,
    source: String,
    /// Effective servers of the measured service.
    servers: Option<f64>,
    error_percent: Option<f64>,
}

/// Computes the size.
pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    output::check_open()?;
    let known = match (&args.levels, args.service_time) {
        (Some(path), _) => read_levels(path)?,
        (None, service) => Known {
            service: service.unwrap_or_default(),
            source: "--service-time".to_owned(),
            servers: None,
            error_percent: None,
        },
    };
    let rate = args.rate.per_second();
    let found = size(rate, known.service.secs_f64(), &args.goal.goal);
    let per_pod = args
        .pods
        .zip(known.servers)
        .map(|(pods, servers)| servers / f64::from(pods));
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "at most the servers divided by a positive number, saturates"
    )]
    let pods = found
        .zip(per_pod)
        .map(|(size, per_pod)| (f64::from(size.servers) / per_pod).ceil() as u32);
    #[expect(clippy::cast_possible_truncation, reason = "a response time")]
    let span = |seconds: f64| Span::from_nanos((seconds * 1e9).round() as i64);
    let document = SizeDocument {
        schema: Version,
        rate_per_s: rate,
        goal: args.goal.text.clone(),
        service_ns: known.service,
        source: known.source,
        servers: found.map(|size| size.servers),
        response_ns: found.map(|size| span(size.response)),
        utilisation_percent: found.map(|size| (size.utilisation * 1_000.0).round() / 10.0),
        servers_per_pod: per_pod,
        pods,
        fit_error_percent: known.error_percent,
    };
    let mut out = output::data();
    match args.format {
        Format::Json => rows::write_json(&document, &mut out)?,
        _ => out.write_all(size_text(&document).as_bytes())?,
    }
    out.flush()?;
    Ok(match found {
        Some(_) => Outcome::Done,
        None => Outcome::Nothing,
    })
}

/// The service time and the effective servers of the fitted M/M/c//N model.
fn read_levels(path: &Path) -> Result<Known, Failure> {
    let source = text_file::read(
        text_file::LEVELS,
        path,
        "write its path as seen from this folder",
    )?;
    let remedy = "write it with: neph load URL --find-knee --format json";
    let wrong =
        |reason: &str| Failure::usage(format!("--levels {}: {reason}; {remedy}", path.display()));
    let document: Value =
        serde_json::from_str(source.text()).map_err(|_| wrong("it is no JSON"))?;
    let models = document["models"]
        .as_array()
        .ok_or_else(|| wrong("it has no models"))?;
    if document["knee"]["is_reached"] != true {
        return Err(wrong(
            "its levels do not reach the knee, so the servers are not known",
        ));
    }
    let queue = models.iter().find(|model| model["model"] == "queue");
    let queue = queue.ok_or_else(|| wrong("it has no fitted M/M/c//N model"))?;
    let service = queue["service_ns"].as_i64().filter(|nanos| *nanos > 0);
    let servers = queue["servers"].as_f64().filter(|servers| *servers > 0.0);
    let (service, servers) = service
        .zip(servers)
        .ok_or_else(|| wrong("its model has no service time"))?;
    Ok(Known {
        service: Span::from_nanos(service),
        source: format!("fitted to {}", path.display()),
        servers: Some(servers),
        error_percent: queue["error_percent"].as_f64(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_has_a_quantile_and_a_limit() {
        let goal: TimeGoal = "p99 < 100 ms".parse().expect("a goal");
        assert_eq!((goal.goal.quantile, goal.goal.limit), (Some(0.99), 0.1));
        assert!(
            "mean<5ms"
                .parse::<TimeGoal>()
                .is_ok_and(|goal| goal.goal.quantile.is_none())
        );
        for wrong in ["", "p99", "p98 < 5ms", "p99 > 5ms", "p99 < 0", "p99 < 5"] {
            assert!(wrong.parse::<TimeGoal>().is_err(), "{wrong}");
        }
    }
}
