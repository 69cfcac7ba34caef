//! A command line of the user, in a shell: the only place where there is one. No text of a model ever gets here.

use std::io::Write as _;

use runner::{Command, Ended};

use crate::agents::{AgentExecutor, AgentFact, AgentFault};
use crate::{Record, Text};

impl AgentExecutor<'_> {
    pub(super) fn shell(
        &self,
        number: u32,
        name: &str,
        line: &str,
        record: &Record<'_, AgentFact>,
    ) -> Result<AgentFact, AgentFault> {
        let file = format!("{name}-{number}.txt");
        let mut log = record.folder().writer(&file)?;
        let mut failed = None;
        let command = Command {
            deadline: self.shell_timeout,
            ..Command::new(["sh", "-c", line], &self.shell_cwd, self.shell_env.clone())
        };
        let output = runner::run(&command, &self.shell_confinement, &self.cancel, &mut |_, bytes| {
            failed = failed.take().or_else(|| log.write_all(bytes).err());
        })
        .map_err(AgentFault::Run)?;
        if output.ended == Ended::Interrupted {
            return Err(AgentFault::Interrupted);
        }
        let closed = failed.map_or_else(|| log.finish().map(drop), Err);
        closed.map_err(|source| record.folder().error("write", &file, source))?;
        let (stored, text) = record.folder().adopt(&file)?;
        let elapsed_ms = u64::try_from(output.elapsed.as_millis()).unwrap_or(u64::MAX);
        let output_text = Text::new(stored, text.into());
        Ok(AgentFact::Ran {
            number,
            name: name.to_owned(),
            ended: output.ended,
            output: output_text,
            elapsed_ms,
        })
    }
}
