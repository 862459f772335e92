//! Whether a block fits the period of its plan (`every`), and what would fit.

use neph_model::{Scenario, Span};
use neph_text::counted::counted;
use neph_text::{Fault, Problems};

use crate::estimate::{Estimate, estimate, to_text};
use crate::expand::scenarios;
use crate::lengths::length;
use crate::plan::Plan;
use crate::rounds::{PlanRounds, rounds};

const SECOND: i64 = 1_000_000_000;

/// Notes that a block of `plan` takes longer than `every`. Only of a plan without other mistakes.
pub fn check(plan: &Plan, problems: &Problems<'_>) {
    let Some(every) = plan
        .strict_block_interval
        .as_ref()
        .filter(|_| problems.is_empty())
    else {
        return;
    };
    let matrix = scenarios(plan);
    let cost = estimate(plan, &matrix);
    if cost.block <= every.value {
        return;
    }
    let plan_rounds = rounds(plan, &matrix);
    let message = format!(
        "a block takes {} ({} of experiments{}), which does not fit into every = {}",
        span_text(cost.block),
        counted(plan_rounds.table.rounds.len() as u64, "round"),
        checks(&cost),
        span_text(every.value)
    );
    let mut remedy = remedy(every.value, &cost, &plan_rounds, &matrix);
    if plan.agents.is_empty() {
        remedy += "; on one host experiments run one after the other";
    } else if plan_rounds.table.bound.span > every.value - cost.checks {
        let reason = &plan_rounds.table.bound.reason;
        remedy += &format!("; no other order helps, since {reason}");
    }
    problems.add(every.span.clone(), Fault::new(message, remedy));
}

/// With every digit where hours, minutes and seconds would hide what matters.
fn span_text(span: Span) -> String {
    if span < Span::from_secs(60) {
        span.exact()
    } else {
        to_text(span)
    }
}

fn checks(cost: &Estimate) -> String {
    if cost.checks == Span::ZERO {
        return String::new();
    }
    format!(", throughput checks {}", span_text(cost.checks))
}

/// What would fit: a longer period, shorter experiments, fewer of them.
fn remedy(every: Span, cost: &Estimate, plan_rounds: &PlanRounds, matrix: &[Scenario]) -> String {
    let mut remedies = vec![format!(
        "write every = \"{}\"",
        sufficient_period(cost.block)
    )];
    let room = every - cost.checks;
    let lengths: Vec<Span> = plan_rounds
        .table
        .rounds
        .iter()
        .map(|round| round.length)
        .collect();
    let count = i64::try_from(lengths.len()).unwrap_or(i64::MAX);
    let max_length = matrix.iter().map(length).max().unwrap_or(Span::ZERO);
    if matrix.iter().all(|scenario| length(scenario) == max_length) {
        // What a block takes besides: pauses and traces of flows.
        let overhead = cost.block - cost.checks - max_length.times(count);
        let seconds_each = (room - overhead).nanos() / count.max(1) / SECOND;
        if seconds_each > 0 {
            remedies.push(format!(
                "experiments of at most {} instead of {}",
                span_text(Span::from_secs(seconds_each)),
                span_text(max_length)
            ));
        }
    }
    let fitting_count = rounds_that_fit(lengths, room);
    if fitting_count > 0 {
        remedies.push(format!(
            "at most {fitting_count} of the {count} rounds: fewer endpoints, sites or values"
        ));
    }
    remedies.join(", or ")
}

/// A period that is long enough, as a plan writes it: whole minutes, or seconds below ten minutes.
fn sufficient_period(block: Span) -> String {
    let seconds = block.nanos() / SECOND + i64::from(block.nanos() % SECOND > 0);
    if seconds < 600 {
        return format!("{seconds}s");
    }
    format!("{}min", seconds / 60 + i64::from(seconds % 60 > 0))
}

/// How many rounds fit, the shortest first.
fn rounds_that_fit(mut lengths: Vec<Span>, mut room: Span) -> usize {
    lengths.sort_unstable();
    let fitting = lengths.into_iter().take_while(|length| {
        room = room - *length;
        room >= Span::ZERO
    });
    fitting.count()
}

#[cfg(test)]
mod tests {
    use neph_text::{Problem, Source};

    use super::*;
    use crate::plan::parse;

    /// Four sites, six circuits, six sizes, two minutes each: the fifth source's.
    fn mesh(every: &str) -> String {
        let names = ["ams", "bra", "lju", "mil"];
        let mut text = format!(
            "version = 1\nname = \"mesh\"\nevery = \"{every}\"\ninterval = \"1s\"\n\
             duration = \"2min\"\nrequest_size = [64, 128, 256, 512, 1024, 1400]\n"
        );
        for name in names {
            text += &format!("[[site]]\nname = \"{name}\"\nagent = \"{name}\"\n");
        }
        for (at, to) in names.iter().enumerate().skip(1) {
            let from: Vec<String> = names[..at]
                .iter()
                .map(|from| format!("\"{from}\""))
                .collect();
            text += &format!(
                "[[endpoint]]\nname = \"to {to}\"\nurl = \"udp://10.0.0.{at}\"\nat = \"{to}\"\n\
                 from = [{}]\n",
                from.join(", ")
            );
        }
        text
    }

    fn mistakes(text: &str) -> Vec<Problem> {
        let source = Source::new("p.toml", text);
        let plan = parse(&source).expect("a good plan");
        let problems = Problems::new(&source);
        check(&plan, &problems);
        problems.verdict(Some(())).err().unwrap_or_default()
    }

    #[test]
    fn a_mesh_of_72_sequential_minutes_fits_into_36() {
        assert_eq!(mistakes(&mesh("36min")).len(), 0);
        let problems = mistakes(&mesh("30min"));
        assert_eq!(problems.len(), 1);
        let text = problems[0].to_string();
        for part in [
            "p.toml:3:9",
            "a block takes 36 min 0 s (18 rounds of experiments)",
            "does not fit into every = 30 min 0 s",
            "write every = \"36min\"",
            "experiments of at most 1 min 40 s instead of 2 min 0 s",
            "at most 15 of the 18 rounds",
            "no other order helps",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn on_one_host_a_block_runs_its_experiments_sequentially() {
        let text = "version = 1\nname = \"p\"\nevery = \"1h\"\ninterval = \"1s\"\nduration = \"2min\"\n\
            request_size = [64, 128]\nresponse_size = [64, 128, 256, 512, 1024, 2048]\n\
            [[endpoint]]\nname = \"a\"\nurl = \"ws://a\"\n[[endpoint]]\nname = \"b\"\nurl = \"ws://b\"\n\
            [[endpoint]]\nname = \"c\"\nurl = \"ws://c\"\n";
        let problems = mistakes(text);
        let text = problems.first().expect("72 minutes do not fit").to_string();
        assert!(
            text.contains("a block takes 1 h 12 min (36 rounds"),
            "{text}"
        );
        assert!(text.contains("write every = \"72min\""), "{text}");
        assert!(text.contains("at most 30 of the 36 rounds"), "{text}");
    }
}
