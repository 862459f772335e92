//! Media streams of several sites are one measurement: they share their server.

use neph_model::{Ending, ExperimentResult, Measure, OrderFailed, Scenario};

use crate::agenda::AgendaSlot;
use crate::flow_sets::groups;
use crate::plan::Plan;

/// Where the streams of one site did not run, those of the others had the server for themselves: all of the
/// set have failed, and are tried once more together.
pub(super) fn fail_incomplete_sets(
    plan: &Plan,
    matrix: &[Scenario],
    slots: &[AgendaSlot],
    results: &mut [Result<ExperimentResult, OrderFailed>],
) {
    let scenario = |slot: &AgendaSlot| &matrix[slot.scenario as usize];
    let is_media = |slot: &AgendaSlot| matches!(scenario(slot).measure(), Measure::Media(_));
    if !slots.iter().any(is_media) {
        return;
    }
    let groups = groups(plan, matrix);
    let group = |slot: &AgendaSlot| groups[slot.scenario as usize];
    let failed: Vec<(u32, &str, bool)> = slots
        .iter()
        .zip(&*results)
        .filter(|(slot, result)| is_media(slot) && !is_complete(result))
        .map(|(slot, result)| {
            let endpoint = scenario(slot).endpoint.as_str();
            (group(slot), endpoint, is_interrupted(result))
        })
        .collect();
    for (slot, result) in slots.iter().zip(results) {
        let cause = failed
            .iter()
            .find(|(failed_group, ..)| *failed_group == group(slot));
        if let (Ok(result), Some((_, endpoint, was_interrupted))) = (result, cause)
            && result.ending == Ending::Complete
        {
            let reason = format!(
                "the streams of '{endpoint}' failed, so these had a larger share of the link"
            );
            result.ending = if *was_interrupted {
                Ending::Interrupted
            } else {
                Ending::Failed(reason)
            };
        }
    }
}

fn is_complete(result: &Result<ExperimentResult, OrderFailed>) -> bool {
    result
        .as_ref()
        .is_ok_and(|result| result.ending == Ending::Complete)
}

fn is_interrupted(result: &Result<ExperimentResult, OrderFailed>) -> bool {
    result
        .as_ref()
        .is_ok_and(|result| result.ending == Ending::Interrupted)
}

#[cfg(test)]
mod tests {
    use neph_model::Wall;
    use neph_text::Source;

    use super::*;
    use crate::expand::scenarios;
    use crate::plan::parse;

    #[test]
    fn media_streams_fail_if_those_of_the_other_site_fail() {
        let plan_text = "version = 1\nname = \"p\"\nduration = \"10s\"\nmeasure = [\"media\", \"tcp throughput\"]\n\
            [[endpoint]]\nname = \"a\"\nurl = \"udp://10.0.0.1\"\n\
            [[endpoint]]\nname = \"b\"\nurl = \"udp://10.0.0.2\"\n";
        let plan = parse(&Source::new("p.toml", plan_text)).expect("a good plan");
        let matrix = scenarios(&plan);
        let slots: Vec<AgendaSlot> = (0..4)
            .map(|scenario| AgendaSlot {
                block: 0,
                scenario,
                position: 0,
                attempt: 0,
                is_first_of_block: false,
            })
            .collect();
        let end_time = Wall::from_unix_nanos(0);
        let result_with = |ending| Ok(ExperimentResult::of_end(ending, end_time, Vec::new()));
        let lost = Ending::Failed("no packet came".to_owned());
        let mut results = [
            result_with(Ending::Complete),
            result_with(Ending::Complete),
            result_with(lost),
            result_with(Ending::Complete),
        ];
        fail_incomplete_sets(&plan, &matrix, &slots, &mut results);
        let complete: Vec<bool> = results.iter().map(is_complete).collect();
        // Media of a and of b; throughput of both stands.
        assert_eq!(complete, [false, true, false, true]);
        let mut results = [
            result_with(Ending::Complete),
            result_with(Ending::Complete),
            result_with(Ending::Interrupted),
            result_with(Ending::Complete),
        ];
        fail_incomplete_sets(&plan, &matrix, &slots, &mut results);
        assert!(is_interrupted(&results[0]) && is_complete(&results[1]));
    }
}
