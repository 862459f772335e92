//! The tables and facts of an experiment's document.

use neph_model::{Span, UtcOffset, Wall, Warning};

use super::campaign::ended_text;
use super::lists::{one_based, share};
use crate::cell::OrDash;
use crate::p50::P50;
use crate::wall_time;

crate::rows! {
    /// Facts about an experiment.
    pub struct ExperimentFacts {
        /// Id of the experiment.
        id: String => left "id",
        /// Id of the campaign.
        campaign: String => left "campaign" by |row| format!("{} ({})", row.campaign_name, row.campaign),
        /// Label of the scenario.
        scenario: String => left "scenario",
        /// Id of the scenario.
        scenario_id: String => left "scenario id",
        /// The block, from 0.
        block: u32 => left "block" by |row| one_based(row.block),
        /// Position in the block, from 0.
        position: u32 => left "place in block" by |row| one_based(row.position),
        /// Number of earlier attempts of the scenario in the block: 0 for the first attempt.
        attempt: u32 => left "try" by |row| one_based(row.attempt),
        /// Status: `running`, `complete`, `interrupted` or `failed`.
        status: String => left "status",
        /// When it began.
        started_unix_ns: Wall => left "started" by |row| {
            wall_time::local_text(row.started_unix_ns, row.offset)
        },
        /// When it ended; null until then.
        ended_unix_ns: Option<Wall> => left "ended" by |row| ended_text(row.ended_unix_ns, row.offset),
        /// Why it failed or was interrupted; null otherwise.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String> => left "reason" by |row| row.reason.clone().unwrap_or_default(),
        ; shown
        /// Name of the campaign.
        campaign_name: String,
        /// Time zone in which times are shown.
        offset: UtcOffset,
    }
}

crate::rows! {
    /// The outcomes of messages.
    pub struct TallyFacts {
        /// All messages of the schedule until the end.
        messages: u64 => left "messages",
        /// Messages with the expected reply.
        replies: u64 => left "replies" by |row| row.with_share(row.replies),
        /// Messages with an unexpected answer.
        errors: u64 => left "errors" by |row| row.with_share(row.errors),
        /// Messages without a reply in time.
        lost: u64 => left "lost" by |row| row.with_share(row.lost),
        /// Messages that could not be sent.
        failed: u64 => left "not sent" by |row| row.with_share(row.failed),
        /// Duplicate replies.
        duplicates: u64 => left "duplicates" by |row| row.with_share(row.duplicates),
        /// Replies that arrived after the reply to a later message.
        reordered: u64 => left "reordered" by |row| row.with_share(row.reordered),
        /// Replies that arrived after their message was counted as lost.
        late: u64 => left "late replies" by |row| row.with_share(row.late),
        /// Median response time, of a fleet median RTT; lost messages count as slower than all others. null
        /// if they decide it, or with too few messages.
        response_p50_ns: Option<Span> => left "p50" by |row| row.p50.to_string(),
        ; shown
        /// The median, or why there is none.
        p50: P50,
    }
}

crate::rows! {
    /// The distribution that remains of messages that a retention policy removed.
    pub struct ReducedFacts {
        /// When a histogram of response times for each minute replaced the messages.
        at_unix_ns: Wall => left "messages removed" by |row| crate::wall_time::utc(row.at_unix_ns),
        /// When these histograms were removed too; null while they are stored.
        minutes_removed_unix_ns: Option<Wall> => left "histograms removed" by |row| {
            row.minutes_removed_unix_ns.map_or_else(String::new, crate::wall_time::utc)
        },
        /// Number of minutes of the main flow with a histogram.
        minutes: u64 => right "minutes",
        /// Minimum response time, for a fleet minimum network round trip; null without a reply.
        min_ns: Option<Span> => left "min" by |row| time_text(row.min_ns),
        /// Median of all histograms together, within one part in 512; null if it lies among lost
        /// messages, or with too few messages.
        p50_ns: Option<Span> => left "p50" by |row| time_text(row.p50_ns),
        /// 90th percentile; null like `p50_ns`.
        p90_ns: Option<Span> => left "p90" by |row| time_text(row.p90_ns),
        /// 99th percentile; null like `p50_ns`.
        p99_ns: Option<Span> => left "p99" by |row| time_text(row.p99_ns),
        /// Maximum; null without a reply.
        max_ns: Option<Span> => left "max" by |row| time_text(row.max_ns),
    }
}

fn time_text(time: Option<Span>) -> String {
    time.map_or_else(|| "-".to_owned(), |time| time.to_string())
}

impl TallyFacts {
    fn with_share(&self, count: u64) -> String {
        format!("{count} ({})", share(count, self.messages))
    }
}

