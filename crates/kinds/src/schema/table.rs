//! Parses the text form of the table; the head of the file in `schema/` describes its notation.
//!
//! One pass finds the types and their lines. The lines of a type are parsed on first use: a server needs few types to
//! start. Lists are not in the file, because all of them look alike; each kind has one unless the table says otherwise.

use std::{collections::HashMap, sync::Arc};

use super::lines::{Lines, Source, TableError};
use super::types::{GroupVersionKind, Name, Names, Schema, Type, TypeId};

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";

/// Parses a whole table.
pub fn parse(text: &'static str) -> Result<Schema, TableError> {
    let schema = index(text)?;
    schema.types().try_for_each(|(_, of)| of.load())?;
    Ok(schema)
}

/// Indexes the types of a table without parsing their fields.
pub(super) fn index(text: &'static str) -> Result<Schema, TableError> {
    let mut index = Index::default();
    let mut offset = 0;
    for (number, line) in (1..).zip(text.split_inclusive('\n')) {
        let start = offset;
        offset += line.len();
        let line = line.trim_end();
        let result = match line.as_bytes().first() {
            None | Some(b'#') => Ok(()),
            Some(b' ') => index.field(start, offset),
            Some(_) => index.header(line, number),
        };
        result.map_err(|problem| TableError { line: number, problem })?;
    }
    Ok(index.finish(text))
}

#[derive(Default)]
struct Index {
    names: Names,
    headers: Vec<Header>,
    is_open: bool,
}

/// A type and its lines.
struct Header {
    package: (&'static str, &'static str),
    name: &'static str,
    line: usize,
    kind: Option<&'static str>,
    is_atomic: bool,
    is_single: bool,
    lines: std::ops::Range<usize>,
}

impl Index {
    fn field(&mut self, start: usize, end: usize) -> Result<(), String> {
        let header = self.headers.last_mut().filter(|_| self.is_open).ok_or("no type to belong to")?;
        if header.lines.is_empty() {
            header.lines.start = start;
        }
        header.lines.end = end;
        Ok(())
    }

    fn header(&mut self, line: &'static str, number: usize) -> Result<(), String> {
        if let Some(package) = line.strip_prefix("package ") {
            let package = package.split_once(' ').ok_or("a package needs an alias and a prefix")?;
            self.names.packages.push(package);
            self.is_open = false;
            return Ok(());
        }
        let mut words = line.split(' ');
        let name = words.next().ok_or("a type needs a name")?;
        let package = *self.names.packages.last().ok_or("a type outside of any package")?;
        let (line, lines) = (number, 0..0);
        let mut header =
            Header { package, name, line, kind: None, is_atomic: false, is_single: false, lines };
        for word in words {
            match word {
                "atomic" => header.is_atomic = true,
                "single" => header.is_single = true,
                kind => header.kind = Some(kind),
            }
        }
        if self.names.ids.insert((package.0, name), id(self.headers.len())).is_some() {
            return Err(format!("{name} is there twice"));
        }
        self.headers.push(header);
        self.is_open = true;
        Ok(())
    }

    fn finish(self, text: &'static str) -> Schema {
        let names = Arc::new(self.names);
        let list_meta = names.packages.iter().find(|(_, prefix)| *prefix == META);
        let list_meta = list_meta.and_then(|(alias, _)| names.ids.get(&(*alias, "ListMeta")).copied());
        let mut kinds = HashMap::new();
        let mut types: Vec<Type> = self.headers.iter().map(|header| header.build(text, &names)).collect();
        for (at, header) in self.headers.iter().enumerate() {
            let Some((group, version, kind)) = header.kind() else { continue };
            kinds.insert((group, version, kind), id(at));
            if let Some(list_meta) = list_meta.filter(|_| !header.is_single && !types[at].everywhere) {
                let list = list_of(&types[at], id(at), list_meta);
                types[at].list = Some(id(types.len()));
                types.push(list);
            }
        }
        Schema::new(types, names, kinds)
    }
}

impl Header {
    fn kind(&self) -> Option<GroupVersionKind> {
        let kind = self.kind?;
        let (group, version) =
            if kind == "*" { ("*", "*") } else { kind.split_once('/').unwrap_or(("", kind)) };
        Some((group, version, self.name))
    }

    fn build(&self, text: &'static str, names: &Arc<Names>) -> Type {
        let lines = Lines {
            text: &text[self.lines.clone()],
            first: self.line + 1,
            alias: self.package.0,
            is_kind: self.kind.is_some(),
            names: Arc::clone(names),
        };
        let mut built = Type::new(self.package.1.into(), self.name.into(), Source::Lines(lines));
        built.atomic = self.is_atomic;
        built.everywhere = self.kind == Some("*");
        if let Some((group, version, _)) = self.kind().filter(|_| !built.everywhere) {
            built.group_version = Some((group.into(), version.into()));
        }
        built
    }
}

fn list_of(item: &Type, id: TypeId, list_meta: TypeId) -> Type {
    let name: Name = format!("{}List", item.name).into();
    let mut list = Type::new(item.package.clone(), name, Source::List(id, list_meta));
    list.group_version = item.group_version.clone();
    list
}

fn id(at: usize) -> TypeId {
    TypeId(u32::try_from(at).expect("far fewer types than 2^32"))
}
