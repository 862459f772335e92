//! `neph media`: streams of a media server, measured at the client; `serve` is the server.
//!
//! Owns options and output. neph-load measures.

mod serve;

use std::io::Write;

use clap::{Args as ClapArgs, Subcommand};
use neph_documents::Format;
use neph_documents::media::{MediaDocument, MediaLine, SecondRow, heading, second_line, summary};
use neph_documents::rows::{self, RowWriter, json_line};
use neph_load::media::{MediaError, MediaMeasured, MediaRequest, MediaSecond, measure};
use neph_model::{Span, Target, Wall, without_credentials};
use neph_wire::rtsp::{self, Url};

use crate::exit::{Failure, Outcome};
use crate::ip_choice::IpChoice;
use crate::privileges::{Needs, Row, UserChoice};
use crate::{format, interrupt, output, resolving, value};

/// The port of `neph media serve`.
pub(crate) const PORT: u16 = 8554;

/// Options of `neph media`.
#[derive(Debug, ClapArgs)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "TARGET: host[:port] of neph media serve (default port 8554), or rtsp://host[:port]/path of any RTSP server \
that sends over UDP (default port 554).\n\
Exit status: 0 complete, 1 refused, unreachable or aborted, 2 usage error, 130 interrupted by ctrl-C (prints the results so far)."
)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// Server that sends the video: host[:port] of `neph media serve`, or rtsp:// URL of an RTSP server
    #[arg(required = true)]
    target: Option<String>,
    /// Number of concurrent streams, 1 to 256, each with its own RTSP connection; all start together
    #[arg(long, short = 'n', value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u16).range(1..=i64::from(MediaRequest::MAX_STREAMS)))]
    clients: u16,
    /// Receive each stream for this time, 1s to 24h, from its first packet on
    #[arg(short = 'w', long, value_name = "TIME", default_value = "60s",
          value_parser = value::positive_span)]
    duration: Span,
    /// Time from the first packet until the video starts to play, 0 to 60s; a frame that is complete
    /// only after its play-out time is late
    #[arg(long, value_name = "TIME", default_value = "200ms", value_parser = value::span)]
    buffer: Span,
    /// Start all streams at this time, such as 2026-11-27T09:30:00Z, to synchronise several clients
    /// [default: now]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    start_at: Option<Wall>,
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
    /// Serves video streams over RTP, controlled by RTSP, until ctrl-C
    Serve(serve::Args),
}

/// Parses a time with its offset from UTC.
fn parse_time(text: &str) -> Result<Wall, String> {
    let timestamp = text.parse::<jiff::Timestamp>();
    let nanos = timestamp.ok().map(jiff::Timestamp::as_nanosecond);
    let nanos = nanos.and_then(|nanos| i64::try_from(nanos).ok());
    let nanos = nanos.ok_or("write a time with its offset from UTC: 2026-11-27T09:30:00Z")?;
    Ok(Wall::from_unix_nanos(nanos))
}

/// Measures, or serves.
pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    match (&args.command, &args.target) {
        (Some(Command::Serve(serve)), _) => serve::run(serve),
        (None, Some(target)) => args.measure(target),
        (None, None) => Err(Failure::usage(
            "name the server: host[:port] or rtsp://host/path",
        )),
    }
}

/// A server and the requested stream.
struct MediaEndpoint {
    target: Target,
    url: String,
}

fn parse_endpoint(text: &str) -> Result<MediaEndpoint, Failure> {
    if !text.contains("://") {
        let target = Target::with_port("tcp", text, PORT).map_err(Failure::usage)?;
        let authority = target.to_string().replacen("tcp://", "", 1);
        let url = format!("rtsp://{authority}/video");
        return Ok(MediaEndpoint { target, url });
    }
    let url: Url = text.parse().map_err(|error| {
        Failure::Usage(format!("target {}: {error}", without_credentials(text)))
    })?;
    let port = url.port.unwrap_or(rtsp::PORT);
    let target = Target::tcp(&url.host, port).map_err(Failure::usage)?;
    Ok(MediaEndpoint {
        target,
        url: url.to_string(),
    })
}

impl Args {
    fn measure(&self, target: &str) -> Result<Outcome, Failure> {
        let MediaEndpoint { target, url } = parse_endpoint(target)?;
        let request = MediaRequest {
            url,
            streams: self.clients,
            duration: self.duration,
            buffer: self.buffer,
            start: self.start_at,
        };
        request.check().map_err(Failure::usage)?;
        let restrictions = Needs::of(&Row::MEDIA).restrict(&self.user)?;
        drop(restrictions);
        let stop = interrupt::stop_on_ctrl_c()?;
        let resolution = resolving::find(&target, self.version.version(), None)?;
        let mut writer = Writer::begin(self.format)?;
        let measurement = measure(resolution.address, &request, &stop, &mut |second| {
            writer.write_second(second);
        });
        let measurement = measurement.map_err(to_failure)?;
        writer.end(&measurement)?;
        Ok(match measurement.fault() {
            Some(fault) => {
                output::say(&format!("neph media: {fault}"));
                Outcome::Nothing
            }
            None if measurement.is_stopped => Outcome::Interrupted,
            None => Outcome::Done,
        })
    }
}

fn to_failure(error: MediaError) -> Failure {
    match error {
        MediaError::InvalidRequest(sentence) => Failure::Usage(sentence),
        MediaError::Stopped => Failure::Interrupted(error.to_string()),
        MediaError::Socket {
            operation: "connect to",
            ..
        } => Failure::refused(format!("{error}; is neph media serve there?")),
        other => Failure::refused(other),
    }
}

/// Writes one line per second, and the summary.
struct Writer {
    format: Format,
    has_heading: bool,
    rows: Vec<SecondRow>,
    /// If the reader closes the pipe, the output ends and the measurement continues.
    write_error: Option<std::io::Error>,
}

impl Writer {
    fn begin(format: Format) -> Result<Self, Failure> {
        output::check_open()?;
        Ok(Self {
            format,
            has_heading: false,
            rows: Vec::new(),
            write_error: None,
        })
    }

    /// The line of a second; before the first one the headings.
    fn write_line(&mut self, second: &MediaSecond) -> std::io::Result<()> {
        if !self.has_heading {
            self.has_heading = true;
            output::print_line(&heading(second))?;
        }
        output::print_line(&second_line(second))
    }

    fn write_second(&mut self, second: &MediaSecond) {
        let result = match self.format {
            Format::Text => self.write_line(second),
            Format::Ndjson => SecondRow::all(second)
                .try_for_each(|row| output::print_line(&json_line(&MediaLine::Second(row)))),
            Format::Csv => {
                self.rows.extend(SecondRow::all(second));
                Ok(())
            }
            Format::Json => Ok(()),
        };
        if let Err(error) = result {
            self.write_error.get_or_insert(error);
        }
    }

    fn end(self, measurement: &MediaMeasured) -> Result<(), Failure> {
        if let Some(error) = self.write_error {
            return Err(error.into());
        }
        let mut out = output::data();
        match self.format {
            Format::Text => out.write_all(summary(measurement).as_bytes())?,
            Format::Json => rows::write_json(&MediaDocument::from(measurement), &mut out)?,
            Format::Ndjson => {
                let document = Box::new(MediaDocument::from(measurement));
                rows::write_json_line(&MediaLine::Summary(document), &mut out)?;
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
