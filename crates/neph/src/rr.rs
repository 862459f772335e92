//! `neph rr`: transactions as fast as possible; `neph throughput serve` is the server.
//!
//! Owns options and output. neph-load measures.

use std::io::Write;

use clap::Args as ClapArgs;
use neph_documents::Format;
use neph_documents::rows::{self, RowWriter, json_line};
use neph_documents::rr::{RrDocument, RrLine, RrSecondRow, heading, second_line, summary};
use neph_load::rr::{RrMeasured, RrRequest, RrSecond, RrSpec, measure};
use neph_model::{ByteSize, Permit, Span, THROUGHPUT_PORT, Target};
use neph_wire::throughput::{RrKind, RrTestRequest, TestRequest, VERSION};

use crate::exit::{Failure, Outcome};
use crate::ip_choice::IpChoice;
use crate::privileges::{Needs, Row, UserChoice};
use crate::throughput::to_failure;
use crate::{format, interrupt, output, resolving, value};

/// Options of `neph rr`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "TARGET: host[:port] where neph throughput serve runs (default port 7420).\n\
Exit status: 0 complete, 1 refused, unreachable or aborted, 2 usage error, 130 interrupted by ctrl-C (prints the results so far)."
)]
pub(crate) struct Args {
    /// Host where `neph throughput serve` runs: host[:port], default port 7420
    target: String,
    #[command(flatten)]
    kind: KindChoice,
    /// Number of concurrent streams, 1 to 64, each with its own socket and thread and one transaction
    /// at a time
    #[arg(long, short = 'n', value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u16).range(1..=i64::from(TestRequest::MAX_STREAMS)))]
    streams: u16,
    /// Payload size of each request, at least 16 B (--udp, --connect) or 1 B (--tcp) [default: the minimum]
    #[arg(long, value_name = "SIZE", value_parser = value::size)]
    request: Option<ByteSize>,
    /// Payload size of each reply, at least 16 B (--udp) or 1 B (--tcp, --connect) [default: the minimum]
    #[arg(long, value_name = "SIZE", value_parser = value::size)]
    reply: Option<ByteSize>,
    /// Measure for this time, 100ms to 24h
    #[arg(short = 'w', long, value_name = "TIME", default_value = "10s",
          value_parser = value::positive_span)]
    duration: Span,
    /// Count a transaction as lost after this time without a reply, 1ms to 60s (only --udp and --connect)
    #[arg(long, value_name = "TIME", default_value = "1s", conflicts_with = "tcp",
          value_parser = value::positive_span)]
    timeout: Span,
    /// Poll for replies without sleeping, for lower RTTs; each stream then uses one CPU core of this host
    #[arg(long, conflicts_with = "connect")]
    busy_poll: bool,
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

/// The kind of transaction.
#[derive(Debug, ClapArgs)]
#[group(multiple = false)]
struct KindChoice {
    /// Measure over UDP: a transaction is one datagram in each direction, as UDP_RR of netperf (the default)
    #[arg(long)]
    udp: bool,
    /// Measure over TCP: a transaction is a request and a reply on an open connection, as TCP_RR of netperf
    #[arg(long)]
    tcp: bool,
    /// Measure over TCP with a new connection for each transaction, as TCP_CRR of netperf
    #[arg(long)]
    connect: bool,
}

impl KindChoice {
    const fn kind(&self) -> RrKind {
        match (self.tcp, self.connect) {
            (true, _) => RrKind::TcpRr,
            (_, true) => RrKind::TcpCrr,
            _ => RrKind::UdpRr,
        }
    }
}

