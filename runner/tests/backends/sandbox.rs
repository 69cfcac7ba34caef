//! What ordinary programs find in each sandbox. What hostile ones can do is in `probes.rs`.

use std::fs;
use std::io::Write as _;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;

use crate::support::{Scratch, assert_ok, attempt, backends, sandboxes, works};
use code_commit_runner::{Access, AllowedHost, Backend, Command, Confinement, Ended};

/// What the standard library of most languages does before it listens or connects.
#[test]
fn localhost_and_the_name_of_the_machine_resolve_wherever_there_is_a_loopback() {
    let has_loopback = |backend: &Backend| *backend != Backend::Landlock;
    for backend in backends().into_iter().filter(has_loopback) {
        for network in [false, true] {
            let scratch = Scratch::new();
            let access = Access {
                network,
                ..scratch.access()
            };
            let line = "getent hosts localhost && getent hosts \"$(uname -n)\"";
            let output = scratch.sh_with(backend, &access, line);
            assert!(
                output.success(),
                "{backend}, network {network}: {}",
                output.text()
            );
        }
    }
}

/// Namespaces of a user who is not root are set up in another way, and other checks of the kernel apply.
#[test]
fn a_user_without_rights_is_confined_like_root() {
    crate::support::run_as_another_user(&[
        "sandbox::a_link_that_a_build_planted_opens_nothing",
        "sandbox::no_folder_is_made_through_a_link_that_a_build_planted",
        "sandbox::a_folder_below_what_is_held_can_be_opened_unless_it_is_a_link",
        "sandbox::localhost_and_the_name_of_the_machine_resolve_wherever_there_is_a_loopback",
        "sandbox::a_name_that_a_command_looks_up_does_not_exist_and_is_listed",
    ]);
}

#[test]
fn cargo_builds_offline_in_every_sandbox() {
    for backend in backends() {
        let scratch = Scratch::new();
        scratch.write(
            "tree/Cargo.toml",
            "[package]\nname = \"tiny\"\nedition = \"2024\"\n",
        );
        scratch.write(
            "tree/Cargo.lock",
            "version = 4\n\n[[package]]\nname = \"tiny\"\nversion = \"0.0.0\"\n",
        );
        scratch.write("tree/src/main.rs", "fn main() { println!(\"built\") }\n");
        let cargo = scratch.run(
            backend,
            &scratch.command(&["cargo", "build", "--locked", "--offline"]),
        );
        assert_ok(backend, &cargo);
        let program = scratch.run(backend, &scratch.command(&["target/debug/tiny"]));
        assert_eq!(program.text(), "built\n", "{backend}");
    }
}

#[test]
fn each_ending_is_told_apart_in_every_sandbox() {
    let scratch = Scratch::new();
    scratch.write("tree/src/plain", "text");
    for backend in backends() {
        for (argv, ended) in [
            (&["sh", "-c", "exit 7"][..], Ended::Exited(7)),
            (&["sh", "-c", "exit 127"], Ended::Exited(127)),
            (&["sh", "-c", "kill -SEGV $$"], Ended::Signaled(11)),
            (&["no-such-program"], Ended::NotFound),
            (&["./src/no-such-program"], Ended::NotFound),
            (&["./src/plain"], Ended::NotExecutable),
        ] {
            let output = scratch.run(backend, &scratch.command(argv));
            assert_eq!(output.ended, ended, "{backend}: {argv:?}");
        }
    }
}

#[test]
fn a_program_in_the_sandbox_is_not_found_rather_than_a_failed_build() {
    let scratch = Scratch::new();
    scratch.compile("daemon");
    let hidden = scratch.at("outside/program");
    fs::copy(scratch.at("tree/src/daemon"), &hidden).unwrap();
    for backend in [Backend::Namespaces, Backend::Landlock]
        .into_iter()
        .filter(|backend| works(*backend))
    {
        let output = scratch.run(
            backend,
            &scratch.command(&[hidden.to_str().unwrap(), "exit", "token"]),
        );
        assert!(
            matches!(output.ended, Ended::NotFound | Ended::NotExecutable),
            "{backend}: {output:?}"
        );
    }
}

