//! An order: what one executor is to do, as a value that crosses processes as JSON.
//!
//! Owns which orders there are. Who carries one out, and where, is not known here.

use serde::{Deserialize, Serialize};

use crate::{LoadSpec, Span};

/// What one executor is to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Order {
    /// To make a load.
    Load(LoadOrder),
}

/// A load to make.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadOrder {
    /// What it is.
    pub load: LoadSpec,
    /// After how long it ends, if nobody ends it before.
    #[serde(rename = "duration_ns")]
    pub duration: Span,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{Strategy, any, prop_oneof};

    use super::*;
    use crate::{BitRate, CpuShare};

    fn load() -> impl Strategy<Value = LoadSpec> {
        let rate = || any::<u64>().prop_map(BitRate);
        prop_oneof![
            (1.0..=100.0_f64).prop_filter_map("a share", |percent| {
                CpuShare::percent(percent).map(LoadSpec::Cpu)
            }),
            (any::<String>(), proptest::option::of(rate()))
                .prop_map(|(to, rate)| LoadSpec::Flow { to, rate }),
            (any::<String>(), rate()).prop_map(|(to, rate)| LoadSpec::Stream { to, rate }),
        ]
    }

    proptest::proptest! {
        #[test]
        fn an_order_is_read_as_it_is_written(load in load(), nanos in any::<i64>()) {
            let duration = Span::from_nanos(nanos);
            let order = Order::Load(LoadOrder { load, duration });
            let text = serde_json::to_string(&order).expect("it is plain data");
            let read: Order = serde_json::from_str(&text).expect("as it was written");
            proptest::prop_assert_eq!(read, order);
        }
    }

    #[test]
    fn what_is_no_order_is_refused() {
        for text in [
            "{}",
            r#"{"load": {"load": {"cpu": 101.0}, "duration_ns": 1}}"#,
            r#"{"load": {"load": {"cpu": 80.0}, "duration_ns": 1, "more": 2}}"#,
            r#"{"dance": {}}"#,
        ] {
            assert!(serde_json::from_str::<Order>(text).is_err(), "{text}");
        }
    }
}
