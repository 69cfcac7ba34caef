//! `corpus/` holds outputs of real tools; the first line of each file names the tool and the exit code.

use std::path::PathBuf;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::{Access, Captured, Ended, Refusal, RefusedHost};

/// What a machine answers.
struct Given {
    program: Presence,
    file: &'static str,
    declares: &'static str,
    has_network: bool,
    rung: Rung,
    blocked: Option<&'static str>,
}

impl Machine for Given {
    fn program(&self, _: &str) -> Presence {
        self.program.clone()
    }

    fn is_file(&self, path: &Path) -> bool {
        path == Path::new(self.file)
    }

    fn declares(&self, library: &str) -> bool {
        library == self.declares
    }

    fn has_network(&self) -> bool {
        self.has_network
    }

    fn rung(&self) -> Rung {
        self.rung
    }

    fn blocked(&self) -> Option<String> {
        self.blocked.map(str::to_owned)
    }
}

/// Lacks whatever the corpus complains about.
const BARE: Given = Given {
    program: Presence::Missing,
    file: "./tool",
    declares: "declared_x",
    has_network: false,
    rung: Rung::Namespaces,
    blocked: Some("how to allow it"),
};
/// Lacks nothing.
const WHOLE: Given = Given {
    program: Presence::Visible,
    file: "",
    declares: "",
    has_network: true,
    rung: Rung::Namespaces,
    blocked: None,
};

fn read(path: &Path) -> (i32, String) {
    let text = std::fs::read_to_string(path).unwrap();
    let (head, output) = text.split_once('\n').unwrap();
    (
        head.rsplit_once("exit code ").unwrap().1.parse().unwrap(),
        output.to_owned(),
    )
}

fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("corpus")
        .join(folder);
    let mut files: Vec<PathBuf> = folder
        .read_dir()
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    files
}

/// The verdict on every output in a folder of the corpus.
fn verdicts(folder: &str, machine: &Given) -> String {
    let verdict = |file: &PathBuf| {
        let (exit_code, output) = read(file);
        let name = file.file_stem().unwrap().to_str().unwrap();
        match lack(
            &Failed {
                exit_code,
                output: &output,
            },
            machine,
        ) {
            Some(lack) => format!(
                "{name}\n  {:?}: {}\n  {}\n",
                lack.kind, lack.what, lack.help
            ),
            None => format!("{name}\n  red\n"),
        }
    };
    files(folder).iter().map(verdict).collect()
}

#[test]
fn what_the_machine_lacks_is_named_with_what_fixes_it() {
    insta::assert_snapshot!(verdicts("unfit", &BARE));
}

#[test]
fn a_red_build_is_never_called_unfit() {
    let verdicts = verdicts("red", &BARE);
    let unfit: Vec<&str> = verdicts
        .lines()
        .filter(|line| line.starts_with("  ") && *line != "  red")
        .collect();
    assert!(
        unfit.is_empty() && verdicts.lines().count() > 40,
        "{verdicts}"
    );
}