#[test]
fn what_is_opened_of_the_home_is_found_there_and_what_is_made_beside_it_is_thrown_away() {
    for backend in sandboxes() {
        let scratch = Scratch::new();
        fs::create_dir_all(scratch.at("home/.tool/sessions")).unwrap();
        scratch.write("home/.tool/settings", "mine\n");
        let mut access = scratch.access();
        access.readable = vec![scratch.at("home/.tool/settings")];
        access.writable = vec![
            scratch.at("home/.tool/sessions"),
            scratch.at("home/.tool/sessions/old"),
        ];
        let line = "cd ~/.tool && cat settings && echo x > sessions/kept && echo x > new && mkdir deep && \
            ! sh -c 'echo evil >> settings'";
        let output = scratch.sh_with(backend, &access, line);
        assert_ok(backend, &output);
        assert!(output.text().contains("mine"), "{backend}");
        let mut names: Vec<_> = fs::read_dir(scratch.at("home/.tool"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(names, ["sessions", "settings"], "{backend}");
        assert!(scratch.at("home/.tool/sessions/kept").exists(), "{backend}");
        assert_eq!(scratch.read("home/.tool/settings"), "mine\n", "{backend}");
    }
}

#[test]
fn what_the_configuration_opens_is_open() {
    for backend in sandboxes() {
        let scratch = Scratch::new();
        let mut access = scratch.access();
        access.writable = vec![scratch.at("outside"), scratch.at("tree/dist/deep")];
        access.readable = vec![scratch.at("home/.ssh")];
        let line = format!(
            "cat {} && echo new > {} && echo new > dist/deep/file",
            scratch.at("home/.ssh/id").display(),
            scratch.at("outside/file").display()
        );
        let output = scratch.sh_with(backend, &access, &line);
        assert_eq!(output.text(), "secret\n", "{backend}");
        assert_eq!(scratch.read("outside/file"), "new\n", "{backend}");
        assert_eq!(scratch.read("tree/dist/deep/file"), "new\n", "{backend}");
    }
}

/// Asks the proxy that the environment names for a tunnel to `$1`, and prints what comes through.
const TUNNEL: &str = "proxy=${HTTPS_PROXY#http://}
exec 3<>/dev/tcp/${proxy%:*}/${proxy#*:}
printf 'CONNECT %s HTTP/1.1\\r\\n\\r\\n' \"$1\" >&3
cat <&3";

#[test]
fn an_allowed_host_is_reached_by_the_proxy_and_no_other() {
    if !works(Backend::Namespaces) {
        return;
    }
    let scratch = Scratch::new();
    let servers = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let [allowed, other] = servers
        .each_ref()
        .map(|server| server.local_addr().unwrap());
    let [server, _] = servers;
    let answer = std::thread::spawn(move || server.accept().unwrap().0.write_all(b"from outside"));
    let hosts = vec![AllowedHost::parse(&allowed.to_string()).unwrap()];
    let access = Access {
        hosts,
        ..scratch.access()
    };
    let asked = |address: std::net::SocketAddr| {
        let command = scratch.command(&["bash", "-c", TUNNEL, "bash", &address.to_string()]);
        attempt(&command, Backend::Namespaces, &access).unwrap()
    };
    let reached = asked(allowed);
    assert_eq!(
        reached.text(),
        "HTTP/1.1 200 Connection established\r\n\r\nfrom outside"
    );
    answer.join().unwrap().unwrap();
    let refused = asked(other);
    assert!(
        refused
            .text()
            .contains(&format!("{other}: not an allowed host"))
    );
    let listed: Vec<String> = refused.refused.iter().map(ToString::to_string).collect();
    assert_eq!(
        (listed, reached.refused),
        (vec![format!("{other} (not an allowed host)")], vec![])
    );
    // Past the proxy there is nothing.
    let line = format!("exec 3<>/dev/tcp/{}/{}", allowed.ip(), allowed.port());
    let direct = scratch.command(&["bash", "-c", &line]);
    assert!(
        !attempt(&direct, Backend::Namespaces, &access)
            .unwrap()
            .success()
    );
}

/// Nobody answers but the harness, and at once: a build tool tries for a minute otherwise.
#[test]
fn a_name_that_a_command_looks_up_does_not_exist_and_is_listed() {
    if !works(Backend::Namespaces) {
        return;
    }
    let scratch = Scratch::new();
    let line = "getent ahosts Registry.Example; getent ahosts registry.example; getent hosts other.example; \
        getent hosts localhost; getent hosts x.localhost; getent hosts no.invalid; getent hosts 'a;b.example'; exit 3";
    for (hosts, listed) in [
        (Vec::new(), vec!["registry.example", "other.example"]),
        (
            vec![AllowedHost::parse("registry.example").unwrap()],
            vec!["other.example"],
        ),
    ] {
        let access = Access {
            hosts,
            ..scratch.access()
        };
        let output = scratch.sh_with(Backend::Namespaces, &access, line);
        assert_eq!(output.ended, Ended::Exited(3), "{}", output.text());
        let names: Vec<&str> = output.refused.iter().map(|one| &*one.host).collect();
        assert_eq!(names, listed, "{}", output.text());
        assert!(output.elapsed < std::time::Duration::from_secs(3));
    }
}

#[test]
fn a_sandbox_that_cannot_open_single_hosts_runs_nothing() {
    for backend in backends()
        .into_iter()
        .filter(|backend| !matches!(backend, Backend::Off | Backend::Namespaces))
    {
        let scratch = Scratch::new();
        let hosts = vec![AllowedHost::parse("example.org").unwrap()];
        let access = Access {
            hosts,
            ..scratch.access()
        };
        let result = attempt(&scratch.command(&["true"]), backend, &access);
        assert!(
            result.unwrap_err().to_string().contains("single hosts"),
            "{backend}"
        );
    }
}

/// A variable that the user passes on may name a file in the tree, which a build can replace. The programs that
/// set the sandbox up must not load it, because they run outside.
#[test]
fn a_library_that_a_build_planted_is_not_loaded_outside() {
    let source =
        "#include <fcntl.h>\n__attribute__((constructor)) void run(void) { creat(MARK, 0644); }\n";
    for backend in sandboxes() {
        let scratch = Scratch::new();
        let (library, mark) = (
            scratch.at("tree/src/planted.so"),
            scratch.at("outside/mark"),
        );
        scratch.write("tree/src/planted.c", source);
        let mut cc = std::process::Command::new("cc");
        cc.args(["-shared", "-fPIC", "-o"])
            .arg(&library)
            .arg(format!("-DMARK=\"{}\"", mark.display()));
        assert!(
            cc.arg(scratch.at("tree/src/planted.c"))
                .status()
                .unwrap()
                .success()
        );
        let mut command = scratch.command(&["sh", "-c", "echo $LD_PRELOAD"]);
        command.env.set("LD_PRELOAD", &library);
        let output = scratch.run(backend, &command);
        assert_eq!(
            output.text(),
            format!("{}\n", library.display()),
            "{backend}"
        );
        assert!(!mark.exists(), "{backend}");
    }
}

#[test]
fn a_link_that_a_build_planted_opens_nothing() {
    for backend in sandboxes() {
        let scratch = Scratch::new();
        fs::remove_dir(scratch.at("tree/target")).unwrap();
        scratch.link("outside", "tree/target");
        scratch.link("home/.ssh", "tree/keys");
        let mut access = scratch.access();
        access.writable = vec![scratch.at("tree/target")];
        access.readable = vec![scratch.at("tree/keys")];
        let command = scratch.command(&["sh", "-c", "cat keys/id; echo x > target/file"]);
        let output = attempt(&command, backend, &access).unwrap();
        assert!(
            !output.text().contains("secret"),
            "{backend}: {}",
            output.text()
        );
        assert!(!scratch.at("outside/file").exists(), "{backend}");
    }
}

#[test]
fn no_folder_is_made_through_a_link_that_a_build_planted() {
    for backend in sandboxes() {
        let scratch = Scratch::new();
        scratch.link("outside", "tree/planted");
        let mut access = scratch.access();
        access.writable = vec![scratch.at("tree/planted/new")];
        let result = attempt(&scratch.command(&["true"]), backend, &access);
        assert!(
            matches!(result, Err(code_commit_runner::RunError::Sandbox { .. })),
            "{backend}: {result:?}"
        );
        assert!(!scratch.at("outside/new").exists(), "{backend}");
    }
}

#[test]
fn the_home_folder_is_never_a_work_tree_in_a_sandbox() {
    let scratch = Scratch::new();
    for backend in sandboxes() {
        let mut access = scratch.access();
        access.tree = scratch.at("home");
        let command = Command::new(["true"], scratch.at("home"), scratch.env());
        let error = attempt(&command, backend, &access).unwrap_err();
        assert!(
            error.to_string().contains("home directory"),
            "{backend}: {error}"
        );
    }
}

#[test]
fn no_descriptor_of_the_harness_reaches_the_command() {
    let scratch = Scratch::new();
    let plain = scratch.sh(Backend::Off, "ls /proc/self/fd").text();
    let is_here = |backend: &Backend| *backend != Backend::Docker;
    for backend in backends().into_iter().filter(is_here) {
        assert_eq!(
            scratch.sh(backend, "ls /proc/self/fd").text(),
            plain,
            "{backend}"
        );
    }
}

/// What is mounted there cannot be made read-only by somebody who cannot reach it, nor changed.
#[test]
fn a_mount_that_only_root_may_enter_is_in_nobodys_way() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: only root can mount anything");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let helper = folder.path().join("hold");
    assert!(
        std::process::Command::new("cp")
            .arg(crate::support::helper())
            .arg(&helper)
            .status()
            .unwrap()
            .success()
    );
    // In a mount namespace of its own, and as another user.
    let ended = |mounts: &str| {
        let script =
            format!("{mounts}\nexec setpriv --reuid 65534 --regid 65534 --clear-groups \"$@\"");
        let mut shell = std::process::Command::new("unshare");
        shell
            .args(["--mount", "sh", "-c", &script, "sh"])
            .arg(&helper)
            .arg("namespaces")
            .arg(folder.path());
        let output = shell
            .arg("true")
            .env_clear()
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .output()
            .unwrap();
        (
            output.status.success(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    };
    let closed = "mount -t tmpfs none /opt && mkdir -m 700 -p /opt/closed && mkdir /opt/closed/in && mount -t tmpfs none /opt/closed/in || exit 9";
    if !ended("").0 {
        eprintln!(
            "SKIPPED: namespaces do not work here as another user: {}",
            ended("").1
        );
        return;
    }
    assert_eq!(ended(closed), (true, String::new()));
}

/// A program that starts ours may have left it a descriptor of anything.
#[test]
fn no_descriptor_that_the_harness_inherited_reaches_the_command() {
    let scratch = Scratch::new();
    scratch.write("outside/note", "secret\n");
    let is_here = |backend: &Backend| *backend != Backend::Docker;
    for backend in backends().into_iter().filter(is_here) {
        let mut shell = std::process::Command::new("sh");
        shell
            .args(["-c", "exec 7< \"$0\"; exec \"$@\""])
            .arg(scratch.at("outside/note"));
        shell
            .arg(crate::support::helper())
            .arg(backend.to_string())
            .arg(scratch.at("tree"));
        let output = shell
            .args(["sh", "-c", "cat <&7; echo; echo ran"])
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(
            text.contains("ran") && !text.contains("secret"),
            "{backend}: {text}"
        );
    }
}

/// `/proc` opens anew what a descriptor leads to, with the rights of the mount that the harness has.
#[test]
fn the_input_of_a_command_is_read_and_never_changed() {
    for backend in sandboxes() {
        let scratch = Scratch::new();
        scratch.write("outside/input", "orders\n");
        let mut command = scratch.command(&[
            "sh",
            "-c",
            "cat; echo changed > /proc/self/fd/0; chmod 0 /proc/self/fd/0",
        ]);
        command.input = Some(scratch.at("outside/input"));
        let output = scratch.run(backend, &command);
        assert!(
            output.text().starts_with("orders\n"),
            "{backend}: {}",
            output.text()
        );
        assert_eq!(scratch.read("outside/input"), "orders\n", "{backend}");
        let mode = fs::metadata(scratch.at("outside/input"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o644, "{backend}");
    }
}

#[test]
fn a_folder_below_what_is_held_can_be_opened_unless_it_is_a_link() {
    for backend in sandboxes() {
        let scratch = Scratch::new();
        fs::create_dir_all(scratch.at("tree/store/open")).unwrap();
        scratch.link("outside", "tree/store/link");
        let mut access = scratch.access();
        access
            .read_only
            .extend(["tree/store", "tree/not-there"].map(|path| scratch.at(path)));
        access
            .writable
            .extend(["tree/store/open", "tree/store/link"].map(|path| scratch.at(path)));
        let line = "touch store/open/new; touch store/new; touch store/link/new; mv store other; test -e store/open/new";
        let output = scratch.sh_with(backend, &access, line);
        assert_ok(backend, &output);
        assert!(
            scratch.at("tree/store/open/new").exists() && !scratch.at("tree/store/new").exists(),
            "{backend}"
        );
        assert!(!scratch.at("outside/new").exists(), "{backend}");
    }
}

#[test]
fn a_toolchain_finds_what_lies_beside_its_programs_and_nothing_else_of_its_folder() {
    for backend in sandboxes() {
        let scratch = Scratch::new();
        for file in [
            "home/tools/lib/part",
            "home/tools/share/keyring",
            "home/lib/part",
        ] {
            scratch.write(file, file);
        }
        let folders = ["home/tools/bin", "home/bin"].map(|folder| scratch.at(folder));
        folders
            .iter()
            .for_each(|folder| fs::create_dir_all(folder).unwrap());
        let mut access = scratch.access();
        access.path.extend(folders);
        let seen = |file: &str| {
            let command = scratch.command(&["cat", scratch.at(file).to_str().unwrap()]);
            attempt(&command, backend, &access).unwrap().ended == Ended::Exited(0)
        };
        assert!(seen("home/tools/lib/part"), "{backend}");
        assert!(
            !seen("home/tools/share/keyring") && !seen("home/lib/part"),
            "{backend}"
        );
    }
}

/// A folder with these programs, and with what a Python needs to be one.
fn install(scratch: &Scratch, prefix: &str, programs: &[&str]) {
    for file in programs
        .iter()
        .map(|name| format!("bin/{name}"))
        .chain(["lib/python3.12/os.py".to_owned()])
    {
        let file = scratch.at(prefix).join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, "#!/bin/sh\necho \"I am $0\"; cat \"$(dirname \"$(readlink -f \"$0\")\")/../lib/python3.12/os.py\"\n").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    }
}

/// As uv, pipx and `python -m venv` lay them out: the link in `PATH` leads to an environment, whose interpreter
/// is a link to another installation. An environment in the project finds those that version managers keep.
#[test]
fn an_environment_is_its_configuration_and_the_interpreter_that_it_leads_to() {
    for backend in sandboxes() {
        let scratch = Scratch::new();
        install(
            &scratch,
            "home/.local/share/uv/python/cpython-3.12.9",
            &["python3.12", "python3"],
        );
        scratch.link(
            "home/.local/share/uv/python/cpython-3.12.9",
            "home/.local/share/uv/python/cpython-3.12",
        );
        for environment in ["home/envs/tool", "outside/venv", "tree/.venv"] {
            scratch.link(
                "home/.local/share/uv/python/cpython-3.12/bin/python3.12",
                &format!("{environment}/bin/python"),
            );
            let base = format!(
                "home = {}\n",
                scratch
                    .at("home/.local/share/uv/python/cpython-3.12/bin")
                    .display()
            );
            scratch.write(&format!("{environment}/pyvenv.cfg"), base);
        }
        install(&scratch, "home/envs/tool", &["tool"]);
        scratch.link("home/envs/tool/bin/tool", "home/.local/bin/tool");
        scratch.write("home/envs/secret", "secret\n");
        let mut access = scratch.access();
        access.path = vec![
            scratch.at("home/.local/bin"),
            scratch.at("outside/venv/bin"),
        ];
        let said = |line: &str| scratch.sh_with(backend, &access, line);
        let at = |path: &str| scratch.at(path).display().to_string();
        for line in [
            format!(
                "{} && cat {}",
                at("home/.local/bin/tool"),
                at("home/envs/tool/pyvenv.cfg")
            ),
            format!(
                "{} && cat {}",
                at("outside/venv/bin/python"),
                at("outside/venv/pyvenv.cfg")
            ),
            ".venv/bin/python".to_owned(),
        ] {
            let output = said(&line);
            assert!(output.success(), "{backend}: {line}: {}", output.text());
        }
        assert!(
            !said(&format!("cat {}", at("home/envs/secret"))).success(),
            "{backend}"
        );
    }
}

/// The tree is the build's: nothing in it decides what is shown of the machine, and no link through it is followed.
#[test]
fn what_a_build_wrote_shows_nothing_of_the_machine_to_the_next_one() {
    for backend in sandboxes() {
        let scratch = Scratch::new();
        install(&scratch, "home/private", &["run", "python3"]);
        install(&scratch, "tree/target/fake", &["python3"]);
        scratch.link("home/private/bin/run", "tree/.venv/bin/python");
        scratch.link("home", "tree/target/fake/libexec");
        scratch.link("home/private/bin/run", "tree/target/fake/bin/run");
        // What the user made leads through the tree.
        scratch.link("tree/target/fake/bin/run", "home/.local/bin/run");
        scratch.link("home", "tree/target/open");
        scratch.link("tree/target/open", "outside/link");
        let fake = scratch.at("tree/target/fake/bin");
        let homes = [
            scratch.at("home/private/bin"),
            std::path::Path::new("/tmp/..").join(fake.strip_prefix("/").unwrap()),
        ];
        for home in homes {
            let base = format!("home = {}\n", home.display());
            scratch.write("tree/.venv/pyvenv.cfg", base);
            let mut access = scratch.access();
            access
                .path
                .extend(["tree/.venv/bin", "home/.local/bin"].map(|folder| scratch.at(folder)));
            access.readable.push(scratch.at("outside/link/private"));
            for file in ["private/bin/run", "private/lib/python3.12/os.py"] {
                let command =
                    scratch.command(&["cat", scratch.at("home").join(file).to_str().unwrap()]);
                let output = attempt(&command, backend, &access).unwrap();
                assert!(
                    !output.success(),
                    "{backend}: {}: {}",
                    home.display(),
                    output.text()
                );
            }
        }
    }
}

/// Under Landlock and in Docker no other file can take its place.
#[test]
fn a_command_sees_no_secret_of_gits_configuration_and_git_still_works() {
    for backend in sandboxes() {
        let scratch = Scratch::new();
        fs::remove_dir_all(scratch.at("tree/.git")).unwrap();
        let lines = "git init -q -b main . && git remote add origin https://me:s3cret@host/x.git && git config http.extraHeader s3cret";
        assert!(scratch.sh(Backend::Off, lines).success());
        for file in ["tree/.git/modules/sub/config", "cargo/git/db/x-1/config"] {
            scratch.write(
                file,
                "[remote \"origin\"]\n\turl = https://s3cret@host/y.git\n",
            );
        }
        let mut access = scratch.access();
        access.cargo_home = Some(scratch.at("cargo"));
        let said = |line: &str| scratch.sh_with(backend, &access, line);
        let all = format!(
            "cat .git/config .git/modules/sub/config {}/git/db/x-1/config; git config --list",
            scratch.at("cargo").display()
        );
        assert!(!said(&all).text().contains("s3cret"), "{backend}");
        if backend == Backend::Namespaces {
            let output = said("git status && git remote get-url origin");
            assert!(
                output.success() && output.text().ends_with("\nhttps://host/x.git\n"),
                "{backend}: {}",
                output.text()
            );
        }
    }
}

#[test]
fn a_git_directory_of_any_name_is_read_only_without_secrets_and_without_our_state() {
    for backend in sandboxes() {
        for (git_dir, dot_git) in [(".git", ""), ("real", "gitdir: real"), ("real", "link")] {
            let scratch = Scratch::new();
            fs::remove_dir_all(scratch.at("tree/.git")).unwrap();
            let lines = "git init -q -b main . && git config http.extraHeader s3cret && mkdir -p .git/code-commit/runs && echo s3cret >.git/code-commit/runs/a.test.js";
            assert!(scratch.sh(Backend::Off, lines).success());
            let (usual, place) = (scratch.at("tree/.git"), scratch.at("tree").join(git_dir));
            fs::rename(&usual, &place).unwrap();
            match dot_git {
                "" => {}
                "link" => std::os::unix::fs::symlink(git_dir, &usual).unwrap(),
                file => fs::write(&usual, file).unwrap(),
            }
            let mut access = scratch.access();
            access.read_only.push(place.clone());
            let line = format!(
                "echo evil >{git_dir}/HEAD; mkdir {git_dir}/new; grep -r s3cret {git_dir}; ls {git_dir}/code-commit"
            );
            let output = attempt(&scratch.command(&["sh", "-c", &line]), backend, &access);
            let text = output.unwrap().text();
            let what = format!("{backend}, {git_dir} {dot_git}: {text}");
            assert!(!text.contains("s3cret\n"), "{what}");
            // Landlock hides contents only: a folder that can be listed can be listed to its end.
            assert!(
                backend == Backend::Landlock || !text.contains("runs"),
                "{what}"
            );
            let head = fs::read_to_string(place.join("HEAD")).unwrap();
            assert!(
                head.starts_with("ref: ") && !place.join("new").exists(),
                "{what}"
            );
        }
    }
}

/// A configuration of the system that is there and cannot be read would stop git.
#[test]
fn git_works_in_every_sandbox_whatever_the_system_configures() {
    if !std::path::Path::new("/etc/gitconfig").exists() {
        eprintln!("SKIPPED: git with a configuration of the system, which is missing here");
    }
    // Which file it is depends on how git was built.
    let line = "GIT_CONFIG_SYSTEM=/etc/gitconfig git status --short --branch";
    for backend in backends() {
        let scratch = Scratch::new();
        fs::remove_dir_all(scratch.at("tree/.git")).unwrap();
        assert!(scratch.sh(Backend::Off, "git init -q -b main .").success());
        let output = scratch.sh(backend, line);
        assert_ok(backend, &output);
    }
}

#[test]
fn a_tool_that_the_sandbox_hides_is_told_with_what_takes_its_place() {
    let scratch = Scratch::new();
    for file in ["home/mine/make", "outside/other/go"] {
        scratch.write(file, "#!/bin/sh\n");
        fs::set_permissions(scratch.at(file), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let mut env = scratch.env();
    // A link to a program in a folder of another name is not followed.
    fs::create_dir_all(scratch.at("home/bin")).unwrap();
    scratch.link("home/mine/make", "home/bin/make");
    env.set(
        "PATH",
        format!(
            "{}:{}:/usr/bin:/bin",
            scratch.at("home/bin").display(),
            scratch.at("outside/other").display()
        ),
    );
    let access = Access {
        docker_host: None,
        ..Access::new(scratch.at("tree"), &env)
    };
    let of = |backend| {
        let sees = code_commit_runner::visible(&Confinement {
            backend,
            access: access.clone(),
        });
        code_commit_runner::differing(&env, &access.tree, sees)
    };
    let [differs] = of(Backend::Namespaces).try_into().unwrap();
    assert_eq!(
        (differs.name, differs.outside),
        ("make", scratch.at("home/mine/make").canonicalize().unwrap())
    );
    assert!(
        differs
            .inside
            .is_none_or(|inside| inside.starts_with("/usr/bin"))
    );
    assert_eq!(of(Backend::Off), []);
}

/// Like pyenv, rbenv and nodenv: the shim reads which version is selected, and starts its program.
#[test]
fn a_shim_finds_the_version_that_was_chosen_and_cannot_change_it() {
    for backend in sandboxes() {
        let scratch = Scratch::new();
        let shim = "#!/bin/sh\nroot=$(dirname \"$0\")/..\nexec \"$root/versions/$(cat \"$root/version\")/bin/tool\"\n";
        let tool = "#!/bin/sh\necho 3.12 > \"$(dirname \"$0\")/../../../version\"\necho chosen\n";
        for (file, text) in [
            ("shims/tool", shim),
            ("versions/3.11/bin/tool", tool),
            ("version", "3.11\n"),
            ("secret", "s\n"),
        ] {
            let file = scratch.at("home/.pyenv").join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, text).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let mut access = scratch.access();
        access.path.push(scratch.at("home/.pyenv/shims"));
        let said = |argv: &[&str]| {
            attempt(&scratch.command(argv), backend, &access)
                .unwrap()
                .text()
        };
        let said_by_shim = said(&[scratch.at("home/.pyenv/shims/tool").to_str().unwrap()]);
        assert!(
            said_by_shim.ends_with("chosen\n"),
            "{backend}: {said_by_shim}"
        );
        assert_eq!(scratch.read("home/.pyenv/version"), "3.11\n", "{backend}");
        let secret = said(&["cat", scratch.at("home/.pyenv/secret").to_str().unwrap()]);
        assert!(!secret.starts_with("s\n"), "{backend}: {secret}");
    }
}
