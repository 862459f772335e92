//! Think times and arrivals of options: as text, or from a file of times or rates.

use std::path::Path;

use neph_model::{
    ArrivalSpacing, Arrivals, RateCurve, RatePoint, RequestRate, Span, TimeDistribution,
};

use crate::text_file;

/// A distribution of think times, or `file:PATH` with a time on each line.
pub(super) fn think_time(text: &str) -> Result<TimeDistribution, String> {
    let Some(path) = text.strip_prefix("file:") else {
        return text
            .parse()
            .map_err(|error: neph_model::NoTimeDistribution| error.to_string());
    };
    let times = lines(path)?.into_iter().map(|(number, line)| {
        let time = Span::from_compact(&line).filter(|time| *time >= Span::ZERO);
        time.ok_or_else(|| format!("{path}:{number}: '{line}' is no time; write for example 20ms"))
    });
    let times: Vec<Span> = times.collect::<Result<_, String>>()?;
    if times.is_empty() {
        return Err(format!("{path} has no times; write one on each line"));
    }
    Ok(TimeDistribution::Samples { times })
}

/// Arrivals, or `[poisson ]file:PATH` with lines of a time and a rate.
pub(super) fn arrivals(text: &str) -> Result<Arrivals, String> {
    let (spacing, rest) = match text.strip_prefix("poisson ") {
        Some(rest) => (ArrivalSpacing::Poisson, rest),
        None => (ArrivalSpacing::Constant, text),
    };
    let Some(path) = rest.strip_prefix("file:") else {
        return text
            .parse()
            .map_err(|error: neph_model::NoArrivals| error.to_string());
    };
    let points = lines(path)?.into_iter().map(|(number, line)| {
        rate_point(&line).ok_or_else(|| {
            format!("{path}:{number}: '{line}' is no time and rate; write for example 30s 200/s")
        })
    });
    let points: Vec<RatePoint> = points.collect::<Result<_, String>>()?;
    let is_ascending = points.windows(2).all(|pair| pair[0].from < pair[1].from);
    let starts_at_zero = points.first().is_some_and(|point| point.from == Span::ZERO);
    let rate = RateCurve::Points { points };
    if !is_ascending || !starts_at_zero || rate.max() == RequestRate::default() {
        return Err(format!(
            "{path}: the first time must be 0, each further time later than the one before, and one rate \
             above 0"
        ));
    }
    Ok(Arrivals { spacing, rate })
}

/// A time and a rate, with a comma or spaces between them.
fn rate_point(line: &str) -> Option<RatePoint> {
    let (from, rate) = line.split_once([',', ' ', '\t'])?;
    Some(RatePoint {
        from: Span::from_compact(from).filter(|from| *from >= Span::ZERO)?,
        rate: rate.trim().parse().ok()?,
    })
}

/// Lines with their numbers, without empty ones and comments.
fn lines(path: &str) -> Result<Vec<(usize, String)>, String> {
    let source = text_file::read_or_message(text_file::PROFILE, Path::new(path))?;
    let lines = (1..).zip(source.text().lines());
    let lines = lines.map(|(number, line)| (number, line.trim().to_owned()));
    Ok(lines
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> (tempfile::TempDir, String) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("profile");
        std::fs::write(&path, text).expect("written");
        let option = format!("file:{}", path.display());
        (folder, option)
    }

    #[test]
    fn a_file_has_a_time_on_each_line() {
        let (_folder, option) = file("# think times\n20ms\n\n1.5s\n");
        let times = [20, 1_500].map(Span::from_millis).to_vec();
        assert_eq!(think_time(&option), Ok(TimeDistribution::Samples { times }));
        let (_folder, option) = file("20ms\nslow\n");
        let error = think_time(&option).expect_err("no time");
        assert!(error.contains(":2: 'slow' is no time"), "{error}");
        let (_folder, option) = file("\n");
        assert!(think_time(&option).is_err());
    }

    #[test]
    fn a_file_has_rates_in_the_order_of_their_times() {
        let (_folder, option) = file("0s,100/s\n30s 200/s\n1min\t0/s\n");
        let parsed = arrivals(&format!("poisson {option}")).expect("rates");
        assert_eq!(parsed.spacing, ArrivalSpacing::Poisson);
        assert_eq!(parsed.rate.max(), RequestRate::from_milli(200_000));
        for wrong in ["1s 5/s\n", "0s 5/s\n0s 6/s\n", "0s 0/s\n", "0s 5\n", ""] {
            let (_folder, option) = file(wrong);
            assert!(arrivals(&option).is_err(), "{wrong}");
        }
        assert!(arrivals("file:/nonexistent").is_err_and(|error| error.contains("cannot be read")));
    }
}
