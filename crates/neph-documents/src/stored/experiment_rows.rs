//! The tables and facts of an experiment's document.

use neph_model::{Quantity, Span, UtcOffset, Wall, Warning};

use super::campaign::ended;
use super::lists::{block, share};
use crate::cell::OrDash;
use crate::when;

crate::rows! {
    /// What an experiment is.
    pub struct ExperimentFacts {
        /// The id.
        id: String => left "id",
        /// The campaign's id.
        campaign: String => left "campaign" by |row| format!("{} ({})", row.campaign_name, row.campaign),
        /// The scenario's label.
        scenario: String => left "scenario",
        /// The scenario's id.
        scenario_id: String => left "scenario id",
        /// The block, from 0.
        block: u32 => left "block" by |row| block(row.block),
        /// The place in the block, from 0.
        position: u32 => left "place in block",
        /// The attempt, from 1.
        attempt: u32 => left "try",
        /// `running`, `complete`, `interrupted` or `failed`.
        status: String => left "status",
        /// When it began, Unix time in nanoseconds.
        started_unix_ns: Wall => left "started" by |row| when::at(row.started_unix_ns, row.offset),
        /// When it ended, Unix time in nanoseconds.
        ended_unix_ns: Option<Wall> => left "ended" by |row| ended(row.ended_unix_ns, row.offset),
        /// Why it failed or was interrupted.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String> => left "reason" by |row| row.reason.clone().unwrap_or_default(),
        ; shown
        /// The campaign's name.
        campaign_name: String,
        /// The time zone of times.
        offset: UtcOffset,
    }
}

crate::rows! {
    /// How messages ended.
    pub struct TallyFacts {
        /// All that were or should have been sent.
        messages: u64 => left "messages",
        /// Those with the expected reply.
        replies: u64 => left "replies" by |row| row.of(row.replies),
        /// Those with another answer.
        errors: u64 => left "errors" by |row| row.of(row.errors),
        /// Those without a reply in time.
        lost: u64 => left "lost" by |row| row.of(row.lost),
        /// Those that could not be sent.
        failed: u64 => left "not sent" by |row| row.of(row.failed),
        /// Duplicate replies.
        duplicates: u64 => left "duplicates" by |row| row.of(row.duplicates),
        /// Replies that arrived out of order.
        reordered: u64 => left "reordered" by |row| row.of(row.reordered),
        /// Replies after the message was counted as lost.
        late: u64 => left "late replies" by |row| row.of(row.late),
    }
}

crate::rows! {
    /// What is kept of the messages of an experiment that a retention policy has reduced.
    pub struct ReducedFacts {
        /// When its messages were replaced by a histogram of response times for each minute.
        at_unix_ns: Wall => left "messages removed" by |row| crate::when::utc(row.at_unix_ns),
        /// When these histograms were removed too; `null` while they are there.
        minutes_removed_unix_ns: Option<Wall> => left "histograms removed" by |row| {
            row.minutes_removed_unix_ns.map_or_else(String::new, crate::when::utc)
        },
        /// How many minutes of the main flow have a histogram.
        minutes: u64 => right "minutes",
        /// The shortest response time; of a fleet, round trip of the network.
        min_ns: Option<Span> => left "min" by |row| shown(row.min_ns),
        /// The median, from all histograms together, to one part in 512; `null` where it lies among the lost messages or
        /// there are too few messages, as for those below.
        p50_ns: Option<Span> => left "p50" by |row| shown(row.p50_ns),
        /// 90 % are below it.
        p90_ns: Option<Span> => left "p90" by |row| shown(row.p90_ns),
        /// 99 % are below it.
        p99_ns: Option<Span> => left "p99" by |row| shown(row.p99_ns),
        /// The longest.
        max_ns: Option<Span> => left "max" by |row| shown(row.max_ns),
    }
}

fn shown(time: Option<Span>) -> String {
    time.map_or_else(|| "-".to_owned(), |time| time.to_string())
}

impl TallyFacts {
    fn of(&self, count: u64) -> String {
        format!("{count} ({})", share(count, self.messages))
    }
}

crate::rows! {
    /// What a transfer came to.
    pub struct QuantityRow {
        /// The quantity, with its unit.
        quantity: Quantity => left "QUANTITY" by |row| row.quantity.facts().title.to_owned(),
        /// The value, in that unit.
        value: f64 => right "VALUE" by |row| row.quantity.in_words(row.value),
    }
}

