//! The command line from outside: bad input, what is listed, shown, exported and imported, and
//! the edges. The program runs as its users run it.

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
#[path = "cli/cut.rs"]
mod cut;
#[path = "cli/cut_short.rs"]
mod cut_short;
#[path = "cli/dashboard.rs"]
mod dashboard;
#[path = "cli/diagnoses.rs"]
mod diagnoses;
#[path = "cli/distant.rs"]
mod distant;
#[path = "cli/dns.rs"]
mod dns;
#[path = "cli/edges.rs"]
mod edges;
#[path = "cli/executes.rs"]
mod executes;
#[path = "cli/explains.rs"]
mod explains;
#[path = "cli/files.rs"]
mod files;
#[path = "cli/fleets.rs"]
mod fleets;
#[path = "cli/follows.rs"]
mod follows;
#[path = "cli/strays.rs"]
mod foreign;
#[path = "cli/guests.rs"]
mod guests;
#[path = "cli/hops/mod.rs"]
mod hops;
#[path = "cli/interference.rs"]
mod interference;
#[path = "cli/kept.rs"]
mod kept;
#[path = "cli/kept_times.rs"]
mod kept_times;
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
#[path = "cli/media.rs"]
mod media;
#[path = "cli/media_peers.rs"]
mod media_peers;
#[path = "cli/media_shared.rs"]
mod media_shared;
#[path = "cli/metrics.rs"]
mod metrics;
#[path = "cli/metrics_live.rs"]
mod metrics_live;
#[path = "cli/moved.rs"]
mod moved;
#[path = "cli/mqtt.rs"]
mod mqtt;
#[path = "cli/neph.rs"]
mod neph;
#[path = "cli/older_stores.rs"]
mod older_stores;
#[path = "cli/operators.rs"]
mod operators;
#[path = "cli/outside.rs"]
mod outside;
#[path = "cli/pages.rs"]
mod pages;
#[path = "cli/ping_summaries.rs"]
mod ping_summaries;
#[path = "cli/pings.rs"]
mod pings;
#[path = "cli/pins.rs"]
mod pins;
#[path = "cli/places.rs"]
mod places;
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
#[path = "cli/refusals.rs"]
mod refusals;
#[path = "cli/saved_fleets.rs"]
mod saved_fleets;
#[path = "cli/scarce.rs"]
mod scarce;
#[path = "cli/schedules.rs"]
mod schedules;
#[path = "cli/secrets.rs"]
mod secrets;
#[path = "cli/servers.rs"]
mod servers;
#[path = "cli/stalls.rs"]
mod stalls;
#[path = "cli/star.rs"]
mod star;
#[path = "cli/stops.rs"]
mod stops;
#[path = "cli/stresses.rs"]
mod stresses;
#[path = "cli/stresses_planned.rs"]
mod stresses_planned;
#[path = "cli/syns.rs"]
mod syns;
#[path = "cli/throughputs.rs"]
mod throughputs;
#[path = "cli/tidies.rs"]
mod tidies;
#[path = "cli/traces.rs"]
mod traces;
#[path = "cli/transactions.rs"]
mod transactions;
#[path = "../../neph-lab/tests/lab/undisturbed.rs"]
mod undisturbed;
#[path = "cli/unread.rs"]
mod unread;
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
#[path = "cli/wrong.rs"]
mod wrong;
