//! Libraries that the project declares and that are not installed.

use std::path::Path;

use super::lack::{Kind, Lack, Machine, between};
use super::tool::is_plain;

pub(super) fn missing(output: &str, machine: &impl Machine) -> Option<Lack> {
    let of_line = |line| {
        environment(line, machine)
            .or_else(|| python(line, machine))
            .or_else(|| node(line, machine))
    };
    output.lines().find_map(of_line)
}

/// `./build.sh: line 2: .venv/bin/activate: No such file or directory`; of dash `.: cannot open .venv/bin/activate: No
/// such file`; `.venv/bin/python: not found`. It is ignored by git, so that no model may make it.
fn environment(line: &str, machine: &impl Machine) -> Option<Lack> {
    let ends = [
        ": No such file or directory",
        ": No such file",
        ": not found",
    ];
    let before = ends
        .iter()
        .find_map(|end| line.trim_end().strip_suffix(end))?;
    let path = before.rsplit_once(": ").map_or(before, |(_, path)| path);
    let path = path.strip_prefix("cannot open ").unwrap_or(path);
    let (folder, program) = path.rsplit_once("/bin/")?;
    let is_its = ["activate", "python", "pip", "pytest"]
        .iter()
        .any(|name| program.starts_with(name));
    if !is_its || path.starts_with('/') || !is_plain(path) || machine.is_file(Path::new(path)) {
        return None;
    }
    let install = format!(" && {folder}/bin/pip install -r requirements.txt");
    let install = if machine.is_file(Path::new("requirements.txt")) {
        &*install
    } else {
        ""
    };
    Some(Lack::new(
        Kind::Module,
        format!("the virtual environment `{folder}` does not exist"),
        format!("make it: python3 -m venv {folder}{install}"),
    ))
}

/// `ModuleNotFoundError: No module named 'yaml.nodes'`; `/usr/bin/python3: No module named pytest`.
fn python(line: &str, machine: &impl Machine) -> Option<Lack> {
    let started = |line: &str| {
        let (program, name) = line
            .split_once(": No module named ")
            .map(|(program, name)| (program, name.trim()))?;
        let program = Path::new(program).file_name()?.to_str()?;
        let is_python = program.starts_with("python") && !program.contains(char::is_whitespace);
        is_python.then(|| name.trim_matches('\'').to_owned())
    };
    let imported = || {
        between(line, "ModuleNotFoundError: No module named '", "'")
            .filter(|name| declared(name, machine))
    };
    let name = started(line).or_else(|| imported().map(str::to_owned))?;
    let top = name.split('.').next().unwrap_or_default().to_owned();
    if top.is_empty() || top.contains(char::is_whitespace) || is_own(&top, machine) {
        return None;
    }
    Some(Lack::new(
        Kind::Module,
        format!("the Python module `{top}` is not installed for the Python that the build uses"),
        "install it into a virtual environment that the build uses: \
         python3 -m venv .venv && .venv/bin/pip install -r requirements.txt",
    ))
}

/// `PyYAML` is imported as `yaml`: only names that agree count.
fn declared(name: &str, machine: &impl Machine) -> bool {
    machine.declares(name.split('.').next().unwrap_or_default())
}

/// A module of the project itself: its absence or its errors are the code's.
fn is_own(top: &str, machine: &impl Machine) -> bool {
    let places = ["", "src/", "lib/"];
    let is_there = |place: &str| {
        [
            format!("{place}{top}.py"),
            format!("{place}{top}/__init__.py"),
        ]
        .iter()
        .any(|file| machine.is_file(Path::new(file)))
    };
    places.into_iter().any(is_there)
}

/// `Error: Cannot find module 'lodash'`; `Cannot find package '@scope/name' imported from …`.
fn node(line: &str, machine: &impl Machine) -> Option<Lack> {
    let name = between(line, "Error: Cannot find module '", "'")
        .or_else(|| between(line, "Cannot find package '", "' imported from "))?;
    if name.starts_with(['.', '/']) || name.contains(char::is_whitespace) {
        return None;
    }
    let parts = if name.starts_with('@') { 2 } else { 1 };
    let package: Vec<&str> = name.split('/').take(parts).collect();
    let package = package.join("/");
    let installed = format!("node_modules/{package}/package.json");
    if !machine.declares(&package) || machine.is_file(Path::new(&installed)) {
        return None;
    }
    Some(Lack::new(
        Kind::Module,
        format!("the package `{package}` of package.json is not installed"),
        "install the project's packages once: npm ci",
    ))
}
