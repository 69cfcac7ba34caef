//! Where the commands of a page are run: a home, a shell, a model on loopback, and nothing of the caller's but the search path.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use code_commit_fixtures::server::{Script, Server, Step};

use crate::scenes::program::{Ran as Done, tool};

/// A key that opens nothing.
const KEY: &str = "AIzaSyDocs-key-of-no-use-33";
/// What the model answers, as often as it is asked: right for the project of the tutorial.
const REPLY: &str = "^^^greet.sh\ngreet() {\n    echo \"Hello, ${1:-world}!\"\n}\n^^^end\n";
/// Says something in a file that says nothing.
const EDITOR: &str =
    "#!/bin/sh\n[ -s \"$1\" ] || echo 'Without a name greet shall greet the world.' >\"$1\"\n";
/// The project of the tutorial, for the README.
const PROJECT: [(&str, &str); 2] = [
    ("greet.sh", "greet() {\n    echo \"Hello!\"\n}\n"),
    (
        "build.sh",
        "#!/bin/sh\n. ./greet.sh\n[ \"$(greet)\" = 'Hello, world!' ]\n",
    ),
];

/// What a command printed, both streams as they came, and its exit code.
pub(crate) struct Ran {
    pub(crate) printed: String,
    pub(crate) code: i32,
}

/// A scratch home. What one command exports and where it goes is there for the next.
pub(crate) struct World {
    // Dropped last: the folder of everything below.
    folder: tempfile::TempDir,
    home: PathBuf,
    server: Server,
}

impl World {
    pub(crate) fn new() -> Self {
        let folder = tempfile::Builder::new()
            .prefix("code-commit-docs-")
            .tempdir()
            .unwrap();
        let home = std::fs::canonicalize(folder.path()).unwrap().join("home");
        std::fs::create_dir(&home).unwrap();
        // What a command keeps in the temporary folder goes with the world.
        let temporary = home.with_file_name("tmp");
        std::fs::create_dir(&temporary).unwrap();
        let server = Server::start(Script::new([Step::text(REPLY).times(20)])).unwrap();
        let world = Self {
            folder,
            home,
            server,
        };
        let origin = world.server.origin();
        let programs = Path::new(env!("CARGO_BIN_EXE_code-commit"))
            .parent()
            .unwrap();
        world.store("code", "0");
        world.store("folder", world.home.to_str().unwrap());
        world.store(
            "environment",
            &format!(
                "export GOOGLE_GEMINI_BASE_URL='{origin}' GEMINI_API_KEY='{KEY}' TMPDIR='{}' PATH='{}':\"$PATH\"\n",
                temporary.display(),
                programs.display()
            ),
        );
        world.store("editor", EDITOR);
        make_executable(&world.folder.path().join("editor"));
        let git = "[user]\n\tname = Somebody\n\temail = somebody@localhost\n[init]\n\tdefaultBranch = main\n";
        std::fs::write(world.home.join(".gitconfig"), git).unwrap();
        world
    }

    /// A git repository with the project of the tutorial, not yet prepared.
    pub(crate) fn with_project(self, name: &str) -> Self {
        std::fs::create_dir(self.home.join(name)).unwrap();
        for (file, text) in PROJECT {
            std::fs::write(self.home.join(name).join(file), text).unwrap();
        }
        let made = format!(
            "cd {name} && chmod +x build.sh && git init -q && git add -A && git commit -qm begin && cd .."
        );
        assert_eq!(self.run(&made).code, 0);
        self
    }

    /// A file in the folder that the last command went to. `*.sh` files are executable.
    pub(crate) fn save(&self, name: &str, lines: &[String]) {
        let path = Path::new(&self.recall("folder")).join(name);
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        if path.extension().is_some_and(|extension| extension == "sh") {
            make_executable(&path);
        }
    }

    /// Runs a command where the last one left off.
    pub(crate) fn run(&self, command: &str) -> Ran {
        let state = self.folder.path().display();
        let script = format!(
            "exec 2>&1\n. '{state}/environment'\ncd \"$(cat '{state}/folder')\"\n(exit \"$(cat '{state}/code')\")\n\
             {command}\ncode=$?\nexport -p >'{state}/environment'\npwd >'{state}/folder'\necho $code >'{state}/code'\nexit $code\n"
        );
        let mut shell = tool("/bin/sh", &self.home, &self.home, &["-c", &script]);
        shell
            .env("LANG", "C.UTF-8")
            .env("EDITOR", self.folder.path().join("editor"));
        let done = Done::of(&mut shell);
        // Temporary paths as a page would write them.
        let printed = done.out.replace(self.home.to_str().unwrap(), "/home/you");
        Ran {
            printed,
            code: done.code.unwrap_or(-1),
        }
    }

    fn store(&self, name: &str, text: &str) {
        std::fs::write(self.folder.path().join(name), text).unwrap();
    }

    fn recall(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(name))
            .unwrap()
            .trim_end()
            .to_owned()
    }
}

fn make_executable(path: &Path) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}