crate::rows! {
    /// Facts about a fleet.
    pub struct FleetFacts {
        /// Number of concurrent flows.
        slots: u32 => left "flows",
        /// Kind of probe.
        probe: &'static str => left "probe",
        /// Time between two messages of a flow.
        interval_ns: Span => left "interval" by |row| row.interval_ns.exact(),
        /// Lifetime after which a flow is replaced by a new one; null if flows are not replaced.
        flow_lifetime_ns: Option<Span> => left "lifetime" by |row| {
            row.flow_lifetime_ns.or_dash(Span::exact)
        },
        /// Criteria for path changes.
        criteria: String => left "change criteria",
        /// The endpoints, with their addresses.
        endpoints: Vec<String>,
    }
}

crate::rows! {
    /// A flow of an experiment.
    pub struct FlowRow {
        /// Index of the flow, from 0; 0 is the main flow.
        flow: u32 => right "FLOW",
        /// Role: `main`, `companion` or `ping_destination`.
        role: &'static str => left "ROLE",
        /// Kind of probe.
        probe: &'static str => left "PROBE",
        /// Name of the endpoint or ping destination.
        name: String => left "NAME",
        /// Local address and port; null if not known.
        source: Option<String> => left "SOURCE",
        /// Address and port of the peer; null if not known.
        target: Option<String> => left "TARGET",
        /// Whether the peer is a neph reflector.
        reflector: bool => left "PEER" by |row| {
            if row.reflector { "neph reflector" } else { "not ours" }.to_owned()
        },
        /// Whether both sides read the same clock.
        same_clock: bool => left "CLOCK" by |row| {
            if row.same_clock { "the same" } else { "its own" }.to_owned()
        },
    }
}

crate::rows! {
    /// A warning.
    pub struct WarningRow {
        /// The warning with its values.
        warning: Warning => left "WARNING" by |row| row.warning.to_string(),
        /// Remedy.
        advice: String => left "ADVICE",
    }
}

crate::rows! {
    /// An event.
    pub struct EventRow {
        /// Time since the experiment's start.
        at_ns: Span => right "AT",
        /// Index of the flow, from 0.
        flow: u32 => right "FLOW",
        /// Kind of event.
        kind: &'static str => left "EVENT",
        /// Description with details.
        text: String => left "IN WORDS",
    }
}

crate::rows! {
    /// A series of samples.
    pub struct SeriesRow {
        /// Name of the series, with its unit.
        series: String => left "SERIES",
        /// Number of samples.
        count: u64 => right "SAMPLES",
        /// The lowest value.
        min: f64 => right "MIN" by |row| format!("{:.1}", row.min),
        /// The highest value.
        max: f64 => right "MAX" by |row| format!("{:.1}", row.max),
        /// Samples: nanoseconds since the experiment's start, and the value.
        values: Vec<(i64, f64)>,
    }
}

crate::rows! {
    /// Where and how an experiment was measured.
    pub struct ProvenanceFacts {
        /// Version and commit of neph.
        neph: String => left "neph",
        /// SHA-256 of the plan, hexadecimal; null without a plan.
        plan_hash: Option<String> => left "plan SHA-256",
        /// Lab site or network namespace; null for the host itself.
        site: Option<String> => left "site",
        /// Name of the host.
        host: Option<String> => left "host",
        /// Kernel release and version.
        kernel: Option<String> => left "kernel",
        /// CPU model and number of cores.
        cpu: Option<String> => left "CPU",
        /// Current clock source of the kernel.
        clock_source: Option<String> => left "clock source",
        /// Synchronisation of the clock, with its estimated error.
        clock_sync: Option<String> => left "clock",
        /// TCP congestion control; null without TCP.
        congestion_control: Option<String> => left "congestion control",
        /// Median lateness; null if no message was sent.
        lateness_p50_ns: Option<Span> => left "lateness p50",
        /// 99th percentile of lateness; null if no message was sent.
        lateness_p99_ns: Option<Span> => left "lateness p99",
        /// CPU time that was not idle; null if not known.
        busy_percent: Option<f64> => left "CPU busy" by |row| percent(row.busy_percent),
        /// CPU time that the hypervisor gave to other guests; null if not known.
        steal_percent: Option<f64> => left "CPU stolen" by |row| percent(row.steal_percent),
        /// Load average over one minute; null if not known.
        load_average: Option<f64> => left "load average" by |row| {
            row.load_average.or_dash(|load| format!("{load:.2}"))
        },
    }
}

fn percent(value: Option<f64>) -> String {
    value.or_dash(|value| format!("{value:.1} %"))
}
