//! Runs the user's command lines in a shell, the only use of one. No model output ever gets here.

use std::fs::File;
use std::io::Write as _;

use code_commit_engine::{ShellRan, Text};
use code_commit_logging::millis;
use code_commit_runner::{Command, Ended};
use code_commit_timeline::What;

use crate::agents::fault::AgentFault;
use crate::agents::world::AgentWorld;
use crate::record::{Past, both_ends, output_text, store};

impl<C> AgentWorld<'_, C> {
    pub(super) fn shell(&self, name: &str, line: &str) -> Result<ShellRan, AgentFault> {
        let folder = self.record.folder();
        let past = Past::read(folder.path())?;
        let ran = past
            .steps()
            .all
            .iter()
            .filter(|step| matches!(step.what, What::Command(_)))
            .count();
        let number = u32::try_from(ran).unwrap_or(u32::MAX).saturating_add(1);
        let file = format!("{name}-{number}.txt");
        let mut log = folder.output_writer(&file)?;
        let mut failed = None;
        let settings = &self.shell;
        let command = Command {
            deadline: settings.timeout,
            limits: settings.limits,
            ..Command::new(["sh", "-c", line], &settings.cwd, settings.env.clone())
        };
        let output = code_commit_runner::run(
            &command,
            &settings.confinement,
            &self.cancel,
            &mut |_, bytes| {
                failed = failed.take().or_else(|| log.write_all(bytes).err());
            },
        )
        .map_err(AgentFault::Run)?;
        if output.ended == Ended::Interrupted {
            return Err(AgentFault::Interrupted);
        }
        let closed = failed.map_or_else(|| log.finish().map(drop), Err);
        closed.map_err(|source| folder.error("write", &file, source))?;
        let (ended, elapsed_ms) = (output.ended, millis(output.elapsed));
        Ok(ShellRan {
            number,
            name: name.to_owned(),
            ended,
            output: self.shown(&file)?,
            elapsed_ms,
        })
    }

    /// What the loop sees of `file`; if it is long, only both ends of it, as another file.
    fn shown(&self, file: &str) -> Result<Text, AgentFault> {
        let (folder, limits) = (self.record.folder(), self.shell.limits);
        let ends = File::open(folder.path().join(file))
            .and_then(|whole| both_ends(&whole, limits.head_bytes, limits.tail_bytes))
            .map_err(|source| folder.error("read", file, source))?;
        if ends.left_out_bytes() == 0 {
            return Ok(output_text(folder, file)?);
        }
        let stem = file.trim_end_matches(".txt");
        Ok(store(
            &self.record,
            &format!("{stem}-ends.txt"),
            &ends.text(),
        )?)
    }
}

#[cfg(test)]
mod tests {
    use crate::agents::world::tests::world;
    use code_commit_engine::{Live as _, Shell};
    use code_commit_logging::{Redactor, RunFolder};
    use code_commit_runner::{Ended, Limits};

    /// How this line ended and what the loop sees of its output, also after a resume.
    fn check(line: &str, limits: Limits) -> (Ended, String) {
        let folder = tempfile::tempdir().unwrap();
        let run =
            RunFolder::create(folder.path(), "run", Redactor::new(["secret-key-77"])).unwrap();
        let mut world = world(folder.path(), run, ());
        world.shell.limits = limits;
        let ran = world.shell("check", line).unwrap();
        let mut again = ran.output.clone();
        again.fill("".into());
        world.record.texts().fetch_output(&mut again).unwrap();
        assert_eq!(again, ran.output);
        (ran.ended, ran.output.as_str().to_owned())
    }

    #[test]
    fn of_a_long_output_the_loop_hears_both_ends_without_half_a_key() {
        let limits = Limits {
            head_bytes: 10,
            tail_bytes: 4,
            ..Limits::default()
        };
        let line = "printf 'a secret-key-77 and more and the end'";
        let heard = (
            Ended::Exited(0),
            "a [key …\n[… 20 bytes left out …]\n end".to_owned(),
        );
        assert_eq!(check(line, limits), heard);
        assert_eq!(
            check("echo short", limits),
            (Ended::Exited(0), "short\n".to_owned())
        );
    }

    #[test]
    fn a_command_leaves_no_repository_that_starts_a_program() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunFolder::create(folder.path(), "run", Redactor::default()).unwrap();
        let mut world = world(folder.path(), run, ());
        let work = folder.path().join("work");
        std::fs::create_dir(&work).unwrap();
        world.shell.cwd.clone_from(&work);
        let line = "mkdir -p x/.git/objects x/.git/refs; cd x/.git; echo ref: refs/heads/m > HEAD; \
            printf '[core]\n\tfsmonitor = evil\n' > config";
        let (name, line) = ("check", line.to_owned());
        world.perform(&Shell { name, line }).unwrap();
        assert!(work.join("x/.git/HEAD").exists());
        assert!(!work.join("x/.git/config").exists());
        let events = std::fs::read_to_string(folder.path().join("run/events.jsonl")).unwrap();
        assert!(
            events.contains("check changed x/.git/config, which it may not"),
            "{events}"
        );
    }

    #[test]
    fn a_line_that_prints_without_end_is_stopped() {
        let limits = Limits {
            output_bytes: 1 << 16,
            ..Limits::default()
        };
        assert_eq!(check("yes", limits).0, Ended::TooMuchOutput);
    }
}
