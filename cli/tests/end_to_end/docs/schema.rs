//! What `--json` prints and what a journal holds, against `docs/schemas/events.schema.json`.

use serde_json::Value;

use crate::docs::world::World;
use crate::scenes::json_schema::Published;

fn schema() -> Published {
    Published::read("events.schema.json")
}

/// A project whose scripted model does all that a model can do: it cannot be reached, is refused, says nothing is to be done, fails, is right.
fn world() -> World {
    let world = World::new().with_project("greeting");
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(world.run("cd greeting && code-commit init && echo 'Greet the world.' > agent-config/query.txt && code-commit rollup").code, 0);
    world.save(
        "agent-config/gemini-system-prompt.txt",
        &lines("Answer in fences."),
    );
    world.save(
        "agent-config/all.json",
        &lines(concat!(
            r#"{"replies": [{"error":"rate-limited","retry_after_s":0.01,"message":"slower"},"#,
            r#"{"text":"^^^.git/config\n^^^end\n","usage":{"input_tokens":5,"output_tokens":2}},"#,
            r#"{"text":"$$$start\nfine\n$$$end\n"},"#,
            r#"{"text":"half","finish":"truncated"},"#,
            r#"{"text":"&&&start\nhello\n&&&end\n^^^gone.sh\n^^^delete\n^^^greet.sh\n# rest of the code unchanged\n^^^end\n"}]}"#,
        )),
    );
    world.save(
        "agent-config/right.json",
        &lines(r#"{"replies": [{"text":"^^^greet.sh\ngreet() { echo 'Hello, world!'; }\n^^^end\n","served_model":"m"}]}"#),
    );
    world
}

#[test]
fn every_line_that_runs_print_and_record_fits_the_schema() {
    let (world, schema) = (world(), schema());
    let commands = [
        "code-commit --model scripted/agent-config/all.json",
        "code-commit --model scripted/agent-config/all.json --on-failure restore --rounds 3",
        "code-commit --model scripted/agent-config/all.json --max-calls 1",
        "code-commit --model scripted/agent-config/right.json --commit",
        "code-commit implement --model scripted/agent-config/right.json",
        "printf '#!/bin/sh\\necho >> build.sh\\n' > build.sh; code-commit --model scripted/agent-config/right.json --rounds 1",
    ];
    let mut seen = Vec::new();
    for command in commands {
        let printed = world
            .run(&format!("{command} --sandbox off --json 2>/dev/null"))
            .printed;
        assert!(
            printed
                .lines()
                .last()
                .is_some_and(|line| line.contains("\"event\":\"summary\"")),
            "{printed}"
        );
        for line in printed.lines() {
            let object: Value = serde_json::from_str(line).unwrap();
            let found = schema.faults(&object);
            assert!(found.is_empty(), "{found:?}");
            seen.extend(
                [&object["event"], &object["fact"]["what"]]
                    .into_iter()
                    .filter_map(Value::as_str)
                    .map(str::to_owned),
            );
        }
    }
    let broken = world
        .run("cat agent-config/logs/*/events.jsonl | grep -c seal_broken")
        .printed;
    assert_eq!(
        broken.trim(),
        "1",
        "a build that breaks the seal is recorded as such"
    );
    for entry in world
        .run("cat agent-config/logs/*/events.jsonl logs/*/events.jsonl")
        .printed
        .lines()
    {
        let object: Value = serde_json::from_str(entry).unwrap();
        let found = schema.faults_of("entry", &object);
        assert!(found.is_empty(), "{found:?}");
    }
    seen.sort();
    seen.dedup();
    insta::assert_snapshot!(
        seen.join(" "),
        @"answered applied ask-begins asked attempted build-begins build-prints built committed ended fact rejected restored said summary unanswered waiting warned warning"
    );
}

#[test]
fn every_kind_of_line_that_the_schemas_know_is_on_the_page_of_events() {
    let page = crate::docs::page::text(std::path::Path::new("docs/reference/events.md"));
    for name in [
        "event.schema.json",
        "events.schema.json",
        "agents.schema.json",
    ] {
        let text = crate::docs::page::text(&std::path::Path::new("docs/schemas").join(name));
        let mut kinds = Vec::new();
        kinds_in(&serde_json::from_str(&text).unwrap(), &mut kinds);
        assert!(kinds.len() > 10, "{name} has kinds");
        let missing: Vec<&String> = kinds
            .iter()
            .filter(|kind| !page.contains(&format!("`{kind}`")))
            .collect();
        assert!(missing.is_empty(), "the page lacks {missing:?} of {name}");
    }
}

/// What the keys `event` and `what` can be, anywhere in a schema.
fn kinds_in(schema: &Value, kinds: &mut Vec<String>) {
    for key in ["event", "what"] {
        let rule = &schema["properties"][key];
        let words = rule["enum"]
            .as_array()
            .into_iter()
            .flatten()
            .chain([&rule["const"]]);
        kinds.extend(words.filter_map(Value::as_str).map(str::to_owned));
    }
    let below = schema
        .as_object()
        .into_iter()
        .flat_map(|object| object.values());
    below
        .chain(schema.as_array().into_iter().flatten())
        .for_each(|part| kinds_in(part, kinds));
}
