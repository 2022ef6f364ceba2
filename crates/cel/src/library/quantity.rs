//! Amounts: `quantity('1Gi')`, arithmetic and order.

use quantity::{Digits, Quantity};

use super::cost;
use crate::{Error, Library, Opaque, Overload, Result, Type, Value};

/// An amount. Whether it counts as a whole number depends on how it was written and added up, as in Kubernetes.
#[derive(Clone, Copy, Debug)]
struct Amount {
    quantity: Quantity,
    /// Its digits, as long as they fit into 64 bits.
    digits: Option<Digits>,
}

impl Amount {
    fn ty() -> Type {
        Type::object("kubernetes.Quantity")
    }

    fn parse(text: &str) -> Result<Amount> {
        let (quantity, digits) =
            Quantity::parse_digits(text).map_err(|error| Error::new(error.to_string()))?;
        Ok(Amount { quantity, digits })
    }

    fn of(number: i64) -> Amount {
        Amount { quantity: Quantity::from(number), digits: Some(Digits { value: number, scale: 0 }) }
    }

    fn plus(&self, other: &Amount) -> Amount {
        let digits = self.digits.zip(other.digits).and_then(|(one, two)| one.plus(two));
        Amount { quantity: self.quantity.plus(&other.quantity), digits }
    }

    fn minus(&self, other: &Amount) -> Amount {
        let digits = self.digits.zip(other.digits).and_then(|(one, two)| one.plus(two.negated()?));
        Amount { quantity: self.quantity.plus(&other.quantity.negated()), digits }
    }

    fn integer(&self) -> Option<i64> {
        self.digits.and_then(Digits::integer)
    }
}

impl Opaque for Amount {
    fn ty(&self) -> Type {
        Amount::ty()
    }

    fn equals(&self, other: &dyn Opaque) -> bool {
        super::downcast::<Amount>(other).is_some_and(|other| self.quantity == other.quantity)
    }
}

/// The functions.
pub fn library() -> Library {
    let amount = Amount::ty;
    let library = Library::new()
        .named_type(amount())
        .function(
            "quantity",
            [Overload::global("string_to_quantity", [Type::String], amount(), |_, args| {
                Amount::parse(args[0].as_str()?).map(Value::opaque)
            })],
        )
        .function(
            "isQuantity",
            [Overload::global("is_quantity_string", [Type::String], Type::Bool, |_, args| {
                Ok(Amount::parse(args[0].as_str()?).is_ok().into())
            })],
        )
        .function(
            "sign",
            [Overload::global("quantity_sign", [amount()], Type::Int, |_, args| {
                let quantity = of(&args[0])?.quantity;
                let sign = i64::from(!quantity.is_zero());
                Ok(Value::Int(if quantity.is_negative() { -sign } else { sign }))
            })],
        )
        .function(
            "asApproximateFloat",
            [Overload::member("quantity_get_float", [amount()], Type::Double, |_, args| {
                Ok(of(&args[0])?.quantity.to_f64().into())
            })],
        )
        .function(
            "asInteger",
            [Overload::member("quantity_get_int", [amount()], Type::Int, |_, args| {
                let integer = of(&args[0])?.integer();
                integer.map(Value::Int).ok_or_else(|| Error::new("cannot convert value to integer"))
            })],
        )
        .function(
            "isInteger",
            [Overload::member("quantity_is_integer", [amount()], Type::Bool, |_, args| {
                Ok(of(&args[0])?.integer().is_some().into())
            })],
        );
    costs(order(arithmetic(library)))
}

fn arithmetic(library: Library) -> Library {
    let (both, with_int) = (|| [Amount::ty(), Amount::ty()], || [Amount::ty(), Type::Int]);
    library
        .function(
            "add",
            [
                Overload::member("quantity_add", both(), Amount::ty(), |_, args| {
                    Ok(Value::opaque(of(&args[0])?.plus(of(&args[1])?)))
                }),
                Overload::member("quantity_add_int", with_int(), Amount::ty(), |_, args| {
                    Ok(Value::opaque(of(&args[0])?.plus(&Amount::of(args[1].as_int()?))))
                }),
            ],
        )
        .function(
            "sub",
            [
                Overload::member("quantity_sub", both(), Amount::ty(), |_, args| {
                    Ok(Value::opaque(of(&args[0])?.minus(of(&args[1])?)))
                }),
                Overload::member("quantity_sub_int", with_int(), Amount::ty(), |_, args| {
                    Ok(Value::opaque(of(&args[0])?.minus(&Amount::of(args[1].as_int()?))))
                }),
            ],
        )
}

fn order(library: Library) -> Library {
    let both = || [Amount::ty(), Amount::ty()];
    library
        .function(
            "isGreaterThan",
            [Overload::member("quantity_is_greater_than", both(), Type::Bool, |_, args| {
                Ok((of(&args[0])?.quantity > of(&args[1])?.quantity).into())
            })],
        )
        .function(
            "isLessThan",
            [Overload::member("quantity_is_less_than", both(), Type::Bool, |_, args| {
                Ok((of(&args[0])?.quantity < of(&args[1])?.quantity).into())
            })],
        )
        .function(
            "compareTo",
            [Overload::member("quantity_compare_to", both(), Type::Int, |_, args| {
                Ok(Value::Int(of(&args[0])?.quantity.cmp(&of(&args[1])?.quantity) as i64))
            })],
        )
}

fn costs(mut library: Library) -> Library {
    for function in ["quantity", "isQuantity"] {
        library = library.estimates(function, cost::argument).costs(function, cost::argument_run);
    }
    let nominal = ["sign", "asInteger", "isInteger", "asApproximateFloat", "add", "sub"];
    for function in nominal.into_iter().chain(["isGreaterThan", "isLessThan", "compareTo"]) {
        library = library.estimates(function, cost::one).costs(function, cost::one_run);
    }
    library
}

fn of<'v>(value: &'v Value<'_>) -> Result<&'v Amount> {
    value.as_opaque()
}
