#![doc = include_str!("../README.md")]

// More than 1,500 lines: the ladder of sandboxes is half of them, and no backend means anything without
// the process handling that all share.

mod cancel;
mod capture;
mod command;
mod env;
mod orphans;
mod output;
mod owner;
mod probe;
mod procfs;
mod program;
mod proxy;
mod pump;
mod reap;
mod resolve;
mod run;
mod sandbox;
mod spawn;
mod temporary;
mod trusted;
mod usage;
mod wait;
mod withheld;

pub use cancel::Cancel;
pub use capture::Captured;
pub use code_commit_model::Ended;
pub use command::{Command, Leftovers, Limits, Resources, Stream, Streams};
pub use env::{Env, RUN_MARKER};
pub use orphans::{Orphans, remove_orphans};
pub use output::{Apart, Output, RunError};
pub use probe::{NoSandbox, Probed, Reason, how_to_get_namespaces, probe, survey, works};
pub use program::{is_program, programs_in};
pub use proxy::{AddressRange, AllowedHost, Refusal, RefusedHost};
pub use reap::{Swept, sweep};
pub use resolve::{Differs, differing};
pub use run::run;
pub use sandbox::access::{Access, Backend, Confinement, Mode, View};
pub use sandbox::{Containers, helper, helper_is, look_ahead, visible};
pub use temporary::{TemporaryFolder, remove_left, temporary_folder};
pub use trusted::{NoProgram, Programs};
pub use withheld::withheld;
