//! The parser: lexer, grammar and macros.

mod ast;
mod lexer;
mod macros;
mod parser;
mod source;
#[cfg(test)]
mod tests;
mod token;
mod unescape;
mod words;

pub use self::{
    ast::{Ast, Comprehension, Expr, ExprId, ExprKind, FieldInit, Literal, MapEntry},
    macros::{Expander, Macro, MacroError},
    source::{Issue, Issues},
    words::is_word,
};
pub(crate) use self::{
    macros::{ACCUMULATOR, MAP_INSERT, MacroKey, map as expand_map, standard_macros},
    parser::parse,
};

/// The function names of operators.
pub mod operators {
    /// `c ? a : b`
    pub const CONDITIONAL: &str = "_?_:_";
    /// `a && b`
    pub const AND: &str = "_&&_";
    /// `a || b`
    pub const OR: &str = "_||_";
    /// `!a`
    pub const NOT: &str = "!_";
    /// `a == b`
    pub const EQUALS: &str = "_==_";
    /// `a != b`
    pub const NOT_EQUALS: &str = "_!=_";
    /// `a < b`
    pub const LESS: &str = "_<_";
    /// `a <= b`
    pub const LESS_EQUALS: &str = "_<=_";
    /// `a > b`
    pub const GREATER: &str = "_>_";
    /// `a >= b`
    pub const GREATER_EQUALS: &str = "_>=_";
    /// `a + b`
    pub const ADD: &str = "_+_";
    /// `a - b`
    pub const SUBTRACT: &str = "_-_";
    /// `a * b`
    pub const MULTIPLY: &str = "_*_";
    /// `a / b`
    pub const DIVIDE: &str = "_/_";
    /// `a % b`
    pub const MODULO: &str = "_%_";
    /// `-a`
    pub const NEGATE: &str = "-_";
    /// `a[b]`
    pub const INDEX: &str = "_[_]";
    /// `a[?b]`
    pub const OPT_INDEX: &str = "_[?_]";
    /// `a.?b`
    pub const OPT_SELECT: &str = "_?._";
    /// `a in b`
    pub const IN: &str = "@in";
    /// The loop condition of `all` and `exists`.
    pub const NOT_STRICTLY_FALSE: &str = "@not_strictly_false";
}
