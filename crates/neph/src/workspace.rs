//! Which workspace is meant, and which campaign or experiment in it.
//!
//! Owns the `--workspace` option and the ways to name what was measured: `last`, an id, the
//! beginning of an id that fits only one, or a campaign's name. Shows nothing itself.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::PathBuf;

use clap::Args;
use neph_model::{Campaign, Experiment};
use neph_store::{Access, Store, StoreError, open};

use crate::exit::Failure;

/// What stands for the campaign that was begun last.
pub(crate) const LAST: &str = "last";
/// Ids are shown with at least this many characters.
const SHORTEST: usize = 8;

/// Names the workspace of whoever names none.
const VARIABLE: &str = "NEPH_WORKSPACE";
const USUAL: &str = ".neph";

/// Where measurements are kept.
#[derive(Clone, Debug, Args)]
pub(crate) struct Workspace {
    /// Folder (or store URL) that measurements are kept in
    #[arg(
        long = "workspace",
        value_name = "FOLDER",
        env = VARIABLE,
        default_value = USUAL
    )]
    pub(crate) place: String,
}

impl Workspace {
    /// Whether this very command named it: neither the environment nor nobody.
    pub(crate) fn is_asked_for(&self) -> bool {
        let usual = std::env::var(VARIABLE);
        self.place != usual.as_deref().unwrap_or(USUAL)
    }

    /// The folder for files beside the store, such as reports.
    pub(crate) fn folder(&self) -> PathBuf {
        let folder = self.place.strip_prefix("file:").unwrap_or(&self.place);
        PathBuf::from(folder)
    }

    /// Opens it to look at what is there.
    pub(crate) fn read(&self) -> Result<Box<dyn Store>, Failure> {
        self.open(Access::Read)
    }
    /// Opens it to add something; makes it where there is none.
    pub(crate) fn write(&self) -> Result<Box<dyn Store>, Failure> {
        self.open(Access::Write)
    }
    /// Opens it to go on with what is there: brings an older one up to date, makes none.
    pub(crate) fn existing(&self) -> Result<Box<dyn Store>, Failure> {
        match open(&self.place, Access::Read) {
            Err(StoreError::OlderSchema { .. }) => self.write(),
            opened => opened.map_err(refused),
        }
    }
    fn open(&self, access: Access) -> Result<Box<dyn Store>, Failure> {
        open(&self.place, access).map_err(refused)
    }
}

fn refused(error: StoreError) -> Failure {
    match &error {
        StoreError::NoWorkspace { .. } => Failure::usage(format!(
            "{error}; --workspace FOLDER or NEPH_WORKSPACE names another"
        )),
        StoreError::UnknownScheme { .. } => Failure::usage(error),
        StoreError::File {
            operation, source, ..
        } if *operation == "make the folder" || source.kind() == ErrorKind::PermissionDenied => {
            Failure::usage(format!(
                "{error}; --workspace FOLDER or NEPH_WORKSPACE names a folder that you may write into"
            ))
        }
        _ => Failure::refused(error),
    }
}

/// What a name on the command line means.
#[derive(Debug)]
pub(crate) enum Subject {
    /// A whole campaign.
    Campaign(Campaign),
    /// One experiment of a campaign.
    Experiment(Box<(Campaign, Experiment)>),
}

/// Whether what is said to be running was cut off: whoever runs something holds the workspace, and
/// nobody could say it after a kill -9.
pub(crate) fn is_cut_off(store: &dyn Store, is_running: bool) -> Result<bool, Failure> {
    Ok(is_running && !store.is_being_written().map_err(Failure::refused)?)
}

/// The campaign called `name`.
pub(crate) fn campaign(store: &dyn Store, name: &str) -> Result<Campaign, Failure> {
    let campaigns = store.campaigns().map_err(Failure::refused)?;
    match pick(campaigns, name)? {
        Some(campaign) => Ok(campaign),
        None => Err(unknown("campaign", name)),
    }
}

/// The experiment of `campaign` whose id is or begins with `name`.
pub(crate) fn experiment(
    store: &dyn Store,
    campaign: &Campaign,
    name: &str,
) -> Result<Experiment, Failure> {
    let experiments = store.experiments(campaign.id).map_err(Failure::refused)?;
    match only(experiments, name, |one| one.id.to_string())? {
        Some(experiment) => Ok(experiment),
        None => Err(unknown("experiment", name)),
    }
}

/// The campaign called `name`, or else the experiment of any campaign.
pub(crate) fn subject(store: &dyn Store, name: &str) -> Result<Subject, Failure> {
    let campaigns = store.campaigns().map_err(Failure::refused)?;
    if let Some(campaign) = pick(campaigns.clone(), name)? {
        return Ok(Subject::Campaign(campaign));
    }
    let mut all = Vec::new();
    for campaign in campaigns {
        for experiment in store.experiments(campaign.id).map_err(Failure::refused)? {
            all.push((campaign.clone(), experiment));
        }
    }
    match only(all, name, |(_, experiment)| experiment.id.to_string())? {
        Some(found) => Ok(Subject::Experiment(Box::new(found))),
        None => Err(unknown("campaign or experiment", name)),
    }
}

