//! Clean is what git calls clean, and a commit holds what git would have committed: settings, encodings, attributes,
//! excludes and layouts, each compared with the git program that is installed.

use std::path::Path;
use std::thread;

use code_commit_fixtures::project::Project;

use crate::scenes::files;
use crate::scenes::order::order;
use crate::scenes::program::{Ran, program, tool};

const FILES: [(&str, &str); 5] = [
    (".gitignore", "/agent-config\n"),
    ("build.sh", "#!/bin/sh\ntest -e made.txt\n"),
    ("lines.txt", "one\ntwo\n"),
    ("folder/file.txt", "below\n"),
    (
        "agent-config/replies.txt",
        "^^^made.txt\nmade\nof $Id$ lines\n^^^end\n",
    ),
];

/// Shell functions of the rows. Files are older than the index, as in a tree of yesterday; `touched` makes git compare their content.
const PRELUDE: &str = r#"
set -e
commit() { git add -A; git -c core.safecrlf=false commit -qm row; }
touched() { find . -path ./.git -prune -o -type f -exec touch -d '2 hours ago' {} +; }
encoded() { printf '%b' "$3" | iconv -f UTF-8 -t "$2" > text.enc; printf '*.enc working-tree-encoding=%s\n' "$1" > .gitattributes; commit; touched; }
library() { git init -q "$HOME/library"; echo x > "$HOME/library/file"; git -C "$HOME/library" add -A; git -C "$HOME/library" commit -qm x;
            git -c protocol.file.allow=always submodule --quiet add "$HOME/library" sub; commit; }
"#;

