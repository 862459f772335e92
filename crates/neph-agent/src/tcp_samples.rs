//! The kernel's statistics of the main flow's connection as samples: a value is kept when it changes.

use std::collections::BTreeMap;

use neph_model::{Sample, SeriesName, TcpField};

/// The values that were kept last.
#[derive(Debug, Default)]
pub(crate) struct TcpSamples {
    last_values: BTreeMap<TcpField, u64>,
}

impl TcpSamples {
    /// What of a reading (the beginning of a `struct tcp_info`) differs from the reading before.
    pub(crate) fn changed_samples(&mut self, at: i64, info: &[u8]) -> Vec<Sample> {
        let readings = TcpField::all_fields().filter_map(|field| Some((field, field.read(info)?)));
        let mut changed = Vec::new();
        for (field, value) in readings {
            if self.last_values.insert(field, value) != Some(value) {
                #[expect(clippy::cast_precision_loss, reason = "exact below 2^53")]
                let value = value as f64;
                changed.push(Sample {
                    series: SeriesName::Tcp(field),
                    at,
                    value,
                });
            }
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_stored_only_when_it_changes() {
        let mut samples = TcpSamples::default();
        let mut info = [0; 84];
        let window = |samples: &mut TcpSamples, at: i64, info: &[u8]| -> Vec<(String, f64)> {
            let changed = samples.changed_samples(at, info);
            changed
                .iter()
                .map(|sample| (sample.series.to_string(), sample.value))
                .collect()
        };
        // Every field that the kernel gave: 8 of a byte, 19 of four.
        assert_eq!(window(&mut samples, 0, &info).len(), 27);
        info[80..84].copy_from_slice(&17_u32.to_ne_bytes());
        let expected = [("tcp_snd_cwnd_segments".to_owned(), 17.0)];
        assert_eq!(window(&mut samples, 1, &info), expected);
        assert!(window(&mut samples, 2, &info).is_empty());
    }
}
