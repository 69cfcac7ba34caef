//! A first build script for a project, by the files that its tools leave in its root.

/// The commands of a build script, and what they do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Script {
    /// Lines of a shell that stops at the first failure.
    pub(super) lines: String,
    /// Continues `build.sh: `.
    pub(super) what: String,
}

impl Script {
    fn of(tool: &str, lines: impl Into<String>) -> Self {
        Self {
            lines: lines.into(),
            what: format!("builds and tests with {tool}"),
        }
    }
}

/// What a project is asked: the text of a file in its root; `None` if it is not there.
pub(super) type Text<'t> = &'t dyn Fn(&str) -> Option<String>;

/// The first tool that is found. A task runner comes first: whoever has one says there how to test.
pub(super) fn script(text: Text<'_>) -> Option<Script> {
    let has = |name: &str| text(name).is_some();
    let any = |names: &[&str]| names.iter().any(|name| has(name));
    let wrapped = |wrapper: &'static str, program: &'static str| {
        if has(wrapper.trim_start_matches("./")) {
            wrapper
        } else {
            program
        }
    };
    let first = |names: &[&str]| names.iter().find_map(|name| text(name));
    let recipes = first(&["justfile", "Justfile"]).filter(|recipes| tests_by_recipe(recipes));
    let scripts = text("package.json")
        .map(|package| scripts_of(&package))
        .unwrap_or_default();
    Some(if recipes.is_some() {
        Script::of("just", "just test")
    } else if has("Cargo.toml") {
        Script::of("cargo", "cargo build --all-targets\ncargo test")
    } else if has("go.mod") {
        Script::of("go", "go vet ./...\ngo test ./...")
    } else if !scripts.is_empty() {
        let manager = if has("pnpm-lock.yaml") { "pnpm" } else { "npm" };
        let lines = scripts.iter().map(|name| format!("{manager} run {name}"));
        Script::of(manager, lines.collect::<Vec<_>>().join("\n"))
    } else if any(&[
        "pyproject.toml",
        "setup.py",
        "setup.cfg",
        "requirements.txt",
    ]) {
        if has("uv.lock") {
            Script::of("uv", "uv run --frozen python -m pytest -q")
        } else if has(".venv/pyvenv.cfg") {
            Script::of("pytest", ".venv/bin/python -m pytest -q")
        } else {
            Script::of("pytest", "python3 -m pytest -q")
        }
    } else if has("pom.xml") {
        let program = wrapped("./mvnw", "mvn");
        Script::of("Maven", format!("{program} --batch-mode --quiet test"))
    } else if any(&["build.gradle", "build.gradle.kts"]) {
        let program = wrapped("./gradlew", "gradle");
        Script::of("Gradle", format!("{program} --no-daemon --quiet build"))
    } else if has("CMakeLists.txt") {
        cmake(&text(".gitignore").unwrap_or_default())
    } else {
        make(&first(&["Makefile", "makefile", "GNUmakefile"])?)
    })
}

/// Only with a recipe for tests: the others could be anything.
fn tests_by_recipe(recipes: &str) -> bool {
    let is_test = |line: &str| line.split([' ', ':']).next() == Some("test");
    let mut lines = recipes.lines();
    lines.any(|line| is_test(line) && line.contains(':') && !line.contains(":="))
}

/// The first of these scripts that `package.json` has.
fn scripts_of(package: &str) -> Vec<&'static str> {
    let package: serde_json::Value = serde_json::from_str(package).unwrap_or_default();
    let has = |name: &&str| package.pointer(&format!("/scripts/{name}")).is_some();
    ["build", "test"].into_iter().filter(has).collect()
}

