#![doc = include_str!("../README.md")]

mod drive;
mod fact;
mod intake;
mod observe;
mod outcome;
mod record;
mod step;
mod text;
mod workshop;

pub use drive::{Hands, drive};
pub use fact::{Fact, Problem};
pub use intake::{Intake, Rules};
pub use observe::{Event, Observer, Silent};
pub use outcome::{Cause, Outcome};
pub use record::{Facts, JOURNAL, Record, RecordError, facts_of};
pub use step::{Answer, Loop, Next, Step};
pub use text::Text;
pub use workshop::{Asking, BuildCommand, Fault, UNDO, Workshop, undo_folders};

/// How a model's answer ended, as the services say it, and what to do about it.
pub use llm::{Advice, Finish};
/// How a command ended.
pub use runner::Ended;
