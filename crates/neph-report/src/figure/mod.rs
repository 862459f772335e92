//! Figures: pure functions from a campaign and settings to scenes.
//!
//! One file per figure, its `mod` line and an entry in [`FIGURES`]. A figure that has many scenarios to
//! show comes as several pages.

mod alarms;
mod boxes;
mod boxplot;
mod cdf;
mod circuits;
mod clock_course;
mod cwnd;
mod flags;
mod fleet;
mod grouped;
mod hops;
mod ledger_bars;
mod ledger_time;
mod legend;
mod media_clients;
mod per_block;
mod quantity_course;
mod readings;
mod sheet;
mod skew;
mod strip;
mod timeline;
mod timetable;

pub use clock_course::{
    ClockDrawing, ClockLine, ClockMoment, ClockStepPeriod, clock_course, clocks_of_captures,
    clocks_on_a_connection,
};
pub use hops::{HopsDelay, HopsDrawing, HopsPacket, HopsProtocol, hops, passages};

use crate::scene::Scene;
use neph_analysis::{CampaignData, PlotSettings};

/// One page of a figure.
#[derive(Clone, Debug)]
pub struct Figure {
    /// The name of its files, such as `timeline-2`.
    pub name: String,
    /// The name of its kind in [`FIGURES`].
    pub kind: &'static str,
    /// Its title, part of the scene too.
    pub title: String,
    /// What it shows and how to read it.
    pub caption: String,
    /// Its marks.
    pub scene: Scene,
}

/// One kind of figure.
#[derive(Clone, Copy, Debug)]
pub struct FigureKind {
    /// Its name in plans, on the command line and in file names.
    pub name: &'static str,
    /// Its heading.
    pub title: &'static str,
    /// What it answers, in a sentence.
    pub answers: &'static str,
    /// Draws it; nothing if the campaign has nothing to show in it.
    pub draw: fn(&CampaignData, &PlotSettings) -> Vec<Figure>,
}

/// Every figure, in the order of the report.
pub const FIGURES: &[FigureKind] = &[
    FigureKind {
        name: "ledger-bars",
        title: "Stages of the response time",
        answers: "Mean time of each stage of a message, for each scenario.",
        draw: ledger_bars::draw,
    },
    FigureKind {
        name: "boxes",
        title: "Latency, compared",
        answers: "The same measurements grouped by endpoint, interval, size and every other varied parameter.",
        draw: boxes::draw,
    },
    FigureKind {
        name: "circuits",
        title: "Circuits over each network",
        answers: "Latency, jitter and throughput of each circuit over each network, compared to the first network.",
        draw: circuits::draw,
    },
    FigureKind {
        name: "transfers",
        title: "Transfers, block by block",
        answers: "Result of each transfer, one point for each block.",
        draw: quantity_course::draw,
    },
    FigureKind {
        name: "media-clients",
        title: "Media streams by clients",
        answers: "Bit rate, jitter, loss, stalls and quality of a stream, by the number of clients at each site.",
        draw: media_clients::draw,
    },
    FigureKind {
        name: "cdf",
        title: "Distribution of latency",
        answers: "Share of the messages that had a reply within a time.",
        draw: cdf::draw,
    },
    FigureKind {
        name: "per-block",
        title: "Latency, block by block",
        answers: "Latency of each block. It shows whether the time of a measurement, or its path, makes a difference.",
        draw: per_block::draw,
    },
    FigureKind {
        name: "timetable",
        title: "Actual timetable",
        answers: "When each experiment ran at which site, and which experiments were not complete.",
        draw: timetable::draw,
    },
    FigureKind {
        name: "timeline",
        title: "Round trips over time",
        answers: "Response times, TCP round trips and ICMP round trips over time, with retransmissions, losses and reconnects.",
        draw: timeline::draw,
    },
    FigureKind {
        name: "ledger-time",
        title: "Stages of the response time, over time",
        answers: "Stages of the response time during the experiment, stacked.",
        draw: ledger_time::draw,
    },
    FigureKind {
        name: "cwnd",
        title: "Congestion window",
        answers: "TCP's congestion window: how much it may send before an acknowledgement.",
        draw: cwnd::draw,
    },
    FigureKind {
        name: "send-skew",
        title: "Regularity of sends",
        answers: "The time between two sends, minus the planned interval.",
        draw: skew::draw_send,
    },
    FigureKind {
        name: "server-skew",
        title: "Regularity of arrivals at the server",
        answers: "The time between two requests at the server application, minus the planned interval.",
        draw: skew::draw_server,
    },
    FigureKind {
        name: "flow-dissected",
        title: "Flows, message by message",
        answers: "How neph finds base latency and path changes in single messages.",
        draw: fleet::dissected,
    },
    FigureKind {
        name: "flow-spectrum",
        title: "Base latency of all flows over time",
        answers: "Number of flows on each path over time, and when flows moved.",
        draw: fleet::spectrum,
    },
    FigureKind {
        name: "flow-spectra",
        title: "Base latency of all flows, pair by pair",
        answers: "Pairs with paths of different latency, and pairs with path changes.",
        draw: fleet::spectra,
    },
    FigureKind {
        name: "flow-inflation",
        title: "Latency inflation",
        answers: "Latency of a pair's slowest path relative to its fastest, over all pairs.",
        draw: fleet::inflation,
    },
    FigureKind {
        name: "flow-change-counts",
        title: "Path changes at the same time",
        answers: "How many flows change paths at the same time, in each season.",
        draw: fleet::change_counts,
    },
    FigureKind {
        name: "flow-changes",
        title: "Time between path changes",
        answers: "Time from a path change of a flow to its next one.",
        draw: fleet::changes,
    },
    FigureKind {
        name: "flow-persistence",
        title: "Persistence of flows",
        answers: "Time that a flow stays on a path: for both directions together, and for each direction.",
        draw: fleet::persistence,
    },
    FigureKind {
        name: "flow-fairness",
        title: "Unfairness among flows",
        answers: "How much slower the slow flows are than the fast flows at the same time.",
        draw: fleet::flow_latency,
    },
    FigureKind {
        name: "flow-moved",
        title: "Path changes against share of time",
        answers: "Whether flows on low-latency paths are moved away more often than others.",
        draw: fleet::moves,
    },
    FigureKind {
        name: "flow-paths",
        title: "Where paths split",
        answers: "Routers on the paths of the flows, where paths split and join, and which path is faster.",
        draw: fleet::paths,
    },
];

/// Draws every figure that the settings want.
pub fn draw(data: &CampaignData, settings: &PlotSettings) -> Vec<Figure> {
    FIGURES
        .iter()
        .filter(|kind| settings.shows_figure(kind.name))
        .flat_map(|kind| (kind.draw)(data, settings))
        .collect()
}
