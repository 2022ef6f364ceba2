//! Token kinds, and their names in messages.

use std::fmt;

/// The kind of a token. Messages list expected kinds in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenKind {
    Eof,
    Equals,
    NotEquals,
    In,
    Less,
    LessEquals,
    GreaterEquals,
    Greater,
    And,
    Or,
    OpenBracket,
    CloseBracket,
    OpenBrace,
    CloseBrace,
    OpenParen,
    CloseParen,
    Dot,
    Comma,
    Minus,
    Exclamation,
    Question,
    Colon,
    Plus,
    Star,
    Slash,
    Percent,
    True,
    False,
    Null,
    Float,
    Int,
    Uint,
    String,
    Bytes,
    Identifier,
    EscapedIdentifier,
}

const KINDS: [(TokenKind, &str); 36] = [
    (TokenKind::Eof, "<EOF>"),
    (TokenKind::Equals, "'=='"),
    (TokenKind::NotEquals, "'!='"),
    (TokenKind::In, "'in'"),
    (TokenKind::Less, "'<'"),
    (TokenKind::LessEquals, "'<='"),
    (TokenKind::GreaterEquals, "'>='"),
    (TokenKind::Greater, "'>'"),
    (TokenKind::And, "'&&'"),
    (TokenKind::Or, "'||'"),
    (TokenKind::OpenBracket, "'['"),
    (TokenKind::CloseBracket, "']'"),
    (TokenKind::OpenBrace, "'{'"),
    (TokenKind::CloseBrace, "'}'"),
    (TokenKind::OpenParen, "'('"),
    (TokenKind::CloseParen, "')'"),
    (TokenKind::Dot, "'.'"),
    (TokenKind::Comma, "','"),
    (TokenKind::Minus, "'-'"),
    (TokenKind::Exclamation, "'!'"),
    (TokenKind::Question, "'?'"),
    (TokenKind::Colon, "':'"),
    (TokenKind::Plus, "'+'"),
    (TokenKind::Star, "'*'"),
    (TokenKind::Slash, "'/'"),
    (TokenKind::Percent, "'%'"),
    (TokenKind::True, "'true'"),
    (TokenKind::False, "'false'"),
    (TokenKind::Null, "'null'"),
    (TokenKind::Float, "NUM_FLOAT"),
    (TokenKind::Int, "NUM_INT"),
    (TokenKind::Uint, "NUM_UINT"),
    (TokenKind::String, "STRING"),
    (TokenKind::Bytes, "BYTES"),
    (TokenKind::Identifier, "IDENTIFIER"),
    (TokenKind::EscapedIdentifier, "ESC_IDENTIFIER"),
];

/// A token and its byte range in the source.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    pub kind: TokenKind,
    pub start: u32,
    pub end: u32,
}

/// A set of token kinds.
#[derive(Clone, Copy)]
pub(crate) struct Set(u64);

impl Set {
    pub const fn of(kinds: &[TokenKind]) -> Set {
        let mut bits = 0;
        let mut index = 0;
        while index < kinds.len() {
            bits |= 1 << kinds[index] as u64;
            index += 1;
        }
        Set(bits)
    }

    pub const fn and(self, other: Set) -> Set {
        Set(self.0 | other.0)
    }

    pub fn has(self, kind: TokenKind) -> bool {
        self.0 & (1 << kind as u64) != 0
    }
}

/// The tokens that can start an expression.
pub(crate) const EXPRESSION: Set = Set::of(&[
    TokenKind::OpenBracket,
    TokenKind::OpenBrace,
    TokenKind::OpenParen,
    TokenKind::Dot,
    TokenKind::Minus,
    TokenKind::Exclamation,
    TokenKind::True,
    TokenKind::False,
    TokenKind::Null,
    TokenKind::Float,
    TokenKind::Int,
    TokenKind::Uint,
    TokenKind::String,
    TokenKind::Bytes,
    TokenKind::Identifier,
]);

/// The set as messages show it: in braces if it has more than one kind.
impl fmt::Display for Set {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = KINDS.iter().filter(|(kind, _)| self.has(*kind)).map(|(_, name)| *name);
        let names: Vec<_> = names.collect();
        match names[..] {
            [name] => formatter.write_str(name),
            _ => write!(formatter, "{{{}}}", names.join(", ")),
        }
    }
}
