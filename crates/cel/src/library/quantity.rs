//! The quantity library: `quantity('1Gi')`, arithmetic and comparison.

use quantity::{Digits, Quantity};

use super::cost;
use crate::{Error, Library, Opaque, Overload, Result, Type, Value};

/// A quantity. As in Kubernetes, whether it counts as an integer depends on its digits as written or summed.
#[derive(Clone, Copy, Debug)]
struct QuantityValue {
    quantity: Quantity,
    /// The digits, while they fit into 64 bits.
    digits: Option<Digits>,
}

impl QuantityValue {
    fn ty() -> Type {
        Type::object("kubernetes.Quantity")
    }

    fn parse(text: &str) -> Result<QuantityValue> {
        let (quantity, digits) =
            Quantity::parse_digits(text).map_err(|error| Error::new(error.to_string()))?;
        Ok(QuantityValue { quantity, digits })
    }

    fn of(number: i64) -> QuantityValue {
        QuantityValue { quantity: Quantity::from(number), digits: Some(Digits { value: number, scale: 0 }) }
    }

    fn plus(&self, other: &QuantityValue) -> QuantityValue {
        let digits = self.digits.zip(other.digits).and_then(|(one, two)| one.plus(two));
        QuantityValue { quantity: self.quantity.plus(&other.quantity), digits }
    }

    fn minus(&self, other: &QuantityValue) -> QuantityValue {
        let digits = self.digits.zip(other.digits).and_then(|(one, two)| one.plus(two.negated()?));
        QuantityValue { quantity: self.quantity.plus(&other.quantity.negated()), digits }
    }

    fn integer(&self) -> Option<i64> {
        self.digits.and_then(Digits::integer)
    }
}

impl Opaque for QuantityValue {
    fn ty(&self) -> Type {
        QuantityValue::ty()
    }

    fn equals(&self, other: &dyn Opaque) -> bool {
        super::downcast::<QuantityValue>(other).is_some_and(|other| self.quantity == other.quantity)
    }
}

/// The library.
pub fn library() -> Library {
    let amount = QuantityValue::ty;
    let library = Library::new()
        .named_type(amount())
        .function(
            "quantity",
            [Overload::global("string_to_quantity", [Type::String], amount(), |_, args| {
                QuantityValue::parse(args[0].as_str()?).map(Value::opaque)
            })],
        )
        .function(
            "isQuantity",
            [Overload::global("is_quantity_string", [Type::String], Type::Bool, |_, args| {
                Ok(QuantityValue::parse(args[0].as_str()?).is_ok().into())
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
    let (both, with_int) =
        (|| [QuantityValue::ty(), QuantityValue::ty()], || [QuantityValue::ty(), Type::Int]);
    library
        .function(
            "add",
            [
                Overload::member("quantity_add", both(), QuantityValue::ty(), |_, args| {
                    Ok(Value::opaque(of(&args[0])?.plus(of(&args[1])?)))
                }),
                Overload::member("quantity_add_int", with_int(), QuantityValue::ty(), |_, args| {
                    Ok(Value::opaque(of(&args[0])?.plus(&QuantityValue::of(args[1].as_int()?))))
                }),
            ],
        )
        .function(
            "sub",
            [
                Overload::member("quantity_sub", both(), QuantityValue::ty(), |_, args| {
                    Ok(Value::opaque(of(&args[0])?.minus(of(&args[1])?)))
                }),
                Overload::member("quantity_sub_int", with_int(), QuantityValue::ty(), |_, args| {
                    Ok(Value::opaque(of(&args[0])?.minus(&QuantityValue::of(args[1].as_int()?))))
                }),
            ],
        )
}

fn order(library: Library) -> Library {
    let both = || [QuantityValue::ty(), QuantityValue::ty()];
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

fn of<'v>(value: &'v Value<'_>) -> Result<&'v QuantityValue> {
    value.as_opaque()
}
