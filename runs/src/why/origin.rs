//! Which run, if any, made each line of a file: blame says with which commit a line came, and the records whether
//! a run had written it.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::RangeInclusive;
use std::path::Path;

use code_commit_repo::{Blame, BlamedLine, Git, Notes, Source, WorkTree};
use code_commit_report::Output;

use super::agents::{self, Commit};
use super::lines::lines;
use super::noted::{self, Noted};
use super::steps::{self, Run, Step};
use crate::exit::Failure;
use crate::records;
use crate::registry::{Known, Registry};

/// Who made a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Maker {
    /// No run that is recorded here.
    Nobody,
    /// This step of a run.
    Step(usize),
    /// The turns before this commit of a run in which agents worked.
    Commit(usize),
    /// A run that nothing is known of but what this note says.
    Note(usize),
}

/// Neighbouring lines of one origin.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub lines: RangeInclusive<usize>,
    pub maker: Maker,
    /// The index of the commit that they came with.
    pub source: usize,
}

/// All that is known of the lines of a file.
#[derive(Debug)]
pub(super) struct Origins {
    pub ranges: Vec<Range>,
    pub sources: Vec<Source>,
    pub runs: Vec<Run>,
    pub steps: Vec<Step>,
    pub commits: Vec<Commit>,
    pub notes: Vec<Noted>,
}

impl Origins {
    /// Whether a line was committed by somebody unknown.
    pub(super) fn may_be_noted(&self) -> bool {
        let is_committed = |range: &Range| {
            self.sources
                .get(range.source)
                .is_some_and(|of| of.commit.is_some())
        };
        self.ranges
            .iter()
            .any(|range| range.maker == Maker::Nobody && is_committed(range))
    }
}

/// The file and what of it is asked for.
pub(super) struct File<'f> {
    pub tree: &'f WorkTree,
    /// The runs of the project.
    pub registry: Registry<'f>,
    /// From the top of the work tree.
    pub path: String,
    /// As it is on disk.
    pub content: Vec<u8>,
    /// One line, or all.
    pub line: Option<usize>,
    /// What git has noted, if anything.
    pub notes: Option<Notes<'f>>,
}

