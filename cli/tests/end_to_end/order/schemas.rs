//! Every artifact of S2 §7 that a run of these tests leaves, and every line that it prints for programs, fits its published schema: the harness
//! looks at the folder after each run.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::scenes::files;
use crate::scenes::json_schema::Published;

/// The schema of one kind of artifact.
fn published(artifact: &str) -> Published {
    Published::read(&format!("order/{artifact}.schema.json"))
}

/// What is wrong with a value by the schema of an artifact.
pub fn faults(artifact: &str, value: &Value) -> Vec<String> {
    published(artifact).faults(value)
}

/// Every JSON artifact of a run folder, each by the schema of its name. What the service answered is the service's; what
/// a run is resumed from is the harness's own.
#[track_caller]
pub fn check_folder(run: &Path) {
    for entry in fs::read_dir(run).unwrap() {
        let path = entry.unwrap().path();
        let name = files::name(&path);
        if path.is_dir() && (name.starts_with("attempt_") || name == "preflight") {
            check_folder(&path);
        } else if name == "events.jsonl" {
            check_journal(&path);
        } else if let Some(artifact) = name
            .strip_suffix(".json")
            .filter(|name| !["response", "run", "inputs"].contains(name))
        {
            let value: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
            assert_eq!(faults(artifact, &value), [""; 0], "{}", path.display());
        }
    }
}

fn check_journal(path: &Path) {
    let schema = published("events");
    for line in fs::read_to_string(path).unwrap().lines() {
        let entry: Value = serde_json::from_str(line).unwrap();
        assert_eq!(
            schema.faults_of("entry", &entry),
            [""; 0],
            "{}",
            path.display()
        );
    }
}

/// What `--json` has printed.
#[track_caller]
pub fn check_printed(out: &str) {
    let schema = published("events");
    for line in out.lines() {
        assert_eq!(
            schema.faults(&serde_json::from_str(line).unwrap()),
            [""; 0],
            "{line}"
        );
    }
}

fn docs(path: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../docs")
        .join(path)
}

#[test]
fn the_reference_names_every_schema_and_every_stage() {
    let page = fs::read_to_string(docs("reference/orders.md")).unwrap();
    for entry in fs::read_dir(docs("schemas/order")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(
            page.contains(&format!("(../schemas/order/{name})")),
            "{name}"
        );
    }
    let brief: Value = serde_json::from_str(
        &fs::read_to_string(docs("schemas/order/failure_brief.schema.json")).unwrap(),
    )
    .unwrap();
    let stages: Vec<&str> = brief["$defs"]["Stage"]["oneOf"]
        .as_array()
        .unwrap()
        .iter()
        .map(|stage| stage["const"].as_str().unwrap())
        .collect();
    let table = page
        .lines()
        .skip_while(|line| *line != "## Stages")
        .take_while(|line| !line.starts_with("## Exit"));
    let listed: Vec<&str> = table
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
        .collect();
    assert_eq!(listed, stages);
}
