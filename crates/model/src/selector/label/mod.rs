//! Label selectors as clients write them: `app=web,tier in (a,b),!legacy`.

mod lexer;
#[cfg(test)]
mod tests;

use serde_json::Value;

use self::lexer::{Token, tokens};
use super::{Requirement, Target, Test};
use crate::error::{Error, FieldError};
use crate::names;

/// Parses the `labelSelector` of a request. The requirements are sorted by key.
pub fn parse(text: &str) -> Result<Vec<Requirement>, Error> {
    let mut requirements = Parser { tokens: tokens(text), at: 0 }.selector().map_err(Error::bad_request)?;
    requirements.sort_by(|a, b| a.key.cmp(&b.key));
    Ok(requirements)
}

/// Reads tokens from left to right. Errors are plain messages, as in Kubernetes.
struct Parser<'a> {
    tokens: Vec<Token<'a>>,
    at: usize,
}

/// Operator between a key and its values.
#[derive(Clone, Copy)]
enum Operator {
    In,
    NotIn,
    Equals,
    NotEquals,
    GreaterThan,
    LessThan,
}

impl<'a> Parser<'a> {
    fn selector(mut self) -> Result<Vec<Requirement>, String> {
        let mut requirements = Vec::new();
        loop {
            match self.peek() {
                Token::Word(_) | Token::Symbol("!") => {}
                Token::End => return Ok(requirements),
                token => return Err(format!("found '{token}', expected: !, identifier, or 'end of string'")),
            }
            requirements
                .push(self.requirement().map_err(|fault| format!("unable to parse requirement: {fault}"))?);
            match self.next() {
                Token::End => return Ok(requirements),
                Token::Symbol(",") => match self.peek() {
                    Token::Word(_) | Token::Symbol("!") => {}
                    token => return Err(format!("found '{token}', expected: identifier after ','")),
                },
                token => return Err(format!("found '{token}', expected: ',' or 'end of string'")),
            }
        }
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let absent = self.peek() == Token::Symbol("!");
        if absent {
            self.next();
        }
        let key = match self.next() {
            Token::Word(key) => key,
            token => return Err(format!("found '{token}', expected: identifier")),
        };
        let wrong = names::qualified_name(key);
        if !wrong.is_empty() {
            // Kubernetes prints this for a missing path.
            return Err(FieldError::invalid("<nil>", key, wrong.join("; ")).to_string());
        }
        let test = if absent {
            Test::NotExists
        } else if matches!(self.peek(), Token::End | Token::Symbol(",")) {
            Test::Exists
        } else {
            self.test(key)?
        };
        Ok(Requirement { target: Target::Label, key: key.to_owned(), test })
    }

    fn test(&mut self, key: &str) -> Result<Test, String> {
        let operator = self.operator()?;
        let mut values = match operator {
            Operator::In | Operator::NotIn => self.set()?,
            _ => vec![self.value()?.to_owned()],
        };
        values.sort_unstable();
        values.dedup();
        let number = match operator {
            Operator::GreaterThan | Operator::LessThan => {
                values.first().and_then(|value| super::integer(value))
            }
            _ => Some(0),
        };
        let faults: Vec<String> = number_fault(number, &values)
            .into_iter()
            .chain(values.iter().enumerate().filter_map(|(at, value)| value_fault(key, at, value)))
            .collect();
        match (faults.as_slice(), number) {
            ([], Some(number)) => Ok(match operator {
                Operator::In | Operator::Equals => Test::In(values),
                Operator::NotIn | Operator::NotEquals => Test::NotIn(values),
                Operator::GreaterThan => Test::GreaterThan(number),
                Operator::LessThan => Test::LessThan(number),
            }),
            ([fault], _) => Err(fault.clone()),
            (faults, _) => Err(format!("[{}]", faults.join(", "))),
        }
    }

    fn operator(&mut self) -> Result<Operator, String> {
        Ok(match self.next() {
            Token::Word("in") => Operator::In,
            Token::Word("notin") => Operator::NotIn,
            Token::Symbol("=" | "==") => Operator::Equals,
            Token::Symbol("!=") => Operator::NotEquals,
            Token::Symbol(">") => Operator::GreaterThan,
            Token::Symbol("<") => Operator::LessThan,
            token => return Err(format!("found '{token}', expected: in, notin, =, ==, !=, gt, lt")),
        })
    }

    /// The values between parentheses; a comma without a value beside it, and `()`, stand for the empty value.
    fn set(&mut self) -> Result<Vec<String>, String> {
        match self.next() {
            Token::Symbol("(") => {}
            token => return Err(format!("found '{token}' expected: '('")),
        }
        match self.peek() {
            Token::Word(_) | Token::Symbol("," | ")") => {}
            token => return Err(format!("found '{token}', expected: ',', ')' or identifier")),
        }
        let mut values = Vec::new();
        loop {
            match self.next() {
                Token::Word(value) => {
                    values.push(value.to_owned());
                    match self.peek() {
                        Token::Symbol("," | ")") => {}
                        token => return Err(format!("found '{token}', expected: ',' or ')'")),
                    }
                }
                Token::Symbol(",") => {
                    if values.is_empty() || matches!(self.peek(), Token::Symbol("," | ")")) {
                        values.push(String::new());
                    }
                }
                Token::Symbol(")") => {
                    if values.is_empty() {
                        values.push(String::new());
                    }
                    return Ok(values);
                }
                token => return Err(format!("found '{token}', expected: ',', or identifier")),
            }
        }
    }

    fn value(&mut self) -> Result<&'a str, String> {
        if matches!(self.peek(), Token::End | Token::Symbol(",")) {
            return Ok("");
        }
        match self.next() {
            Token::Word(value) => Ok(value),
            token => Err(format!("found '{token}', expected: identifier")),
        }
    }

    fn peek(&self) -> Token<'a> {
        self.tokens.get(self.at).copied().unwrap_or(Token::End)
    }

    fn next(&mut self) -> Token<'a> {
        let token = self.peek();
        self.at += 1;
        token
    }
}

fn number_fault(number: Option<i64>, values: &[String]) -> Option<String> {
    let detail = "for 'Gt', 'Lt' operators, the value must be an integer";
    let value = values.first().map_or(Value::Null, |value| value.as_str().into());
    number.is_none().then(|| FieldError::invalid("values[0]", value, detail).to_string())
}

fn value_fault(key: &str, at: usize, value: &str) -> Option<String> {
    let wrong = names::label_value(value);
    let path = format!("values[{at}][{key}]");
    (!wrong.is_empty()).then(|| FieldError::invalid(path, value, wrong.join("; ")).to_string())
}
