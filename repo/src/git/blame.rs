//! Which commit each line of a file comes from, as `git blame` says.

use std::collections::HashMap;
use std::ops::RangeInclusive;

use super::{Git, GitError};

/// Where the lines of a file come from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Blame {
    /// The lines that were asked for, in order.
    pub lines: Vec<BlamedLine>,
    /// What they name.
    pub sources: Vec<Source>,
}

/// One line of the present file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlamedLine {
    /// Its number, from 1.
    pub number: usize,
    /// The index of its source.
    pub source: usize,
    /// Its number in the file of that source.
    pub original: usize,
}

/// A file as one commit has it, or as it is on disk.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Source {
    /// The commit, in hex; `None` for what is not committed.
    pub commit: Option<String>,
    /// The first line of its message.
    pub summary: String,
    /// When it was written, in seconds since 1970. A rebase keeps it.
    pub author_time: i64,
    /// When the commit was made. A rebase makes another one.
    pub committer_time: i64,
    /// The path of the file then, relative to the top.
    pub path: String,
    /// The commit before it and the path of the file there; `None` if the file is new.
    pub previous: Option<(String, String)>,
}

impl Git {
    /// Blames a file, given by its path from the top, that git tracks. No program that converts it is started.
    ///
    /// # Errors
    ///
    /// Fails if git does not know the file, or it has fewer lines.
    pub fn blame(
        &self,
        path: &str,
        lines: Option<RangeInclusive<usize>>,
    ) -> Result<Blame, GitError> {
        let range = lines.map(|lines| format!("-L{},{}", lines.start(), lines.end()));
        // The repository's own configuration could hide commits.
        let mut words = vec!["-c", "blame.ignoreRevsFile=", "-c", "core.quotePath=false"];
        words.extend([
            "--literal-pathspecs",
            "blame",
            "--porcelain",
            "--no-textconv",
        ]);
        words.extend(range.as_deref());
        words.extend(["--", path]);
        Ok(read(&self.run_for_bytes(&words)?))
    }
}

/// Git's porcelain format: a head for each line, details of a commit where it is named first, then the line behind
/// a tab.
fn read(porcelain: &[u8]) -> Blame {
    let (mut blame, mut known) = (Blame::default(), HashMap::new());
    let mut at = 0;
    for line in porcelain.split(|byte| *byte == b'\n') {
        if line.first() == Some(&b'\t') {
            continue;
        }
        let text = String::from_utf8_lossy(line);
        let (word, rest) = text.split_once(' ').unwrap_or((&text, ""));
        if let (true, Some((original, number))) = (is_id(word), numbers(rest)) {
            let next = blame.sources.len();
            at = *known.entry(word.to_owned()).or_insert(next);
            if at == next {
                let commit = word
                    .bytes()
                    .any(|digit| digit != b'0')
                    .then(|| word.to_owned());
                blame.sources.push(Source {
                    commit,
                    ..Source::default()
                });
            }
            blame.lines.push(BlamedLine {
                number,
                source: at,
                original,
            });
            continue;
        }
        let Some(source) = blame.sources.get_mut(at) else {
            continue;
        };
        match word {
            "summary" => rest.clone_into(&mut source.summary),
            "author-time" => source.author_time = rest.parse().unwrap_or_default(),
            "committer-time" => source.committer_time = rest.parse().unwrap_or_default(),
            "filename" => rest.clone_into(&mut source.path),
            "previous" => {
                source.previous = rest
                    .split_once(' ')
                    .map(|(id, path)| (id.to_owned(), path.to_owned()));
            }
            _ => {}
        }
    }
    blame
}

/// The name of an object, by SHA-1 or SHA-256.
fn is_id(word: &str) -> bool {
    matches!(word.len(), 40 | 64) && word.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// `12 3 4`: the line in the source, the line now, and how many follow.
fn numbers(rest: &str) -> Option<(usize, usize)> {
    let mut numbers = rest.split(' ').map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use crate::tests::scratch::Scratch;

    use super::*;

    #[test]
    fn every_line_is_traced_to_its_commit_through_a_rename_and_to_none_if_it_is_not_committed() {
        let scratch = Scratch::new();
        scratch.write("old name.txt", "one\ntwo\nthree\nfour\n");
        scratch.commit();
        scratch.git(&["mv", "old name.txt", "new.txt"]);
        scratch.write("new.txt", "one\ntwo\nthree\nfive\n");
        scratch.commit();
        scratch.write("new.txt", "one\n\tmine\nthree\nfive\n");
        let git = scratch.hardened(&[]);
        let blame = git.blame("new.txt", None).unwrap();
        let of = |number: usize| {
            let line = blame
                .lines
                .iter()
                .find(|line| line.number == number)
                .unwrap();
            (&blame.sources[line.source], line.original)
        };
        assert_eq!((of(1).0.path.as_str(), of(3).1), ("old name.txt", 3));
        assert_eq!(
            of(4).0.previous,
            Some((of(1).0.commit.clone().unwrap(), "old name.txt".to_owned()))
        );
        assert_eq!(
            (of(2).0.commit.as_ref(), of(1).0.previous.as_ref()),
            (None, None)
        );
        let one = git.blame("new.txt", Some(2..=2)).unwrap();
        assert_eq!(
            one.lines,
            [BlamedLine {
                number: 2,
                source: 0,
                original: 2
            }]
        );
        assert!(git.blame("new.txt", Some(9..=9)).is_err());
        assert!(git.blame("no such file", None).is_err());
    }

    #[test]
    fn no_program_of_the_repository_is_started_and_no_commit_is_passed_over() {
        let scratch = Scratch::new();
        scratch.write("a.txt", "one\n");
        scratch.write(".gitattributes", "*.txt diff=x filter=x\n");
        scratch.commit();
        scratch.write("a.txt", "two\n");
        scratch.commit();
        let ran = scratch.path().join("ran");
        let program = format!("touch {}; cat", ran.display());
        for key in [
            "diff.x.textconv",
            "filter.x.clean",
            "filter.x.smudge",
            "core.fsmonitor",
        ] {
            scratch.git(&["config", key, &program]);
        }
        let head = fs::read_to_string(scratch.path().join(".git/refs/heads/main")).unwrap();
        scratch.write(".git/passed-over", &head);
        scratch.git(&["config", "blame.ignoreRevsFile", ".git/passed-over"]);
        let blame = scratch.hardened(&[]).blame("a.txt", None).unwrap();
        assert_eq!(blame.sources[0].commit.as_deref(), Some(head.trim()));
        assert!(!ran.exists());
    }
}
