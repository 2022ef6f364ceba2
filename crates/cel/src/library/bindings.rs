//! The macro `cel.bind(name, value, expression)`, which computes a value once.

use crate::{
    Library, Macro,
    syntax::{Expander, Expr, ExprKind, MacroError},
};

/// The library.
pub fn library() -> Library {
    Library::new().expands(Macro::member("bind", 3, bind))
}

fn bind(expander: &mut Expander<'_>, target: Option<Expr>, mut args: Vec<Expr>) -> Result<Expr, MacroError> {
    let target = target.expect("a member is called on a receiver");
    if target.kind != ExprKind::Ident("cel".to_owned()) {
        return Ok(expander.member_call("bind", target, args));
    }
    let (expr, value, name) = (args.pop(), args.pop(), args.pop());
    let (Some(expr), Some(value), Some(name)) = (expr, value, name) else {
        return Err(MacroError { id: None, message: "cel.bind() takes three arguments".to_owned() });
    };
    match &name.kind {
        ExprKind::Ident(known) => Ok(expander.bind(known, value, expr)),
        _ => {
            let message = "cel.bind() variable names must be simple identifiers".to_owned();
            Err(MacroError { id: Some(name.id), message })
        }
    }
}
