//! Everything that a command starts is gone when `run` returns: the evil children of `fixtures/evil`, under
//! every backend, after a timeout and after a normal exit.
//!
//! A separate binary, because being a subreaper affects the whole process.

#![expect(
    clippy::disallowed_methods,
    reason = "the tests measure and look at processes"
)]
#![expect(
    clippy::print_stderr,
    reason = "a figure that a person may want to see"
)]

mod support;

use std::os::unix::process::CommandExt as _;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use code_commit_dir::OwnChild;
use code_commit_runner::{Backend, Cancel, Confinement, Ended, Leftovers, run, sweep};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use support::{Scratch, backends, processes_with};

const EVIL: [&str; 4] = ["grandchild", "daemon", "orphan", "shifter"];
const DEADLINE: Duration = Duration::from_millis(700);

/// One test at a time: other commands would affect the timing, and a sweep ends them all.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs each evil child under each backend and looks for it afterwards.
fn check(how: &str, ended: Ended) {
    let _turn = turn();
    let scratch = Scratch::new();
    for name in EVIL {
        scratch.compile(name);
    }
    for backend in backends() {
        for name in EVIL {
            let token = format!("token-{}-{backend}-{name}-{how}", std::process::id());
            let mut command = scratch.command(&[&format!("./src/{name}"), how, &token]);
            // A container takes longer to start than the whole deadline of the others.
            let deadline = if backend == Backend::Docker {
                Duration::from_secs(3)
            } else {
                DEADLINE
            };
            command.deadline = Some(deadline);
            let begun = Instant::now();
            let output = scratch.run(backend, &command);
            let took = begun.elapsed();
            assert_eq!(
                (output.ended, output.text().as_str()),
                (ended, "ready\n"),
                "{backend} {name}"
            );
            assert!(
                took < deadline + Duration::from_secs(1),
                "{backend} {name} took {took:?}"
            );
            assert_eq!(
                processes_with(&token),
                Vec::<String>::new(),
                "{backend} {name}"
            );
            assert_eq!(output.survivors_left, 0, "{backend} {name}");
            if matches!(backend, Backend::Off | Backend::Landlock) {
                assert!(output.survivors_killed > 0, "{backend} {name}");
            }
            eprintln!(
                "{backend} {name} {how}: {took:?}, {} killed",
                output.survivors_killed
            );
        }
    }
}

#[test]
fn no_evil_child_survives_a_time_out() {
    check("stay", Ended::TimedOut);
}

#[test]
fn no_evil_child_survives_a_normal_exit() {
    check("exit", Ended::Exited(0));
}

#[test]
fn what_is_left_behind_is_found_also_where_this_process_has_no_descriptor_left() {
    let _turn = turn();
    let scratch = Scratch::new();
    scratch.compile("daemon");
    let token = format!("token-{}-descriptors", std::process::id());
    let command = scratch.command(&["./src/daemon", "exit", &token]);
    let cancel = Cancel::new().unwrap();
    let usual = getrlimit(Resource::Nofile);
    let mut all = Vec::new();
    let output = run(&command, &Confinement::off(), &cancel, &mut |_, _| {
        setrlimit(
            Resource::Nofile,
            Rlimit {
                current: Some(256),
                ..usual
            },
        )
        .unwrap();
        all.extend(std::iter::from_fn(|| std::fs::File::open("/dev/null").ok()));
    });
    setrlimit(Resource::Nofile, usual).unwrap();
    assert!(all.len() > 100);
    drop(all);
    let left = processes_with(&token);
    let output = output.unwrap();
    assert!(
        left.is_empty() && output.survivors_killed > 0 && output.survivors_left == 0,
        "{output:?} {left:?}"
    );
}

#[test]
fn a_child_of_another_thread_is_not_taken_for_a_leftover() {
    let _turn = turn();
    let scratch = Scratch::new();
    let mut bystander = None;
    let command = scratch.command(&["sh", "-c", "echo ready; read forever"]);
    let cancel = Cancel::new().unwrap();
    let output = run(&command, &Confinement::off(), &cancel, &mut |_, _| {
        bystander = Some(
            std::process::Command::new("sleep")
                .arg("600")
                .spawn()
                .unwrap(),
        );
        cancel.set();
    });
    let mut bystander = bystander.unwrap();
    assert_eq!(bystander.try_wait().unwrap(), None);
    bystander.kill().and_then(|()| bystander.wait()).unwrap();
    output.unwrap();
}

#[test]
fn a_child_of_our_own_is_spared_in_a_process_group_of_its_own() {
    let _turn = turn();
    let scratch = Scratch::new();
    let (input, keep) = std::io::pipe().unwrap();
    let mut bystander = std::process::Command::new("sh");
    bystander
        .args(["-c", "read forever; echo spared"])
        .stdin(input)
        .stdout(std::process::Stdio::piped())
        .process_group(0);
    let mut own = None;
    let command = scratch.command(&["sh", "-c", "echo ready; read forever"]);
    let cancel = Cancel::new().unwrap();
    let output = run(&command, &Confinement::off(), &cancel, &mut |_, _| {
        own = Some(OwnChild::start(&mut bystander).unwrap());
        cancel.set();
    });
    output.unwrap();
    drop((bystander, keep));
    assert_eq!(own.unwrap().wait().unwrap().stdout, b"spared\n");
}