/// What git calls clean.
const CLEAN: [(&str, &str); 52] = [
    ("nothing special", "true"),
    (
        "UTF-16LE-BOM",
        r"{ printf '\377\376'; printf 'gr\303\266\303\237e\n' | iconv -f UTF-8 -t UTF-16LE; } > text.enc
        echo '*.enc working-tree-encoding=UTF-16LE-BOM' > .gitattributes; commit; touched",
    ),
    ("UTF-16", r"encoded UTF-16 UTF-16 'gr\0303\0266ße\n'"),
    ("UTF-16LE", "encoded UTF-16LE UTF-16LE 'größe\\n'"),
    ("UTF-32", "encoded UTF-32 UTF-32 'größe\\n'"),
    ("UTF-32BE", "encoded UTF-32BE UTF-32BE 'größe\\n'"),
    ("UTF-7", "encoded UTF-7 UTF-7 'größe\\n'"),
    ("CP437", "encoded CP437 CP437 'größe\\n'"),
    ("ISO-8859-1", "encoded ISO-8859-1 ISO-8859-1 'größe\\n'"),
    ("Shift JIS", "encoded SHIFT-JIS SHIFT-JIS 'アイウ\\n'"),
    ("EUC-JP", "encoded EUC-JP EUC-JP 'アイウ\\n'"),
    (
        "an encoding that nobody knows",
        "echo x > text.enc; commit; echo '*.enc working-tree-encoding=NO-SUCH' > .git/info/attributes",
    ),
    (
        "CRLF in the tree by autocrlf",
        r"git config core.autocrlf true; printf 'a\r\nb\r\n' > crlf.txt; commit; touched",
    ),
    (
        "CRLF in the tree by eol",
        r"echo '*.txt text eol=crlf' > .gitattributes; printf 'a\r\nb\r\n' > crlf.txt; commit; touched",
    ),
    (
        "CRLF in the tree by core.eol",
        r"git config core.eol crlf; echo '* text=auto' > .gitattributes; printf 'a\r\n' > crlf.txt; commit; touched",
    ),
    (
        "autocrlf with safecrlf",
        "git config core.autocrlf true; git config core.safecrlf true; touched",
    ),
    (
        "autocrlf=input with safecrlf=warn",
        r"git config core.autocrlf input; git config core.safecrlf warn; printf 'a\r\n' > crlf.txt; commit; touched",
    ),
    (
        "mixed line ends before autocrlf",
        r"printf 'a\r\nb\n' > mixed.txt; commit; git config core.autocrlf true; touched",
    ),
    (
        "text unset",
        r"echo '* -text' > .gitattributes; printf 'a\r\nb\n' > mixed.txt; commit; git config core.autocrlf true; touched",
    ),
    (
        "ident",
        r"echo '*.txt ident' > .gitattributes; printf '$Id$\n' > id.txt; commit; rm id.txt; git checkout -q id.txt; touched",
    ),
    (
        "a filter of the user",
        r"git config --global filter.rot.clean 'tr a-z b-za'; git config --global filter.rot.smudge 'tr b-za a-z'
        echo 'rot.txt filter=rot' > .gitattributes; echo secret > rot.txt; commit; touched",
    ),
    (
        "attributes in the git directory",
        r"echo '*.txt text eol=crlf' > .git/info/attributes; printf 'a\r\n' > crlf.txt; commit; touched",
    ),
    (
        "attributes that the configuration names",
        r"echo '*.txt eol=crlf' > .git/more; git config core.attributesFile .git/more; printf 'a\r\n' > crlf.txt; commit; touched",
    ),
    (
        "excludes that the repository names",
        "git config core.excludesFile .git/mine; echo '*.tmp' > .git/mine; echo x > a.tmp",
    ),
    (
        "excludes that the repository names absolutely",
        "git config core.excludesFile \"$HOME/mine\"; echo '*.tmp' > \"$HOME/mine\"; echo x > a.tmp",
    ),
    (
        "excludes that the user names",
        "git config --global core.excludesFile '~/mine'; echo '*.tmp' > \"$HOME/mine\"; echo x > a.tmp",
    ),
    (
        "excludes in the user's folder",
        "mkdir -p \"$HOME/.config/git\"; echo '*.tmp' > \"$HOME/.config/git/ignore\"; echo x > a.tmp",
    ),
    (
        "info/exclude",
        "echo '*.tmp' > .git/info/exclude; echo x > folder/a.tmp",
    ),
    (
        "**/ in info/exclude",
        "echo '**/' > .git/info/exclude; mkdir new; echo x > new/a",
    ),
    (
        "*/** in info/exclude",
        "echo '*/**' > .git/info/exclude; mkdir new; echo x > new/a",
    ),
    (
        "an ignored folder with a pattern that takes back",
        "printf '/agent-config\\nout/\\n!out/kept\\n' > .gitignore; commit; mkdir out; echo x > out/kept",
    ),
    (
        "an ignore file with a byte order mark",
        r"printf '\357\273\277*.tmp\r\n/agent-config\n' > .gitignore; printf 'folder/\n' > folder/.gitignore; commit; mkdir x; : > x/.keep; commit; echo '*.tmp' > .git/info/exclude; echo x > a.tmp",
    ),
    ("an empty folder", "mkdir -p empty/below"),
    (
        "modes that do not count",
        "git config core.fileMode false; chmod +x lines.txt",
    ),
    ("a symlink", "ln -s lines.txt link; commit"),
    ("a symlink to nowhere", "ln -s nowhere link; commit"),
    (
        "links as files",
        "ln -s lines.txt link; commit; git config core.symlinks false; rm link; printf lines.txt > link",
    ),
    (
        "a name that is no UTF-8",
        r"echo x > $(printf 'odd\377.txt'); commit",
    ),
    (
        "a name with a line end",
        "echo x > 'two\nlines.txt'; commit",
    ),
    (
        "an index of version 4",
        "git update-index --index-version 4; commit || true",
    ),
    (
        "a split index",
        "git config core.splitIndex true; git update-index --split-index; echo x > more; commit",
    ),
    (
        "an index without a hash",
        "git config index.skipHash true; echo x > more; commit",
    ),
    (
        "the untracked cache",
        "git config core.untrackedCache true; git update-index --force-untracked-cache; git status > /dev/null",
    ),
    (
        "times that do not count",
        "git config core.trustctime false; git config core.checkStat minimal; touched",
    ),
    (
        "many files",
        "git config feature.manyFiles true; echo x > more; commit",
    ),
    (
        "SHA-256",
        "rm -rf .git; git init -q --object-format=sha256 -b main .; commit",
    ),
    (
        "a git directory elsewhere",
        "git init -q --separate-git-dir \"$HOME/gitdir\" .",
    ),
    ("a detached head", "git checkout -q --detach"),
    (
        "an included configuration",
        "printf '[core]\\nautocrlf = true\\n' > .git/more; git config include.path more; printf 'a\\r\\n' > crlf.txt; commit; touched",
    ),
    ("a submodule", "library"),
    (
        "a submodule of which all is ignored",
        "library; git config submodule.sub.ignore all; echo y > sub/file",
    ),
    (
        "a submodule of which untracked files are ignored",
        "library; git config submodule.sub.ignore untracked; echo y > sub/new",
    ),
];

