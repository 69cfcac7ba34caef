//! What `--json` prints and what the journals of phases hold, against `docs/schemas/agents.schema.json`.

use serde_json::Value;

use crate::scenes::json_schema::Published;
use crate::scenes::phase::Scene;

/// A builder that uses tools, and a verifier that finds something, and is content.
const TURNS: [(&str, &str); 3] = [
    (
        "builder-1",
        r#"echo '{"type":"tool_use","tool_name":"write_file","tool_id":"t1","parameters":{"file_path":"app"}}'
echo '{"type":"tool_result","tool_id":"t1","status":"error","output":"no","error":{"type":"x","message":"no"}}'
echo 'no event at all'
echo one > app"#,
    ),
    ("verifier-1", "fails 404"),
    ("builder-2", "echo two > app"),
];

fn faults(schema: &Published, definition: &str, lines: &str) -> Vec<String> {
    lines
        .lines()
        .flat_map(|line| schema.faults_of(definition, &serde_json::from_str(line).unwrap()))
        .collect()
}

/// The values of a key in all lines, each once.
fn distinct(lines: &str, pointer: &str) -> String {
    let value = |line: &str| {
        serde_json::from_str::<Value>(line)
            .unwrap()
            .pointer(pointer)?
            .as_str()
            .map(str::to_owned)
    };
    let mut words: Vec<String> = lines.lines().filter_map(value).collect();
    words.sort();
    words.dedup();
    words.join(" ")
}

fn journals(scene: &Scene) -> String {
    let files = scene.files(".abl/logs");
    files
        .into_iter()
        .filter(|(path, _)| path.ends_with("events.jsonl"))
        .map(|(_, text)| text)
        .collect()
}

#[test]
fn every_line_that_a_phase_prints_and_records_fits_the_schema() {
    let (scene, schema) = (Scene::new(&TURNS), Published::read("agents.schema.json"));
    let ran = scene.run(&["run", "--json"]).exits(0);
    assert_eq!(
        faults(&schema, "phase-line", &ran.out),
        Vec::<String>::new()
    );
    insta::assert_snapshot!(distinct(&ran.out, "/event"), @"agent fact summary");
    insta::assert_snapshot!(distinct(&ran.out, "/what/event"), @"note system text tool-call tool-result");
    let journals = journals(&scene);
    assert_eq!(faults(&schema, "entry", &journals), Vec::<String>::new());
    insta::assert_snapshot!(distinct(&journals, "/fact/what"), @"committed ended identified listed turn-begins turned was-read wrote");
}

#[test]
fn init_and_a_check_that_finds_nothing_say_so_in_one_object() {
    let (scene, schema) = (Scene::new(&[]), Published::read("agents.schema.json"));
    let json = |action| scene.run_with(&[action, "--json"], &[]).out;
    std::fs::remove_file(scene.project("prompts/builder.md")).unwrap();
    std::fs::remove_file(scene.project(".gitignore")).unwrap();
    let (made, nothing, checked) = (json("init"), json("init"), json("check"));
    assert_eq!(
        made,
        "{\"event\":\"init\",\"made\":[\"prompts/builder.md\",\".gitignore: /.env\"]}\n"
    );
    assert_eq!(nothing, "{\"event\":\"init\",\"made\":[]}\n");
    assert_eq!(
        checked,
        "{\"event\":\"checked\",\"findings\":0,\"specs\":1}\n"
    );
    assert_eq!(
        faults(&schema, "phase-line", &[made, nothing, checked].concat()),
        Vec::<String>::new()
    );
}
