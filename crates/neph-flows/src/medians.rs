//! The median round trip of each flow in each bin of time; a lost message counts as slower than every reply.
//! The round trips of a flow's current bin are kept until its next bin begins.

use neph_model::Span;

use crate::compact_rtt::CompactRtt;
use crate::latency::Latency;

/// Maximum number of round trips per flow and bin: of more, every second is kept, then every fourth.
const MAX_RTTS: i64 = 4096;

/// A flow in its current bin.
#[derive(Clone, Copy, Debug, Default)]
struct OpenBin {
    bin: u32,
    /// Number of replies in it so far.
    replies: u32,
    /// Number of messages in it without a reply so far.
    lost: u32,
    port: u16,
    /// One of 2 to the power of this replies is kept.
    thinning: u8,
}

impl OpenBin {
    /// Number of round trips that are kept.
    const fn retained_count(self) -> usize {
        self.replies.div_ceil(1 << self.thinning) as usize
    }
}

/// Medians per flow and bin; see the module.
#[derive(Debug)]
pub(crate) struct Medians {
    /// Capacity in round trips for each flow.
    capacity: usize,
    /// The round trips, flow after flow.
    rtts: Vec<u32>,
    flows: Vec<OpenBin>,
}

impl Medians {
    /// For `flows` flows with a message each `interval`, in bins of `width`.
    pub(crate) fn new(flows: usize, interval: Span, width: Span) -> Self {
        let messages_per_bin = width.nanos() / interval.nanos().max(1);
        // Some reserve: a delayed sender catches up.
        let capacity = messages_per_bin + messages_per_bin / 8 + 3;
        let capacity = usize::try_from(capacity.clamp(4, MAX_RTTS)).unwrap_or(4);
        Self {
            capacity,
            rtts: vec![0; flows * capacity],
            flows: vec![OpenBin::default(); flows],
        }
    }

    /// Adds a message of the flow with this number and port. The first message in a bin completes the flow's
    /// previous bin and reports its median.
    pub(crate) fn push(
        &mut self,
        flow_index: u32,
        port: u16,
        bin: u32,
        latency: Latency<CompactRtt>,
    ) -> Option<(u32, Latency<CompactRtt>)> {
        let flow_index = flow_index as usize;
        let open_bin = *self.flows.get(flow_index)?;
        let completed = if (open_bin.bin, open_bin.port) == (bin, port) {
            None
        } else {
            self.complete(flow_index)
        };
        let open_bin = &mut self.flows[flow_index];
        (open_bin.bin, open_bin.port) = (bin, port);
        let Latency::Took(rtt) = latency else {
            open_bin.lost = open_bin.lost.saturating_add(1);
            return completed;
        };
        let flow_rtts =
            &mut self.rtts[flow_index * self.capacity..(flow_index + 1) * self.capacity];
        if open_bin.retained_count() == flow_rtts.len()
            && open_bin.replies.is_multiple_of(1 << open_bin.thinning)
        {
            for index in 0..flow_rtts.len().div_ceil(2) {
                flow_rtts[index] = flow_rtts[2 * index];
            }
            open_bin.thinning += 1;
        }
        if open_bin.replies.is_multiple_of(1 << open_bin.thinning) {
            flow_rtts[open_bin.retained_count()] = rtt.code();
        }
        open_bin.replies += 1;
        completed
    }

