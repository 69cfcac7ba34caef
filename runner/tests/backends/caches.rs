//! Caches of tools: read from the user's, written to the project's own layers.

use std::fs::{self, File};
use std::io::Write as _;
use std::thread;
use std::time::{Duration, SystemTime};

use crate::support::{Scratch, attempt, works};
use code_commit_runner::{Access, Backend, Confinement, RunError};
use rustix::fs::{FlockOperation, flock};

/// The backends that can mount layers.
fn backends() -> impl Iterator<Item = Backend> {
    works(Backend::Namespaces)
        .then_some(Backend::Namespaces)
        .into_iter()
}

/// A user with a cache of cargo and without one of npm.
fn user() -> Scratch {
    let scratch = Scratch::new();
    let crates = scratch.at("home/.cargo/registry/src");
    fs::create_dir_all(&crates).unwrap();
    fs::write(crates.join("lib.rs"), "the user's\n").unwrap();
    fs::write(crates.join("old.rs"), "the user's\n").unwrap();
    scratch.write("home/.cargo/credentials.toml", "secret\n");
    scratch
}

fn access(scratch: &Scratch, layers: &str) -> Access {
    let cargo_home = Some(scratch.at("home/.cargo"));
    Access {
        cargo_home,
        caches: Some(scratch.at(layers)),
        ..scratch.access()
    }
}

fn sh(scratch: &Scratch, backend: Backend, access: Access, line: &str) -> String {
    let mut command = scratch.command(&["sh", "-c", line]);
    command.env.set("CARGO_HOME", scratch.at("home/.cargo"));
    let confinement = Confinement { backend, access };
    attempt(&command, confinement.backend, &confinement.access)
        .unwrap()
        .text()
}

const LOOK: &str = "cd ~; cat .cargo/registry/src/* .npm/_cacache/*; ls .cargo";

#[test]
fn a_project_sees_what_it_wrote_and_nobody_else_does() {
    for backend in backends() {
        let scratch = user();
        let change = "cd ~; echo new > .cargo/registry/src/lib.rs; rm .cargo/registry/src/old.rs
            echo fetched > .npm/_cacache/index; mv .cargo/registry/src/lib.rs .cargo/registry/src/moved.rs";
        let fetching = Access {
            network: true,
            ..access(&scratch, "one")
        };
        assert_eq!(sh(&scratch, backend, fetching, change), "", "{backend}");
        assert_eq!(
            sh(&scratch, backend, access(&scratch, "one"), LOOK),
            "new\nfetched\nregistry\n",
            "{backend}"
        );
        let elsewhere = sh(&scratch, backend, access(&scratch, "other"), LOOK);
        assert!(
            elsewhere.starts_with("the user's\nthe user's\ncat: "),
            "{backend}: {elsewhere}"
        );
        let crates = scratch.at("home/.cargo/registry/src");
        for name in ["lib.rs", "old.rs"] {
            assert_eq!(
                fs::read_to_string(crates.join(name)).unwrap(),
                "the user's\n",
                "{backend}"
            );
        }
        assert_eq!(fs::read_dir(crates).unwrap().count(), 2, "{backend}");
        assert_eq!(
            fs::read_dir(scratch.at("home")).unwrap().count(),
            2,
            "{backend}"
        );
    }
}

/// The layers are in the state folder, which is below the tree: a command sees them through neither.
#[test]
fn layers_in_the_tree_are_hidden_and_a_view_of_it_changes_nothing() {
    for backend in backends() {
        let scratch = user();
        let view = |name: &str| {
            let [upper, work] =
                ["upper", "work"].map(|part| scratch.at(&format!("views/{name}/{part}")));
            [&upper, &work]
                .into_iter()
                .for_each(|folder| fs::create_dir_all(folder).unwrap());
            Some(code_commit_runner::View { upper, work })
        };
        let within = |name: &str| Access {
            view: view(name),
            ..access(&scratch, "tree/.git/caches")
        };
        let fetching = Access {
            network: true,
            ..within("one")
        };
        sh(
            &scratch,
            backend,
            fetching,
            "echo fetched > ~/.npm/_cacache/index",
        );
        let seen = sh(
            &scratch,
            backend,
            within("two"),
            "cat ~/.npm/_cacache/index; ls -A .git/caches",
        );
        assert_eq!(seen, "fetched\n", "{backend}");
        assert!(
            fs::read_dir(scratch.at("views/one/upper"))
                .unwrap()
                .next()
                .is_none(),
            "{backend}"
        );
    }
}

#[test]
fn a_second_command_waits_for_the_layers() {
    for backend in backends() {
        let scratch = user();
        fs::create_dir(scratch.at("one")).unwrap();
        let held = File::open(scratch.at("one")).unwrap();
        flock(&held, FlockOperation::LockExclusive).unwrap();
        let mut order = File::options()
            .append(true)
            .create(true)
            .open(scratch.at("tree/src/order"))
            .unwrap();
        thread::scope(|scope| {
            scope.spawn(|| {
                sh(
                    &scratch,
                    backend,
                    access(&scratch, "one"),
                    "echo ran >> src/order",
                )
            });
            order.write_all(b"released\n").unwrap();
            drop(held);
        });
        assert_eq!(
            scratch.read("tree/src/order"),
            "released\nran\n",
            "{backend}"
        );
    }
}

