//! Words that are no names.

/// Names that are kept for later versions of the language.
pub(super) const RESERVED: [&str; 18] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
    "in",
];

/// Whether a word means something in expressions, or is kept for that: it is no name of a field or variable.
pub fn is_word(text: &str) -> bool {
    RESERVED.contains(&text) || matches!(text, "true" | "false" | "null")
}
