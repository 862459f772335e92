//! An entry of the gallery: a published finding, the network that shows it, and what neph is to
//! say of it. One file an entry, one line in [`ENTRIES`] for each.

use super::expectation::Expectation;
use super::said::Topic;
use super::{
    advice, balancers, bufferbloat, cable, ecmp, far_bulk, guest_load, guest_pinned, guest_share,
    guest_starved, idle, mesh, near_far, overlay, providers, rerouting, rest, seasons, time_of_day,
    transfers, unfairness, uplink,
};

/// A published finding, to be seen again.
#[derive(Debug)]
pub(crate) struct Entry {
    /// Its name on the command line, and of its folder in gallery/.
    pub(crate) name: &'static str,
    /// The finding in a few words.
    pub(crate) finding: &'static str,
    /// Where it is published.
    pub(crate) published: &'static str,
    /// The plan, whose lab is in `lab.toml` beside it.
    pub(crate) plan: &'static str,
    /// The topology.
    pub(crate) lab: &'static str,
    /// The topologies of the plan's seasons beside it, each by the name of its file.
    pub(crate) seasons: &'static [(&'static str, &'static str)],
    /// The same without the cause.
    pub(crate) control: Control,
    /// The figure that shows it, by the name of its file: the kind, and what it compares.
    pub(crate) figure: &'static str,
    /// What neph is to say; a control must not say it.
    pub(crate) expected: &'static [Expectation],
    /// What was calculated of the control: that its network is as fast as it was built.
    pub(crate) of_control: &'static [Expectation],
    /// Rules of causes that are in the entry's network and in its control's too, beside the one
    /// that it is about: neph may name them.
    pub(crate) also: &'static [&'static str],
    /// Endpoints that are without any cause: neph must not name one there.
    pub(crate) innocent: &'static [&'static str],
}

/// What takes the cause away.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Control {
    /// The same plan over another network.
    Lab(&'static str),
    /// Another plan over the same network.
    Plan(&'static str),
}

/// Every entry, in the order of the sources.
pub(crate) const ENTRIES: &[&Entry] = &[
    &ecmp::ENTRY,
    &near_far::ENTRY,
    &balancers::ENTRY,
    &far_bulk::ENTRY,
    &providers::ENTRY,
    &time_of_day::ENTRY,
    &uplink::ENTRY,
    &bufferbloat::ENTRY,
    &idle::ENTRY,
    &rest::ENTRY,
    &cable::ENTRY,
    &guest_share::ENTRY,
    &guest_pinned::ENTRY,
    &guest_starved::ENTRY,
    &guest_load::ENTRY,
    &mesh::ENTRY,
    &rerouting::ENTRY,
    &unfairness::ENTRY,
    &advice::ENTRY,
    &seasons::ENTRY,
    &transfers::ENTRY,
    &overlay::ENTRY,
];

/// The entry of that name.
pub(crate) fn entry(name: &str) -> Option<&'static Entry> {
    ENTRIES.iter().copied().find(|entry| entry.name == name)
}

/// An entry itself, or its control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Finding,
    Control,
}

impl Side {
    /// What stands behind the entry's name where both are shown.
    pub(crate) const fn suffix(self) -> &'static str {
        match self {
            Self::Finding => "",
            Self::Control => ", control",
        }
    }
}

const LAB_FILE: &str = "lab.toml";
const CONTROL_LAB_FILE: &str = "control.lab.toml";

/// A text that is written into the entry's folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shipped {
    pub(crate) file: &'static str,
    pub(crate) text: String,
}

impl Entry {
    /// Whether the cause that `rule` sees is in the network of that side.
    pub(crate) fn has(&self, rule: &str, side: Side) -> bool {
        let expected = self.expected.iter();
        let mut expected = expected.filter(|_| side == Side::Finding);
        self.also.contains(&rule)
            || expected.any(|one| matches!(one.topic, Topic::Cause(name) if name == rule))
    }

    /// Whether some of what a cause is said to be about is without any.
    pub(crate) fn is_innocent(&self, about: &[String]) -> bool {
        about
            .iter()
            .any(|name| self.innocent.contains(&name.as_str()))
    }

