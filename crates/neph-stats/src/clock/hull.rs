//! The convex hull of points, seen from below, and the highest line of a given slope under it.

/// Corners from left to right, edges getting steeper.
pub(super) struct Hull {
    corners: Vec<(f64, f64)>,
}

impl Hull {
    /// Of points that ascend in x (Andrew's monotone chain). Of several with one x, the lowest.
    pub(super) fn below(points: impl Iterator<Item = (f64, f64)>) -> Self {
        let mut corners: Vec<(f64, f64)> = Vec::new();
        for point in points {
            match corners.last() {
                Some(last) if last.0 >= point.0 && last.1 <= point.1 => continue,
                Some(last) if last.0 >= point.0 => drop(corners.pop()),
                _ => {}
            }
            while let [.., before, last] = corners[..] {
                if turns_left(before, last, point) {
                    break;
                }
                corners.pop();
            }
            corners.push(point);
        }
        Self { corners }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.corners.is_empty()
    }

    /// Of its edges, ascending.
    pub(super) fn slopes(&self) -> impl Iterator<Item = f64> {
        self.corners
            .iter()
            .zip(self.corners.iter().skip(1))
            .map(|(left, right)| (right.1 - left.1) / (right.0 - left.0))
    }

    /// Where the highest line of this slope that lies below all points meets x = 0.
    pub(super) fn intercept(&self, slope: f64) -> f64 {
        let intercepts = self.corners.iter().map(|&(x, y)| y - slope * x);
        intercepts.fold(f64::INFINITY, f64::min)
    }
}

fn turns_left(a: (f64, f64), b: (f64, f64), c: (f64, f64)) -> bool {
    (b.0 - a.0) * (c.1 - a.1) > (b.1 - a.1) * (c.0 - a.0)
}
