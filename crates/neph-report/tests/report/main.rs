//! The report as a whole, over campaigns whose truth is known.

mod alarms;
mod causes;
mod checks;
mod circuits;
mod clock_times;
mod comparisons;
mod files;
mod findings;
mod fleet_captions;
mod fleet_gaps;
mod fleet_levels;
mod fleet_many;
mod fleets;
mod fleets_only;
mod hops;
mod identical;
mod labels;
mod loading;
mod loads;
mod numbers;
mod settings;
mod synthetic;
mod text_layout;
mod unanswered;
