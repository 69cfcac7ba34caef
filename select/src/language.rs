//! The grammars, and which of their nodes are definitions.

use tree_sitter::Language;

/// How a language defines things.
#[derive(Debug, Clone)]
pub(crate) struct Grammar {
    pub language: Language,
    /// Kinds of nodes that define something.
    pub definitions: &'static [&'static str],
    /// Kinds that do only if their body is in the same place: without one they mention a type.
    pub with_body: &'static [&'static str],
    /// Kinds that do only if their value is a function.
    pub with_function: &'static [&'static str],
    /// Whether functions contain definitions that are worth showing.
    pub nests: bool,
}

/// Functions that hold tests, which have a text for a name.
pub(crate) const TESTS: [&str; 8] = [
    "describe", "it", "test", "context", "should", "suite", "specify", "scenario",
];

const SCRIPT: &[&str] = &[
    "function_declaration",
    "function_expression",
    "generator_function_declaration",
    "class_declaration",
    "abstract_class_declaration",
    "method_definition",
    "interface_declaration",
    "type_alias_declaration",
    "enum_declaration",
    "function_signature",
    "method_signature",
    "abstract_method_signature",
    "internal_module",
];
const FUNCTION_VALUES: &[&str] = &[
    "variable_declarator",
    "assignment_expression",
    "pair",
    "field_definition",
    "public_field_definition",
];
const RECORDS: &[&str] = &[
    "struct_specifier",
    "union_specifier",
    "class_specifier",
    "enum_specifier",
];

/// What a script without an ending is called, by a word of its first line.
const SCRIPTS: [(&str, &str); 5] = [
    ("python", "py"),
    ("ruby", "rb"),
    ("node", "js"),
    ("php", "php"),
    ("sh", "sh"),
];

/// The grammar of a file, by the end of its name, or else by the program that its first line starts.
pub(crate) fn of(path: &str, text: &str) -> Option<Grammar> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let program = text
        .lines()
        .next()
        .filter(|line| line.starts_with("#!"))
        .unwrap_or_default();
    let script = || {
        SCRIPTS
            .iter()
            .find(|(word, _)| program.contains(word))
            .map(|(_, ending)| *ending)
    };
    let ending = name
        .rsplit_once('.')
        .map(|(_, ending)| ending)
        .or_else(script)?;
    let grammar = |language: tree_sitter_language::LanguageFn, definitions| Grammar {
        language: language.into(),
        definitions,
        with_body: &[],
        with_function: &[],
        nests: false,
    };
    let scripted = |language| Grammar {
        with_function: FUNCTION_VALUES,
        nests: true,
        ..grammar(language, SCRIPT)
    };
    Some(match ending {
        "rs" => grammar(tree_sitter_rust::LANGUAGE, RUST),
        "py" | "pyi" => Grammar {
            nests: true,
            ..grammar(
                tree_sitter_python::LANGUAGE,
                &["class_definition", "function_definition"],
            )
        },
        "js" | "jsx" | "mjs" | "cjs" => scripted(tree_sitter_javascript::LANGUAGE),
        "ts" | "mts" | "cts" => scripted(tree_sitter_typescript::LANGUAGE_TYPESCRIPT),
        "tsx" => scripted(tree_sitter_typescript::LANGUAGE_TSX),
        "go" => grammar(
            tree_sitter_go::LANGUAGE,
            &["function_declaration", "method_declaration", "type_spec"],
        ),
        "c" => Grammar {
            with_body: RECORDS,
            ..grammar(tree_sitter_c::LANGUAGE, C)
        },
        "h" | "cc" | "cpp" | "cxx" | "hh" | "hpp" | "hxx" | "ipp" | "inl" => Grammar {
            with_body: RECORDS,
            ..grammar(tree_sitter_cpp::LANGUAGE, C)
        },
        "java" => grammar(tree_sitter_java::LANGUAGE, JAVA),
        "rb" | "rake" | "gemspec" => Grammar {
            nests: true,
            ..grammar(tree_sitter_ruby::LANGUAGE, RUBY)
        },
        "php" => grammar(tree_sitter_php::LANGUAGE_PHP, PHP),
        "sh" | "bash" | "bats" => grammar(tree_sitter_bash::LANGUAGE, &["function_definition"]),
        _ => return None,
    })
}

const RUST: &[&str] = &[
    "function_item",
    "function_signature_item",
    "struct_item",
    "enum_item",
    "union_item",
    "trait_item",
    "impl_item",
    "mod_item",
    "macro_definition",
    "type_item",
    "const_item",
    "static_item",
];
const C: &[&str] = &[
    "function_definition",
    "function_declarator",
    "type_definition",
    "preproc_function_def",
    "namespace_definition",
    "alias_declaration",
    "concept_definition",
];
const JAVA: &[&str] = &[
    "class_declaration",
    "interface_declaration",
    "enum_declaration",
    "record_declaration",
    "annotation_type_declaration",
    "method_declaration",
    "constructor_declaration",
];
const RUBY: &[&str] = &["method", "singleton_method", "class", "module"];
const PHP: &[&str] = &[
    "class_declaration",
    "interface_declaration",
    "trait_declaration",
    "enum_declaration",
    "function_definition",
    "method_declaration",
];
