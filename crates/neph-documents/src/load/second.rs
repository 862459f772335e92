//! A second of a load: a line while it is measured, a row of CSV.

use neph_load::workload::WorkloadSecond;
use neph_model::Span;

crate::rows! {
    /// A second, all threads together.
    pub struct LoadSecondRow {
        /// Number of the second, from 0.
        second: u32,
        /// Whether it belongs to the warm-up.
        is_warmup: bool,
        /// Whether the generator was late: more than 1 % of the requests, and more than one, were sent
        /// later than the bound of lateness.
        is_void: bool,
        /// Requests that the generator took up in this second.
        due: u64,
        /// Sent requests, without repetitions.
        sent: u64,
        /// Successful responses (status below 400) that ended in this second.
        responses: u64,
        /// Responses with status 400 or above.
        error_responses: u64,
        /// Requests without a complete response.
        failed: u64,
        /// Requests in flight at the end of the second.
        in_flight: u64,
        /// Requests that waited for a connection at the end of the second.
        waiting: u64,
        /// Median response time; null with fewer than 6 requests, or if unsuccessful ones decide it.
        p50_ns: Option<Span>,
        /// 90th percentile of response times; null with fewer than 29 requests, or if unsuccessful
        /// ones decide it.
        p90_ns: Option<Span>,
        /// 99th percentile of response times; null with fewer than 299 requests, or if unsuccessful
        /// ones decide it.
        p99_ns: Option<Span>,
        /// Maximum response time; null without a successful response.
        max_ns: Option<Span>,
        /// Median service time; null as `p50_ns`.
        service_p50_ns: Option<Span>,
        /// 99th percentile of service times; null as `p99_ns`.
        service_p99_ns: Option<Span>,
        /// Requests that the generator sent later than the bound of lateness.
        late: u64,
        /// Largest lateness; null without a request.
        max_lateness_ns: Option<Span>,
        /// CPU time of the busiest thread, percent of a core.
        thread_cpu_percent: f64,
        /// Bytes of sent requests.
        sent_bytes: u64,
        /// Bytes of responses.
        received_bytes: u64,
    }
}

impl From<&WorkloadSecond> for LoadSecondRow {
    fn from(second: &WorkloadSecond) -> Self {
        let tally = &second.tally;
        let response = |permille| tally.response_quantile(permille).time();
        let service = |permille| tally.service_quantile(permille).time();
        Self {
            second: second.index,
            is_warmup: second.is_warmup,
            is_void: second.is_void,
            due: tally.due,
            sent: tally.sent,
            responses: tally.successes(),
            error_responses: tally.error_responses(),
            failed: tally.failed(),
            in_flight: second.in_flight,
            waiting: second.waiting,
            p50_ns: response(500),
            p90_ns: response(900),
            p99_ns: response(990),
            max_ns: tally.response.max(),
            service_p50_ns: service(500),
            service_p99_ns: service(990),
            late: tally.late,
            max_lateness_ns: tally.lateness.max(),
            thread_cpu_percent: (second.thread_cpu * 1_000.0).round() / 10.0,
            sent_bytes: tally.sent_bytes,
            received_bytes: tally.received_bytes,
        }
    }
}
