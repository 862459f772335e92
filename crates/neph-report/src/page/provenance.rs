//! Provenance on the page: what is needed to doubt a result, or to repeat it.

use std::collections::BTreeSet;

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
                dt { "Nephoscope" } dd { (comma_list(&versions)) }
                @for (count, host) in hosts(&provenances) { (host_rows(host, count)) }
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

/// Different states of the host, with how many experiments each was found in.
fn hosts<'a>(provenances: &[&'a Provenance]) -> Vec<(usize, &'a HostFacts)> {
    let mut hosts: Vec<(usize, &HostFacts)> = Vec::new();
    for provenance in provenances {
        match hosts.iter_mut().find(|(_, host)| **host == provenance.host) {
            Some((count, _)) => *count += 1,
            None => hosts.push((1, &provenance.host)),
        }
    }
    hosts
}

fn host_rows(host: &HostFacts, experiments: usize) -> Markup {
    let pairs = |map: &std::collections::BTreeMap<String, String>| {
        let pairs: BTreeSet<String> = map.iter().map(|(k, v)| format!("{k} = {v}")).collect();
        comma_list(&pairs)
    };
    let count = plural(experiments, "experiment");
    let machine = match host.cores {
        0 => host.host.clone(),
        cores => format!("{}, {}, {cores} cores", host.host, host.cpu),
    };
    html! {
        dt { "Host" } dd { (machine) " (" (count) ")" }
        dt { "Kernel" } dd { (or_unknown(&host.kernel)) }
        dt { "Clock" } dd { (or_unknown(&host.clock_source)) "; " (or_unknown(&host.clock_sync)) }
        dt { "Congestion control" } dd { (host.congestion_control.as_deref().unwrap_or(UNKNOWN)) }
        dt { "Offloads" } dd { (pairs(&host.offloads)) }
        dt { "Sysctls" } dd { (pairs(&host.sysctls)) }
    }
}

fn or_unknown(text: &str) -> &str {
    if text.is_empty() { UNKNOWN } else { text }
}

fn comma_list(items: &BTreeSet<String>) -> String {
    if items.is_empty() {
        return UNKNOWN.to_owned();
    }
    items.iter().cloned().collect::<Vec<_>>().join("; ")
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
    let provenance = experiment_data.provenance.as_ref();
    let load = provenance.map(|provenance| provenance.load);
    let lateness = provenance.and_then(|provenance| provenance.lateness_p99);
    html! {
        tr {
            td.words.label { (data.label(experiment_data.scenario)) }
            td { (experiment_data.block()) }
            td { (moment(experiment.started, offset)) }
            td { (experiment.tally.messages) }
            @if data.is_imported() {
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
