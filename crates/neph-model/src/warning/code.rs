//! Codes of warnings: a number and a name, which never change and are never used again.

use std::fmt;

use super::Warning;

/// The code of a warning: `W001 sender-late`. `neph explain W001` explains it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WarningCode {
    /// From 1.
    pub number: u16,
    /// Lower-case words with hyphens.
    pub name: &'static str,
}

impl fmt::Display for WarningCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "W{:03} {}", self.number, self.name)
    }
}

impl WarningCode {
    /// How many there are: the greatest number.
    pub const COUNT: usize = 22;

    const fn new(number: u16, name: &'static str) -> Self {
        Self { number, name }
    }
}

impl Warning {
    /// Its code.
    pub const fn code(&self) -> WarningCode {
        match self {
            Self::SenderLate { .. } => WarningCode::new(1, "sender-late"),
            Self::CpuStolen { .. } => WarningCode::new(2, "cpu-stolen"),
            Self::CpuSaturated { .. } => WarningCode::new(3, "cpu-saturated"),
            Self::ClockStepped { .. } => WarningCode::new(4, "clock-stepped"),
            Self::TimestampsMissing { .. } => WarningCode::new(5, "timestamps-missing"),
            Self::Reconnected { .. } => WarningCode::new(6, "reconnected"),
            Self::UnexpectedAnswers { .. } => WarningCode::new(7, "unexpected-answers"),
            Self::NotSentHere { .. } => WarningCode::new(8, "not-sent"),
            Self::AddressChanged { .. } => WarningCode::new(9, "address-changed"),
            Self::SeveralBackends { .. } => WarningCode::new(10, "several-servers"),
            Self::FewMessages { .. } => WarningCode::new(11, "few-messages"),
            Self::LinkLate { .. } => WarningCode::new(12, "late-link"),
            Self::SizesNotApplied { .. } => WarningCode::new(13, "sizes-not-applied"),
            Self::EchoMissing { .. } => WarningCode::new(14, "echo-missing"),
            Self::DroppedHere { .. } => WarningCode::new(15, "replies-dropped"),
            Self::MessagesRefused { .. } => WarningCode::new(16, "messages-refused"),
            Self::ConnectionsRefused { .. } => WarningCode::new(17, "connections-refused"),
            Self::ReflectorSlow { .. } => WarningCode::new(18, "reflector-slow"),
            Self::ReflectorDropped { .. } => WarningCode::new(19, "requests-dropped"),
            Self::NamespaceFallback { .. } => WarningCode::new(20, "guests-replaced"),
            Self::LoadTargetMissed { .. } => WarningCode::new(21, "load-missed-target"),
            Self::LinkLostPackets { .. } => WarningCode::new(22, "lossy-link"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Span;

    #[test]
    fn the_documentation_has_a_section_for_each_warning_code() {
        let page = include_str!("../../../../docs/warnings.md");
        let sections = page.matches("\n## W").count();
        assert_eq!(sections, WarningCode::COUNT);
        // A number that is used twice means that another number is missing.
        let source = include_str!("code.rs");
        for number in 1..=WarningCode::COUNT {
            let row = source
                .split(&format!("WarningCode::new({number}, \""))
                .nth(1);
            let name = row.and_then(|row| row.split('"').next());
            let name = name.unwrap_or_else(|| panic!("no warning has the number {number}"));
            assert!(
                page.contains(&format!("\n## W{number:03} {name}\n")),
                "{name}"
            );
        }
        let late = Warning::LinkLate {
            packets: 1,
            worst: Span::from_micros(80),
        };
        assert_eq!(late.code().to_string(), "W012 late-link");
    }
}
