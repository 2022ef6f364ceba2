//! The tree of an expression.

/// The number of a node, which finds its position, its type and what it refers to.
pub type ExprId = u32;

/// A tree with the positions of its nodes.
#[derive(Clone, Debug)]
pub struct Ast {
    /// The tree.
    pub root: Expr,
    /// The byte in the text where each node stands, by its number.
    pub positions: Vec<u32>,
}

/// A node.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// Its number.
    pub id: ExprId,
    /// What it is.
    pub kind: ExprKind,
}

/// What a node is.
#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    /// A constant.
    Literal(Literal),
    /// A name.
    Ident(String),
    /// `operand.field`, or `has(operand.field)`.
    Select {
        /// What is looked into.
        operand: Box<Expr>,
        /// The field.
        field: String,
        /// Whether only its presence is asked for.
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
        /// Which of them are optional, by index.
        optional: Vec<usize>,
    },
    /// `{a: b, ?c: d}`
    Map(Vec<Entry>),
    /// `Name{a: b}`
    Struct {
        /// The type.
        name: String,
        /// The fields.
        fields: Vec<FieldInit>,
    },
    /// A loop, which macros make.
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
pub struct Entry {
    /// Its number.
    pub id: ExprId,
    /// The key.
    pub key: Expr,
    /// The value.
    pub value: Expr,
    /// Whether it is left out if its value is missing.
    pub is_optional: bool,
}

/// A field of an object that an expression makes.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldInit {
    /// Its number.
    pub id: ExprId,
    /// The field.
    pub name: String,
    /// The value.
    pub value: Expr,
    /// Whether it is left out if its value is missing.
    pub is_optional: bool,
}

/// A loop over a list or a map that folds what it sees into a result.
#[derive(Clone, Debug, PartialEq)]
pub struct Comprehension {
    /// What is looped over.
    pub range: Expr,
    /// The variable of the item or key.
    pub variable: String,
    /// Of loops with two variables: the one of the value, while the first is the index or key.
    pub second_variable: Option<String>,
    /// The variable of what is folded.
    pub accumulator: String,
    /// What it is at first.
    pub init: Expr,
    /// Whether the loop goes on.
    pub condition: Expr,
    /// What it becomes.
    pub step: Expr,
    /// What comes out.
    pub result: Expr,
}

impl Expr {
    /// The dotted name that a chain of selections is.
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

    /// The nodes directly below.
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

    /// The same nodes, to change them.
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
