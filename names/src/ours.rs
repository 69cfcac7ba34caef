//! Names of the harness's and the loops' own files.

/// The harness's state at the root of the tree, if it cannot be in the git directory.
pub const STATE: &str = ".code-commit";
/// The same in the git directory.
pub const STATE_IN_GIT: &str = "code-commit";
/// The harness's configuration.
pub const PROJECT_FILE: &str = "code-commit.toml";
/// The supervisor's settings, queries and keys (S1).
pub const AGENT_CONFIG: &str = "agent-config";
/// The build (S1 §Running the Build).
pub const BUILD: &str = "build.sh";
/// The records of S0, at the root.
pub const LOGS: &str = "logs";
/// The model's messages for the user (S0 §Implementation Details).
pub const USER_OUTPUT: &str = "llm-user-output.txt";
/// The folder of phases (S3).
pub const ABL: &str = ".abl";
/// The settings of phases, including the commands that they run (S3).
pub const PHASE_CONFIG: &str = ".abl/abl.config.yaml";
/// The settings of specs, including the commands that they run (S4 §Configuration).
pub const SPEC_CONFIG: &str = ".cuggino.json";
