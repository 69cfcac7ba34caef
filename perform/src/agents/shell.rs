//! A command line of the user, in a shell: the only place where there is one. No text of a model ever gets here.

use std::fs::File;
use std::io::Write as _;

use logging::{Durability, millis};
use runner::{Command, Ended};

use crate::agents::Text;
use crate::agents::record::Record;
use crate::agents::{AgentExecutor, AgentFact, AgentFault};
use crate::record::both_ends;

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
            limits: self.shell_limits,
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
        let (name, elapsed_ms) = (name.to_owned(), millis(output.elapsed));
        Ok(AgentFact::Ran {
            number,
            name,
            ended: output.ended,
            output: self.shown(&file, record)?,
            elapsed_ms,
        })
    }

    /// What the loop hears of what stands in `file`: of much only the beginning and the end, as another file.
    fn shown(&self, file: &str, record: &Record<'_, AgentFact>) -> Result<Text, AgentFault> {
        let folder = record.folder();
        let ends = File::open(folder.path().join(file))
            .and_then(|whole| both_ends(&whole, self.shell_limits.head_bytes, self.shell_limits.tail_bytes))
            .map_err(|source| folder.error("read", file, source))?;
        if ends.left_out_bytes() == 0 {
            return Ok(Text::of_output(folder, file)?);
        }
        let (stem, ends) = (file.trim_end_matches(".txt"), ends.text());
        let (stored, text) =
            folder.store_and_tell(&format!("{stem}-ends.txt"), &ends, Durability::Written)?;
        Ok(Text::new(stored, text.into()))
    }
}

#[cfg(test)]
mod tests {
    use logging::{Redactor, RunFolder};
    use runner::Limits;

    use super::*;
    use crate::agents::executor::tests::{Deaf, executor, unguarded};
    use crate::agents::record::{Silent, facts_of};

    /// How this line ended and what the loop hears of its output, also after the run has been gone on with.
    fn check(line: &str, limits: Limits) -> (Ended, String) {
        let folder = tempfile::tempdir().unwrap();
        let (mut watch, mut around) = (Deaf, unguarded);
        let executor =
            AgentExecutor { shell_limits: limits, ..executor(folder.path(), &mut watch, &mut around) };
        let run = RunFolder::create(folder.path(), "run", Redactor::new(["secret-key-77"])).unwrap();
        let mut observer = Silent;
        let mut record = Record::begin(run.clone(), &mut observer).unwrap();
        let fact = executor.shell(1, "check", line, &record).unwrap();
        record.note(&fact).unwrap();
        assert_eq!(facts_of::<AgentFact>(&run).unwrap(), std::slice::from_ref(&fact));
        let AgentFact::Ran { ended, output, .. } = fact else { panic!("{fact:?}") };
        (ended, output.as_str().to_owned())
    }

    #[test]
    fn of_a_long_output_the_loop_hears_both_ends_without_half_a_key() {
        let limits = Limits { head_bytes: 10, tail_bytes: 4, ..Limits::default() };
        let line = "printf 'a secret-key-77 and more and the end'";
        let heard = (Ended::Exited(0), "a [key …\n[… 20 bytes left out …]\n end".to_owned());
        assert_eq!(check(line, limits), heard);
        assert_eq!(check("echo short", limits), (Ended::Exited(0), "short\n".to_owned()));
    }

    #[test]
    fn a_line_that_prints_without_end_is_stopped() {
        let limits = Limits { output_bytes: 1 << 16, ..Limits::default() };
        assert_eq!(check("yes", limits).0, Ended::TooMuchOutput);
    }
}
