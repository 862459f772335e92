//! Resolves a name on the command line: `last`, a campaign's name, an id, or a unique prefix of an
//! id. Computes how short a shown id may be.
//!
//! Owns the search and its errors. Prints nothing.

use std::collections::BTreeSet;

use neph_model::{Campaign, Experiment};

use crate::{Store, StoreError};

/// Name of the campaign that started last.
pub const LAST: &str = "last";
/// Minimum length of a shown id.
const MIN_SHOWN_ID_LEN: usize = 8;

/// Why the search failed.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    /// The store could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The workspace has no campaign.
    #[error(
        "the workspace holds no campaign yet; `neph run PLAN` or `neph import FOLDER` adds one"
    )]
    Empty,
    /// Several ids have this prefix.
    #[error("'{start}' begins {several} ids ({examples}); give more of it")]
    Several {
        /// The prefix.
        start: String,
        /// Number of matches.
        several: usize,
        /// Some of the matches.
        examples: String,
    },
    /// Nothing has this name.
    #[error("there is no {noun} '{name}' in this workspace; `neph list` shows what there is")]
    Unknown {
        /// What was searched.
        noun: &'static str,
        /// The name.
        name: String,
    },
}

/// Result of a search: a campaign or an experiment.
#[derive(Debug)]
pub enum Subject {
    /// A whole campaign.
    Campaign(Campaign),
    /// One experiment of a campaign.
    Experiment(Box<(Campaign, Experiment)>),
}

/// Whether the process of something with status running has ended: a live one has the workspace
/// lock.
///
/// # Errors
/// The store cannot be read.
pub fn is_cut_off(store: &dyn Store, is_running: bool) -> Result<bool, StoreError> {
    Ok(is_running && !store.is_being_written()?)
}

/// The campaign called `name`.
///
/// # Errors
/// None matches, several match the prefix, or the store cannot be read.
pub fn campaign(store: &dyn Store, name: &str) -> Result<Campaign, FindError> {
    let campaigns = store.campaigns()?;
    match find_campaign(campaigns, name)? {
        Some(campaign) => Ok(campaign),
        None => Err(unknown("campaign", name)),
    }
}

/// The experiment whose id is or begins with `id`, with its campaign: of the campaign called
/// `campaign_name`, or of any campaign.
///
/// # Errors
/// None matches, several match the prefix, or the store cannot be read.
pub fn experiment(
    store: &dyn Store,
    campaign_name: Option<&str>,
    id: &str,
) -> Result<(Campaign, Experiment), FindError> {
    let campaigns = match campaign_name {
        Some(name) => vec![campaign(store, name)?],
        None => store.campaigns()?,
    };
    match find_experiment(store, campaigns, id)? {
        Some(experiment) => Ok(experiment),
        None => Err(unknown("experiment", id)),
    }
}

/// The campaign called `name`, or else the experiment of any campaign.
///
/// # Errors
/// None matches, several match the prefix, or the store cannot be read.
pub fn subject(store: &dyn Store, name: &str) -> Result<Subject, FindError> {
    let campaigns = store.campaigns()?;
    if let Some(campaign) = find_campaign(campaigns.clone(), name)? {
        return Ok(Subject::Campaign(campaign));
    }
    match find_experiment(store, campaigns, name)? {
        Some(experiment) => Ok(Subject::Experiment(Box::new(experiment))),
        None => Err(unknown("campaign or experiment", name)),
    }
}

/// The experiment of these campaigns whose id begins with `prefix`.
fn find_experiment(
    store: &dyn Store,
    campaigns: Vec<Campaign>,
    prefix: &str,
) -> Result<Option<(Campaign, Experiment)>, FindError> {
    let mut candidates = Vec::new();
    for campaign in campaigns {
        for experiment in store.experiments(campaign.id)? {
            candidates.push((campaign.clone(), experiment));
        }
    }
    find_by_prefix(candidates, prefix, |(_, experiment)| {
        experiment.id.to_string()
    })
}

/// Length of the shortest prefixes that distinguish these ids, at least 8 characters.
pub fn short_length<I: ToString>(ids: impl IntoIterator<Item = I>) -> usize {
    let ids: BTreeSet<String> = ids.into_iter().map(|id| id.to_string()).collect();
    distinguishing_length(&ids, &ids)
}

