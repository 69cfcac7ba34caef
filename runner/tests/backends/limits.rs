//! Commands that take more of the machine than they may.

use std::fs;

use crate::support::{Scratch, backends, processes_with, sandboxes};
use code_commit_runner::{Backend, Ended, Output, Resources};

/// Runs a command with these limits only.
fn ran(scratch: &Scratch, backend: Backend, argv: &[&str], resources: Resources) -> Output {
    let mut command = scratch.command(argv);
    command.limits.resources = resources;
    scratch.run(backend, &command)
}

/// In a container the kernel keeps the limits, and only it knows which of them ended what.
fn watched() -> impl Iterator<Item = Backend> {
    backends()
        .into_iter()
        .filter(|backend| *backend != Backend::Docker)
}

#[test]
fn a_fork_bomb_is_ended_and_nothing_of_it_is_left() {
    for backend in watched() {
        let scratch = Scratch::new();
        scratch.compile("glutton");
        let program = scratch.at("tree/src/glutton");
        let resources = Resources {
            processes: Some(100),
            ..Resources::default()
        };
        let output = ran(
            &scratch,
            backend,
            &[program.to_str().unwrap(), "processes"],
            resources,
        );
        assert_eq!(
            output.ended,
            Ended::TooManyProcesses,
            "{backend}: {}",
            output.text()
        );
        assert_eq!(
            processes_with(program.to_str().unwrap()),
            [""; 0],
            "{backend}"
        );
    }
}

#[test]
fn ten_gigabytes_of_memory_are_not_given() {
    for backend in watched() {
        let scratch = Scratch::new();
        scratch.compile("glutton");
        let resources = Resources {
            memory_bytes: Some(256 << 20),
            ..Resources::default()
        };
        let output = ran(&scratch, backend, &["./src/glutton", "memory"], resources);
        assert_eq!(
            output.ended,
            Ended::TooMuchMemory,
            "{backend}: {}",
            output.text()
        );
    }
}

#[test]
fn a_full_temporary_folder_and_a_large_file_fail_the_build() {
    let resources = Resources {
        temporary_bytes: Some(1 << 20),
        file_bytes: Some(4 << 20),
        ..Resources::default()
    };
    for backend in sandboxes() {
        let scratch = Scratch::new();
        let fails = |folder: &str, size: &str| {
            let line = format!("cat /dev/zero | head -c {size} > {folder}/file");
            !ran(&scratch, backend, &["sh", "-c", &line], resources).success()
        };
        if backend != Backend::Landlock {
            assert!(fails("/tmp", "3M"), "{backend}");
        }
        assert!(fails("src", "9M"), "{backend}");
        assert!(
            fs::metadata(scratch.at("tree/src/file")).unwrap().len() <= 4 << 20,
            "{backend}"
        );
    }
}

#[test]
fn a_process_that_opens_too_many_files_gets_an_error() {
    let resources = Resources {
        open_files: Some(300),
        ..Resources::default()
    };
    for backend in backends() {
        let scratch = Scratch::new();
        scratch.compile("glutton");
        let output = ran(&scratch, backend, &["./src/glutton", "files"], resources);
        assert_eq!(output.text(), "300: Too many open files\n", "{backend}");
    }
}

#[test]
fn a_command_in_a_sandbox_cannot_raise_its_own_limits() {
    let resources = Resources {
        file_bytes: Some(4 << 20),
        open_files: Some(300),
        ..Resources::default()
    };
    for backend in sandboxes() {
        let scratch = Scratch::new();
        let line =
            "ulimit -f unlimited 2> /dev/null || ulimit -n 301 2> /dev/null || echo both held";
        let output = ran(&scratch, backend, &["dash", "-c", line], resources);
        assert_eq!(output.text(), "both held\n", "{backend}");
    }
}

/// Ordinary work stays below what a machine gives by default.
#[test]
fn what_is_usual_is_enough_for_a_compiler() {
    for backend in backends() {
        let scratch = Scratch::new();
        fs::copy(
            crate::support::evil_programs().join("glutton.c"),
            scratch.at("tree/src/a.c"),
        )
        .unwrap();
        let line = "cc -o /tmp/a src/a.c && echo built";
        let output = ran(
            &scratch,
            backend,
            &["sh", "-c", &line.replace("/tmp", "${TMPDIR:-/tmp}")],
            Resources::usual(),
        );
        assert_eq!(output.text(), "built\n", "{backend}");
    }
}
