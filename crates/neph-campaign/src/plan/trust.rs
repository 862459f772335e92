//! Which certificates a plan's TLS endpoints trust, where the command line or an earlier run decides.

use std::collections::BTreeMap;

use neph_model::Scenario;
use neph_probe::{Fingerprint, NoFingerprint};

use super::Plan;

/// The parameters that decide it.
const PARAMETERS: [&str; 3] = ["insecure", "ca_file", "pin"];
/// How the note of a settings file begins whose certificates nobody verifies.
pub(crate) const ANY_CERTIFICATE: &str = "WARNING: any certificate is accepted";

/// Which certificates are trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Certificates {
    /// Any: nothing is verified.
    Any,
    /// Those that an authority in this file (PEM) signed.
    SignedBy(String),
    /// Those with one of these fingerprints, by any issuer.
    Pinned(Vec<Fingerprint>),
}

/// The fingerprints that a plan pins, with commas between.
pub(crate) fn pins(text: &str) -> Result<Vec<Fingerprint>, NoFingerprint> {
    text.split(',').map(str::parse).collect()
}

/// As [`pins`] reads them.
pub(crate) fn written(pins: &[Fingerprint]) -> String {
    let words: Vec<String> = pins.iter().map(ToString::to_string).collect();
    words.join(",")
}

impl Plan {
    /// Makes all TLS endpoints trust `certificates`, whatever the plan says. Returns their number.
    pub fn trust(&mut self, certificates: &Certificates) -> usize {
        let (name, value) = match certificates {
            Certificates::Any => ("insecure", "true".to_owned()),
            Certificates::SignedBy(file) => ("ca_file", file.clone()),
            Certificates::Pinned(pins) => ("pin", written(pins)),
        };
        let mut count = 0;
        for endpoint in self.endpoints.iter_mut().filter(|one| one.target.secure) {
            count += 1;
            let parameters = &mut endpoint.axes.parameters;
            parameters.retain(|name, _| !PARAMETERS.contains(&name.as_str()));
            parameters.insert(name.to_owned(), vec![value.clone()]);
        }
        // What the user decides on the command line needs no warning.
        self.notes.retain(|note| !note.starts_with(ANY_CERTIFICATE));
        count
    }

    /// Makes each TLS endpoint trust what the scenarios of its campaign were measured with, so that a
    /// campaign that was started with `--insecure`, `--ca-file` or `--pin` goes on with it.
    pub fn trust_as_in(&mut self, measured: &[Scenario]) {
        for endpoint in self.endpoints.iter_mut().filter(|one| one.target.secure) {
            let own = |one: &&Scenario| one.endpoint == endpoint.name;
            let mut sets = measured.iter().filter(own).map(parameters_of);
            // Where the plan varies them itself there are several sets, and the command line had no say.
            if let Some(first) = sets.next()
                && sets.all(|other| other == first)
            {
                let parameters = &mut endpoint.axes.parameters;
                parameters.retain(|name, _| !PARAMETERS.contains(&name.as_str()));
                parameters.extend(first);
            }
        }
    }
}

fn parameters_of(scenario: &Scenario) -> BTreeMap<String, Vec<String>> {
    let of = |name: &str| {
        let value = scenario.parameters.get(name)?;
        Some((name.to_owned(), vec![value.clone()]))
    };
    PARAMETERS.into_iter().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use neph_text::Source;

    use super::*;
    use crate::expand::scenarios;
    use crate::plan;

    fn read(more: &str) -> Plan {
        let text = format!(
            "version = 1\nname = \"t\"\ninterval = \"10ms\"\nmessages = 5\n[[endpoint]]\nname = \"tls\"\n\
             url = \"wss://a:1\"\n{more}[[endpoint]]\nname = \"plain\"\nurl = \"ws://a:2\"\n"
        );
        plan::parse(&Source::new("p.toml", text)).expect("a good plan")
    }

    fn value(plan: &Plan, endpoint: usize, name: &str) -> Option<Vec<String>> {
        plan.endpoints[endpoint].axes.parameters.get(name).cloned()
    }

    #[test]
    fn the_command_line_decides_for_all_tls_endpoints_and_no_other() {
        let mut plan = read("ca_file = \"mine.pem\"\n");
        assert_eq!(plan.trust(&Certificates::Any), 1);
        assert_eq!(value(&plan, 0, "insecure"), Some(vec!["true".to_owned()]));
        assert_eq!(value(&plan, 0, "ca_file"), None);
        assert!(plan.endpoints[1].axes.parameters.is_empty());
        let file = Certificates::SignedBy("other.pem".to_owned());
        assert_eq!(plan.trust(&file), 1);
        assert_eq!(value(&plan, 0, "insecure"), None);
        assert_eq!(
            value(&plan, 0, "ca_file"),
            Some(vec!["other.pem".to_owned()])
        );
    }

    #[test]
    fn a_pin_of_the_command_line_replaces_what_the_plan_trusts() {
        let pins = pins(&"ab".repeat(32)).expect("a fingerprint");
        let mut plan = read("insecure = true\n");
        assert_eq!(plan.trust(&Certificates::Pinned(pins.clone())), 1);
        assert_eq!(value(&plan, 0, "insecure"), None);
        assert_eq!(value(&plan, 0, "pin"), Some(vec![written(&pins)]));
        let mut planned = read(&format!(
            "pin = \"{},{}\"\n",
            "ab".repeat(32),
            "CD".repeat(32)
        ));
        let both = value(&planned, 0, "pin").expect("it is written");
        assert_eq!(super::pins(&both[0]).map(|pins| pins.len()), Ok(2));
        assert_eq!(planned.trust(&Certificates::Any), 1);
        assert_eq!(value(&planned, 0, "pin"), None);
    }

    #[test]
    fn a_campaign_goes_on_with_what_it_was_started_with() {
        for more in ["", "ca_file = \"mine.pem\"\n", "insecure = [true, false]\n"] {
            let mut begun = read(more);
            begun.trust(&Certificates::Any);
            let measured = scenarios(&begun);
            let mut again = read(more);
            again.trust_as_in(&measured);
            assert_eq!(scenarios(&again), measured, "{more}");
        }
        let varied = scenarios(&read("insecure = [true, false]\n"));
        let mut again = read("insecure = [true, false]\n");
        again.trust_as_in(&varied);
        assert_eq!(scenarios(&again), varied);
    }
}
