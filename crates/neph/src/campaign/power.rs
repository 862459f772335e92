//! `neph plan`: the number of blocks that a verdict needs.
//!
//! Owns options and output. `neph_stats` calculates the number ([`blocks_for`]).

use std::io::Write;

use clap::Args;
use neph_analysis::{Include, MIN_SHARE, blocks_to_compare, comparisons, load, spread};
use neph_campaign::Plan;
use neph_model::Scenario;
use neph_stats::{PowerTarget, blocks_for};

use super::PreviewArgs;
use crate::exit::Failure;
use crate::workspace::Workspace;
use crate::{report, value};
use neph_store::find::campaign;
use neph_text::counted::counted;

/// The probability of finding the difference (statistical power).
const POWER: f64 = 0.8;

/// The difference to find, and the spread of the data.
#[derive(Debug, Args)]
pub(crate) struct PowerArgs {
    /// Print how many blocks (each contains every scenario once) are needed to detect that medians differ by
    /// this share, such as 10%
    #[arg(long, value_name = "SHARE", value_parser = value::share)]
    effect: Option<f64>,
    /// Assumed standard deviation of a scenario's median between its experiments, as a share of the
    /// median, such as 5%
    #[arg(long, value_name = "SHARE", value_parser = value::share, requires = "effect", conflicts_with = "like")]
    spread: Option<f64>,
    /// Take the value of --spread from this earlier campaign: its id or the beginning of it, its name,
    /// or 'last'
    #[arg(long, value_name = "CAMPAIGN", requires = "effect")]
    like: Option<String>,
}

/// Prints the number of blocks that a verdict needs, if the report compares anything.
pub(super) fn print_power(
    out: &mut impl Write,
    plan: &Plan,
    scenarios: &[Scenario],
    args: &PreviewArgs,
) -> Result<(), Failure> {
    let power_args = &args.power;
    let margins = plan.compares.len();
    let family = comparisons(scenarios, margins);
    let Some(min_blocks) = blocks_to_compare(scenarios, margins) else {
        if power_args.effect.is_some() {
            return Err(Failure::usage(
                "--effect: this plan compares nothing; it takes two endpoints, or two values of a parameter",
            ));
        }
        return Ok(());
    };
    let comparison_count = counted(family as u64, "comparison");
    let verb = if family == 1 { "needs" } else { "need" };
    writeln!(
        out,
        "verdicts: {comparison_count} in the report, which {verb} at least {}",
        counted(min_blocks as u64, "block")
    )?;
    let Some(effect) = power_args.effect else {
        return Ok(());
    };
    let (spread, spread_source) = power_args.spread(&args.workspace)?;
    let target = PowerTarget {
        effect,
        margin: MIN_SHARE,
        spread,
        family,
        power: POWER,
    };
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    let blocks = blocks_for(&target).ok_or_else(|| {
        Failure::usage(format!(
            "--effect {}: differences up to {} do not matter to a report; ask for a larger one",
            percent(effect),
            percent(MIN_SHARE)
        ))
    })?;
    writeln!(
        out,
        "  a difference of {} is found with 80 % chance in {}, where medians spread by {} ({spread_source})",
        percent(effect),
        counted(blocks as u64, "block"),
        percent(spread)
    )?;
    Ok(())
}

impl PowerArgs {
    /// The spread, and its source.
    fn spread(&self, workspace: &Workspace) -> Result<(f64, String), Failure> {
        if let Some(name) = &self.like {
            let store = workspace.read()?;
            let campaign = campaign(store.as_ref(), name)?;
            let data = load(store.as_ref(), &campaign, Include::Complete)?;
            let settings = report::stored_settings(&campaign);
            let spread = spread(&data, &settings).ok_or_else(|| {
                Failure::usage(format!(
                    "--like {name}: it needs a campaign with at least two scenarios and two blocks"
                ))
            })?;
            return Ok((spread, format!("as in campaign '{}'", campaign.name)));
        }
        match self.spread {
            Some(spread) => Ok((spread, "a guess".to_owned())),
            None => Err(Failure::usage(
                "--effect needs to know how much medians spread: add --like CAMPAIGN, or a guess with --spread",
            )),
        }
    }
}
