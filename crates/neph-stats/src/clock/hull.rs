//! The lower convex hull of points, and the highest line of a given slope under it.

/// Corners from left to right, with increasing slopes of the edges.
pub(super) struct Hull {
    corners: Vec<(f64, f64)>,
}

impl Hull {
    /// From points that ascend in x (Andrew's monotone chain). Of several with one x, the lowest counts.
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

    /// From left to right.
    pub(super) fn corners(&self) -> &[(f64, f64)] {
        &self.corners
    }

    /// Of its edges, ascending.
    pub(super) fn slopes(&self) -> impl Iterator<Item = f64> {
        self.corners
            .iter()
            .zip(self.corners.iter().skip(1))
            .map(|(start, end)| (end.1 - start.1) / (end.0 - start.0))
    }

    /// Intersection with x = 0 of the highest line of this slope below all points. It touches the corner
    /// after which the edges are steeper.
    pub(super) fn intercept(&self, slope: f64) -> f64 {
        let (mut low, mut high) = (0, self.corners.len().saturating_sub(1));
        while low < high {
            let middle = low.midpoint(high);
            let (start, end) = (self.corners[middle], self.corners[middle + 1]);
            if end.1 - start.1 < slope * (end.0 - start.0) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let corner = self.corners.get(low);
        corner.map_or(f64::INFINITY, |&(x, y)| y - slope * x)
    }
}

fn turns_left(a: (f64, f64), b: (f64, f64), c: (f64, f64)) -> bool {
    (b.0 - a.0) * (c.1 - a.1) > (b.1 - a.1) * (c.0 - a.0)
}