    /// The topologies of the plan's seasons.
    pub(crate) fn season_topologies(&self) -> impl Iterator<Item = Shipped> {
        let shipped = |(file, text): &(&'static str, &str)| Shipped {
            file,
            text: (*text).to_owned(),
        };
        self.seasons.iter().map(shipped)
    }

    /// The plan of a side, then its topology.
    pub(crate) fn shipped(&self, side: Side) -> [Shipped; 2] {
        let shipped = |file, text: &str| Shipped {
            file,
            text: text.to_owned(),
        };
        let lab = shipped(LAB_FILE, self.lab);
        match (side, self.control) {
            (Side::Finding, _) => [shipped("plan.toml", self.plan), lab],
            (Side::Control, Control::Plan(plan)) => [shipped("control.toml", plan), lab],
            (Side::Control, Control::Lab(topology)) => {
                let name = |suffix: &str| format!("name = \"gallery {}{suffix}\"", self.name);
                let plan = self
                    .plan
                    .replacen(&name(""), &name(Side::Control.suffix()), 1)
                    .replacen(LAB_FILE, CONTROL_LAB_FILE, 1);
                let topology = shipped(CONTROL_LAB_FILE, topology);
                [shipped("control.toml", &plan), topology]
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::PathBuf;

    use neph_analysis::RULES;
    use neph_campaign::estimate::estimate;
    use neph_campaign::{expand, plan};
    use neph_lab::Topology;
    use neph_report::FIGURES;
    use neph_text::Source;

    use super::*;

    #[test]
    fn every_entry_and_its_control_fit_their_labs_and_take_less_than_three_minutes() {
        for entry in ENTRIES {
            for side in [Side::Finding, Side::Control] {
                let [plan, lab] = entry.shipped(side);
                let told = format!("{}{}: {plan:?}", entry.name, side.suffix());
                let plan = plan::read(&Source::new("plan.toml", plan.text)).expect(&told);
                let name = format!("gallery {}{}", entry.name, side.suffix());
                assert_eq!(plan.name, name);
                let topology = Topology::parse(&Source::new("lab", lab.text)).expect(&told);
                let wanted = plan.lab.as_ref().expect("a lab");
                assert_eq!(wanted.topology.value, lab.file);
                for site in wanted.reflectors.iter().map(|one| &one.site) {
                    assert!(topology.site_index(&site.value).is_some(), "{told}");
                }
                let whole = estimate(&plan, &expand::scenarios(&plan)).whole;
                assert!(whole.secs_f64() < 150.0, "{name} takes {whole}");
            }
        }
    }

    #[test]
    fn names_are_unique_and_have_a_folder_and_a_page() {
        let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
        let names: BTreeSet<&str> = ENTRIES.iter().map(|entry| entry.name).collect();
        assert_eq!(names.len(), ENTRIES.len());
        for entry in ENTRIES {
            let name = entry.name;
            assert!(root.join("gallery").join(name).is_dir(), "gallery/{name}");
            let page = root.join("docs/gallery").join(format!("{name}.md"));
            assert!(page.is_file(), "{}", page.display());
            assert!(
                FIGURES
                    .iter()
                    .any(|kind| entry.figure.starts_with(kind.name))
            );
            assert!(!entry.expected.is_empty(), "{name} expects nothing");
            assert!(!entry.of_control.is_empty(), "{name}: of its control");
            let expected = entry.expected.iter().filter_map(|one| match one.topic {
                Topic::Cause(rule) => Some(rule),
                Topic::Finding(_) | Topic::Median => None,
            });
            for rule in expected.chain(entry.also.iter().copied()) {
                assert!(RULES.iter().any(|one| one.name == rule), "{name}: {rule}");
            }
        }
    }

    #[test]
    fn a_control_over_another_network_is_the_same_plan_otherwise() {
        let entry = entry("uplink").expect("it is there");
        let [plan, lab] = entry.shipped(Side::Control);
        assert_eq!((plan.file, lab.file), ("control.toml", CONTROL_LAB_FILE));
        let back = plan.text.replace(", control\"", "\"");
        assert_eq!(back.replace(CONTROL_LAB_FILE, LAB_FILE), entry.plan);
    }
}
