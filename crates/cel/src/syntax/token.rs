//! Kinds of tokens, and how messages name them.

use std::fmt;

/// What a token is. The order is the one in which messages list what was expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
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

const KINDS: [(Kind, &str); 36] = [
    (Kind::Eof, "<EOF>"),
    (Kind::Equals, "'=='"),
    (Kind::NotEquals, "'!='"),
    (Kind::In, "'in'"),
    (Kind::Less, "'<'"),
    (Kind::LessEquals, "'<='"),
    (Kind::GreaterEquals, "'>='"),
    (Kind::Greater, "'>'"),
    (Kind::And, "'&&'"),
    (Kind::Or, "'||'"),
    (Kind::OpenBracket, "'['"),
    (Kind::CloseBracket, "']'"),
    (Kind::OpenBrace, "'{'"),
    (Kind::CloseBrace, "'}'"),
    (Kind::OpenParen, "'('"),
    (Kind::CloseParen, "')'"),
    (Kind::Dot, "'.'"),
    (Kind::Comma, "','"),
    (Kind::Minus, "'-'"),
    (Kind::Exclamation, "'!'"),
    (Kind::Question, "'?'"),
    (Kind::Colon, "':'"),
    (Kind::Plus, "'+'"),
    (Kind::Star, "'*'"),
    (Kind::Slash, "'/'"),
    (Kind::Percent, "'%'"),
    (Kind::True, "'true'"),
    (Kind::False, "'false'"),
    (Kind::Null, "'null'"),
    (Kind::Float, "NUM_FLOAT"),
    (Kind::Int, "NUM_INT"),
    (Kind::Uint, "NUM_UINT"),
    (Kind::String, "STRING"),
    (Kind::Bytes, "BYTES"),
    (Kind::Identifier, "IDENTIFIER"),
    (Kind::EscapedIdentifier, "ESC_IDENTIFIER"),
];

/// A token, and the bytes of the text that it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    pub kind: Kind,
    pub start: u32,
    pub end: u32,
}

/// A set of kinds.
#[derive(Clone, Copy)]
pub(crate) struct Set(u64);

impl Set {
    pub const fn of(kinds: &[Kind]) -> Set {
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

    pub fn has(self, kind: Kind) -> bool {
        self.0 & (1 << kind as u64) != 0
    }
}

/// What an expression can begin with.
pub(crate) const EXPRESSION: Set = Set::of(&[
    Kind::OpenBracket,
    Kind::OpenBrace,
    Kind::OpenParen,
    Kind::Dot,
    Kind::Minus,
    Kind::Exclamation,
    Kind::True,
    Kind::False,
    Kind::Null,
    Kind::Float,
    Kind::Int,
    Kind::Uint,
    Kind::String,
    Kind::Bytes,
    Kind::Identifier,
]);

/// The set as messages show it: braces where it has more than one.
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
