//! x
use code_commit_llm_gemini as llm_gemini;
use fixtures::server::*;
use llm::{Blind, Model, Request, Secret};
use std::sync::Arc;
#[test]
fn plain_and_stream() {
    let server =
        Server::start(Script::new([Step::text("hello é\n world"), Step::text("hello there")])).unwrap();
    let agent = Arc::new(llm::http::Agent::new(Default::default(), Default::default()));
    let g = llm_gemini::Gemini::new(
        agent,
        server.origin().parse().unwrap(),
        "gemini/gemini-3.8-flash".parse().unwrap(),
        Secret::new("key-123-ab"),
    );
    let r = g.call(&Request { prompt: "hi", ..Request::default() }, &mut Blind).unwrap();
    println!("{r:?}");
    let r = g.call(&Request { prompt: "hi", stream: true, ..Request::default() }, &mut Blind).unwrap();
    println!("{r:?} {}", String::from_utf8(r.raw_bytes()).unwrap());
    println!("{:?}", server.requests());
    assert_eq!(server.connections(), 1);
}
