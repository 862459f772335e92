//! The options of live points (`iface:`, `ssh:`, `agent:`).

use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;
use neph_capture::reading::snaplen::DEFAULT_SNAPLEN;
use neph_listen::recording::RecordingOptions;
use neph_model::{ByteSize, Span};

use crate::exit::Failure;
use crate::packet_filter::PacketArgs;
use crate::value;
use crate::watch::{parse_ring_size, parse_snaplen};

/// Options of a recording at live points.
#[derive(Clone, Debug, ClapArgs)]
#[command(next_help_heading = "Live points")]
pub(crate) struct LivePointOptions {
    /// Capture for this time, such as 30s or 5min [default: until ctrl-C]
    #[arg(long, short = 'w', value_name = "TIME", value_parser = value::positive_span)]
    duration: Option<Span>,
    /// Stop the capture at all points when one point has captured this number of packets [default: no limit]
    #[arg(long, short, value_name = "N", value_parser = value::positive_count)]
    count: Option<u64>,
    /// Keep the captured packets in this folder, as NAME.pcap for each point [default: neph deletes them]
    #[arg(long, value_name = "FOLDER")]
    save: Option<PathBuf>,
    /// Stop the capture at all points when the capture file of one point reaches this size
    #[arg(long, value_name = "SIZE", value_parser = value::size, default_value = "2GB")]
    limit: ByteSize,
    #[command(flatten)]
    filter: PacketArgs,
    /// Number of bytes to capture of each packet, 64 to 262140; neph needs headers and 16 bytes of payload
    #[arg(long, value_name = "BYTES", value_parser = parse_snaplen, default_value_t = DEFAULT_SNAPLEN)]
    snaplen: u32,
    /// Folder of the controller on this host, which `neph control serve` creates; only for points at agents
    #[arg(long, value_name = "FOLDER")]
    control: Option<PathBuf>,
    /// Size of each point's capture buffer, 2MiB to 1GiB; while it is full, neph loses packets and
    /// counts them
    #[arg(long, value_name = "SIZE", value_parser = parse_ring_size, default_value = "32MiB")]
    ring: ByteSize,
}

impl LivePointOptions {
    /// The recording that these options describe.
    pub(crate) fn to_recording_options(&self) -> RecordingOptions {
        RecordingOptions {
            duration: self.duration,
            count: self.count,
            save: self.save.clone(),
            limit: self.limit,
            packet_filter: self.filter.packet_filter(),
            snaplen: self.snaplen,
            ring: self.ring,
        }
    }

    /// The folder of the controller whose agents capture.
    pub(crate) fn controller_folder(&self) -> Option<&Path> {
        self.control.as_deref()
    }

    /// Whether the captures are kept.
    pub(crate) const fn keeps_captures(&self) -> bool {
        self.save.is_some()
    }

    /// The folder of the captures; without `--save` the parent of a temporary folder.
    pub(crate) fn folder(&self) -> PathBuf {
        self.save.clone().unwrap_or_else(std::env::temp_dir)
    }

    /// Refuses options of live points for capture files.
    ///
    /// # Errors
    /// An option of live points was given.
    pub(crate) fn refuse_for_files(&self) -> Result<(), Failure> {
        let used_options = [
            ("-w", self.duration.is_some()),
            ("-c", self.count.is_some()),
            ("--save", self.save.is_some()),
            ("--control", self.control.is_some()),
        ];
        let used_options = used_options.into_iter().filter(|(_, is_used)| *is_used);
        let used_options = used_options.map(|(option, _)| option.to_owned());
        match used_options
            .chain(self.filter.packet_filter().options())
            .next()
        {
            Some(option) => Err(Failure::usage(format!(
                "{option} is for live points (iface:eth0, ssh:user@host/eth0, agent:ams/eth0), and these are files"
            ))),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
impl Default for LivePointOptions {
    fn default() -> Self {
        Self {
            duration: None,
            count: None,
            save: None,
            limit: ByteSize(1 << 20),
            filter: PacketArgs::default(),
            snaplen: DEFAULT_SNAPLEN,
            control: None,
            ring: ByteSize(2 << 20),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct CommandLine {
        #[command(flatten)]
        options: LivePointOptions,
    }

    #[test]
    fn options_for_live_points_are_refused_for_files() {
        let message_of = |args: &str| {
            let line =
                CommandLine::try_parse_from(["neph"].into_iter().chain(args.split_whitespace()));
            let Err(Failure::Usage(message)) = line.expect("options").options.refuse_for_files()
            else {
                panic!("{args} is taken");
            };
            message
        };
        for args in [
            "-w 1s",
            "-c 5",
            "--save a",
            "--host 10.0.0.1",
            "--port 1",
            "--proto udp",
        ] {
            assert!(message_of(args).contains("is for live points"), "{args}");
        }
        assert!(message_of("--proto udp --port 53").starts_with("--port 53 is for live points"));
    }
}