/// Measures.
pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    if args.target.contains("://") {
        return Err(Failure::Usage(format!(
            "target '{}': neph rr takes no scheme; write host[:port], and --tcp or --connect for TCP",
            args.target
        )));
    }
    let spec = args.spec()?;
    let target = Target::with_port("tcp", &args.target, THROUGHPUT_PORT).map_err(Failure::usage)?;
    drop(Needs::of(&Row::RR).restrict(&args.user)?);
    let stop = interrupt::stop_on_ctrl_c()?;
    let resolution = resolving::find(&target, args.version.version(), None)?;
    let mut writer = Writer::begin(args.format)?;
    let request = RrRequest {
        server: resolution.address,
        spec: &spec,
        permit: &Permit::ANYTHING,
    };
    let measurement = measure(request, &stop, &mut |second| {
        writer.write_second(second);
    });
    let measurement = measurement.map_err(to_failure)?;
    writer.end(&measurement)?;
    Ok(match &measurement.fault {
        Some(fault) => {
            output::say(&format!("neph rr: {fault}"));
            Outcome::Nothing
        }
        None if measurement.is_stopped => Outcome::Interrupted,
        None => Outcome::Done,
    })
}

impl Args {
    fn spec(&self) -> Result<RrSpec, Failure> {
        let kind = self.kind.kind();
        let check_size = |name: &str, requested: Option<ByteSize>, minimum: u32| {
            let maximum = kind.max_bytes();
            let Some(requested) = requested else {
                return Ok(minimum);
            };
            let bytes = u32::try_from(requested.bytes()).unwrap_or(u32::MAX);
            if (minimum..=maximum).contains(&bytes) {
                return Ok(bytes);
            }
            let requested = requested.exact();
            Err(Failure::usage(format!(
                "{name} {requested}: write {minimum} to {maximum} bytes"
            )))
        };
        let test_request = RrTestRequest {
            version: VERSION,
            kind,
            streams: self.streams,
            duration_ns: u64::try_from(self.duration.nanos()).unwrap_or(0),
            request_bytes: check_size("--request", self.request, kind.min_request_bytes())?,
            reply_bytes: check_size("--reply", self.reply, kind.min_reply_bytes())?,
            dscp: self.dscp,
        };
        if !(TestRequest::MIN_DURATION_NS..=TestRequest::MAX_DURATION_NS)
            .contains(&test_request.duration_ns)
        {
            let duration = self.duration;
            return Err(Failure::usage(format!(
                "--duration {duration}: write 100ms to 24h"
            )));
        }
        let (minimum, maximum) = (Span::from_millis(1), Span::from_secs(60));
        if !(minimum..=maximum).contains(&self.timeout) {
            let timeout = self.timeout;
            return Err(Failure::usage(format!(
                "--timeout {timeout}: write 1ms to 60s"
            )));
        }
        test_request.check().map_err(Failure::usage)?;
        Ok(RrSpec {
            ask: test_request,
            timeout: self.timeout,
            busy_poll: self.busy_poll,
        })
    }
}

/// Writes one line per second, and the summary.
struct Writer {
    format: Format,
    rows: Vec<RrSecondRow>,
    /// If the reader closes the pipe, the output ends and the test continues.
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

    fn write_second(&mut self, second: &RrSecond) {
        let row = RrSecondRow::from(second);
        let result = match self.format {
            Format::Text => output::print_line(&second_line(second)),
            Format::Ndjson => output::print_line(&json_line(&RrLine::Second(row.clone()))),
            Format::Csv | Format::Json => Ok(()),
        };
        self.rows.push(row);
        if let Err(error) = result {
            self.write_error.get_or_insert(error);
        }
    }

    fn end(self, measurement: &RrMeasured) -> Result<(), Failure> {
        if let Some(error) = self.write_error {
            return Err(error.into());
        }
        let mut out = output::data();
        match self.format {
            Format::Text => out.write_all(summary(measurement).as_bytes())?,
            Format::Json => rows::write_json(&RrDocument::new(measurement, self.rows), &mut out)?,
            Format::Ndjson => {
                let document = Box::new(RrDocument::new(measurement, self.rows));
                rows::write_json_line(&RrLine::Summary(document), &mut out)?;
            }
            Format::Csv => {
                let mut writer = RowWriter::begin(Format::Csv, &mut out)?;
                writer.heading::<RrSecondRow>()?;
                self.rows.iter().try_for_each(|row| writer.row(row))?;
                writer.end()?;
            }
        }
        Ok(out.flush()?)
    }
}
