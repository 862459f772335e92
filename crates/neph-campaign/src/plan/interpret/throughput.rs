//! The throughput check, and whose servers it asks.

use neph_model::{ThroughputServer, ThroughputTool};
use neph_text::{Fault, Problems, Spanned};

use super::super::model::{Endpoint, ThroughputPlan};
use super::super::sections::TypedThroughput;

/// Without servers of its own, neph's transfer goes to each endpoint's reflector once.
pub(super) fn interpret_throughput(
    typed: TypedThroughput,
    endpoints: &[Endpoint],
    problems: &Problems<'_>,
) -> Option<ThroughputPlan> {
    let mut servers = typed.servers;
    if servers.is_empty() && typed.tool == ThroughputTool::Neph {
        for endpoint in endpoints.iter().filter(|e| e.target.kind().has_ports()) {
            let target = &endpoint.target;
            let port = target.port();
            if servers
                .iter()
                .any(|other| other.value.host == target.host() && other.value.port == port)
            {
                continue;
            }
            servers.push(Spanned {
                value: ThroughputServer {
                    name: endpoint.name.clone(),
                    host: target.host().to_owned(),
                    port,
                },
                span: endpoint.address_span.clone(),
            });
        }
    }
    if servers.is_empty() {
        if problems.is_empty() {
            let message = "the throughput check has no server";
            let fault = Fault::new(message, "add server = \"host:port\", or enabled = false");
            problems.add(typed.span, fault);
        }
        return None;
    }
    Some(ThroughputPlan {
        duration: typed.duration,
        tool: typed.tool,
        servers,
    })
}
