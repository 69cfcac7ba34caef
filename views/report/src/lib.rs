#![doc = include_str!("../README.md")]

pub mod live;
mod ndjson;
mod output;
pub mod phrases;
mod show;
mod stream;
mod summary;
mod terminal;

pub use ndjson::Ndjson;
pub use output::{
    BAD, DIM, GOOD, Output, STRONG, Style, Volume, WARN, printable, printable_name, whole_lines,
};
pub use show::steps;
pub use stream::Stream;
pub use summary::{FileStat, SUMMARY, Summary, file_line};
pub use terminal::{Counts, Printout, ReadPrintout, Terminal};
