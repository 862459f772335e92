//! `neph size`: how many servers or pods a rate and a latency goal need.

use neph_model::Span;
use schemars::JsonSchema;
use serde::Serialize;

use crate::version::Version;

/// The size of a service for a goal.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SizeDocument {
    /// Version of this schema.
    pub schema: Version,
    /// Requests per second.
    pub rate_per_s: f64,
    /// The goal, as written.
    pub goal: String,
    /// Mean service time of a request without waiting.
    pub service_ns: Span,
    /// Where the service time comes from: the command line, or the file of `neph load`.
    pub source: String,
    /// Servers by M/M/c that reach the goal; null if no number does.
    pub servers: Option<u32>,
    /// Response time of the goal's kind with these servers; null without them.
    pub response_ns: Option<Span>,
    /// Their utilisation, percent; null without them.
    pub utilisation_percent: Option<f64>,
    /// Effective servers of one pod (c* divided by the number of pods); null without --pods.
    pub servers_per_pod: Option<f64>,
    /// Pods that reach the goal; null without --pods.
    pub pods: Option<u32>,
    /// Error of the fitted model, percent; null for a service time of the command line.
    pub fit_error_percent: Option<f64>,
}

/// The size as text, with what it rests on.
pub fn size_text(document: &SizeDocument) -> String {
    let (rate, goal) = (document.rate_per_s, &document.goal);
    let mut text = match (document.servers, document.response_ns) {
        (Some(servers), Some(response)) => format!(
            "{servers} servers for {rate}/s and {goal}: {response} at {:.0} % utilisation\n",
            document.utilisation_percent.unwrap_or_default()
        ),
        _ => format!(
            "No number of servers up to 100,000 reaches {goal} with a service time of {}.\n",
            document.service_ns
        ),
    };
    if let (Some(pods), Some(per_pod)) = (document.pods, document.servers_per_pod) {
        text.push_str(&format!(
            "{pods} pods, if each one works as {per_pod:.2} servers (effective servers divided by pods)\n"
        ));
    }
    text.push_str(&format!(
        "Based on: service time {} ({}), random arrivals (Poisson), exponential service times, one queue, \
         first come, first served (M/M/c)",
        document.service_ns, document.source
    ));
    if let Some(error) = document.fit_error_percent {
        text.push_str(&format!(
            "; the model fits the levels with an error of {error:.1} %"
        ));
    }
    text.push_str(".\n");
    text
}
