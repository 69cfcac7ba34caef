//! What a verdict does not prove is told and recorded in the same way by all worlds.

use code_commit_engine::{Doubt, Doubted, Live};

use crate::agents::{AgentFault, AgentWorld};
use crate::commit::CommitWorld;
use crate::fault::Fault;
use crate::order::OrderWorld;

impl Live<Doubt> for CommitWorld<'_> {
    fn perform(&mut self, doubt: &Doubt) -> Result<Doubted, Fault> {
        Ok(self.record.doubt(doubt))
    }
}

impl Live<Doubt> for OrderWorld<'_> {
    fn perform(&mut self, doubt: &Doubt) -> Result<Doubted, Fault> {
        Ok(self.record.doubt(doubt))
    }
}

impl<C> Live<Doubt> for AgentWorld<'_, C> {
    fn perform(&mut self, doubt: &Doubt) -> Result<Doubted, AgentFault> {
        Ok(self.record.doubt(doubt))
    }
}
