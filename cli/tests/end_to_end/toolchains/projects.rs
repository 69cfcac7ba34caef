//! The projects of the table, one a toolchain. The first has the most kinds of tests, and is tried at every size.

/// A project with tests that pass, in one toolchain.
pub(super) struct Project {
    pub(super) name: &'static str,
    /// Without these, the row is skipped: a program with the argument that makes it say its version.
    pub(super) needs: &'static [(&'static str, &'static [&'static str])],
    /// Run in the project before the check, without a sandbox, as its user would.
    pub(super) before: &'static [&'static [&'static str]],
    pub(super) files: &'static [(&'static str, &'static str)],
}

const PYTEST: (&str, &[&str]) = ("/usr/bin/python3", &["-m", "pytest", "--version"]);

/// Twenty tests of one kind each.
pub(super) const ORDINARY: &str = include_str!("../../../../fixtures/toolchains/test_ordinary.py");
const PYPROJECT: &str =
    "[project]\nname = \"a\"\nversion = \"0.1.0\"\nrequires-python = \">=3.9\"\n";

pub(super) static PROJECTS: [Project; 14] = [
    Project {
        name: "pytest",
        needs: &[PYTEST],
        before: &[],
        files: &[
            (
                "build.sh",
                "#!/bin/sh\nset -e\n/usr/bin/python3 -m pytest -q -p no:cacheprovider tests\n",
            ),
            ("tests/test_ordinary.py", ORDINARY),
            ("pyproject.toml", PYPROJECT),
        ],
    },
    Project {
        name: "cargo",
        needs: &[("cargo", &["--version"])],
        before: &[],
        files: &[
            ("build.sh", "#!/bin/sh\nset -e\ncargo test -q\n"),
            (
                "Cargo.toml",
                "[package]\nname = \"a\"\nversion = \"0.1.0\"\nedition = \"2024\"\n",
            ),
            ("src/lib.rs", "#[test]\nfn holds() {}\n"),
            (
                "Cargo.lock",
                "version = 4\n\n[[package]]\nname = \"a\"\nversion = \"0.1.0\"\n",
            ),
        ],
    },
    Project {
        name: "cargo, a dependency that no lock file knows",
        needs: &[("cargo", &["--version"])],
        before: &[],
        files: &[
            ("build.sh", "#!/bin/sh\nset -e\ncargo test -q\n"),
            (
                "Cargo.toml",
                "[package]\nname = \"a\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[dependencies]\nb = { path = \"b\" }\n",
            ),
            (
                "src/lib.rs",
                "#[test]\nfn holds() { assert_eq!(b::one(), 1); }\n",
            ),
            (
                "b/Cargo.toml",
                "[package]\nname = \"b\"\nversion = \"0.1.0\"\nedition = \"2024\"\n",
            ),
            ("b/src/lib.rs", "pub fn one() -> u8 { 1 }\n"),
            // As git has it once somebody has built the project without the dependency.
            (
                "Cargo.lock",
                "version = 4\n\n[[package]]\nname = \"a\"\nversion = \"0.1.0\"\n",
            ),
        ],
    },
    Project {
        name: "pytest, environment in the project",
        needs: &[PYTEST],
        before: &[&[
            "/usr/bin/python3",
            "-m",
            "venv",
            "--without-pip",
            "--system-site-packages",
            ".venv",
        ]],
        files: &[
            (
                "build.sh",
                "#!/bin/sh\nset -e\n.venv/bin/python -m pytest -q -p no:cacheprovider tests\n",
            ),
            (".gitignore", "/agent-config\n/.venv\n"),
            ("tests/test_ordinary.py", ORDINARY),
            ("pyproject.toml", PYPROJECT),
        ],
    },
    Project {
        name: "uv run",
        needs: &[("uv", &["--version"]), PYTEST],
        before: &[
            &[
                "uv",
                "venv",
                "--quiet",
                "--python",
                "/usr/bin/python3",
                "--system-site-packages",
            ],
            &["uv", "lock", "--quiet", "--offline"],
        ],
        files: &[
            (
                "build.sh",
                "#!/bin/sh\nset -e\nuv run --frozen python -m pytest -q -p no:cacheprovider tests\n",
            ),
            (".gitignore", "/agent-config\n/.venv\n"),
            ("tests/test_ordinary.py", ORDINARY),
            ("pyproject.toml", PYPROJECT),
        ],
    },
    Project {
        name: "npm test",
        needs: &[("npm", &["--version"]), ("node", &["--version"])],
        before: &[],
        files: &[
            ("build.sh", "#!/bin/sh\nset -e\nnpm test\n"),
            (
                "package.json",
                r#"{ "name": "a", "version": "1.0.0", "scripts": { "test": "node --test" } }"#,
            ),
            (
                "test/a.test.js",
                "require('node:test')('holds', () => {})\n",
            ),
        ],
    },
    Project {
        name: "npm test with jest",
        needs: &[("npm", &["--version"]), ("jest", &["--version"])],
        before: &[],
        files: &[
            ("build.sh", "#!/bin/sh\nset -e\nnpm test\n"),
            (
                "package.json",
                r#"{ "name": "a", "version": "1.0.0", "scripts": { "test": "jest" } }"#,
            ),
            ("a.test.js", "test('holds', () => expect(1).toBe(1))\n"),
        ],
    },
    Project {
        name: "npm test with mocha",
        needs: &[("npm", &["--version"]), ("mocha", &["--version"])],
        before: &[],
        files: &[
            ("build.sh", "#!/bin/sh\nset -e\nnpm test\n"),
            (
                "package.json",
                r#"{ "name": "a", "version": "1.0.0", "scripts": { "test": "mocha" } }"#,
            ),
            ("test/a.js", "it('holds', () => {})\n"),
        ],
    },
    Project {
        name: "pnpm test",
        needs: &[("pnpm", &["--version"])],
        before: &[],
        files: &[
            ("build.sh", "#!/bin/sh\nset -e\npnpm test\n"),
            (
                "package.json",
                r#"{ "name": "a", "version": "1.0.0", "scripts": { "test": "node --test" } }"#,
            ),
            ("pnpm-lock.yaml", "lockfileVersion: '9.0'\n"),
            (
                "test/a.test.js",
                "require('node:test')('holds', () => {})\n",
            ),
        ],
    },
    Project {
        name: "Go",
        needs: &[("go", &["version"])],
        before: &[],
        files: &[
            (
                "build.sh",
                "#!/bin/sh\nset -e\ngo vet ./...\ngo test ./...\n",
            ),
            ("go.mod", "module a\n\ngo 1.19\n"),
            ("a.go", "package a\n\nfunc One() int { return 1 }\n"),
            (
                "a_test.go",
                "package a\n\nimport \"testing\"\n\nfunc TestOne(t *testing.T) { One() }\n",
            ),
        ],
    },
    Project {
        name: "CMake and CTest",
        needs: &[("cmake", &["--version"]), ("c++", &["--version"])],
        before: &[],
        files: &[
            (
                "build.sh",
                "#!/bin/sh\nset -e\ncmake -S . -B build\ncmake --build build\ncd build && ctest\n",
            ),
            (".gitignore", "/agent-config\n/build/*\n!/build/.keep\n"),
            ("build/.keep", ""),
            (
                "CMakeLists.txt",
                "cmake_minimum_required(VERSION 3.10)\nproject(a CXX)\nenable_testing()\nadd_executable(a a.cpp)\nadd_test(NAME a COMMAND a)\n",
            ),
            (
                "a.cpp",
                "#include <thread>\nint main() { std::thread([] {}).join(); }\n",
            ),
        ],
    },
    // Without plug-ins, which would have to be fetched: what is tried is Maven, Java and their caches.
    Project {
        name: "Maven",
        needs: &[("mvn", &["--version"])],
        before: &[],
        files: &[
            (
                "build.sh",
                "#!/bin/sh\nset -e\nmvn --batch-mode --quiet test\n",
            ),
            (
                "pom.xml",
                "<project><modelVersion>4.0.0</modelVersion><groupId>a</groupId><artifactId>a</artifactId>\
                 <version>1</version><packaging>pom</packaging></project>\n",
            ),
        ],
    },
    Project {
        name: "Gradle",
        needs: &[("gradle", &["--version"])],
        before: &[],
        files: &[
            (
                "build.sh",
                "#!/bin/sh\nset -e\ngradle --no-daemon --quiet build\n",
            ),
            (".gitignore", "/agent-config\n/.gradle\n"),
            (
                "build.gradle",
                "task check { doLast { assert 1 == 1 } }\ntask build(dependsOn: check)\n",
            ),
        ],
    },
    Project {
        name: "make",
        needs: &[("make", &["--version"])],
        before: &[],
        files: &[
            ("build.sh", "#!/bin/sh\nset -e\nmake test\n"),
            ("Makefile", "test:\n\ttest 1 = 1\n"),
        ],
    },
];
