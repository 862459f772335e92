//! Why an MQTT broker refuses a connection.

/// The code of a CONNACK that refuses (MQTT 3.1.1, section 3.2.2.3): 1 to 255.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MqttRefusal(pub u8);

impl MqttRefusal {
    /// The refusal whose code is the low byte of this.
    pub(crate) const fn from_number(number: u16) -> Self {
        let [_, code] = number.to_be_bytes();
        Self(code)
    }

    /// `MQTT CONNACK code 5 (not authorized)`.
    pub(crate) fn description(self) -> String {
        let meaning = match self.0 {
            1 => "protocol version not supported",
            2 => "client identifier rejected",
            3 => "server unavailable",
            4 => "bad user name or password",
            5 => "not authorized",
            _ => "not a code of MQTT 3.1.1",
        };
        format!("MQTT CONNACK code {} ({meaning})", self.0)
    }
}
