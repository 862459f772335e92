//! Whether a message that is due may still be sent: not if overdue, after the flow's end or beyond a rate
//! cap.
//!
//! It is checked right before the send, so that a cap holds for sent messages, not only for planned ones.
//! Time is an argument. Does not own when a message is due (schedule).

use neph_model::{Instant, Local, LocalFault, Permit, SYNS_A_SECOND_EACH, TokenBucket};

use crate::spec::{FlowSpec, Overdue};

/// One flow's gate.
#[derive(Debug)]
pub(crate) struct Gate {
    overdue: Overdue,
    cap: Option<TokenBucket>,
    permit: Permit,
    /// The permit's answer for the message due at this time, if already asked. The message may be built ahead
    /// of its time and cannot be cancelled then.
    last_request: Option<(Instant<Local>, bool)>,
}

impl Gate {
    /// The gate of this flow. SYNs have a cap even if none was requested.
    pub(crate) fn for_flow(spec: &FlowSpec) -> Self {
        let default = spec
            .target
            .kind()
            .properties()
            .may_look_like_attack
            .then_some(SYNS_A_SECOND_EACH);
        let cap = spec.rate_cap.or(default);
        Self {
            overdue: spec.overdue,
            cap: cap.map(|rate| TokenBucket::new(rate.into())),
            permit: spec.permit.clone(),
            last_request: None,
        }
    }

    /// Why the message due at `due` is not sent at `now`, in a flow that ends at `end`. `None` permits it and
    /// counts it.
    pub(crate) fn refusal(
        &mut self,
        due: Instant<Local>,
        end: Option<Instant<Local>>,
        now: Instant<Local>,
    ) -> Option<LocalFault> {
        let is_late = match self.overdue {
            Overdue::Skip => now - due > Overdue::TOLERANCE,
            Overdue::Send => false,
        };
        if is_late || end.is_some_and(|end| now >= end) {
            return Some(LocalFault::SendTooLate);
        }
        let is_below_cap = self
            .cap
            .as_ref()
            .is_none_or(|cap| cap.take(1, due.max(now).nanos()));
        let may_go = is_below_cap && self.is_permitted(due, now);
        (!may_go).then_some(LocalFault::RateCap)
    }
}

impl Gate {
    /// Whether the permit allows the message due at `due`. It is asked once per message; its bytes are
    /// charged when sent.
    pub(crate) fn is_permitted(&mut self, due: Instant<Local>, now: Instant<Local>) -> bool {
        match self.last_request {
            Some((time, answer)) if time == due => answer,
            _ => {
                let answer = self.permit.message(0, due.max(now).nanos());
                self.last_request = Some((due, answer));
                answer
            }
        }
    }

    /// Charges bytes of either direction on the flow's socket.
    pub(crate) fn spend(&self, bytes: usize, now: Instant<Local>) {
        self.permit.spend(bytes, now.nanos());
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use proptest::prelude::*;

    use neph_model::{AllowedTargets, Budgets, Span, Target};

    use super::*;

    fn at(millis: i64) -> Instant<Local> {
        Instant::from_nanos(millis * 1_000_000)
    }

    fn gate_of(target: &str, change: impl FnOnce(&mut FlowSpec)) -> Gate {
        let address: SocketAddr = "192.0.2.1:80".parse().expect("an address");
        let mut spec = FlowSpec::plain(Target::parse(target).expect("a target"), address);
        change(&mut spec);
        Gate::for_flow(&spec)
    }

    /// How many of the SYNs due every 10 ms are sent, if the process stops for 12 s and then sends the due
    /// ones without a pause.
    fn after_a_stop(gate: &mut Gate) -> usize {
        let due = (0..1_200).map(|n| at(10 * n));
        due.filter(|due| gate.refusal(*due, None, at(12_000)).is_none())
            .count()
    }

    #[test]
    fn after_a_pause_of_12_s_no_burst_of_syns_is_sent() {
        let mut capped = gate_of("syn://192.0.2.1:80", |_| {});
        assert_eq!(
            after_a_stop(&mut capped),
            20,
            "a tenth of a second at 200 a second"
        );
        let mut limited_gate = gate_of("syn://192.0.2.1:80", |spec| {
            spec.overdue = Overdue::Send;
            spec.rate_cap = Some(10_000);
        });
        assert_eq!(
            after_a_stop(&mut limited_gate),
            1_000,
            "asked for, and still below its cap"
        );
    }

    #[test]
    fn flows_that_share_a_permit_share_its_rate() {
        let budgets = Budgets {
            messages: Some(50),
            ..Budgets::default()
        };
        let permit = Permit::new(AllowedTargets::default(), budgets, 0);
        let mut flows =
            [0, 1].map(|_| gate_of("icmp://192.0.2.1", |spec| spec.permit = permit.clone()));
        let mut sent_count = 0;
        for n in 0..1_000 {
            for flow in &mut flows {
                sent_count += u32::from(flow.refusal(at(n), None, at(n)).is_none());
            }
        }
        assert_eq!(sent_count, 54, "a second at 50 a second, and a burst");
    }

    #[test]
    fn without_a_cap_only_the_last_second_is_caught_up() {
        let mut gate = gate_of("icmp://192.0.2.1", |_| {});
        assert_eq!(after_a_stop(&mut gate), 100);
        let refused = gate.refusal(at(1_999), Some(at(2_000)), at(2_000));
        assert_eq!(refused, Some(LocalFault::SendTooLate));
        assert_eq!(gate.refusal(at(1_999), Some(at(2_000)), at(1_999)), None);
    }

    proptest! {
        #[test]
        fn no_window_exceeds_the_rate_and_one_burst(
            rate in 1_u32..5_000,
            steps in prop::collection::vec(0_i64..3_000_000, 1..600),
        ) {
            let bucket = TokenBucket::new(rate.into());
            let mut now = at(0);
            let mut send_times = Vec::new();
            for step in steps {
                now = now + Span::from_nanos(step);
                if bucket.take(1, now.nanos()) {
                    send_times.push(now);
                }
            }
            let burst = (i64::from(rate) / 10).max(1);
            for (first, from) in send_times.iter().enumerate() {
                for (last, to) in send_times.iter().enumerate().skip(first) {
                    let allowed = (*to - *from).nanos() * i64::from(rate) / 1_000_000_000 + burst + 1;
                    prop_assert!(i64::try_from(last - first + 1).expect("few") <= allowed);
                }
            }
        }
    }
}
