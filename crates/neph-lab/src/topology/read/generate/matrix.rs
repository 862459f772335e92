//! Round trips between sites: measured by the sources, or estimated from the distance. Each value has an
//! origin.
//!
//! europe-5: the six circuits between Amsterdam, Bratislava, Ljubljana and Milan that source 5 measured
//! (appendix D, libnetwork, VM, mean). Its hosts in Prague did not answer, so Prague's four are estimated.
//!
//! aws: source 3 has 120 pairs, so 16 regions, without round trips. All are estimated, between the cities
//! that the regions are named after.
//!
//! Estimated: twice the great circle at two thirds of the speed of light, times [`PATH_FACTOR`], to 0.1 ms.

use neph_model::Span;

/// Ratio of a fibre path to the great circle. Two of source 5's six circuits are direct: Amsterdam -
/// Bratislava (17.7 ms over 985 km: 1.80) and Milan - Bratislava (13.0 ms over 672 km: 1.93). This is their
/// mean.
const PATH_FACTOR: f64 = 1.86;
/// Distance in fibre per millisecond, in kilometres: two thirds of 299.792.
const FIBRE_KM_PER_MS: f64 = 199.861;
const EARTH_RADIUS_KM: f64 = 6371.0;

/// Creates a matrix.
type MatrixBuilder = fn() -> Matrix;

/// The matrices that have a name.
pub(super) const NAMED_MATRICES: &[(&str, MatrixBuilder)] =
    &[("europe-5", europe_matrix), ("aws", aws_matrix)];

/// A site of a matrix.
#[derive(Clone, Debug)]
pub(super) struct MatrixSite {
    pub(super) name: String,
    pub(super) labels: Vec<(&'static str, &'static str)>,
}

/// Sites, and the round trip of each pair.
#[derive(Clone, Debug)]
pub(super) struct Matrix {
    pub(super) sites: Vec<MatrixSite>,
    /// `round_trips[a][b]` for `a` below `b`.
    round_trips: Vec<Vec<Span>>,
}

impl Matrix {
    /// Between sites of these names, all zero.
    pub(super) fn new(names: Vec<String>) -> Self {
        let round_trips = vec![vec![Span::ZERO; names.len()]; names.len()];
        let site = |name| MatrixSite {
            name,
            labels: Vec::new(),
        };
        Self {
            sites: names.into_iter().map(site).collect(),
            round_trips,
        }
    }

    pub(super) fn set(&mut self, a: usize, b: usize, round_trip: Span) {
        self.round_trips[a.min(b)][a.max(b)] = round_trip;
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.sites.iter().map(|site| site.name.clone()).collect()
    }

    /// Between the sites of these names; zero if unknown.
    fn round_trip(&self, a: &str, b: &str) -> Span {
        let index = |name| self.sites.iter().position(|site| site.name == name);
        let indices = index(a).zip(index(b));
        indices.map_or(Span::ZERO, |(a, b)| self.round_trips[a.min(b)][a.max(b)])
    }

    /// Half the round trip.
    pub(super) fn one_way(&self, a: &str, b: &str) -> Span {
        Span::from_nanos(self.round_trip(a, b).nanos() / 2)
    }

    /// Keeps the sites of these names, in this order.
    pub(super) fn keep(&mut self, names: &[String]) {
        let mut reduced = Self::new(names.to_vec());
        for (a, name) in names.iter().enumerate() {
            if let Some(site) = self.sites.iter().find(|site| site.name == *name) {
                reduced.sites[a] = site.clone();
            }
            for (b, other) in names.iter().enumerate().skip(a + 1) {
                reduced.set(a, b, self.round_trip(name, other));
            }
        }
        *self = reduced;
    }
}

/// A city on the globe, in degrees north and east.
struct City {
    name: &'static str,
    coordinates: (f64, f64),
    labels: &'static [(&'static str, &'static str)],
}

const fn city(
    name: &'static str,
    coordinates: (f64, f64),
    labels: &'static [(&'static str, &'static str)],
) -> City {
    City {
        name,
        coordinates,
        labels,
    }
}

