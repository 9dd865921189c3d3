//! Where a set-based write runs, and what it is made of.

use std::{future::Future, sync::Arc};

use crate::{
    error::{Error, ErrorKind, Result},
    sql::{Arg, Batch, Cost, Executor, Expect, Receipt, Statement, Step},
    value::Value,
};

/// Statements that are run together or not at all, each on as many rows as it finds.
///
/// ```
/// use anabranch::{prelude::*, sql::{Statement, Write, WriteExecutor}, value::Value};
///
/// #[derive(Debug, Entity)]
/// struct Item {
///     #[entity(id)]
///     id: i64,
///     price: i64,
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> anabranch::error::Result<()> {
/// # let db = Database::temporary().await?;
/// # db.create_tables::<Item>().await?;
/// # let mut ctx = db.context();
/// # ctx.add(Item { id: 0, price: 10 });
/// # ctx.save_changes().await?;
/// let dearer = Write::statements(vec![Statement {
///     text: "UPDATE item SET price = price + ?1 RETURNING price".into(),
///     args: vec![Value::Integer(5)],
/// }])?;
/// let written = WriteExecutor::write(&db, dearer).await?;
/// assert_eq!(written.changed(), 1);
/// assert_eq!(written.rows(0).collect::<Vec<_>>(), [[Value::Integer(15)]]);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Write {
    pub(crate) batch: Batch,
}

/// What came of a [`Write`].
///
/// ```
/// # use anabranch::prelude::*;
/// use anabranch::{sql::{Statement, Write, WriteExecutor, Written}, value::Value};
///
/// # #[derive(Debug, Entity)]
/// # struct Item { #[entity(id)] id: i64, name: String, price: i64, discount: Option<i64> }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> anabranch::error::Result<()> {
/// # let db = Database::temporary().await?;
/// # db.create_tables::<Item>().await?;
/// # let mut ctx = db.context();
/// # for (name, price, discount) in [("tea", 3, None), ("cake", 7, Some(2)), ("jam", 7, Some(7))] {
/// #     ctx.add(Item { id: 0, name: name.into(), price, discount });
/// # }
/// # ctx.save_changes().await?;
/// let statement = |text: &str| Statement { text: text.into(), args: vec![] };
/// let both = Write::statements(vec![
///     statement("UPDATE item SET price = 9 WHERE price > 5 RETURNING id"),
///     statement("DELETE FROM item WHERE price < 5"),
/// ])?;
/// let written: Written = WriteExecutor::write(&db, both).await?;
/// assert_eq!((written.changed(), written.changed_by(1)), (3, 1));
/// assert_eq!(written.rows(0).count(), 2);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Written {
    pub(crate) receipt: Receipt,
}

/// Where a set-based write can run: `&Database` (through the writer's queue, in a commit shared with others),
/// `&mut *tx` (inside a transaction), or `&mut *s` (inside a session).
///
/// ```
/// # use anabranch::prelude::*;
/// use anabranch::{error::Result, sql::WriteExecutor};
///
/// # #[derive(Debug, Entity)]
/// # struct Item { #[entity(id)] id: i64, name: String, price: i64, discount: Option<i64> }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> anabranch::error::Result<()> {
/// # let db = Database::temporary().await?;
/// # db.create_tables::<Item>().await?;
/// # let mut ctx = db.context();
/// # for (name, price, discount) in [("tea", 3, None), ("cake", 7, Some(2)), ("jam", 7, Some(7))] {
/// #     ctx.add(Item { id: 0, name: name.into(), price, discount });
/// # }
/// # ctx.save_changes().await?;
/// async fn raise<'c>(at: impl WriteExecutor<'c>) -> Result<u64> {
///     Item::query().update().set(Item::PRICE, Item::PRICE + 1).execute(at).await
/// }
/// assert_eq!(raise(&db).await?, 3);
/// assert_eq!(db.write(async |tx| raise(&mut *tx).await).await?, 3);
/// # Ok(()) }
/// ```
#[diagnostic::on_unimplemented(
    message = "nothing can be written through `{Self}`",
    label = "no place for a write to run",
    note = "write `&db` for a Database, `&mut *tx` for a transaction, `&mut *s` for a session; a `ReadSnapshot` only reads"
)]
pub trait WriteExecutor<'c>: Executor<'c> {
    /// Runs the statements, all or none; on the database itself they are committed when this returns.
    ///
    /// # Errors
    ///
    /// What SQLite says of a statement, with its text; what a write can meet otherwise.
    ///
    /// # Cancel safety
    ///
    /// On the database: dropped while it is queued, nothing is written; dropped while it runs, it commits or it does
    /// not. In a transaction or session: dropped meanwhile, the whole of it can only be rolled back.
    fn write(self, write: Write) -> impl Future<Output = Result<Written>> + Send;
}

impl Write {
    /// Statements as they are, in this order: INSERT, UPDATE, DELETE, REPLACE and SELECT.
    ///
    /// # Errors
    ///
    /// Kind `Refused` for a text that is another statement, or more than one, or has a NUL in it.
    pub fn statements(statements: Vec<Statement>) -> Result<Self> {
        let steps = statements.into_iter().map(|statement| {
            check(&statement.text)
                .map_err(|error| error.with_statement(statement.text.to_string()))?;
            Ok(Step {
                text: statement.text,
                args: statement.args.into_iter().map(Arg::Value).collect(),
                expect: Expect::Any {
                    table: None,
                    cost: Cost::Any,
                },
                returns: true,
            })
        });
        Ok(Self {
            batch: Batch {
                steps: steps.collect::<Result<_>>()?,
                ..Batch::default()
            },
        })
    }
}

