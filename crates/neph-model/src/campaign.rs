//! A campaign: a plan being carried out.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{CampaignId, Wall};

/// The order of scenarios within a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BlockOrder {
    /// Shuffled anew in each block, from the campaign's seed.
    #[default]
    Random,
    /// As the plan lists them.
    Sequential,
}

/// How a campaign stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CampaignStatus {
    /// Being carried out, or cut off.
    Running,
    /// Every scenario of every block has a complete experiment.
    Complete,
    /// Stopped by ctrl-C; can go on.
    Interrupted,
    /// Some scenario failed every try.
    Incomplete,
    /// Brought in from another tool's files.
    Imported,
}

impl CampaignStatus {
    /// The word for it in the catalog.
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
    pub fn named(name: &str) -> Option<Self> {
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

/// A plan being carried out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Campaign {
    /// Its identity.
    pub id: CampaignId,
    /// Its name, from the plan.
    pub name: String,
    /// The plan's text, byte for byte.
    pub plan_text: String,
    /// SHA-256 of the plan's text, hex.
    pub plan_hash: String,
    /// Where the plan was read from.
    pub plan_path: String,
    /// The topology file of the lab that the plan asks for, byte for byte; absent without a lab.
    pub topology_text: Option<String>,
    /// SHA-256 of the topology's text, hex.
    pub topology_hash: Option<String>,
    /// Decides every shuffle.
    pub seed: u64,
    /// The order within blocks.
    pub order: BlockOrder,
    /// How many blocks.
    pub blocks: u32,
    /// How it stands.
    pub status: CampaignStatus,
    /// When it began.
    pub started: Wall,
    /// When it ended.
    pub ended: Option<Wall>,
}

impl Campaign {
    /// One that no plan asked for: running since `started`, with one block and no seed.
    pub fn begun(name: &str, started: Wall) -> Self {
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
