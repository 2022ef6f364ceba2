//! Keywords and reserved words.

/// Identifiers reserved for later versions of the language.
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

/// Whether a word is a keyword or reserved, so that no field or variable can have this name.
pub fn is_word(text: &str) -> bool {
    RESERVED.contains(&text) || matches!(text, "true" | "false" | "null")
}
