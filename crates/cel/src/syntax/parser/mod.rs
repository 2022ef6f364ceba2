//! A recursive descent parser that expands macros while parsing.

mod operand;

use std::collections::HashMap;

use super::{
    ast::{Ast, Expr, ExprId, ExprKind, Literal},
    lexer,
    macros::{Expander, Macro, MacroKey},
    operators,
    source::{Issue, Issues},
    token::{EXPRESSION, Set, Token, TokenKind},
};

/// The maximum length of an expression.
const MAX_CODE_POINTS: usize = 100_000;
/// The maximum nesting of grammar rules, and of operators, selections and calls.
const MAX_DEPTH: u16 = 250;
/// The maximum number of nodes, because macros copy their operands.
pub(super) const MAX_NODES: usize = 200_000;

/// The parser cannot continue; the reason is among the issues.
struct Stop;

type Parsed<T> = Result<T, Stop>;

/// Parses an expression and expands its macros.
pub(crate) fn parse(source: &str, macros: &HashMap<MacroKey, Macro>) -> Result<Ast, Issues> {
    let code_points = source.chars().count();
    if code_points > MAX_CODE_POINTS {
        let message =
            format!("expression code point size exceeds limit: size: {code_points}, limit {MAX_CODE_POINTS}");
        return Err(Issues::new(source, vec![Issue { position: None, message }]));
    }
    let (tokens, issues) = lexer::tokens(source);
    let mut parser = Parser {
        source,
        tokens,
        at: 0,
        macros,
        issues,
        positions: Vec::new(),
        heights: Vec::new(),
        depth: Depth::default(),
    };
    match parser.whole() {
        Ok(root) if parser.issues.is_empty() => Ok(Ast { root, positions: parser.positions }),
        _ => Err(Issues::new(source, parser.issues)),
    }
}

/// The present nesting of grammar rules.
#[derive(Default)]
struct Depth {
    expression: u16,
    relation: u16,
    calculation: u16,
}

struct Parser<'s> {
    source: &'s str,
    tokens: Vec<Token>,
    at: usize,
    macros: &'s HashMap<MacroKey, Macro>,
    issues: Vec<Issue>,
    positions: Vec<u32>,
    /// The height of operators, selections and calls below each node.
    heights: Vec<u16>,
    depth: Depth,
}

/// The precedence and function name of a binary operator.
fn binary_operator(kind: TokenKind) -> Option<(u8, &'static str)> {
    Some(match kind {
        TokenKind::Less => (0, operators::LESS),
        TokenKind::LessEquals => (0, operators::LESS_EQUALS),
        TokenKind::GreaterEquals => (0, operators::GREATER_EQUALS),
        TokenKind::Greater => (0, operators::GREATER),
        TokenKind::Equals => (0, operators::EQUALS),
        TokenKind::NotEquals => (0, operators::NOT_EQUALS),
        TokenKind::In => (0, operators::IN),
        TokenKind::Plus => (1, operators::ADD),
        TokenKind::Minus => (1, operators::SUBTRACT),
        TokenKind::Star => (2, operators::MULTIPLY),
        TokenKind::Slash => (2, operators::DIVIDE),
        TokenKind::Percent => (2, operators::MODULO),
        _ => return None,
    })
}

