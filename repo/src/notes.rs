//! Notes on commits, as `git notes` keeps them: files of a tree, named after what they are on.

use crate::{RepoError, WorkTree};

/// The notes of one reference, as it was when it was opened.
#[derive(Debug)]
pub struct Notes<'t> {
    of: &'t WorkTree,
    tree: gix::Tree<'t>,
}

/// How often git splits a name into folders of two digits, at most: a hundred million notes fit.
const DEEPEST: usize = 4;

impl WorkTree {
    /// The notes in this reference; `None` if none were made or fetched here.
    ///
    /// # Errors
    ///
    /// Fails if git's references or objects cannot be read.
    pub fn notes(&self, reference: &str) -> Result<Option<Notes<'_>>, RepoError> {
        self.has_readable_references()?;
        let found = self.repository.try_find_reference(reference);
        let tree = found.and_then(|found| found.map(|mut found| found.peel_to_tree()).transpose());
        let tree = tree.map_err(|error| self.git_error("read notes", &error))?;
        Ok(tree.map(|tree| Notes { of: self, tree }))
    }

    /// Whether git is configured to take the notes in this reference along when it rewrites commits.
    pub fn takes_along(&self, reference: &str) -> bool {
        let config = self.repository.config_snapshot();
        let globs = config
            .plumbing()
            .strings("notes.rewriteRef")
            .unwrap_or_default();
        globs.iter().any(|glob| {
            gix::glob::wildmatch(
                glob.as_ref(),
                reference.into(),
                gix::glob::wildmatch::Mode::empty(),
            )
        })
    }

    /// The remote to fetch from: `origin`, or else the first one that the configuration names.
    pub fn remote(&self) -> Option<String> {
        let config = self.repository.config_snapshot();
        let remotes = config
            .plumbing()
            .sections_by_name("remote")
            .into_iter()
            .flatten();
        let names =
            remotes.filter_map(|remote| remote.header().subsection_name().map(ToString::to_string));
        names.min_by_key(|name| name != "origin")
    }
}

impl Notes<'_> {
    /// The note on a commit, given in hex.
    ///
    /// # Errors
    ///
    /// Fails if git's objects cannot be read.
    pub fn on(&self, commit: &str) -> Result<Option<Vec<u8>>, RepoError> {
        let mut path = commit.to_owned();
        for depth in 0..DEEPEST {
            let entry = self
                .tree
                .lookup_entry_by_path(&path)
                .map_err(|error| self.failed(&error))?;
            if let Some(entry) = entry {
                return Ok(Some(
                    entry
                        .object()
                        .map_err(|error| self.failed(&error))?
                        .detach()
                        .data,
                ));
            }
            path.insert((2 + depth * 3).min(path.len()), '/');
        }
        Ok(None)
    }

    fn failed(&self, error: &gix::Error) -> RepoError {
        self.of.git_error("read notes", error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::scratch::Scratch;

    const NAME: &str = "refs/notes/x";

    /// Git puts many notes into folders.
    #[test]
    fn a_note_is_found_among_a_few_and_among_many() {
        let scratch = Scratch::new();
        scratch.write("file", "x");
        scratch.commit();
        let tree = WorkTree::at(scratch.path()).unwrap();
        assert!(tree.notes(NAME).unwrap().is_none());
        scratch.git(&["notes", "--ref=x", "add", "-m", "said"]);
        let head = tree.head().unwrap().unwrap();
        for count in [3, 700] {
            let name = |number: u128| format!("{:032x}{:08}", u128::MAX / count * number, 0);
            let copies: String = (0..count)
                .map(|number| format!("{head} {}\n", name(number)))
                .collect();
            scratch.write("list", &copies);
            scratch.git(&[
                "-c",
                "alias.all=!git notes --ref=x copy --force --stdin <list",
                "all",
            ]);
            let notes = tree.notes(NAME).unwrap().unwrap();
            for commit in (0..count).map(name).chain([head.clone()]) {
                assert_eq!(
                    notes.on(&commit).unwrap().as_deref(),
                    Some(&b"said\n"[..]),
                    "{commit}"
                );
            }
            assert_eq!(notes.on(&"7".repeat(40)).unwrap(), None);
            assert_eq!(notes.on("no").unwrap(), None);
        }
    }

    #[test]
    fn git_takes_along_what_its_configuration_matches() {
        let scratch = Scratch::new();
        for (glob, matches) in [
            ("refs/notes/y", false),
            ("refs/notes/*", true),
            (NAME, true),
        ] {
            scratch.git(&["config", "notes.rewriteRef", glob]);
            assert_eq!(
                WorkTree::at(scratch.path()).unwrap().takes_along(NAME),
                matches,
                "{glob}"
            );
        }
    }

    #[test]
    fn origin_is_fetched_from_before_others() {
        let scratch = Scratch::new();
        let remote = || WorkTree::at(scratch.path()).unwrap().remote();
        assert_eq!(remote(), None);
        scratch.git(&["remote", "add", "fork", "https://fork.invalid"]);
        assert_eq!(remote().as_deref(), Some("fork"));
        scratch.git(&["remote", "add", "origin", "https://origin.invalid"]);
        assert_eq!(remote().as_deref(), Some("origin"));
    }
}
