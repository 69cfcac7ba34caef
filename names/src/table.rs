//! The table, with one section per user.

use crate::Binds::{Always, Commit, Implement, Unscoped};
use crate::By::{Hash, Phase, Spec};
use crate::Writer::{Build, Harness, Person};
use crate::{Binds, By, Kind, Name, Writer};

/// What no model may write. `.git` is not listed: `guard` refuses it at every level in every
/// spelling, by its characters.
pub const PROTECTED: &[Name] = &[
    protected("/.code-commit/", Always, Harness, "the harness's own state"),
    starts("/code-commit.toml", Always, "the harness's configuration"),
    starts(".gitmodules", Always, "where git fetches submodules from"),
    starts(
        "**/.abl/abl.config.yaml",
        Unscoped,
        "the commands that code-commit phase runs",
    ),
    starts(
        ".cuggino.json",
        Unscoped,
        "the commands that code-commit spec runs",
    ),
    protected(
        ".gitignore",
        Commit,
        Person,
        "what git ignores decides what may be written",
    ),
    protected(
        "/agent-config/",
        Unscoped,
        Person,
        "the harness's settings and keys",
    ),
    protected(
        "/Cargo.lock",
        Commit,
        Build,
        "the versions of all dependencies",
    ),
    protected(
        "/build.sh",
        Unscoped,
        Person,
        "the build decides whether the work is done",
    ),
    protected("/codeRollup.sh", Commit, Person, "the supervisor's script"),
    protected(
        "/LLMInstructions.md",
        Commit,
        Person,
        "the supervisor's instructions",
    ),
    protected(
        "UserSpecification.md",
        Commit,
        Person,
        "the user's specification",
    ),
    protected("/target/", Commit, Build, "build output"),
    protected("/logs/", Implement, Harness, "the records of runs"),
    protected(
        "/llm-user-output.txt",
        Implement,
        Harness,
        "the record of a run",
    ),
];

/// What S0 reads at the root, where other loops have files of the project. No model may write it
/// during that loop.
pub const INPUTS: &[Name] = &[
    input("/query.txt"),
    input("/codeRollup.txt"),
    input("/gemini-system-prompt.txt"),
    input("/*-key.txt"),
];

const AGENT_INSTRUCTIONS: &str = "instructions for a coding agent";

