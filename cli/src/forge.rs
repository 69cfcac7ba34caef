//! A run that is part of a job on GitHub: its annotations on the change, and its part of the job's summary.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;

use anyhow::Context as _;
use code_commit_engine::{Built, Line, Problem, Ran};
use code_commit_logging::RunFolder;
use code_commit_perform::{NamedLine, Past, named_lines, output_text};
use code_commit_report::{Annotation, Forge, Level, phrases};
use code_commit_runs::chronicle::Found;
use code_commit_runs::{Host, Site};

/// GitHub shows 10 annotations of each level in a step.
const MOST: usize = 10;

/// Tells the forge how a run ended; a [`Closed`](code_commit_runs::host::Closed).
pub fn tell(host: Host<'_>, root: &Path, run: &RunFolder, past: &Past) {
    let summary = host.environment.text("GITHUB_STEP_SUMMARY");
    if summary.is_none() && !matches!(host.output.forge, Some(Forge::GitHub)) {
        return;
    }
    let Ok(site) = Site::at(root, host) else {
        return host
            .output
            .warn("the forge hears nothing of this run: its repository cannot be read");
    };
    // A project may be a folder of its repository, from whose top GitHub counts.
    let below = site
        .trusted
        .tree()
        .and_then(|tree| tree.root().strip_prefix(tree.top()).ok());
    for annotation in annotations(run, &past.lines, root) {
        let path = annotation
            .path
            .map(|path| below.unwrap_or(Path::new("")).join(path));
        let path = path.map(|path| path.to_string_lossy().into_owned());
        host.output.annotate(&Annotation { path, ..annotation });
    }
    if let Some(file) = summary
        && let Err(error) = add_to_summary(Path::new(file), &site, run)
    {
        host.output
            .warn(&format!("the job's summary lacks this run: {error:#}"));
    }
}

/// What failed last, and the paths that were refused.
fn annotations(run: &RunFolder, lines: &[Line], root: &Path) -> Vec<Annotation> {
    let mut all: Vec<Annotation> = Vec::new();
    if let Some((what, printed)) = failure(run, lines) {
        let at = |named: NamedLine| Annotation {
            level: Level::Error,
            path: Some(named.path),
            line: Some(named.line),
            message: format!("{what}\n{}", named.said),
        };
        all.extend(named_lines(&printed, root).into_iter().map(at));
        if all.is_empty() {
            all.push(Annotation {
                level: Level::Error,
                path: None,
                line: None,
                message: what,
            });
        }
    }
    all.extend(refused(lines).into_iter().take(MOST));
    all
}

/// What failed, and what it printed, unless the same succeeded later.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "other lines are no commands that decide"
)]
fn failure(run: &RunFolder, lines: &[Line]) -> Option<(String, String)> {
    let is_verdict = |line: &&Line| match line {
        Line::Built(_) => true,
        Line::Ran(ran) => !ran.is_probe(),
        _ => false,
    };
    match lines.iter().rfind(is_verdict)? {
        Line::Built(built @ Built { ended, output, .. }) if !built.passed() => {
            let text = output_text(run, &output.stored.file).ok()?;
            Some((
                format!("the build fails: {}", phrases::ended(*ended)),
                text.as_str().to_owned(),
            ))
        }
        Line::Ran(
            ran @ Ran {
                argv,
                ended,
                stdout,
                stderr,
                ..
            },
        ) if !ran.passed() => {
            let what = format!("{}: {}", argv.join(" "), phrases::ended(*ended));
            Some((what, format!("{}\n{}", stdout.text, stderr.text)))
        }
        _ => None,
    }
}

/// The paths that were refused, each once: errors of the last reply, warnings if a later one was taken.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "other lines neither refuse nor take a reply"
)]
fn refused(lines: &[Line]) -> Vec<Annotation> {
    let mut all: Vec<Annotation> = Vec::new();
    for line in lines {
        match line {
            Line::Rejected(rejected) => add(&mut all, &rejected.problems),
            Line::Refused(refused) => add(&mut all, &refused.problems),
            Line::Applied(_) | Line::Written(_) => {
                all.iter_mut()
                    .for_each(|annotation| annotation.level = Level::Warning);
            }
            _ => {}
        }
    }
    all
}

fn add(all: &mut Vec<Annotation>, problems: &[Problem]) {
    for Problem { path, message, .. } in problems.iter().filter(|problem| problem.path.is_some()) {
        let message = format!("refused: {message}");
        all.retain(|known| known.path != *path || known.message != message);
        all.push(Annotation {
            level: Level::Error,
            path: path.clone(),
            line: None,
            message,
        });
    }
}

fn add_to_summary(file: &Path, site: &Site<'_>, run: &RunFolder) -> anyhow::Result<()> {
    let name = run.path().file_name().unwrap_or_default().to_string_lossy();
    let known = site
        .registry()
        .find(Some(&name))
        .map_err(|failure| failure.error)?;
    let whole = Found::of(known, &site.root)
        .whole(&site.root, run.redactor())
        .map_err(|failure| failure.error)?;
    let text = format!(
        "{}\n",
        run.redactor().redact(&code_commit_page::markdown(&whole))
    );
    let written = OpenOptions::new().append(true).create(true).open(file);
    written
        .and_then(|mut summary| summary.write_all(text.as_bytes()))
        .with_context(|| format!("cannot write {}", file.display()))
}
