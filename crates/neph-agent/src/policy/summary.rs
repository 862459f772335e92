//! A policy in short, as its controller shows it.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use neph_model::Budgets;

use super::Policy;

impl Policy {
    /// Its contents, by the keys of its file. A key with an empty list is left out. Empty targets, ports,
    /// hours and controllers mean no limit; any other empty list permits nothing.
    pub fn summary(&self) -> BTreeMap<String, String> {
        let budgets = &self.budgets;
        let entries = [
            ("kinds", join_all(self.kinds.iter().map(|kind| kind.name()))),
            ("targets.allow", join_all(&self.targets.allow)),
            ("targets.deny", join_all(&self.targets.deny)),
            ("targets.ports", ports(&self.targets.ports)),
            (Budgets::MESSAGES_KEY, join_all(budgets.messages)),
            (Budgets::RATE_KEY, join_all(budgets.rate)),
            ("budget.bytes_per_day", join_all(budgets.day_bytes)),
            ("longest", self.longest.exact()),
            ("hours", join_all(&self.hours)),
            ("listen", ports(&self.listen)),
            ("files", join_all(&self.files)),
            ("controllers", join_all(&self.controllers)),
        ];
        let entries = entries.into_iter().filter(|(_, text)| !text.is_empty());
        entries.map(|(key, text)| (key.to_owned(), text)).collect()
    }
}

fn join_all<T: ToString>(values: impl IntoIterator<Item = T>) -> String {
    let texts: Vec<String> = values.into_iter().map(|value| value.to_string()).collect();
    texts.join(", ")
}

fn ports(ranges: &[RangeInclusive<u16>]) -> String {
    join_all(
        ranges
            .iter()
            .map(|ports| match (ports.start(), ports.end()) {
                (first, last) if first == last => first.to_string(),
                (first, last) => format!("{first}-{last}"),
            }),
    )
}

#[cfg(test)]
mod tests {
    use neph_text::Source;

    use crate::policy::{DEFAULT_POLICY, Policy};

    #[test]
    fn a_policy_summary_contains_only_configured_limits() {
        let text = DEFAULT_POLICY.to_owned();
        let policy = Policy::parse(&Source::new("agent.toml", text)).expect("it is good");
        let mut summary = policy.summary();
        assert_eq!(summary["budget.messages_per_second"], "20000");
        assert_eq!(summary["budget.bytes_per_day"], "100000000000");
        assert!(summary["kinds"].starts_with("ws, http"), "{summary:?}");
        assert!(
            summary["targets.deny"].contains("127.0.0.0/8"),
            "{summary:?}"
        );
        for absent in ["hours", "listen", "files", "budget.rate", "targets.ports"] {
            assert_eq!(summary.remove(absent), None);
        }
        let open = Policy {
            hours: vec!["22:00-06:30".parse().expect("hours")],
            listen: vec![8600..=8600, 9000..=9010],
            ..policy
        };
        assert_eq!(open.summary()["hours"], "22:00-06:30");
        assert_eq!(open.summary()["listen"], "8600, 9000-9010");
    }
}
