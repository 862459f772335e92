//! `neph stress flow`: cross traffic on TCP, bulk or request and reply.

use std::num::NonZeroU16;

use clap::Args as ClapArgs;
use neph_agent::TcpResult;
use neph_documents::generated_load::FlowRow;
use neph_load::{Carried, rate_of};
use neph_model::{BitRate, ByteSize, LoadOrder, LoadWork, Span, TurnSizes, cross_flows};
use neph_text::counted::counted;

use super::load_report::{LoadReportOptions, write_rows};
use super::load_target::{self, MaxRate};
use crate::exit::{Failure, Outcome};
use crate::privileges::UserChoice;
use crate::{format, output, value};
use neph_documents::Format;

/// Options of `neph stress flow`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "TARGET: host[:port] where neph reflect runs (default port 8080).\n\
Exit status: 0 all flows completed, 1 a flow was refused, broke or got no more replies, 2 usage error, 130 interrupted by ctrl-C (prints the results so far)."
)]
pub(super) struct Args {
    /// Host where `neph reflect` receives the traffic: host[:port], default port 8080
    target: String,
    /// Maximum bit rate of all connections together, requests and replies together; the value 'max' means
    /// as fast as TCP allows
    #[arg(long, value_name = "RATE", default_value = "10Mbit/s", value_parser = load_target::parse_max_rate)]
    rate: MaxRate,
    /// Number of TCP connections, 1 to 256
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u16).range(1..=i64::from(LoadWork::MAX_CONNECTIONS)))]
    flows: u16,
    /// Send one request at a time and receive a reply of this size (up to 16MiB), instead of bulk data
    #[arg(long, value_name = "SIZE", value_parser = value::size)]
    reply: Option<ByteSize>,
    /// Size of each request, up to 16MiB (with --reply)
    #[arg(long, value_name = "SIZE", value_parser = value::size, default_value = "64", requires = "reply")]
    request: ByteSize,
    /// Capacity of the bottleneck link, from which neph estimates how many other bulk flows share it
    /// (needs --rate max)
    #[arg(long, value_name = "RATE", value_parser = load_target::parse_rate, conflicts_with = "reply")]
    capacity: Option<BitRate>,
    /// Generate the load for this time, such as 30s or 5min
    #[arg(short = 'w', long, value_name = "TIME", default_value = "1min",
          value_parser = value::positive_span)]
    duration: Span,
    /// Print a line on standard error as soon as the load runs, so that a measurement can start
    #[arg(long)]
    announce: bool,
    /// Output format
    #[arg(long, default_value = "text", value_parser = format::one_of(format::ALL))]
    format: Format,
    #[command(flatten)]
    pub(super) user: UserChoice,
}

impl Args {
    /// The options as an order.
    pub(super) fn order(&self) -> Result<LoadOrder, Failure> {
        if let (Some(_), Some(rate)) = (self.capacity, self.rate.0) {
            return Err(Failure::Usage(format!(
                "--capacity needs --rate max: flows limited to {rate} do not show the share of others"
            )));
        }
        let target = load_target::parse_target(&self.target)?;
        let request_reply_sizes = self.reply.map(|reply| TurnSizes {
            request: self.request,
            reply,
        });
        if request_reply_sizes
            .is_some_and(|sizes| sizes.request.max(sizes.reply) > TurnSizes::LARGEST)
        {
            let reason = "--request and --reply are 16MiB at most";
            return Err(Failure::usage(reason));
        }
        Ok(LoadOrder {
            work: LoadWork::Flow {
                to: target,
                rate: self.rate.0,
                connections: NonZeroU16::new(self.flows).unwrap_or(NonZeroU16::MIN),
                request_reply_sizes,
            },
            duration: self.duration,
        })
    }

    pub(super) const fn report_options(&self) -> LoadReportOptions {
        LoadReportOptions {
            format: self.format,
            announce: self.announce,
            capacity: self.capacity,
        }
    }
}

/// Reports the results.
pub(super) fn show(
    tcp_result: TcpResult,
    report_options: &LoadReportOptions,
    is_stopped: impl Fn() -> bool,
) -> Result<Outcome, Failure> {
    let TcpResult {
        address,
        rate,
        connections,
    } = tcp_result;
    // If no flow started, a table of zeros is useless; a JSON document is still written.
    let is_reported =
        report_options.format != Format::Text || connections.iter().any(Result::is_ok);
    let mut is_complete = true;
    let mut carried_flows = Vec::with_capacity(connections.len());
    for (index, flow) in connections.into_iter().enumerate() {
        let flow = flow.unwrap_or_else(|reason| Carried {
            broken: Some(reason),
            ..Carried::default()
        });
        if let Some(reason) = &flow.broken {
            is_complete = false;
            let flow = index + 1;
            output::say(&format!("neph stress: flow {flow} to {address}: {reason}"));
        }
        carried_flows.push(flow);
    }
    if is_reported {
        write_rows(&FlowRow::all(&carried_flows, rate), report_options.format)?;
    }
    if let Some(capacity) = report_options.capacity {
        output::say(&cross_flows_message(capacity, &carried_flows));
    }
    Ok(match (is_stopped(), is_complete) {
        (true, _) => Outcome::Interrupted,
        (false, true) => Outcome::Done,
        (false, false) => Outcome::Nothing,
    })
}

/// Estimates the number of other flows, assuming that all flows have equal rates.
fn cross_flows_message(capacity: BitRate, carried_flows: &[Carried]) -> String {
    if carried_flows.iter().any(|flow| flow.broken.is_some()) {
        return format!(
            "neph stress: cross flows on a link of {capacity} unknown: not all own flows completed"
        );
    }
    let rates = carried_flows
        .iter()
        .map(|flow| rate_of(flow.received_in_time, flow.lasted));
    let total: u64 = rates.map(BitRate::bits_per_second).sum();
    let (flows, mean) = (
        carried_flows.len() as u64,
        BitRate(total / (carried_flows.len() as u64).max(1)),
    );
    // For one flow, the result is the number of other flows; it includes these flows.
    let other_count =
        cross_flows(capacity, mean).and_then(|others| (others + 1).checked_sub(flows));
    match other_count {
        Some(count) => format!(
            "neph stress: cross flows on a link of {capacity} of which a flow has {mean}: {count}"
        ),
        None if total == 0 => {
            format!("neph stress: cross flows on a link of {capacity} unknown: nothing was carried")
        }
        None => format!(
            "neph stress: cross flows on a link of {capacity} unknown: {} of {mean} carried more than its capacity",
            counted(flows, "flow")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_flows_are_not_among_the_cross_flows() {
        let flow = |received_in_time| Carried {
            received_in_time,
            lasted: Span::from_secs(1),
            ..Carried::default()
        };
        let message_of =
            |carried_flows: &[Carried]| cross_flows_message(BitRate(8_000), carried_flows);
        assert!(message_of(&[flow(240)]).ends_with(": 3"));
        assert!(message_of(&[flow(240), flow(240)]).ends_with(": 2"));
        assert!(message_of(&[flow(0)]).ends_with("unknown: nothing was carried"));
        let expected = "unknown: 2 flows of 4.80 kbit/s carried more than its capacity";
        assert!(message_of(&[flow(600), flow(600)]).ends_with(expected));
        let mut broken = flow(240);
        broken.broken = Some("it broke".to_owned());
        let message = message_of(&[flow(240), broken]);
        assert!(message.ends_with("unknown: not all own flows completed"));
    }
}
