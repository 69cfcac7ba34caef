use super::*;

fn ask(argv: &[&str]) -> (u8, String) {
    answer(
        &[
            ("plain", "printf '%s|'"),
            ("placed", "printf '<%s>' \"$@\"; exit 3"),
            ("slow", "sleep 60"),
        ],
        argv,
    )
}

fn answer(commands: &[(&str, &str)], argv: &[&str]) -> (u8, String) {
    let argv: Vec<String> = argv.iter().map(|word| (*word).to_owned()).collect();
    let commands = configured(commands);
    let run = |argv| {
        let command = Command {
            deadline: Some(commands.timeout),
            ..Command::new(argv, &commands.cwd, commands.env.clone())
        };
        inside::run_command(command, &Cancel::new().unwrap())
    };
    let Answer { code, output } = commands.answer(&argv, run);
    (code, output)
}

fn configured(commands: &[(&str, &str)]) -> Commands {
    let entry = |command: &str| Entry {
        command: command.to_owned(),
        description: "does it".to_owned(),
    };
    let mut env = Env::default();
    env.set("PATH", "/usr/bin:/bin");
    Commands {
        entries: commands
            .iter()
            .map(|(name, line)| ((*name).to_owned(), entry(line)))
            .collect(),
        specs: [(1, "# Phase 1: A\n".to_owned())].into(),
        cwd: "/tmp".into(),
        env,
        timeout: Duration::from_secs(1),
        confinement: Confinement::off(),
    }
}

/// A server without commands, with this patience.
fn server(patience: Duration) -> (tempfile::TempDir, PathBuf, Turn) {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let served = Served {
        commands: Arc::new(configured(&[])),
        listener: UnixListener::bind(&socket).unwrap(),
        inside: PathBuf::new(),
        ports: None,
        cancel: Cancel::new().unwrap(),
        patience,
    };
    let turn = Turn {
        served: Arc::new(served),
        sandbox: None,
        connection: None,
        layers: None,
    };
    turn.serve().unwrap();
    (folder, socket, turn)
}

#[test]
fn a_caller_that_says_nothing_is_sent_away() {
    let (_folder, socket, _turn) = server(Duration::from_millis(50));
    let caller = UnixStream::connect(socket).unwrap();
    let Answer { code, output } = receive(&caller).unwrap();
    assert_eq!((code, &*output), (125, "abl-cmd: invalid request\n"));
}

#[test]
fn a_caller_too_many_waits_until_another_has_gone() {
    let (_folder, socket, _turn) = server(PATIENCE);
    let mut silent: Vec<_> = (0..CALLERS)
        .map(|_| UnixStream::connect(&socket).unwrap())
        .collect();
    let last = UnixStream::connect(&socket).unwrap();
    send(&last, &["get-spec", "1"]).unwrap();
    last.shutdown(Shutdown::Write).unwrap();
    last.set_nonblocking(true).unwrap();
    let early = (&last).read(&mut [0]).map_err(|error| error.kind());
    assert_eq!(early, Err(io::ErrorKind::WouldBlock));
    last.set_nonblocking(false).unwrap();
    silent.pop();
    let Answer { code, output } = receive(&last).unwrap();
    assert_eq!((code, &*output), (0, "# Phase 1: A\n"));
}

#[test]
fn no_thread_waits_for_callers_when_the_turn_is_over() {
    let (_folder, socket, turn) = server(PATIENCE);
    let served = Arc::downgrade(&turn.served);
    drop(turn);
    while served.strong_count() > 0 {
        thread::yield_now();
    }
    UnixStream::connect(socket).unwrap_err();
}

#[test]
fn arguments_are_never_a_part_of_the_shell_line() {
    assert_eq!(
        ask(&["plain", "a b", "$(id)", ";exit 9"]),
        (0, "a b|$(id)|;exit 9|".to_owned())
    );
    assert_eq!(ask(&["placed", "'\"", "x"]), (3, "<'\"><x>".to_owned()));
}

#[test]
fn a_line_that_uses_its_arguments_in_any_spelling_gets_them_once() {
    for uses in [
        r#"printf '%s|' "$1""#,
        r#"printf '%s|' "${1}""#,
        r#"printf '%s|' "${1:-x}""#,
        r#"printf '%s|' "${1-x}""#,
        r#"printf '%s|' "${1%z}""#,
        r#"printf '%s|' "${@}""#,
        r#"printf '%s|' "${@:-x}""#,
        r"printf '%s|' $*",
        r"printf '%s|' ${*}",
        r#"for one in "$@"; do printf '%s|' "$one"; done"#,
        r#"one=$1; printf '%s|' "$one""#,
        r#"printf '%s|' "$(printf %s "$1")""#,
        r#"printf '%s|' "${none:-$1}""#,
        r#"printf '%s|' "${none:-"${1}"}""#,
        r#"shift 0; printf '%s|' "`printf %s "$1"`""#,
        "cat <<END\n$1|\nEND\nprintf ''",
        r#"printf '%s|' "$1" # don't"#,
        "true # don't\nprintf '%s|' \"$1\"",
        r#"printf '%s|' "it's ${1}" | sed "s/it's //""#,
        r"test $((${1} + 0)) = 0 && printf 'a|'",
        r#"while test $# -gt 0; do printf '%s|' "$1"; shift; done"#,
    ] {
        let (code, output) = answer(&[("uses", uses)], &["uses", "a"]);
        assert_eq!((code, output.trim_end_matches('\n')), (0, "a|"), "{uses}");
    }
}

#[test]
fn a_line_that_only_mentions_arguments_gets_them_at_its_end() {
    for mentions in [
        r"printf '%s|'",
        r#"printf '%s|' "\$1""#,
        r"printf '%s|' \$1",
        r"printf '%s|' $0 $$ $? $one1 $#",
    ] {
        let (code, output) = answer(&[("mentions", mentions)], &["mentions", "last"]);
        assert!(
            code == 0 && output.ends_with("last|") && output.matches("last").count() == 1,
            "{mentions}: {output}"
        );
    }
}

#[test]
fn only_names_of_the_configuration_run() {
    assert_eq!(ask(&["sh", "-c", "id"]).0, 127);
    assert_eq!(ask(&["printf '%s|'"]).0, 127);
    let (code, list) = ask(&[]);
    assert_eq!(code, 0);
    assert!(
        list.contains("plain\tdoes it") && !list.contains("printf"),
        "{list}"
    );
}

#[test]
fn a_spec_is_printed_by_its_number_alone() {
    assert_eq!(ask(&["get-spec", "1"]), (0, "# Phase 1: A\n".to_owned()));
    for bad in [
        &["get-spec"][..],
        &["get-spec", "2"],
        &["get-spec", "../../.env"],
        &["get-spec", "1", "2"],
    ] {
        assert_eq!(ask(bad).0, 1, "{bad:?}");
    }
}

#[test]
fn a_command_that_takes_too_long_is_ended_and_says_so() {
    let (code, output) = ask(&["slow"]);
    assert_eq!(code, 124);
    assert!(output.contains("ran out of time"), "{output}");
}
