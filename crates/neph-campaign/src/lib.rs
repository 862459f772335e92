//! Plans and campaigns: from a file to experiments carried out in order.
//!
//! Owns plans (typed text, then meaning), their expansion into scenarios, the order of execution,
//! what to run next, having it carried out by an executor, alarms, provenance and quality warnings. Sends
//! nothing itself, reads no clock and keeps no data: executors, clocks and stores are given to it.

mod agenda;
pub mod alarm;
mod alarm_evaluator;
mod clock;
pub mod estimate;
pub mod expand;
pub mod flow_sets;
pub mod interference;
mod keeper;
mod lengths;
mod meter;
mod observer;
pub mod option_value;
pub mod order;
mod pairs;
pub mod period;
pub mod plan;
mod residence_times;
pub mod resolve;
pub mod retention;
pub mod rounds;
mod run;
pub mod settings;
mod span_histogram;
mod stress;
pub mod timetable;
mod warnings;
mod watched_hosts;

pub use agenda::{Agenda, AgendaSlot, CampaignProgress, EndedExperiment};
pub use alarm_evaluator::AlarmQuantity;
pub use clock::Clock;
pub use keeper::{FleetKeeper, FleetStorage, StoredFleet};
pub use meter::{RunningFigures, stored_fleet_summary};
pub use observer::{CampaignEvent, NoObserver, Observer};
pub use plan::Plan;
pub use run::{Build, Participants, RunError, next_season, resume, start};
pub use stress::parse as parse_stress;
pub use watched_hosts::WatchedHosts;