/// What some program runs later without being asked, or what changes what others see, in addition to such rows of
/// [`PROTECTED`]: the pattern, the program, and what it finds there.
pub const RUNS_LATER: &[Name] = &[
    later(".gitattributes", "git", "filters that git starts"),
    later(".husky/", "git", "hooks of git"),
    later(".githooks/", "git", "hooks of git"),
    later(".pre-commit-config.yaml", "pre-commit", "hooks of git"),
    later(".pre-commit-hooks.yaml", "pre-commit", "hooks of git"),
    later("lefthook.yml", "lefthook", "hooks of git"),
    later("lefthook.yaml", "lefthook", "hooks of git"),
    later(".lefthook.yml", "lefthook", "hooks of git"),
    later(".overcommit.yml", "overcommit", "hooks of git"),
    // Hooks, servers that they start, permissions.
    later(".claude/", "Claude Code", "settings of a coding agent"),
    later(
        ".mcp.json",
        "Claude Code",
        "servers that coding agents start",
    ),
    later(
        "mcp.json",
        "coding agents",
        "servers that coding agents start",
    ),
    later(".gemini/", "Gemini CLI", "settings of a coding agent"),
    later(".codex/", "Codex", "settings of a coding agent"),
    later(".cursor/", "Cursor", "settings of a coding agent"),
    later(".opencode/", "opencode", "settings of a coding agent"),
    later("opencode.json", "opencode", "settings of a coding agent"),
    later(".aider.conf.yml", "aider", "settings of a coding agent"),
    // Whoever writes one of these instructs the next agent.
    later("agents.md", "coding agents", AGENT_INSTRUCTIONS),
    later("claude.md", "Claude Code", AGENT_INSTRUCTIONS),
    later("gemini.md", "Gemini CLI", AGENT_INSTRUCTIONS),
    later(".cursorrules", "Cursor", AGENT_INSTRUCTIONS),
    later(
        ".github/copilot-instructions.md",
        "GitHub Copilot",
        AGENT_INSTRUCTIONS,
    ),
    later(".abl/", "code-commit phase", "prompts of code-commit phase"),
    later(".cuggino/", "code-commit spec", "tasks of code-commit spec"),
    // Tasks that run when a folder is opened, interpreters and servers by path, containers.
    later(".vscode/", "Visual Studio Code", "settings of an editor"),
    later(".idea/", "IDEs of JetBrains", "settings of an editor"),
    later(".zed/", "Zed", "settings of an editor"),
    later(
        ".devcontainer/",
        "Dev Containers",
        "a container that editors start",
    ),
    later(
        ".devcontainer.json",
        "Dev Containers",
        "a container that editors start",
    ),
    later(".exrc", "vi", "settings of an editor"),
    later(".nvimrc", "Neovim", "settings of an editor"),
    later(".nvim.lua", "Neovim", "settings of an editor"),
    later(".dir-locals.el", "Emacs", "settings of an editor"),
    later(".envrc", "direnv", "shells that enter the folder"),
    later(".mise.toml", "mise", "shells that enter the folder"),
    later("mise.toml", "mise", "shells that enter the folder"),
    // Forges have their own keys.
    later(".github/workflows/", "GitHub", "jobs of a forge"),
    later(".github/actions/", "GitHub", "jobs of a forge"),
    later(".gitea/workflows/", "Gitea", "jobs of a forge"),
    later(".forgejo/workflows/", "Forgejo", "jobs of a forge"),
    later(".gitlab-ci.yml", "GitLab", "jobs of a forge"),
    later(".circleci/", "CircleCI", "jobs of a forge"),
    later(".travis.yml", "Travis CI", "jobs of a forge"),
    later(".drone.yml", "Drone", "jobs of a forge"),
    later(".woodpecker.yml", "Woodpecker", "jobs of a forge"),
    later(".woodpecker/", "Woodpecker", "jobs of a forge"),
    later(".buildkite/", "Buildkite", "jobs of a forge"),
    later("azure-pipelines.yml", "Azure Pipelines", "jobs of a forge"),
    later("bitbucket-pipelines.yml", "Bitbucket", "jobs of a forge"),
    later("jenkinsfile", "Jenkins", "jobs of a forge"),
    // Tools that run code before they do their own work, or download it.
    later(".cargo/config", "cargo", "programs that cargo starts"),
    later(".cargo/config.toml", "cargo", "programs that cargo starts"),
    later("build.rs", "cargo", "cargo runs it before it compiles"),
    later(
        "rust-toolchain",
        "rustup",
        "the compiler that rustup fetches",
    ),
    later(
        "rust-toolchain.toml",
        "rustup",
        "the compiler that rustup fetches",
    ),
    later(".npmrc", "npm", "where npm fetches from"),
    later(".yarnrc", "yarn", "the program that yarn starts"),
    later(".yarnrc.yml", "yarn", "the program that yarn starts"),
    later(".yarn/", "yarn", "the program that yarn starts"),
    later(".pnpmfile.cjs", "pnpm", "pnpm runs it"),
    later(".mvn/", "Maven", "programs that Maven starts"),
    later(
        "gradle/wrapper/",
        "gradlew",
        "the program that gradlew fetches",
    ),
    later(".bazelrc", "Bazel", "programs that Bazel starts"),
    later("sitecustomize.py", "Python", "every Python runs it"),
    later("usercustomize.py", "Python", "every Python runs it"),
    later("*.pth", "Python", "lines of code that every Python runs"),
    later(
        "conftest.py",
        "pytest",
        "pytest runs it before it looks for tests",
    ),
    later(".pdbrc", "pdb", "commands of a debugger"),
    later(".gdbinit", "gdb", "commands of a debugger"),
    later(".lldbinit", "lldb", "commands of a debugger"),
    later("gnumakefile", "make", "make prefers it to the Makefile"),
    later(".latexmkrc", "latexmk", "latexmk runs it"),
    later("latexmkrc", "latexmk", "latexmk runs it"),
    later(".rspec", "RSpec", "files that RSpec loads"),
    later(".irbrc", "irb", "irb runs it"),
    later(".bundle/", "Bundler", "where Bundler takes gems from"),
    later(".rprofile", "R", "every R runs it"),
    later(".ghci", "GHCi", "GHCi runs it"),
    later(
        "directory.build.props",
        "MSBuild",
        "every build of .NET imports it",
    ),
    later(
        "directory.build.targets",
        "MSBuild",
        "every build of .NET imports it",
    ),
];

