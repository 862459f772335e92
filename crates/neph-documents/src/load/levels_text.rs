//! Levels of a load as text.

use crate::cell::{Cell, OrDash};
use crate::rows;

use super::levels::{LevelsDocument, ModelDocument, RunRow};

/// A run as a line, when it has ended.
pub fn run_line(row: &RunRow) -> String {
    let block = row.block + 1;
    let workers = row.workers;
    let (rate, mean) = (row.responses_per_s, row.mean_ns.cell());
    format!("block {block}, workers {workers}: {rate:.1} responses/s, mean response time {mean}")
}

/// The levels, the knee, the models and the times at shares of the capacity.
pub fn levels_text(document: &LevelsDocument) -> String {
    let mut text = format!("\n{}", rows::text(&document.levels));
    text.push_str(&knee_text(document));
    if !document.models.is_empty() {
        text.push_str("\nModels, the best one first (error: root mean square of the residuals):\n");
    }
    for model in &document.models {
        text.push_str(&format!("  {}\n", model_text(model)));
    }
    if !document.at_capacity.is_empty() {
        text.push_str(&format!("\n{}", rows::text(&document.at_capacity)));
    }
    text
}

fn knee_text(document: &LevelsDocument) -> String {
    let Some(knee) = document.knee else {
        return "\nNo knee: give at least three levels with responses, and one with few workers.\n"
            .to_owned();
    };
    if !knee.is_reached {
        return format!(
            "\nNo knee up to {} workers: the rate still rises, or its plateau is too short. Add higher \
             levels.\n",
            document
                .levels
                .last()
                .or_dash(|level| level.workers.to_string())
        );
    }
    let interval = match (knee.low, knee.high) {
        (Some(low), Some(high)) => format!("95 % interval {low:.1} to {high:.1}"),
        _ => "an interval needs three blocks".to_owned(),
    };
    format!(
        "\nKnee: {:.1} workers ({interval}); capacity {:.1} responses/s\n",
        knee.workers, knee.capacity_per_s
    )
}

fn model_text(model: &ModelDocument) -> String {
    let error = model.error_percent;
    let number = |value: Option<f64>| value.or_dash(|value| value.to_string());
    match model.model {
        "scalability" => format!(
            "universal scalability law: {} responses/s of one worker, contention {}, coherency {}; error \
             {error:.2} %",
            number(model.single_per_s),
            number(model.contention),
            number(model.coherency),
        ),
        name => {
            let title = if name == "queue" {
                "M/M/c//N"
            } else {
                "asymptotes"
            };
            let (service, servers) = (model.service_ns.cell(), number(model.servers));
            format!(
                "{title}: service time {service}, {servers} effective servers (c*); error {error:.2} %"
            )
        }
    }
}
