//! A capture point as an argument: `NAME=FILE`, `NAME@HOST=FILE` or a file alone; `FILE+FILE` where each has
//! one direction.

use std::path::{Path, PathBuf};

use neph_model::{ClockReading, Wall};

use crate::reading::ReadError;
use crate::reading::parts::capture_files;

/// A capture with the name of the place where it was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Point {
    pub name: String,
    /// The host whose clock made its timestamps. Two points of one host have one clock.
    pub host: Option<String>,
    pub path: PathBuf,
    /// Begin and end of a recording without gaps, by its clock, if the recorder knows it. A capture shows
    /// only its packets.
    pub listened: Option<[Wall; 2]>,
    /// No packet passed it while it was recorded: there is nothing to read.
    pub is_silent: bool,
    /// Readings of its clock against a clock that all points with readings share.
    pub clock: Vec<ClockReading>,
}

impl Point {
    /// Parses an argument.
    ///
    /// # Errors
    /// A name, a host or a file is empty.
    pub fn parse(text: &str) -> Result<Self, ReadError> {
        let refused = || {
            ReadError::wrong(format!(
                "'{text}' is no point of capture; write NAME=FILE.pcap, NAME@HOST=FILE.pcap or FILE.pcap"
            ))
        };
        let (name, path) = match text.split_once('=') {
            Some((name, path)) => (name.to_owned(), path),
            None => (name_from_path(text), text),
        };
        let (name, host) = match name.split_once('@') {
            Some((name, host)) if text.contains('=') => (name.to_owned(), Some(host.to_owned())),
            _ => (name, None),
        };
        if name.is_empty() || path.is_empty() || host.as_deref() == Some("") {
            return Err(refused());
        }
        Ok(Self {
            name,
            host,
            path: PathBuf::from(path),
            listened: None,
            is_silent: false,
            clock: Vec::new(),
        })
    }

    /// Whether two points are known to read one clock.
    pub fn has_clock_of(&self, other: &Self) -> bool {
        self.host.is_some() && self.host == other.host
    }
}

/// File names without folders and without the extensions of captures.
fn name_from_path(path: &str) -> String {
    let stems = capture_files(Path::new(path));
    let stems = stems.iter().map(|part| file_stem(&part.to_string_lossy()));
    stems.collect::<Vec<_>>().join("+")
}

fn file_stem(path: &str) -> String {
    let name = Path::new(path).file_name().unwrap_or_default();
    let mut name = name.to_string_lossy().into_owned();
    for ending in [".gz", ".zst", ".pcap", ".pcapng", ".cap"] {
        if let Some(shorter) = name.strip_suffix(ending).filter(|rest| !rest.is_empty()) {
            name = shorter.to_owned();
        }
    }
    name
}

/// Parses all arguments.
///
/// # Errors
/// One is invalid, or two have the same name.
pub fn parse_all(texts: &[String]) -> Result<Vec<Point>, ReadError> {
    let points: Vec<Point> = texts
        .iter()
        .map(|text| Point::parse(text))
        .collect::<Result<_, _>>()?;
    for (index, point) in points.iter().enumerate() {
        if points[..index].iter().any(|other| other.name == point.name) {
            return Err(ReadError::wrong(format!(
                "two points are called {}; write NAME=FILE for each",
                point.name
            )));
        }
    }
    Ok(points)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> (String, Option<String>, String) {
        let point = Point::parse(text).expect("a point");
        let path = point.path.display().to_string();
        (point.name, point.host, path)
    }

    #[test]
    fn a_point_is_named_explicitly_or_after_its_file() {
        let none = None::<String>;
        assert_eq!(
            parsed("tap=/x/1.pcap"),
            ("tap".into(), none.clone(), "/x/1.pcap".into())
        );
        assert_eq!(
            parsed("/x/tap.pcapng.zst"),
            ("tap".into(), none, "/x/tap.pcapng.zst".into())
        );
        assert_eq!(
            parsed("tap@kvm1=b=c.pcap"),
            ("tap".into(), Some("kvm1".into()), "b=c.pcap".into())
        );
    }

    #[test]
    fn one_name_for_two_points_and_empty_names_are_refused() {
        for texts in [
            &["a/x.pcap", "b/x.pcap"][..],
            &["=f", "g"],
            &["a@=f", "g"],
            &["a="],
        ] {
            let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
            assert!(parse_all(&texts).is_err(), "{texts:?}");
        }
    }
}
