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

#[test]
fn a_query_that_names_a_crate_of_this_project_fits_a_budget_and_is_shown_the_crate() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let (tree, redactor) = (WorkTree::at(root).unwrap(), Redactor::default());
    let environment = Environment::of([("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())]);
    for name in ["guard", "prompt", "logging"] {
        let query = &*format!("The crate in {name}/ could say more in its errors.");
        let sources = Sources {
            tree: &tree,
            environment: &environment,
            redactor: &redactor,
            query,
            state: None,
        };
        let options = Options {
            budget: Some(BUDGET),
            ..Options::default()
        };
        let rollup = make(sources, &options, &Settings::default())
            .unwrap_or_else(|_| panic!("no roll-up for {name}"));
        let shown: BTreeSet<&str> = files(&rollup.text).map(|(path, _)| path).collect();
        let mut own = 0;
        let index = tree.index().unwrap();
        let files = index.iter().filter_map(|one| one.file());
        for file in files.filter(|file| file.starts_with(&format!("{name}/src/"))) {
            assert!(shown.contains(file), "{name}: {file} is not shown");
            own += 1;
        }
        assert!(
            own > 3 && tokens(rollup.text.len()) <= BUDGET,
            "{name}: {own} files, {} bytes",
            rollup.text.len()
        );
    }
}

#[test]
fn without_a_budget_a_file_that_the_query_names_is_shown_whole_within_60_000_tokens() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let (tree, redactor) = (WorkTree::at(root).unwrap(), Redactor::default());
    let environment = Environment::of([("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())]);
    for path in ["prompt/src/rollup.rs", "guard/src/lib.rs", "build.sh"] {
        let query = &*format!("Say more about errors in {path}.");
        let sources = Sources {
            tree: &tree,
            environment: &environment,
            redactor: &redactor,
            query,
            state: None,
        };
        let rollup = make(sources, &Options::default(), &Settings::default())
            .unwrap_or_else(|_| panic!("no roll-up for {path}"));
        assert!(
            files(&rollup.text).any(|(shown, _)| shown == path),
            "{path}"
        );
        assert!(tokens(rollup.text.len()) <= 60_000, "{path}");
    }
}
