//! Points at agents: the agents capture, and send the captures at the end.
//!
//! Owns the received capture: its times are converted to this host's clock, and it is written to
//! the file of its point. Does not own the orders to agents, nor the transfer ([`Agents`]).

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::fs::File;
use std::path::Path;
use std::sync::atomic::Ordering;

use neph_model::{AgentName, CaptureOrder, Captured, ClockReading, PacketSample, Span};
use neph_text::PrintableText;

use super::course::Tally;
use super::point_text::PointLocation;
use super::relay::relay_moved;
use super::started_capture::{Outcome, SharedState, StartedCapture, kernel, unwritten};
use super::{LivePackets, PointRecording, Wanted};
use crate::ListenError;

/// Maximum number of clock readings accepted from an agent.
const MAX_READINGS: usize = 1100;
/// Maximum bytes of a sample accepted from an agent: twice the maximum that an agent sends.
const LONGEST_SAMPLE: usize = 64 << 10;
/// Maximum bytes of an agent's kernel identifier.
const LONGEST_KERNEL: usize = 64;

/// A capture at an agent.
#[derive(Clone, Debug)]
pub struct AgentCapture {
    /// The agent.
    pub agent: AgentName,
    /// The order; it ends on request.
    pub order: CaptureOrder,
}

/// Starts captures at agents.
pub trait Agents: Debug + Send {
    /// Runs all captures at the same time until `course` is over or each has ended; returns when
    /// all have ended.
    fn capture(&mut self, captures: Vec<AgentCapture>, course: &mut dyn AgentsCourse);
}

/// Receives the progress of captures at agents. `place` is an index into the captures.
pub trait AgentsCourse {
    /// Whether the captures are to end.
    fn is_over(&self) -> bool;

    /// A capture has this many packets; the first call means that it has started.
    fn counted(&mut self, index: usize, packets: u64);

    /// Some packets of a capture whose order requests samples.
    fn sampled(&mut self, index: usize, sample: PacketSample);

    /// A capture has ended: its temporary file, or the reason for having none.
    fn ended(&mut self, index: usize, captured: Result<(Captured, &Path), String>);
}

/// The points at agents of a recording.
pub(super) struct AgentPoints<'a> {
    points: Vec<(usize, Option<StartedCapture<'a>>)>,
    /// Results of points that have ended, by their index in the recording.
    pub(super) outcomes: Vec<(usize, Outcome)>,
    shared: SharedState<'a>,
    /// Correction of each kernel's times: all captures of one kernel have the same clock and the
    /// same correction.
    moved: BTreeMap<String, Span>,
}

impl<'a> AgentPoints<'a> {
    /// These points, each with its index in the recording, without results.
    pub(super) fn of(points: Vec<(usize, StartedCapture<'a>)>, shared: SharedState<'a>) -> Self {
        Self {
            points: points
                .into_iter()
                .map(|(index, started)| (index, Some(started)))
                .collect(),
            outcomes: Vec::new(),
            shared,
            moved: BTreeMap::from([(kernel(), Span::ZERO)]),
        }
    }

    /// The captures to run.
    pub(super) fn captures(&self) -> Vec<AgentCapture> {
        let started = self.points.iter();
        let started = started.filter_map(|(index, started)| Some((*index, started.as_ref()?)));
        let captures = started.filter_map(|(index, started)| match &started.point.location {
            PointLocation::Agent(agent, interface) => Some(AgentCapture {
                agent: agent.clone(),
                order: self.order(index, &interface.name),
            }),
            PointLocation::Local(_) | PointLocation::Remote(..) => None,
        });
        captures.collect()
    }

    /// The receiver of this point's samples, if samples are wanted.
    fn wanted(&self, index: usize) -> Option<Wanted<'a>> {
        let wanted = self.shared.live;
        wanted.filter(|wanted| wanted.points.contains(&index))
    }

    fn order(&self, index: usize, interface: &str) -> CaptureOrder {
        let options = self.shared.options;
        options.packet_filter.order(CaptureOrder {
            duration: options.duration,
            limit: Some(options.limit),
            samples: self.wanted(index).is_some(),
            ..CaptureOrder::of(interface.to_owned(), options.snaplen, options.ring)
        })
    }

    /// Ends all points: those without a result have failed.
    pub(super) fn finish(mut self) -> Vec<(usize, Outcome)> {
        for index in 0..self.points.len() {
            self.ended(index, Err("the agent did not begin the capture in time; neph agents show AGENT lists its orders".to_owned()));
        }
        self.outcomes
    }

