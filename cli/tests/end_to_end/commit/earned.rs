//! Builds that prove nothing and models that repeat themselves, and those that do neither: a table for the default loop.

use code_commit_fixtures::demo::{BREAKS_THE_BUILD, FILES, MENDS_IT, TOUCHES_GIT};
use code_commit_fixtures::server::{Script, Step};

use crate::scenes::commit::Scene;

const NOTHING: &str = "$$$start\nall is well\n$$$end\n";

/// A build, and a model that is asked by it.
struct Kind {
    name: &'static str,
    /// `build.sh` without its first line; the demo's if empty.
    build: &'static str,
    replies: &'static [&'static str],
    flags: &'static [&'static str],
    exit: i32,
    /// How often the model is asked.
    asked: usize,
    is_doubted: bool,
}

const KIND: Kind = Kind {
    name: "",
    build: "",
    replies: &[MENDS_IT],
    flags: &[],
    exit: 0,
    asked: 1,
    is_doubted: false,
};
const GREEN: Kind = Kind {
    build: "exit 0\n",
    is_doubted: true,
    ..KIND
};
const REPEATS: Kind = Kind {
    exit: 1,
    asked: 3,
    ..KIND
};

const KINDS: [Kind; 13] = [
    Kind {
        name: "a build that cannot fail",
        ..GREEN
    },
    Kind {
        name: "one that tests something else",
        build: "grep -q greet src/greet.sh\n",
        ..GREEN
    },
    Kind {
        name: "nothing is done about a green one",
        replies: &[NOTHING],
        ..GREEN
    },
    Kind {
        name: "one that a reply breaks and the next one repairs",
        build: "! grep -q 'Hello, $1' src/greet.sh\n",
        replies: &[BREAKS_THE_BUILD, MENDS_IT],
        asked: 2,
        ..GREEN
    },
    Kind {
        name: "a reply that is repeated",
        replies: &[BREAKS_THE_BUILD; 4],
        ..REPEATS
    },
    Kind {
        name: "a refused one",
        replies: &[TOUCHES_GIT; 4],
        ..REPEATS
    },
    Kind {
        name: "one that is prose",
        replies: &["I will not."; 4],
        ..REPEATS
    },
    Kind {
        name: "one that does nothing",
        replies: &[NOTHING; 4],
        ..REPEATS
    },
    Kind {
        name: "honest: a build that was red",
        ..KIND
    },
    Kind {
        name: "honest: one that is red first",
        replies: &[BREAKS_THE_BUILD, MENDS_IT],
        asked: 2,
        ..KIND
    },
    Kind {
        name: "honest: a reply that comes again after another one",
        replies: &[BREAKS_THE_BUILD, TOUCHES_GIT, BREAKS_THE_BUILD, MENDS_IT],
        asked: 4,
        ..KIND
    },
    Kind {
        name: "honest: the same reply twice, since the first prompt said nothing of the build",
        replies: &[BREAKS_THE_BUILD, BREAKS_THE_BUILD, MENDS_IT],
        asked: 3,
        ..KIND
    },
    Kind {
        name: "nobody wants to know",
        flags: &["--no-check"],
        is_doubted: false,
        ..GREEN
    },
];

fn faults(kind: &Kind) -> Vec<String> {
    let scene = Scene::with_files(
        &FILES,
        Script::new(kind.replies.iter().map(|reply| Step::text(reply))),
    );
    if !kind.build.is_empty() {
        scene
            .project
            .write("build.sh", format!("#!/bin/sh\n{}", kind.build).as_bytes())
            .unwrap();
        scene.project.commit("a build").unwrap();
    }
    let ran = scene.commit(kind.flags);
    let doubts = ran
        .err
        .matches("warning: this build passed before the change, too")
        .count();
    let asked = scene.server.requests().len();
    let is_said = ran
        .out
        .contains("the model gave the same reply twice to the same failure");
    let found = (ran.code, asked, doubts, is_said);
    let wanted = (
        Some(kind.exit),
        kind.asked,
        usize::from(kind.is_doubted),
        kind.exit == 1,
    );
    let mut faults = Vec::new();
    if found != wanted {
        faults.push(format!("{}: {found:?}, not {wanted:?}\n{ran}", kind.name));
    }
    if scene.warnings("green-before").len() != doubts {
        faults.push(format!("{}: the summary does not say it", kind.name));
    }
    faults
}

#[test]
fn a_build_that_was_green_before_is_doubted_and_a_model_that_repeats_itself_is_not_asked_again() {
    let faults: Vec<String> = KINDS.iter().flat_map(faults).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
