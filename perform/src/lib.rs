#![doc = include_str!("../README.md")]

mod account;
mod agents;
mod ask;
mod attic;
mod build;
mod commit;
mod commits;
mod fault;
mod identity;
mod intake;
mod kept;
mod order;
mod paths;
mod places;
mod record;
mod record_only;
mod reserve;
mod restore;
mod seal;
mod spending;
mod trial;
mod undone;

pub use account::settle::{Settled, is_settled, settle};
pub use account::{Account, Accounted};
pub use agents::{
    AgentFault, AgentLimits, AgentUsage, AgentWatch, AgentWorld, Around, COPIES, Cast, Counted,
    Guarded, Kept, NotPutBack, Repository, Role, ShellSettings, TAKEN, UncommittedCopies, Watched,
    Worker, forget_copies, taken, watch_over,
};
pub use ask::Asking;
pub use attic::has_taken_in;
pub use build::BuildCommand;
pub use code_commit_engine::{Event, Observer, Silent};
pub use commit::CommitWorld;
pub use commits::Commits;
pub use fault::Fault;
pub use identity::{HoldsNow, identity};
pub use intake::{InPrompt, Intake, Rules, Shown, Taken};
pub use kept::{folders_to_undo, sha256_on_disk, undo_folders};
pub use order::{Baseline, CommandSettings, Ignored, OrderWorld};
pub use record::{
    JOURNAL, OtherFormat, Past, RECORD_FORMAT, RUN_JSON, Record, RecordError, UNDO, output_text,
    same_format,
};
pub use record_only::{RecordOnly, RecordOnlyFault};
pub use spending::Spending;
pub use undone::{put_away, undos, were_undone};