/// What git calls changed, and one of the files that it lists.
const DIRTY: [(&str, &str, &str); 22] = [
    (
        "an encoded file",
        "text.enc",
        "encoded UTF-32 UTF-32 'größe\\n'; printf 'ab' | iconv -f UTF-8 -t UTF-32 > text.enc",
    ),
    (
        "an encoding that came later",
        "lines.txt",
        "echo '*.txt working-tree-encoding=UTF-16LE' > .gitattributes; commit || true; printf 'o\\0n\\0' > lines.txt",
    ),
    (
        "line ends under -text",
        "lines.txt",
        r"echo '* -text' > .gitattributes; commit; printf 'one\r\ntwo\r\n' > lines.txt",
    ),
    (
        "/ in info/exclude",
        "new",
        "echo / > .git/info/exclude; echo x > new",
    ),
    (
        "// in info/exclude",
        "new/a",
        "echo // > .git/info/exclude; mkdir new; echo x > new/a",
    ),
    (
        "**/ in info/exclude spares files",
        "new",
        "echo '**/' > .git/info/exclude; echo x > new",
    ),
    (
        "/**/ in info/exclude spares files",
        "new",
        "echo '/**/' > .git/info/exclude; echo x > new",
    ),
    (
        "a/**/ spares files",
        "folder/new",
        "echo 'folder/**/' > .git/info/exclude; echo x > folder/new",
    ),
    (
        "an escape at the end of a pattern",
        "new",
        r"echo 'new\' > .git/info/exclude; echo x > new",
    ),
    (
        "an open bracket",
        "[",
        "echo '[' > .git/info/exclude; echo x > '['",
    ),
    (
        "a symlinked ignore file",
        "new.tmp",
        "echo '*.tmp' > rules; mkdir in; ln -s ../rules in/.gitignore; commit; echo x > in/new.tmp",
    ),
    (
        "a tracked file that is ignored",
        "lines.txt",
        "echo 'lines.txt' > .git/info/exclude; echo x >> lines.txt",
    ),
    ("intent to add", "new", "echo x > new; git add -N new"),
    ("a staged file", "new", "echo x > new; git add new"),
    ("a removed file", "lines.txt", "rm lines.txt"),
    (
        "a file that only the index has lost",
        "lines.txt",
        "git rm -q --cached lines.txt; echo lines.txt > .git/info/exclude",
    ),
    ("a mode", "lines.txt", "chmod +x lines.txt"),
    (
        "a link in place of a file",
        "lines.txt",
        "rm lines.txt; ln -s build.sh lines.txt",
    ),
    (
        "a change within the same second",
        "lines.txt",
        "printf 'eno\\ntwo\\n' > lines.txt",
    ),
    (
        "a repository inside",
        "new",
        "git init -q new; echo x > new/file",
    ),
    ("a file of a submodule", "sub", "library; echo y > sub/file"),
    (
        "a new file of a submodule",
        "sub",
        "library; echo y > sub/new",
    ),
];

/// How many rows are worked on at the same time.
const AT_ONCE: usize = 6;

struct Row {
    name: &'static str,
    project: Project,
}

impl Row {
    fn new(name: &'static str, script: &str) -> Self {
        let project = Project::empty().unwrap();
        for (path, text) in FILES {
            project.write(path, text.as_bytes()).unwrap();
        }
        let row = Self { name, project };
        files::write(
            &row.project.beside().join(".gitconfig"),
            "[user]\nname = A Person\nemail = person@example.invalid\n",
        );
        let script = format!("{PRELUDE}\ncommit; touched; git status > /dev/null\n{script}");
        let laid_out = Ran::of(&mut row.tool("sh", &["-c", &script]));
        assert_eq!(laid_out.code, Some(0), "{name}: {laid_out}");
        row
    }

    fn root(&self) -> &Path {
        self.project.root()
    }

    fn tool(&self, program: &str, words: &[&str]) -> std::process::Command {
        tool(program, self.root(), self.project.beside(), words)
    }

    #[track_caller]
    fn git(&self, words: &[&str]) -> String {
        let ran = Ran::of(&mut self.tool("git", words));
        assert_eq!(ran.code, Some(0), "{}: {ran}", self.name);
        ran.out
    }

    /// Does not refresh the index, which would hide the changes that it has to find.
    fn status(&self) -> String {
        let words = ["--no-optional-locks", "status", "--porcelain", "-z"];
        self.git(&[&words[..], &["--untracked-files=all"]].concat())
    }

    fn run(&self, words: &[&str]) -> Ran {
        Ran::of(&mut program(self.root(), self.project.beside(), words, &[]))
    }

    /// The default loop in a tree that has to be clean.
    fn commit(&self) -> Ran {
        let words = ["-m", "Make it.", "--commit", "--require-clean"];
        self.run(&[&words[..], &["--sandbox", "off", "--model", MODEL]].concat())
    }

    /// The preflight of an order.
    fn order(&self) -> Ran {
        let beside = |name: &str| self.project.beside().join(name);
        let fields = serde_json::json!({ "allowed_files": ["lines.txt"], "context_files": ["lines.txt"], "acceptance_commands": ["true"] });
        files::write(&beside("order.json"), order(&fields).to_string());
        let (file, out) = (beside("order.json"), beside("out"));
        let (file, out) = (file.to_str().unwrap(), out.to_str().unwrap());
        let words = [
            "order",
            "run",
            "--repo",
            ".",
            "--work-order",
            file,
            "--out",
            out,
        ];
        self.run(
            &[
                &words[..],
                &["--dry-run", "--sandbox", "off", "--llm-model", MODEL],
            ]
            .concat(),
        )
    }

