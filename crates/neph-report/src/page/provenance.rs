//! Provenance on the page: what is needed to doubt a result, or to repeat it.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};
use neph_analysis::clock_time::moment;
use neph_analysis::data::ExperimentData;
use neph_analysis::text::plural;
use neph_analysis::{CampaignData, PlotSettings};
use neph_model::{BlockOrder, HostFacts, Provenance, UtcOffset};

/// A value that was not recorded.
const UNKNOWN: &str = "–";

pub(super) fn section(data: &CampaignData, settings: &PlotSettings) -> Markup {
    let campaign = &data.campaign;
    let shown: Vec<&ExperimentData> = data.shown(settings).collect();
    let provenances: Vec<&Provenance> = shown
        .iter()
        .filter_map(|experiment| experiment.provenance.as_ref())
        .collect();
    let versions: BTreeSet<String> = provenances
        .iter()
        .map(|p| match p.commit.as_str() {
            "" => p.version.clone(),
            commit => format!("{} (commit {commit})", p.version),
        })
        .collect();
    let order = match campaign.order {
        _ if data.is_imported() => UNKNOWN.to_owned(),
        BlockOrder::Random => format!("random within each block, seed {}", campaign.seed),
        BlockOrder::Sequential => "as the plan lists them".to_owned(),
    };
    // An import without its tool's settings has only the folder that it came from, and neph flows
    // keeps its command.
    let has_plan = !campaign.plan_text.is_empty();
    let source = match (has_plan, data.is_imported()) {
        (true, _) => "Plan",
        (false, true) => "Imported from",
        (false, false) => "Measured by",
    };
    html! {
        section {
            h2 id="provenance" { "Provenance" }
            dl {
                dt { (source) } dd {
                    (campaign.plan_path)
                    @if has_plan { ", SHA-256 " (campaign.plan_hash) }
                }
                @if let Some(hash) = &campaign.topology_hash {
                    dt { "Topology" } dd { "SHA-256 " (hash) }
                }
                @if has_plan || data.is_imported() {
                    dt { "Order of scenarios" } dd { (order) }
                }
                dt { "Nephoscope" } dd { (comma_list(versions)) }
                @for group in host_groups(provenances.iter().map(|p| &p.host)) { (host_rows(&group)) }
            }
            details {
                summary { "Experiments, one by one" }
                (experiments(data, &shown, settings.utc_offset))
            }
            @if has_plan {
                details {
                    summary { "The plan" }
                    pre { (campaign.plan_text) }
                }
            }
            @if let Some(topology) = &campaign.topology_text {
                details {
                    summary { "The lab's topology" }
                    pre { (topology) }
                }
            }
        }
    }
}

/// The maximum number of clock states that the page lists for a host.
const MAX_CLOCK_STATES: usize = 3;

/// Experiments on hosts with the same properties.
struct HostGroup<'a> {
    host: &'a HostFacts,
    experiments: usize,
    /// The estimated error of a clock is different for almost every experiment.
    clock_states: BTreeSet<&'a str>,
    /// Each endpoint's flow has its own.
    congestion_controls: BTreeSet<&'a str>,
}

impl<'a> HostGroup<'a> {
    fn of(host: &'a HostFacts) -> Self {
        Self {
            host,
            experiments: 0,
            clock_states: BTreeSet::new(),
            congestion_controls: BTreeSet::new(),
        }
    }

    /// Whether a host is equal in everything that is listed once for a group.
    fn has_same_facts(&self, host: &HostFacts) -> bool {
        let comparable = HostFacts {
            clock_sync: self.host.clock_sync.clone(),
            congestion_control: self.host.congestion_control.clone(),
            ..host.clone()
        };
        comparable == *self.host
    }

    fn add(&mut self, host: &'a HostFacts) {
        self.experiments += 1;
        self.clock_states.insert(or_unknown(&host.clock_sync));
        self.congestion_controls
            .extend(host.congestion_control.as_deref());
    }

    fn clock_states_text(&self) -> String {
        let listed: Vec<&str> = self
            .clock_states
            .iter()
            .copied()
            .take(MAX_CLOCK_STATES)
            .collect();
        let text = listed.join("; ");
        match self.clock_states.len().saturating_sub(MAX_CLOCK_STATES) {
            0 => text,
            others => format!("{text}; and {others} more"),
        }
    }
}

fn host_groups<'a>(hosts: impl IntoIterator<Item = &'a HostFacts>) -> Vec<HostGroup<'a>> {
    let mut groups: Vec<HostGroup<'a>> = Vec::new();
    for host in hosts {
        let index = groups.iter().position(|group| group.has_same_facts(host));
        let index = index.unwrap_or_else(|| {
            groups.push(HostGroup::of(host));
            groups.len() - 1
        });
        groups[index].add(host);
    }
    groups
}

