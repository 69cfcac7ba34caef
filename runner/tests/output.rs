//! Commands' output, of any size and content, and how they ended.
//!
//! `CODE_COMMIT_TEST_FLOOD_MB` sets the megabytes of the flood (default 200).

#![expect(
    clippy::disallowed_methods,
    reason = "the tests set up files and read their own size"
)]
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

mod support;

use std::fs;
use std::time::Duration;

use code_commit_runner::{
    Backend, Cancel, Command, Confinement, Ended, Limits, Output, Stream, Streams, run,
};
use support::Scratch;

/// Runs a command without a sandbox and passes its output to `live`.
fn heard(command: &Command, live: &mut dyn FnMut(Stream, &[u8])) -> Output {
    run(command, &Confinement::off(), &Cancel::new().unwrap(), live).unwrap()
}

#[test]
fn both_streams_come_in_order_and_the_caller_hears_the_same_bytes() {
    let scratch = Scratch::new();
    let command = scratch.command(&["sh", "-c", "echo one; echo two >&2; echo three"]);
    let mut all = Vec::new();
    let output = heard(&command, &mut |stream, bytes| {
        assert_eq!(stream, Stream::Out);
        all.extend_from_slice(bytes);
    });
    assert_eq!(
        (output.ended, output.text().as_str()),
        (Ended::Exited(0), "one\ntwo\nthree\n")
    );
    assert_eq!(all, b"one\ntwo\nthree\n");
    assert!(output.apart.is_none());
}

#[test]
fn streams_apart_are_heard_apart_and_have_a_text_each() {
    let scratch = Scratch::new();
    let mut command = scratch.command(&["sh", "-c", "echo one; echo two >&2; exit 4"]);
    command.streams = Streams::Apart;
    let mut pieces = Vec::new();
    let output = heard(&command, &mut |stream, bytes| {
        pieces.push((stream, bytes.to_vec()));
    });
    let apart = output.apart.clone().unwrap();
    assert_eq!(
        (apart.out.text().as_str(), apart.err.text().as_str()),
        ("one\n", "two\n")
    );
    assert_eq!(
        (output.ended, output.captured.total_bytes),
        (Ended::Exited(4), 8)
    );
    pieces.sort_by_key(|(stream, _)| *stream == Stream::Err);
    assert_eq!(
        pieces,
        [
            (Stream::Out, b"one\n".to_vec()),
            (Stream::Err, b"two\n".to_vec())
        ]
    );
}

#[test]
fn bytes_that_are_not_utf_8_reach_the_caller_as_they_are() {
    let scratch = Scratch::new();
    let mut all = Vec::new();
    let command = scratch.command(&["sh", "-c", r"printf 'a\377\000b\303'"]);
    let output = heard(&command, &mut |_, bytes| all.extend_from_slice(bytes));
    assert_eq!(all, b"a\xff\x00b\xc3");
    assert_eq!(output.text(), "a\u{fffd}\0b\u{fffd}");
}

#[test]
fn a_flood_goes_to_the_caller_whole_and_memory_keeps_its_ends() {
    let megabytes: u64 = std::env::var("CODE_COMMIT_TEST_FLOOD_MB")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(200);
    let bytes = megabytes * 1_000_000;
    let scratch = Scratch::new();
    // No newline anywhere, and not UTF-8.
    let line = format!("printf start; head -c {bytes} /dev/zero | tr '\\0' '\\377'; printf end");
    let mut command = scratch.command(&["sh", "-c", &line]);
    command.limits = Limits {
        output_bytes: u64::MAX,
        head_bytes: 5,
        tail_bytes: 3,
        ..Limits::default()
    };
    let mut count = 0;
    let output = heard(&command, &mut |_, bytes| count += bytes.len() as u64);
    assert_eq!(
        (output.ended, output.captured.total_bytes, count),
        (Ended::Exited(0), bytes + 8, bytes + 8)
    );
    assert_eq!(
        (
            output.captured.head.as_slice(),
            output.captured.tail.as_slice()
        ),
        (&b"start"[..], &b"end"[..])
    );
    assert_eq!(
        output.text(),
        format!("start\n[… {bytes} bytes left out …]\nend")
    );
}

