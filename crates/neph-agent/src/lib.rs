//! Carries out orders with the instruments: from an order to flows, and from what they say to what is
//! reported.
//!
//! Owns the executor of this process, what it knows of its host (facts, load, series), and the lab that
//! it measures in, as far as it needs to know it. Plans nothing and keeps nothing.

mod answering;
mod between;
mod caps;
mod capture_order;
mod check;
mod cores;
mod course;
mod executor;
mod experiments;
mod failure;
mod fleet;
mod fleet_intake;
mod flows;
mod follow;
mod host_sampler;
mod intake;
mod journalling;
pub mod lab;
mod lab_handle;
mod links;
mod load;
mod load_rates;
mod order_context;
pub mod policy;
pub mod provenance;
mod reflecting;
mod reflector_check;
pub mod remote;
mod sampling;
mod tcp_samples;
mod trace;
mod transfer;
mod wall_clock;

pub use caps::refusal_warnings;
pub use cores::LoadMeter;
pub use executor::LocalExecutor;
pub use fleet::check_open_file_limit;
pub use fleet_intake::{FleetIntake, scenario_of};
pub use journalling::JournallingExecutor;
pub use lab_handle::LabAccess;
pub use links::LinkCounters;
pub use load::{CpuResult, GeneratedLoad, PrepareLoadError, ReadyLoad, TcpResult, UdpResult};
pub use load_rates::{LoadResults, LoadSample};
pub use reflecting::{Bound, ReflectingError, Service, Serving};
