//! Package managers: the files that show that a project uses one, where it downloads from, and what fetches ahead.

/// A package manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Manager {
    /// As messages name it.
    pub name: &'static str,
    /// Files at the root of a project that uses it, separated by spaces: each a name or `*.EXTENSION`.
    files: &'static str,
    /// The public hosts that it downloads from, separated by spaces. A registry may redirect to others.
    hosts: &'static str,
    /// The shell line that fetches into caches of [`AT_HOME`](crate::AT_HOME), from which builds take it without a
    /// network. Empty where what is fetched goes into the work tree, or to a folder that is no cache.
    pub fetch: &'static str,
}

/// The folder, below the home folder, of the wheels that pip can install without a network.
pub const WHEELS: &str = ".cache/pip/fetched";

const PYPI: &str = "pypi.org files.pythonhosted.org";
const GRADLE: &str = "services.gradle.org downloads.gradle.org plugins.gradle.org plugins-artifacts.gradle.org \
    repo.maven.apache.org";
const STACK: &str = "hackage.haskell.org casa.stackage.org raw.githubusercontent.com";
const COMPOSER: &str = "repo.packagist.org api.github.com codeload.github.com";
const CPAN: &str = "www.cpan.org cpan.metacpan.org fastapi.metacpan.org";
const YARN: &str = "registry.yarnpkg.com registry.npmjs.org";

/// No install script of a package runs in a line of npm, yarn or Composer.
pub const MANAGERS: &[Manager] = &[
    row(
        "cargo",
        "Cargo.toml",
        "index.crates.io static.crates.io",
        "cargo fetch",
    ),
    row(
        "npm",
        "package-lock.json npm-shrinkwrap.json",
        "registry.npmjs.org",
        "npm ci --ignore-scripts",
    ),
    row("pnpm", "pnpm-lock.yaml", "registry.npmjs.org", "pnpm fetch"),
    row(
        "yarn",
        "yarn.lock",
        YARN,
        "yarn install --frozen-lockfile --ignore-scripts",
    ),
    row(
        "pip",
        "requirements.txt",
        PYPI,
        "pip wheel -r requirements.txt -w ~/.cache/pip/fetched",
    ),
    row("uv", "uv.lock", PYPI, "uv sync --frozen"),
    row("poetry", "poetry.lock", PYPI, ""),
    row(
        "go",
        "go.mod",
        "proxy.golang.org sum.golang.org",
        "go mod download",
    ),
    row(
        "Maven",
        "pom.xml",
        "repo.maven.apache.org",
        "mvn -B dependency:go-offline",
    ),
    row("Gradle", "build.gradle build.gradle.kts", GRADLE, ""),
    row("Bundler", "Gemfile", "rubygems.org index.rubygems.org", ""),
    row("Mix", "mix.exs", "repo.hex.pm builds.hex.pm", ""),
    row("rebar3", "rebar.config", "repo.hex.pm", ""),
    row(
        "Composer",
        "composer.lock",
        COMPOSER,
        "composer install --no-scripts --no-plugins",
    ),
    row(
        "NuGet",
        "*.csproj *.fsproj *.sln",
        "api.nuget.org",
        "dotnet restore",
    ),
    row("opam", "dune-project *.opam", "opam.ocaml.org", ""),
    row("cabal", "*.cabal cabal.project", "hackage.haskell.org", ""),
    row("stack", "stack.yaml", STACK, ""),
    row("pub", "pubspec.yaml", "pub.dev", ""),
    row("cpanm", "cpanfile", CPAN, ""),
];

const fn row(
    name: &'static str,
    files: &'static str,
    hosts: &'static str,
    fetch: &'static str,
) -> Manager {
    Manager {
        name,
        files,
        hosts,
        fetch,
    }
}

impl Manager {
    /// The public hosts that it downloads from. A registry may redirect to others.
    pub fn hosts(&self) -> impl Iterator<Item = &'static str> {
        self.hosts.split(' ')
    }

    /// Whether a project with this file at its root uses it.
    pub fn is_shown_by(&self, file: &str) -> bool {
        let is = |name: &str| {
            name.strip_prefix('*')
                .map_or(file == name, |end| file.ends_with(end))
        };
        self.files.split(' ').any(is)
    }
}
