//! The format library: `format.dns1123Label().validate('my-name')`.

mod checks;

use lexical::names;

use super::{cost, url};
use crate::{
    Implementation, Library, Opaque, Overload, Type, Value,
    cost::{CallEstimate, CostEstimate, STRING_TRAVERSAL_FACTOR},
};

/// A named string format.
struct Format {
    /// The key for `format.named`.
    key: &'static str,
    function: &'static str,
    make: Implementation,
    /// Returns the problems of a string.
    problems: fn(&str) -> Vec<String>,
    /// The length of its regular expression, or of an equivalent one, for costs.
    pattern_len: u64,
}

/// A format as a value of the language.
#[derive(Clone, Copy)]
struct FormatValue(&'static Format);

impl std::fmt::Debug for FormatValue {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Format({})", self.0.key)
    }
}

impl Opaque for FormatValue {
    fn ty(&self) -> Type {
        ty()
    }

    fn equals(&self, other: &dyn Opaque) -> bool {
        super::downcast::<FormatValue>(other).is_some_and(|other| self.0.key == other.0.key)
    }
}

fn ty() -> Type {
    Type::object("kubernetes.NamedFormat")
}

macro_rules! format {
    ($index:literal, $key:literal, $pattern_len:expr, $problems:expr) => {
        Format {
            key: $key,
            function: concat!("format.", $key),
            make: |_, _| Ok(Value::opaque(FormatValue(&FORMATS[$index]))),
            problems: $problems,
            pattern_len: $pattern_len,
        }
    };
}

static FORMATS: [Format; 13] = [
    format!(0, "dns1123Label", 30, |text| names::dns1123_label(text)),
    format!(1, "dns1123Subdomain", 60, |text| names::dns1123_subdomain(text)),
    format!(2, "dns1035Label", 30, |text| names::dns1035_label(text)),
    format!(3, "qualifiedName", 60, names::qualified_name),
    format!(4, "dns1123LabelPrefix", 30, |text| names::dns1123_label(&names::without_last_dash(text))),
    format!(5, "dns1123SubdomainPrefix", 60, |text| names::dns1123_subdomain(&names::without_last_dash(
        text
    ))),
    format!(6, "dns1035LabelPrefix", 30, |text| names::dns1035_label(&names::without_last_dash(text))),
    format!(7, "labelValue", 40, names::label_value),
    format!(8, "uri", 1103, |text| url::problem(text).into_iter().collect()),
    format!(9, "uuid", 70, |text| one(checks::is_uuid(text), "does not match the UUID format")),
    format!(10, "byte", 84, |text| one(checks::is_base64(text), "invalid base64")),
    format!(11, "date", 71, |text| one(checks::is_date(text), "invalid date")),
    format!(12, "datetime", 71, |text| one(checks::is_date_time(text), "invalid datetime")),
];

fn one(is_valid: bool, problem: &str) -> Vec<String> {
    if is_valid { Vec::new() } else { vec![problem.to_owned()] }
}

/// The length of the longest regular expression of a format, for estimates.
const MAX_NAME_PATTERN: f64 = 128.0;
/// The maximum size of a format, for estimates of `==`.
const MAX_SIZE: u64 = 64;

/// The library.
pub fn library() -> Library {
    let problems = Type::optional(Type::list(Type::String));
    let mut library = Library::new()
        .named_type(ty())
        .function(
            "validate",
            [Overload::member("format-validate", [ty(), Type::String], problems, |_, args| {
                let problems = (args[0].as_opaque::<FormatValue>()?.0.problems)(args[1].as_str()?);
                let problems: Vec<Value<'_>> = problems.into_iter().map(Value::from).collect();
                Ok(if problems.is_empty() {
                    Value::Optional(None)
                } else {
                    Value::some(Value::list(problems))
                })
            })],
        )
        .function(
            "format.named",
            [Overload::global("format-named", [Type::String], Type::optional(ty()), |_, args| {
                let key = args[0].as_str()?;
                let format = FORMATS.iter().find(|format| format.key == key);
                Ok(format
                    .map_or(Value::Optional(None), |format| Value::some(Value::opaque(FormatValue(format)))))
            })],
        );
    for format in &FORMATS {
        library =
            library.function(format.function, [Overload::global(format.function, [], ty(), format.make)]);
    }
    library
        .estimates("format.named", cost::one)
        .costs("format.named", cost::one_run)
        .estimates("validate", |call| {
            let text = call.size(call.args.first()?).cost(STRING_TRAVERSAL_FACTOR);
            Some(CallEstimate::of(text.scaled(MAX_NAME_PATTERN * crate::cost::REGEX_LENGTH_FACTOR)))
        })
        .costs("validate", |call| {
            let format = call.args.first()?.as_opaque::<FormatValue>().ok()?;
            Some(cost::matching_run(call.args.get(1)?.cost_size(), format.0.pattern_len))
        })
}

/// Whether the text is a valid namespace name.
pub(super) fn is_label(text: &str) -> bool {
    names::dns1123_label(text).is_empty()
}

/// Whether the text is a DNS subdomain, the name of most objects.
pub(super) fn is_subdomain(text: &str) -> bool {
    names::dns1123_subdomain(text).is_empty()
}

/// The estimated cost of comparing two formats.
pub(super) fn equality() -> CallEstimate {
    CallEstimate::of(CostEstimate { min: 1, max: MAX_SIZE }.scaled(STRING_TRAVERSAL_FACTOR))
}
