//! Small real projects, each run to green through the built program, compared whole, and taken back.
//!
//! The builds are real: cargo, python3 and cc must be there, or the project that needs one is skipped with a loud line.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use code_commit_fixtures::project::Project;
use code_commit_fixtures::projects::{self, Sample};
use code_commit_fixtures::server::Server;

use crate::scenes::commit::Scene;
use crate::scenes::program::{Ran, search_path};
use crate::scenes::size::samples;

/// One test for each project, named like its folder.
macro_rules! every_project {
    ($($name:ident)*) => {
        const LISTED: &[&str] = &[$(stringify!($name)),*];
        $(
            #[test]
            fn $name() {
                prove(stringify!($name), "off");
            }
        )*
    };
}

every_project! {
    p001_executable_bit_is_kept
    p002_crlf_stays_crlf
    p003_no_final_newline
    p004_byte_order_mark
    p005_rename_is_create_and_delete
    p006_new_nested_folders
    p007_unicode_names
    p008_longer_fence_around_fences
    p009_empty_file
    p010_the_test_is_wrong
    p011_the_code_is_wrong
    p012_refused_then_right
    p013_cut_off_then_right
    p014_nothing_to_change
    p015_hard_links_are_cut
    p016_tracked_file_in_an_ignored_folder
    p017_ten_thousand_lines
    p018_binary_file_beside
    p019_blanks_in_paths
    p020_deletes_what_is_not_there
    p021_a_big_shrink_is_warned_of
    p022_nested_ignore_rules
    p023_symlinks_are_not_followed
    p024_markdown_instead_of_fences
    p025_same_file_twice
    p026_a_folder_goes_with_its_files
    p027_green_in_the_third_repair
    p028_another_spelling_of_a_file
    p029_the_build_makes_files
    p030_a_placeholder_is_warned_of
}

#[test]
fn every_folder_of_projects_has_a_test() {
    let listed: Vec<&str> = LISTED
        .iter()
        .map(|name| name.trim_start_matches('p'))
        .collect();
    assert_eq!(projects::names().unwrap(), listed);
}

#[test]
fn a_rust_a_python_and_a_c_project_pass_in_the_default_sandbox() {
    if let Err(reason) = code_commit_runner::probe(code_commit_runner::Mode::Auto, None) {
        skip("projects in the default sandbox", &reason.to_string());
        return;
    }
    let names = vec![
        "p017_ten_thousand_lines",
        "p006_new_nested_folders",
        "p029_the_build_makes_files",
    ];
    for name in samples("projects in the default sandbox", names) {
        prove(name, "auto");
    }
}

/// Runs the project through all of its replies to green and back again.
fn prove(name: &str, sandbox: &str) {
    let sample = Sample::open(name.trim_start_matches('p')).unwrap();
    if let Some(missing) = sample
        .settings
        .needs
        .iter()
        .find(|program| !is_installed(program))
    {
        skip(name, &format!("{missing} is not installed"));
        return;
    }
    let server = Server::start(sample.script().unwrap()).unwrap();
    let scene = Scene {
        project: sample.lay_out().unwrap(),
        server,
    };
    let Scene { project, server } = &scene;
    run(&scene, &["rollup"]);
    let said = run(&scene, &scene.flags_in(sandbox));
    assert_eq!(
        server.steps_left(),
        0,
        "{name}: not every reply was asked for\n{said}"
    );
    same(
        &sample,
        project,
        &sample.after().unwrap(),
        &format!("after the run:\n{said}"),
    );
    for wanted in &sample.settings.says {
        assert!(
            said.contains(wanted),
            "{name}: the person does not read {wanted:?} in\n{said}"
        );
    }
    told(&sample, server);
    // There is nothing to undo where nothing was changed, which the comparison shows.
    let undone = Ran::of(&mut scene.keyed(&["undo"], &[]));
    assert!(matches!(undone.code, Some(0 | 7)), "{undone}");
    same(
        &sample,
        project,
        &sample.before().unwrap(),
        &format!("after undo:\n{undone}"),
    );
    assert_eq!(
        project.status().unwrap(),
        "",
        "{name}: git sees a change after undo"
    );
}

/// What the model has to know stands in some prompt after the first.
fn told(sample: &Sample, server: &Server) {
    let requests = server.requests();
    let prompts: Vec<String> = requests
        .iter()
        .skip(1)
        .map(|request| {
            request.json()["contents"][0]["parts"][0]["text"]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        })
        .collect();
    for wanted in &sample.settings.tells {
        let is_told = prompts.iter().any(|prompt| prompt.contains(wanted));
        assert!(
            is_told,
            "the model does not read {wanted:?} in\n{}",
            prompts.join("\n=====\n")
        );
    }
}

fn same(sample: &Sample, project: &Project, wanted: &projects::Tree, when: &str) {
    let differences = wanted.differences(&sample.on_disk(project.root()).unwrap());
    assert!(differences.is_empty(), "{}\n{when}", differences.join("\n"));
}

/// Runs the program, which must end well; what it printed.
fn run(scene: &Scene, args: &[&str]) -> String {
    let ran = Ran::of(scene.keyed(args, &[]).envs(rust_homes()));
    assert_eq!(ran.code, Some(0), "code-commit {}: {ran}", args.join(" "));
    ran.err + &ran.out
}

/// Where rustup and cargo keep what they need, also when HOME is another.
fn rust_homes() -> impl Iterator<Item = (&'static str, PathBuf)> {
    [("RUSTUP_HOME", ".rustup"), ("CARGO_HOME", ".cargo")]
        .into_iter()
        .filter_map(|(name, folder)| {
            let set = std::env::var_os(name).map(PathBuf::from);
            let usual = std::env::var_os("HOME").map(|home| Path::new(&home).join(folder));
            set.or(usual)
                .filter(|path| path.is_dir())
                .map(|path| (name, path))
        })
}

fn is_installed(program: &str) -> bool {
    std::env::split_paths(&search_path()).any(|folder| folder.join(program).is_file())
}

#[expect(
    clippy::explicit_write,
    reason = "past the test harness, which keeps what passing tests print to itself"
)]
fn skip(what: &str, reason: &str) {
    writeln!(std::io::stderr(), "SKIPPED: {what}, because {reason}").unwrap();
}
