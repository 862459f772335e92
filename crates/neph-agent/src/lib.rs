//! Carries out orders: starts the flows of an order, and reports their results.
//!
//! Owns the executor of this process, the data about its host (facts, load, series), and the access to the
//! lab in which it measures. Makes no plans and stores no results.

mod capture_order;
mod capture_samples;
mod cores;
mod executor;
mod experiments;
mod failure;
mod fleet;
mod fleet_record_collector;
mod flows;
mod host_sampler;
mod idle_pings;
mod journalling_executor;
pub mod lab;
mod lab_handle;
mod link_counters;
mod load;
mod load_rates;
mod order_context;
pub mod policy;
pub mod provenance;
mod record_collector;
mod redirects;
mod reflector_check;
mod reflector_order;
mod reflector_refusals;
pub mod remote;
mod running_experiment;
mod site_reflector;
mod tcp_samples;
mod throughput_check;
mod trace;
mod transfer;
mod wall_clock;

pub use cores::LoadMeter;
pub use executor::LocalExecutor;
pub use fleet::check_open_file_limit;
pub use fleet_record_collector::{FleetRecordCollector, scenario_of};
pub use journalling_executor::JournallingExecutor;
pub use lab_handle::LabAccess;
pub use link_counters::LinkCounters;
pub use load::{CpuResult, GeneratedLoad, PrepareLoadError, ReadyLoad, TcpResult, UdpResult};
pub use load_rates::{LoadResults, LoadSample};
pub use reflector_refusals::refusal_warnings;
pub use site_reflector::{BoundService, ReflectorError, RunningService, Service};
