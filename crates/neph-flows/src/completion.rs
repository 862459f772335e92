//! Completion times of small transfers on the flows of each latency class. The unit is the port, because
//! transfers on one port share a path.

use std::collections::BTreeMap;

use neph_model::{ClassTransfer, SourcePortTransfer, Span};
use neph_stats::{Level, Sorted, median, quantile};

use crate::classes::{distance_to, nearest_class};
use crate::view::{Class, FleetView};

/// All transfers on the flows of a class.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Completion {
    /// Index of the class.
    pub class: usize,
    /// Number of attempted transfers.
    pub n: u64,
    /// Failed transfers: they count as longer than all others.
    pub failed: u64,
    /// Number of source ports.
    pub ports: u64,
    /// Median over ports of each port's median, including the connection setup. `None` if half of the ports
    /// failed half of their transfers, or without transfers.
    pub median: Option<Span>,
    /// Its 95 % confidence interval; `None` below 6 ports, or if an end lies among the failed transfers.
    pub interval: Option<(Span, Span)>,
    /// The median divided by that of the first class that has one.
    pub ratio: Option<f64>,
}

impl FleetView {
    /// The source ports in a class of an endpoint at the end, by slot.
    pub fn ports_in(&self, endpoint: usize, class: usize) -> impl Iterator<Item = u16> + '_ {
        let recent = self.until - self.silence();
        self.flows_of(endpoint)
            .filter(move |flow| {
                flow.segments.last().is_some_and(|segment| {
                    segment.class.map(usize::from) == Some(class) && segment.until >= recent
                })
            })
            .map(|flow| flow.source_port)
    }

    /// The ports of each of an endpoint's classes.
    pub fn ports_by_class(&self, endpoint: usize) -> Vec<Vec<u16>> {
        let classes = 0..self.classes[endpoint].len();
        classes
            .map(|class| self.ports_in(endpoint, class).collect())
            .collect()
    }

    /// The class whose path a transfer took, by its connect time. `known_class` is that of its flow at the end
    /// of the measurement: the path may have changed since.
    pub fn class_of_transfer(
        &self,
        endpoint: usize,
        known_class: usize,
        transfer: &SourcePortTransfer,
    ) -> usize {
        let tolerance = self.settings.detection.tolerance;
        let matching_class =
            |connect| match_class(&self.classes[endpoint], known_class, connect, tolerance);
        transfer.connect().map_or(known_class, matching_class)
    }
}

/// A connect time belongs to another class only if that leaves less than this part of the excess unexplained.
const EXCESS_DIVISOR: i64 = 4;

/// The class that matches a connect time. A time between classes includes a wait (a queue, a retransmitted
/// SYN), unless another class explains nearly all of it. No transfer is faster than its path.
fn match_class(classes: &[Class], known_class: usize, connect: Span, tolerance: Span) -> usize {
    let Some(nearest) = nearest_class(classes, connect) else {
        return known_class;
    };
    let is_at = |class: usize| distance_to(&classes[class], connect) <= tolerance;
    let is_below = |class: &Class| connect + tolerance < class.range.0;
    if is_at(nearest) {
        return nearest;
    }
    let nearest_lower = classes.partition_point(|class| class.base <= connect);
    let nearest_lower = nearest_lower.saturating_sub(1);
    let Some(flow_class) = classes.get(known_class) else {
        return known_class;
    };
    let excess = |class: &Class| (connect - class.base).nanos();
    let explains_excess =
        excess(&classes[nearest_lower]).saturating_mul(EXCESS_DIVISOR) <= excess(flow_class);
    if is_below(flow_class) || explains_excess {
        nearest_lower
    } else {
        known_class
    }
}

/// The order of ports for transfers: this many for each class that has a port. The classes alternate, so that
/// changes over time affect them equally.
pub fn alternate_ports(classes: &[Vec<u16>], transfers_per_class: u32) -> Vec<u16> {
    let ports_of_round = |round: u32| {
        let ports = classes.iter().filter(|ports| !ports.is_empty());
        ports.map(move |ports| ports[round as usize % ports.len()])
    };
    (0..transfers_per_class).flat_map(ports_of_round).collect()
}

/// The results of the transfers to one endpoint by class, up to the last class with transfers.
pub fn completions<'a>(transfers: impl IntoIterator<Item = &'a ClassTransfer>) -> Vec<Completion> {
    completions_of(0, transfers)
}

