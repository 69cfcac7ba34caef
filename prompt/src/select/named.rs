//! The files that a query names by their path or name.

use std::collections::HashMap;

use super::given::File;

/// More files than this are not meant by one name.
const MOST_OF_A_NAME: usize = 3;
/// A folder with more files is a place, not what a query is about.
const MOST_OF_A_FOLDER: usize = 100;

/// How a query names a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Named {
    /// By a name that many other files have, too.
    Loosely,
    /// By a folder that it is in.
    ByFolder,
    /// By a name that few other files have.
    ByName,
    /// By its whole path, or the end of it.
    ByPath,
}

/// How the query names each file, if it does. A name stands alone: `lib.rs` is not in `glib.rs`, and `src/a` not in
/// `src/ab`.
pub(crate) fn named(files: &[File], query: &str) -> Vec<Option<Named>> {
    let mut named = vec![None; files.len()];
    let words = query.split(|c: char| !is_of_path(c)).map(|word| {
        word.trim_start_matches("./")
            .trim_start_matches(['/', '-'])
            .trim_end_matches(['.', '/', '-'])
    });
    let names = words
        .clone()
        .flat_map(|word| [word, word.trim_end_matches(char::is_numeric)]);
    let mut by_name: HashMap<&str, Vec<usize>> =
        names.map(|word| (name(word), Vec::new())).collect();
    for (at, file) in files.iter().enumerate() {
        if let Some(places) = by_name.get_mut(name(&file.path)) {
            places.push(at);
        }
    }
    by_name.retain(|_, places| !places.is_empty());
    for word in words {
        let word = if by_name.contains_key(name(word)) {
            word
        } else {
            word.trim_end_matches(char::is_numeric)
        };
        for at in by_name.get(name(word)).into_iter().flatten() {
            let Some((file, how)) = files.get(*at).zip(named.get_mut(*at)) else {
                continue;
            };
            let is_file = word.contains(['.', '/']) || file.path == word;
            let ends = file
                .path
                .strip_suffix(word)
                .is_some_and(|rest| rest.is_empty() || rest.ends_with('/'));
            if is_file && ends && word.len() >= 2 {
                let found = if word.contains('/') || file.path == word {
                    Named::ByPath
                } else {
                    Named::ByName
                };
                *how = (*how).max(Some(found));
            }
        }
    }
    // A name that half the project has, such as `mod.rs`, names none.
    for places in by_name
        .values()
        .filter(|places| places.len() > MOST_OF_A_NAME)
    {
        for at in places {
            if let Some(how) = named
                .get_mut(*at)
                .filter(|how| **how == Some(Named::ByName))
            {
                *how = Some(Named::Loosely);
            }
        }
    }
    by_folder(files, query, &mut named);
    named
}

fn by_folder(files: &[File], query: &str, named: &mut [Option<Named>]) {
    for folder in query
        .split(|c: char| !is_of_path(c))
        .filter(|word| word.contains('/'))
    {
        let folder = folder.trim_start_matches("./").trim_end_matches(['.', '/']);
        let is_below = |path: &str| {
            path.strip_prefix(folder)
                .is_some_and(|rest| rest.starts_with('/'))
        };
        let below: Vec<usize> = (0..files.len())
            .filter(|at| files.get(*at).is_some_and(|file| is_below(&file.path)))
            .collect();
        for at in below.iter().filter(|_| below.len() <= MOST_OF_A_FOLDER) {
            if let Some(how) = named.get_mut(*at) {
                *how = (*how).max(Some(Named::ByFolder));
            }
        }
    }
}

/// Whether a query has this very path as a word.
#[must_use]
pub fn is_named(path: &str, query: &str) -> bool {
    let mut places = query.match_indices(path);
    places.any(|(at, _)| {
        let before = query.get(..at).unwrap_or_default().trim_end_matches("./");
        let after = query
            .get(at + path.len()..)
            .unwrap_or_default()
            .trim_start_matches('.');
        !before.ends_with(is_of_path) && !after.starts_with(is_of_path)
    })
}

fn name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn is_of_path(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '+' | '@' | '$' | '[' | ']')
}

#[cfg(test)]
mod tests {
    use super::{File, Named, named};

    fn check(query: &str) -> Vec<(&'static str, Named)> {
        let paths = [
            "src/lib.rs",
            "a/mod.rs",
            "b/mod.rs",
            "c/mod.rs",
            "d/mod.rs",
            "Makefile",
            "src/glib.rs",
            ".ignore",
        ];
        let files = paths.map(|path| File {
            path: path.to_owned(),
            ..File::default()
        });
        let found = named(&files, query);
        paths
            .into_iter()
            .zip(found)
            .filter_map(|(path, how)| Some((path, how?)))
            .collect()
    }

    #[test]
    fn a_path_names_one_file_and_a_name_stands_alone() {
        assert_eq!(
            check("Split ./src/lib.rs."),
            [("src/lib.rs", Named::ByPath)]
        );
        assert_eq!(check("(lib.rs:12)"), [("src/lib.rs", Named::ByName)]);
        assert_eq!(check("The Makefile lies"), [("Makefile", Named::ByPath)]);
        assert_eq!(check("ls .ignore"), [(".ignore", Named::ByPath)]);
        assert_eq!(check("glibs.rs, lib, src"), []);
    }

    #[test]
    fn a_folder_means_its_files() {
        assert_eq!(
            check("Look into a/ again."),
            [("a/mod.rs", Named::ByFolder)]
        );
        assert_eq!(check("a or b"), []);
    }

    #[test]
    fn a_name_that_many_files_have_means_none_of_them() {
        assert!(
            check("mod.rs")
                .iter()
                .all(|(_, how)| *how == Named::Loosely)
        );
        assert_eq!(
            check("c/mod.rs").first(),
            Some(&("c/mod.rs", Named::ByPath))
        );
    }
}