/// Files in which tools pin the versions of dependencies.
pub const LOCK_FILES: &[Name] = &[
    lock("cargo.lock", "cargo"),
    lock("package-lock.json", "npm"),
    lock("yarn.lock", "yarn"),
    lock("pnpm-lock.yaml", "pnpm"),
    lock("poetry.lock", "poetry"),
    lock("uv.lock", "uv"),
    lock("go.sum", "go"),
    lock("npm-shrinkwrap.json", "npm"),
    lock("bun.lock", "bun"),
    lock("deno.lock", "deno"),
    lock("pdm.lock", "pdm"),
    lock("pipfile.lock", "pipenv"),
    lock("gemfile.lock", "Bundler"),
    lock("composer.lock", "Composer"),
    lock("mix.lock", "Mix"),
    lock("pubspec.lock", "pub"),
    lock("podfile.lock", "CocoaPods"),
    lock("packages.lock.json", "NuGet"),
    lock("gradle.lockfile", "Gradle"),
    lock("flake.lock", "Nix"),
];

/// Folders of build products. The lists differ on purpose: S2 fixes its own, and an agent can
/// change unseen what is not watched.
pub const LEFT_OUT: &[Name] = &[
    left_out(".git/", &[Hash, Phase], "git's own"),
    left_out("__pycache__/", &[Hash, Phase, Spec], "compiled Python"),
    left_out(".pytest_cache/", &[Hash], "a cache of pytest"),
    left_out(".mypy_cache/", &[Hash], "a cache of mypy"),
    left_out(".ruff_cache/", &[Hash], "a cache of ruff"),
    left_out(
        ".venv/",
        &[Hash, Phase, Spec],
        "a virtual environment of Python",
    ),
    left_out("venv/", &[Hash, Phase], "a virtual environment of Python"),
    left_out("env/", &[Hash], "a virtual environment of Python"),
    left_out("node_modules/", &[Hash, Phase, Spec], "packages of npm"),
    left_out("target/", &[Phase, Spec], "products of cargo or Maven"),
    left_out("dist/", &[Phase, Spec], "products of a build"),
    left_out(".next/", &[Phase], "products of Next.js"),
    left_out(".abl/", &[Phase], "the files of code-commit phase"),
];

/// Names of files that usually contain keys or passwords.
pub const SECRETS: &[Name] = &[
    // `.env.example` and its like are meant to be read.
    no_secret("*.example"),
    no_secret("*.sample"),
    no_secret("*.template"),
    no_secret("*.dist"),
    secret(".env", "variables with keys"),
    secret(".env.*", "variables with keys"),
    secret(".envrc", "variables with keys"),
    secret(".netrc", "passwords of hosts"),
    secret(".npmrc", "the token of npm"),
    secret(".pypirc", "the token of PyPI"),
    secret(".git-credentials", "passwords of git"),
    secret("credentials", "passwords of a service"),
    secret("credentials.toml", "the token of cargo"),
    secret("credentials.json", "passwords of a service"),
    secret("*.pem", "a private key"),
    secret("*.key", "a private key"),
    secret("*.p12", "a private key"),
    secret("*.pfx", "a private key"),
    secret("*.jks", "private keys of Java"),
    secret("*.keystore", "private keys of Java"),
    secret("*.kdbx", "a store of passwords"),
    secret("*-key.txt", "the key of a model's service"),
    secret("*_rsa", "a private key of ssh"),
    secret("*_ed25519", "a private key of ssh"),
    secret("*_ecdsa", "a private key of ssh"),
];

