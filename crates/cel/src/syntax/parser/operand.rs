//! Operands: what operators stand between.

use super::{Parsed, Parser, Stop};
use crate::syntax::{
    ast::{Entry, Expr, ExprKind, FieldInit, Literal},
    operators,
    token::{EXPRESSION, Kind, Set},
    unescape, words,
};

/// What may come after an operand that is complete.
const AFTER_OPERAND: Set = Set::of(&[
    Kind::Eof,
    Kind::Equals,
    Kind::NotEquals,
    Kind::In,
    Kind::Less,
    Kind::LessEquals,
    Kind::GreaterEquals,
    Kind::Greater,
    Kind::And,
    Kind::Or,
    Kind::OpenBracket,
    Kind::CloseBracket,
    Kind::CloseBrace,
    Kind::CloseParen,
    Kind::Dot,
    Kind::Comma,
    Kind::Minus,
    Kind::Question,
    Kind::Colon,
    Kind::Plus,
    Kind::Star,
    Kind::Slash,
    Kind::Percent,
]);

impl Parser<'_> {
    /// An operand with its signs.
    pub(super) fn unary(&mut self) -> Parsed<Expr> {
        if !EXPRESSION.has(self.kind()) {
            self.passed_over(EXPRESSION)?;
        }
        let (sign, function) = match self.kind() {
            Kind::Exclamation => (Kind::Exclamation, operators::NOT),
            Kind::Minus if !matches!(self.next_kind(), Kind::Int | Kind::Float) => {
                (Kind::Minus, operators::NEGATE)
            }
            _ => return self.member(),
        };
        let position = self.tokens[self.at].start;
        let mut count = 0;
        while self.kind() == sign {
            self.at += 1;
            count += 1;
        }
        if !EXPRESSION.has(self.kind()) || self.kind() == Kind::Exclamation {
            return self.mismatched(EXPRESSION);
        }
        let operand = self.member()?;
        if count % 2 == 0 {
            return Ok(operand);
        }
        let id = self.node(position);
        self.call(id, function, None, vec![operand])
    }

    /// Passes over one token that does not fit if the next one does.
    fn passed_over(&mut self, expected: Set) -> Parsed<()> {
        if self.kind() == Kind::Eof || !expected.has(self.next_kind()) {
            return self.mismatched(expected);
        }
        self.syntax_error(format!("extraneous input {} expecting {expected}", self.shown()));
        self.at += 1;
        Ok(())
    }

    /// An operand with the selections, calls and indexes that follow it.
    fn member(&mut self) -> Parsed<Expr> {
        let is_name = matches!(self.kind(), Kind::Identifier | Kind::Dot);
        let mut expr = self.primary()?;
        loop {
            expr = match self.kind() {
                Kind::Dot => self.selection(expr)?,
                Kind::OpenBracket => self.index(expr)?,
                Kind::OpenBrace if is_name => match expr.qualified_name() {
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
        let is_optional = self.kind() == Kind::Question;
        self.at += usize::from(is_optional);
        let name = self.tokens[self.at];
        let field = self.text(name).to_owned();
        match name.kind {
            Kind::Identifier => {}
            Kind::EscapedIdentifier => self.error_at(name.start, "unsupported syntax: '`'"),
            Kind::True | Kind::False | Kind::Null => return self.mismatched(Set::of(&[Kind::Identifier])),
            _ => {
                let shown = if name.kind == Kind::Eof { "." } else { &format!(".{field}") };
                self.syntax_error(format!("no viable alternative at input '{shown}'"));
                return Err(Stop);
            }
        }
        self.at += 1;
        if self.kind() == Kind::OpenParen && !is_optional {
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
        let is_optional = self.kind() == Kind::Question;
        self.at += usize::from(is_optional);
        if !is_optional && !EXPRESSION.has(self.kind()) {
            self.passed_over(EXPRESSION.and(Set::of(&[Kind::Question])))?;
        }
        let index = self.expression()?;
        self.expect(Kind::CloseBracket, AFTER_OPERAND)?;
        let function = if is_optional { operators::OPT_INDEX } else { operators::INDEX };
        self.call(id, function, None, vec![operand, index])
    }

    /// What stands between parentheses of a call.
    fn arguments(&mut self) -> Parsed<Vec<Expr>> {
        self.at += 1;
        let mut args = Vec::new();
        if self.kind() == Kind::CloseParen {
            self.at += 1;
            return Ok(args);
        }
        if !EXPRESSION.has(self.kind()) {
            self.passed_over(EXPRESSION.and(Set::of(&[Kind::CloseParen])))?;
        }
        loop {
            args.push(self.expression()?);
            if self.kind() != Kind::Comma {
                break;
            }
            self.at += 1;
        }
        self.close(Kind::CloseParen)?;
        Ok(args)
    }

    /// The end of a list of things between commas.
    fn close(&mut self, kind: Kind) -> Parsed<()> {
        let closes = self.kind() == kind || self.next_kind() == kind && self.kind() != Kind::Eof;
        if closes {
            return self.expect(kind, AFTER_OPERAND);
        }
        self.mismatched(Set::of(&[kind, Kind::Comma]))
    }

    fn primary(&mut self) -> Parsed<Expr> {
        match self.kind() {
            Kind::OpenParen => {
                self.at += 1;
                let inner = self.expression()?;
                self.expect(Kind::CloseParen, AFTER_OPERAND)?;
                Ok(inner)
            }
            Kind::OpenBracket => self.list(),
            Kind::OpenBrace => self.map(),
            Kind::Identifier | Kind::Dot => self.name(),
            _ => self.literal(),
        }
    }

    /// A name, or the call of a function.
    fn name(&mut self) -> Parsed<Expr> {
        let position = self.tokens[self.at].start;
        let mut name = String::new();
        if self.kind() == Kind::Dot {
            name.push('.');
            self.at += 1;
        }
        if self.kind() != Kind::Identifier {
            return self.mismatched(Set::of(&[Kind::Identifier]));
        }
        name.push_str(self.text(self.tokens[self.at]));
        if words::RESERVED.contains(&&*name) {
            self.error_at(position, format!("reserved identifier: {name}"));
        }
        self.at += 1;
        if self.kind() != Kind::OpenParen {
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
        while self.kind() != Kind::CloseBracket {
            // A comma may stand behind the last item, or alone.
            if self.kind() == Kind::Comma && items.is_empty() {
                self.at += 1;
                break;
            }
            if self.optional_mark() {
                optional.push(items.len());
            } else if !EXPRESSION.has(self.kind()) {
                return self.unfinished(Kind::CloseBracket, items.is_empty());
            }
            items.push(self.expression()?);
            if self.kind() != Kind::Comma {
                self.close(Kind::CloseBracket)?;
                return Ok(self.aggregate(id, ExprKind::List { items, optional }));
            }
            self.at += 1;
        }
        self.expect(Kind::CloseBracket, AFTER_OPERAND)?;
        Ok(self.aggregate(id, ExprKind::List { items, optional }))
    }

    /// Something that cannot begin an item, where the end could stand too.
    fn unfinished<T>(&mut self, end: Kind, is_first: bool) -> Parsed<T> {
        let end = Set::of(&[end]);
        let first = EXPRESSION.and(end).and(Set::of(&[Kind::Comma, Kind::Question]));
        self.mismatched(if is_first { first } else { end })
    }

    /// A list, map or object: as high as what it holds.
    fn aggregate(&mut self, id: u32, kind: ExprKind) -> Expr {
        let mut expr = Expr { id, kind };
        let below = expr.children_mut().iter().map(|child| self.height(child)).max().unwrap_or_default();
        self.heights[id as usize] = below;
        expr
    }

    fn optional_mark(&mut self) -> bool {
        let is_optional = self.kind() == Kind::Question;
        self.at += usize::from(is_optional);
        is_optional
    }

    fn map(&mut self) -> Parsed<Expr> {
        let id = self.node_here();
        self.at += 1;
        let mut entries = Vec::new();
        while self.kind() != Kind::CloseBrace {
            if self.kind() == Kind::Comma && entries.is_empty() {
                self.at += 1;
                break;
            }
            let is_optional = self.optional_mark();
            if !is_optional && !EXPRESSION.has(self.kind()) {
                return self.unfinished(Kind::CloseBrace, entries.is_empty());
            }
            let key = self.expression()?;
            let entry_id = self.node_here();
            self.expect(Kind::Colon, EXPRESSION)?;
            let value = self.expression()?;
            entries.push(Entry { id: entry_id, key, value, is_optional });
            if self.kind() != Kind::Comma {
                self.close(Kind::CloseBrace)?;
                return Ok(self.aggregate(id, ExprKind::Map(entries)));
            }
            self.at += 1;
        }
        self.expect(Kind::CloseBrace, AFTER_OPERAND)?;
        Ok(self.aggregate(id, ExprKind::Map(entries)))
    }

    /// An object of a type: `Name{field: value}`.
    fn object(&mut self, name: String) -> Parsed<Expr> {
        let id = self.node_here();
        self.at += 1;
        let mut fields = Vec::new();
        while self.kind() != Kind::CloseBrace {
            let is_optional = self.optional_mark();
            let token = self.tokens[self.at];
            if token.kind != Kind::Identifier {
                return self.mismatched(Set::of(&[Kind::CloseBrace, Kind::Identifier]));
            }
            let name = self.text(token).to_owned();
            self.at += 1;
            let field_id = self.node_here();
            self.expect(Kind::Colon, EXPRESSION)?;
            let value = self.expression()?;
            fields.push(FieldInit { id: field_id, name, value, is_optional });
            if self.kind() != Kind::Comma {
                break;
            }
            self.at += 1;
        }
        self.close(Kind::CloseBrace)?;
        Ok(self.aggregate(id, ExprKind::Struct { name, fields }))
    }

    fn literal(&mut self) -> Parsed<Expr> {
        let start = self.tokens[self.at];
        let sign = if self.kind() == Kind::Minus { "-" } else { "" };
        self.at += sign.len();
        let token = self.tokens[self.at];
        let text = self.text(token);
        let literal = match token.kind {
            Kind::True => Ok(Literal::Bool(true)),
            Kind::False => Ok(Literal::Bool(false)),
            Kind::Null => Ok(Literal::Null),
            Kind::Int => signed(sign, text).map(Literal::Int).ok_or("invalid int literal"),
            Kind::Uint => unsigned(text).map(Literal::Uint).ok_or("invalid uint literal"),
            Kind::Float => double(sign, text).map(Literal::Double).ok_or("invalid double literal"),
            Kind::String => unescape::string(text).map(Literal::String).ok_or("unable to unescape string"),
            Kind::Bytes => unescape::bytes(text).map(Literal::Bytes).ok_or("unable to unescape string"),
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