const EUROPEAN_CITIES: [City; 5] = [
    city(
        "amsterdam",
        (52.37, 4.90),
        &[("round_trips", "measured, source 5")],
    ),
    city(
        "bratislava",
        (48.15, 17.11),
        &[("round_trips", "measured, source 5")],
    ),
    city(
        "ljubljana",
        (46.06, 14.51),
        &[("round_trips", "measured, source 5")],
    ),
    city(
        "milan",
        (45.46, 9.19),
        &[("round_trips", "measured, source 5")],
    ),
    city(
        "prague",
        (50.08, 14.44),
        &[("round_trips", "estimated from distance")],
    ),
];

/// Source 5, appendix D, libnetwork, VM, mean: tenths of a millisecond.
const MEASURED_TENTHS_MS: [(&str, &str, i64); 6] = [
    ("amsterdam", "milan", 365),
    ("amsterdam", "ljubljana", 303),
    ("amsterdam", "bratislava", 177),
    ("milan", "ljubljana", 621),
    ("milan", "bratislava", 130),
    ("bratislava", "ljubljana", 474),
];

const AWS_CITIES: [City; 16] = [
    city("virginia", (38.95, -77.45), &[("region", "us-east-1")]),
    city("ohio", (39.96, -83.00), &[("region", "us-east-2")]),
    city("california", (37.35, -121.96), &[("region", "us-west-1")]),
    city("oregon", (45.84, -119.70), &[("region", "us-west-2")]),
    city("canada", (45.50, -73.57), &[("region", "ca-central-1")]),
    city("saopaulo", (-23.55, -46.63), &[("region", "sa-east-1")]),
    city("ireland", (53.35, -6.26), &[("region", "eu-west-1")]),
    city("london", (51.51, -0.13), &[("region", "eu-west-2")]),
    city("paris", (48.86, 2.35), &[("region", "eu-west-3")]),
    city("frankfurt", (50.11, 8.68), &[("region", "eu-central-1")]),
    city("stockholm", (59.33, 18.07), &[("region", "eu-north-1")]),
    city("mumbai", (19.08, 72.88), &[("region", "ap-south-1")]),
    city("singapore", (1.35, 103.82), &[("region", "ap-southeast-1")]),
    city("sydney", (-33.87, 151.21), &[("region", "ap-southeast-2")]),
    city("tokyo", (35.68, 139.69), &[("region", "ap-northeast-1")]),
    city("seoul", (37.57, 126.98), &[("region", "ap-northeast-2")]),
];

fn europe_matrix() -> Matrix {
    let mut matrix = estimate_matrix(&EUROPEAN_CITIES);
    let names = matrix.names();
    let index = |name: &str| names.iter().position(|known| known == name);
    for (a, b, tenths) in MEASURED_TENTHS_MS {
        if let Some((a, b)) = index(a).zip(index(b)) {
            matrix.set(a, b, Span::from_micros(tenths * 100));
        }
    }
    matrix
}

fn aws_matrix() -> Matrix {
    estimate_matrix(&AWS_CITIES)
}

fn estimate_matrix(cities: &[City]) -> Matrix {
    let mut matrix = Matrix::new(cities.iter().map(|city| city.name.to_owned()).collect());
    for (a, city) in cities.iter().enumerate() {
        matrix.sites[a].labels = city.labels.to_vec();
        for (b, other) in cities.iter().enumerate().skip(a + 1) {
            matrix.set(
                a,
                b,
                estimate_round_trip(city.coordinates, other.coordinates),
            );
        }
    }
    matrix
}

/// The estimate for two places, to a tenth of a millisecond.
#[expect(
    clippy::cast_possible_truncation,
    reason = "below a thousand milliseconds"
)]
fn estimate_round_trip(a: (f64, f64), b: (f64, f64)) -> Span {
    let millis = 2.0 * great_circle_km(a, b) / FIBRE_KM_PER_MS * PATH_FACTOR;
    Span::from_micros((millis * 10.0).round() as i64 * 100)
}

/// The haversine formula, on a sphere: accurate to 0.5 %.
fn great_circle_km(a: (f64, f64), b: (f64, f64)) -> f64 {
    let [(lat_a, lon_a), (lat_b, lon_b)] =
        [a, b].map(|(lat, lon)| (f64::to_radians(lat), f64::to_radians(lon)));
    let haversine = |from: f64, to: f64| ((to - from) / 2.0).sin().powi(2);
    let half_chord_squared =
        haversine(lat_a, lat_b) + lat_a.cos() * lat_b.cos() * haversine(lon_a, lon_b);
    2.0 * EARTH_RADIUS_KM * half_chord_squared.sqrt().asin()
}
