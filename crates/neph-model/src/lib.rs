//! The types of Nephoscope's terms: one noun per file.
//!
//! Owns the meaning of terms (units, identities, timestamps, the ledger, outcomes, warnings). Does
//! no input or output, reads no clock and knows no format but those that serde derives.

mod agent_name;
pub mod alarm;
mod answer;
mod arrivals;
mod authority;
mod campaign;
mod clock_offset;
mod credentials;
mod dns_question;
mod dns_reply;
mod event;
pub mod executor;
mod expected_status;
mod experiment;
mod fingerprint;
mod fleet;
mod flow;
mod flow_route;
mod host;
mod id;
mod kilometres;
mod kind;
mod known;
mod labels;
mod ledger;
mod lifetime;
mod local_fault;
mod mark;
mod masked_secret;
mod measure;
mod message;
mod minute;
mod mqtt_refusal;
mod order;
mod parameter;
mod parameter_value;
mod parameters;
mod permit;
mod ping_between;
mod provenance;
mod quantity;
mod recorder;
mod reflector;
mod request_rate;
mod result;
mod scenario;
mod scheme;
mod secret_source;
mod segment;
mod series;
mod service_model;
mod site_load;
mod sizes;
mod source_port_transfer;
mod span;
mod stage;
mod stop;
mod stress;
mod syn_answer;
mod target;
mod targets;
mod tcp_info;
mod tcp_state;
mod tcp_stats_schedule;
mod throughput;
mod time;
mod time_distribution;
mod traced_route;
mod traceroute;
mod unanswered;
mod units;
mod utc_offset;
mod version;
mod wall_course;
mod warning;

pub use agent_name::{AgentName, AgentNameError};
pub use answer::{Answer, Answers, IcmpKind, LocalFault};
pub use arrivals::{ArrivalSpacing, Arrivals, NoArrivals, RateCurve, RatePoint};
pub use authority::{InvalidTargetPart, port_number, split_authority};
pub use campaign::{BlockOrder, Campaign, CampaignStatus};
pub use clock_offset::{ClockOffset, OneWay};
pub use credentials::{Credentials, mask_credentials, without_credentials};
pub use dns_question::{DnsQuestion, DnsRecord};
pub use dns_reply::DnsReply;
pub use event::{Event, EventKind};
pub use executor::{Executor, ExecutorLost, OrderResult, Ticket, Update};
pub use expected_status::{ExpectedStatus, ParseStatusError};
pub use experiment::{Experiment, ExperimentStatus, Tally};
pub use fingerprint::{Fingerprint, InvalidFingerprint, Pins};
pub use fleet::{
    Criteria, Fleet, FleetEndpoint, FleetMessage, FleetOutcome, FleetReply,
    MAX_FLEET_MESSAGES_A_SECOND, PeerReport, ReadBy, SYNS_A_SECOND_EACH, Slot,
};
pub use flow::{Flow, FlowIndex, FlowRole};
pub use flow_route::{
    Diamond, DiamondHop, DiamondLink, DiamondNode, DiamondPath, FlowHop, FlowRoute, FlowTrace,
    MplsLabel, PathHash, TraceEnd, TraceKind, TracedFlow,
};
pub use host::{ascii_host, bare, bracketed, of_many_hosts};
pub use id::{CampaignId, ExperimentId, OrderId, ParseIdError, ScenarioId, Seq};
pub use kilometres::{Kilometres, ParseDistanceError};
pub use kind::{
    Identification, KindProperties, LONGEST_WS_PING, PathRule, ProbeKind, RequestSize, Transport,
};
pub use known::{Known, Unknown};
pub use labels::{Label, LabelError, Labels};
pub use ledger::{Entry, Ledger};
pub use lifetime::Lifetime;
pub use local_fault::failed_call;
pub use mark::{Mark, Marks, PeerMarks};
pub use masked_secret::without_secrets;
pub use measure::{
    MEDIA_PORT, Measure, MediaMeasure, ParseMeasureError, THROUGHPUT_PORT, ThroughputMeasure,
    TransactionKind, TransactionMeasure, TransferDirection, TransferTransport,
};
pub use message::{Message, Outcome};
pub use minute::Minute;
pub use mqtt_refusal::MqttRefusal;
pub use order::{
    CaptureOrder, CaptureProtocol, Captured, ClockReading, CpuThreads, EchoTo, ExperimentOrder,
    FlowTraceOrder, LoadOrder, LoadWork, Order, PacketSample, PingOrder, ReflectorOrder,
    ThroughputOrder, ThroughputServer, ThroughputTool, TraceLimits, TracerouteOrder, Traffic,
    TurnSizes,
};
pub use parameter::{Parameter, ParameterName, ParseParameterError};
pub use parameters::Parameters;
pub use permit::{
    AllowedTargets, Budgets, Forbidden, Network, ParseNetworkError, Permit, TokenBucket,
};
pub use ping_between::PingBetween;
pub use provenance::{HostFacts, Load, Provenance};
pub use quantity::{Better, Quantities, Quantity, QuantityProperties, QuantityUnit};
pub use recorder::{RecordError, Recorder};
pub use reflector::{REFLECT_PORT, ReflectorCaps, ReflectorIdentity, ReflectorSpec};
pub use request_rate::{NoRequestRate, RequestRate};
pub use result::{Ending, ExperimentResult, OrderFailed, Prepared, Progress, Records};
pub use scenario::Scenario;
pub use scheme::{SCHEMES, Scheme};
pub use secret_source::{BareSecret, SecretSource};
pub use segment::{INITIAL_WINDOW, SEGMENT};
pub use series::{CpuUse, LoadEnd, NetCount, Sample, SeriesName};
pub use service_model::{NoService, SERVICE_PORT, ServiceModel};
pub use site_load::{CpuShare, LoadSpec, LoadUnits, ParseLoadError, SiteLoad};
pub use sizes::{
    Authenticated, MIN_REPLY, StampSizes, reply_size, reply_size_in_words, sent_size, stamp_sizes,
    why_raised, why_replies_are_raised,
};
pub use source_port_transfer::{ClassTransfer, SourcePortOutcome, SourcePortTransfer};
pub use span::{ParseSpanError, Span};
pub use stage::{Stage, StageSet};
pub use stop::Stop;
pub use stress::Stress;
pub use syn_answer::SynAnswer;
pub use target::{ParseTargetError, Target};
pub use targets::Targets;
pub use tcp_info::TcpField;
pub use tcp_state::TcpState;
pub use tcp_stats_schedule::{ParseTcpStatsError, TcpStatsSchedule};
pub use throughput::{Throughput, ThroughputSecond, cross_flows};
pub use time::{Anchor, Clock, Instant, Local, Peer, Wall};
pub use time_distribution::{NoTimeDistribution, TimeDistribution};
pub use traced_route::{ChangeId, LatestRoutes, TracedChange, TracedRoute};
pub use traceroute::{Hop, RouteLength, Traceroute};
pub use unanswered::Unanswered;
pub use units::{BitRate, ByteSize, NoRate};
pub use utc_offset::{NoOffset, UtcOffset};
pub use version::{IpVersion, NoIpVersion, NoTlsVersion, TlsVersion};
pub use wall_course::{WallCourse, WallStep};
pub use warning::{Warning, WarningCode};
