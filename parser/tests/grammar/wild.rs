//! Replies as local servers, routers and gateways pass them on, each with its source and its reading.
//!
//! `fixtures/wild.txt` holds them; `␍` stands for a carriage return and `␏` for a byte order mark.

use code_commit_parser::{FileAction, Reply, parse};

const WILD: &str = include_str!("../../../fixtures/wild.txt");

/// Each fact of a reading on a line of its own.
fn reading(text: &str) -> String {
    match parse(text) {
        Ok(reply) => facts(&reply).join("\n"),
        Err(errors) => errors
            .iter()
            .map(|error| format!("refused {}", error.in_full()))
            .collect::<Vec<_>>()
            .join("\n"),
    }
}

fn facts(reply: &Reply<'_>) -> Vec<String> {
    let file = |file: code_commit_parser::FileBlock<'_>| match file.action {
        FileAction::Write(content) => format!("write {} {content:?}", file.path),
        FileAction::Edit(hunks) => format!("edit {} {:?}", file.path, hunks.text()),
        FileAction::Delete => format!("delete {}", file.path),
    };
    let mut facts: Vec<String> = reply.files().map(file).collect();
    facts.extend(reply.user().map(|text| format!("user {text:?}")));
    facts.extend(reply.debug().map(|text| format!("debug {text:?}")));
    facts.extend(reply.no_change().map(|text| format!("no change {text:?}")));
    facts.extend(reply.thinking().map(|text| format!("thinking {text:?}")));
    facts.extend(
        reply
            .warnings()
            .iter()
            .map(|warning| format!("warning {}", warning.message())),
    );
    facts
}

#[test]
fn every_reply_of_the_wild_is_read_as_its_reading_says() {
    let cases: Vec<&str> = WILD.split("=== ").skip(1).collect();
    for case in &cases {
        let (source, rest) = case.split_once('\n').unwrap();
        let (reply, expected) = rest.split_once("\n--- reading\n").unwrap();
        let text = reply.replace('␍', "\r").replace('␏', "\u{feff}");
        assert_eq!(reading(&text), expected.trim_end(), "{source}");
    }
    assert!(cases.len() >= 60, "{}", cases.len());
}