    /// Every file but git's and the harness's own.
    fn tree(&self) -> Vec<(String, Vec<u8>)> {
        let own = [".git/", "agent-config/", "sub/.git"].map(|name| self.root().join(name));
        let all = files::below(self.root()).into_iter();
        let theirs = all.filter(|path| !own.iter().any(|own| path.starts_with(own)));
        let content = |path: &Path| -> Vec<u8> {
            let link = std::fs::read_link(path).map(|to| to.into_os_string().into_encoded_bytes());
            link.or_else(|_| std::fs::read(path)).unwrap()
        };
        theirs
            .map(|path| (path.display().to_string(), content(&path)))
            .collect()
    }

    /// The tree that git itself would commit after `parent`.
    fn tree_by_git(&self, parent: &str) -> String {
        let script = "export GIT_INDEX_FILE=\"$HOME/index\"; git read-tree $0; git -c core.safecrlf=false add made.txt; git write-tree";
        let ran = Ran::of(&mut self.tool("sh", &["-c", script, parent]));
        assert_eq!(ran.code, Some(0), "{}: {ran}", self.name);
        ran.out
    }
}

const MODEL: &str = "scripted/agent-config/replies.txt";

/// What is wrong with the rows, all at once. Most of the time is spent waiting for a disk, so they are laid out side by side.
fn check<'r, R: Sync>(rows: &'r [R], faults: impl Fn(&R) -> (&'static str, Vec<String>) + Sync) {
    let shown = |row: &R| {
        let (name, faults) = faults(row);
        (!faults.is_empty()).then(|| format!("{name}: {}", faults.join("; ")))
    };
    let all: Vec<String> = thread::scope(|scope| {
        let part =
            |part: &'r [R]| scope.spawn(|| part.iter().filter_map(&shown).collect::<Vec<_>>());
        let parts: Vec<_> = rows
            .chunks(rows.len().div_ceil(AT_ONCE))
            .map(part)
            .collect();
        parts
            .into_iter()
            .flat_map(|part| part.join().unwrap())
            .collect()
    });
    assert!(all.is_empty(), "{} rows:\n{}", all.len(), all.join("\n"));
}

/// The row's fault if this does not hold.
fn unless(holds: bool, what: &str, ran: &Ran) -> Option<String> {
    (!holds).then(|| {
        format!(
            "{what} ({:?}): {}",
            ran.code,
            ran.err
                .lines()
                .find(|line| line.starts_with("error"))
                .unwrap_or("done")
        )
    })
}

#[test]
fn what_git_calls_clean_is_worked_in_committed_and_brought_back() {
    let faults = |row: &Row| {
        let (before, parent) = (row.tree(), row.git(&["rev-parse", "HEAD"]));
        let (ordered, ran) = (row.order(), row.commit());
        let status = row.status();
        let (made, by_git) = (
            row.git(&["rev-parse", "HEAD^{tree}"]),
            row.tree_by_git(parent.trim()),
        );
        let undone = row.run(&["undo"]);
        [
            unless(ordered.code == Some(0), "an order is refused", &ordered),
            unless(ran.code == Some(0), "a run is refused", &ran),
            unless(
                status.is_empty(),
                &format!("after the commit, git lists {status:?}"),
                &ran,
            ),
            unless(
                made == by_git,
                "git would have committed something else",
                &ran,
            ),
            unless(
                undone.code == Some(0) && row.tree() == before,
                "the undo leaves another tree",
                &undone,
            ),
        ]
    };
    check(&CLEAN, |&(name, script)| {
        let row = Row::new(name, script);
        assert_eq!(row.status(), "", "{name}: git itself");
        (name, faults(&row).into_iter().flatten().collect())
    });
}

#[test]
fn what_git_calls_changed_is_refused_where_a_clean_tree_is_asked_for() {
    check(&DIRTY, |&(name, path, script)| {
        let row = Row::new(name, script);
        assert!(row.status().contains(path), "{name}: {}", row.status());
        let before = row.tree();
        let (ordered, ran) = (row.order(), row.commit());
        let refuses = |ran: &Ran| ran.code == Some(3) && ran.err.contains(path);
        let faults = [
            unless(refuses(&ordered), "an order begins", &ordered),
            unless(refuses(&ran), "a run begins", &ran),
            unless(row.tree() == before, "something was touched", &ran),
        ];
        (name, faults.into_iter().flatten().collect())
    });
}
