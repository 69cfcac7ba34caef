//! What the tests share: projects on disk, scripted models and agents, the program in an environment built from nothing.

pub mod commit;
pub mod files;
pub mod json_schema;
pub mod kills;
pub mod order;
pub mod phase;
pub mod power;
pub mod program;
pub mod rpc;
pub mod screen;
pub mod size;
pub mod spec;
