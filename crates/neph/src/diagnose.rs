//! `neph diagnose`: the root causes that the rules find in a campaign.

use std::io::Write;

use clap::Args as ClapArgs;
use neph_analysis::{Include, PlotSettings, diagnose, load};
use neph_model::Campaign;
use neph_report::{diagnoses_in_brief, diagnoses_in_full};
use neph_store::Store;

use crate::exit::{Failure, Outcome};
use crate::workspace::Workspace;
use crate::{format, output};
use neph_documents::diagnosis::DiagnosesDocument;
use neph_documents::{Format, rows};
use neph_store::find::{self};

/// Without a report, a run needs at most about 100 MB at its end. With more messages it does not
/// report root causes.
const MAX_AUTOMATIC_MESSAGES: u64 = 250_000;
/// Memory that diagnosis needs per message: its own part, the rules' part, and the echo.
const BYTES_PER_MESSAGE: u64 = 400;

/// Options of `neph diagnose`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Exit status: 0 rules evaluated, 1 nothing measured, 2 usage error. docs/diagnosis.md describes each rule."
)]
pub(crate) struct Args {
    /// Campaign (one run of a plan) to diagnose: its id or the beginning of it, its name, or 'last'
    #[arg(default_value = "last")]
    campaign: String,
    #[command(flatten)]
    workspace: Workspace,
    /// Evaluate only these blocks (each contains every scenario once), counted from 1, such as 1,3
    #[arg(long, value_name = "BLOCKS", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..))]
    blocks: Vec<u32>,
    /// Also evaluate experiments that were interrupted, failed or are still running
    #[arg(long)]
    everything: bool,
    /// Output format
    #[arg(long, default_value = "text", value_parser = format::one_of(format::DOCUMENT))]
    format: Format,
}

/// Reports the root causes that the rules find in a campaign.
pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let store = args.workspace.read()?;
    let campaign = find::campaign(store.as_ref(), &args.campaign)?;
    let include = if args.everything {
        Include::Everything
    } else {
        Include::Complete
    };
    let data = load(store.as_ref(), &campaign, include)?;
    let blocks = args.blocks.iter().copied().collect();
    let settings = PlotSettings {
        blocks_to_plot: (!args.blocks.is_empty()).then_some(blocks),
        ..PlotSettings::default()
    };
    let shown_experiments = data.experiments.iter();
    let shown_experiments = shown_experiments
        .filter(|experiment_data| settings.shows_block(experiment_data.experiment.block));
    if shown_experiments.count() == 0 {
        return Err(Failure::Refused(format!(
            "campaign {} has no complete experiment; --everything includes the others",
            campaign.name
        )));
    }
    let diagnoses = diagnose(&data, &settings);
    let mut out = output::data();
    match args.format {
        Format::Json => rows::write_json(&DiagnosesDocument::of(&campaign, diagnoses), &mut out)?,
        _ => write!(out, "{}", diagnoses_in_full(&diagnoses, output::width()))?,
    }
    out.flush()?;
    Ok(Outcome::Done)
}

/// The message that a campaign has too many messages for a diagnosis at the end of a run; `None` if
/// it has not.
fn too_large_message(messages: u64) -> Option<String> {
    let megabytes = messages
        .saturating_mul(BYTES_PER_MESSAGE)
        .div_ceil(1_000_000);
    (messages > MAX_AUTOMATIC_MESSAGES).then(|| {
        format!("{messages} messages are too many to diagnose automatically; to do it, with about {megabytes} MB of memory")
    })
}

/// Reports the root causes of a campaign that has just ended without a report. A campaign that is
/// too large for the memory of a run is left to `neph diagnose`.
pub(crate) fn report_after_run(
    store: &dyn Store,
    campaign: &Campaign,
    workspace: &Workspace,
) -> Result<(), Failure> {
    let experiments = store.experiments(campaign.id)?;
    let messages: u64 = experiments
        .iter()
        .map(|experiment| experiment.tally.messages)
        .sum();
    if let Some(message) = too_large_message(messages) {
        output::say(&format!(
            "neph: {message}: neph diagnose {}{}",
            campaign.id,
            workspace.option()
        ));
        return Ok(());
    }
    let data = load(store, campaign, Include::Complete)?;
    if data.experiments.is_empty() {
        return Ok(());
    }
    let diagnoses = diagnose(&data, &PlotSettings::default());
    let mut out = output::data();
    write!(out, "{}", diagnoses_in_brief(&diagnoses, output::width()))?;
    out.flush()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_run_prints_the_memory_that_a_diagnosis_needs() {
        assert_eq!(too_large_message(MAX_AUTOMATIC_MESSAGES), None);
        let message = too_large_message(10_000_000).expect("too many");
        assert!(message.contains("4000 MB"), "{message}");
    }
}
