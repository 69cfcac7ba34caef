//! `spec setup`: asks for the settings in `.cuggino.json`, with the current values as defaults.

use std::io::{self, BufRead, IsTerminal as _, Write};

use anyhow::{Context as _, anyhow};
use code_commit_names::ours::SPEC_CONFIG;
use code_commit_runs::spec::{self, Store};
use code_commit_runs::{Exit, Failure, Project};
use code_commit_settings::spec::{Config, folder};

/// The answer that clears a value.
const CLEAR: &str = "-";

/// Asks, writes, and reports what was saved. Requires a terminal.
pub fn run(project: &Project<'_>) -> Result<Exit, Failure> {
    if !(io::stdin().is_terminal() && io::stdout().is_terminal()) {
        return Err(Failure::refused(
            anyhow!("spec setup needs a terminal"),
            format!("write {SPEC_CONFIG} yourself: every key is optional"),
        ));
    }
    let present = spec::config(&project.root)?;
    let config =
        ask(present, &mut io::stdin().lock(), &mut io::stdout().lock()).context("cannot ask")?;
    let Some(config) = config else {
        return Err(
            Failure::new(Exit::Interrupted, anyhow!("nothing was saved"))
                .help("answer all of the questions: code-commit spec setup"),
        );
    };
    Store::of(project)?.make_folders()?;
    let text = config.to_json();
    code_commit_dir::replace(&project.root.join(SPEC_CONFIG), text.as_bytes())
        .with_context(|| format!("cannot write {SPEC_CONFIG}"))
        .map_err(|error| Failure::refused(error, "check who may write there"))?;
    project
        .host
        .output
        .report(&format!("Saved to {SPEC_CONFIG}:\n{}", text.trim_end()));
    Ok(Exit::Done)
}

/// All questions in the seed's order; `None` if the input ends early.
fn ask(
    present: Config,
    input: &mut dyn BufRead,
    out: &mut dyn Write,
) -> io::Result<Option<Config>> {
    let mut asking = Asking { input, out };
    let mut config = present;
    writeln!(
        asking.out,
        "Enter keeps the value in brackets, {CLEAR} takes it away."
    )?;
    let answered = asking.answer("Specs path", &config.specs.clone(), |text| {
        folder(text, &spec::TAKEN).map(|path| config.specs = path)
    })? && asking.answer(
        "Maximum iterations",
        &config.max_iterations.to_string(),
        |text| {
            let number = text.parse().ok().filter(|number| *number > 0);
            number
                .map(|number| config.max_iterations = number)
                .ok_or("a number, at least 1".to_owned())
        },
    )? && asking.line("Setup command (empty: skip)", &mut config.setup)?
        && asking.line("Check command (empty: skip)", &mut config.check)?
        && asking.switch("Commit after each task", &mut config.commit)?
        && asking.switch("Audit while watch is idle", &mut config.audit)?;
    Ok(answered.then_some(config))
}

struct Asking<'a> {
    input: &'a mut dyn BufRead,
    out: &'a mut dyn Write,
}

impl Asking<'_> {
    /// Asks until the answer is valid; `false` if the input ends.
    fn answer(
        &mut self,
        question: &str,
        present: &str,
        mut take: impl FnMut(&str) -> Result<(), String>,
    ) -> io::Result<bool> {
        loop {
            write!(self.out, "{question} [{present}]: ")?;
            self.out.flush()?;
            let mut line = String::new();
            if self.input.read_line(&mut line)? == 0 {
                return Ok(false);
            }
            let text = if line.trim().is_empty() {
                present
            } else {
                line.trim()
            };
            match take(text) {
                Ok(()) => return Ok(true),
                Err(why) => writeln!(self.out, "  {why}")?,
            }
        }
    }

    fn line(&mut self, question: &str, value: &mut Option<String>) -> io::Result<bool> {
        let present = value.clone().unwrap_or_default();
        self.answer(question, &present, |text| {
            *value = Some(text.to_owned()).filter(|text| !text.is_empty() && text != CLEAR);
            Ok(())
        })
    }

    fn switch(&mut self, question: &str, value: &mut bool) -> io::Result<bool> {
        let present = if *value { "yes" } else { "no" };
        self.answer(question, present, |text| {
            *value = match text.to_lowercase().as_str() {
                "y" | "yes" => true,
                "n" | "no" => false,
                _ => return Err("yes or no".to_owned()),
            };
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(present: Config, answers: &str) -> (Option<Config>, String) {
        let mut out = Vec::new();
        let config = ask(present, &mut answers.as_bytes(), &mut out).unwrap();
        (config, String::from_utf8(out).unwrap())
    }

    #[test]
    fn the_questions_come_in_the_order_of_the_seed_with_the_present_value() {
        let (config, asked) = check(Config::default(), "\n\n\n\n\n\n");
        assert_eq!(config, Some(Config::default()));
        insta::assert_snapshot!(asked.replace(": ", ":\n"), @r"
        Enter keeps the value in brackets, - takes it away.
        Specs path [.specs]:
        Maximum iterations [10]:
        Setup command (empty:
        skip) []:
        Check command (empty:
        skip) []:
        Commit after each task [no]:
        Audit while watch is idle [no]:
        ");
    }

    #[test]
    fn answers_are_taken_and_asked_for_again_when_they_will_not_do() {
        let present = Config {
            setup: Some("npm ci".into()),
            ..Config::default()
        };
        let (config, asked) = check(present, "docs/\n0\nmany\n5\n-\ncargo test\nmaybe\nY\nno\n");
        let wanted = Config {
            specs: "docs".into(),
            max_iterations: 5,
            setup: None,
            check: Some("cargo test".into()),
            commit: true,
            audit: false,
        };
        assert_eq!(config, Some(wanted));
        assert_eq!(asked.matches("a number, at least 1").count(), 2);
    }

    #[test]
    fn answers_that_end_early_save_nothing() {
        assert_eq!(check(Config::default(), "docs\n5\n").0, None);
    }
}
