use super::*;
use crate::{Captured, Ended};
use std::time::Duration;

fn check(rung: Rung, line: &str) -> String {
    let access = Access {
        tree: "/work tree".into(),
        read_only: vec!["/work tree/.git".into(), "/work tree/build.sh".into()],
        masked: vec!["/work tree/agent-config".into()],
        // A folder that exists on every machine.
        home: Some("/var/cache".into()),
        ..Access::default()
    };
    let hint =
        explain(&output(line), &Confinement { rung, access }).unwrap_or_else(|| "nothing".into());
    assert!(is_harmless(&hint), "{line}: {hint}");
    hint
}

/// Whether what a hint names is there, is of the kind that the flag takes, and holds no secret; and the whole network is
/// offered only where no host is known.
fn is_harmless(hint: &str) -> bool {
    let flags: Vec<(&str, &str)> = hint
        .split('`')
        .filter_map(|part| part.split_once(' '))
        .collect();
    let is_fine = |(flag, value): &(&str, &str)| {
        let path = Path::new(value);
        match *flag {
            _ if value.contains("FOLDER") => true,
            "--readable" => {
                path.exists()
                    && !is_secret(
                        path,
                        &Access {
                            tree: "/work tree".into(),
                            ..Access::default()
                        },
                    )
            }
            // In the tree, the folder is made.
            "--writable" if path.is_absolute() && !path.starts_with("/work tree") => {
                path.is_dir() && path.parent().is_some()
            }
            _ => true,
        }
    };
    let names_host = flags
        .iter()
        .any(|(flag, value)| *flag == "--allow-host" && *value != "HOST");
    flags.iter().all(is_fine) && !(names_host && hint.contains("allow it with `--network`"))
}

/// Of a failed build that printed this line.
fn output(line: &str) -> Output {
    let head = format!("compiling\n{line}\nmake: *** [all] Error 1\n").into_bytes();
    Output {
        ended: Ended::Exited(1),
        captured: Captured {
            head,
            ..Captured::default()
        },
        apart: None,
        elapsed: Duration::ZERO,
        survivors_killed: 0,
        survivors_left: 0,
        denied: Vec::new(),
        refused: Vec::new(),
    }
}

fn table(lines: &[(Rung, &str)]) -> String {
    lines
        .iter()
        .map(|(rung, line)| format!("{line}\n  {}\n", check(*rung, line)))
        .collect()
}

/// An unrelated program's message about an unreadable file comes first.
const PYTHON: &str = "pyenv: line 41: /var/log/version: Permission denied
Traceback (most recent call last):
  File \"/usr/lib/python3.11/socket.py\", line 232, in __init__
    _socket.socket.__init__(self, family, type, proto, fileno)
PermissionError: [Errno 1] Operation not permitted";

