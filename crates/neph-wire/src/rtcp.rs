//! Receiver reports of RTCP (RFC 3550, section 6.4.2), which also keep a receiver's session alive.
//!
//! Does not read other RTCP packets.

/// The packet types of receiver reports and of source descriptions.
const REPORT: u8 = 201;
const DESCRIPTION: u8 = 202;
/// The item of a source description that each compound packet has.
const CNAME: u8 = 1;
const NAME: &[u8; 10] = b"nephoscope";
/// Bytes of a report with one block.
const LEN: usize = 32;

/// A report about one source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiverReport {
    /// The SSRC of the receiver.
    pub receiver: u32,
    /// The SSRC of the source.
    pub source: u32,
    /// Share of packets lost since the last report, in 256ths.
    pub fraction_lost: u8,
    /// Packets lost since the beginning, limited to signed 24 bits.
    pub lost: i32,
    /// The highest sequence number, with its wraps in the upper half.
    pub highest: u32,
    /// Interarrival jitter in ticks of the media clock.
    pub jitter: u32,
}

impl ReceiverReport {
    /// Appends a compound packet: the report, and a source description with a CNAME.
    pub fn encode(&self, out: &mut Vec<u8>) {
        const MAXIMUM: i32 = (1 << 23) - 1;
        out.extend([0x81, REPORT, 0, 7]);
        out.extend(self.receiver.to_be_bytes());
        out.extend(self.source.to_be_bytes());
        let [_, high, middle, low] = self.lost.clamp(-MAXIMUM, MAXIMUM).to_be_bytes();
        out.extend([self.fraction_lost, high, middle, low]);
        out.extend(self.highest.to_be_bytes());
        out.extend(self.jitter.to_be_bytes());
        // Time of the last sender report and delay since it: 0, as none was received.
        out.extend([0; 8]);
        out.extend([0x81, DESCRIPTION, 0, 4]);
        out.extend(self.receiver.to_be_bytes());
        out.push(CNAME);
        out.push(10);
        out.extend(NAME);
    }

    /// Reads the first block of a report at the start of a compound packet. `None` if it is no
    /// receiver report or has no block.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let report = bytes.first_chunk::<LEN>()?;
        let word = |at: usize| {
            let bytes = report.get(at..at + 4)?;
            Some(u32::from_be_bytes(bytes.try_into().ok()?))
        };
        let is_report = report[0] >> 6 == 2 && report[0] & 0x1f > 0 && report[1] == REPORT;
        if !is_report {
            return None;
        }
        let lost = word(12)?;
        Some(Self {
            receiver: word(4)?,
            source: word(8)?,
            fraction_lost: report[12],
            // The lower 24 bits, sign-extended.
            lost: (lost << 8).cast_signed() >> 8,
            highest: word(16)?,
            jitter: word(20)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_rtcp_report_is_encoded_as_rfc_3550_shows() {
        let report = ReceiverReport {
            receiver: 0x0102_0304,
            source: 0xa0b0_c0d0,
            fraction_lost: 64,
            lost: -1,
            highest: 0x0001_ffff,
            jitter: 90,
        };
        let mut bytes = Vec::new();
        report.encode(&mut bytes);
        let expected = [
            0x81, 201, 0, 7, 1, 2, 3, 4, 0xa0, 0xb0, 0xc0, 0xd0, 64, 255, 255, 255, 0, 1, 255, 255,
            0, 0, 0, 90,
        ];
        assert_eq!(bytes[..24], expected);
        // Two packets of whole words; their length fields are in words minus one.
        assert_eq!(bytes.len(), (7 + 1 + 4 + 1) * 4);
        assert_eq!(bytes[32..36], [0x81, 202, 0, 4]);
    }

    proptest! {
        #[test]
        fn rtcp_reports_roundtrip(
            receiver: u32, source: u32, fraction_lost: u8, lost in -8_388_607i32..8_388_608,
            highest: u32, jitter: u32, bytes in vec(any::<u8>(), 0..80),
        ) {
            let report = ReceiverReport { receiver, source, fraction_lost, lost, highest, jitter };
            let mut written = Vec::new();
            report.encode(&mut written);
            prop_assert_eq!(ReceiverReport::decode(&written), Some(report));
            prop_assert_eq!(ReceiverReport::decode(&written[..LEN - 1]), None);
            ReceiverReport::decode(&bytes);
        }
    }
}