    /// Receives a capture.
    fn take(&mut self, started: StartedCapture<'_>, captured: Captured, path: &Path) -> Outcome {
        let StartedCapture {
            point,
            path: own_path,
            mut file,
            tally,
        } = started;
        let first = captured.clock.first().map(|reading| reading.offset);
        let moved = self.moved.entry(captured.kernel.clone());
        let ahead = *moved.or_insert_with(|| first.unwrap_or(Span::ZERO));
        // The counts during the capture are replaced.
        let final_tally = Tally::new(tally.max_packets(), self.shared.options.limit.0);
        let relayed = File::open(path).map_err(|reason| reason.to_string());
        let relayed = relayed.and_then(|mut source| {
            let relayed = relay_moved(&mut source, &mut file, &final_tally, -ahead);
            relayed.map_err(|reason| reason.to_string())
        });
        file.flush();
        let packets = file.packets();
        let refused = file.close().err();
        let fault = match (relayed.err().or(captured.fault), refused) {
            (Some(reason), _) => {
                let (name, reason) = (&point.name, PrintableText::text(&reason));
                Some(ListenError::refused(format!("{name}: {reason}")))
            }
            (None, Some(reason)) => Some(unwritten(
                &point.name,
                packets,
                &reason,
                self.shared.options,
            )),
            (None, None) => None,
        };
        let is_complete = packets >= captured.packets && fault.is_none();
        Outcome {
            recorded: PointRecording {
                name: point.name.clone(),
                file: own_path,
                host: captured.kernel,
                packets,
                // Packets beyond the maximum are not lost.
                lost: Some(if final_tally.is_enough() {
                    captured.lost
                } else {
                    captured.lost + captured.packets.saturating_sub(packets)
                }),
                listened: captured
                    .listened
                    .filter(|_| is_complete)
                    .map(|moments| moments.map(|moment| moment + -ahead)),
                clock: readings(captured.clock, ahead),
            },
            fault,
        }
    }
}

/// The readings with times and offsets corrected by `ahead`.
fn readings(clock: Vec<ClockReading>, ahead: Span) -> Vec<ClockReading> {
    let moved = clock.into_iter().take(MAX_READINGS);
    let moved = moved.map(|reading| ClockReading {
        at: reading.at + -ahead,
        offset: reading.offset - ahead,
        bound: reading.bound,
    });
    moved.collect()
}

impl AgentsCourse for AgentPoints<'_> {
    fn is_over(&self) -> bool {
        self.shared.is_over.load(Ordering::Relaxed)
    }

    fn counted(&mut self, index: usize, packets: u64) {
        if let Some((_, Some(started))) = self.points.get(index) {
            started.tally.counted(packets, 0);
            started.tally.mark_begun();
        }
    }

    fn sampled(&mut self, index: usize, sample: PacketSample) {
        let is_sane = sample.pcap.len() <= LONGEST_SAMPLE && sample.kernel.len() <= LONGEST_KERNEL;
        if let Some((of_all, Some(_))) = self.points.get(index)
            && let Some(wanted) = self.wanted(*of_all)
            && is_sane
        {
            // A sample that is too late is dropped: the whole capture follows at the end.
            let _ = wanted.to.try_send(LivePackets::Sample(*of_all, sample));
        }
    }

    fn ended(&mut self, index: usize, captured: Result<(Captured, &Path), String>) {
        let Some((of_all, started)) = self.points.get_mut(index) else {
            return;
        };
        let (of_all, Some(started)) = (*of_all, started.take()) else {
            return;
        };
        let tally = started.tally;
        let outcome = match captured {
            Ok((captured, path)) => self.take(started, captured, path),
            Err(reason) => Outcome {
                recorded: PointRecording {
                    name: started.point.name.clone(),
                    file: started.path,
                    host: started.point.name.clone(),
                    packets: 0,
                    lost: None,
                    listened: None,
                    clock: Vec::new(),
                },
                fault: Some(ListenError::refused(format!(
                    "{} ({}): {}",
                    started.point.name,
                    started.point.description(),
                    PrintableText::text(&reason)
                ))),
            },
        };
        tally.mark_ended();
        self.outcomes.push((of_all, outcome));
    }
}

#[cfg(test)]
mod tests;