/// The same for at least this many classes, including those without transfers.
pub fn completions_of<'a>(
    classes: usize,
    transfers: impl IntoIterator<Item = &'a ClassTransfer>,
) -> Vec<Completion> {
    let mut by_class: Vec<Vec<&SourcePortTransfer>> = vec![Vec::new(); classes];
    for transfer in transfers {
        if by_class.len() <= transfer.class {
            by_class.resize(transfer.class + 1, Vec::new());
        }
        by_class[transfer.class].push(&transfer.transfer);
    }
    let to_completion = |(class, transfers): (usize, Vec<&SourcePortTransfer>)| {
        compute_completion(class, &transfers)
    };
    let mut completions: Vec<Completion> = by_class
        .into_iter()
        .enumerate()
        .map(to_completion)
        .collect();
    let first_median = completions.iter().find_map(|completion| completion.median);
    for completion in &mut completions {
        let medians = first_median.zip(completion.median);
        completion.ratio =
            medians.map(|(first_median, median)| median.secs_f64() / first_median.secs_f64());
    }
    completions
}

fn compute_completion(class: usize, transfers: &[&SourcePortTransfer]) -> Completion {
    let mut by_port: BTreeMap<u16, Port> = BTreeMap::new();
    for transfer in transfers {
        by_port
            .entry(transfer.source_port)
            .or_default()
            .add(transfer.total());
    }
    let levels: Vec<Level> = by_port.values_mut().filter_map(Port::median).collect();
    let mut medians: Vec<f64> = levels.iter().filter_map(|level| level.number()).collect();
    let lost = levels.len() - medians.len();
    let median_and_interval = Sorted::sort(&mut medians).ok().map(|sorted| {
        let median_span = median(sorted, lost).ok().and_then(span);
        let median_interval = quantile(sorted, lost, 0.5).ok();
        let interval = median_interval.and_then(|median_interval| {
            span(median_interval.low()).zip(span(median_interval.high()))
        });
        (median_span, interval)
    });
    let (median, interval) = median_and_interval.unwrap_or_default();
    let failed = by_port.values().map(|port| port.failed).sum::<usize>();
    let completed_count = by_port
        .values()
        .map(|port| port.completed_nanos.len())
        .sum::<usize>();
    Completion {
        class,
        n: (completed_count + failed) as u64,
        failed: failed as u64,
        ports: by_port.len() as u64,
        median,
        interval,
        ratio: None,
    }
}

/// The transfers on one port: durations of completed ones in nanoseconds.
#[derive(Debug, Default)]
struct Port {
    completed_nanos: Vec<f64>,
    failed: usize,
}

impl Port {
    fn add(&mut self, duration: Option<Span>) {
        match duration {
            #[expect(clippy::cast_precision_loss, reason = "below a week, exact")]
            Some(span) => self.completed_nanos.push(span.nanos() as f64),
            None => self.failed += 1,
        }
    }

    /// Censored if half of them failed; `None` without transfers.
    fn median(&mut self) -> Option<Level> {
        median(Sorted::sort(&mut self.completed_nanos).ok()?, self.failed).ok()
    }
}

fn span(level: Level) -> Option<Span> {
    #[expect(clippy::cast_possible_truncation, reason = "nanoseconds of spans")]
    level.number().map(|nanos| Span::from_nanos(nanos as i64))
}

#[cfg(test)]
mod tests {
    use neph_model::{ByteSize, Instant, SourcePortOutcome};

    use super::*;

    /// Ports from 9 on belong to the second class.
    fn transfer(source_port: u16, duration: Option<i64>) -> ClassTransfer {
        let completed = |millis: i64| SourcePortOutcome::Done {
            connect: Span::from_millis(millis / 2),
            total: Span::from_millis(millis),
        };
        ClassTransfer {
            endpoint: 0,
            class: usize::from(source_port >= 9),
            size: ByteSize(1024),
            transfer: SourcePortTransfer {
                source_port,
                pass: 0,
                begun: Instant::from_nanos(0),
                outcome: duration.map_or_else(
                    || SourcePortOutcome::Failed("refused".to_owned()),
                    completed,
                ),
            },
        }
    }

