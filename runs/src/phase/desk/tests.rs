use settings::phase::Entry;

use super::*;

fn ask(argv: &[&str]) -> (u8, String) {
    let entry = |command: &str| Entry { command: command.to_owned(), description: "does it".to_owned() };
    let desk = Desk {
        commands: [
            ("plain", "printf '%s|'"),
            ("placed", "printf '<%s>' \"$@\"; exit 3"),
            ("slow", "sleep 60"),
        ]
        .map(|(name, line)| (name.to_owned(), entry(line)))
        .into(),
        specs: [(1, "# Phase 1: A\n".to_owned())].into(),
        cwd: "/tmp".into(),
        env: [("PATH".to_owned(), "/usr/bin:/bin".to_owned())].into(),
        timeout_seconds: 1,
        ..Desk::default()
    };
    let argv: Vec<String> = argv.iter().map(|word| (*word).to_owned()).collect();
    let Answer { code, output } = desk.answer(&argv, &Cancel::new().unwrap());
    (code, output)
}

#[test]
fn arguments_are_never_a_part_of_the_shell_line() {
    assert_eq!(ask(&["plain", "a b", "$(id)", ";exit 9"]), (0, "a b|$(id)|;exit 9|".to_owned()));
    assert_eq!(ask(&["placed", "'\"", "x"]), (3, "<'\"><x>".to_owned()));
}

#[test]
fn only_names_of_the_configuration_run() {
    assert_eq!(ask(&["sh", "-c", "id"]).0, 127);
    assert_eq!(ask(&["printf '%s|'"]).0, 127);
    let (code, list) = ask(&[]);
    assert_eq!(code, 0);
    assert!(list.contains("plain\tdoes it") && !list.contains("printf"), "{list}");
}

#[test]
fn a_spec_is_printed_by_its_number_alone() {
    assert_eq!(ask(&["get-spec", "1"]), (0, "# Phase 1: A\n".to_owned()));
    for bad in [&["get-spec"][..], &["get-spec", "2"], &["get-spec", "../../.env"], &["get-spec", "1", "2"]] {
        assert_eq!(ask(bad).0, 1, "{bad:?}");
    }
}

#[test]
fn a_command_that_takes_too_long_is_ended_and_says_so() {
    let (code, output) = ask(&["slow"]);
    assert_eq!(code, 124);
    assert!(output.contains("ran out of time"), "{output}");
}
