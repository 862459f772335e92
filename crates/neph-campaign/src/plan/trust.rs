//! Which certificates a plan's TLS endpoints trust, where the command line or an earlier run decides.

use neph_model::{Parameter, ParameterName, Pins, Scenario};

use super::Plan;
use super::model::ParameterLists;

/// The parameters that decide it.
const TRUST_PARAMETERS: [ParameterName; 3] = [
    ParameterName::Insecure,
    ParameterName::CaFile,
    ParameterName::Pin,
];
/// Start of the note for a settings file without verification of certificates.
pub(crate) const ANY_CERTIFICATE: &str = "WARNING: any certificate is accepted";

/// Which certificates are trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrustedCertificates {
    /// Any: nothing is verified.
    Any,
    /// Those that an authority in this file (PEM) signed.
    SignedBy(String),
    /// Those with one of these fingerprints, by any issuer.
    Pinned(Pins),
}

impl Plan {
    /// Makes all TLS endpoints trust `certificates`, for any settings of the plan. Returns their number.
    pub fn trust(&mut self, certificates: &TrustedCertificates) -> usize {
        let parameter = match certificates {
            TrustedCertificates::Any => Parameter::Insecure(true),
            TrustedCertificates::SignedBy(file) => Parameter::CaFile(file.clone()),
            TrustedCertificates::Pinned(pins) => Parameter::Pin(pins.clone()),
        };
        let mut count = 0;
        for endpoint in self
            .endpoints
            .iter_mut()
            .filter(|endpoint| endpoint.target.is_secure())
        {
            count += 1;
            let parameters = &mut endpoint.axes.parameters;
            parameters.retain(|name, _| !TRUST_PARAMETERS.contains(name));
            parameters.insert(parameter.name(), vec![parameter.clone()]);
        }
        // What the user decides on the command line needs no warning.
        self.notes.retain(|note| !note.starts_with(ANY_CERTIFICATE));
        count
    }

    /// Makes each TLS endpoint trust what the scenarios of its campaign were measured with, so that a
    /// campaign that was started with `--insecure`, `--ca-file` or `--pin` goes on with it.
    pub fn restore_trust(&mut self, measured_scenarios: &[Scenario]) {
        for endpoint in self
            .endpoints
            .iter_mut()
            .filter(|endpoint| endpoint.target.is_secure())
        {
            let is_of_endpoint = |scenario: &&Scenario| scenario.endpoint == endpoint.name;
            let scenarios = measured_scenarios.iter().filter(is_of_endpoint);
            let mut sets = scenarios.map(trust_parameters_of);
            // Where the plan varies them itself there are several sets, and the command line had no say.
            if let Some(first) = sets.next()
                && sets.all(|other| other == first)
            {
                let parameters = &mut endpoint.axes.parameters;
                parameters.retain(|name, _| !TRUST_PARAMETERS.contains(name));
                parameters.extend(first);
            }
        }
    }
}

fn trust_parameters_of(scenario: &Scenario) -> ParameterLists {
    let parameter_entry = |name| Some((name, vec![scenario.parameters.get(name)?.clone()]));
    TRUST_PARAMETERS
        .into_iter()
        .filter_map(parameter_entry)
        .collect()
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
        let name = ParameterName::from_name(name).expect("a parameter");
        let values = plan.endpoints[endpoint].axes.parameters.get(&name)?;
        Some(values.iter().map(Parameter::text).collect())
    }

    #[test]
    fn command_line_trust_applies_to_all_tls_endpoints_only() {
        let mut plan = read("ca_file = \"mine.pem\"\n");
        assert_eq!(plan.trust(&TrustedCertificates::Any), 1);
        assert_eq!(value(&plan, 0, "insecure"), Some(vec!["true".to_owned()]));
        assert_eq!(value(&plan, 0, "ca_file"), None);
        assert!(plan.endpoints[1].axes.parameters.is_empty());
        let file = TrustedCertificates::SignedBy("other.pem".to_owned());
        assert_eq!(plan.trust(&file), 1);
        assert_eq!(value(&plan, 0, "insecure"), None);
        assert_eq!(
            value(&plan, 0, "ca_file"),
            Some(vec!["other.pem".to_owned()])
        );
    }

    #[test]
    fn a_command_line_pin_replaces_the_trust_settings_of_the_plan() {
        let pins: Pins = "ab".repeat(32).parse().expect("a fingerprint");
        let mut plan = read("insecure = true\n");
        assert_eq!(plan.trust(&TrustedCertificates::Pinned(pins.clone())), 1);
        assert_eq!(value(&plan, 0, "insecure"), None);
        assert_eq!(value(&plan, 0, "pin"), Some(vec![pins.to_string()]));
        let mut planned = read(&format!(
            "pin = \"{},{}\"\n",
            "ab".repeat(32),
            "CD".repeat(32)
        ));
        let pins_text = value(&planned, 0, "pin").expect("it is written");
        let both: Pins = pins_text[0].parse().expect("fingerprints");
        assert_eq!(both.fingerprints().len(), 2);
        assert_eq!(planned.trust(&TrustedCertificates::Any), 1);
        assert_eq!(value(&planned, 0, "pin"), None);
    }

    #[test]
    fn a_resumed_campaign_keeps_its_original_trust_settings() {
        for more in ["", "ca_file = \"mine.pem\"\n", "insecure = [true, false]\n"] {
            let mut original = read(more);
            original.trust(&TrustedCertificates::Any);
            let measured = scenarios(&original);
            let mut resumed = read(more);
            resumed.restore_trust(&measured);
            assert_eq!(scenarios(&resumed), measured, "{more}");
        }
        let varied = scenarios(&read("insecure = [true, false]\n"));
        let mut resumed = read("insecure = [true, false]\n");
        resumed.restore_trust(&varied);
        assert_eq!(scenarios(&resumed), varied);
    }
}
