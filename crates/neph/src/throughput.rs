//! `neph throughput`: goodput of a path over TCP or UDP, and what limits it; `serve` is the server.
//!
//! Owns options and output. neph-load measures.

mod serve;

use std::io::Write;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use neph_documents::Format;
use neph_documents::rows::{self, RowWriter, json_line};
use neph_documents::throughput::{
    SecondRow, ThroughputDocument, ThroughputLine, heading, second_line, summary,
};
use neph_load::throughput::{Measured, Second, ThroughputError, ThroughputRequest, measure};
use neph_model::{BitRate, ByteSize, IpVersion, Permit, Span, THROUGHPUT_PORT, Target};
use neph_wire::throughput::{Direction, Protocol, TestRequest, VERSION};

use crate::exit::{Failure, Outcome};
use crate::ip_choice::IpChoice;
use crate::privileges::{Needs, Row, UserChoice};
use crate::{congestion, format, interrupt, output, resolving, value};

/// Options of `neph throughput`.
#[derive(Debug, ClapArgs)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "TARGET: host[:port] where neph throughput serve runs (default port 7420).\n\
Exit status: 0 complete, 1 refused, unreachable or aborted, 2 usage error, 130 interrupted by ctrl-C (prints the results so far)."
)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// Host where `neph throughput serve` runs: host[:port], default port 7420
    #[arg(required = true)]
    target: Option<String>,
    /// Send UDP datagrams instead of TCP
    #[arg(long)]
    udp: bool,
    /// Highest payload rate per direction, for all streams together; the value 'max' means no limit [default: max; UDP: 1Mbit/s]
    #[arg(long, value_name = "RATE", value_parser = parse_max_rate)]
    rate: Option<MaxRate>,
    /// Number of concurrent streams per direction, 1 to 64, each with its own socket and thread
    #[arg(long, short = 'n', value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u16).range(1..=i64::from(TestRequest::MAX_STREAMS)))]
    streams: u16,
    /// Direction of the data: up is from this host to the server, down from the server to this host
    #[arg(long, value_enum, default_value_t = DirectionChoice::Up)]
    direction: DirectionChoice,
    /// Measure for this time, 100ms to 24h
    #[arg(short = 'w', long, value_name = "TIME", default_value = "10s",
          value_parser = value::positive_span)]
    duration: Span,
    /// Payload of each UDP datagram, 32 to 65507 bytes, including neph's header of 32 bytes
    #[arg(long, value_name = "SIZE", value_parser = value::size, default_value = "1448", requires = "udp")]
    size: ByteSize,
    /// TCP congestion control of the sending host: cubic, bbr, reno ... [default: that of the system]
    #[arg(long, value_name = "NAME", conflicts_with = "udp")]
    congestion: Option<String>,
    /// DSCP value (differentiated services code point) of the packets that neph sends
    #[arg(long, value_name = "0-63", value_parser = clap::value_parser!(u8).range(0..=63))]
    dscp: Option<u8>,
    #[command(flatten)]
    version: IpChoice,
    /// Output format
    #[arg(long, default_value = "text", value_parser = format::one_of(format::ALL))]
    format: Format,
    #[command(flatten)]
    user: UserChoice,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs the server of `neph throughput` and `neph rr` until ctrl-C; it serves one test at a time
    Serve(serve::Args),
}

/// The direction of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum DirectionChoice {
    /// This host sends data to the server
    Up,
    /// The server sends data to this host
    Down,
    /// Both hosts send data at the same time, on separate streams
    Both,
}

/// A rate; `None` for no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct MaxRate(Option<BitRate>);

fn parse_max_rate(text: &str) -> Result<MaxRate, String> {
    if text == "max" {
        return Ok(MaxRate(None));
    }
    match value::rate(text)? {
        rate if rate.bits_per_second() < 1_000 => Err("write a rate from 1kbit/s".to_owned()),
        rate => Ok(MaxRate(Some(rate))),
    }
}

/// Measures, or serves.
pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    match (&args.command, &args.target) {
        (Some(Command::Serve(serve)), _) => serve::run(serve),
        (None, Some(target)) => args.measure(target),
        (None, None) => Err(Failure::usage("name the server: host[:port]")),
    }
}

