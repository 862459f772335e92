//! `neph load`: rates, response times and errors of a load, second by second or by number of workers.

mod document;
mod levels;
mod levels_text;
mod run;
mod second;
mod size;
mod text;

pub use document::{LoadDocument, LoadLine, TimesDocument};
pub use levels::{LevelRow, LevelRun, LevelsDocument, LevelsInput, RunRow};
pub use levels_text::{levels_text, run_line};
pub use run::{LoadRun, ThresholdRow};
pub use second::LoadSecondRow;
pub use size::{SizeDocument, size_text};
pub use text::{heading, second_line, summary};
