//! A run as another program sees it: the seed's event names, one JSON object a line (S4 §Event Category System).

use code_commit_agent::Event;
use code_commit_engine::{CheckpointResult, Line, Marked};
use serde_json::{Value, json};

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "a sign of life, and whatever agents will learn to say"
)]
pub(super) fn agent(role: &str, event: &Event) -> Value {
    match event {
        Event::System { model, session } => {
            json!({ "event": "SystemMessage", "role": role, "model": model, "session": session })
        }
        Event::Text(text) => json!({ "event": "AgentMessage", "role": role, "text": text }),
        Event::ToolCall {
            id, name, argument, ..
        } => {
            json!({ "event": "ToolCall", "role": role, "id": id, "name": name, "argument": argument })
        }
        Event::ToolResult {
            id, ok, message, ..
        } => {
            json!({ "event": "ToolResult", "role": role, "id": id, "ok": ok, "message": message })
        }
        Event::Retry { reason, .. } => {
            json!({ "event": "SystemMessage", "role": role, "message": reason })
        }
        Event::Note(text) => json!({ "event": "SystemMessage", "role": role, "message": text }),
        _ => json!({ "event": "PingEvent", "role": role }),
    }
}

/// A marker: `SPEC_ISSUE` is `SpecIssue`.
pub(super) fn marker(role: &str, marker: &Marked) -> Value {
    json!({ "event": name(&marker.name), "role": role, "content": marker.content })
}

fn name(tag: &str) -> String {
    let word = |word: &str| {
        let mut letters = word.chars();
        let first: String = letters.next().into_iter().collect();
        first + &letters.as_str().to_lowercase()
    };
    tag.split('_').map(word).collect()
}

/// What of a line of the journal the seed has an event for. `output` is what a command printed.
pub(super) fn line(iteration: u32, line: &Line, output: &str) -> Option<Value> {
    if let Line::Announced(announced) = line {
        return Some(announced.event.clone());
    }
    if let Line::ShellRan(ran) = line {
        let is_setup = ran.name == code_commit_loop_spec::SETUP;
        let event = if is_setup {
            "SetupCommandOutput"
        } else {
            "CheckCommandOutput"
        };
        let (code, ended) = (ran.ended.exit_code(), ran.ended.to_string());
        return Some(json!({
            "event": event, "iteration": iteration, "exitCode": code, "ended": ended, "output": output,
        }));
    }
    if let Line::Checkpointed(point) = line {
        return match &point.checkpoint {
            CheckpointResult::Made { commit } => Some(json!({
                "event": "CommitPerformed", "iteration": iteration, "commitHash": commit, "message": point.message,
            })),
            CheckpointResult::Failed { error } => {
                Some(json!({ "event": "CommitFailed", "iteration": iteration, "message": error }))
            }
            CheckpointResult::Nothing => None,
        };
    }
    let Line::Turned(turned) = line else {
        return None;
    };
    let (role, paths) = (&turned.role, &turned.put_back);
    (!paths.is_empty())
        .then(|| json!({ "event": "ChangesPutBack", "iteration": iteration, "role": role, "paths": paths }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_have_the_names_of_the_seed() {
        let tags =
            "NOTE SPEC_ISSUE PLAN_COMPLETE PROGRESS DONE APPROVED REQUEST_CHANGES TO_BE_DISCUSSED";
        let names: Vec<String> = tags.split(' ').map(name).collect();
        assert_eq!(
            names.join(" "),
            "Note SpecIssue PlanComplete Progress Done Approved RequestChanges ToBeDiscussed"
        );
    }

    #[test]
    fn commits_have_events_and_no_commit_has_none() {
        let check = |checkpoint| {
            let (repository, message) = ("project".into(), "m".into());
            let made = Line::Checkpointed(code_commit_engine::Checkpointed {
                repository,
                message,
                checkpoint,
            });
            line(2, &made, "").map(|value| value.to_string())
        };
        insta::assert_snapshot!(check(CheckpointResult::Made { commit: "abc".into() }).unwrap(), @r#"{"commitHash":"abc","event":"CommitPerformed","iteration":2,"message":"m"}"#);
        insta::assert_snapshot!(check(CheckpointResult::Failed { error: "no".into() }).unwrap(), @r#"{"event":"CommitFailed","iteration":2,"message":"no"}"#);
        assert_eq!(check(CheckpointResult::Nothing), None);
    }
}