#[test]
fn a_machine_that_has_what_the_output_complains_about_is_not_blamed() {
    let verdicts = verdicts("unfit", &WHOLE);
    let is_sentence = |line: &&str| {
        ["Tool: ", "Module: ", "Network: ", "Cache: ", "Permission: "]
            .iter()
            .any(|kind| line.starts_with(kind))
    };
    let blamed: Vec<&str> = verdicts
        .lines()
        .map(str::trim)
        .filter(is_sentence)
        .collect();
    // Of versions, compilers and the modules of an interpreter, only the output knows.
    insta::assert_snapshot!(blamed.join("\n"), @r"
    Module: the Python module `nosuchrunner` is not installed for the Python that the build uses
    Tool: CMake finds no compiler
    Tool: CMake finds no build program
    Tool: rustup has no default toolchain
    ");
}

#[test]
fn a_verdict_about_the_code_outweighs_everything_else() {
    for file in files("unfit") {
        let (exit_code, output) = read(&file);
        for judged in [
            "error[E0308]: mismatched types",
            "1 failed in 0.02s",
            "x.c:1:20: error: ‘y’ undeclared",
        ] {
            let output = format!("{judged}\n{output}");
            assert_eq!(
                lack(
                    &Failed {
                        exit_code,
                        output: &output
                    },
                    &BARE
                ),
                None,
                "{output}"
            );
        }
    }
}

#[test]
fn a_refused_host_makes_a_failure_unfit_unless_the_code_was_judged() {
    let host = RefusedHost {
        host: "static.crates.io".to_owned(),
        why: Refusal::NotAllowed,
    };
    let of = |code, text| {
        let refused = vec![host.clone()];
        let output = Output {
            refused,
            ..output(code, text)
        };
        let (env, confinement) = (Env::default(), Confinement::off());
        Ran {
            output: &output,
            root: Path::new("/"),
            env: &env,
            confinement: &confinement,
        }
        .lack()
    };
    let found = of(
        1,
        "error: failed to download from `https://static.crates.io/x`\n",
    )
    .unwrap();
    insta::assert_snapshot!(format!("{}: {}\n{}", found.kind.code(), found.what, found.help), @r#"
    no-network: the command did not reach static.crates.io (not an allowed host)
    allow the host with `--allow-host static.crates.io` or `[sandbox] hosts = ["static.crates.io"]`
    "#);
    assert_eq!((of(1, "1 failed in 0.02s\n"), of(0, "")), (None, None));
}

#[test]
fn a_program_that_the_sandbox_hides_is_shown_with_its_folder() {
    let hiding = Given {
        program: Presence::Hidden("/srv/tools/bin/mvn".into()),
        ..WHOLE
    };
    let failed = Failed {
        exit_code: 127,
        output: "./build.sh: 3: mvn: not found\n",
    };
    insta::assert_snapshot!(lack(&failed, &hiding).unwrap().help, @"show it with `--readable /srv/tools/bin` or `[sandbox] readable = [\"/srv/tools/bin\"]`");
}

/// The help ends up in a terminal, and its commands in a shell.
#[test]
fn a_name_with_a_meaning_to_a_shell_is_not_quoted() {
    for name in [
        "./$(reboot)",
        "./a`b`",
        "a;b/c",
        "a|b",
        "-rf/x",
        "é/x",
        "./a'b",
    ] {
        let output = format!("./build.sh: 3: {name}: not found\n");
        assert_eq!(
            lack(
                &Failed {
                    exit_code: 127,
                    output: &output
                },
                &BARE
            ),
            None,
            "{name}"
        );
    }
    let failed = Failed {
        exit_code: 127,
        output: "./build.sh: 3: g++-12.1_x@y: not found\n",
    };
    assert!(lack(&failed, &BARE).is_some());
}

#[test]
fn older_versions_of_npm_are_understood_too() {
    for code in ["EAI_AGAIN", "ENOTCACHED"] {
        let of = |words: &str| {
            let output = format!("{words} code {code}\n");
            lack(
                &Failed {
                    exit_code: 1,
                    output: &output,
                },
                &BARE,
            )
            .unwrap()
        };
        assert_eq!(of("npm ERR!"), of("npm error"));
    }
}

fn output(code: i32, text: &str) -> Output {
    Output {
        ended: Ended::Exited(code),
        captured: Captured {
            head: text.as_bytes().to_vec(),
            ..Captured::default()
        },
        apart: None,
        elapsed: Duration::ZERO,
        survivors_killed: 0,
        survivors_left: 0,
        denied: Vec::new(),
        refused: Vec::new(),
    }
}

/// The answers of a machine that has these files in its project.
fn lacked(files: &[(&str, &str)], code: i32, text: &str) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in files {
        code_commit_dir::replace(&folder.path().join(name), content.as_bytes()).unwrap();
    }
    let output = output(code, text);
    let env = Env::allowed([("PATH".into(), "/usr/bin:/bin".into())], &[]);
    let access = Access::new(folder.path(), &env);
    let confinement = Confinement {
        rung: Rung::Namespaces,
        access,
    };
    let ran = Ran {
        output: &output,
        root: folder.path(),
        env: &env,
        confinement: &confinement,
    };
    ran.lack()
        .map(|lack| format!("{}: {}", lack.kind.code(), lack.what))
}

#[test]
fn a_program_is_missing_only_if_no_folder_of_the_path_holds_it() {
    let missing = lacked(&[], 127, "./build.sh: 2: no-such-tool: not found\n");
    assert_eq!(
        missing.as_deref(),
        Some("tool-missing: the program `no-such-tool` is not installed")
    );
    assert_eq!(lacked(&[], 127, "./build.sh: 2: sh: not found\n"), None);
}

#[test]
fn a_library_is_missing_only_if_a_manifest_names_it() {
    let text = "ModuleNotFoundError: No module named 'typing_extra'\n";
    assert_eq!(lacked(&[], 1, text), None);
    let manifest = ("requirements.txt", "# all\nTyping-Extra>=4\n");
    assert!(
        lacked(&[manifest], 1, text)
            .unwrap()
            .starts_with("module-missing: ")
    );
    assert_eq!(lacked(&[manifest, ("typing_extra.py", "")], 1, text), None);
    let text = "Error: Cannot find module '@scope/part/sub'\n";
    let manifest = ("package.json", r#"{"dependencies":{"@scope/part":"^1"}}"#);
    assert!(
        lacked(&[manifest], 1, text)
            .unwrap()
            .contains("`@scope/part`")
    );
}

#[test]
fn a_virtual_environment_is_missing_only_if_it_is_not_there() {
    let of_bash = "./build.sh: line 2: .venv/bin/activate: No such file or directory\n";
    let of_dash = "./build.sh: 2: .: cannot open .venv/bin/activate: No such file\n";
    let of_python = "./build.sh: 3: .venv/bin/python: not found\n";
    let missing = "module-missing: the virtual environment `.venv` does not exist";
    for (code, text) in [(1, of_bash), (2, of_dash), (127, of_python)] {
        assert_eq!(lacked(&[], code, text).as_deref(), Some(missing), "{text}");
    }
    assert_eq!(lacked(&[(".venv/bin/activate", "")], 2, of_dash), None);
    assert_eq!(
        lacked(
            &[],
            2,
            "cat: tools/bin/python3.txt: No such file or directory, says a test\n"
        ),
        None
    );
    let failed = Failed {
        exit_code: 2,
        output: of_dash,
    };
    let with_list = Given {
        file: "requirements.txt",
        ..WHOLE
    };
    insta::assert_snapshot!(lack(&failed, &WHOLE).unwrap().help, @"make it: python3 -m venv .venv");
    insta::assert_snapshot!(lack(&failed, &with_list).unwrap().help, @"make it: python3 -m venv .venv && .venv/bin/pip install -r requirements.txt");
}

proptest! {
    #[test]
    fn no_output_breaks_it(exit_code in any::<i32>(), output in "(?s).{0,400}") {
        let _ = lack(&Failed { exit_code, output: &output }, &BARE);
    }

    #[test]
    fn what_passed_lacks_nothing(output in "(sh: 1: nope: not found\n|npm error code EAI_AGAIN\n|x\n){0,5}") {
        prop_assert_eq!(lack(&Failed { exit_code: 0, output: &output }, &BARE), None);
    }
}
