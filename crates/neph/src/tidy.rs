//! `neph tidy`: applies a retention policy to a workspace.

use std::io::Write;
use std::path::PathBuf;

use clap::Args as ClapArgs;
use neph_campaign::retention::{
    DueReduction, ReductionKind, Retention, carry_out_reduction, due_reductions,
};
use neph_documents::Format;
use neph_documents::rows;
use neph_documents::store_content::TidyRow;
use neph_model::{Campaign, Span, Wall};
use neph_store::Store;
use neph_sys::clock;
use neph_text::counted::counted;

use crate::exit::{Failure, Outcome};
use crate::workspace::Workspace;
use crate::{format, interrupt, output, value};

/// Retention times.
#[derive(Clone, Copy, Debug, ClapArgs)]
pub(crate) struct RetentionArgs {
    /// Keep messages for this time after the end of their experiment, such as 30d or forever. After
    /// it, neph keeps only histograms per minute
    #[arg(long, value_name = "TIME", default_value = "30d", value_parser = parse_retention_time)]
    keep_messages: RetentionTime,
    /// Keep histograms per minute for this time after the end of their experiment, such as 365d or
    /// forever. After it, neph keeps only counts
    #[arg(long, value_name = "TIME", default_value = "365d", value_parser = parse_retention_time)]
    keep_minutes: RetentionTime,
}

/// A retention time; `None` for forever.
#[derive(Clone, Copy, Debug)]
struct RetentionTime(Option<Span>);

fn parse_retention_time(text: &str) -> Result<RetentionTime, String> {
    if text == "forever" {
        return Ok(RetentionTime(None));
    }
    let span = value::positive_span(text);
    span.map(|span| RetentionTime(Some(span)))
        .map_err(|error| format!("{error}, or forever"))
}

impl RetentionArgs {
    fn retention(self) -> Retention {
        Retention {
            messages: self.keep_messages.0,
            minutes: self.keep_minutes.0,
        }
    }

    /// These options as arguments of another process.
    pub(crate) fn arguments(self) -> [String; 4] {
        let text = |retention_time: RetentionTime| {
            retention_time.0.map_or_else(
                || "forever".to_owned(),
                |span| format!("{}ms", span.nanos() / 1_000_000),
            )
        };
        [
            "--keep-messages".to_owned(),
            text(self.keep_messages),
            "--keep-minutes".to_owned(),
            text(self.keep_minutes),
        ]
    }
}

/// Options of `neph tidy`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    #[command(flatten)]
    retention: RetentionArgs,
    /// List what neph tidy would remove, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Tidy only the campaigns that ran this plan file; write the same path as for `neph run`
    #[arg(long, value_name = "FILE")]
    plan: Option<PathBuf>,
    #[command(flatten)]
    workspace: Workspace,
    /// Output format
    #[arg(long, default_value = "text", value_parser = format::one_of(format::ALL))]
    format: Format,
}

/// Tidies a workspace.
pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let stop = interrupt::stop_on_ctrl_c()?;
    let now = Wall::from_unix_nanos(clock::wall().0);
    // A missing workspace is not created.
    let existing_store = args.workspace.open_existing()?;
    let mut store = if args.dry_run {
        existing_store
    } else {
        drop(existing_store);
        let mut store = args.workspace.write()?;
        store.recover()?;
        store
    };
    let mut rows = Vec::new();
    for campaign in select_campaigns(store.as_ref(), args)? {
        let retention = args.retention.retention();
        for reduction in due_reductions(store.as_ref(), &campaign, retention, now)? {
            if stop.is_set() {
                break;
            }
            if !args.dry_run {
                carry_out_reduction(store.as_mut(), &reduction, now)?;
            }
            rows.push(build_row(&campaign, &reduction));
        }
    }
    let mut out = output::data();
    rows::write(&rows, args.format, &mut out)?;
    out.flush()?;
    output::say(&summary(&rows, args.dry_run));
    if stop.is_set() {
        return Ok(Outcome::Interrupted);
    }
    Ok(Outcome::Done)
}

fn select_campaigns(store: &dyn Store, args: &Args) -> Result<Vec<Campaign>, Failure> {
    let mut campaigns = store.campaigns()?;
    if let Some(plan) = &args.plan {
        let plan = plan.display().to_string();
        campaigns.retain(|campaign| campaign.plan_path == plan);
    }
    Ok(campaigns)
}

fn build_row(campaign: &Campaign, reduction: &DueReduction) -> TidyRow {
    let experiment = &reduction.experiment;
    TidyRow {
        experiment: experiment.id,
        campaign: campaign.name.clone(),
        ended_unix_ns: experiment.ended,
        messages: experiment.tally.messages,
        action: match reduction.kind {
            ReductionKind::Messages => "messages to minutes",
            ReductionKind::Minutes => "minutes removed",
        },
    }
}

fn summary(rows: &[TidyRow], is_dry_run: bool) -> String {
    let count_action = |action: &str| rows.iter().filter(|row| row.action == action).count() as u64;
    let (messages, minutes) = (
        count_action("messages to minutes"),
        count_action("minutes removed"),
    );
    let [replaced_text, removed_text] = if is_dry_run {
        ["would be replaced", "would be removed"]
    } else {
        ["were replaced", "were removed"]
    };
    format!(
        "neph tidy: the messages of {} {replaced_text} by a histogram for each minute; the histograms of {} {removed_text}",
        counted(messages, "experiment"),
        counted(minutes, "experiment")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retention_arguments_parse_to_the_same_times() {
        for (text, span) in [("30d", Some(Span::from_secs(2_592_000))), ("forever", None)] {
            let args = RetentionArgs {
                keep_messages: parse_retention_time(text).expect("a length"),
                keep_minutes: parse_retention_time("1h").expect("a length"),
            };
            let parsed = parse_retention_time(&args.arguments()[1]).expect("it reads back");
            assert_eq!(parsed.0, span);
        }
        assert!(parse_retention_time("never").is_err());
    }
}