    /// Classes at 20, 20.475 and 24 ms; by hand: connect time and the flow's class.
    #[test]
    fn a_transfer_is_assigned_to_the_class_of_its_connect_time() {
        let class = |micros: i64| Class {
            base: Span::from_micros(micros),
            range: (
                Span::from_micros(micros - 50),
                Span::from_micros(micros + 50),
            ),
            share: 0.3,
            left: 0,
            joined: 0,
            flows: 1,
            sent: 0,
            lost: 0,
        };
        let classes = [class(20_000), class(20_475), class(24_000)];
        let class_of = |known, micros| {
            let connect = Span::from_micros(micros);
            match_class(&classes, known, connect, Span::from_micros(500))
        };
        assert_eq!(class_of(0, 20_100), 0);
        assert_eq!((class_of(0, 20_450), class_of(1, 20_060)), (1, 0));
        assert_eq!((class_of(0, 24_200), class_of(2, 20_100)), (2, 0));
        // A wait: in a queue, and for a second SYN.
        assert_eq!((class_of(0, 22_500), class_of(1, 1_020_400)), (0, 1));
        // A short wait on another path, or one as long as the difference to that path.
        assert_eq!((class_of(0, 24_700), class_of(0, 25_500)), (2, 0));
        assert_eq!(class_of(2, 31_000), 2);
        // Below its flow's class and in a queue of a lower one, or below all classes.
        assert_eq!((class_of(2, 22_000), class_of(2, 15_000)), (1, 0));
    }

    #[test]
    fn transfers_alternate_between_classes_and_reuse_the_ports_of_small_ones() {
        let classes = [vec![1, 2, 3], vec![], vec![9]];
        assert_eq!(alternate_ports(&classes, 4), [1, 9, 2, 9, 3, 9, 1, 9]);
        assert!(alternate_ports(&[], 4).is_empty());
    }

    /// Two ports with 100 to 104 and 105 to 109 ms: medians 102 and 107, and 104.5 of these. One of
    /// 118 to 127: 122.5 ms.
    #[test]
    fn each_port_counts_once_and_classes_are_compared() {
        let slow = (0..10).map(|n| transfer(9, Some(118 + n)));
        let fast = (0..10).map(|n| transfer(1 + u16::from(n > 4), Some(100 + n)));
        let transfers: Vec<ClassTransfer> = slow.chain(fast).collect();
        let class_completions = completions(&transfers);
        assert_eq!(
            (class_completions[0].n, class_completions[0].ports),
            (10, 2)
        );
        assert_eq!(
            (class_completions[1].n, class_completions[1].ports),
            (10, 1)
        );
        assert_eq!(
            class_completions[0].median,
            Some(Span::from_micros(104_500))
        );
        assert_eq!(
            class_completions[1].median,
            Some(Span::from_micros(122_500))
        );
        assert_eq!(class_completions[0].ratio, Some(1.0));
        let ratio = class_completions[1].ratio.expect("both have medians");
        assert!((ratio - 122.5 / 104.5).abs() < 1e-12, "{ratio}");
        // Ten transfers on one port count as one path.
        assert_eq!(
            (class_completions[0].interval, class_completions[1].interval),
            (None, None)
        );
    }

    /// Ten ports of 100 to 109 ms, three transfers each. The interval of ten values' median is from the
    /// second to the ninth (binomial, 97.9 %).
    #[test]
    fn the_interval_is_that_of_the_ports() {
        let transfer_on_port = |port| ClassTransfer {
            class: 0,
            ..transfer(port, Some(100 + i64::from(port)))
        };
        let transfers = (0..30).map(|n| transfer_on_port(n % 10));
        let class_transfers: Vec<ClassTransfer> = transfers.collect();
        let class_completions = completions(&class_transfers);
        let millis = Span::from_millis;
        assert_eq!(
            (class_completions[0].n, class_completions[0].ports),
            (30, 10)
        );
        assert_eq!(
            class_completions[0].interval,
            Some((millis(101), millis(108)))
        );
    }

    #[test]
    fn failed_transfers_count_as_longest_and_few_have_no_interval() {
        let transfers = [
            transfer(1, Some(10)),
            transfer(1, None),
            transfer(1, Some(12)),
        ];
        let class_completions = completions_of(2, &transfers);
        assert_eq!(
            (class_completions[0].n, class_completions[0].failed),
            (3, 1)
        );
        assert_eq!(class_completions[0].median, Some(Span::from_millis(12)));
        assert_eq!(class_completions[0].interval, None);
        assert_eq!(
            (
                class_completions[1].n,
                class_completions[1].median,
                class_completions[1].ratio
            ),
            (0, None, None)
        );
        let lost = [transfer(1, None), transfer(1, None), transfer(1, Some(12))];
        assert_eq!(completions(&lost)[0].median, None);
    }
}
