//! The options of live points (`iface:`, `ssh:`, `agent:`).

use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;
use neph_capture::reading::enough::ENOUGH;
use neph_listen::recording::RecordingOptions;
use neph_model::{ByteSize, Span};

use crate::exit::Failure;
use crate::packet_choice::PacketArgs;
use crate::value;
use crate::watch::{ring, snaplen};

/// What a recording of live points may have.
#[derive(Clone, Debug, ClapArgs)]
#[command(next_help_heading = "Live points")]
pub(crate) struct Options {
    /// Record for so long; else until ctrl-C
    #[arg(long, short = 'w', value_name = "TIME", value_parser = value::positive_span)]
    duration: Option<Span>,
    /// Record until a point has so many packets
    #[arg(long, short = 'n', value_name = "N", value_parser = value::at_least_one)]
    count: Option<u64>,
    /// Keep the captures, in this folder; else they go away
    #[arg(long, value_name = "FOLDER")]
    save: Option<PathBuf>,
    /// Record until a point's capture has so many bytes
    #[arg(long, value_name = "SIZE", value_parser = value::size, default_value = "2GB")]
    limit: ByteSize,
    #[command(flatten)]
    choice: PacketArgs,
    /// Bytes that are kept of each packet: headers and 16 bytes of payload suffice
    #[arg(long, value_name = "BYTES", value_parser = snaplen, default_value_t = ENOUGH)]
    snaplen: u32,
    /// Where the controller of the agents is: the folder in which neph control serve runs
    #[arg(long, value_name = "FOLDER")]
    control: Option<PathBuf>,
    /// Memory in which the packets of a point wait to be written, 2MiB to 1GiB; when it is full
    /// packets are lost, and counted
    #[arg(long, value_name = "SIZE", value_parser = ring, default_value = "32MiB")]
    ring: ByteSize,
}

impl Options {
    /// What they mean.
    pub(crate) fn options(&self) -> RecordingOptions {
        RecordingOptions {
            duration: self.duration,
            count: self.count,
            save: self.save.clone(),
            limit: self.limit,
            choice: self.choice.choice(),
            snaplen: self.snaplen,
            ring: self.ring,
        }
    }

    /// The folder of the controller whose agents capture.
    pub(crate) fn control(&self) -> Option<&Path> {
        self.control.as_deref()
    }

    /// Whether the captures stay.
    pub(crate) const fn are_kept(&self) -> bool {
        self.save.is_some()
    }

    /// The folder of the captures, or the one in which theirs is made.
    pub(crate) fn folder(&self) -> PathBuf {
        self.save.clone().unwrap_or_else(std::env::temp_dir)
    }

    /// What makes no sense of captures that are there already.
    ///
    /// # Errors
    /// One of the options that only live points have was given.
    pub(crate) fn refuse_for_files(&self) -> Result<(), Failure> {
        let given = [
            ("-w", self.duration.is_some()),
            ("-n", self.count.is_some()),
            ("--save", self.save.is_some()),
            ("--control", self.control.is_some()),
        ];
        let given = given.into_iter().filter(|(_, is_given)| *is_given);
        let given = given.map(|(option, _)| option.to_owned());
        match given.chain(self.choice.choice().options()).next() {
            Some(option) => Err(Failure::usage(format!(
                "{option} is for live points (iface:eth0, ssh:user@host/eth0, agent:ams/eth0), and these are files"
            ))),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
impl Default for Options {
    fn default() -> Self {
        Self {
            duration: None,
            count: None,
            save: None,
            limit: ByteSize(1 << 20),
            choice: PacketArgs::default(),
            snaplen: ENOUGH,
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
    struct Line {
        #[command(flatten)]
        options: Options,
    }

    #[test]
    fn what_only_live_points_have_is_refused_for_files() {
        let reported = |words: &str| {
            let line = Line::try_parse_from(["neph"].into_iter().chain(words.split_whitespace()));
            let Err(Failure::Usage(reported)) = line.expect("options").options.refuse_for_files()
            else {
                panic!("{words} is taken");
            };
            reported
        };
        for words in [
            "-w 1s",
            "-n 5",
            "--save a",
            "--host 10.0.0.1",
            "--port 1",
            "--proto udp",
        ] {
            assert!(reported(words).contains("is for live points"), "{words}");
        }
        assert!(reported("--proto udp --port 53").starts_with("--port 53 is for live points"));
    }
}