impl Write {
    /// Steps to come, and the keys that they need.
    pub(crate) const fn from_batch(batch: Batch) -> Self {
        Self { batch }
    }

    /// One more statement, on a table.
    pub(crate) fn push(
        &mut self,
        (table, cost): (&'static str, Cost),
        text: Arc<str>,
        args: Vec<Arg>,
        returns: bool,
    ) {
        self.batch.steps.push(Step {
            text,
            args,
            expect: Expect::Any {
                table: Some(table),
                cost,
            },
            returns,
        });
    }
}

impl Written {
    /// How many rows were inserted, updated or deleted, those by triggers and cascades not counted: so none of a view.
    #[must_use]
    pub fn changed(&self) -> u64 {
        self.receipt.changed.iter().map(|(_, rows)| rows).sum()
    }

    /// How many rows the statement at this position did.
    #[must_use]
    pub fn changed_by(&self, statement: usize) -> u64 {
        let changed = &self.receipt.changed;
        let found = changed.binary_search_by_key(&statement, |(step, _)| *step);
        found.map_or(0, |at| changed[at].1)
    }

    /// The rows that the statement at this position returned.
    pub fn rows(&self, statement: usize) -> impl Iterator<Item = &[Value]> {
        // In the order of the statements: of thousands each is found without looking at the others.
        let rows = &self.receipt.computed;
        let first = rows.partition_point(|(step, _)| *step < statement);
        rows[first..]
            .iter()
            .take_while(move |(step, _)| *step == statement)
            .map(|(_, row)| &row[..])
    }
}

/// What a statement of a [`Write`] may begin with.
const VERBS: [&str; 7] = [
    "DELETE", "INSERT", "REPLACE", "SELECT", "UPDATE", "VALUES", "WITH",
];

/// Refuses a text that is not one statement on rows. SQLite would set some pragmas when it only looks at them.
fn check(text: &str) -> Result<()> {
    let refused = |what: &'static str| Err(Error::new(ErrorKind::Refused, what));
    if text.contains('\0') {
        return refused(
            "a text of SQL with a NUL character in it does not run: bind values as arguments",
        );
    }
    let mut rest = blank(text);
    let word = rest.find(|c: char| !c.is_ascii_alphabetic());
    let word = &rest[..word.unwrap_or(rest.len())];
    if !VERBS.iter().any(|verb| verb.eq_ignore_ascii_case(word)) {
        return refused(
            "a set-based write takes INSERT, UPDATE, DELETE and SELECT: anything else runs in db.write",
        );
    }
    while let Some(first) = rest.chars().next() {
        rest = match first {
            ';' if is_over(&rest[1..]) => return Ok(()),
            ';' => {
                return refused(
                    "a set-based write takes a statement for each text, and this one has several",
                );
            }
            '\'' | '"' | '`' => quoted(&rest[1..], first),
            '[' => quoted(&rest[1..], ']'),
            _ if blank(rest).len() < rest.len() => blank(rest),
            _ => &rest[first.len_utf8()..],
        };
    }
    Ok(())
}

/// Whether nothing more follows.
fn is_over(text: &str) -> bool {
    let mut rest = blank(text);
    while let Some(next) = rest.strip_prefix(';') {
        rest = blank(next);
    }
    rest.is_empty()
}

/// What follows after blanks and comments.
fn blank(text: &str) -> &str {
    let mut rest = text;
    loop {
        let trimmed = rest.trim_start_matches(|c: char| c.is_ascii_whitespace());
        rest = if let Some(comment) = trimmed.strip_prefix("--") {
            comment.split_once('\n').map_or("", |(_, rest)| rest)
        } else if let Some(comment) = trimmed.strip_prefix("/*") {
            comment.split_once("*/").map_or("", |(_, rest)| rest)
        } else {
            return trimmed;
        };
    }
}

/// What follows after a quoted text or name; a quote in it is written twice, and then it goes on as another one.
fn quoted(text: &str, end: char) -> &str {
    text.split_once(end).map_or("", |(_, rest)| rest)
}

#[cfg(test)]
mod tests {
    use crate::{
        error::ErrorKind,
        sql::{Statement, Write},
    };

    fn refused(text: &str) -> bool {
        let statement = Statement {
            text: text.into(),
            args: Vec::new(),
        };
        match Write::statements(vec![statement]) {
            Ok(_) => false,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Refused);
                assert_eq!(error.statement(), Some(text));
                true
            }
        }
    }

    #[test]
    fn one_statement_on_rows_is_taken() {
        for text in [
            "DELETE FROM t",
            " -- a; comment\n/* ; */ update t SET a = 1",
            "INSERT INTO t VALUES (';', \";\", `;`, [;], 'it''s; so')",
            "with n AS (SELECT 1) DELETE FROM t; ; -- the end",
            "SELECT 1;",
            "SELECT 1 /* not closed",
        ] {
            assert!(!refused(text), "{text}");
        }
    }

    #[test]
    fn everything_else_is_refused() {
        for text in [
            "",
            ";",
            "COMMIT",
            "PRAGMA foreign_keys = OFF",
            "/* */ BEGIN",
            "SAVEPOINT a",
            "ATTACH 'x' AS y",
            "CREATE TABLE t (a)",
            "DELETE FROM t; PRAGMA query_only = OFF",
            "DELETE FROM t; /* ; */ DELETE FROM t",
            "DELETE FROM t; -- one\n; SELECT 1",
            "DELETE FROM t\0; SELECT 1",
            "EXPLAIN DELETE FROM t",
        ] {
            assert!(refused(text), "{text}");
        }
    }
}
