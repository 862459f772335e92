//! One endpoint within its plan: its own values, else those of the top, checked against what its
//! scheme can carry.

use std::net::Ipv4Addr;
use std::ops::Range;

use neph_model::{
    Authenticated, ByteSize, IpVersion, Measure, Parameter, ParameterName, Span, Target, sent_size,
    why_raised, why_replies_are_raised,
};
use neph_text::{Bytes, Fault, Nanos, Problems, Spanned};

use super::transfers;
use super::{find_parameter, require_positive};
use crate::plan::fleet;
use crate::plan::model::{Axes, ExperimentLength, ParameterLists};
use crate::plan::typed::{TypedAxes, TypedEndpoint};

const DEFAULT_REQUEST: ByteSize = ByteSize(64);
const DEFAULT_RESPONSE: ByteSize = ByteSize(64);

/// What is wrong, and what to do.
type FaultText = (&'static str, &'static str);
const NO_ENDPOINT: FaultText = (
    "there is no endpoint",
    "add [[endpoint]] with name = \"here\" and url = \"udp://192.0.2.1:8080\"",
);
const NO_INTERVAL: FaultText = ("the interval is missing", "add interval = \"100ms\"");
const NO_LENGTH: FaultText = (
    "neither duration nor messages is given",
    "add duration = \"30s\" or messages = 1000",
);

/// What is missing in a plan that has no endpoint: also what each endpoint would ask for.
pub(super) fn faults_without_endpoint(top: &TypedAxes) -> impl Iterator<Item = FaultText> {
    let interval = top.intervals.is_none().then_some(NO_INTERVAL);
    let length = (!top.has_length).then_some(NO_LENGTH);
    std::iter::once(NO_ENDPOINT).chain(interval).chain(length)
}

/// A duration and a number of messages exclude each other.
pub(super) fn check_single_length(axes: &TypedAxes, problems: &Problems<'_>) {
    if let (Some(_), Some(messages)) = (&axes.duration, &axes.messages) {
        let message = "both duration and messages are given";
        let fault = Fault::new(
            message,
            "remove one: it follows from the other and the interval",
        );
        problems.add(messages.span.clone(), fault);
    }
}

/// Each of the sizes once, in their order: different requested sizes may be one size on the wire.
fn distinct_sizes(sizes: impl Iterator<Item = ByteSize>) -> Vec<ByteSize> {
    let mut distinct = Vec::new();
    for size in sizes {
        if !distinct.contains(&size) {
            distinct.push(size);
        }
    }
    distinct
}

/// An endpoint within its plan.
pub(super) struct Scope<'a> {
    pub(super) endpoint: &'a TypedEndpoint,
    pub(super) top: &'a TypedAxes,
    pub(super) target: &'a Target,
    pub(super) problems: &'a Problems<'a>,
}

