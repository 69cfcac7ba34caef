//! The programs take every command line in `tools/packaging/fleet`.

use std::path::Path;
use std::process::Command;

use code_commit_fleet_trial::sibling;

fn packaged(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/packaging/fleet");
    std::fs::read_to_string(folder.join(name)).unwrap()
}

/// Command lines of systemd units.
fn of_unit(text: &str) -> Vec<Vec<String>> {
    let commands = text.lines().filter(|line| line.starts_with("ExecStart"));
    commands
        .map(|line| {
            line.split_once('=')
                .unwrap()
                .1
                .split(' ')
                .map(str::to_owned)
                .collect()
        })
        .collect()
}

/// Command lines of lists in YAML, each on a line of its own; flags alone are a worker's.
fn of_yaml(text: &str) -> Vec<Vec<String>> {
    let lists = text.lines().filter(|line| {
        ["args: [", "command: ["]
            .iter()
            .any(|key| line.trim().starts_with(key))
    });
    let words = |line: &str| -> Vec<String> {
        let list = line.split_once('[').unwrap().1.trim_end_matches(']');
        let mut words: Vec<String> = list
            .split(", ")
            .map(|word| word.trim_matches('"').to_owned())
            .collect();
        if !words[0].starts_with('/') {
            let program = if words[0].starts_with('-') {
                "code-commit-worker"
            } else {
                "code-commit-fleet"
            };
            words.insert(0, program.to_owned());
        }
        words
    };
    lists.map(words).collect()
}

#[test]
fn every_command_of_units_and_manifests_is_one_that_the_programs_take() {
    let units = ["gateway", "land"].map(|name| format!("systemd/code-commit-fleet-{name}.service"));
    let mut commands: Vec<Vec<String>> = units
        .iter()
        .flat_map(|unit| of_unit(&packaged(unit)))
        .collect();
    commands.extend(of_unit(&packaged("systemd/code-commit-worker.service")));
    assert_eq!(commands.len(), 4);
    commands.extend(of_yaml(&packaged("compose.yaml")));
    commands.extend(of_yaml(&packaged("kubernetes/fleet.yaml")));
    assert_eq!(commands.len(), 12);
    for command in commands {
        let program = Path::new(&command[0])
            .file_name()
            .unwrap()
            .to_str()
            .unwrap();
        // A flag that is not known is an error before the help is printed.
        let done = Command::new(sibling(program).unwrap())
            .args(&command[1..])
            .arg("--help")
            .output()
            .unwrap();
        assert!(
            done.status.success(),
            "{command:?}: {}",
            String::from_utf8_lossy(&done.stderr)
        );
    }
}