/// Length of the shortest prefixes that identify each of these experiments in the whole workspace.
/// Prefixes are times, so a campaign and its first experiment often have a common one.
///
/// # Errors
/// The store cannot be read.
pub fn short_length_in(store: &dyn Store, experiments: &[Experiment]) -> Result<usize, StoreError> {
    let mut ids = BTreeSet::new();
    for campaign in store.campaigns()? {
        ids.insert(campaign.id.to_string());
        let campaign_experiments = store.experiments(campaign.id)?;
        ids.extend(
            campaign_experiments
                .iter()
                .map(|experiment| experiment.id.to_string()),
        );
    }
    let shown = experiments
        .iter()
        .map(|experiment| experiment.id.to_string())
        .collect();
    Ok(distinguishing_length(&shown, &ids))
}

/// Length of the shortest prefixes that distinguish each of `shown` from all others.
fn distinguishing_length(shown: &BTreeSet<String>, ids: &BTreeSet<String>) -> usize {
    let neighbours = ids.iter().zip(ids.iter().skip(1));
    neighbours
        .filter(|(id, next_id)| shown.contains(*id) || shown.contains(*next_id))
        .map(|(id, next_id)| common_prefix_len(id, next_id) + 1)
        .fold(MIN_SHOWN_ID_LEN, usize::max)
}

/// Number of bytes that both ids begin with.
fn common_prefix_len(id: &str, next_id: &str) -> usize {
    id.bytes()
        .zip(next_id.bytes())
        .take_while(|(a, b)| a == b)
        .count()
}

/// The campaign that `name` means; `campaigns` has the oldest first. Campaigns of the same plan
/// have the same name: the latest one is meant.
fn find_campaign(mut campaigns: Vec<Campaign>, name: &str) -> Result<Option<Campaign>, FindError> {
    if name == LAST {
        return match campaigns.pop() {
            Some(latest) => Ok(Some(latest)),
            None => Err(FindError::Empty),
        };
    }
    if let Some(index) = campaigns.iter().rposition(|campaign| campaign.name == name) {
        return Ok(Some(campaigns.swap_remove(index)));
    }
    find_by_prefix(campaigns, name, |campaign| campaign.id.to_string())
}

/// The one whose id begins with `start`; an error if there are several.
fn find_by_prefix<T>(
    candidates: Vec<T>,
    prefix: &str,
    id: impl Fn(&T) -> String,
) -> Result<Option<T>, FindError> {
    let prefix = prefix.to_ascii_lowercase();
    let mut matches: Vec<T> = candidates
        .into_iter()
        .filter(|candidate| !prefix.is_empty() && id(candidate).starts_with(&prefix))
        .collect();
    match matches.len() {
        0 | 1 => Ok(matches.pop()),
        match_count => {
            let examples: Vec<String> = matches.iter().take(3).map(id).collect();
            let more = if match_count > 3 { " ..." } else { "" };
            Err(FindError::Several {
                examples: examples.join(", ") + more,
                start: prefix,
                several: match_count,
            })
        }
    }
}

fn unknown(noun: &'static str, name: &str) -> FindError {
    FindError::Unknown {
        noun,
        name: name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use neph_model::{CampaignStatus, Wall};

    use super::*;

    fn campaign_named(name: &str) -> Campaign {
        Campaign {
            status: CampaignStatus::Complete,
            ..Campaign::new(name, Wall::from_unix_nanos(0))
        }
    }

    #[test]
    fn a_campaign_is_found_by_last_name_id_and_prefix() {
        let campaigns = vec![
            campaign_named("a"),
            campaign_named("b"),
            campaign_named("a"),
        ];
        let found_id = |name: &str| {
            find_campaign(campaigns.clone(), name)
                .expect("no doubt")
                .map(|campaign| campaign.id)
        };
        assert_eq!(found_id(LAST), Some(campaigns[2].id));
        assert_eq!(
            found_id("a"),
            Some(campaigns[2].id),
            "the latest of that name"
        );
        assert_eq!(found_id("b"), Some(campaigns[1].id));
        assert_eq!(
            found_id(&campaigns[0].id.to_string()),
            Some(campaigns[0].id)
        );
        let length = short_length(campaigns.iter().map(|campaign| campaign.id));
        assert_eq!(
            found_id(&campaigns[0].id.to_string()[..length]),
            Some(campaigns[0].id)
        );
        assert_eq!(found_id("nonesuch"), None);
        assert_eq!(found_id(""), None);
    }

    #[test]
    fn an_ambiguous_prefix_and_an_empty_workspace_are_errors() {
        let campaigns = vec![campaign_named("x"), campaign_named("y")];
        let start = campaigns[0].id.to_string()[..4].to_owned();
        let Err(error) = find_campaign(campaigns, &start) else {
            panic!("two ids begin alike")
        };
        assert!(error.to_string().contains("begins 2 ids"), "{error}");
        assert!(matches!(
            find_campaign(Vec::new(), LAST),
            Err(FindError::Empty)
        ));
    }
}
