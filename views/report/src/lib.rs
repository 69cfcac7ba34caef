#![doc = include_str!("../README.md")]

mod last_words;
pub mod live;
mod ndjson;
mod output;
pub mod phrases;
mod show;
mod step;
mod stream;
mod summary;
mod terminal;

pub use last_words::{AGAIN, LastWords};
pub use ndjson::Ndjson;
pub use output::{
    BAD, DIM, GOOD, Output, STRONG, Style, Volume, WARN, printable, printable_name, visible,
    whole_lines,
};
pub use show::steps;
pub use step::{StepLine, StepView};
pub use stream::Stream;
pub use summary::{FileStat, SUMMARY, Summary, figures, file_line};
pub use terminal::{Counts, Printout, ReadPrintout, Terminal};
