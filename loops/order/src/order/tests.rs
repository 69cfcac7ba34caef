use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn order(over: &Value) -> Value {
    let mut order = json!({
        "id": "1", "title": "t", "intent": "i", "allowed_files": ["a", "b/c"], "forbidden": [],
        "acceptance_commands": ["sh 'a b'"], "context_files": ["a"],
    });
    for (field, value) in over.as_object().unwrap() {
        order[field] = value.clone();
    }
    order
}

fn parse(over: &Value) -> Result<WorkOrder, Vec<FieldProblem>> {
    WorkOrder::parse(order(over).to_string().as_bytes())
}

/// All problems, one per line.
fn check(over: &Value) -> String {
    let problems = parse(over).unwrap_err();
    problems
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn an_order_says_what_it_says() {
    let order = parse(&json!({ "allowed_files": ["./a", "b//c"], "notes": "n" })).unwrap();
    assert_eq!(
        (order.allowed_files, order.notes.as_deref()),
        (vec!["a".to_owned(), "b/c".to_owned()], Some("n"))
    );
    assert_eq!(order.acceptance_commands[0].argv, ["sh", "a b"]);
    assert_eq!((order.max_cost, order.preconditions.len()), (None, 0));
}

#[test]
fn every_mistake_is_named_with_its_field() {
    insta::assert_snapshot!(
        check(&json!({ "allowed_files": ["/a", "../b", "C:\\c", "d/*", "e/", "f", "./f"], "context_files": ["g", "f"] })),
        @"
    allowed_files[0]: is an absolute path; give it relative to the repository
    allowed_files[1]: has a `..` component
    allowed_files[2]: has a drive letter; give it relative to the repository
    allowed_files[3]: is a pattern; name each file
    allowed_files[4]: names a folder; name each file
    allowed_files[6]: is in the list twice
    context_files[0]: is not among the allowed_files
    "
    );
    insta::assert_snapshot!(
        check(&json!({ "id": 1, "forbidden": ["a", 2], "acceptance_commands": ["a", "b | c"], "extra": 1, "max_cost": "1" })),
        @"
    id: must be a string
    forbidden[1]: must be a string
    acceptance_commands[1]: needs a shell for `|`, but none runs it: put it in single quotes, or run the line with sh -c '…'
    max_cost: must be an amount of US dollars, 0 or more
    extra: is not a field of a work order
    "
    );
}

/// Without a shell, `test -n` sees a text that is never empty, and passes before anything is done.
#[test]
fn an_acceptance_command_that_only_a_shell_would_expand_is_refused() {
    insta::assert_snapshot!(
        check(&json!({ "acceptance_commands": [r#"test -n "$(grep DONE a.txt)""#, r#"test -n "$DONE""#, "test -f [ab].txt"] })),
        @"
    acceptance_commands[0]: needs a shell for `$`, but none runs it: put it in single quotes, or run the line with sh -c '…'
    acceptance_commands[1]: needs a shell for `$`, but none runs it: put it in single quotes, or run the line with sh -c '…'
    acceptance_commands[2]: needs a shell for `[ab].txt`, but none runs it: put it in single quotes, or run the line with sh -c '…'
    "
    );
    let spelled =
        parse(&json!({ "acceptance_commands": [r#"sh -c 'test -n "$(grep DONE a.txt)"'"#] }));
    assert_eq!(
        spelled.unwrap().acceptance_commands[0].argv[2],
        r#"test -n "$(grep DONE a.txt)""#
    );
}

#[test]
fn a_mistake_keeps_its_number_behind_another_one() {
    insta::assert_snapshot!(
        check(&json!({
            "allowed_files": [1, "/a", "a"], "context_files": [null, "g"],
            "acceptance_commands": [2, "b;", "c"],
        })),
        @"
    allowed_files[0]: must be a string
    allowed_files[1]: is an absolute path; give it relative to the repository
    acceptance_commands[0]: must be a string
    acceptance_commands[1]: needs a shell for `;`, but none runs it: put it in single quotes, or run the line with sh -c '…'
    context_files[0]: must be a string
    context_files[1]: is not among the allowed_files
    "
    );
}

#[test]
fn a_document_that_is_no_object_is_named_as_a_whole() {
    for json in ["", "[]", "{", "\"x\"", "{}{}", r#"{"id": "1", "id": "2"}"#] {
        let problems = WorkOrder::parse(json.as_bytes()).unwrap_err();
        assert_eq!(
            (problems.len(), problems[0].field.as_str()),
            (1, ""),
            "{json}"
        );
    }
}

#[test]
fn the_hash_depends_on_what_is_said_and_not_on_how() {
    let hash = |over: Value| parse(&over).unwrap().hash;
    let plain = hash(json!({}));
    assert_eq!(
        hash(json!({ "notes": null, "max_cost": null, "preconditions": null })),
        plain
    );
    let spaced = serde_json::to_string_pretty(&order(&json!({}))).unwrap();
    assert_eq!(WorkOrder::parse(spaced.as_bytes()).unwrap().hash, plain);
    for over in [
        json!({ "notes": "" }),
        json!({ "max_cost": 1 }),
        json!({ "title": "T" }),
        json!({ "forbidden": ["x"] }),
    ] {
        assert_ne!(hash(over), plain);
    }
}

#[test]
fn fields_beyond_the_seed_are_read() {
    let order = parse(&json!({
        "max_cost": 0.5, "preconditions": [{ "file_exists": "a" }], "postconditions": [{ "file_absent": "x" }],
    }))
    .unwrap();
    assert_eq!(order.max_cost, Some(0.5));
    assert_eq!(order.preconditions, [Condition::FileExists("a".to_owned())]);
    assert_eq!(
        order.postconditions,
        [Condition::FileAbsent("x".to_owned())]
    );
}

#[test]
fn the_template_is_a_valid_order_until_somebody_says_what_is_wanted() {
    let template = WorkOrder::parse(TEMPLATE.as_bytes()).unwrap();
    assert_eq!(template.max_cost, None);
    for (from, to, is_template) in [
        ("order-1", "order-2", true),
        ("What is wanted", "More tea", false),
    ] {
        let changed = TEMPLATE.replacen(from, to, 1);
        assert_ne!(changed, TEMPLATE);
        assert_eq!(
            WorkOrder::parse(changed.as_bytes()).unwrap().is_template(),
            is_template,
            "{changed}"
        );
    }
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = WorkOrder::parse(&bytes);
    }

    #[test]
    fn an_allowed_file_never_leads_out_of_the_tree(path in "[a-c./\\\\ :]{0,12}") {
        if let Ok(order) = parse(&json!({ "allowed_files": [path], "context_files": [] })) {
            let path = &order.allowed_files[0];
            prop_assert!(!path.starts_with('/') && !path.is_empty());
            prop_assert!(path.split('/').all(|part| !matches!(part, "" | "." | "..")));
        }
    }
}
