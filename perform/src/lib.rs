#![doc = include_str!("../README.md")]

mod account;
mod agents;
mod ask;
mod attic;
mod build;
mod commit;
mod commits;
mod examine;
mod fault;
mod hints;
mod identity;
mod intake;
mod kept;
mod order;
mod paid;
mod paths;
mod places;
mod record;
mod replay;
mod reserve;
mod restore;
mod seal;
mod spending;
mod stash;
mod trial;

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
pub use examine::Examine;
pub use fault::Fault;
pub use hints::{NamedLine, named_lines};
pub use identity::{HoldsNow, identity};
pub use intake::{InPrompt, Intake, Rules, Shown, Taken};
pub use kept::{folders_to_undo, sha256_on_disk, undo_folders};
pub use order::{Baseline, CommandSettings, Ignored, OrderWorld};
pub use paid::{Paid, reply_again};
pub use record::{
    Format, JOURNAL, NoteCommit, OtherFormat, Past, RUN_JSON, Record, RecordError, UNDO, WITHHELD,
    note_withheld, output_text, withheld,
};
pub use replay::{AsFound, RecordOnly, ReplayFault, Replayed};
pub use spending::Spending;
pub use stash::{bring_back, put_away, undos, were_undone};
