#![doc = include_str!("../README.md")]

mod agents;
mod ask;
mod build;
mod commit;
mod commits;
mod fault;
mod identity;
mod intake;
mod order;
mod places;
mod record;
mod reserve;
mod sets;
mod spending;
mod trial;

pub use agents::{
    AgentFault, AgentLimits, AgentUsage, AgentWatch, AgentWorld, Around, Cast, Copies, Counted,
    Guarded, Repository, Role, ShellSettings, Watched, Worker, taken, watch_over,
};
pub use ask::Asking;
pub use build::BuildCommand;
pub use code_commit_engine::{Observer, Progress, Silent};
pub use commit::CommitWorld;
pub use commits::Commits;
pub use fault::Fault;
pub use identity::{HoldsNow, identity};
pub use intake::{InPrompt, Intake, Rules, Shown, Taken};
pub use order::{BASELINE, Baseline, OrderWorld};
pub use record::{
    JOURNAL, OtherFormat, Past, RECORD_FORMAT, RUN_JSON, Record, RecordError, output_text,
    same_format,
};
pub use sets::{folders_to_undo, is_recorded, sha256_on_disk, undo_folders};
pub use spending::Spending;
pub use trial::CommandSettings;
