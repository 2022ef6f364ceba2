//! The semver library: `semver('1.2.3')`.

use std::cmp::Ordering;

use lexical::quote;

use super::cost;
use crate::{Error, Library, Opaque, Overload, Result, Type, Value};

/// A parsed part of a version, or an error message.
type Parsed<T> = std::result::Result<T, String>;

/// A version. Build metadata is ignored.
#[derive(Debug)]
struct Semver {
    numbers: [u64; 3],
    prerelease: Vec<Identifier>,
}

/// A prerelease identifier. Numbers sort before strings.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Identifier {
    Number(u64),
    Text(String),
}

impl Semver {
    fn ty() -> Type {
        Type::object("kubernetes.Semver")
    }

    fn parse(text: &str) -> Parsed<Semver> {
        if text.is_empty() {
            return Err("Version string empty".to_owned());
        }
        let parts: Vec<&str> = text.splitn(3, '.').collect();
        let [major, minor, rest] = parts[..] else {
            return Err("No Major.Minor.Patch elements found".to_owned());
        };
        let major = number(major, "Major")?;
        let minor = number(minor, "Minor")?;
        let (rest, build) = match rest.split_once('+') {
            Some((rest, build)) => (rest, Some(build)),
            None => (rest, None),
        };
        let (patch, prerelease) = match rest.split_once('-') {
            Some((patch, prerelease)) => (patch, Some(prerelease)),
            None => (rest, None),
        };
        let patch = number(patch, "Patch")?;
        let prerelease = prerelease.into_iter().flat_map(|text| text.split('.'));
        let prerelease = prerelease.map(Identifier::parse).collect::<Parsed<_>>()?;
        for part in build.into_iter().flat_map(|text| text.split('.')) {
            if part.is_empty() {
                return Err("Build meta data is empty".to_owned());
            }
            if !is_alphanumeric(part) {
                return Err(format!("Invalid character(s) found in build meta data {}", quote(part)));
            }
        }
        Ok(Semver { numbers: [major, minor, patch], prerelease })
    }

    /// Parses leniently: removes a leading `v`, adds missing numbers, removes leading zeros.
    fn normalize(text: &str) -> Parsed<Semver> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let mut parts: Vec<String> = text.splitn(3, '.').map(without_zeros).collect();
        if parts.len() < 3 && parts.last().is_some_and(|last| last.contains(['+', '-'])) {
            return Err("short version cannot contain PreRelease/Build meta data".to_owned());
        }
        parts.resize(3, "0".to_owned());
        Semver::parse(&parts.join("."))
    }

    fn compare(&self, other: &Semver) -> Ordering {
        self.numbers.cmp(&other.numbers).then_with(|| {
            match (self.prerelease.is_empty(), other.prerelease.is_empty()) {
                (true, is_release) => (!is_release).cmp(&false),
                (false, true) => Ordering::Less,
                (false, false) => self.prerelease.cmp(&other.prerelease),
            }
        })
    }
}

fn without_zeros(part: &str) -> String {
    let trimmed = part.trim_start_matches('0');
    if part.len() > 1 && !trimmed.starts_with(|c: char| c.is_ascii_digit()) {
        return format!("0{trimmed}");
    }
    if part.len() > 1 { trimmed.to_owned() } else { part.to_owned() }
}

/// Parses a number of a version; `name` is for error messages.
fn number(text: &str, name: &str) -> Parsed<u64> {
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        let name = name.to_lowercase();
        return Err(format!("Invalid character(s) found in {name} number {}", quote(text)));
    }
    if text.len() > 1 && text.starts_with('0') {
        return Err(format!("{name} number must not contain leading zeroes {}", quote(text)));
    }
    parse_number(text)
}

fn parse_number(text: &str) -> Parsed<u64> {
    let problem = if text.is_empty() { "invalid syntax" } else { "value out of range" };
    text.parse().map_err(|_| format!("strconv.ParseUint: parsing {}: {problem}", quote(text)))
}