fn host_rows(group: &HostGroup<'_>) -> Markup {
    let host = group.host;
    let pairs =
        |map: &BTreeMap<String, String>| comma_list(map.iter().map(|(k, v)| format!("{k} = {v}")));
    let count = plural(group.experiments, "experiment");
    let machine = match host.cores {
        0 => host.host.clone(),
        cores => format!("{}, {}, {cores} cores", host.host, host.cpu),
    };
    html! {
        dt { "Host" } dd { (machine) " (" (count) ")" }
        dt { "Kernel" } dd { (or_unknown(&host.kernel)) }
        dt { "Clock" } dd { (or_unknown(&host.clock_source)) "; " (group.clock_states_text()) }
        dt { "Congestion control" } dd { (comma_list(&group.congestion_controls)) }
        dt { "Offloads" } dd { (pairs(&host.offloads)) }
        dt { "Sysctls" } dd { (pairs(&host.sysctls)) }
    }
}

fn or_unknown(text: &str) -> &str {
    if text.is_empty() { UNKNOWN } else { text }
}

fn comma_list(items: impl IntoIterator<Item = impl ToString>) -> String {
    let items: Vec<String> = items.into_iter().map(|item| item.to_string()).collect();
    or_unknown(&items.join("; ")).to_owned()
}

/// Percent with so many digits. What was not measured is stored as no number.
fn share(percent: Option<f64>, digits: usize) -> String {
    percent.filter(|percent| percent.is_finite()).map_or_else(
        || UNKNOWN.to_owned(),
        |percent| format!("{percent:.digits$} %"),
    )
}

fn experiments(data: &CampaignData, shown: &[&ExperimentData], offset: UtcOffset) -> Markup {
    html! {
        div.wide {
            table {
                thead {
                    tr {
                        th { "scenario" } th { "block" } th { "started" } th { "messages" }
                        th { "lost" } th { "errors" } th { "not sent" } th { "CPU busy" } th { "CPU stolen by the hypervisor" } th { "send lateness, p99" }
                        th.words { "warnings" }
                    }
                }
                tbody { @for experiment in shown { (row(data, experiment, offset)) } }
            }
        }
    }
}

fn row(data: &CampaignData, experiment_data: &ExperimentData, offset: UtcOffset) -> Markup {
    let experiment = &experiment_data.experiment;
    let warnings: Vec<String> = experiment
        .warnings
        .iter()
        .map(ToString::to_string)
        .collect();
    let is_transfer = data.scenarios[experiment_data.scenario]
        .measure()
        .is_transfer();
    let provenance = experiment_data.provenance.as_ref();
    let load = provenance.and_then(|provenance| provenance.load);
    let lateness = provenance.and_then(|provenance| provenance.lateness_p99);
    html! {
        tr {
            td.words.label { (data.label(experiment_data.scenario)) }
            td { (experiment_data.block()) }
            td { (moment(experiment.started, offset)) }
            td {
                @if is_transfer { (UNKNOWN) } @else { (experiment.tally.messages) }
            }
            @if data.is_imported() || is_transfer {
                td { (UNKNOWN) } td { (UNKNOWN) } td { (UNKNOWN) }
            } @else {
                td { (experiment.tally.lost) }
                td { (experiment.tally.errors) }
                td { (experiment.tally.failed) }
            }
            td { (share(load.map(|load| load.busy_percent), 0)) }
            td { (share(load.map(|load| load.steal_percent), 1)) }
            td { (lateness.map_or_else(|| UNKNOWN.to_owned(), |lateness| lateness.to_string())) }
            td.words { (warnings.join("; ")) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str, clock_sync: &str, congestion_control: Option<&str>) -> HostFacts {
        HostFacts {
            host: name.to_owned(),
            clock_sync: clock_sync.to_owned(),
            congestion_control: congestion_control.map(str::to_owned),
            ..HostFacts::default()
        }
    }

    #[test]
    fn host_groups_ignore_the_clock_error() {
        let errors = ["error 5 us", "error 7 us", "error 6 us", "error 9 us"];
        let mut hosts: Vec<HostFacts> = errors.map(|error| host("a", error, Some("cubic"))).into();
        hosts.push(host("b", "error 5 us", None));
        let groups = host_groups(&hosts);
        assert_eq!(groups.len(), 2);
        assert_eq!((groups[0].experiments, groups[1].experiments), (4, 1));
        assert_eq!(
            groups[0].clock_states_text(),
            "error 5 us; error 6 us; error 7 us; and 1 more"
        );
        assert_eq!(comma_list(&groups[0].congestion_controls), "cubic");
        assert_eq!(comma_list(&groups[1].congestion_controls), UNKNOWN);
    }
}