#[test]
fn cancelling_ends_the_whole_tree() {
    let _turn = turn();
    let scratch = Scratch::new();
    scratch.compile("daemon");
    for backend in backends() {
        let token = format!("token-{}-{backend}-cancel", std::process::id());
        let command = scratch.command(&["./src/daemon", "stay", &token]);
        let cancel = Cancel::new().unwrap();
        let confinement = Confinement {
            backend,
            access: scratch.access(),
        };
        let output = run(&command, &confinement, &cancel, &mut |_, _| cancel.set()).unwrap();
        assert_eq!(output.ended, Ended::Interrupted, "{backend}");
        assert_eq!(processes_with(&token), Vec::<String>::new(), "{backend}");
    }
}

#[test]
fn a_flag_that_is_set_already_stops_the_command_at_once() {
    let _turn = turn();
    let scratch = Scratch::new();
    let cancel = Cancel::new().unwrap();
    cancel.set();
    let command = scratch.command(&["sleep", "600"]);
    let output = run(&command, &Confinement::off(), &cancel, &mut |_, _| {}).unwrap();
    assert_eq!(output.ended, Ended::Interrupted);
}

#[test]
fn a_flag_that_is_set_before_a_commands_turn_comes_keeps_it_from_being_started() {
    let _turn = turn();
    let scratch = Scratch::new();
    let cancel = Cancel::new().unwrap();
    cancel.set();
    // Starting it would fail because it does not exist.
    let command = scratch.command(&["./no-such-program"]);
    let output = run(&command, &Confinement::off(), &cancel, &mut |_, _| {}).unwrap();
    assert_eq!(output.ended, Ended::Interrupted);
}

#[test]
fn a_command_that_ends_leaves_alone_what_runs_at_the_same_time() {
    let _turn = turn();
    let scratch = Scratch::new();
    for backend in backends() {
        let confinement = Confinement {
            backend,
            access: scratch.access(),
        };
        let long = scratch.command(&[
            "sh",
            "-c",
            "echo begun; (sleep 0.5; echo orphan) & sleep 1; echo done",
        ]);
        let short = scratch.command(&["sh", "-c", "sleep 600 &"]);
        let cancel = Cancel::new().unwrap();
        let (tell, told) = std::sync::mpsc::channel();
        let output = std::thread::scope(|scope| {
            let running = scope.spawn(|| {
                run(&long, &confinement, &cancel, &mut |_, _| {
                    let _ = tell.send(());
                })
            });
            told.recv().unwrap();
            let output = run(&short, &Confinement::off(), &cancel, &mut |_, _| {}).unwrap();
            assert_eq!(
                (output.ended, output.survivors_killed),
                (Ended::Exited(0), 1),
                "{backend}"
            );
            running.join().unwrap().unwrap()
        });
        assert_eq!(
            (output.ended, &*output.text()),
            (Ended::Exited(0), "begun\norphan\ndone\n"),
            "{backend}"
        );
    }
}

#[test]
fn a_sweep_from_another_thread_ends_what_runs() {
    let _turn = turn();
    let scratch = Scratch::new();
    scratch.compile("daemon");
    for backend in backends() {
        let token = format!("token-{}-{backend}-sweep", std::process::id());
        let command = scratch.command(&["./src/daemon", "stay", &token]);
        let confinement = Confinement {
            backend,
            access: scratch.access(),
        };
        let output = run(
            &command,
            &confinement,
            &Cancel::new().unwrap(),
            &mut |_, _| {
                std::thread::spawn(sweep).join().unwrap();
            },
        );
        assert!(
            matches!(output.unwrap().ended, Ended::Signaled(_) | Ended::Exited(_)),
            "{backend}"
        );
        assert_eq!(processes_with(&token), Vec::<String>::new(), "{backend}");
    }
}

#[test]
fn what_may_be_kept_lives_until_the_sweep() {
    let _turn = turn();
    let scratch = Scratch::new();
    scratch.compile("daemon");
    let token = format!("token-{}-keep", std::process::id());
    let mut command = scratch.command(&["./src/daemon", "exit", &token]);
    command.leftovers = Leftovers::Keep;
    let output = scratch.run(Backend::Off, &command);
    assert_eq!(output.ended, Ended::Exited(0));
    assert_eq!(processes_with(&token).len(), 1);
    assert_eq!(sweep().killed, 1);
    assert_eq!(processes_with(&token), Vec::<String>::new());
}

#[test]
fn what_is_kept_may_print_after_its_command_is_gone() {
    let _turn = turn();
    let scratch = Scratch::new();
    let fifos = "mkfifo go code || exit 9; ";
    let server = "(sh -c 'read line < go; echo late; echo later >&2'; echo $? > code) & echo up";
    let mut command = scratch.command(&["sh", "-c", &[fifos, server].concat()]);
    command.leftovers = Leftovers::Keep;
    let cwd = command.cwd.clone();
    let output = scratch.run(Backend::Off, &command);
    assert_eq!(
        (output.ended, output.text().as_str()),
        (Ended::Exited(0), "up\n")
    );
    std::fs::write(cwd.join("go"), "go\n").unwrap();
    assert_eq!(
        std::fs::read_to_string(cwd.join("code")).unwrap(),
        "0\n",
        "141 is SIGPIPE"
    );
    sweep();
}
