//! Estimates video quality from bit rate, frame rate and packet loss: video quality estimation
//! function of ITU-T G.1070.
//!
//! The function and its coefficients (H.264, VGA, 9.2 inch display) are those of two public
//! programs. They are not verified against the text of the Recommendation.

/// Coefficients v1 to v12.
const V: [f64; 12] = [
    5.517, 0.0129, 3.459, 178.53, 1.02, 1.15, 0.000_355, 0.114, 513.77, 0.736, -6.451, 13.684,
];
/// No score above this loss: the function is defined for quality that users still accept.
const MAX_LOSS: f64 = 0.10;
/// Frames per second for which the function is defined.
const FRAME_RATES: std::ops::RangeInclusive<f64> = 1.0..=30.0;

/// Input of the estimate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VideoQuality {
    /// Coded bit rate of the video, kbit/s.
    pub kbit_s: f64,
    /// Frames per second.
    pub frames_s: f64,
    /// Packets that were lost or too late for play-out, as a share from 0 to 1.
    pub loss: f64,
}

/// An estimate, or why there is none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Quality {
    /// Mean opinion score, 1 (bad) to 5 (excellent).
    Score(f64),
    /// The loss is above 10 %.
    TooMuchLoss,
    /// The frame rate is unknown, or not from 1 to 30 per second.
    FrameRate,
    /// No packet arrived.
    Nothing,
}

impl Quality {
    /// The score, if there is one.
    pub const fn score(self) -> Option<f64> {
        match self {
            Self::Score(score) => Some(score),
            _ => None,
        }
    }

    /// Why there is no score, for users.
    pub const fn absence(self) -> Option<&'static str> {
        match self {
            Self::Score(_) => None,
            Self::TooMuchLoss => Some("the loss is above 10 %, for which G.1070 was not made"),
            Self::FrameRate => Some("G.1070 is for 1 to 30 frames in a second"),
            Self::Nothing => Some("nothing came"),
        }
    }
}

impl VideoQuality {
    /// The estimate, if the input is in the range of the function.
    pub fn estimate(&self) -> Quality {
        if self.kbit_s.is_nan() || self.kbit_s <= 0.0 {
            return Quality::Nothing;
        }
        if !FRAME_RATES.contains(&self.frames_s) {
            return Quality::FrameRate;
        }
        if !(0.0..=MAX_LOSS).contains(&self.loss) {
            return Quality::TooMuchLoss;
        }
        Quality::Score(self.score())
    }

    /// `Vq = 1 + Icoding exp(-Ppl / DPpl)`.
    fn score(&self) -> f64 {
        let [v1, v2, v3, v4, v5, v6, v7, v8, v9, v10, v11, v12] = V;
        let (rate, frames) = (self.kbit_s, self.frames_s);
        let best_frames = (v1 + v2 * rate).clamp(1.0, 30.0);
        let best = (v3 - v3 / (1.0 + (rate / v4).powf(v5))).clamp(0.0, 4.0);
        let width = v6 + v7 * rate;
        let distance = (frames.ln() - best_frames.ln()).powi(2);
        let coding = best * (-distance / (2.0 * width * width)).exp();
        let robustness = v10 + v11 * (-frames / v8).exp() + v12 * (-rate / v9).exp();
        1.0 + coding * (-self.loss * 100.0 / robustness).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn score(kbit_s: f64, frames_s: f64, loss: f64) -> Quality {
        VideoQuality {
            kbit_s,
            frames_s,
            loss,
        }
        .estimate()
    }

    fn is_near(quality: Quality, expected: f64) -> bool {
        quality
            .score()
            .is_some_and(|score| (score - expected).abs() < 0.002)
    }

    /// By hand: best frame rate 5.517 + 12.9 = 18.417; best quality 3.459 - 3.459 / 6.798 = 2.950;
    /// width 1.505; coding 2.950 x exp(-0.0934 / 4.530) = 2.890; robustness 0.736 + 13.684 x 0.1428
    /// = 2.690.
    #[test]
    fn a_manually_calculated_score_matches() {
        assert!(
            is_near(score(1_000.0, 25.0, 0.0), 3.890),
            "{:?}",
            score(1_000.0, 25.0, 0.0)
        );
        assert!(
            is_near(score(1_000.0, 25.0, 0.01), 2.993),
            "{:?}",
            score(1_000.0, 25.0, 0.01)
        );
    }

    #[test]
    fn the_score_rises_with_the_rate_and_falls_with_loss() {
        for (less, more) in [(100.0, 300.0), (300.0, 1_000.0), (1_000.0, 3_000.0)] {
            assert!(score(less, 25.0, 0.0).score() < score(more, 25.0, 0.0).score());
        }
        for (less, more) in [(0.0, 0.005), (0.005, 0.05), (0.05, 0.1)] {
            assert!(score(957.0, 25.0, less).score() > score(957.0, 25.0, more).score());
        }
    }

    #[test]
    fn outside_the_range_of_the_model_there_is_no_score() {
        assert_eq!(score(957.0, 25.0, 0.11), Quality::TooMuchLoss);
        assert_eq!(score(957.0, 60.0, 0.0), Quality::FrameRate);
        assert_eq!(score(0.0, 25.0, 0.0), Quality::Nothing);
        assert_eq!(score(f64::NAN, 25.0, 0.0), Quality::Nothing);
    }
}