#[test]
fn a_command_that_never_stops_writing_is_stopped_at_the_limit() {
    let scratch = Scratch::new();
    let mut command = scratch.command(&["yes"]);
    command.limits.output_bytes = 10_000_001;
    let mut count = 0;
    let output = heard(&command, &mut |_, bytes| count += bytes.len());
    assert_eq!(
        (output.ended, output.captured.total_bytes),
        (Ended::TooMuchOutput, 10_000_001)
    );
    assert_eq!(count, 10_000_001);
}

#[test]
fn the_limit_holds_for_what_is_written_just_before_the_exit() {
    let scratch = Scratch::new();
    let mut command = scratch.command(&["sh", "-c", "printf 1234567"]);
    for (limit, ended) in [(6, Ended::TooMuchOutput), (7, Ended::Exited(0))] {
        command.limits.output_bytes = limit;
        let output = scratch.run(Backend::Off, &command);
        assert_eq!((output.ended, output.captured.total_bytes), (ended, limit));
    }
}

#[test]
fn a_deadline_ends_a_silent_command_and_keeps_what_it_had_said() {
    let scratch = Scratch::new();
    let mut command = scratch.command(&["sh", "-c", "echo before; sleep 600"]);
    command.deadline = Some(Duration::from_millis(300));
    let output = scratch.run(Backend::Off, &command);
    assert_eq!(
        (output.ended, output.text().as_str()),
        (Ended::TimedOut, "before\n")
    );
    assert!(
        output.elapsed < Duration::from_millis(1300),
        "{:?}",
        output.elapsed
    );
}

/// How a command ended that exceeded its output limit while the listener was busy; the listener may stop it
/// with `stop`.
fn ended_while_nobody_read(deadline: Option<Duration>, stop: impl Fn(&Cancel)) -> Ended {
    let scratch = Scratch::new();
    let more = "mkfifo go gone; printf a; read line < go; printf 12345678; sleep 1; echo gone > gone; sleep 600";
    let mut command = scratch.command(&["sh", "-c", more]);
    command.limits.output_bytes = 4;
    command.deadline = deadline;
    let cancel = Cancel::new().unwrap();
    let mut is_first = true;
    let output = run(&command, &Confinement::off(), &cancel, &mut |_, _| {
        if std::mem::take(&mut is_first) {
            scratch.write("tree/go", "go\n");
            assert_eq!(fs::read(scratch.at("tree/gone")).unwrap(), b"gone\n");
            stop(&cancel);
        }
    });
    output.unwrap().ended
}

#[test]
fn too_much_output_is_not_what_ended_a_command_that_was_stopped_before() {
    assert_eq!(
        ended_while_nobody_read(None, Cancel::set),
        Ended::Interrupted
    );
    assert_eq!(
        ended_while_nobody_read(Some(Duration::from_millis(500)), |_| {}),
        Ended::TimedOut
    );
    assert_eq!(ended_while_nobody_read(None, |_| {}), Ended::TooMuchOutput);
}

#[test]
fn standard_input_is_empty_unless_a_file_is_named() {
    let scratch = Scratch::new();
    let mut command = scratch.command(&["cat"]);
    assert_eq!(scratch.run(Backend::Off, &command).text(), "");
    command.input = Some(scratch.at("tree/build.sh"));
    for backend in support::backends() {
        assert_eq!(
            scratch.run(backend, &command).text(),
            "secret\n",
            "{backend}"
        );
    }
}

#[test]
fn a_command_sees_the_variables_that_it_was_given_and_a_marker() {
    let scratch = Scratch::new();
    let mut command = scratch.command(&["env"]);
    command.env = code_commit_runner::Env::default();
    command.env.set("GIVEN", "yes");
    let text = scratch.run(Backend::Off, &command).text();
    let names: Vec<_> = text
        .lines()
        .filter_map(|line| line.split('=').next())
        .collect();
    assert_eq!(names, ["CODE_COMMIT_RUN", "GIVEN"]);
}

