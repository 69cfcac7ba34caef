//! How the client handles every answer and every failure of the service.

use std::sync::Arc;
use std::time::Duration;

use code_commit_fixtures::outcomes;
use code_commit_fixtures::server::{Hang, Script, Server, Step};
use code_commit_fixtures::watch::Notes;
use code_commit_llm_gemini::http::{Agent, Limits, Network};
use code_commit_llm_gemini::{Client, Gemini, Model, Request, Secret};

const KEY: &str = "AIzaSyTest-key-0123456789-xy";

fn service(origin: &str) -> Gemini {
    let base = origin.parse().expect("an origin");
    Gemini::new(
        base,
        "gemini/gemini-3.8-flash".parse().expect("a name"),
        Secret::new(KEY),
    )
}

fn model(origin: &str) -> Client {
    let limits = Limits {
        connect: Duration::from_secs(2),
        ..outcomes::limits()
    };
    Client::new(
        Arc::new(Agent::new(Network::default(), limits)),
        service(origin),
    )
}

#[test]
fn every_answer_and_every_failure_has_its_outcome() {
    let corpus = include_str!("../../../fixtures/outcomes/gemini.jsonl");
    outcomes::check(corpus, KEY, service).expect("a server");
}

#[test]
fn a_page_in_the_place_of_an_answer_is_not_read_to_its_end() {
    for stream in [false, true] {
        let page = Step::html(200, &format!("Sign in</title>{}", "x".repeat(2 << 20)));
        let outcome = outcomes::outcome(KEY, stream, service, vec![page]).expect("a server");
        insta::allow_duplicates! {
            insta::assert_snapshot!(outcome, @r#"ERROR bad-reply | the reply cannot be read: a page of HTML, "Sign in" | Error/Unknown []"#);
        }
    }
}

#[test]
fn who_is_cancelled_while_an_error_arrives_is_told_that_and_not_the_error() {
    let server =
        Server::start(Script::new([Step::status(400).hang(Hang::After(9))])).expect("a server");
    let mut notes = Notes {
        cancel_at: Some(9),
        ..Notes::default()
    };
    let result = model(server.origin()).call(&Request::default(), &mut notes);
    insta::assert_snapshot!(outcomes::line(&result, &notes), @"ERROR cancelled | cancelled | Cancelled/Unknown []");
}

#[test]
fn nobody_at_home_is_a_connect_error_after_five_tries() {
    let closed = Server::start(Script::default())
        .expect("a server")
        .origin()
        .to_owned();
    let mut notes = Notes::default();
    let result = model(&closed).call(
        &Request {
            prompt: "hi",
            ..Request::default()
        },
        &mut notes,
    );
    let shown = outcomes::line(&result, &notes).replace(&closed, "ORIGIN");
    insta::assert_snapshot!(shown, @"ERROR connect | cannot connect to ORIGIN | Error/Nothing Error/Nothing Error/Nothing Error/Nothing Error/Nothing [1035, 2400, 4716, 9552]");
}
