//! The JSON Schema of each document, and the version of all of them.
//!
//! A test writes the schemas to docs/schema/ and fails if a file there does not match the structs.
//! A change of a document is a change of these files. If programs that read the document would
//! break, it is also a change of [`crate::version::VERSION`].

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};

use crate::version::VERSION;
use crate::{
    agents, alarm, captures, clock, diagnosis, export_rows, flows, gallery, generated_load, hops,
    interference, lab, load, media, ping, reflector, rr, store_content, throughput, trace,
};

/// A kind of document.
#[derive(Clone, Copy)]
pub struct Kind {
    /// The name of its file in docs/schema/.
    pub name: &'static str,
    /// The command that writes it.
    pub command: &'static str,
    schema: fn() -> Schema,
}

impl std::fmt::Debug for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Kind({})", self.name)
    }
}

impl Kind {
    const fn of<T: JsonSchema>(name: &'static str, command: &'static str) -> Self {
        Self {
            name,
            command,
            schema: schema_of::<T>,
        }
    }

    /// Its schema, with its version and command.
    pub fn schema(&self) -> Schema {
        let mut schema = (self.schema)();
        let id = format!("neph:schema:{VERSION}:{}", self.name);
        schema.insert("$id".to_owned(), id.into());
        schema.insert("title".to_owned(), self.command.into());
        schema
    }
}

fn schema_of<T: JsonSchema>() -> Schema {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    settings.into_generator().into_root_schema_for::<T>()
}

/// Every kind of document.
pub const KINDS: &[Kind] = &[
    Kind::of::<Vec<store_content::CampaignRow>>("list", "neph list --format json"),
    Kind::of::<Vec<store_content::ExperimentRow>>(
        "list-campaign",
        "neph list CAMPAIGN --format json",
    ),
    Kind::of::<Vec<agents::AgentRow>>("agents", "neph agents --format json"),
    Kind::of::<agents::AgentDocument>("agents-show", "neph agents show AGENT --format json"),
    Kind::of::<Vec<agents::OperatorRow>>("operators", "neph control operators --format json"),
    Kind::of::<Vec<agents::ScheduleRow>>("schedule", "neph control schedule --format json"),
    Kind::of::<Vec<agents::ScheduledRunRow>>(
        "schedule-runs",
        "neph control schedule --runs NAME --format json",
    ),
    Kind::of::<interference::InterferenceDocument>(
        "interference",
        "neph control interference --format json",
    ),
    Kind::of::<store_content::CampaignDocument>(
        "show-campaign",
        "neph show CAMPAIGN --format json",
    ),
    Kind::of::<store_content::ExperimentDocument>(
        "show-experiment",
        "neph show EXPERIMENT --format json",
    ),
    Kind::of::<Vec<store_content::TidyRow>>("tidy", "neph tidy --format json"),
    Kind::of::<diagnosis::DiagnosesDocument>("diagnose", "neph diagnose --format json"),
    Kind::of::<ping::PingDocument<'static>>("ping", "neph ping --format json"),
    Kind::of::<ping::PingLine>("ping-line", "neph ping --format ndjson"),
    Kind::of::<flows::FlowsDocument<'static>>("flows", "neph flows --format json"),
    Kind::of::<flows::FlowsEvent>(
        "flows-line",
        "neph flows --format ndjson, each line but the last",
    ),
    Kind::of::<trace::TraceDocument<'static>>("trace", "neph trace --format json"),
    Kind::of::<trace::TraceLine<'static>>("trace-line", "neph trace --format ndjson"),
    Kind::of::<captures::CapturesDocument>("read", "neph read --format json"),
    Kind::of::<captures::CaptureLine>("read-line", "neph read --format ndjson"),
    Kind::of::<captures::PeriodLine>(
        "watch-line",
        "neph watch --format ndjson, each line of a period or interface",
    ),
    Kind::of::<hops::HopsDocument<'static>>("hops", "neph hops --format json"),
    Kind::of::<hops::HopsLine>("hops-line", "neph hops --format ndjson"),
    Kind::of::<clock::ClockDocument>("clock", "neph clock --format json"),
    Kind::of::<clock::ClockLine>("clock-line", "neph clock --format ndjson"),
    Kind::of::<reflector::ReflectLine>("reflect-line", "neph reflect --format ndjson"),
    Kind::of::<Vec<lab::LabRow>>("lab-list", "neph lab list --format json"),
    Kind::of::<lab::LabStatusDocument>("lab-status", "neph lab status --format json"),
    Kind::of::<Vec<lab::StepRow>>("lab-plan", "neph lab plan --format json"),
    Kind::of::<Vec<lab::PredictionRow>>("lab-predict", "neph lab predict --format json"),
    Kind::of::<Vec<lab::VerifiedRow>>("lab-verify", "neph lab verify --format json"),
    Kind::of::<Vec<lab::RecordRow>>("lab-truth", "neph lab truth --format json"),
    Kind::of::<Vec<lab::FlowSegmentRow>>("lab-truth-flows", "neph lab truth --flows --format json"),
    Kind::of::<Vec<generated_load::CpuRow>>("stress-cpu", "neph stress cpu --format json"),
    Kind::of::<Vec<generated_load::FlowRow>>("stress-flow", "neph stress flow --format json"),
    Kind::of::<Vec<generated_load::StreamRow>>("stress-stream", "neph stress stream --format json"),
    Kind::of::<throughput::ThroughputDocument>("throughput", "neph throughput --format json"),
    Kind::of::<throughput::ThroughputLine>("throughput-line", "neph throughput --format ndjson"),
    Kind::of::<throughput::ServedLine>(
        "throughput-serve-line",
        "neph throughput serve --format ndjson",
    ),
    Kind::of::<media::MediaDocument>("media", "neph media --format json"),
    Kind::of::<media::MediaLine>("media-line", "neph media --format ndjson"),
    Kind::of::<media::ServedLine>("media-serve-line", "neph media serve --format ndjson"),
    Kind::of::<load::LoadDocument>("load", "neph load --format json"),
    Kind::of::<load::LevelsDocument>("load-levels", "neph load --levels --format json"),
    Kind::of::<load::SizeDocument>("size", "neph size --format json"),
    Kind::of::<load::LoadLine>("load-line", "neph load --format ndjson"),
    Kind::of::<rr::RrDocument>("rr", "neph rr --format json"),
    Kind::of::<rr::RrLine>("rr-line", "neph rr --format ndjson"),
    Kind::of::<Vec<gallery::EntryRow>>("gallery", "neph gallery --format json"),
    Kind::of::<export_rows::RowWithExperiment<export_rows::SampleRow>>(
        "export-samples",
        "neph export --samples --format jsonl, each line",
    ),
    Kind::of::<export_rows::RowWithExperiment<export_rows::TransferRow>>(
        "export-transfers",
        "neph export --transfers --format jsonl, each line",
    ),
    Kind::of::<export_rows::RowWithExperiment<export_rows::ChangeRow>>(
        "export-changes",
        "neph export --changes --format jsonl, each line",
    ),
    Kind::of::<export_rows::PingRow>(
        "export-pings",
        "neph export --pings --format jsonl, each line",
    ),
    Kind::of::<alarm::AlarmDocument<alarm::ExperimentReference>>(
        "alarm-run",
        "neph run --webhook, each alarm",
    ),
    Kind::of::<alarm::AlarmDocument<alarm::SegmentReference>>(
        "alarm-hops",
        "neph hops --webhook, each alarm",
    ),
    Kind::of::<alarm::AlarmDocument<alarm::RuleAlone>>(
        "alarm-watch",
        "neph watch --webhook, each alarm",
    ),
];
