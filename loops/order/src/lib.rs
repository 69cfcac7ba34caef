#![doc = include_str!("../README.md")]

mod artifacts;
mod brief;
mod context;
mod decide;
mod fields;
mod ids;
mod inputs;
mod order;
mod resume;

pub use self::order::{Command, MOST_CONTEXT_FILES, MOST_ORDER_BYTES, TEMPLATE, WorkOrder};
pub use artifacts::{
    AttemptRecord, CmdResult, FailureBrief, FileWrite, RunSummary, Stage, Verdict, WriteProposal,
    WriteResult, proposal_schema,
};
pub use context::{CONTEXT_BYTES, shown_context};
pub use decide::{Finished, SUMMARY, VERIFY_SCRIPT, order, verification};
pub use fields::FieldProblem;
pub use ids::{config_hash, run_id};
pub use inputs::Inputs;
pub use resume::still_holds;

#[cfg(test)]
mod tests {
    pub(crate) mod schemas;
}