/// What commands in the sandbox may read below the home folder, the caches that they may also fill, and what they
/// must never see.
pub const AT_HOME: &[Name] = &[
    at_home(
        ".cargo/bin/",
        Kind::Shown,
        "programs that cargo has installed",
    ),
    at_home(".cargo/env", Kind::Shown, "puts them into PATH"),
    at_home(".cargo/git/", Kind::Cache, "dependencies from git"),
    at_home(
        ".cargo/registry/",
        Kind::Cache,
        "dependencies from registries",
    ),
    at_home(
        ".cargo/config.toml",
        Kind::Shown,
        "mirrors that an offline build needs",
    ),
    at_home(
        ".cargo/config",
        Kind::Shown,
        "mirrors that an offline build needs",
    ),
    at_home(
        ".cargo/credentials.toml",
        Kind::Hidden,
        "the token of cargo",
    ),
    at_home(".cargo/credentials", Kind::Hidden, "the token of cargo"),
    at_home(".bundle/cache/", Kind::Cache, "gems of Bundler"),
    at_home(".cabal/packages/", Kind::Cache, "packages of cabal"),
    at_home(".cabal/store/", Kind::Cache, "what cabal has compiled"),
    at_home(".cache/Cypress/", Kind::Cache, "the browser of Cypress"),
    at_home(".cache/ccache/", Kind::Cache, "what ccache has compiled"),
    at_home(".cache/composer/", Kind::Cache, "packages of Composer"),
    at_home(".cache/coursier/", Kind::Cache, "dependencies of Scala"),
    at_home(".cache/deno/", Kind::Cache, "modules of Deno"),
    at_home(".cache/go-build/", Kind::Cache, "what Go has compiled"),
    at_home(
        ".cache/ms-playwright/",
        Kind::Cache,
        "browsers of Playwright",
    ),
    at_home(".cache/pip/", Kind::Cache, "packages of pip"),
    at_home(".cache/pnpm/", Kind::Cache, "metadata of pnpm"),
    at_home(".cache/puppeteer/", Kind::Cache, "browsers of Puppeteer"),
    at_home(".cache/pypoetry/", Kind::Cache, "packages of Poetry"),
    at_home(".cache/rebar3/", Kind::Cache, "packages of rebar3"),
    at_home(".cache/sccache/", Kind::Cache, "what sccache has compiled"),
    at_home(".cache/uv/", Kind::Cache, "packages of uv"),
    at_home(".cache/yarn/", Kind::Cache, "packages of yarn"),
    at_home(".ccache/", Kind::Cache, "what ccache has compiled"),
    at_home(".composer/cache/", Kind::Cache, "packages of Composer"),
    at_home(".gem/ruby/", Kind::Cache, "gems of the user"),
    at_home(".gradle/caches/", Kind::Cache, "dependencies of Gradle"),
    at_home(
        ".gradle/wrapper/dists/",
        Kind::Cache,
        "Gradle itself, as its wrapper fetches it",
    ),
    at_home(".hex/packages/", Kind::Cache, "packages of Hex"),
    at_home(".ivy2/cache/", Kind::Cache, "dependencies of Ivy and sbt"),
    at_home(".local/share/pnpm/store/", Kind::Cache, "packages of pnpm"),
    at_home(".m2/repository/", Kind::Cache, "dependencies of Maven"),
    at_home(".mix/", Kind::Cache, "tools of Mix"),
    at_home(".nimble/pkgs2/", Kind::Cache, "packages of Nimble"),
    at_home(".npm/_cacache/", Kind::Cache, "packages of npm"),
    at_home(".nuget/packages/", Kind::Cache, "packages of NuGet"),
    at_home(".opam/", Kind::Cache, "compilers and packages of opam"),
    at_home(".pub-cache/git/", Kind::Cache, "packages of pub"),
    at_home(".pub-cache/hosted/", Kind::Cache, "packages of pub"),
    at_home(".stack/pantry/", Kind::Cache, "packages of Stack"),
    at_home(".stack/programs/", Kind::Cache, "compilers of Stack"),
    at_home(".stack/snapshots/", Kind::Cache, "what Stack has compiled"),
    at_home("go/pkg/mod/", Kind::Cache, "modules of Go"),
    at_home(
        ".asdf/installs/python/",
        Kind::Interpreters,
        "Pythons of asdf",
    ),
    at_home(
        ".local/share/mise/installs/python/",
        Kind::Interpreters,
        "Pythons of mise",
    ),
    at_home(
        ".local/share/uv/python/",
        Kind::Interpreters,
        "Pythons of uv",
    ),
    at_home(".pyenv/versions/", Kind::Interpreters, "Pythons of pyenv"),
];

const fn protected(pattern: &'static str, binds: Binds, writer: Writer, why: &'static str) -> Name {
    Name {
        pattern,
        kind: Kind::Protected(binds, writer),
        why,
    }
}

const fn starts(pattern: &'static str, binds: Binds, why: &'static str) -> Name {
    Name {
        pattern,
        kind: Kind::Starts(binds),
        why,
    }
}

const fn input(pattern: &'static str) -> Name {
    Name {
        pattern,
        kind: Kind::Input,
        why: "an input of this run",
    }
}

const fn later(pattern: &'static str, program: &'static str, why: &'static str) -> Name {
    Name {
        pattern,
        kind: Kind::RunsLater(program),
        why,
    }
}

const fn lock(pattern: &'static str, tool: &'static str) -> Name {
    Name {
        pattern,
        kind: Kind::LockFile,
        why: tool,
    }
}

const fn left_out(pattern: &'static str, by: &'static [By], why: &'static str) -> Name {
    Name {
        pattern,
        kind: Kind::LeftOut(by),
        why,
    }
}

const fn secret(pattern: &'static str, why: &'static str) -> Name {
    Name {
        pattern,
        kind: Kind::Secret,
        why,
    }
}

const fn no_secret(pattern: &'static str) -> Name {
    Name {
        pattern,
        kind: Kind::NoSecret,
        why: "an example to copy",
    }
}

const fn at_home(pattern: &'static str, kind: Kind, why: &'static str) -> Name {
    Name { pattern, kind, why }
}
