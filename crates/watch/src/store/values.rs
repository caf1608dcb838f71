//! Statements with many rows: the text of `($1, $2), ($3, $4)` and the arguments that belong to it.

use super::Dialect;
use sqlx::any::AnyArguments;
use sqlx::query::Query;
use sqlx::{Any, Arguments as _, AssertSqlSafe, Encode, Type};
use std::fmt::Write as _;

/// Rows of a `VALUES` list.
pub(super) struct Values {
    dialect: Dialect,
    text: String,
    arguments: AnyArguments,
    count: usize,
}

/// One row of it.
pub(super) struct Row<'a> {
    values: &'a mut Values,
    is_first: bool,
}

impl Values {
    pub(super) fn new(dialect: Dialect) -> Self {
        Self { dialect, text: String::new(), arguments: AnyArguments::default(), count: 0 }
    }

    /// One name in each row.
    pub(super) fn names<'n>(dialect: Dialect, names: impl IntoIterator<Item = &'n str>) -> Self {
        let mut values = Self::new(dialect);
        for name in names {
            values.row(|row| {
                row.add(name.to_owned());
            });
        }
        values
    }

    pub(super) fn row(&mut self, fill: impl FnOnce(&mut Row<'_>)) {
        self.text.push_str(if self.text.is_empty() { "(" } else { ", (" });
        fill(&mut Row { values: self, is_first: true });
        self.text.push(')');
    }

    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// The statement, in which `{}` stands for the rows.
    pub(super) fn query(self, statement: &str) -> Query<'static, Any, AnyArguments> {
        // The number of rows is another one each time: such a statement is not worth keeping.
        sqlx::query_with(AssertSqlSafe(statement.replace("{}", &self.text)), self.arguments).persistent(false)
    }
}

impl Row<'_> {
    pub(super) fn add<'t, T: Encode<'t, Any> + Type<Any>>(&mut self, value: T) -> &mut Self {
        self.values.count += 1;
        let separator = if self.is_first { "" } else { ", " };
        self.is_first = false;
        let text = &mut self.values.text;
        match self.values.dialect {
            // To SQLite `$1` is a name, and it looks through all names for each of them.
            Dialect::Sqlite => text.extend([separator, "?"]),
            Dialect::Postgres => write!(text, "{separator}${}", self.values.count).expect("text takes text"),
        }
        self.values.arguments.add(value).expect("numbers, texts and bytes can be sent");
        self
    }
}