impl Args {
    fn test_request(&self) -> Result<TestRequest, Failure> {
        let datagram_bytes = u32::try_from(self.size.bytes()).unwrap_or(u32::MAX);
        // UDP has no congestion control and could flood a path: no limit must be requested explicitly.
        let default = self.udp.then_some(BitRate(1_000_000));
        let rate = self.rate.map_or(default, |max_rate| max_rate.0);
        let test_request = TestRequest {
            version: VERSION,
            protocol: if self.udp {
                Protocol::Udp
            } else {
                Protocol::Tcp
            },
            direction: match self.direction {
                DirectionChoice::Up => Direction::Up,
                DirectionChoice::Down => Direction::Down,
                DirectionChoice::Both => Direction::Both,
            },
            streams: self.streams,
            duration_ns: u64::try_from(self.duration.nanos()).unwrap_or(0),
            rate_bit_s: rate.map(BitRate::bits_per_second),
            datagram_bytes,
            congestion: self.congestion.clone(),
            dscp: self.dscp,
        };
        if !(32..=TestRequest::MAX_DATAGRAM_BYTES).contains(&datagram_bytes) {
            let (size, max_size) = (self.size.exact(), TestRequest::MAX_DATAGRAM_BYTES);
            return Err(Failure::usage(format!(
                "--size {size}: write 32 to {max_size} bytes"
            )));
        }
        let (min, max) = (TestRequest::MIN_DURATION_NS, TestRequest::MAX_DURATION_NS);
        if !(min..=max).contains(&test_request.duration_ns) {
            let duration = self.duration;
            return Err(Failure::usage(format!(
                "--duration {duration}: write 100ms to 24h"
            )));
        }
        test_request.check().map_err(Failure::usage)?;
        Ok(test_request)
    }

    fn measure(&self, target: &str) -> Result<Outcome, Failure> {
        if target.contains("://") {
            return Err(Failure::Usage(format!(
                "target '{target}': neph throughput takes no scheme; write host[:port], and --udp for UDP"
            )));
        }
        let test_request = self.test_request()?;
        let target = Target::with_port("tcp", target, THROUGHPUT_PORT).map_err(Failure::usage)?;
        let sends_data = test_request.direction.has_up();
        if let Some(name) = self.congestion.as_deref().filter(|_| sends_data) {
            congestion::check(name).map_err(|unusable| {
                let (reason, loaded) = (unusable.reason, unusable.loaded);
                Failure::usage(format!(
                    "--congestion {name}: {reason}; loaded here: {loaded}"
                ))
            })?;
        }
        let restrictions = Needs::of(&Row::THROUGHPUT).restrict(&self.user)?;
        drop(restrictions);
        let stop = interrupt::stop_on_ctrl_c()?;
        let version: Option<IpVersion> = self.version.version();
        let resolution = resolving::find(&target, version, None)?;
        let mut writer = Writer::begin(self.format, &test_request)?;
        let request = ThroughputRequest {
            server: resolution.address,
            test_request: &test_request,
            permit: &Permit::ANYTHING,
        };
        let measurement = measure(request, &stop, &mut |second| {
            writer.write_second(second);
        });
        let measurement = measurement.map_err(to_failure)?;
        writer.end(&measurement)?;
        Ok(match &measurement.fault {
            Some(fault) => {
                output::say(&format!("neph throughput: {fault}"));
                Outcome::Nothing
            }
            None if measurement.is_stopped => Outcome::Interrupted,
            None => Outcome::Done,
        })
    }
}

/// Why there is no result, with the remedy if known.
pub(crate) fn to_failure(error: ThroughputError) -> Failure {
    match error {
        ThroughputError::InvalidRequest(error) => Failure::usage(error),
        ThroughputError::Stopped => Failure::Interrupted(error.to_string()),
        ThroughputError::Socket {
            operation: "connect to",
            ..
        } => Failure::refused(format!("{error}; is neph throughput serve there?")),
        other => Failure::refused(other),
    }
}

/// Writes one line per second, and the summary.
struct Writer {
    format: Format,
    test_request: TestRequest,
    rows: Vec<SecondRow>,
    /// If the reader closes the pipe, the output ends and the test continues.
    write_error: Option<std::io::Error>,
}

impl Writer {
    fn begin(format: Format, test_request: &TestRequest) -> Result<Self, Failure> {
        output::check_open()?;
        if format == Format::Text {
            output::print_line(&heading(test_request))?;
        }
        Ok(Self {
            format,
            test_request: test_request.clone(),
            rows: Vec::new(),
            write_error: None,
        })
    }

    fn write_second(&mut self, second: &Second) {
        let result = match self.format {
            Format::Text => output::print_line(&second_line(second, &self.test_request)),
            Format::Ndjson => {
                let line = ThroughputLine::Second(SecondRow::from(second));
                output::print_line(&json_line(&line))
            }
            Format::Csv => {
                self.rows.push(SecondRow::from(second));
                Ok(())
            }
            Format::Json => Ok(()),
        };
        if let Err(error) = result {
            self.write_error.get_or_insert(error);
        }
    }

    fn end(self, measurement: &Measured) -> Result<(), Failure> {
        if let Some(error) = self.write_error {
            return Err(error.into());
        }
        let mut out = output::data();
        match self.format {
            Format::Text => out.write_all(summary(measurement).as_bytes())?,
            Format::Json => rows::write_json(&ThroughputDocument::from(measurement), &mut out)?,
            Format::Ndjson => {
                let document = Box::new(ThroughputDocument::from(measurement));
                rows::write_json_line(&ThroughputLine::Summary(document), &mut out)?;
            }
            Format::Csv => {
                let mut writer = RowWriter::begin(Format::Csv, &mut out)?;
                writer.heading::<SecondRow>()?;
                self.rows.iter().try_for_each(|row| writer.row(row))?;
                writer.end()?;
            }
        }
        Ok(out.flush()?)
    }
}
