//! The command line from outside: bad input, what is listed, shown, exported and imported, and
//! the edges. The program runs as its users run it.

#[path = "cli/agent_sites.rs"]
mod agent_sites;
#[path = "cli/agents.rs"]
mod agents;
#[path = "cli/agents_clocks.rs"]
mod agents_clocks;
#[path = "cli/agents_mistakes.rs"]
mod agents_mistakes;
#[path = "cli/agents_points.rs"]
mod agents_points;
#[path = "cli/agents_refused.rs"]
mod agents_refused;
#[path = "cli/agents_transfers.rs"]
mod agents_transfers;
#[path = "cli/alarms.rs"]
mod alarms;
#[path = "cli/approvals.rs"]
mod approvals;
#[path = "cli/bad_lab_entries.rs"]
mod bad_lab_entries;
#[path = "cli/broken_outputs.rs"]
mod broken_outputs;
#[path = "cli/certificate_pins.rs"]
mod certificate_pins;
#[path = "cli/changed_addresses.rs"]
mod changed_addresses;
#[path = "cli/clock_gaps.rs"]
mod clock_gaps;
#[path = "cli/clock_peers.rs"]
mod clock_peers;
#[path = "cli/clock_steps.rs"]
mod clock_steps;
#[path = "cli/clocks.rs"]
mod clocks;
#[path = "cli/cues.rs"]
mod cues;
#[path = "cli/dashboard.rs"]
mod dashboard;
#[path = "cli/diagnoses.rs"]
mod diagnoses;
#[path = "cli/dns.rs"]
mod dns;
#[path = "cli/executors.rs"]
mod executors;
#[path = "cli/explains.rs"]
mod explains;
#[path = "cli/files.rs"]
mod files;
#[path = "cli/fleets.rs"]
mod fleets;
#[path = "cli/guests.rs"]
mod guests;
#[path = "cli/hops/mod.rs"]
mod hops;
#[path = "cli/hostile_input.rs"]
mod hostile_input;
#[path = "cli/interference.rs"]
mod interference;
#[path = "cli/interrupted_labs.rs"]
mod interrupted_labs;
#[path = "cli/invalid_targets.rs"]
mod invalid_targets;
#[path = "cli/labs.rs"]
mod labs;
#[path = "cli/latency_tester.rs"]
mod latency_tester;
#[path = "cli/limits.rs"]
mod limits;
#[path = "cli/live_hops.rs"]
mod live_hops;
#[path = "cli/load_rates.rs"]
mod load_rates;
#[path = "cli/loads.rs"]
mod loads;
#[path = "cli/media.rs"]
mod media;
#[path = "cli/media_peers.rs"]
mod media_peers;
#[path = "cli/media_shared.rs"]
mod media_shared;
#[path = "cli/memory_limit.rs"]
mod memory_limit;
#[path = "cli/metrics.rs"]
mod metrics;
#[path = "cli/metrics_live.rs"]
mod metrics_live;
#[path = "cli/mqtt.rs"]
mod mqtt;
#[path = "cli/neph.rs"]
mod neph;
#[path = "cli/older_stores.rs"]
mod older_stores;
#[path = "cli/operators.rs"]
mod operators;
#[path = "cli/output_paths.rs"]
mod output_paths;
#[path = "cli/pages.rs"]
mod pages;
#[path = "cli/ping_summaries.rs"]
mod ping_summaries;
#[path = "cli/pings.rs"]
mod pings;
#[path = "cli/planned_fleets.rs"]
mod planned_fleets;
#[path = "cli/predictions.rs"]
mod predictions;
#[path = "cli/privileges.rs"]
mod privileges;
#[path = "cli/reads.rs"]
mod reads;
#[path = "cli/reads_classes.rs"]
mod reads_classes;
#[path = "cli/reads_odd_times.rs"]
mod reads_odd_times;
#[path = "cli/reads_one_direction.rs"]
mod reads_one_direction;
#[path = "cli/reads_order.rs"]
mod reads_order;
#[path = "cli/reads_silent.rs"]
mod reads_silent;
#[path = "cli/reads_tunnels.rs"]
mod reads_tunnels;
#[path = "cli/records.rs"]
mod records;
#[path = "cli/redirects.rs"]
mod redirects;
#[path = "cli/refusals.rs"]
mod refusals;
#[path = "cli/saved_fleets.rs"]
mod saved_fleets;
#[path = "cli/schedules.rs"]
mod schedules;
#[path = "cli/secrets.rs"]
mod secrets;
#[path = "cli/servers.rs"]
mod servers;
#[path = "cli/short_snaplen.rs"]
mod short_snaplen;
#[path = "cli/stalls.rs"]
mod stalls;
#[path = "cli/star_topology.rs"]
mod star_topology;
#[path = "cli/stored_campaigns.rs"]
mod stored_campaigns;
#[path = "cli/stored_times.rs"]
mod stored_times;
#[path = "cli/stresses.rs"]
mod stresses;
#[path = "cli/stresses_planned.rs"]
mod stresses_planned;
#[path = "cli/syns.rs"]
mod syns;
#[path = "cli/throughputs.rs"]
mod throughputs;
#[path = "cli/tidy.rs"]
mod tidy;
#[path = "cli/traces.rs"]
mod traces;
#[path = "cli/transactions.rs"]
mod transactions;
#[path = "cli/truncated_captures.rs"]
mod truncated_captures;
#[path = "../../neph-lab/tests/lab/undisturbed.rs"]
mod undisturbed;
#[path = "cli/usage_errors.rs"]
mod usage_errors;
#[path = "cli/users.rs"]
mod users;
#[path = "cli/verifications.rs"]
mod verifications;
#[path = "cli/watches.rs"]
mod watches;
#[path = "cli/watches_any.rs"]
mod watches_any;
#[path = "cli/watches_asked.rs"]
mod watches_asked;
#[path = "cli/watches_copied.rs"]
mod watches_copied;
#[path = "cli/watches_links.rs"]
mod watches_links;
#[path = "cli/watches_written.rs"]
mod watches_written;