impl File<'_> {
    pub(super) fn origins(&self, git: &Git, output: &Output) -> Result<Origins, Failure> {
        let Blame { lines, sources } = self.blame(git)?;
        let below = self
            .tree
            .root()
            .strip_prefix(self.tree.top())
            .unwrap_or(Path::new(""));
        let paths: Vec<BTreeSet<String>> = sources
            .iter()
            .map(|source| paths_of(source, below))
            .collect();
        let all = paths.iter().flatten().cloned().collect();
        let (mut makers, notes) = self.by_notes(git, &lines, &sources, &all)?;
        let (known, root) = (
            self.able(&lines, &sources, &makers, &notes)?,
            self.registry.root(),
        );
        let (runs, steps) = steps::all(&known, root, &all, output);
        let commits = agents::commits(&known, root, self.tree, &sources);
        for (number, (source, paths)) in sources.iter().zip(&paths).enumerate() {
            let asked: Vec<&BlamedLine> =
                lines.iter().filter(|line| line.source == number).collect();
            let by_agent = commits
                .iter()
                .position(|commit| commit.is(source))
                .map(Maker::Commit);
            makers.extend(
                asked
                    .iter()
                    .filter_map(|line| Some((line.number, by_agent?))),
            );
            let has_begun = |step: &Step| {
                runs.get(step.run)
                    .is_some_and(|run| could_be_in(run, source))
            };
            let able = steps.iter().enumerate();
            let able = able.filter(|(_, step)| paths.contains(&step.path) && has_begun(step));
            let able: Vec<(usize, &Step)> = able.collect();
            if !able.is_empty() {
                self.by_steps(source, &asked, &able, &mut makers)?;
            }
        }
        let ranges = ranges(&lines, &makers);
        Ok(Origins {
            ranges,
            sources,
            runs,
            steps,
            commits,
            notes,
        })
    }

    /// What is noted of each line.
    fn by_notes(
        &self,
        git: &Git,
        lines: &[BlamedLine],
        sources: &[Source],
        paths: &BTreeSet<String>,
    ) -> Result<(BTreeMap<usize, Maker>, Vec<Noted>), Failure> {
        let (mut makers, mut notes) = (BTreeMap::new(), Vec::new());
        let Some(of) = &self.notes else {
            return Ok((makers, notes));
        };
        let reader = noted::Reader {
            tree: self.tree,
            git,
            notes: of,
            paths,
            all: OnceCell::new(),
        };
        for (number, source) in sources.iter().enumerate() {
            let asked: Vec<&BlamedLine> =
                lines.iter().filter(|line| line.source == number).collect();
            let originals: Vec<usize> = asked.iter().map(|line| line.original - 1).collect();
            let noted = reader.of(source, &originals)?;
            for line in asked {
                let Some(note) = noted.get(&(line.original - 1)) else {
                    continue;
                };
                let known = notes.iter().position(|known| known == note);
                let at = known.unwrap_or(notes.len());
                if known.is_none() {
                    notes.push(note.clone());
                }
                makers.insert(line.number, Maker::Note(at));
            }
        }
        Ok((makers, notes))
    }

    /// The runs that could have made a line: of one with a note, the run that it names, and of another one those that had
    /// begun when it was committed.
    fn able(
        &self,
        lines: &[BlamedLine],
        sources: &[Source],
        makers: &BTreeMap<usize, Maker>,
        notes: &[Noted],
    ) -> Result<Vec<Known>, Failure> {
        let open = lines
            .iter()
            .filter(|line| !makers.contains_key(&line.number));
        let open = open.filter_map(|line| sources.get(line.source));
        let latest = open
            .map(|of| of.commit.as_ref().map_or(i64::MAX, |_| of.committer_time))
            .max();
        let mut known = self.registry.all()?;
        known.retain(|known| {
            let path = known.path(self.registry.root());
            let had_begun = |latest| steps::began(&path).is_none_or(|at| at <= latest);
            notes.iter().any(|note| note.run == records::name(&path))
                || latest.is_some_and(had_begun)
        });
        Ok(known)
    }

    /// A file that git does not track has no commit. To ask git first saves reading its index.
    fn blame(&self, git: &Git) -> Result<Blame, Failure> {
        let blamed = git.blame(&self.path, self.line.map(|line| line..=line));
        if blamed.is_ok() || self.tree.tracks(&self.path)? {
            return Ok(blamed?);
        }
        let all = self
            .line
            .map_or(1..=lines(&self.content).len(), |line| line..=line);
        let lines = all
            .map(|number| BlamedLine {
                number,
                source: 0,
                original: number,
            })
            .collect();
        Ok(Blame {
            lines,
            sources: vec![Source {
                path: self.path.clone(),
                ..Source::default()
            }],
        })
    }

    /// The newest step that made a line counts.
    fn by_steps(
        &self,
        source: &Source,
        asked: &[&BlamedLine],
        able: &[(usize, &Step)],
        makers: &mut BTreeMap<usize, Maker>,
    ) -> Result<(), Failure> {
        let now = match &source.commit {
            Some(commit) => self.tree.blob(commit, &source.path)?.unwrap_or_default(),
            None => self.content.clone(),
        };
        let parent = source
            .previous
            .as_ref()
            .map(|(commit, path)| self.tree.blob(commit, path));
        let parent = parent.transpose()?.flatten().unwrap_or_default();
        let mut open: HashSet<usize> = asked.iter().map(|line| line.original - 1).collect();
        for (at, step) in able {
            let given = if step.change.is_none() {
                step.change_to(&now)
            } else {
                None
            };
            let Some(change) = given.as_ref().or(step.change.as_ref()) else {
                continue;
            };
            let asked_still: Vec<usize> = open.iter().copied().collect();
            let made = change.made(&now, &parent, &asked_still);
            for line in asked
                .iter()
                .filter(|line| made.contains(&(line.original - 1)))
            {
                makers.insert(line.number, Maker::Step(*at));
            }
            open.retain(|line| !made.contains(line));
        }
        Ok(())
    }
}

/// The names that a file may have had for a run whose work came with this commit, relative to the root.
fn paths_of(source: &Source, below: &Path) -> BTreeSet<String> {
    let before = source.previous.as_ref().map(|(_, path)| path);
    let paths = [Some(&source.path), before].into_iter().flatten();
    let relative = |path: &String| {
        Some(
            Path::new(path)
                .strip_prefix(below)
                .ok()?
                .to_str()?
                .to_owned(),
        )
    };
    paths.filter_map(relative).collect()
}

/// Whether the run had begun when the commit was made.
fn could_be_in(run: &Run, source: &Source) -> bool {
    source.commit.is_none() || source.committer_time >= run.facts.steps.from_ms / 1000
}

fn ranges(lines: &[BlamedLine], makers: &BTreeMap<usize, Maker>) -> Vec<Range> {
    let mut ranges: Vec<Range> = Vec::new();
    for line in lines {
        let maker = makers.get(&line.number).copied().unwrap_or(Maker::Nobody);
        match ranges.last_mut() {
            Some(last) if (last.maker, last.source) == (maker, line.source) => {
                last.lines = *last.lines.start()..=line.number;
            }
            _ => ranges.push(Range {
                lines: line.number..=line.number,
                maker,
                source: line.source,
            }),
        }
    }
    ranges
}
