//! Provenance on the page: what is needed to doubt a result, or to repeat it.

use std::collections::BTreeSet;

use maud::{Markup, html};
use neph_model::{HostFacts, Order, Provenance};

use super::moment;
use crate::data::ExperimentData;
use crate::{CampaignData, PlotSettings};

pub(super) fn section(data: &CampaignData, settings: &PlotSettings) -> Markup {
    let campaign = &data.campaign;
    let shown: Vec<&ExperimentData> = data
        .experiments
        .iter()
        .filter(|experiment| settings.shows_block(experiment.experiment.block))
        .collect();
    let known: Vec<&Provenance> = shown.iter().filter_map(|e| e.provenance.as_ref()).collect();
    let versions: BTreeSet<String> = known
        .iter()
        .map(|p| format!("{} (commit {})", p.version, p.commit))
        .collect();
    let order = match campaign.order {
        Order::Random => "random within each block",
        Order::Sequential => "as the plan lists them",
    };
    html! {
        section {
            h2 id="provenance" { "Provenance" }
            dl {
                dt { "Plan" } dd { (campaign.plan_path) ", SHA-256 " (campaign.plan_hash) }
                dt { "Order" } dd { (order) ", seed " (campaign.seed) }
                dt { "Nephoscope" } dd { (listed(&versions)) }
                @for (count, host) in hosts(&known) { (facts(host, count)) }
            }
            details {
                summary { "Experiments, one by one" }
                (experiments(data, &shown))
            }
            details {
                summary { "The plan" }
                pre { (campaign.plan_text) }
            }
        }
    }
}

/// Different states of the host, with how many experiments each was found in.
fn hosts<'a>(known: &[&'a Provenance]) -> Vec<(usize, &'a HostFacts)> {
    let mut found: Vec<(usize, &HostFacts)> = Vec::new();
    for provenance in known {
        match found.iter_mut().find(|(_, host)| **host == provenance.host) {
            Some((count, _)) => *count += 1,
            None => found.push((1, &provenance.host)),
        }
    }
    found
}

fn facts(host: &HostFacts, experiments: usize) -> Markup {
    let pairs = |map: &std::collections::BTreeMap<String, String>| {
        let pairs: BTreeSet<String> = map.iter().map(|(k, v)| format!("{k} = {v}")).collect();
        listed(&pairs)
    };
    html! {
        dt { "Host" }
        dd { (host.host) ", " (host.cpu) ", " (host.cores) " cores (" (experiments) " experiments)" }
        dt { "Kernel" } dd { (host.kernel) }
        dt { "Clock" } dd { (host.clock_source) "; " (host.clock_sync) }
        dt { "Congestion control" } dd { (host.congestion_control.as_deref().unwrap_or("–")) }
        dt { "Offloads" } dd { (pairs(&host.offloads)) }
        dt { "Sysctls" } dd { (pairs(&host.sysctls)) }
    }
}

fn listed(items: &BTreeSet<String>) -> String {
    if items.is_empty() {
        return "–".to_owned();
    }
    items.iter().cloned().collect::<Vec<_>>().join("; ")
}

fn experiments(data: &CampaignData, shown: &[&ExperimentData]) -> Markup {
    html! {
        div.wide {
            table {
                thead {
                    tr {
                        th { "scenario" } th { "block" } th { "started" } th { "messages" }
                        th { "lost" } th { "not sent" } th { "CPU busy" } th { "stolen" } th { "lateness p99" }
                        th.words { "warnings" }
                    }
                }
                tbody { @for experiment in shown { (row(data, experiment)) } }
            }
        }
    }
}

fn row(data: &CampaignData, one: &ExperimentData) -> Markup {
    let experiment = &one.experiment;
    let warnings: Vec<String> = experiment
        .warnings
        .iter()
        .map(ToString::to_string)
        .collect();
    let load = one.provenance.as_ref().map(|p| p.load);
    let lateness = one.provenance.as_ref().and_then(|p| p.lateness_p99);
    html! {
        tr {
            td.words.label { (data.scenarios[one.scenario].label()) }
            td { (one.block()) }
            td { (moment(experiment.started)) }
            td { (experiment.tally.messages) }
            td { (experiment.tally.lost) }
            td { (experiment.tally.failed) }
            td { @if let Some(load) = load { (format!("{:.0} %", load.busy_percent)) } }
            td { @if let Some(load) = load { (format!("{:.1} %", load.steal_percent)) } }
            td { @if let Some(late) = lateness { (late) } }
            td.words { (warnings.join("; ")) }
        }
    }
}