crate::rows! {
    /// A fleet of flows.
    pub struct FleetFacts {
        /// How many flows it has at a time.
        slots: u32 => left "flows",
        /// The kind of probe.
        probe: &'static str => left "probe",
        /// The interval between a flow's messages in nanoseconds.
        interval_ns: Span => left "interval" by |row| row.interval_ns.exact(),
        /// After which time a flow is replaced by a new one, in nanoseconds.
        flow_lifetime_ns: Option<Span> => left "lifetime" by |row| {
            row.flow_lifetime_ns.or_dash(Span::exact)
        },
        /// When a path change is detected.
        criteria: String => left "change criteria",
        /// The endpoints, with their addresses.
        endpoints: Vec<String>,
    }
}

crate::rows! {
    /// A flow of an experiment.
    pub struct FlowRow {
        /// The flow, from 0; 0 is the main one.
        flow: u32 => right "FLOW",
        /// `main`, `companion` or `ping_destination`.
        role: &'static str => left "ROLE",
        /// The kind of probe.
        probe: &'static str => left "PROBE",
        /// The endpoint's or ping destination's name.
        name: String => left "NAME",
        /// The local address.
        source: Option<String> => left "SOURCE",
        /// The peer's address.
        target: Option<String> => left "TARGET",
        /// Whether the peer is a neph reflector.
        reflector: bool => left "PEER" by |row| {
            if row.reflector { "neph reflector" } else { "not ours" }.to_owned()
        },
        /// Whether both ends have one clock.
        same_clock: bool => left "CLOCK" by |row| {
            if row.same_clock { "the same" } else { "its own" }.to_owned()
        },
    }
}

crate::rows! {
    /// A warning.
    pub struct WarningRow {
        /// The warning with its values.
        flag: Warning => left "FLAG" by |row| row.flag.to_string(),
        /// What to do.
        advice: String => left "ADVICE",
    }
}

crate::rows! {
    /// An event.
    pub struct EventRow {
        /// Nanoseconds since the experiment's start.
        at_ns: Span => right "AT",
        /// The flow, from 0.
        flow: u32 => right "FLOW",
        /// What happened.
        kind: &'static str => left "EVENT",
        /// The same in words, with details.
        text: String => left "IN WORDS",
    }
}

crate::rows! {
    /// A series of samples.
    pub struct SeriesRow {
        /// Its name, with the unit.
        series: String => left "SERIES",
        /// How many samples.
        count: u64 => right "SAMPLES",
        /// The lowest value.
        min: f64 => right "LEAST" by |row| format!("{:.1}", row.min),
        /// The highest value.
        max: f64 => right "MOST" by |row| format!("{:.1}", row.max),
        /// Each sample: nanoseconds since the experiment's start, and the value.
        values: Vec<(i64, f64)>,
    }
}

crate::rows! {
    /// Where and how an experiment was measured.
    pub struct ProvenanceFacts {
        /// Version and commit of neph.
        neph: String => left "neph",
        /// SHA-256 of the plan, in hex.
        plan_hash: Option<String> => left "plan SHA-256",
        /// The site or network namespace.
        site: Option<String> => left "namespace",
        /// The host's name.
        host: Option<String> => left "host",
        /// The kernel's version.
        kernel: Option<String> => left "kernel",
        /// The CPU.
        cpu: Option<String> => left "CPU",
        /// The kernel's clock source.
        clock_source: Option<String> => left "clock source",
        /// How the clock is synchronised.
        clock_sync: Option<String> => left "clock",
        /// The congestion control of TCP.
        congestion_control: Option<String> => left "congestion control",
        /// The median lateness of sends in nanoseconds.
        lateness_p50_ns: Option<Span> => left "lateness p50",
        /// The 99th percentile of the lateness of sends in nanoseconds.
        lateness_p99_ns: Option<Span> => left "lateness p99",
        /// CPU time that was not idle, in percent.
        busy_percent: Option<f64> => left "CPU busy" by |row| percent(row.busy_percent),
        /// CPU time that the hypervisor gave to others, in percent.
        steal_percent: Option<f64> => left "CPU stolen" by |row| percent(row.steal_percent),
        /// The load average over a minute.
        load_average: Option<f64> => left "load average" by |row| {
            row.load_average.or_dash(|load| format!("{load:.2}"))
        },
    }
}

fn percent(value: Option<f64>) -> String {
    value.or_dash(|value| format!("{value:.1} %"))
}
