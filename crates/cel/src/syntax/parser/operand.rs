//! Parsing of operands.

use super::{Parsed, Parser, Stop};
use crate::syntax::{
    ast::{Expr, ExprKind, FieldInit, Literal, MapEntry},
    operators,
    token::{EXPRESSION, Set, TokenKind},
    unescape, words,
};

/// The tokens that may follow a complete operand.
const AFTER_OPERAND: Set = Set::of(&[
    TokenKind::Eof,
    TokenKind::Equals,
    TokenKind::NotEquals,
    TokenKind::In,
    TokenKind::Less,
    TokenKind::LessEquals,
    TokenKind::GreaterEquals,
    TokenKind::Greater,
    TokenKind::And,
    TokenKind::Or,
    TokenKind::OpenBracket,
    TokenKind::CloseBracket,
    TokenKind::CloseBrace,
    TokenKind::CloseParen,
    TokenKind::Dot,
    TokenKind::Comma,
    TokenKind::Minus,
    TokenKind::Question,
    TokenKind::Colon,
    TokenKind::Plus,
    TokenKind::Star,
    TokenKind::Slash,
    TokenKind::Percent,
]);

impl Parser<'_> {
    /// Parses an operand with its unary operators.
    pub(super) fn unary(&mut self) -> Parsed<Expr> {
        if !EXPRESSION.has(self.kind()) {
            self.passed_over(EXPRESSION)?;
        }
        let (sign, function) = match self.kind() {
            TokenKind::Exclamation => (TokenKind::Exclamation, operators::NOT),
            TokenKind::Minus if !matches!(self.next_kind(), TokenKind::Int | TokenKind::Float) => {
                (TokenKind::Minus, operators::NEGATE)
            }
            _ => return self.member(),
        };
        let position = self.tokens[self.at].start;
        let mut count = 0;
        while self.kind() == sign {
            self.at += 1;
            count += 1;
        }
        if !EXPRESSION.has(self.kind()) || self.kind() == TokenKind::Exclamation {
            return self.mismatched(EXPRESSION);
        }
        let operand = self.member()?;
        if count % 2 == 0 {
            return Ok(operand);
        }
        let id = self.node(position);
        self.call(id, function, None, vec![operand])
    }

    /// Skips one unexpected token if the next one is expected.
    fn passed_over(&mut self, expected: Set) -> Parsed<()> {
        if self.kind() == TokenKind::Eof || !expected.has(self.next_kind()) {
            return self.mismatched(expected);
        }
        self.syntax_error(format!("extraneous input {} expecting {expected}", self.shown()));
        self.at += 1;
        Ok(())
    }

    /// Parses an operand with the selections, calls and indexes that follow it.
    fn member(&mut self) -> Parsed<Expr> {
        let is_name = matches!(self.kind(), TokenKind::Identifier | TokenKind::Dot);
        let mut expr = self.primary()?;
        loop {
            expr = match self.kind() {
                TokenKind::Dot => self.selection(expr)?,
                TokenKind::OpenBracket => self.index(expr)?,
                TokenKind::OpenBrace if is_name => match expr.qualified_name() {
                    Some(name) => self.object(name)?,
                    None => return Ok(expr),
                },
                _ => return Ok(expr),
            };
        }
    }

    fn selection(&mut self, operand: Expr) -> Parsed<Expr> {
        let dot = self.tokens[self.at];
        self.at += 1;
        let is_optional = self.kind() == TokenKind::Question;
        self.at += usize::from(is_optional);
        let name = self.tokens[self.at];
        let field = self.text(name).to_owned();
        match name.kind {
            TokenKind::Identifier => {}
            TokenKind::EscapedIdentifier => self.error_at(name.start, "unsupported syntax: '`'"),
            TokenKind::True | TokenKind::False | TokenKind::Null => {
                return self.mismatched(Set::of(&[TokenKind::Identifier]));
            }
            _ => {
                let shown = if name.kind == TokenKind::Eof { "." } else { &format!(".{field}") };
                self.syntax_error(format!("no viable alternative at input '{shown}'"));
                return Err(Stop);
            }
        }
        self.at += 1;
        if self.kind() == TokenKind::OpenParen && !is_optional {
            let id = self.node_here();
            let args = self.arguments()?;
            return self.call(id, &field, Some(operand), args);
        }
        let below = self.height(&operand);
        let id = self.node(dot.start);
        self.raise(id, below)?;
        if is_optional {
            let literal = Expr { id: self.node(name.start), kind: ExprKind::Literal(Literal::String(field)) };
            let function = operators::OPT_SELECT.to_owned();
            return Ok(Expr {
                id,
                kind: ExprKind::Call { target: None, function, args: vec![operand, literal] },
            });
        }
        Ok(Expr { id, kind: ExprKind::Select { operand: Box::new(operand), field, is_test: false } })
    }

    fn index(&mut self, operand: Expr) -> Parsed<Expr> {
        let id = self.node_here();
        self.at += 1;
        let is_optional = self.kind() == TokenKind::Question;
        self.at += usize::from(is_optional);
        if !is_optional && !EXPRESSION.has(self.kind()) {
            self.passed_over(EXPRESSION.and(Set::of(&[TokenKind::Question])))?;
        }
        let index = self.expression()?;
        self.expect(TokenKind::CloseBracket, AFTER_OPERAND)?;
        let function = if is_optional { operators::OPT_INDEX } else { operators::INDEX };
        self.call(id, function, None, vec![operand, index])
    }

    /// Parses call arguments.
    fn arguments(&mut self) -> Parsed<Vec<Expr>> {
        self.at += 1;
        let mut args = Vec::new();
        if self.kind() == TokenKind::CloseParen {
            self.at += 1;
            return Ok(args);
        }
        if !EXPRESSION.has(self.kind()) {
            self.passed_over(EXPRESSION.and(Set::of(&[TokenKind::CloseParen])))?;
        }
        loop {
            args.push(self.expression()?);
            if self.kind() != TokenKind::Comma {
                break;
            }
            self.at += 1;
        }
        self.close(TokenKind::CloseParen)?;
        Ok(args)
    }

    /// Parses the end of a comma-separated list.
    fn close(&mut self, kind: TokenKind) -> Parsed<()> {
        let closes = self.kind() == kind || self.next_kind() == kind && self.kind() != TokenKind::Eof;
        if closes {
            return self.expect(kind, AFTER_OPERAND);
        }
        self.mismatched(Set::of(&[kind, TokenKind::Comma]))
    }

    fn primary(&mut self) -> Parsed<Expr> {
        match self.kind() {
            TokenKind::OpenParen => {
                self.at += 1;
                let inner = self.expression()?;
                self.expect(TokenKind::CloseParen, AFTER_OPERAND)?;
                Ok(inner)
            }
            TokenKind::OpenBracket => self.list(),
            TokenKind::OpenBrace => self.map(),
            TokenKind::Identifier | TokenKind::Dot => self.name(),
            _ => self.literal(),
        }
    }

    /// Parses an identifier or a function call.
    fn name(&mut self) -> Parsed<Expr> {
        let position = self.tokens[self.at].start;
        let mut name = String::new();
        if self.kind() == TokenKind::Dot {
            name.push('.');
            self.at += 1;
        }
        if self.kind() != TokenKind::Identifier {
            return self.mismatched(Set::of(&[TokenKind::Identifier]));
        }
        name.push_str(self.text(self.tokens[self.at]));
        if words::RESERVED.contains(&&*name) {
            self.error_at(position, format!("reserved identifier: {name}"));
        }
        self.at += 1;
        if self.kind() != TokenKind::OpenParen {
            return Ok(Expr { id: self.node(position), kind: ExprKind::Ident(name) });
        }
        let id = self.node_here();
        let args = self.arguments()?;
        self.call(id, &name, None, args)
    }

    fn list(&mut self) -> Parsed<Expr> {
        let id = self.node_here();
        self.at += 1;
        let (mut items, mut optional) = (Vec::new(), Vec::new());
        while self.kind() != TokenKind::CloseBracket {
            // A trailing comma is allowed, even without items.
            if self.kind() == TokenKind::Comma && items.is_empty() {
                self.at += 1;
                break;
            }
            if self.optional_mark() {
                optional.push(items.len());
            } else if !EXPRESSION.has(self.kind()) {
                return self.unfinished(TokenKind::CloseBracket, items.is_empty());
            }
            items.push(self.expression()?);
            if self.kind() != TokenKind::Comma {
                self.close(TokenKind::CloseBracket)?;
                return Ok(self.aggregate(id, ExprKind::List { items, optional }));
            }
            self.at += 1;
        }
        self.expect(TokenKind::CloseBracket, AFTER_OPERAND)?;
        Ok(self.aggregate(id, ExprKind::List { items, optional }))
    }

    /// Reports a token that can neither start an item nor end the list.
    fn unfinished<T>(&mut self, end: TokenKind, is_first: bool) -> Parsed<T> {
        let end = Set::of(&[end]);
        let first = EXPRESSION.and(end).and(Set::of(&[TokenKind::Comma, TokenKind::Question]));
        self.mismatched(if is_first { first } else { end })
    }

    /// Creates a list, map or object node, with the height of its content.
    fn aggregate(&mut self, id: u32, kind: ExprKind) -> Expr {
        let mut expr = Expr { id, kind };
        let below = expr.children_mut().iter().map(|child| self.height(child)).max().unwrap_or_default();
        self.heights[id as usize] = below;
        expr
    }

    fn optional_mark(&mut self) -> bool {
        let is_optional = self.kind() == TokenKind::Question;
        self.at += usize::from(is_optional);
        is_optional
    }

    fn map(&mut self) -> Parsed<Expr> {
        let id = self.node_here();
        self.at += 1;
        let mut entries = Vec::new();
        while self.kind() != TokenKind::CloseBrace {
            if self.kind() == TokenKind::Comma && entries.is_empty() {
                self.at += 1;
                break;
            }
            let is_optional = self.optional_mark();
            if !is_optional && !EXPRESSION.has(self.kind()) {
                return self.unfinished(TokenKind::CloseBrace, entries.is_empty());
            }
            let key = self.expression()?;
            let entry_id = self.node_here();
            self.expect(TokenKind::Colon, EXPRESSION)?;
            let value = self.expression()?;
            entries.push(MapEntry { id: entry_id, key, value, is_optional });
            if self.kind() != TokenKind::Comma {
                self.close(TokenKind::CloseBrace)?;
                return Ok(self.aggregate(id, ExprKind::Map(entries)));
            }
            self.at += 1;
        }
        self.expect(TokenKind::CloseBrace, AFTER_OPERAND)?;
        Ok(self.aggregate(id, ExprKind::Map(entries)))
    }

    /// Parses an object literal: `Name{field: value}`.
    fn object(&mut self, name: String) -> Parsed<Expr> {
        let id = self.node_here();
        self.at += 1;
        let mut fields = Vec::new();
        while self.kind() != TokenKind::CloseBrace {
            let is_optional = self.optional_mark();
            let token = self.tokens[self.at];
            if token.kind != TokenKind::Identifier {
                return self.mismatched(Set::of(&[TokenKind::CloseBrace, TokenKind::Identifier]));
            }
            let name = self.text(token).to_owned();
            self.at += 1;
            let field_id = self.node_here();
            self.expect(TokenKind::Colon, EXPRESSION)?;
            let value = self.expression()?;
            fields.push(FieldInit { id: field_id, name, value, is_optional });
            if self.kind() != TokenKind::Comma {
                break;
            }
            self.at += 1;
        }
        self.close(TokenKind::CloseBrace)?;
        Ok(self.aggregate(id, ExprKind::Struct { name, fields }))
    }

    fn literal(&mut self) -> Parsed<Expr> {
        let start = self.tokens[self.at];
        let sign = if self.kind() == TokenKind::Minus { "-" } else { "" };
        self.at += sign.len();
        let token = self.tokens[self.at];
        let text = self.text(token);
        let literal = match token.kind {
            TokenKind::True => Ok(Literal::Bool(true)),
            TokenKind::False => Ok(Literal::Bool(false)),
            TokenKind::Null => Ok(Literal::Null),
            TokenKind::Int => signed(sign, text).map(Literal::Int).ok_or("invalid int literal"),
            TokenKind::Uint => unsigned(text).map(Literal::Uint).ok_or("invalid uint literal"),
            TokenKind::Float => double(sign, text).map(Literal::Double).ok_or("invalid double literal"),
            TokenKind::String => {
                unescape::string(text).map(Literal::String).ok_or("unable to unescape string")
            }
            TokenKind::Bytes => unescape::bytes(text).map(Literal::Bytes).ok_or("unable to unescape string"),
            _ => return self.mismatched(EXPRESSION),
        };
        self.at += 1;
        let literal = literal.unwrap_or_else(|message| {
            self.error_at(start.start, message);
            Literal::Null
        });
        Ok(Expr { id: self.node(start.start), kind: ExprKind::Literal(literal) })
    }
}

fn signed(sign: &str, text: &str) -> Option<i64> {
    match text.strip_prefix("0x") {
        Some(hex) => i64::from_str_radix(&format!("{sign}{hex}"), 16).ok(),
        None => format!("{sign}{text}").parse().ok(),
    }
}

fn unsigned(text: &str) -> Option<u64> {
    let digits = &text[..text.len() - 1];
    match digits.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => digits.parse().ok(),
    }
}

fn double(sign: &str, text: &str) -> Option<f64> {
    format!("{sign}{text}").parse().ok().filter(|number: &f64| number.is_finite())
}