#[test]
fn what_a_variable_holds_reaches_the_command_in_every_sandbox_and_nobodys_command_line() {
    let scratch = Scratch::new();
    let secret = format!("s3cret-{}", std::process::id());
    let mut command = scratch.command(&["env", "-0"]);
    let values = [
        &secret,
        " a # $HOME \\n ",
        "",
        "'quoted'",
        "two\nlines",
        "\u{e4}",
    ];
    for (number, value) in values.iter().enumerate() {
        command.env.set(format!("GIVEN_{number}"), value);
    }
    for backend in support::backends() {
        let confinement = Confinement {
            backend,
            access: scratch.access(),
        };
        let mut seen = Vec::new();
        let mut look = |_, _: &[u8]| seen.extend(support::processes_whose_arguments_hold(&secret));
        let output = run(&command, &confinement, &Cancel::new().unwrap(), &mut look).unwrap();
        let text = output.text();
        let found = text
            .split('\0')
            .filter_map(|line| line.strip_prefix("GIVEN_")?.split_once('='));
        let mut found: Vec<_> = found.collect();
        found.sort_unstable();
        let found: Vec<_> = found.into_iter().map(|(_, value)| value).collect();
        assert_eq!(found, values, "{backend}: {}", output.ended);
        assert_eq!(seen, Vec::<String>::new(), "{backend}");
    }
}

#[test]
fn how_a_command_ended_is_told_apart() {
    let scratch = Scratch::new();
    scratch.write("tree/src/text", "echo a script without a first line");
    let ended = |argv: &[&str]| scratch.run(Backend::Off, &scratch.command(argv)).ended;
    assert_eq!(ended(&["sh", "-c", "exit 200"]), Ended::Exited(200));
    assert_eq!(ended(&["sh", "-c", "kill -9 $$"]), Ended::Signaled(9));
    assert_eq!(ended(&["no-such-program"]), Ended::NotFound);
    assert_eq!(ended(&["src/text"]), Ended::NotExecutable);
    assert_eq!(ended(&["src"]), Ended::NotFound);
    assert_eq!(ended(&["./src"]), Ended::NotExecutable);
    assert_eq!(ended(&[]), Ended::NotFound);
}

#[test]
fn our_own_faults_are_errors_that_name_the_path() {
    let scratch = Scratch::new();
    let fault = |change: &dyn Fn(&mut Command)| {
        let mut command = scratch.command(&["true"]);
        change(&mut command);
        let error = run(
            &command,
            &Confinement::off(),
            &Cancel::new().unwrap(),
            &mut |_, _| {},
        )
        .unwrap_err();
        error
            .to_string()
            .replace(scratch.at("").to_str().unwrap(), "SCRATCH/")
    };
    let lost = scratch.at("no/such/file");
    let table = [
        fault(&|command| command.input = Some(lost.clone())),
        fault(&|command| command.cwd = lost.clone()),
        fault(&|command| command.argv.push("x".repeat(3_000_000).into())),
    ];
    insta::assert_snapshot!(table.join("\n"), @r"
    cannot read the input file SCRATCH/no/such/file
    cannot work in SCRATCH/no/such/file
    cannot start /usr/bin/true
    ");
}

#[test]
fn a_panic_of_the_listener_leaves_nothing_running() {
    let scratch = Scratch::new();
    let token = format!("{}", 600_000_u32.wrapping_add(std::process::id()));
    let command = scratch.command(&["sh", "-c", &format!("echo ready; sleep {token}")]);
    let panics = std::panic::catch_unwind(|| {
        run(
            &command,
            &Confinement::off(),
            &Cancel::new().unwrap(),
            &mut |_, _| panic!("a listener's bug"),
        )
    });
    assert!(panics.is_err());
    assert_eq!(support::processes_with(&token), Vec::<String>::new());
}

#[test]
fn a_session_with_a_person_has_our_streams_and_hands_its_code_through() {
    let scratch = Scratch::new();
    let mut command = scratch.command(&["sh", "-c", "exit 3"]);
    command.streams = Streams::Inherited;
    for backend in support::backends() {
        let output = scratch.run(backend, &command);
        assert_eq!(
            (output.ended, output.captured.total_bytes),
            (Ended::Exited(3), 0),
            "{backend}"
        );
    }
}