/// Unmounting any other would write the whole file system back, and the command would wait for it.
#[test]
fn nothing_is_synced_when_a_layer_is_unmounted() {
    for backend in backends() {
        let scratch = user();
        for _ in 0..2 {
            let fetching = Access {
                network: true,
                ..access(&scratch, "one")
            };
            let mounts = sh(
                &scratch,
                backend,
                fetching,
                "grep ' - overlay ' /proc/self/mountinfo",
            );
            assert!(mounts.lines().count() > 5, "{backend}: {mounts}");
            assert!(
                mounts.lines().all(|line| line.contains("volatile")),
                "{backend}: {mounts}"
            );
        }
    }
}

#[test]
fn what_may_not_have_reached_the_disk_before_the_machine_stopped_is_thrown_away() {
    for backend in backends() {
        let scratch = user();
        let fetch = |layers: &str| {
            let fetching = Access {
                network: true,
                ..access(&scratch, layers)
            };
            sh(
                &scratch,
                backend,
                fetching,
                "mkdir -m 0 ~/.npm/_cacache/shut; echo fetched > ~/.npm/_cacache/index",
            )
        };
        let look = |layers: &str| {
            sh(
                &scratch,
                backend,
                access(&scratch, layers),
                "cat ~/.npm/_cacache/index 2>&1",
            )
        };
        // As if they had been used before this boot, and everything had been written back up to that time. Elsewhere,
        // because what writes them back may still be at it.
        let move_in_time = |[from, to]: [&str; 2], until: SystemTime| {
            fs::rename(scratch.at(from), scratch.at(to)).unwrap();
            let mark = scratch.at(to).join("boot");
            fs::remove_file(&mark).unwrap();
            fs::write(&mark, "another boot").unwrap();
            File::options()
                .write(true)
                .open(mark)
                .unwrap()
                .set_modified(until)
                .unwrap();
        };
        let begun = SystemTime::now();
        assert_eq!(fetch("one"), "", "{backend}");
        move_in_time(["one", "two"], begun + Duration::from_hours(1));
        assert_eq!([look("two"), look("two")], ["fetched\n"; 2], "{backend}");
        move_in_time(["two", "three"], begun - Duration::from_hours(1));
        assert!(
            look("three").contains("No such file"),
            "{backend}: {}",
            look("three")
        );
        assert_eq!(fetch("three"), "", "{backend}");
        assert_eq!(look("three"), "fetched\n", "{backend}");
    }
}

/// Without layers, the caches of cargo are there to read.
#[test]
fn where_no_layer_can_be_a_cache_is_not_changed_and_the_user_is_told() {
    for backend in [Backend::Landlock, Backend::Docker]
        .into_iter()
        .filter(|backend| works(*backend))
    {
        let scratch = user();
        let mut command = scratch.command(&["sh", "-c", "echo new > $CARGO_HOME/registry/new"]);
        command.env.set("CARGO_HOME", scratch.at("home/.cargo"));
        let confinement = Confinement {
            backend,
            access: access(&scratch, "one"),
        };
        let output = attempt(&command, confinement.backend, &confinement.access).unwrap();
        assert!(
            !output.success() && !scratch.at("one").exists(),
            "{backend}: {}",
            output.text()
        );
        assert!(
            !scratch.at("home/.cargo/registry/new").exists(),
            "{backend}"
        );
    }
}

/// What is in the way of the layers is found out by a trial, and a trial that was made is not made again.
#[test]
fn that_a_sandbox_works_is_remembered_until_it_does_not() {
    for backend in backends() {
        let scratch = user();
        let mut access = access(&scratch, "state/layers");
        access.memory = Some(scratch.at("state"));
        let confinement = Confinement { backend, access };
        let memory = scratch.at(&format!("state/{backend}-works"));
        code_commit_runner::works(&confinement).unwrap();
        assert!(memory.is_file(), "{backend}");
        let upper = scratch.at("state/layers/upper");
        fs::remove_dir_all(&upper).unwrap();
        fs::write(&upper, "").unwrap();
        code_commit_runner::works(&confinement).unwrap();
        let other = Access {
            readable: vec!["/".into()],
            ..confinement.access.clone()
        };
        code_commit_runner::works(&Confinement {
            backend,
            access: other,
        })
        .unwrap_err();
        let ran = attempt(
            &scratch.command(&["true"]),
            confinement.backend,
            &confinement.access,
        );
        assert!(
            matches!(ran, Err(RunError::Sandbox { .. })),
            "{backend}: {ran:?}"
        );
        assert!(!memory.exists(), "{backend}");
        code_commit_runner::works(&confinement).unwrap_err();
    }
}
