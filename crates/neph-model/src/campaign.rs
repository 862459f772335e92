//! A campaign: one execution of a plan.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{CampaignId, Wall};

/// The order of scenarios within a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BlockOrder {
    /// Shuffled in each block, with the campaign's seed.
    #[default]
    Random,
    /// The order of the plan.
    Sequential,
}

/// The status of a campaign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CampaignStatus {
    /// In progress, or ended by a crash and not yet resumed.
    Running,
    /// Every scenario of every block has a complete experiment.
    Complete,
    /// Interrupted by ctrl-C; can be resumed.
    Interrupted,
    /// A scenario failed in every attempt.
    Incomplete,
    /// Imported from files of another tool.
    Imported,
}

impl CampaignStatus {
    /// The name in the catalog.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Complete => "complete",
            Self::Interrupted => "interrupted",
            Self::Incomplete => "incomplete",
            Self::Imported => "imported",
        }
    }
    /// The status of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        [
            Self::Running,
            Self::Complete,
            Self::Interrupted,
            Self::Incomplete,
            Self::Imported,
        ]
        .into_iter()
        .find(|status| status.name() == name)
    }
}

/// One execution of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Campaign {
    /// Id of the campaign.
    pub id: CampaignId,
    /// Name of the campaign, from the plan.
    pub name: String,
    /// Text of the plan, byte for byte; empty without a plan.
    pub plan_text: String,
    /// SHA-256 of the plan's text, hexadecimal; empty without a plan.
    pub plan_hash: String,
    /// Path of the plan file; empty without a plan.
    pub plan_path: String,
    /// Text of the lab's topology file, byte for byte; null without a lab.
    pub topology_text: Option<String>,
    /// SHA-256 of the topology's text, hexadecimal; null without a lab.
    pub topology_hash: Option<String>,
    /// Seed of all shuffles.
    pub seed: u64,
    /// Order of scenarios within a block.
    pub order: BlockOrder,
    /// Number of blocks.
    pub blocks: u32,
    /// Status of the campaign.
    pub status: CampaignStatus,
    /// Start time, Unix nanoseconds.
    pub started: Wall,
    /// End time, Unix nanoseconds; null until it ends.
    pub ended: Option<Wall>,
}

impl Campaign {
    /// A campaign without a plan: running since `started`, with one block and no seed.
    pub fn new(name: &str, started: Wall) -> Self {
        Self {
            id: CampaignId::new(),
            name: name.to_owned(),
            plan_text: String::new(),
            plan_hash: String::new(),
            plan_path: String::new(),
            topology_text: None,
            topology_hash: None,
            seed: 0,
            order: BlockOrder::Sequential,
            blocks: 1,
            status: CampaignStatus::Running,
            started,
            ended: None,
        }
    }
}
