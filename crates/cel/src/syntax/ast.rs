//! The abstract syntax tree.

/// The id of a node, the index of its position, type and reference.
pub type ExprId = u32;

/// An AST with the positions of its nodes.
#[derive(Clone, Debug)]
pub struct Ast {
    /// The tree.
    pub root: Expr,
    /// The byte offset of each node in the source, by id.
    pub positions: Vec<u32>,
}

/// A node of the AST.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// The id.
    pub id: ExprId,
    /// The kind of the node.
    pub kind: ExprKind,
}

/// The kind of a node.
#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    /// A constant.
    Literal(Literal),
    /// A name.
    Ident(String),
    /// `operand.field`, or `has(operand.field)`.
    Select {
        /// The operand.
        operand: Box<Expr>,
        /// The field.
        field: String,
        /// Whether it is a presence test.
        is_test: bool,
    },
    /// A call of a function or an operator.
    Call {
        /// The receiver.
        target: Option<Box<Expr>>,
        /// The function.
        function: String,
        /// The arguments.
        args: Vec<Expr>,
    },
    /// `[a, ?b]`
    List {
        /// The items.
        items: Vec<Expr>,
        /// The indexes of the optional items.
        optional: Vec<usize>,
    },
    /// `{a: b, ?c: d}`
    Map(Vec<MapEntry>),
    /// `Name{a: b}`
    Struct {
        /// The type.
        name: String,
        /// The fields.
        fields: Vec<FieldInit>,
    },
    /// A loop, produced by macros.
    Comprehension(Box<Comprehension>),
}

/// A constant.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// `1`
    Int(i64),
    /// `1u`
    Uint(u64),
    /// `1.0`
    Double(f64),
    /// `'a'`
    String(String),
    /// `b'a'`
    Bytes(Vec<u8>),
}

/// An entry of a map.
#[derive(Clone, Debug, PartialEq)]
pub struct MapEntry {
    /// The id.
    pub id: ExprId,
    /// The key.
    pub key: Expr,
    /// The value.
    pub value: Expr,
    /// Whether the entry is omitted if its value is absent.
    pub is_optional: bool,
}

/// A field of an object literal.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldInit {
    /// The id.
    pub id: ExprId,
    /// The field.
    pub name: String,
    /// The value.
    pub value: Expr,
    /// Whether the field is omitted if its value is absent.
    pub is_optional: bool,
}

/// A loop over a list or a map that folds its items into a result.
#[derive(Clone, Debug, PartialEq)]
pub struct Comprehension {
    /// The list or map.
    pub range: Expr,
    /// The variable of the item or key.
    pub variable: String,
    /// The variable of the value, in loops with two variables, where the first is the index or key.
    pub second_variable: Option<String>,
    /// The name of the accumulator.
    pub accumulator: String,
    /// The initial value of the accumulator.
    pub init: Expr,
    /// The condition to continue.
    pub condition: Expr,
    /// The next value of the accumulator.
    pub step: Expr,
    /// The result.
    pub result: Expr,
}

impl Expr {
    /// The dotted name of a chain of selections.
    pub(crate) fn qualified_name(&self) -> Option<String> {
        match &self.kind {
            ExprKind::Ident(name) => Some(name.clone()),
            ExprKind::Select { operand, field, is_test: false } => {
                let mut name = operand.qualified_name()?;
                name.push('.');
                name.push_str(field);
                Some(name)
            }
            _ => None,
        }
    }

    /// The child nodes.
    pub(crate) fn children(&self) -> Vec<&Expr> {
        match &self.kind {
            ExprKind::Literal(_) | ExprKind::Ident(_) => Vec::new(),
            ExprKind::Select { operand, .. } => vec![operand],
            ExprKind::Call { target, args, .. } => target.as_deref().into_iter().chain(args).collect(),
            ExprKind::List { items, .. } => items.iter().collect(),
            ExprKind::Map(entries) => entries.iter().flat_map(|entry| [&entry.key, &entry.value]).collect(),
            ExprKind::Struct { fields, .. } => fields.iter().map(|field| &field.value).collect(),
            ExprKind::Comprehension(fold) => {
                vec![&fold.range, &fold.init, &fold.condition, &fold.step, &fold.result]
            }
        }
    }

    /// The child nodes, mutable.
    pub(crate) fn children_mut(&mut self) -> Vec<&mut Expr> {
        match &mut self.kind {
            ExprKind::Literal(_) | ExprKind::Ident(_) => Vec::new(),
            ExprKind::Select { operand, .. } => vec![operand],
            ExprKind::Call { target, args, .. } => target.as_deref_mut().into_iter().chain(args).collect(),
            ExprKind::List { items, .. } => items.iter_mut().collect(),
            ExprKind::Map(entries) => {
                entries.iter_mut().flat_map(|entry| [&mut entry.key, &mut entry.value]).collect()
            }
            ExprKind::Struct { fields, .. } => fields.iter_mut().map(|field| &mut field.value).collect(),
            ExprKind::Comprehension(fold) => {
                vec![&mut fold.range, &mut fold.init, &mut fold.condition, &mut fold.step, &mut fold.result]
            }
        }
    }
}
