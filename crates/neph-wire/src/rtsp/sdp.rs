//! Presentation descriptions: the part of SDP (RFC 4566) that an RTP receiver needs.

use std::fmt;

use crate::rtp::OFFSET_URI;

/// Maximum number of streams of a description that are read.
const MAX_MEDIA: usize = 32;

/// A presentation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sdp {
    /// The URL of the presentation as a whole, relative to the base.
    pub control: Option<String>,
    /// Its streams.
    pub media: Vec<Media>,
}

/// A stream of a presentation, in its preferred format.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Media {
    /// `video`, `audio` ...
    pub kind: String,
    /// The payload type of its packets, 0 to 127.
    pub payload_type: u8,
    /// The encoding name.
    pub encoding: Option<String>,
    /// Ticks of the media clock per second.
    pub clock_hz: Option<u32>,
    /// Bandwidth, kbit/s.
    pub bandwidth_kbit: Option<u32>,
    /// Frames per 1000 s.
    pub frames_per_1000_s: Option<u32>,
    /// ID of the header extension with the transmission time offset, 1 to 14 (RFC 5450).
    pub offset_extension_id: Option<u8>,
    /// Its URL, relative to the base.
    pub control: Option<String>,
}

impl Sdp {
    /// Reads a description. Ignores lines that a receiver does not need.
    pub fn parse(text: &str) -> Self {
        let mut sdp = Self::default();
        let mut is_read = true;
        for line in text.lines() {
            let Some((kind, value)) = line.trim_end().split_once('=') else {
                continue;
            };
            if kind == "m" {
                let media = Media::begin(value).filter(|_| sdp.media.len() < MAX_MEDIA);
                is_read = media.is_some();
                sdp.media.extend(media);
            } else if is_read {
                match sdp.media.last_mut() {
                    Some(media) => media.line(kind, value),
                    None => {
                        if let ("a", Some(control)) = (kind, value.strip_prefix("control:")) {
                            sdp.control = word(control);
                        }
                    }
                }
            }
        }
        sdp
    }
}

impl Media {
    /// `video 0 RTP/AVP 96 97`
    fn begin(value: &str) -> Option<Self> {
        let mut fields = value.split_ascii_whitespace();
        let kind = fields.next()?.to_owned();
        let (_, profile) = (fields.next()?, fields.next()?);
        let payload_type = fields.next()?.parse().ok().filter(|number| *number < 128)?;
        profile.starts_with("RTP/").then(|| Self {
            kind,
            payload_type,
            ..Self::default()
        })
    }

    fn line(&mut self, kind: &str, value: &str) {
        if let ("b", Some(bandwidth)) = (kind, value.strip_prefix("AS:")) {
            self.bandwidth_kbit = bandwidth.parse().ok();
        }
        if kind != "a" {
            return;
        }
        match value.split_once(':') {
            Some(("control", control)) => self.control = word(control),
            Some(("framerate", rate)) => self.frames_per_1000_s = thousandths(rate),
            Some(("rtpmap", map)) => self.map(map),
            Some(("extmap", map)) => {
                let mut fields = map.split_ascii_whitespace();
                let number = fields.next().and_then(|number| number.split('/').next());
                let id = number.and_then(|number| number.parse().ok());
                if fields.next() == Some(OFFSET_URI) {
                    self.offset_extension_id = id.filter(|id| (1..15).contains(id));
                }
            }
            _ => {}
        }
    }

    /// `96 H264/90000`
    fn map(&mut self, map: &str) {
        let mut fields = map.split_ascii_whitespace();
        let number = fields.next().and_then(|number| number.parse::<u8>().ok());
        if number != Some(self.payload_type) {
            return;
        }
        let mut parts = fields.next().unwrap_or_default().split('/');
        self.encoding = parts.next().and_then(word);
        let clock = parts.next().and_then(|clock| clock.parse().ok());
        self.clock_hz = clock.filter(|clock| *clock > 0);
    }
}

/// Visible text without a space.
fn word(text: &str) -> Option<String> {
    let is_word = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
    is_word.then(|| text.to_owned())
}

/// A decimal number in thousandths; further digits are cut off.
fn thousandths(text: &str) -> Option<u32> {
    let (integer, part) = text.split_once('.').unwrap_or((text, ""));
    if !integer
        .bytes()
        .chain(part.bytes())
        .all(|byte| byte.is_ascii_digit())
    {
        return None;
    }
    let part: String = part.chars().chain("000".chars()).take(3).collect();
    let (thousands, part) = (integer.parse::<u32>().ok()?, part.parse::<u32>().ok()?);
    thousands.checked_mul(1_000)?.checked_add(part)
}

impl fmt::Display for Sdp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "v=0\r\no=- 0 0 IN IP4 0.0.0.0\r\ns=neph media\r\nc=IN IP4 0.0.0.0\r\nt=0 0\r\n",
        )?;
        if let Some(control) = &self.control {
            write!(f, "a=control:{control}\r\n")?;
        }
        self.media.iter().try_for_each(|media| write!(f, "{media}"))
    }
}

impl fmt::Display for Media {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.payload_type;
        write!(f, "m={} 0 RTP/AVP {number}\r\n", self.kind)?;
        if let Some(bandwidth) = self.bandwidth_kbit {
            write!(f, "b=AS:{bandwidth}\r\n")?;
        }
        if let (Some(encoding), Some(clock)) = (&self.encoding, self.clock_hz) {
            write!(f, "a=rtpmap:{number} {encoding}/{clock}\r\n")?;
        }
        if let Some(rate) = self.frames_per_1000_s {
            let (thousands, part) = (rate / 1_000, rate % 1_000);
            if part == 0 {
                write!(f, "a=framerate:{thousands}\r\n")?;
            } else {
                write!(f, "a=framerate:{thousands}.{part:03}\r\n")?;
            }
        }
        if let Some(id) = self.offset_extension_id {
            write!(f, "a=extmap:{id} {OFFSET_URI}\r\n")?;
        }
        match &self.control {
            Some(control) => write!(f, "a=control:{control}\r\n"),
            None => Ok(()),
        }
    }
}