impl Parser<'_> {
    fn whole(&mut self) -> Parsed<Expr> {
        let expr = self.expression()?;
        self.expect(TokenKind::Eof, Set::of(&[]))?;
        Ok(expr)
    }

    /// Parses `a ? b : c`, or anything that binds tighter.
    fn expression(&mut self) -> Parsed<Expr> {
        self.depth.expression += 1;
        if self.depth.expression > MAX_DEPTH {
            return self.too_deep();
        }
        let condition = self.logic(TokenKind::Or)?;
        let result = if self.kind() == TokenKind::Question {
            let id = self.node_here();
            self.at += 1;
            let if_true = self.logic(TokenKind::Or)?;
            self.expect(TokenKind::Colon, EXPRESSION)?;
            let if_false = self.expression()?;
            self.call(id, operators::CONDITIONAL, None, vec![condition, if_true, if_false])?
        } else {
            condition
        };
        self.depth.expression -= 1;
        Ok(result)
    }

    /// Parses terms joined by `||` or `&&` into a balanced tree.
    fn logic(&mut self, operator: TokenKind) -> Parsed<Expr> {
        let first = self.logic_term(operator)?;
        if self.kind() != operator {
            return Ok(first);
        }
        let (mut terms, mut ids) = (vec![Some(first)], Vec::new());
        while self.kind() == operator {
            let position = self.tokens[self.at].start;
            self.at += 1;
            terms.push(Some(self.logic_term(operator)?));
            ids.push(self.node(position));
        }
        let function = if operator == TokenKind::Or { operators::OR } else { operators::AND };
        Ok(self.balanced(function, &mut terms, &ids))
    }

    fn logic_term(&mut self, operator: TokenKind) -> Parsed<Expr> {
        if operator == TokenKind::Or { self.logic(TokenKind::And) } else { self.binary(0) }
    }

    fn balanced(&mut self, function: &str, terms: &mut [Option<Expr>], ids: &[ExprId]) -> Expr {
        let Some(middle) = ids.len().checked_sub(1).map(|_| ids.len().div_ceil(2).min(ids.len() - 1)) else {
            return terms[0].take().expect("every term is used once");
        };
        let (left_terms, right_terms) = terms.split_at_mut(middle + 1);
        let left = self.balanced(function, left_terms, &ids[..middle]);
        let right = self.balanced(function, right_terms, &ids[middle + 1..]);
        let id = ids[middle];
        self.heights[id as usize] = self.height(&left).max(self.height(&right));
        let function = function.to_owned();
        Expr { id, kind: ExprKind::Call { target: None, function, args: vec![left, right] } }
    }

    /// Parses comparisons and arithmetic with at least this precedence.
    fn binary(&mut self, tightness: u8) -> Parsed<Expr> {
        let is_relation = tightness == 0;
        self.depth.relation += u16::from(is_relation);
        self.depth.calculation += 1;
        if self.depth.relation > MAX_DEPTH || self.depth.calculation > MAX_DEPTH {
            return self.too_deep();
        }
        let mut left = self.unary()?;
        while let Some((level, function)) =
            binary_operator(self.kind()).filter(|(level, _)| *level >= tightness)
        {
            let id = self.node_here();
            self.at += 1;
            // The depth of the left-hand arithmetic does not count for the comparison.
            self.depth.calculation -= u16::from(level == 0);
            let right = if level == 0 { self.comparison_operand()? } else { self.binary(level + 1)? };
            self.depth.calculation += u16::from(level == 0);
            left = self.call(id, function, None, vec![left, right])?;
        }
        self.depth.calculation -= 1;
        self.depth.relation -= u16::from(is_relation);
        Ok(left)
    }

    /// Parses the right operand of a comparison, whose arithmetic counts as one more nested comparison.
    fn comparison_operand(&mut self) -> Parsed<Expr> {
        self.depth.relation += 1;
        if self.depth.relation > MAX_DEPTH {
            return self.too_deep();
        }
        let operand = self.binary(1)?;
        self.depth.relation -= 1;
        Ok(operand)
    }

    fn kind(&self) -> TokenKind {
        self.tokens[self.at].kind
    }

    fn next_kind(&self) -> TokenKind {
        self.tokens[(self.at + 1).min(self.tokens.len() - 1)].kind
    }

    /// Consumes a token of a kind. An extraneous token is skipped, and a missing one is assumed if the
    /// present token is in `follow`, so that the parser continues and finds further errors.
    fn expect(&mut self, kind: TokenKind, follow: Set) -> Parsed<()> {
        let expected = Set::of(&[kind]);
        if self.kind() == kind {
            self.at = (self.at + 1).min(self.tokens.len() - 1);
            return Ok(());
        }
        if self.kind() != TokenKind::Eof && self.next_kind() == kind {
            self.syntax_error(format!("extraneous input {} expecting {expected}", self.shown()));
            self.at = (self.at + 2).min(self.tokens.len() - 1);
            return Ok(());
        }
        if follow.has(self.kind()) {
            self.syntax_error(format!("missing {expected} at {}", self.shown()));
            return Ok(());
        }
        self.mismatched(expected)
    }

    fn mismatched<T>(&mut self, expected: Set) -> Parsed<T> {
        self.syntax_error(format!("mismatched input {} expecting {expected}", self.shown()));
        Err(Stop)
    }

    /// The present token, as messages show it.
    fn shown(&self) -> String {
        match self.kind() {
            TokenKind::Eof => "'<EOF>'".to_owned(),
            _ => format!("'{}'", self.text(self.tokens[self.at])),
        }
    }

    fn text(&self, token: Token) -> &str {
        &self.source[token.start as usize..token.end as usize]
    }

    fn syntax_error(&mut self, message: String) {
        let position = Some(self.tokens[self.at].start);
        self.issues.push(Issue { position, message: format!("Syntax error: {message}") });
    }

    fn error_at(&mut self, position: u32, message: impl Into<String>) {
        self.issues.push(Issue { position: Some(position), message: message.into() });
    }

    fn too_deep<T>(&mut self) -> Parsed<T> {
        let message = format!("expression recursion limit exceeded: {MAX_DEPTH}");
        self.issues.push(Issue { position: None, message });
        Err(Stop)
    }

    /// Creates a node at the present token.
    fn node_here(&mut self) -> ExprId {
        self.node(self.tokens[self.at].start)
    }

    fn node(&mut self, position: u32) -> ExprId {
        let id = ExprId::try_from(self.positions.len()).expect("the number of nodes is limited");
        self.positions.push(position);
        self.heights.push(0);
        id
    }

    fn height(&self, expr: &Expr) -> u16 {
        self.heights.get(expr.id as usize).copied().unwrap_or_default()
    }

    /// Sets the height of a node above the given height.
    fn raise(&mut self, id: ExprId, below: u16) -> Parsed<()> {
        if below >= MAX_DEPTH {
            self.issues.push(Issue { position: None, message: "max recursion depth exceeded".to_owned() });
            return Err(Stop);
        }
        self.heights[id as usize] = below + 1;
        Ok(())
    }

    /// Creates a call, or expands a macro.
    fn call(&mut self, id: ExprId, function: &str, target: Option<Expr>, args: Vec<Expr>) -> Parsed<Expr> {
        let below = target.iter().chain(&args).map(|expr| self.height(expr)).max().unwrap_or_default();
        let expansion = self.macros.find(function, target.is_some(), args.len());
        let Some(expansion) = expansion else {
            let is_nesting = target.is_some() || function.contains('_');
            if is_nesting {
                self.raise(id, below)?
            } else {
                self.heights[id as usize] = below
            }
            let (target, function) = (target.map(Box::new), function.to_owned());
            return Ok(Expr { id, kind: ExprKind::Call { target, function, args } });
        };
        let position = self.positions[id as usize];
        let is_member = target.is_some();
        let mut expander = Expander { positions: &mut self.positions, position };
        let expanded = (expansion.expand)(&mut expander, target, args);
        self.heights.resize(self.positions.len(), 0);
        match expanded {
            Ok(expr) => {
                let below = below.max(self.height(&expr));
                if is_member {
                    self.raise(expr.id, below)?
                } else {
                    self.heights[expr.id as usize] = below
                }
                Ok(expr)
            }
            Err(error) => {
                let position = error.id.map_or(position, |id| self.positions[id as usize]);
                self.error_at(position, error.message);
                Ok(Expr { id, kind: ExprKind::Literal(Literal::Null) })
            }
        }
    }
}

/// Finds macros by name, receiver and number of arguments.
trait FindMacro {
    fn find(&self, name: &str, is_member: bool, args: usize) -> Option<Macro>;
}

impl FindMacro for HashMap<MacroKey, Macro> {
    fn find(&self, name: &str, is_member: bool, args: usize) -> Option<Macro> {
        let fixed = self.get(&MacroKey::of(name, is_member, Some(args)));
        fixed.or_else(|| self.get(&MacroKey::of(name, is_member, None))).copied()
    }
}
