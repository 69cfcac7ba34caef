//! The roll-up of this project's own code.

use std::collections::BTreeSet;
use std::path::Path;

use code_commit_logging::Redactor;
use code_commit_prompt::rollup::files;
use code_commit_prompt::select::tokens;
use code_commit_repo::WorkTree;
use code_commit_runs::rollup::{Options, Sources, make};
use code_commit_settings::{Environment, Settings};

const BUDGET: u64 = 100_000;

/// This project's work tree.
fn tree() -> WorkTree {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    WorkTree::at(root).unwrap()
}

/// Its roll-up for a query.
#[track_caller]
fn rollup(tree: &WorkTree, query: &str, budget: Option<u64>) -> String {
    let path = ("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into());
    let sources = Sources {
        tree,
        environment: &Environment::of([path]),
        redactor: &Redactor::default(),
        query,
        state: None,
    };
    let options = Options {
        budget,
        ..Options::default()
    };
    make(sources, &options, &Settings::default()).unwrap().text
}

#[test]
fn a_query_that_names_a_crate_of_this_project_fits_a_budget_and_is_shown_the_crate() {
    let tree = tree();
    for name in ["guard", "prompt", "logging"] {
        let query = format!("The crate in {name}/ could say more in its errors.");
        let text = rollup(&tree, &query, Some(BUDGET));
        let shown: BTreeSet<&str> = files(&text).map(|(path, _)| path).collect();
        let mut own = 0;
        let index = tree.index().unwrap();
        let files = index.iter().filter_map(|one| one.file());
        for file in files.filter(|file| file.starts_with(&format!("{name}/src/"))) {
            assert!(shown.contains(file), "{name}: {file} is not shown");
            own += 1;
        }
        assert!(
            own > 3 && tokens(text.len()) <= BUDGET,
            "{name}: {own} files, {} bytes",
            text.len()
        );
    }
}

#[test]
fn without_a_budget_a_file_that_the_query_names_is_shown_whole_within_60_000_tokens() {
    let tree = tree();
    for path in ["prompt/src/rollup.rs", "guard/src/lib.rs", "build.sh"] {
        let query = format!("Say more about errors in {path}.");
        let text = rollup(&tree, &query, Options::default().budget);
        assert!(files(&text).any(|(shown, _)| shown == path), "{path}");
        assert!(tokens(text.len()) <= 60_000, "{path}");
    }
}
