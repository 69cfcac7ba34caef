//! A run as another program sees it: the seed's event names, one JSON object a line (S4 §Event Category System).

use agent::Event;
use perform::{AgentFact, Checkpoint, Marked, PutBack};
use serde_json::{Value, json};

/// What an agent does.
#[expect(clippy::wildcard_enum_match_arm, reason = "a sign of life, and whatever agents will learn to say")]
pub fn agent(role: &str, event: &Event) -> Value {
    match event {
        Event::System { model, session } => {
            json!({ "event": "SystemMessage", "role": role, "model": model, "session": session })
        }
        Event::Text(text) => json!({ "event": "AgentMessage", "role": role, "text": text }),
        Event::ToolCall { id, name, argument } => {
            json!({ "event": "ToolCall", "role": role, "id": id, "name": name, "argument": argument })
        }
        Event::ToolResult { id, ok, message } => {
            json!({ "event": "ToolResult", "role": role, "id": id, "ok": ok, "message": message })
        }
        Event::Retry { reason, .. } => json!({ "event": "SystemMessage", "role": role, "message": reason }),
        Event::Note(text) => json!({ "event": "SystemMessage", "role": role, "message": text }),
        _ => json!({ "event": "PingEvent", "role": role }),
    }
}

/// A marker: `SPEC_ISSUE` is `SpecIssue`.
pub fn marker(role: &str, marker: &Marked) -> Value {
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

/// What of a fact the seed has an event for.
pub fn fact(iteration: u32, fact: &AgentFact) -> Option<Value> {
    match fact {
        AgentFact::Announced { event } => Some(event.clone()),
        AgentFact::Ran { name, ended, output, .. } => {
            let event = if name == loop_spec::SETUP { "SetupCommandOutput" } else { "CheckCommandOutput" };
            let (code, ended) = (ended.exit_code(), ended.to_string());
            Some(json!({
                "event": event, "iteration": iteration, "exitCode": code, "ended": ended, "output": output.as_str(),
            }))
        }
        AgentFact::Checkpointed { message, checkpoint, .. } => match checkpoint {
            Checkpoint::Made { commit } => Some(json!({
                "event": "CommitPerformed", "iteration": iteration, "commitHash": commit, "message": message,
            })),
            Checkpoint::Failed { error } => {
                Some(json!({ "event": "CommitFailed", "iteration": iteration, "message": error }))
            }
            Checkpoint::Nothing => None,
        },
        AgentFact::Turned(_) | AgentFact::CutOff { .. } => {
            let PutBack { role, paths, .. } = fact.put_back()?;
            Some(json!({ "event": "ChangesPutBack", "iteration": iteration, "role": role, "paths": paths }))
        }
        AgentFact::Listed { .. }
        | AgentFact::TurnBegins { .. }
        | AgentFact::Committed { .. }
        | AgentFact::Surveyed { .. }
        | AgentFact::Waited { .. }
        | AgentFact::WasRead { .. }
        | AgentFact::Wrote { .. }
        | AgentFact::Resumed
        | AgentFact::Ended { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_have_the_names_of_the_seed() {
        let tags = "NOTE SPEC_ISSUE PLAN_COMPLETE PROGRESS DONE APPROVED REQUEST_CHANGES TO_BE_DISCUSSED";
        let names: Vec<String> = tags.split(' ').map(name).collect();
        assert_eq!(
            names.join(" "),
            "Note SpecIssue PlanComplete Progress Done Approved RequestChanges ToBeDiscussed"
        );
    }

    #[test]
    fn commits_have_events_and_no_commit_has_none() {
        let check = |checkpoint| {
            let made =
                AgentFact::Checkpointed { repository: "project".into(), message: "m".into(), checkpoint };
            fact(2, &made).map(|value| value.to_string())
        };
        insta::assert_snapshot!(check(Checkpoint::Made { commit: "abc".into() }).unwrap(), @r#"{"commitHash":"abc","event":"CommitPerformed","iteration":2,"message":"m"}"#);
        insta::assert_snapshot!(check(Checkpoint::Failed { error: "no".into() }).unwrap(), @r#"{"event":"CommitFailed","iteration":2,"message":"no"}"#);
        assert_eq!(check(Checkpoint::Nothing), None);
    }
}
