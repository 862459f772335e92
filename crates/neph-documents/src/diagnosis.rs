//! `neph diagnose`: the root causes that rules find in a campaign.

use neph_analysis::{Diagnoses, Diagnosis, NotEvaluated, Note};
use neph_model::{Campaign, CampaignId};
use schemars::JsonSchema;
use serde::Serialize;

use crate::version::Version;

/// The root causes of a campaign.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DiagnosesDocument {
    /// Version of this schema.
    pub schema: Version,
    /// Id of the campaign.
    pub campaign: CampaignId,
    /// Name of the campaign.
    pub name: String,
    /// Root causes, ordered by added latency.
    pub diagnoses: Vec<Diagnosis>,
    /// Observations that are no root cause.
    pub notes: Vec<Note>,
    /// Rules that were not evaluated, and why.
    pub not_evaluated: Vec<NotEvaluated>,
    /// Whether only fleets were measured: no rule applies to them.
    pub fleets_only: bool,
}

impl DiagnosesDocument {
    /// The document of these results.
    pub fn of(campaign: &Campaign, diagnoses: Diagnoses) -> Self {
        Self {
            schema: Version,
            campaign: campaign.id,
            name: campaign.name.clone(),
            diagnoses: diagnoses.causes,
            notes: diagnoses.notes,
            not_evaluated: diagnoses.not_evaluated,
            fleets_only: diagnoses.fleets_only,
        }
    }
}