/// In `build/` if git ignores that: otherwise all that is made there would be changes of the build.
fn cmake(rules: &str) -> Script {
    let is_build = |rule: &str| rule.trim().trim_matches('/') == "build";
    let folder = if rules.lines().any(is_build) {
        "build"
    } else {
        "${TMPDIR:-/tmp}/build"
    };
    let lines = "cmake -S . -B \"$build\"\ncmake --build \"$build\"\ncd \"$build\"\nctest --output-on-failure";
    Script::of("CMake", format!("build=\"{folder}\"\n{lines}"))
}

fn make(rules: &str) -> Script {
    let is_rule =
        |line: &str, target: &str| line.split_once(':').is_some_and(|(name, _)| name == target);
    let has = |target: &&str| rules.lines().any(|line| is_rule(line, target));
    let test = ["test", "check"].into_iter().find(has);
    Script::of(
        "make",
        test.map_or("make".to_owned(), |target| format!("make\nmake {target}")),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(files: &[(&str, &str)]) -> String {
        let text = |name: &str| {
            files
                .iter()
                .find(|(known, _)| *known == name)
                .map(|(_, text)| (*text).to_owned())
        };
        script(&text).map_or("nothing".to_owned(), |script| {
            script.lines.replace('\n', "; ")
        })
    }

    #[test]
    fn each_kind_of_project_has_its_script() {
        let tested = r#"{"scripts":{"test":"jest"}}"#;
        let projects: [&[(&str, &str)]; 17] = [
            &[("Cargo.toml", "")],
            &[
                ("Cargo.toml", ""),
                ("justfile", "test filter='':\n\tcargo test\n"),
            ],
            &[
                ("Cargo.toml", ""),
                ("justfile", "test := 'x'\ndeploy:\n\trsync\n"),
            ],
            &[("go.mod", "")],
            &[("package.json", tested)],
            &[
                (
                    "package.json",
                    r#"{"scripts":{"test":"jest","build":"tsc"}}"#,
                ),
                ("pnpm-lock.yaml", ""),
            ],
            &[("package.json", "{}")],
            &[("package.json", "{")],
            &[("pyproject.toml", "")],
            &[("requirements.txt", ""), (".venv/pyvenv.cfg", "")],
            &[("pyproject.toml", ""), ("uv.lock", "")],
            &[("pom.xml", "")],
            &[("build.gradle.kts", ""), ("gradlew", "")],
            &[("CMakeLists.txt", "")],
            &[("CMakeLists.txt", ""), (".gitignore", "/build/\n")],
            &[("Makefile", "all: a\ncheck: all\n")],
            &[("Makefile", "all: a\n")],
        ];
        let table: String = projects
            .iter()
            .map(|files| {
                let names: Vec<&str> = files.iter().map(|(name, _)| *name).collect();
                format!("{}: {}\n", names.join(" "), lines(files))
            })
            .collect();
        insta::assert_snapshot!(table, @r#"
        Cargo.toml: cargo build --all-targets; cargo test
        Cargo.toml justfile: just test
        Cargo.toml justfile: cargo build --all-targets; cargo test
        go.mod: go vet ./...; go test ./...
        package.json: npm run test
        package.json pnpm-lock.yaml: pnpm run build; pnpm run test
        package.json: nothing
        package.json: nothing
        pyproject.toml: python3 -m pytest -q
        requirements.txt .venv/pyvenv.cfg: .venv/bin/python -m pytest -q
        pyproject.toml uv.lock: uv run --frozen python -m pytest -q
        pom.xml: mvn --batch-mode --quiet test
        build.gradle.kts gradlew: ./gradlew --no-daemon --quiet build
        CMakeLists.txt: build="${TMPDIR:-/tmp}/build"; cmake -S . -B "$build"; cmake --build "$build"; cd "$build"; ctest --output-on-failure
        CMakeLists.txt .gitignore: build="build"; cmake -S . -B "$build"; cmake --build "$build"; cd "$build"; ctest --output-on-failure
        Makefile: make; make check
        Makefile: make
        "#);
        assert_eq!(lines(&[("README.md", "")]), "nothing");
    }
}
