//! Loops.

use super::{Run, Slot};
use crate::{Error, Result, Value, plan::Fold};

impl<'a> Run<'a, '_> {
    pub(super) fn fold(&mut self, fold: &'a Fold) -> Result<Value<'a>> {
        let range = self.node(&fold.range)?;
        self.locals[fold.accumulator] = Slot::Lazy(&fold.init);
        match &range {
            Value::List(list) => {
                for (index, item) in list.iter().enumerate() {
                    let (first, second) = match fold.second {
                        Some(_) => (Ok(Value::Int(i64::try_from(index).unwrap_or(i64::MAX))), Some(item)),
                        None => (item, None),
                    };
                    if !self.round(fold, first, second)? {
                        break;
                    }
                }
            }
            Value::Map(map) => {
                for key in map.keys() {
                    let second = fold.second.map(|_| map.require(&key));
                    if !self.round(fold, Ok(key), second)? {
                        break;
                    }
                }
            }
            _ => return Err(Error::new(format!("got '{}', expected iterable type", host_name(&range)))),
        }
        self.locals[fold.first] = Slot::Empty;
        let result = self.node(&fold.result);
        self.locals[fold.accumulator] = Slot::Empty;
        result
    }

    /// One round; whether there may be another.
    fn round(
        &mut self,
        fold: &'a Fold,
        first: Result<Value<'a>>,
        second: Option<Result<Value<'a>>>,
    ) -> Result<bool> {
        self.locals[fold.first] = Slot::Ready(first);
        if let (Some(slot), Some(second)) = (fold.second, second) {
            self.locals[slot] = Slot::Ready(second);
        }
        match self.node(&fold.condition) {
            Ok(Value::Bool(false)) => return Ok(false),
            Err(error) if error.is_cost_limit() => return Err(error),
            _ => {}
        }
        match self.node(&fold.step) {
            Err(error) if error.is_cost_limit() => Err(error),
            value => {
                self.locals[fold.accumulator] = Slot::Ready(value);
                Ok(true)
            }
        }
    }
}

/// What messages call the type of a value that is no list and no map.
fn host_name(value: &Value<'_>) -> &'static str {
    match value {
        Value::Bool(_) => "types.Bool",
        Value::Int(_) => "types.Int",
        Value::Uint(_) => "types.Uint",
        Value::Double(_) => "types.Double",
        Value::String(_) => "types.String",
        Value::Bytes(_) => "types.Bytes",
        Value::Duration(_) => "types.Duration",
        Value::Timestamp(_) => "types.Timestamp",
        Value::Null => "types.Null",
        Value::Type(_) => "*types.Type",
        Value::Optional(_) => "*types.Optional",
        Value::List(_) | Value::Map(_) | Value::Opaque(_) => "ref.Val",
    }
}
