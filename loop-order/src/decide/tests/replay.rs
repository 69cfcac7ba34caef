//! A journal leads a loop to the end that it came to.

use serde_json::json;

use super::world::{World, inputs, text};
use super::*;

/// The facts of a run that fails once and then passes, as a journal would hold them.
fn journal() -> Vec<OrderFact> {
    let mut decide = OrderLoop::new(inputs(&json!({})));
    let mut facts = Vec::new();
    let mut worlds = [World::failing(&["accept two"]), World::failing(&[])].into_iter();
    let mut world = worlds.next().unwrap();
    loop {
        match decide.next() {
            Next::Do(step) => {
                if let OrderStep::Ask { attempt, prompt } = &step {
                    facts.push(OrderFact::Call(CallFact::Asked { round: *attempt, prompt: text(prompt) }));
                }
                let fact = world.answer(&step);
                if matches!(fact, OrderFact::RolledBack { .. }) {
                    world = worlds.next().unwrap();
                }
                decide.learn(&fact);
                facts.push(fact);
            }
            Next::Stop(outcome) => {
                facts.push(OrderFact::Ended { outcome });
                return facts;
            }
        }
    }
}

/// Replays the journal; the outcome, or what differs.
fn replay(facts: Vec<OrderFact>) -> String {
    let replayed = perform::replay_order(&mut OrderLoop::new(inputs(&json!({}))), facts);
    replayed.map_or_else(|fault| fault.to_string(), |outcome| format!("{outcome:?}"))
}

#[test]
fn a_journal_is_replayed_to_its_end() {
    assert_eq!(replay(journal()), "Done { rounds: 2 }");
}

#[test]
fn a_journal_that_another_program_wrote_differs_where_it_differs() {
    let with = |change: &dyn Fn(&mut OrderFact)| {
        let mut facts = journal();
        facts.iter_mut().for_each(change);
        replay(facts)
    };
    insta::assert_snapshot!(
        [
            with(&|fact| if let OrderFact::Call(CallFact::Asked { prompt, .. }) = fact { *prompt = text("other") }),
            with(&|fact| if let OrderFact::Ran { argv, .. } = fact { argv.push("more".to_owned()) }),
            with(&|fact| if let OrderFact::Kept { stored } = fact { stored.sha256 = "0".repeat(8) }),
            with(&|fact| if let OrderFact::Ended { outcome } = fact { *outcome = Outcome::AttemptsUsedUp { rounds: 2 } }),
            replay(journal().into_iter().take(5).collect()),
            replay(vec![OrderFact::RolledBack { warnings: vec![] }]),
        ]
        .join("\n"),
        @r#"
    the prompt of round 1 differs: recorded `other`, now `You are the software engineer of a work order. You propose complete new contents of files; a harness checks your proposal, writes it,`
    the command of round 1 differs: recorded `attempt_1/verify_1: ["bash", "scripts/verify.sh", "more"]`, now `attempt_1/verify_1: ["bash", "scripts/verify.sh"]`
    an artifact of round 1 differs: recorded `attempt_1/proposed_writes.json 00000000`, now `attempt_1/proposed_writes.json 09d796b0f2478fb6d3ee20a95763f5422c63d6674d2bb15194f6313da7ae57c9`
    the end of round 2 differs: recorded `Ended { outcome: AttemptsUsedUp { rounds: 2 } }`, now `Ended { outcome: Done { rounds: 2 } }`
    the record ends before round 1 does
    the next step of round 0 differs: recorded `RolledBack { warnings: [] }`, now `Stamp`
    "#
    );
}
