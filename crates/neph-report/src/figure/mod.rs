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
    ClockDrawing, ClockLine, ClockMoment, ClockSet, clock_course, clocks_of_captures,
    clocks_on_a_connection,
};
pub use hops::{HopsDelay, HopsDrawing, HopsPacket, HopsProtocol, HopsWay, hops, passages};

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
        answers: "The mean of every stage of a message's life, scenario by scenario.",
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
        answers: "What transfers came to at each hour, over each network.",
        draw: quantity_course::draw,
    },
    FigureKind {
        name: "media-clients",
        title: "Media streams by clients",
        answers: "What each stream gets as more clients at each site share the network: bit rate, jitter, loss, stalls, quality.",
        draw: media_clients::draw,
    },
    FigureKind {
        name: "cdf",
        title: "Distribution of latency",
        answers: "Which share of the messages was replied to within which time.",
        draw: cdf::draw,
    },
    FigureKind {
        name: "per-block",
        title: "Latency, block by block",
        answers: "Whether it matters when, and over which path, a block was measured.",
        draw: per_block::draw,
    },
    FigureKind {
        name: "timetable",
        title: "Timetable as it was carried out",
        answers: "What ran when at which site, and what was not complete.",
        draw: timetable::draw,
    },
    FigureKind {
        name: "timeline",
        title: "Round trips over time",
        answers: "End-to-end, TCP acknowledgement and ICMP round trips side by side, with retransmissions, losses and reconnects.",
        draw: timeline::draw,
    },
    FigureKind {
        name: "ledger-time",
        title: "Stages of the response time, over time",
        answers: "The stages stacked onto each other while the experiment ran.",
        draw: ledger_time::draw,
    },
    FigureKind {
        name: "cwnd",
        title: "Congestion window",
        answers: "How much TCP was willing to send at once.",
        draw: cwnd::draw,
    },
    FigureKind {
        name: "send-skew",
        title: "Regularity of our sends",
        answers: "Difference between the gap of two sends and the plan's interval.",
        draw: skew::draw_send,
    },
    FigureKind {
        name: "server-skew",
        title: "Regularity of arrivals at the server",
        answers: "How far the gap between two requests was from the interval when the server's program had read them.",
        draw: skew::draw_server,
    },
    FigureKind {
        name: "flow-dissected",
        title: "Flows, message by message",
        answers: "How base latency and path changes are made of single messages.",
        draw: fleet::dissected,
    },
    FigureKind {
        name: "flow-spectrum",
        title: "Base latency of all flows over time",
        answers: "How many flows were on which path when, and when they moved.",
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
        answers: "How many flows move within the same seconds, and in which season more do.",
        draw: fleet::change_counts,
    },
    FigureKind {
        name: "flow-changes",
        title: "Time between path changes",
        answers: "How soon a flow that has moved moves again.",
        draw: fleet::changes,
    },
    FigureKind {
        name: "flow-persistence",
        title: "Persistence of flows",
        answers: "Time that a flow stays on a path: both directions, and each direction by itself.",
        draw: fleet::persistence,
    },
    FigureKind {
        name: "flow-fairness",
        title: "Unfairness among flows",
        answers: "How much slower the slower flows are at the same moment.",
        draw: fleet::flow_latency,
    },
    FigureKind {
        name: "flow-moved",
        title: "Moved flows against share",
        answers: "Whether flows on low-latency paths are moved away more often than others.",
        draw: fleet::moves,
    },
    FigureKind {
        name: "flow-paths",
        title: "Where paths part",
        answers: "Which routers the flows take, where they part and meet, and which path is the faster one.",
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
