//! The timetable: which measurements run at the same time, so that none disturbs another.
//!
//! A [`Task`] claims [`Resource`]s, each in a [`UseMode`]. Two tasks conflict if they claim one resource in
//! modes that exclude each other. [`rounds`] puts tasks into rounds without conflicts, one round after the
//! other; [`pack_tasks`] lets each task begin as soon as what it claims is free. Both are pure, the same
//! for the same input, and report a [`Bound`] below which no timetable can be.
//!
//! Methods: the circle method for complete meshes (Kirkman 1847). Edge colouring with Kempe chains where
//! each task claims two hosts. The longest first for everything else, improved by a search with a fixed
//! number of steps.

mod bound;
mod circuit;
mod circuits;
mod common_hops;
mod density;
mod mesh;
mod occupancy;
mod packed;
mod resource;
mod search;
mod start;
mod step;
mod table;
mod task;

pub use bound::{Bound, BoundReason};
pub use common_hops::{CircuitRoute, SharedHops, shared_hops};
pub use packed::pack_tasks;
pub use resource::{Claim, Resource, UseMode};
pub use start::{
    Guard, MissedReason, MissingParty, PartyReport, SlotEnd, SlotOutcome, SlotStep, SlotTimes,
    StartAgreement, StartDecision, guard_of,
};
pub use step::rounds;
pub use table::{Round, ScheduledTask, Timetable};
pub use task::Task;

#[cfg(test)]
mod tests;
