//! `neph load`: a load of HTTP requests, in a closed or an open loop.
//!
//! Owns options and output. neph-load generates.

mod levels;
mod profile;
mod request;
mod tls;

use std::io::Write;
use std::thread;

use clap::Args as ClapArgs;
use neph_documents::Format;
use neph_documents::load::{
    LoadDocument, LoadLine, LoadRun, LoadSecondRow, ThresholdRow, heading, second_line, summary,
};
use neph_documents::rows::{self, RowWriter, json_line};
use neph_load::workload::{
    Demand, Share, Threshold, ThresholdResult, Workers, WorkloadMeasured, WorkloadSecond,
    WorkloadSpec, generate,
};
use neph_model::{Arrivals, Span, Stop, TimeDistribution};
use neph_sys::random;

use crate::exit::{Failure, Outcome};
use crate::ip_choice::IpChoice;
use crate::privileges::{Needs, Row, UserChoice};
use crate::{format, interrupt, output, resolving, value};
use levels::Levels;
use request::RequestChoice;
use tls::TlsOptions;

/// Options of `neph load`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Without --workers and --rate, one worker sends one request after the other.\n\
Exit status: 0 complete, 1 no successful response, 2 usage error, 3 a condition of --fail is true, 130 interrupted by ctrl-C (prints the results so far)."
)]
pub(crate) struct Args {
    /// URL of the service: `http://host[:port]/path` or https
    target: String,
    /// Closed loop: number of workers, 1 to 100000. A worker waits for its think time, sends a request, and
    /// waits for the response, again and again
    #[arg(long, value_name = "N", conflicts_with = "rate",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(Workers::MAX)))]
    workers: Option<u32>,
    /// Closed loop: run each of these numbers of workers, for example 1,2,4,8,16, in random order in each of
    /// --blocks blocks. Reports rate and response times by number of workers, the knee and fitted models
    #[arg(long, value_name = "LIST", conflicts_with_all = ["workers", "rate", "warmup", "fail"],
          value_parser = levels::parse_levels)]
    levels: Option<Levels>,
    /// As --levels, at levels around the knee, which neph finds by doubling the workers
    #[arg(long, conflicts_with_all = ["workers", "rate", "warmup", "fail", "levels"])]
    find_knee: bool,
    /// With --levels or --find-knee: number of blocks, each with one run of each level
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    blocks: u32,
    /// Closed loop: think time of a worker before each request. Write none, 20ms, 'exp 20ms',
    /// 'uniform 10ms..30ms', 'lognormal 20ms sd=10ms', 'normal 20ms sd=5ms' or 'jmeter-poisson 20ms'; or
    /// `file:PATH` with a time on each line
    #[arg(long, value_name = "TIMES", default_value = "none", conflicts_with = "rate",
          value_parser = profile::think_time)]
    think: TimeDistribution,
    /// Closed loop: start the workers one after the other within this time
    #[arg(long, value_name = "TIME", default_value = "0", conflicts_with = "rate", value_parser = value::span)]
    ramp: Span,
    /// Open loop: requests arrive at this rate and wait for no response. Write 500/s, 'poisson 500/s',
    /// 'bursts 1000/s on=1s off=4s', 'steps 100/s,200/s every=30s' or 'diurnal 50/s..200/s period=24h'; or
    /// `file:PATH` with lines of a time and a rate
    #[arg(long, value_name = "ARRIVALS", value_parser = profile::arrivals)]
    rate: Option<Arrivals>,
    /// Share at most this many connections [default: a connection for each worker; with --rate, as many as
    /// this process can open]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    connections: Option<u32>,
    #[command(flatten)]
    request: RequestChoice,
    #[command(flatten)]
    tls: TlsOptions,
    /// Send requests for this time, including the warm-up
    #[arg(short = 'w', long, value_name = "TIME", default_value = "10s",
          value_parser = value::positive_span)]
    duration: Span,
    /// Do not count the requests of this first part
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = value::span)]
    warmup: Span,
    /// Count a request as failed if its response is not complete after this time; with --levels or
    /// --find-knee, at most half of --duration
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = value::positive_span)]
    timeout: Span,
    /// Exit with status 3 if this is true of the result: 'p99 > 50ms', 'mean > 5ms', 'max > 1s',
    /// 'errors > 1%', 'rate < 500/s'; repeatable
    #[arg(long, value_name = "CONDITION")]
    fail: Vec<Threshold>,
    /// Number of threads that send [default: the number of cores minus one]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    threads: Option<u32>,
    /// A request is late if neph takes it up later than this after its intended time
    #[arg(long, value_name = "TIME", default_value = "1ms", value_parser = value::positive_span)]
    lateness: Span,
    /// Do not sleep in the last 200 us before a request, for less lateness; uses more CPU time
    #[arg(long)]
    spin: bool,
    /// Seed of all random times: the same seed gives the same times [default: random]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    #[command(flatten)]
    version: IpChoice,
    /// Output format
    #[arg(long, default_value = "text", value_parser = format::one_of(format::ALL))]
    format: Format,
    #[command(flatten)]
    user: UserChoice,
}