/// The shortest beginning that tells these ids apart, as long as [`SHORTEST`] at least.
pub(crate) fn short_length<I: ToString>(ids: impl IntoIterator<Item = I>) -> usize {
    let ids: BTreeSet<String> = ids.into_iter().map(|id| id.to_string()).collect();
    length_among(&ids, &ids)
}

/// The shortest beginning by which each of these experiments is found in the whole workspace.
/// Beginnings of ids are times: a campaign and its first experiment often begin alike.
pub(crate) fn short_length_in(
    store: &dyn Store,
    experiments: &[Experiment],
) -> Result<usize, Failure> {
    let mut all = BTreeSet::new();
    for campaign in store.campaigns().map_err(Failure::refused)? {
        all.insert(campaign.id.to_string());
        let others = store.experiments(campaign.id).map_err(Failure::refused)?;
        all.extend(others.iter().map(|one| one.id.to_string()));
    }
    let shown = experiments.iter().map(|one| one.id.to_string()).collect();
    Ok(length_among(&shown, &all))
}

/// The shortest beginning that tells each of `shown` from all others.
fn length_among(shown: &BTreeSet<String>, all: &BTreeSet<String>) -> usize {
    let neighbours = all.iter().zip(all.iter().skip(1));
    neighbours
        .filter(|(a, b)| shown.contains(*a) || shown.contains(*b))
        .map(|(a, b)| a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count() + 1)
        .fold(SHORTEST, usize::max)
}

/// The campaign that `name` means; campaigns come oldest first. Of several with the same name the
/// latest is meant: a plan that is run again keeps its name.
fn pick(mut campaigns: Vec<Campaign>, name: &str) -> Result<Option<Campaign>, Failure> {
    if name == LAST {
        return match campaigns.pop() {
            Some(last) => Ok(Some(last)),
            None => Err(Failure::usage(
                "the workspace holds no campaign yet; `neph run PLAN` or `neph import FOLDER` adds one",
            )),
        };
    }
    if let Some(named) = campaigns.iter().rposition(|one| one.name == name) {
        return Ok(Some(campaigns.swap_remove(named)));
    }
    only(campaigns, name, |campaign| campaign.id.to_string())
}

/// The one whose id begins with `start`; a mistake if there are several.
fn only<T>(all: Vec<T>, start: &str, id: impl Fn(&T) -> String) -> Result<Option<T>, Failure> {
    let start = start.to_ascii_lowercase();
    let mut fitting: Vec<T> = all
        .into_iter()
        .filter(|one| !start.is_empty() && id(one).starts_with(&start))
        .collect();
    match fitting.len() {
        0 | 1 => Ok(fitting.pop()),
        several => {
            let examples: Vec<String> = fitting.iter().take(3).map(id).collect();
            Err(Failure::usage(format!(
                "'{start}' begins {several} ids ({}{}); give more of it",
                examples.join(", "),
                if several > 3 { " ..." } else { "" }
            )))
        }
    }
}

fn unknown(noun: &str, name: &str) -> Failure {
    Failure::usage(format!(
        "there is no {noun} '{name}' in this workspace; `neph list` shows what there is"
    ))
}

#[cfg(test)]
mod tests {
    use neph_model::{CampaignStatus, Wall};

    use super::*;

    fn named(name: &str) -> Campaign {
        Campaign {
            status: CampaignStatus::Complete,
            ..Campaign::begun(name, Wall::from_unix_nanos(0))
        }
    }

    #[test]
    fn a_campaign_is_found_by_last_name_id_and_beginning() {
        let all = vec![named("a"), named("b"), named("a")];
        let found = |name: &str| pick(all.clone(), name).expect("no doubt").map(|one| one.id);
        assert_eq!(found(LAST), Some(all[2].id));
        assert_eq!(found("a"), Some(all[2].id), "the latest of that name");
        assert_eq!(found("b"), Some(all[1].id));
        assert_eq!(found(&all[0].id.to_string()), Some(all[0].id));
        let length = short_length(all.iter().map(|one| one.id));
        assert_eq!(found(&all[0].id.to_string()[..length]), Some(all[0].id));
        assert_eq!(found("nonesuch"), None);
        assert_eq!(found(""), None);
    }

    #[test]
    fn an_ambiguous_beginning_and_an_empty_workspace_are_mistakes() {
        let all = vec![named("x"), named("y")];
        let start = all[0].id.to_string()[..4].to_owned();
        let Err(Failure::Usage(sentence)) = pick(all, &start) else {
            panic!("two ids begin alike")
        };
        assert!(sentence.contains("begins 2 ids"), "{sentence}");
        assert!(matches!(pick(Vec::new(), LAST), Err(Failure::Usage(_))));
    }
}