#[test]
fn each_cause_gets_its_sentence() {
    let lines = [
        (
            Rung::Namespaces,
            "curl: (6) Could not resolve host: crates.io",
        ),
        (
            Rung::Namespaces,
            "error: no matching package named `rand` found, --offline was specified",
        ),
        (
            Rung::Namespaces,
            "touch: cannot touch '/var/lib/x/y': Read-only file system",
        ),
        (
            Rung::Namespaces,
            "sh: 1: cannot create ./.git/hooks/pre-commit: Read-only file system",
        ),
        (
            Rung::Namespaces,
            "/usr/bin/rm: cannot remove '.git': Read-only file system",
        ),
        (Rung::Namespaces, "Error: EROFS"),
        (Rung::Namespaces, "cat: /var/log: No such file or directory"),
        (
            Rung::Landlock,
            "mkdir: cannot create directory './target': Permission denied",
        ),
        (
            Rung::Landlock,
            "cat: ./agent-config/gemini-key.txt: Permission denied",
        ),
        (Rung::Landlock, "cat: /var/log: Permission denied"),
        (
            Rung::Landlock,
            "./build.sh: 2: cannot create /var/log: Permission denied",
        ),
        (
            Rung::Namespaces,
            "cat: /var/cache/.ssh/id: No such file or directory",
        ),
        (
            Rung::Namespaces,
            "cat: /var/cache/apt: No such file or directory",
        ),
        (Rung::Landlock, "cat: /var/cache/apt: Permission denied"),
        (
            Rung::Landlock,
            "cat: /tmp/code-commit-RlOZoN/home/.sdk/lib: No such file or directory",
        ),
        (Rung::Landlock, PYTHON),
        (
            Rung::Landlock,
            "./x: Permission denied\nError: connect EPERM 127.0.0.1:80",
        ),
        (
            Rung::Landlock,
            "PermissionError: [Errno 1] Operation not permitted: 'x'",
        ),
        (
            Rung::Namespaces,
            "curl: (7) Failed to connect to 127.0.0.1 port 1 after 0 ms: Couldn't connect to server",
        ),
        (
            Rung::Namespaces,
            "cat: /etc/passwd: No such file or directory",
        ),
        (
            Rung::Namespaces,
            "cat: /var/log/../cache/apt: No such file or directory",
        ),
        (
            Rung::Namespaces,
            "touch: cannot touch '/new': Read-only file system",
        ),
        (
            Rung::Namespaces,
            "touch: cannot touch '/etc/new': Read-only file system",
        ),
        (Rung::Namespaces, "connect ECONNREFUSED 127.0.0.1:5432"),
        (Rung::Namespaces, "src/main.rs: Permission denied"),
        (
            Rung::Namespaces,
            "error[E0425]: cannot find value `x` in this scope",
        ),
        (Rung::Off, "curl: (6) Could not resolve host: crates.io"),
    ];
    insta::assert_snapshot!(table(&lines), @r#"
    curl: (6) Could not resolve host: crates.io
      the sandbox has no network: allow the host with `--allow-host crates.io` or `[sandbox] hosts = ["crates.io"]`; only the sandbox namespaces can open single hosts, the others all with `--network`
    error: no matching package named `rand` found, --offline was specified
      the sandbox has no network: allow the hosts with `--allow-host index.crates.io --allow-host static.crates.io` or `[sandbox] hosts = ["index.crates.io", "static.crates.io"]`; only the sandbox namespaces can open single hosts, the others all with `--network`
    touch: cannot touch '/var/lib/x/y': Read-only file system
      the sandbox lets a build write only in the work tree: allow more with `--writable FOLDER` or `[sandbox] writable = ["FOLDER"]`
    sh: 1: cannot create ./.git/hooks/pre-commit: Read-only file system
      the sandbox protects /work tree/.git/hooks/pre-commit: no build may change it (`--sandbox off` lets it)
    /usr/bin/rm: cannot remove '.git': Read-only file system
      the sandbox protects /work tree/.git: no build may change it (`--sandbox off` lets it)
    Error: EROFS
      the sandbox lets a build write only in the work tree: allow more with `--writable FOLDER` or `[sandbox] writable = ["FOLDER"]`
    cat: /var/log: No such file or directory
      the sandbox hides /var/log: show it with `--readable /var/log` or `[sandbox] readable = ["/var/log"]`
    mkdir: cannot create directory './target': Permission denied
      the sandbox (Landlock) lets a build make nothing new at the top of the tree: name the folder with `--writable /work tree/target` or `[sandbox] writable = ["/work tree/target"]`
    cat: ./agent-config/gemini-key.txt: Permission denied
      the sandbox hides /work tree/agent-config/gemini-key.txt from every build
    cat: /var/log: Permission denied
      the sandbox hides /var/log: show it with `--readable /var/log` or `[sandbox] readable = ["/var/log"]`
    ./build.sh: 2: cannot create /var/log: Permission denied
      the sandbox lets a build write only in the work tree: allow more with `--writable FOLDER` or `[sandbox] writable = ["FOLDER"]`
    cat: /var/cache/.ssh/id: No such file or directory
      the sandbox hides your home directory from every build: a toolchain in it is visible if its `bin` is in PATH; show a folder with `--readable ~/FOLDER` or `[sandbox] readable = ["~/FOLDER"]`, or put the files that the build needs into the work tree
    cat: /var/cache/apt: No such file or directory
      the sandbox hides your home directory from every build: a toolchain in it is visible if its `bin` is in PATH; show a folder with `--readable ~/FOLDER` or `[sandbox] readable = ["~/FOLDER"]`, or put the files that the build needs into the work tree
    cat: /var/cache/apt: Permission denied
      the sandbox hides your home directory from every build: a toolchain in it is visible if its `bin` is in PATH; show a folder with `--readable ~/FOLDER` or `[sandbox] readable = ["~/FOLDER"]`, or put the files that the build needs into the work tree
    cat: /tmp/code-commit-RlOZoN/home/.sdk/lib: No such file or directory
      the sandbox hides your home directory from every build: a toolchain in it is visible if its `bin` is in PATH; show a folder with `--readable ~/FOLDER` or `[sandbox] readable = ["~/FOLDER"]`, or put the files that the build needs into the work tree
    pyenv: line 41: /var/log/version: Permission denied
    Traceback (most recent call last):
      File "/usr/lib/python3.11/socket.py", line 232, in __init__
        _socket.socket.__init__(self, family, type, proto, fileno)
    PermissionError: [Errno 1] Operation not permitted
      the sandbox has no network: allow it with `--network` or `[sandbox] network = true`
    ./x: Permission denied
    Error: connect EPERM 127.0.0.1:80
      the sandbox has no network: allow it with `--network` or `[sandbox] network = true`
    PermissionError: [Errno 1] Operation not permitted: 'x'
      nothing
    curl: (7) Failed to connect to 127.0.0.1 port 1 after 0 ms: Couldn't connect to server
      the sandbox has no network: allow it with `--network` or `[sandbox] network = true`
    cat: /etc/passwd: No such file or directory
      nothing
    cat: /var/log/../cache/apt: No such file or directory
      nothing
    touch: cannot touch '/new': Read-only file system
      the sandbox lets a build write only in the work tree: allow more with `--writable FOLDER` or `[sandbox] writable = ["FOLDER"]`
    touch: cannot touch '/etc/new': Read-only file system
      the sandbox lets a build write only in the work tree: allow more with `--writable FOLDER` or `[sandbox] writable = ["FOLDER"]`
    connect ECONNREFUSED 127.0.0.1:5432
      the sandbox has no network: allow it with `--network` or `[sandbox] network = true`
    src/main.rs: Permission denied
      nothing
    error[E0425]: cannot find value `x` in this scope
      nothing
    curl: (6) Could not resolve host: crates.io
      nothing
    "#);
}

#[test]
fn under_landlock_the_file_is_meant_and_not_the_script_that_speaks() {
    let lines = [
        (
            Rung::Landlock,
            "./build.sh: line 2: report.xml: Permission denied",
        ),
        (
            Rung::Landlock,
            "./build.sh: 2: ./build.sh: cannot create report.xml: Permission denied",
        ),
        (
            Rung::Landlock,
            "/usr/bin/ld: cannot open output file a.out: Permission denied",
        ),
        (
            Rung::Landlock,
            "PermissionError: [Errno 13] Permission denied: 'report.xml'",
        ),
        (
            Rung::Landlock,
            "Error: EACCES: permission denied, open 'report.xml'",
        ),
        (
            Rung::Landlock,
            "sh: 1: cannot create src/new: Permission denied",
        ),
        (Rung::Landlock, "fatal: could not open: Permission denied"),
    ];
    insta::assert_snapshot!(table(&lines), @r#"
    ./build.sh: line 2: report.xml: Permission denied
      the sandbox (Landlock) lets a build make nothing new at the top of the tree: let it write into a folder that is there, or use `--sandbox namespaces`
    ./build.sh: 2: ./build.sh: cannot create report.xml: Permission denied
      the sandbox (Landlock) lets a build make nothing new at the top of the tree: let it write into a folder that is there, or use `--sandbox namespaces`
    /usr/bin/ld: cannot open output file a.out: Permission denied
      the sandbox (Landlock) lets a build make nothing new at the top of the tree: let it write into a folder that is there, or use `--sandbox namespaces`
    PermissionError: [Errno 13] Permission denied: 'report.xml'
      the sandbox (Landlock) lets a build make nothing new at the top of the tree: let it write into a folder that is there, or use `--sandbox namespaces`
    Error: EACCES: permission denied, open 'report.xml'
      the sandbox (Landlock) lets a build make nothing new at the top of the tree: let it write into a folder that is there, or use `--sandbox namespaces`
    sh: 1: cannot create src/new: Permission denied
      nothing
    fatal: could not open: Permission denied
      the sandbox lets a build write only in the work tree: allow more with `--writable FOLDER` or `[sandbox] writable = ["FOLDER"]`
    "#);
}

#[test]
fn a_success_is_not_explained() {
    let output = Output {
        ended: Ended::Exited(0),
        captured: Captured {
            head: b"warning: Could not resolve host".to_vec(),
            ..Captured::default()
        },
        apart: None,
        elapsed: Duration::ZERO,
        survivors_killed: 0,
        survivors_left: 0,
        denied: Vec::new(),
        refused: Vec::new(),
    };
    let confinement = Confinement {
        rung: Rung::Namespaces,
        access: Access::default(),
    };
    assert_eq!(explain(&output, &confinement), None);
}

#[test]
fn of_many_lines_the_sandbox_is_looked_at_once() {
    let tools = tempfile::tempdir().unwrap();
    let path: Vec<_> = (0..300)
        .map(|number| tools.path().join(number.to_string()))
        .collect();
    path.iter()
        .for_each(|folder| std::fs::create_dir(folder).unwrap());
    let access = Access {
        tree: "/work tree".into(),
        path,
        ..Access::default()
    };
    let text = "a.c:1: fatal error: x/y.h: No such file or directory\n".repeat(3000);
    let output = Output {
        ended: Ended::Exited(1),
        captured: Captured {
            total_bytes: text.len() as u64,
            head: text.into_bytes(),
            ..Captured::default()
        },
        apart: None,
        elapsed: Duration::ZERO,
        survivors_killed: 0,
        survivors_left: 0,
        denied: Vec::new(),
        refused: Vec::new(),
    };
    let begun = crate::wait::now();
    assert_eq!(
        explain(
            &output,
            &Confinement {
                rung: Rung::Namespaces,
                access
            }
        ),
        None
    );
    assert!(
        begun.elapsed() < Duration::from_secs(10),
        "{:?}",
        begun.elapsed()
    );
}

#[test]
fn no_hint_offers_a_secret_or_a_file_of_ours() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let files = [
        "tree/agent-config/gemini-key.txt",
        "tree/.git/code-commit/runs/log",
        "other/server.pem",
        "other/my-key.txt",
        "other/fine",
    ];
    for file in files {
        std::fs::create_dir_all(at(file).parent().unwrap()).unwrap();
        std::fs::File::create(at(file)).unwrap();
    }
    let mut table = String::new();
    for (rung, message) in [
        (Rung::Namespaces, "No such file or directory"),
        (Rung::Landlock, "Permission denied"),
    ] {
        for file in files {
            let output = output(&format!("cat: {}: {message}", at(file).display()));
            let masked = vec![at("tree/agent-config"), at("tree/.git/code-commit/runs")];
            let access = Access {
                tree: at("tree"),
                masked,
                ..Access::default()
            };
            let hint =
                explain(&output, &Confinement { rung, access }).unwrap_or("no hint".to_owned());
            table.push_str(&format!(
                "{file}\n  {}\n",
                hint.replace(&folder.path().display().to_string(), "")
            ));
        }
    }
    insta::assert_snapshot!(table, @r#"
    tree/agent-config/gemini-key.txt
      the sandbox hides /tree/agent-config/gemini-key.txt from every build
    tree/.git/code-commit/runs/log
      the sandbox hides /tree/.git/code-commit/runs/log from every build
    other/server.pem
      no hint
    other/my-key.txt
      no hint
    other/fine
      the sandbox hides /other/fine: show it with `--readable /other/fine` or `[sandbox] readable = ["/other/fine"]`
    tree/agent-config/gemini-key.txt
      the sandbox hides /tree/agent-config/gemini-key.txt from every build
    tree/.git/code-commit/runs/log
      the sandbox hides /tree/.git/code-commit/runs/log from every build
    other/server.pem
      no hint
    other/my-key.txt
      no hint
    other/fine
      the sandbox hides /other/fine: show it with `--readable /other/fine` or `[sandbox] readable = ["/other/fine"]`
    "#);
}

#[test]
fn a_refused_host_is_named_also_where_the_code_was_judged() {
    let host = "example.com:8443".to_owned();
    let refused = vec![crate::RefusedHost {
        host,
        why: crate::Refusal::NotAllowed,
    }];
    let output = Output {
        refused,
        ..output("1 failed in 0.02s")
    };
    let confinement = Confinement {
        rung: Rung::Namespaces,
        access: Access::default(),
    };
    insta::assert_snapshot!(explain(&output, &confinement).unwrap(), @r#"the command did not reach example.com:8443 (not an allowed host): allow the host with `--allow-host example.com:8443` or `[sandbox] hosts = ["example.com:8443"]`"#);
}
