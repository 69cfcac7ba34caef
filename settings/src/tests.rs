use std::collections::BTreeSet;
use std::path::Path;

use code_commit_names::ours::PROJECT_FILE;

use serde_json::Value;

use crate::class::KEYS;
use crate::read::{parse, render};
use crate::{Bases, Environment, HostName, Options, Origin, Sandbox, Settings};

fn layer(text: &str) -> Options {
    parse(text).unwrap()
}

/// An error in a file, as displayed.
#[track_caller]
fn wrong(text: &str) -> String {
    render(text, PROJECT_FILE, &parse(text).unwrap_err())
}

/// What a project's file may not override in the user's file.
#[track_caller]
fn weakening(user: &str, project: &str) -> (Vec<String>, Settings) {
    let mut settings = Settings::default();
    settings.put(&layer(user), &Origin::User);
    let mut project = layer(project);
    let taken = settings.take_weakening(&mut project);
    settings.put(&project, &Origin::Project);
    (taken, settings)
}

#[test]
fn an_unknown_key_is_an_error_that_points_at_its_line() {
    insta::assert_snapshot!(wrong("protect = []\n\n[model]\nnmae = \"gpt-6\"\n"), @r#"
    unknown field `nmae`, expected one of `name`, `escalate`, `base_url`, `temperature`, `stream`, `timeout`, `call_limit`, `wait`, `dialect`
     --> code-commit.toml:4:1
      |
    4 | nmae = "gpt-6"
      | ^^^^
    "#);
    insta::assert_snapshot!(wrong("[modle]\n"), @"
    unknown field `modle`, expected one of `protect`, `protect_grader`, `edits`, `price`, `providers`, `model`, `limits`, `build`, `sandbox`, `spec`, `order`, `rollup`, `phase`
     --> code-commit.toml:1:2
      |
    1 | [modle]
      |  ^^^^^
    ");
}

#[test]
fn a_wrong_type_is_an_error_that_points_at_the_value() {
    insta::assert_snapshot!(wrong("[sandbox]\nnetwork = \"yes\"\n"), @r#"
    invalid type: string "yes", expected true or false
     --> code-commit.toml:2:11
      |
    2 | network = "yes"
      |           ^^^^^
    "#);
    insta::assert_snapshot!(wrong("protect = \"tests/**\"\n"), @r#"
    invalid type: string "tests/**", expected a list
     --> code-commit.toml:1:11
      |
    1 | protect = "tests/**"
      |           ^^^^^^^^^^
    "#);
    insta::assert_snapshot!(wrong("[sandbox]\nmode = \"none\""), @r#"
    unknown variant `none`, expected one of `auto`, `namespaces`, `landlock`, `docker`, `off`
     --> code-commit.toml:2:8
      |
    2 | mode = "none"
      |        ^^^^^^
    "#);
}

#[test]
fn a_value_that_cannot_be_is_an_error_that_points_at_it() {
    insta::assert_snapshot!(wrong("[build]\ntimeout = \"10\"\n"), @r#"
    `10` is not a duration; write it like 90s, 10m or 1h30m
     --> code-commit.toml:2:11
      |
    2 | timeout = "10"
      |           ^^^^
    "#);
    for host in [
        "https://a",
        "a/b",
        "",
        "a:0",
        "a:b",
        "user@a",
        "[a]",
        "*.a",
        "a:+443",
        "a=",
        "=10.0.0.1",
        "a=corp",
        "a=10.0.0.0/33",
        "a=10.0.0.0/",
        "a=::/129",
        "a=10.0.0.0/+8",
        "10.0.0.1=10.0.0.0/8",
        "[::1]=::1",
        "a=10.0.0.1:80",
    ] {
        let error = wrong(&format!("[sandbox]\nhosts = [\"{host}\"]\n"));
        assert!(
            error.contains(&format!("`{host}` is not a valid host")),
            "{host}: {error}"
        );
    }
    for host in [
        "a",
        "a.example:8443",
        "[::1]",
        "[::1]:80",
        "10.0.0.1:80",
        "a.corp=10.0.0.0/8",
        "a:81=10.0.0.1",
        "a=fd00::/8",
    ] {
        assert_eq!(host.parse::<HostName>().unwrap().0, host);
    }
    insta::assert_snapshot!(wrong("protect = [\"a\", \"[b\"]\n"), @r#"
    `[b` is not a pattern that could match a file: a [ is not closed, or it ends in a backslash
     --> code-commit.toml:1:11
      |
    1 | protect = ["a", "[b"]
      |           ^^^^^^^^^^^
    "#);
    insta::assert_snapshot!(wrong("[limits]\nmax_calls = 0\n"), @"
    0 would allow nothing; omit it for no limit
     --> code-commit.toml:2:13
      |
    2 | max_calls = 0
      |             ^
    ");
    insta::assert_snapshot!(wrong("[limits]\nmax_cost = -1\n"), @"
    -1 is not an amount of money in US dollars
     --> code-commit.toml:2:12
      |
    2 | max_cost = -1
      |            ^^
    ");
    insta::assert_snapshot!(wrong("[build]\ncommand = \"make 'x\"\n"), @r#"
    `make 'x` has a ' that is not closed
     --> code-commit.toml:2:11
      |
    2 | command = "make 'x"
      |           ^^^^^^^^^
    "#);
    insta::assert_snapshot!(wrong("[model]\nname = \"llama\"\n"), @r#"
    cannot tell the provider of `llama`: write it before the name, such as openai/llama, or write scripted/FILE
     --> code-commit.toml:2:8
      |
    2 | name = "llama"
      |        ^^^^^^^
    "#);
    insta::assert_snapshot!(wrong("[model]\nbase_url = \"https://user:pass@host\"\n"), @r#"
    the base URL contains a user, a query or a fragment
     --> code-commit.toml:2:12
      |
    2 | base_url = "https://user:pass@host"
      |            ^^^^^^^^^^^^^^^^^^^^^^^^
    "#);
}

#[test]
fn what_is_no_toml_is_an_error_that_points_at_the_place() {
    insta::assert_snapshot!(wrong("[model\n"), @"
    unclosed table, expected `]`
     --> code-commit.toml:1:6
      |
    1 | [model
      |      ^
    ");
    insta::assert_snapshot!(wrong("[model]\nname ="), @"
    string values must be quoted, expected literal string
     --> code-commit.toml:2:6
      |
    2 | name =
      |      ^
    ");
    insta::assert_snapshot!(wrong("[model]\nnameѨ"), @"
    key with no value, expected `=`
     --> code-commit.toml:2:5
      |
    2 | nameѨ
      |     ^
    ");
    insta::assert_snapshot!(wrong("a = \"\u{1b}[31m\"\n"), @r#"
    invalid basic string, expected non-double-quote visible characters, `\`
     --> code-commit.toml:1:6
      |
    1 | a = "␛[31m"
      |      ^
    "#);
}

#[test]
fn every_key_of_the_reference_is_read() {
    let reference = include_str!("../../docs/reference/configuration.md");
    let example = reference
        .split("```toml\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next())
        .unwrap();
    let mut settings = Settings::default();
    settings.put(&layer(example), &Origin::Project);
    let silent: Vec<&str> = settings
        .rows()
        .iter()
        .filter(|row| row.origin == Origin::Default)
        .map(|row| row.key)
        .collect();
    assert!(
        silent.is_empty(),
        "the example of the reference does not set {silent:?}"
    );
}

#[test]
fn later_layers_replace_values_and_add_to_lists() {
    let mut settings = Settings::default();
    settings.put(
        &layer("protect=['a','!b']\n[sandbox]\nenv=['A']\n[build]\ntimeout='1m'"),
        &Origin::User,
    );
    settings.put(
        &layer("protect=['!a']\n[sandbox]\nenv=['A','B']\n[build]\ntimeout='2m'"),
        &Origin::Flag,
    );
    assert_eq!(
        settings.protect_lists(),
        [vec!["a".to_owned(), "!b".to_owned()], vec!["!a".to_owned()]]
    );
    let rows: Vec<(String, Origin)> = settings
        .rows()
        .into_iter()
        .filter(|row| ["sandbox.env", "build.timeout"].contains(&row.key))
        .map(|row| (row.text(), row.origin))
        .collect();
    assert_eq!(
        rows,
        [
            ("2m", Origin::Flag),
            ("A", Origin::User),
            ("B", Origin::Flag)
        ]
        .map(|(text, origin)| (text.to_owned(), origin))
    );
}

#[test]
fn an_address_counts_for_models_of_the_provider_it_was_written_for() {
    let local = "[model]\nname='openai/llama'\nbase_url='http://127.0.0.1:1/v1'\n[model.dialect]\nsystem_role='system'";
    let mut settings = Settings::default();
    settings.put(&layer(local), &Origin::User);
    settings.put(&layer("[model]\nname='openai/qwen'"), &Origin::Project);
    assert_eq!(
        settings.model.base_url,
        "http://127.0.0.1:1/v1".parse().ok()
    );
    settings.put(&layer("[model]\nname='gemini-3.8-flash'"), &Origin::Flag);
    assert_eq!(settings.model.base_url, None);
    assert_eq!(settings.model.dialect.system_role, None);
}

#[test]
fn a_reply_that_is_not_streamed_may_be_as_silent_as_its_call_is_long() {
    let patience = |text: &str| {
        let patience = Settings::of_flags(&layer(text)).patience();
        (
            patience.silence.as_secs() / 60,
            patience.call.map(|call| call.as_secs() / 60),
        )
    };
    assert_eq!(patience(""), (5, None));
    assert_eq!(
        patience("[model]\ntimeout='1m'\ncall_limit='2h'"),
        (1, Some(120))
    );
    assert_eq!(patience("[model]\nstream=false"), (10, Some(10)));
    assert_eq!(
        patience("[model]\nstream=false\ntimeout='30m'"),
        (30, Some(30))
    );
    assert_eq!(
        patience("[model]\nstream=false\ncall_limit='30m'"),
        (60, Some(30)),
        "it never passes first"
    );
    assert_eq!(
        patience("[model]\nstream=false\ntimeout='5m'\ncall_limit='30m'"),
        (5, Some(30))
    );
}

#[test]
fn a_project_that_is_not_trusted_may_tighten() {
    let tighter = "protect=['tests/**']\n[limits]\nmax_cost=1.0\nmax_tokens=10\nmax_calls=2\nmax_time='1m'\nrounds=1\n\
                   [sandbox]\nmode='namespaces'\nnetwork=false\n[build]\ntimeout='1m'\ncommand='make'";
    let (taken, settings) = weakening("[sandbox]\nmode='auto'\nnetwork=true", tighter);
    assert_eq!(taken, [""; 0]);
    assert!(!settings.network());
    assert_eq!(settings.sandbox(), Sandbox::Namespaces);
    assert_eq!(settings.rounds(4), 1);
}

#[test]
fn a_project_that_is_not_trusted_does_not_weaken() {
    let wider = "[model]\nname='gemini/dearest'\nbase_url='http://127.0.0.1:1'\ntimeout='1s'\ncall_limit='1s'\n[limits]\nmax_cost=9.5\nmax_tokens=100\nmax_calls=9\n\
                 max_time='2h'\nrounds=9\n[sandbox]\nmode='off'\nnetwork=true\nhosts=['example.org']\nwritable=['/w']\nreadable=['/r']\n\
                 env=['E']\ncache_limit='999GiB'\n[[price]]\nprefix=\"gemini\\u001b]0;x\\u0007\"\ninput=0\noutput=0\n\
                 [providers.evil]\ndialect='openai'\nbase_url='http://127.0.0.1:1'\nkey_env='OPENAI_API_KEY'\n\
                 [build]\noutput_limit='1GiB'\nprompt_limit='2MiB'\nmemory='999GiB'\nprocesses=9999\ntemporary='999GiB'\nfile='999GiB'\nopen_files=99999";
    let user = "[limits]\nmax_cost=1\nmax_tokens=10\nmax_calls=1\nmax_time='1m'\nrounds=1";
    let (taken, settings) = weakening(user, wider);
    insta::assert_snapshot!(taken.join("\n"), @r#"
    model.name = "gemini/dearest"
    model.base_url = "http://127.0.0.1:1"
    model.timeout = "1s"
    model.call_limit = "1s"
    limits.max_cost = 9.5
    limits.max_tokens = 100
    limits.max_calls = 9
    limits.max_time = "2h"
    limits.rounds = 9
    build.output_limit = "1GiB"
    build.prompt_limit = "2MiB"
    build.memory = "999GiB"
    build.processes = 9999
    build.temporary = "999GiB"
    build.file = "999GiB"
    build.open_files = 99999
    sandbox.mode = "off"
    sandbox.network = true
    sandbox.hosts = ["example.org"]
    sandbox.writable = ["/w"]
    sandbox.readable = ["/r"]
    sandbox.cache_limit = "999GiB"
    sandbox.env = ["E"]
    price = ["gemini\u{1b}]0;x\u{7}"]
    providers = ["evil"]
    "#);
    let (_, as_if_empty) = weakening(user, "");
    assert_eq!(settings, as_if_empty);
}

const SERVER: &str =
    "[providers.server]\ndialect='openai'\nbase_url='http://127.0.0.1:1/v1'\nkey_env='SERVER_KEY'";

#[test]
fn a_provider_of_the_user_is_one_like_the_built_in_ones() {
    let mut settings = Settings::default();
    settings.put(
        &layer(&format!("model.name='server/llama'\n{SERVER}")),
        &Origin::User,
    );
    let provider = settings.provider_of(settings.models().first()).unwrap();
    assert_eq!(
        (provider.dialect.as_str(), provider.key_env.as_slice()),
        ("openai", &["SERVER_KEY".to_owned()][..])
    );
    assert!(
        settings
            .provider_of(&"other/llama".parse().unwrap())
            .is_none()
    );
    assert!(settings.provider_of(&"gemini/g".parse().unwrap()).is_some());
}

#[test]
fn half_of_a_provider_never_replaces_another_half() {
    let elsewhere = "[providers.server]\ndialect='openai'\nbase_url='http://127.0.0.1:2/v1'";
    let mut settings = Settings::default();
    settings.put(&layer(SERVER), &Origin::User);
    settings.put(&layer(elsewhere), &Origin::Project);
    let server = settings
        .provider_of(&"server/llama".parse().unwrap())
        .unwrap();
    assert_eq!(
        (server.key_env.len(), settings.origin("providers")),
        (0, Origin::Project)
    );
    assert_eq!(weakening(SERVER, elsewhere).0, ["providers = [\"server\"]"]);
    assert_eq!(weakening(SERVER, SERVER).0, [""; 0]);
}

#[test]
fn a_provider_has_a_name_of_its_own() {
    insta::assert_snapshot!(wrong(&SERVER.replace("server]", "gemini]")), @"
    `gemini` is built in; choose another name
     --> code-commit.toml:1:12
      |
    1 | [providers.gemini]
      |            ^^^^^^
    ");
    insta::assert_snapshot!(wrong(&SERVER.replace("server]", "'My Server']")), @"
    `My Server` is not a valid provider name; write it like my-server
     --> code-commit.toml:1:12
      |
    1 | [providers.'My Server']
      |            ^^^^^^^^^^^
    ");
}

#[test]
fn a_sandbox_is_weaker_if_it_may_let_through_more() {
    for (now, wanted, weaker) in [
        ("auto", "namespaces", false),
        ("auto", "landlock", true),
        ("auto", "docker", true),
        ("auto", "off", true),
        ("namespaces", "auto", true),
        ("off", "landlock", false),
        ("landlock", "docker", true),
        ("docker", "docker", false),
    ] {
        let table = |mode| format!("[sandbox]\nmode='{mode}'");
        let (taken, _) = weakening(&table(now), &table(wanted));
        assert_eq!(!taken.is_empty(), weaker, "{now} to {wanted}");
    }
}

#[test]
fn what_the_user_already_allows_is_no_weakening() {
    let same = "[model]\nname='gemini/dearest'\nbase_url='http://127.0.0.1:1'\n[limits]\nmax_cost=1\n[sandbox]\nmode='off'\nnetwork=true\n\
                writable=['w']\nenv=['E']";
    assert_eq!(weakening(same, same).0, [""; 0]);
}

#[test]
fn places_are_absolute_below_the_home_or_below_the_root() {
    let home = Environment::of([("HOME".into(), "/h".into())]);
    let bases = Bases::new(Path::new("/p"), &home);
    let found = |place: &str| bases.find(Path::new(place)).display().to_string();
    assert_eq!(
        ["~", "~/x", "x", "/x", "~x"].map(found),
        ["/h/", "/h/x", "/p/x", "/x", "/p/~x"]
    );
}

proptest::proptest! {
    #[test]
    fn an_error_in_any_text_can_be_shown(text in "(\\PC|\n|\t|\r|[\\[\\]=\"'#a-c]|model|timeout){0,60}") {
        if let Err(error) = parse(&text) {
            render(&text, PROJECT_FILE, &error);
        }
    }
}

#[test]
fn settings_survive_the_record() {
    let (_, settings) = weakening(
        "protect=['a']\n[sandbox]\nmode='off'\n[limits]\nmax_time='5s'\nmax_cost=0.25",
        "",
    );
    let json = serde_json::to_string(&settings).unwrap();
    assert_eq!(serde_json::from_str::<Settings>(&json).unwrap(), settings);
}

#[test]
fn every_key_is_classed_as_trusted_or_not() {
    fn keys(schema: &Value, all: &Value, path: &str, found: &mut BTreeSet<String>) {
        let schema = schema["$ref"].as_str().map_or(schema, |name| {
            &all["$defs"][name.trim_start_matches("#/$defs/")]
        });
        let Some(properties) = schema["properties"].as_object() else {
            assert!(found.insert(path.to_owned()) || path == "phase");
            return;
        };
        for (name, property) in properties {
            keys(
                property,
                all,
                format!("{path}.{name}").trim_start_matches('.'),
                found,
            );
        }
    }
    let (schema, mut found) = (schemars::schema_for!(Options).to_value(), BTreeSet::new());
    keys(&schema, &schema, "", &mut found);
    // A table without keys.
    found.remove("phase");
    let classed = KEYS.iter().map(|(key, _)| (*key).to_owned()).collect();
    assert_eq!(found, classed);
}