    /// The medians of all flows that are still in this bin or an earlier one, with their bins.
    pub(crate) fn complete_all(
        &mut self,
        bin: u32,
    ) -> impl Iterator<Item = (u32, Latency<CompactRtt>)> + '_ {
        let flows = 0..self.flows.len();
        flows.filter_map(move |flow_index| {
            let open_bin = self.flows[flow_index];
            (open_bin.bin <= bin)
                .then(|| self.complete(flow_index))
                .flatten()
        })
    }

    /// Completes a flow's bin: its median, if it had a message. There is no number between the slowest reply
    /// and a lost message.
    fn complete(&mut self, flow_index: usize) -> Option<(u32, Latency<CompactRtt>)> {
        let open_bin = std::mem::take(&mut self.flows[flow_index]);
        let start = flow_index * self.capacity;
        let rtts = &mut self.rtts[start..start + open_bin.retained_count()];
        rtts.sort_unstable();
        let messages = u64::from(open_bin.replies) + u64::from(open_bin.lost);
        let last_rank = messages.checked_sub(1)?;
        let (low, high) = (last_rank / 2, messages / 2);
        if high >= u64::from(open_bin.replies) {
            return Some((open_bin.bin, Latency::Lost));
        }
        let [low, high] = [low, high].map(|rank| {
            let index = usize::try_from(rank >> open_bin.thinning).unwrap_or(usize::MAX);
            CompactRtt::from_code(rtts[index.min(rtts.len() - 1)]).nanos()
        });
        let median = CompactRtt::from_nanos(low.midpoint(high));
        Some((open_bin.bin, Latency::Took(median)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn medians() -> Medians {
        Medians::new(2, Span::from_secs(1), Span::from_secs(20))
    }

    fn latency_of(nanos: i64) -> Latency<CompactRtt> {
        Latency::Took(CompactRtt::from_nanos(nanos))
    }

    fn bins_and_nanos(
        latencies: impl Iterator<Item = (u32, Latency<CompactRtt>)>,
    ) -> Vec<(u32, i64)> {
        let nanos =
            |latency: Latency<CompactRtt>| latency.took().map_or(i64::MAX, CompactRtt::nanos);
        latencies
            .map(|(bin, latency)| (bin, nanos(latency)))
            .collect()
    }

    #[test]
    fn a_flow_that_enters_its_next_bin_completes_the_previous_median() {
        let mut medians = medians();
        for nanos in [30, 10, 1000] {
            assert_eq!(medians.push(0, 7, 3, latency_of(nanos)), None);
        }
        assert_eq!(medians.push(1, 8, 3, latency_of(50)), None);
        let completed = medians.push(0, 7, 4, latency_of(70));
        assert_eq!(bins_and_nanos(completed.into_iter()), [(3, 30)]);
        assert_eq!(bins_and_nanos(medians.complete_all(3)), [(3, 50)]);
        assert_eq!(bins_and_nanos(medians.complete_all(4)), [(4, 70)]);
        assert_eq!(bins_and_nanos(medians.complete_all(4)), []);
    }

    #[test]
    fn a_new_port_is_a_new_flow_and_an_invalid_index_is_ignored() {
        let mut medians = medians();
        assert_eq!(medians.push(0, 7, 0, latency_of(10)), None);
        let completed = medians.push(0, 9, 0, latency_of(20));
        assert_eq!(bins_and_nanos(completed.into_iter()), [(0, 10)]);
        assert_eq!(medians.push(2, 7, 0, latency_of(10)), None);
        assert_eq!(bins_and_nanos(medians.complete_all(0)), [(0, 20)]);
    }

    #[test]
    fn excess_messages_are_sampled() {
        let mut medians = medians();
        for nanos in 0..100_000 {
            medians.push(0, 7, 0, latency_of(nanos));
        }
        let [(_, median)] = bins_and_nanos(medians.complete_all(0))[..] else {
            panic!("one flow");
        };
        assert!((median - 50_000).abs() < 5_000, "{median}");
    }

    #[test]
    fn a_lost_message_ranks_slower_than_every_reply() {
        let median = |replies: &[i64], lost: usize| {
            let mut medians = medians();
            for nanos in replies {
                medians.push(0, 7, 0, latency_of(*nanos));
            }
            for _ in 0..lost {
                medians.push(0, 7, 0, Latency::Lost);
            }
            let mut completed = medians.complete_all(0);
            completed.next().map(|(_, latency)| latency)
        };
        assert_eq!(median(&[10, 20, 30], 0), Some(latency_of(20)));
        assert_eq!(median(&[10, 20, 30], 1), Some(latency_of(25)));
        assert_eq!(median(&[10, 20, 30], 2), Some(latency_of(30)));
        assert_eq!(median(&[10, 20, 30], 3), Some(Latency::Lost));
        assert_eq!(median(&[], 1), Some(Latency::Lost));
        assert_eq!(median(&[], 0), None);
    }

    #[test]
    fn with_half_of_the_messages_lost_the_median_is_the_slowest_reply() {
        let mut medians = medians();
        for nanos in 0..100_000 {
            medians.push(0, 7, 0, latency_of(nanos));
            if nanos > 1 {
                medians.push(0, 7, 0, Latency::Lost);
            }
        }
        let [(_, median)] = bins_and_nanos(medians.complete_all(0))[..] else {
            panic!("one flow");
        };
        assert!((95_000..100_000).contains(&median), "{median}");
    }
}
