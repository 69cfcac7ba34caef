#![doc = include_str!("../README.md")]

pub mod failed;
mod phase;
pub mod spec;
pub mod state;
pub mod tokens;

pub use phase::{Inputs, Limits, PhaseLoop, PhaseSpec, RoleInputs, Start, has_report};

/// The role that writes code.
pub const BUILDER: &str = "builder";
/// The role that verifies it.
pub const VERIFIER: &str = "verifier";

/// The source folder's repository.
pub const SRC: &str = "src";
/// The tests folder, and its repository.
pub const TESTS: &str = "tests";
/// The folder of the phases' own files.
pub const ABL: &str = "abl";

/// What the verifier writes when a contract does not hold, in the tests folder.
pub const FAILED_SPECS: &str = "failed_specs.md";
/// Where the loop is, in the phases' folder.
pub const STATE: &str = "state.json";
/// What the turns have used, in the phases' folder.
pub const TOKENS: &str = "logs/tokens.csv";
/// What a role can see, in the phases' folder, as it was before the last turn.
pub(crate) const PROJECT_MAP: &str = "project_map.txt";

/// Where a role's reports go, in its own folder.
pub fn reports(role: &str) -> String {
    format!("{role}_reports/")
}
