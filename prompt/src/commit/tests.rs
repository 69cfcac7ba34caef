use super::*;

fn protected() -> Vec<String> {
    ["build.sh", "anything in the .git folder"]
        .map(str::to_owned)
        .to_vec()
}

/// The prompt after the system prompts, which have their own tests.
fn behind<'t>(prompt: &'t str, system: &str) -> &'t str {
    prompt.split_once(system).unwrap().1
}

#[test]
fn the_initial_prompt_has_its_five_parts_in_order() {
    let protected = protected();
    let task = Task {
        query: "Say hello.",
        codebase: "--- FILE a.sh ---\n:",
        protected: &protected,
        form: Form::Files,
    };
    let prompt = initial(&task);
    let order = [
        PROJECT_STRUCTURE,
        MODIFICATION_INSTRUCTIONS,
        "+ build.sh\n",
        INITIAL_QUERY,
        "Say hello.",
        "--- FILE a.sh",
    ];
    let places: Vec<usize> = order
        .iter()
        .map(|part| prompt.text.find(part).unwrap())
        .collect();
    assert!(places.is_sorted(), "{places:?}");
    assert_eq!(prompt.text.get(prompt.query.clone()).unwrap(), "Say hello.");
    assert_eq!(
        prompt.text.get(prompt.codebase.clone()).unwrap(),
        "--- FILE a.sh ---\n:"
    );
    insta::assert_snapshot!(behind(&prompt.text, INITIAL_QUERY), @"
    Say hello.

    --- FILE a.sh ---
    :
    ");
}

#[test]
fn a_repair_prompt_has_its_seven_parts_in_order() {
    let protected = protected();
    let task = Task {
        query: "Say hello.\n",
        codebase: "--- FILE a.sh ---\n:\n",
        protected: &protected,
        form: Form::Files,
    };
    let replacements = [
        Replacement::File {
            path: "a.sh",
            data: "echo hello\n",
        },
        Replacement::File {
            path: "empty",
            data: "",
        },
        Replacement::File {
            path: "no-newline",
            data: "x",
        },
        Replacement::Removed { path: "b.sh" },
    ];
    let prompt = repair(
        &task,
        &Failure::Build("a.sh: line 1: helo: not found\nexit code: 127\n"),
        &replacements,
    );
    assert!(prompt.starts_with(PROJECT_STRUCTURE));
    insta::assert_snapshot!(behind(&prompt, &repair_query(task.form)), @"
    a.sh: line 1: helo: not found
    exit code: 127

    Say hello.

    --- FILE a.sh ---
    :

    --- FILE REPLACEMENT a.sh ---
    echo hello
    --- FILE REPLACEMENT empty ---
    --- FILE REPLACEMENT no-newline ---
    x
    --- FILE REMOVED b.sh ---
    ");
}

#[test]
fn after_a_reply_that_was_not_used_the_reasons_and_the_last_build_are_told() {
    let task = Task {
        query: "Say hello.\n",
        codebase: "--- FILE a.sh ---\n:\n",
        protected: &[],
        form: Form::Files,
    };
    let after = |last_build| {
        let failure = Failure::Reply {
            reasons: "The reply was not used.\n",
            last_build,
        };
        let prompt = repair(
            &task,
            &failure,
            &[Replacement::File {
                path: "a.sh",
                data: "helo\n",
            }],
        );
        behind(&prompt, &repair_query(task.form)).to_owned()
    };
    insta::assert_snapshot!(after(Some("a.sh: helo: not found\nexit code: 127\n")), @"
    The reply was not used.

    Before that reply, build.sh had printed:
    a.sh: helo: not found
    exit code: 127

    Say hello.

    --- FILE a.sh ---
    :

    --- FILE REPLACEMENT a.sh ---
    helo
    ");
    insta::assert_snapshot!(after(None), @"
    The reply was not used.

    Say hello.

    --- FILE a.sh ---
    :

    --- FILE REPLACEMENT a.sh ---
    helo
    ");
}

#[test]
fn what_the_instructions_teach_is_what_the_parser_reads() {
    // The closing `$$$` example contradicts the files above it, which a model would also see;
    // everything else must parse.
    let (examples, no_change) = MODIFICATION_INSTRUCTIONS
        .split_once("If the project already does")
        .unwrap();
    let reply = code_commit_parser::parse(examples).unwrap();
    let paths: Vec<_> = reply.files().map(|file| file.path).collect();
    assert_eq!(paths, ["src/main.rs", "src/unused.rs", "docs/fences.md"]);
    assert_eq!(reply.user().count(), 1);
    assert_eq!(
        code_commit_parser::parse(no_change)
            .unwrap()
            .no_change()
            .count(),
        1
    );
}

#[test]
fn a_model_is_taught_to_edit_between_the_rules_and_the_request_and_only_if_asked() {
    let protected = protected();
    let task = Task {
        query: "Say hello.\n",
        codebase: "C\n",
        protected: &protected,
        form: Form::Edits,
    };
    for text in [
        initial(&task).text,
        repair(&task, &Failure::Build("exit code: 1\n"), &[]),
    ] {
        let parts = [
            "+ anything in the .git folder\n",
            "\n^^^edit src/main.rs\n",
            "Say hello.",
        ];
        let places: Vec<usize> = parts.iter().map(|part| text.find(part).unwrap()).collect();
        assert!(places.is_sorted(), "{places:?}");
    }
    let files = initial(&Task {
        form: Form::Files,
        ..task
    })
    .text;
    assert!(
        !files.contains("^^^edit") && !files.contains("SEARCH"),
        "{files}"
    );
}

#[test]
fn a_repair_with_edits_asks_for_nothing_else() {
    let (files, edits) = (repair_query(Form::Files), repair_query(Form::Edits));
    assert!(
        files.contains("answer with the whole content of every file that has to change again"),
        "{files}"
    );
    assert!(
        edits.contains("answer with edits, against its latest content, of every file that"),
        "{edits}"
    );
    assert!(
        !edits.contains("whole") && !(files + &edits).contains('{'),
        "{edits}"
    );
}

#[test]
fn every_prompt_of_a_task_begins_with_the_same_rules() {
    let protected = ["build.sh".to_owned()];
    let task = Task {
        query: "query",
        codebase: "code",
        protected: &protected,
        form: Form::Files,
    };
    let stable = stable_bytes(&task);
    let first = initial(&task).text;
    let second = repair(&task, &Failure::Build("failed"), &[]);
    let ((rules, first), (same, second)) = (first.split_at(stable), second.split_at(stable));
    assert_eq!(rules, same);
    assert!(rules.contains("+ build.sh\n"));
    assert!(first.starts_with(INITIAL_QUERY) && second.starts_with(&repair_query(task.form)));
}