impl Scope<'_> {
    fn fault(&self, span: &Range<usize>, message: impl Into<String>, remedy: impl Into<String>) {
        self.problems.add(span.clone(), Fault::new(message, remedy));
    }

    pub(super) fn axes(&self) -> Option<Axes> {
        check_single_length(&self.endpoint.axes, self.problems);
        let parameters = self.parameters();
        let requested_sizes = self.request_sizes();
        let kind = self.target.kind();
        let key = parameters.get(&ParameterName::KeyFile);
        let authenticated = Authenticated::by(key);
        let size_on_wire = |size: &ByteSize| sent_size(kind, *size, authenticated);
        let request_sizes = distinct_sizes(requested_sizes.iter().map(size_on_wire));
        let size_notes = requested_sizes
            .iter()
            .filter(|_| self.has_written_sizes())
            .filter_map(|size| why_raised(kind, *size, size_on_wire(size)));
        let response_sizes = self.response_sizes(&request_sizes);
        // Replies keep the size that is asked for: scenarios of older campaigns are known by it.
        let reply_notes = response_sizes
            .iter()
            .filter(|_| {
                self.endpoint.axes.response_sizes.is_some() || self.top.response_sizes.is_some()
            })
            .filter_map(|size| why_replies_are_raised(kind, *size));
        let size_notes = size_notes.chain(reply_notes).collect();
        let intervals = self.intervals(&parameters);
        let length = self.length();
        let axes = Axes {
            intervals: intervals?,
            request_sizes,
            response_sizes,
            length: length?,
            parameters,
            size_notes,
        };
        self.check_connections(&axes);
        self.check_ip_version(&axes);
        // Whether there are flows is not known, so contradictions with them cannot be found.
        let flows = ParameterName::Flows;
        let is_invalid = |axes: &TypedAxes| axes.invalid_parameters.contains(&flows);
        if is_invalid(&self.endpoint.axes) || is_invalid(self.top) {
            return None;
        }
        if let Some(fault) = fleet::rate_fault(self.target, &axes) {
            self.problems.add(self.shortest_interval_span(), fault);
            return None;
        }
        if let Some(fault) = fleet::many_hosts_fault(self.target, &axes) {
            self.problems.add(self.endpoint.span.clone(), fault);
            return None;
        }
        let contradiction = fleet::contradiction(&axes).or_else(|| transfers::contradiction(&axes));
        if let Some((parameter, fault)) = contradiction {
            self.problems.add(self.span_of(parameter), fault);
            return None;
        }
        self.check_lengths(&axes).then_some(axes)
    }

    /// Where the values of a parameter are written that hold here.
    fn span_of(&self, parameter: ParameterName) -> Range<usize> {
        let parameters = self.endpoint.axes.parameters.get(&parameter);
        let written = parameters.or_else(|| self.top.parameters.get(&parameter));
        match written.map(Vec::as_slice) {
            Some([first, .., last]) => first.span.start..last.span.end,
            Some([only]) => only.span.clone(),
            Some([]) | None => self.endpoint.span.clone(),
        }
    }

    fn written_intervals(&self) -> Option<&Vec<Spanned<Nanos>>> {
        let intervals = self.endpoint.axes.intervals.as_ref();
        intervals.or(self.top.intervals.as_ref())
    }

    /// Where the shortest interval is written.
    fn shortest_interval_span(&self) -> Range<usize> {
        let written = self.written_intervals().into_iter().flatten();
        let shortest = written.min_by_key(|value| value.value.0);
        shortest.map_or_else(|| self.endpoint.span.clone(), |value| value.span.clone())
    }

    fn intervals(&self, parameters: &ParameterLists) -> Option<Vec<Span>> {
        let Some(written) = self.written_intervals() else {
            let measures = parameters.get(&ParameterName::Measure);
            let is_transfer =
                |parameter: &Parameter| parameter.measure().is_some_and(Measure::is_transfer);
            if measures.is_some_and(|parameters| parameters.iter().all(is_transfer)) {
                return Some(vec![Measure::SECOND]);
            }
            self.fault(&self.endpoint.span, NO_INTERVAL.0, NO_INTERVAL.1);
            return None;
        };
        for value in written {
            if (1..1_000).contains(&value.value.0) {
                let message = "this interval is shorter than a microsecond";
                self.fault(&value.span, message, "write \"1us\" or more");
            }
        }
        let values: Vec<Span> = written
            .iter()
            .filter_map(|value| require_positive(value, "interval", self.problems))
            .collect();
        (values.len() == written.len() && !values.is_empty()).then_some(values)
    }

    fn written_sizes(&self) -> Option<&Vec<Spanned<Bytes>>> {
        let sizes = self.endpoint.axes.request_sizes.as_ref();
        sizes.or(self.top.request_sizes.as_ref())
    }

    fn has_written_sizes(&self) -> bool {
        self.written_sizes().is_some()
    }

    /// As the plan asks for them.
    fn request_sizes(&self) -> Vec<ByteSize> {
        self.sizes(self.written_sizes(), DEFAULT_REQUEST)
    }

    /// UDP and ICMP send back what they got: STAMP replies are as long as requests (RFC 8762,
    /// section 4.2.1), and so are echoes (RFC 792).
    fn response_sizes(&self, request_sizes: &[ByteSize]) -> Vec<ByteSize> {
        if self.target.kind().has_reply_size() {
            let written = self.endpoint.axes.response_sizes.as_ref();
            return self.sizes(
                written.or(self.top.response_sizes.as_ref()),
                DEFAULT_RESPONSE,
            );
        }
        if let Some(first) = self
            .endpoint
            .axes
            .response_sizes
            .as_ref()
            .and_then(|sizes| sizes.first())
        {
            let kind = self.target.kind();
            let message = if kind.has_request_size() {
                format!("{kind} replies are as long as their requests")
            } else {
                format!("{kind} has replies of no chosen size")
            };
            self.fault(&first.span, message, "remove response_size here");
        }
        request_sizes[..1].to_vec()
    }

    fn sizes(&self, written: Option<&Vec<Spanned<Bytes>>>, default: ByteSize) -> Vec<ByteSize> {
        let max = self.target.kind().properties().most_payload;
        for size in written.into_iter().flatten() {
            let bytes = ByteSize(size.value.0);
            if bytes > max {
                let message = format!(
                    "{} is more than {} carries",
                    bytes.exact(),
                    self.target.kind()
                );
                let remedy = format!("write at most {}", max.exact());
                self.fault(&size.span, message, remedy);
            }
        }
        match written {
            Some(sizes) if !sizes.is_empty() => sizes.iter().map(|s| ByteSize(s.value.0)).collect(),
            _ => vec![default],
        }
    }

    fn length(&self) -> Option<ExperimentLength> {
        let axes = if self.endpoint.axes.has_length {
            &self.endpoint.axes
        } else {
            self.top
        };
        match (&axes.duration, &axes.messages) {
            (_, Some(messages)) if messages.value == 0 => {
                self.fault(&messages.span, "there are no messages", "write 1 or more");
                None
            }
            (_, Some(messages)) => Some(ExperimentLength::Messages(messages.value)),
            (Some(duration), None) => {
                let duration = require_positive(duration, "duration", self.problems);
                duration.map(ExperimentLength::Duration)
            }
            (None, None) => {
                if !axes.has_length {
                    self.fault(&self.endpoint.span, NO_LENGTH.0, NO_LENGTH.1);
                }
                None
            }
        }
    }

    /// Every interval must hold at least one message, and no experiment may outlast the clock.
    fn check_lengths(&self, axes: &Axes) -> bool {
        for interval in &axes.intervals {
            let count = axes.length.messages(*interval);
            if count == 0 {
                let message =
                    format!("no message fits: the interval {interval} is longer than the duration");
                self.fault(
                    &self.endpoint.span,
                    message,
                    "write a longer duration or a shorter interval",
                );
                return false;
            }
            let duration_ns = i64::try_from(count)
                .ok()
                .and_then(|n| n.checked_mul(interval.nanos()));
            // Half of what 64 bits hold, so that sums of times stay within them.
            if duration_ns.is_none_or(|nanos| nanos > i64::MAX / 2) {
                let message =
                    format!("{count} messages every {interval} take longer than can be counted");
                self.fault(&self.endpoint.span, message, "write fewer messages");
                return false;
            }
        }
        true
    }

    /// The endpoint's own parameters, and those of the top that fit it.
    fn parameters(&self) -> ParameterLists {
        let without_spans =
            |values: &[Spanned<Parameter>]| values.iter().map(|v| v.value.clone()).collect();
        let mut parameters = ParameterLists::new();
        for (name, values) in &self.top.parameters {
            if (find_parameter(*name).is_supported_by)(self.target) {
                parameters.insert(*name, without_spans(values));
            }
        }
        for (name, values) in &self.endpoint.axes.parameters {
            let parameter = find_parameter(*name);
            if (parameter.is_supported_by)(self.target) {
                parameters.insert(*name, without_spans(values));
                continue;
            }
            let message = format!(
                "'{name}' does not fit {}: {}",
                self.target, parameter.unsupported_reason
            );
            self.fault(&values[0].span, message, "remove it");
        }
        parameters
    }

    /// A host that is written as an address has the one version that it is.
    fn check_ip_version(&self, axes: &Axes) {
        let host = self.target.host();
        let (own_version, other_version) = match (host.contains(':'), host.parse::<Ipv4Addr>()) {
            (true, _) => (IpVersion::V6, IpVersion::V4),
            (false, Ok(_)) => (IpVersion::V4, IpVersion::V6),
            (false, Err(_)) => return,
        };
        let mut requested_versions = axes.values(Parameter::ip_version);
        if requested_versions.any(|version| *version == other_version) {
            let message = format!(
                "{} is an IPv{own_version} address: IPv{other_version} does not reach it",
                self.target
            );
            let remedy = format!(
                "remove ip_version, or write a name or an IPv{other_version} address in the url"
            );
            self.fault(&self.span_of(ParameterName::IpVersion), message, remedy);
        }
    }

    /// A closed connection holds its 5-tuple for a minute (`TIME_WAIT`), so the next message could
    /// not use the same port.
    fn check_connections(&self, axes: &Axes) {
        let is_new = axes.values(Parameter::new_connection).any(|is_new| *is_new);
        if is_new && axes.parameters.contains_key(&ParameterName::SourcePort) {
            let message = "a new connection per message cannot keep one source port";
            self.fault(
                &self.endpoint.span,
                message,
                "remove source_port or new_connection",
            );
        }
    }
}
