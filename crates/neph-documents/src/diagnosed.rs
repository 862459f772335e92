//! `neph diagnose`: root causes that the rules find in a campaign.

use neph_analysis::{Diagnoses, Diagnosis, NotEvaluated, Note};
use neph_model::{Campaign, CampaignId};
use schemars::JsonSchema;
use serde::Serialize;

use crate::version::Version;

/// The root causes of a campaign.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DiagnosesDocument {
    /// The version of these keys.
    pub schema: Version,
    /// The campaign's id.
    pub campaign: CampaignId,
    /// Its name.
    pub name: String,
    /// Root causes, ordered by added latency.
    pub diagnoses: Vec<Diagnosis>,
    /// What is no cause and worth knowing.
    pub notes: Vec<Note>,
    /// Rules that were not evaluated, and why.
    pub not_evaluated: Vec<NotEvaluated>,
    /// Only fleets were measured: no rule is about them.
    pub fleets_only: bool,
}

impl DiagnosesDocument {
    /// Of what the rules found.
    pub fn of(campaign: &Campaign, found: Diagnoses) -> Self {
        Self {
            schema: Version,
            campaign: campaign.id,
            name: campaign.name.clone(),
            diagnoses: found.causes,
            notes: found.notes,
            not_evaluated: found.not_evaluated,
            fleets_only: found.fleets_only,
        }
    }
}
