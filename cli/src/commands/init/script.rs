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
    let finders = [just, cargo, go, node, python, maven, gradle, cmake, make];
    finders.into_iter().find_map(|find| find(text))
}

/// Only with a recipe for tests: the others could be anything.
fn just(text: Text<'_>) -> Option<Script> {
    let recipes = text("justfile").or_else(|| text("Justfile"))?;
    let is_test =
        |line: &str| line.split([' ', ':']).next() == Some("test") && !line.contains(":=");
    let has_test = recipes
        .lines()
        .any(|line| is_test(line) && line.contains(':'));
    has_test.then(|| Script::of("just", "just test"))
}

fn cargo(text: Text<'_>) -> Option<Script> {
    text("Cargo.toml").map(|_| Script::of("cargo", "cargo build --all-targets\ncargo test"))
}

fn go(text: Text<'_>) -> Option<Script> {
    text("go.mod").map(|_| Script::of("go", "go vet ./...\ngo test ./..."))
}

/// The first of these scripts that `package.json` has.
fn node(text: Text<'_>) -> Option<Script> {
    let package: serde_json::Value = serde_json::from_str(&text("package.json")?).ok()?;
    let manager = if text("pnpm-lock.yaml").is_some() {
        "pnpm"
    } else {
        "npm"
    };
    let has = |name: &&str| {
        package
            .get("scripts")
            .is_some_and(|scripts| scripts.get(name).is_some())
    };
    let scripts: Vec<String> = ["build", "test"]
        .iter()
        .filter(|name| has(name))
        .map(|name| format!("{manager} run {name}"))
        .collect();
    (!scripts.is_empty()).then(|| Script::of(manager, scripts.join("\n")))
}

fn python(text: Text<'_>) -> Option<Script> {
    let manifests = [
        "pyproject.toml",
        "setup.py",
        "setup.cfg",
        "requirements.txt",
    ];
    manifests.iter().find_map(|name| text(name))?;
    Some(if text("uv.lock").is_some() {
        Script::of("uv", "uv run --frozen python -m pytest -q")
    } else if text(".venv/pyvenv.cfg").is_some() {
        Script::of("pytest", ".venv/bin/python -m pytest -q")
    } else {
        Script::of("pytest", "python3 -m pytest -q")
    })
}

fn maven(text: Text<'_>) -> Option<Script> {
    text("pom.xml")?;
    let program = if text("mvnw").is_some() {
        "./mvnw"
    } else {
        "mvn"
    };
    Some(Script::of(
        "Maven",
        format!("{program} --batch-mode --quiet test"),
    ))
}

fn gradle(text: Text<'_>) -> Option<Script> {
    text("build.gradle").or_else(|| text("build.gradle.kts"))?;
    let program = if text("gradlew").is_some() {
        "./gradlew"
    } else {
        "gradle"
    };
    Some(Script::of(
        "Gradle",
        format!("{program} --no-daemon --quiet build"),
    ))
}

/// In `build/` if git ignores that: otherwise all that is made there would be changes of the build.
fn cmake(text: Text<'_>) -> Option<Script> {
    text("CMakeLists.txt")?;
    let rules = text(".gitignore").unwrap_or_default();
    let is_ignored = rules
        .lines()
        .any(|rule| ["build", "build/", "/build", "/build/"].contains(&rule.trim()));
    let folder = if is_ignored {
        "build"
    } else {
        "${TMPDIR:-/tmp}/build"
    };
    Some(Script::of(
        "CMake",
        format!(
            "build=\"{folder}\"\ncmake -S . -B \"$build\"\ncmake --build \"$build\"\ncd \"$build\"\nctest --output-on-failure"
        ),
    ))
}

fn make(text: Text<'_>) -> Option<Script> {
    let rules = text("Makefile")
        .or_else(|| text("makefile"))
        .or_else(|| text("GNUmakefile"))?;
    let has = |target: &&str| {
        rules
            .lines()
            .any(|line| line.split(':').next() == Some(*target) && line.contains(':'))
    };
    let tests = ["test", "check"].into_iter().find(has);
    Some(Script::of(
        "make",
        tests.map_or("make".to_owned(), |target| format!("make\nmake {target}")),
    ))
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
