//! Emulated networks: sites in network namespaces, links with known behaviour, a record of what each link
//! did, and complete removal.
//!
//! Owns topologies, links, verification and the undo journal. Does not measure applications: probes do, and
//! this crate provides the true values for them.

pub mod addresses;
mod counters;
mod cue;
mod direction;
mod engine;
mod gate;
mod group;
mod guest;
mod journal;
mod lab;
mod left_over;
mod links;
mod namespace;
mod namespace_processes;
mod packet_queue;
mod plan;
mod predict;
mod program;
mod route;
mod segment;
mod settings;
mod topology;
mod truth;
mod tunnel;
mod verify;

pub use counters::{
    DirectionCount, LinkCounters, MIN_LATENESS, SchedulingClass, lateness_tolerance,
};
pub use cue::Cue;
pub use direction::Direction;
pub use engine::{EndReason, Engine, EngineConfig, EngineError, EngineResources, TruthConfig};
pub use gate::{
    Arrival, Change, ChangeAction, CoDel, Departure, Discipline, DropCause, Flow, Gate,
    GilbertElliott, Jitter, Loss, Moment, PacketOutcome, PartialShape, PartialWire, Path,
    QueueLimit, ReservedProtocol, ScheduleEvent, ScheduleStep, Shape, Share, Splitting, Trace,
    TrafficEngineering, Treatment, Wire, transmission_time,
};
pub use group::GroupError;
pub use guest::{Console, ConsoleError, FallbackGuests, Guest, Kernel};
pub use journal::{HasKeeper, UndoError};
pub use lab::{
    DirectionCounts, DirectionStatus, Lab, LabError, LabListing, LabListings, LabStatus, Recording,
    RerouteStatus, ServiceState, ServiceStatus, TrafficStatus, UpOptions,
};
pub use left_over::{own_lab_name, remove_left_over_labs};
pub use namespace::namespace;
pub use plan::{Step, quoted};
pub use predict::{Forecast, PROTOCOLS, Protocol};
pub use program::ProgramError;
pub use topology::{
    Command, Fixture, Link, Prefix, Ready, ReadyCheck, Reroute, RerouteAction, Role, Routing,
    Service, Site, Topology, Traffic,
};
pub use truth::{
    FlowAccumulator, FlowKey, FlowTruth, Identity, PacketHandling, PacketPassage, PathSegment,
    Record, TruthError, TruthFile, TruthThread, Verdict, evaluate_flows,
};
pub use tunnel::TunnelError;
pub use verify::{
    DelayCheck, DelayQuantiles, JitterCheck, Lateness, LinkCheck, LossCheck, QuantityCheck,
    UnmeasuredPath, Verified, verification_duration, verify, verify_against, verify_link,
    verify_until,
};