/// Generates the load.
pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let target = request::target(&args.target)?;
    if args.warmup >= args.duration {
        return Err(Failure::usage(format!(
            "--warmup {}: it must be shorter than --duration {}",
            args.warmup, args.duration
        )));
    }
    let request = args.request.request(&target)?;
    let tls = args.tls.tls(&target)?;
    drop(Needs::of(&Row::LOAD).restrict(&args.user)?);
    let stop = interrupt::stop_on_ctrl_c()?;
    let resolution = resolving::find(&target, args.version.version(), None)?;
    let spec = WorkloadSpec {
        target: resolution.address,
        tls,
        request,
        demand: args.demand(),
        share: Share::WHOLE,
        seed: args.seed()?,
        duration: args.duration,
        warmup: args.warmup,
        timeout: args.timeout,
        connections: args.connections,
        threads: args.threads(),
        interval: Span::from_secs(1),
        lateness_bound: args.lateness,
        spins: args.spin,
    };
    let url = target.to_string();
    if args.has_levels() {
        return args.run_levels(&spec, &url, &stop);
    }
    let mut writer = Writer::begin(args.format)?;
    let measured = generate(&spec, &stop, &mut |second| writer.write_second(second));
    let measured = measured.map_err(Failure::refused)?;
    let thresholds = args.check(&measured);
    writer.end(&LoadRun {
        url: &url,
        spec: &spec,
        measured: &measured,
        thresholds: &thresholds,
    })?;
    let is_exceeded = thresholds.iter().any(|row| row.result == "exceeded");
    Ok(match measured.tally.successes() {
        _ if is_exceeded => Outcome::Alarmed,
        _ if measured.is_stopped => Outcome::Interrupted,
        0 => Outcome::Nothing,
        _ => Outcome::Done,
    })
}

impl Args {
    fn demand(&self) -> Demand {
        match &self.rate {
            Some(arrivals) => Demand::Open(arrivals.clone()),
            None => Demand::Closed(self.closed_loop()),
        }
    }

    fn closed_loop(&self) -> Workers {
        Workers {
            count: self.workers.unwrap_or(1),
            think: self.think.clone(),
            ramp: self.ramp,
        }
    }

    const fn has_levels(&self) -> bool {
        self.levels.is_some() || self.find_knee
    }

    fn run_levels(&self, spec: &WorkloadSpec, url: &str, stop: &Stop) -> Result<Outcome, Failure> {
        if self.duration < levels::MIN_DURATION {
            return Err(Failure::usage(format!(
                "--duration {}: a level needs at least {}",
                self.duration,
                levels::MIN_DURATION
            )));
        }
        let plan = levels::LevelsPlan {
            levels: self.levels.clone().map_or_else(Vec::new, |levels| levels.0),
            blocks: self.blocks,
            spec,
            workers: self.closed_loop(),
            url,
            format: self.format,
        };
        plan.run(stop)
    }

    /// A random seed is below 2^53, so that every reader of JSON keeps all digits.
    fn seed(&self) -> Result<u64, Failure> {
        match self.seed {
            Some(seed) => Ok(seed),
            None => Ok(random::token().map_err(Failure::refused)? >> 11),
        }
    }

    /// A core stays free for the other work of this host.
    fn threads(&self) -> u32 {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let default = u32::try_from(cores.saturating_sub(1))
            .unwrap_or(1)
            .clamp(1, 64);
        let threads = self.threads.unwrap_or(default);
        match self.workers {
            Some(workers) => threads.min(workers),
            None if self.has_levels() || self.rate.is_some() => threads,
            None => 1,
        }
    }

    fn check(&self, measured: &WorkloadMeasured) -> Vec<ThresholdRow> {
        let rows = self.fail.iter().map(|threshold| {
            let checked = threshold.check(&measured.tally, measured.measured);
            let (result, detail) = match checked {
                ThresholdResult::Held => ("held", None),
                ThresholdResult::Exceeded(value) => ("exceeded", Some(value)),
                ThresholdResult::Unknown(reason) => ("unknown", Some(reason)),
            };
            ThresholdRow {
                condition: threshold.to_string(),
                result,
                detail,
            }
        });
        rows.collect()
    }
}

/// Writes one line per second, and the summary.
struct Writer {
    format: Format,
    rows: Vec<LoadSecondRow>,
    /// If the reader closes the pipe, the output ends and the load continues.
    write_error: Option<std::io::Error>,
}

impl Writer {
    fn begin(format: Format) -> Result<Self, Failure> {
        output::check_open()?;
        if format == Format::Text {
            output::print_line(&heading())?;
        }
        Ok(Self {
            format,
            rows: Vec::new(),
            write_error: None,
        })
    }

    fn write_second(&mut self, second: &WorkloadSecond) {
        let row = LoadSecondRow::from(second);
        let result = match self.format {
            Format::Text => output::print_line(&second_line(second)),
            Format::Ndjson => {
                output::print_line(&json_line(&LoadLine::Second(Box::new(row.clone()))))
            }
            Format::Csv | Format::Json => Ok(()),
        };
        self.rows.push(row);
        if let Err(error) = result {
            self.write_error.get_or_insert(error);
        }
    }

    fn end(self, run: &LoadRun<'_>) -> Result<(), Failure> {
        if let Some(error) = self.write_error {
            return Err(error.into());
        }
        let mut out = output::data();
        match self.format {
            Format::Text => out.write_all(summary(run).as_bytes())?,
            Format::Json => rows::write_json(&LoadDocument::new(run, self.rows), &mut out)?,
            Format::Ndjson => {
                let document = Box::new(LoadDocument::new(run, self.rows));
                rows::write_json_line(&LoadLine::Summary(document), &mut out)?;
            }
            Format::Csv => {
                let mut writer = RowWriter::begin(Format::Csv, &mut out)?;
                writer.heading::<LoadSecondRow>()?;
                self.rows.iter().try_for_each(|row| writer.row(row))?;
                writer.end()?;
            }
        }
        Ok(out.flush()?)
    }
}
