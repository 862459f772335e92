//! Carries out an entry: writes its files into the gallery's folder, runs an ordinary campaign, and
//! evaluates the findings.

use std::fs;
use std::path::PathBuf;
use std::{io, iter};

use neph_analysis::gallery::{Entry, EntryFile, EntryResult, Side, all_statements};
use neph_analysis::{Include, load};
use neph_campaign::{Plan, plan};
use neph_model::{Campaign, CampaignStatus};
use neph_text::Source;

use crate::approval::Approval;
use crate::campaign::{self, Settings};
use crate::exit::{Failure, Outcome};
use crate::metrics::MetricsArgs;
use crate::operator::ControllerArgs;
use crate::report;
use crate::shipped::write_unless_changed;
use crate::workspace::Workspace;

/// A topology by the name of its file.
type Topology = (&'static str, Source);

/// The folder of the gallery: one folder per entry, one workspace for all.
#[derive(Debug)]
pub(super) struct Gallery {
    pub(super) folder: PathBuf,
    pub(super) quiet: bool,
    pub(super) approval: Approval,
}

/// The result of carrying out an entry.
#[derive(Debug)]
pub(super) enum RunResult {
    /// Everything was measured.
    Complete(Box<EntryResult>),
    /// Ctrl-C, or experiments failed: nothing can be compared with the expected values.
    Incomplete(Outcome),
}

impl Gallery {
    fn workspace(&self) -> Workspace {
        Workspace {
            location: self.folder.display().to_string(),
        }
    }

    /// Measures an entry, even if it has a stored result.
    pub(super) fn run(&self, entry: &'static Entry, side: Side) -> Result<RunResult, Failure> {
        let (plan, _) = self.write_files(entry, side)?;
        let settings = Settings {
            controller: ControllerArgs::default(),
            workspace: self.workspace(),
            quiet: self.quiet,
            no_report: false,
            is_silent: false,
            acknowledge: None,
            webhook: None,
            metrics: MetricsArgs::default(),
            approval: self.approval.clone(),
        };
        let outcome = campaign::carry_out(&campaign::parse_plan(plan)?, None, None, &settings)?;
        if outcome != Outcome::Done {
            return Ok(RunResult::Incomplete(outcome));
        }
        let result = self.stored_result(entry, side)?;
        Ok(
            result.map_or(RunResult::Incomplete(Outcome::Nothing), |entry_result| {
                RunResult::Complete(Box::new(entry_result))
            }),
        )
    }

    /// The plan in the entry's folder, and its topologies by file name, the lab's first; written if
    /// missing.
    fn write_files(&self, entry: &Entry, side: Side) -> Result<(Source, Vec<Topology>), Failure> {
        let folder = self.folder.join(entry.name);
        let write_file =
            |file: &EntryFile| write_unless_changed(&folder.join(file.file), &file.text);
        let [plan, lab] = entry.plan_and_topology(side);
        let topologies = iter::once(lab).chain(entry.season_topologies());
        let topologies = || -> io::Result<Vec<Topology>> {
            topologies
                .map(|file| Ok((file.file, write_file(&file)?)))
                .collect()
        };
        fs::create_dir_all(&folder)
            .and_then(|()| Ok((write_file(&plan)?, topologies()?)))
            .map_err(|error| {
                let folder = folder.display();
                Failure::refused(format!("write the gallery's entry into {folder}: {error}"))
            })
    }

    /// The result of the last complete campaign of an entry, if its plan and topology are the same.
    pub(super) fn stored_result(
        &self,
        entry: &'static Entry,
        side: Side,
    ) -> Result<Option<EntryResult>, Failure> {
        if !self.folder.join("catalog.sqlite").exists() {
            return Ok(None);
        }
        let (source, topologies) = self.write_files(entry, side)?;
        // A plan with mistakes had no campaign.
        let Ok(plan) = plan::read(&source) else {
            return Ok(None);
        };
        let store = self.workspace().open_existing()?;
        let campaigns = store.campaigns()?;
        let is_current = |campaign: &&Campaign| {
            campaign.status == CampaignStatus::Complete
                && campaign.plan_text == source.text()
                && had_topologies(campaign, &plan, &topologies)
        };
        let Some(campaign) = campaigns.iter().rev().find(is_current) else {
            return Ok(None);
        };
        let data = load(store.as_ref(), campaign, Include::Complete)?;
        let statements = all_statements(&data, &report::stored_settings(campaign));
        Ok(Some(EntryResult {
            entry,
            side,
            statements,
            is_disturbed: EntryResult::is_disturbed_in(&data),
            figure: self.figure(entry, campaign),
            seconds: seconds(campaign),
        }))
    }

    /// The first page of the entry's figure in its campaign's report.
    fn figure(&self, entry: &Entry, campaign: &Campaign) -> Option<PathBuf> {
        let figures = report::report_folder(&self.workspace(), campaign).join("figures");
        let pages = ["", "-1"].map(|page| figures.join(format!("{}{page}.png", entry.figure)));
        pages.into_iter().find(|page| page.exists())
    }
}

/// Whether a campaign of this plan had the current topologies of the plan.
fn had_topologies(campaign: &Campaign, plan: &Plan, current_topologies: &[Topology]) -> bool {
    plan.topologies().into_iter().all(|topology| {
        let current = current_topologies
            .iter()
            .find(|(file, _)| *file == topology.value);
        let stored_text = campaign::stored_topology_text(campaign, &topology.value);
        current.is_none_or(|(_, text)| stored_text == Some(text.text()))
    })
}

#[expect(clippy::cast_precision_loss, reason = "nanoseconds of a few minutes")]
fn seconds(campaign: &Campaign) -> f64 {
    let ended = campaign.ended.unwrap_or(campaign.started);
    (ended.unix_nanos() - campaign.started.unix_nanos()) as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use neph_model::Wall;

    use super::*;

    /// Whether a campaign that kept the topology `kept` counts for an entry with two topologies now.
    fn is_current(plan_text: &str, stored: &str) -> bool {
        let plan = plan::parse(&Source::new("plan.toml", plan_text)).expect("a good plan");
        let campaign = Campaign {
            plan_text: plan_text.to_owned(),
            topology_text: Some(stored.to_owned()),
            ..Campaign::new("c", Wall::from_unix_nanos(0))
        };
        let current_topologies = [("lab.toml", "low"), ("high.lab.toml", "high")];
        let current_topologies =
            current_topologies.map(|(file, text)| (file, Source::new(file, text)));
        had_topologies(&campaign, &plan, &current_topologies)
    }

    #[test]
    fn a_campaign_counts_if_its_topologies_match_regardless_of_notation() {
        let plan = |topology: &str| {
            format!(
                "version = 1\nname = \"p\"\ninterval = \"1s\"\nmessages = 10\n\
                 # \"high.lab.toml\" is for another plan\n\
                 [[endpoint]]\nname = \"e\"\nurl = \"udp://10.0.0.2:1\"\n\
                 [lab]\ntopology = {topology}\nprober = \"a\"\n"
            )
        };
        for topology in ["\"lab.toml\"", "'lab.toml'"] {
            assert!(is_current(&plan(topology), "low"), "{topology}");
            assert!(!is_current(&plan(topology), "other"), "{topology}");
        }
        assert!(
            is_current(&plan("'mine.toml'"), "other"),
            "it is not the entry's"
        );
    }
}