fn is_alphanumeric(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

impl Identifier {
    fn parse(text: &str) -> Parsed<Identifier> {
        if text.is_empty() {
            return Err("Prerelease is empty".to_owned());
        }
        if text.bytes().all(|byte| byte.is_ascii_digit()) {
            if text.len() > 1 && text.starts_with('0') {
                let text = quote(text);
                return Err(format!("Numeric PreRelease version must not contain leading zeroes {text}"));
            }
            return parse_number(text).map(Identifier::Number);
        }
        match is_alphanumeric(text) {
            true => Ok(Identifier::Text(text.to_owned())),
            false => Err(format!("Invalid character(s) found in prerelease {}", quote(text))),
        }
    }
}

impl Opaque for Semver {
    fn ty(&self) -> Type {
        Semver::ty()
    }

    fn equals(&self, other: &dyn Opaque) -> bool {
        super::downcast::<Semver>(other).is_some_and(|other| self.compare(other).is_eq())
    }
}

/// The library.
pub fn library() -> Library {
    let semver = Semver::ty;
    let number = |id, call: crate::Implementation| [Overload::member(id, [semver()], Type::Int, call)];
    let library = Library::new()
        .named_type(semver())
        .function(
            "semver",
            [
                Overload::global("string_to_semver", [Type::String], semver(), |_, args| {
                    read(args).map_err(Error::new).map(Value::opaque)
                }),
                Overload::global("string_bool_to_semver", [Type::String, Type::Bool], semver(), |_, args| {
                    read(args).map_err(Error::new).map(Value::opaque)
                }),
            ],
        )
        .function(
            "isSemver",
            [
                Overload::global("is_semver_string", [Type::String], Type::Bool, |_, args| {
                    Ok(read(args).is_ok().into())
                }),
                Overload::global(
                    "is_semver_string_bool",
                    [Type::String, Type::Bool],
                    Type::Bool,
                    |_, args| Ok(read(args).is_ok().into()),
                ),
            ],
        )
        .function(
            "isGreaterThan",
            [Overload::member("semver_is_greater_than", [semver(), semver()], Type::Bool, |_, args| {
                Ok(compare(args)?.is_gt().into())
            })],
        )
        .function(
            "isLessThan",
            [Overload::member("semver_is_less_than", [semver(), semver()], Type::Bool, |_, args| {
                Ok(compare(args)?.is_lt().into())
            })],
        )
        .function(
            "compareTo",
            [Overload::member("semver_compare_to", [semver(), semver()], Type::Int, |_, args| {
                Ok(Value::Int(compare(args)? as i64))
            })],
        )
        .function("major", number("semver_major", |_, args| part(args, 0)))
        .function("minor", number("semver_minor", |_, args| part(args, 1)))
        .function("patch", number("semver_patch", |_, args| part(args, 2)));
    costs(library)
}

fn costs(mut library: Library) -> Library {
    for function in ["semver", "isSemver"] {
        library = library.estimates(function, cost::argument).costs(function, cost::argument_run);
    }
    for function in ["isGreaterThan", "isLessThan", "compareTo", "major", "minor", "patch"] {
        library = library.estimates(function, cost::one).costs(function, cost::one_run);
    }
    library
}

/// Parses a version, normalized if the second argument is true.
fn read(args: &[Value<'_>]) -> Parsed<Semver> {
    let text = args[0].as_str().map_err(|error| error.to_string())?;
    match args.get(1) {
        Some(Value::Bool(true)) => Semver::normalize(text),
        _ => Semver::parse(text),
    }
}

fn compare(args: &[Value<'_>]) -> Result<Ordering> {
    Ok(args[0].as_opaque::<Semver>()?.compare(args[1].as_opaque()?))
}

fn part<'a>(args: &[Value<'a>], index: usize) -> Result<Value<'a>> {
    // Kubernetes converts unsigned numbers to signed ones with wrap-around.
    Ok(Value::Int(args[0].as_opaque::<Semver>()?.numbers[index].cast_signed()))
}
