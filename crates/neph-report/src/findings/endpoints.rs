//! Differences between endpoints, with everything else the same.

use super::compare::{Comparison, compare, median, sureness};
use super::{Finding, FindingKind, plural, real};
use crate::axis::millis;
use crate::data::Factor;
use crate::figure::{Latencies, groups};
use crate::{CampaignData, PlotSettings};

/// One sentence for each endpoint against the fastest one.
pub(super) fn findings(data: &CampaignData, settings: &PlotSettings) -> Vec<Finding> {
    let shown = data.measured(settings);
    let groups = groups(data, &shown, &Factor::Endpoint);
    let Some(fastest) = fastest(data, settings, &shown) else {
        return Vec::new();
    };
    let mut others: Vec<&str> = Vec::new();
    for index in &shown {
        let name = data.scenarios[*index].endpoint.as_str();
        if name != fastest && !others.contains(&name) {
            others.push(name);
        }
    }
    others
        .into_iter()
        .filter_map(|name| {
            let pairs: Vec<(String, Comparison)> = groups
                .iter()
                .filter_map(|group| {
                    let of = |wanted: &str| {
                        let mut members = group.members.iter().map(|(index, _)| *index);
                        members.find(|index| data.scenarios[*index].endpoint == wanted)
                    };
                    let compared = compare(data, settings, of(name)?, of(&fastest)?)?;
                    Some((group.title.clone(), compared))
                })
                .collect();
            sentence(name, &fastest, pairs)
        })
        .collect()
}

/// The endpoint whose least scenario median is the smallest.
fn fastest(data: &CampaignData, settings: &PlotSettings, shown: &[usize]) -> Option<String> {
    let medians = shown.iter().filter_map(|index| {
        let flows = data.main_flows(*index, settings);
        let mut values = Latencies::of(flows, settings.basis)
            .sorted()
            .values()
            .to_vec();
        Some((median(&mut values)?, &data.scenarios[*index].endpoint))
    });
    let least = medians.min_by(|(a, _), (b, _)| a.total_cmp(b));
    least.map(|(_, name)| name.clone())
}

fn sentence(name: &str, fastest: &str, mut pairs: Vec<(String, Comparison)>) -> Option<Finding> {
    pairs.sort_by(|(_, a), (_, b)| a.shift.total_cmp(&b.shift));
    let comparisons: Vec<Comparison> = pairs.iter().map(|(_, c)| *c).collect();
    let (least, most) = (pairs.first()?, pairs.last()?);
    let slower = comparisons.iter().filter(|c| c.shift > 0.0).count();
    let how = if pairs.len() == 1 {
        let direction = if slower == 1 { "slower" } else { "faster" };
        let mut size = least.1;
        if slower == 0 {
            size.shift = -size.shift;
            size.interval = size.interval.map(|i| neph_stats::Interval {
                low: -i.high,
                high: -i.low,
            });
        }
        format!(
            "{name} is {} {direction} than {fastest} at the median",
            size.shift_in_words()
        )
    } else {
        format!(
            "{name} is slower than {fastest} in {slower} of {}: the median shift goes from {} ({}) to {} ({})",
            plural(pairs.len(), "combination"),
            millis(least.1.shift),
            least.0,
            millis(most.1.shift),
            most.0
        )
    };
    let text = format!("{how}; {}.", sureness(&comparisons));
    let finding = Finding::new(FindingKind::StandsOut, "endpoint", text)
        .with("shift_least_ms", least.1.shift)
        .with("shift_most_ms", most.1.shift)
        .with("combinations", real(pairs.len()))
        .with("slower", real(slower))
        .with("blocks", real(least.1.blocks));
    Some(finding)
}
