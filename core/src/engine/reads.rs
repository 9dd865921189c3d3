//! Statements that only read: what is refused before it runs, and several of them in one transaction.

use std::cell::OnceCell;

use rusqlite::{CachedStatement, Connection};

use crate::{
    engine::{
        connection::{PresentRow, bind},
        hooks::{Authorizer, Run},
        narrator::{Narrator, Telling},
        sqlite_error::{from_rusqlite, kind_of},
    },
    error::{Error, ErrorKind, Result},
    sql::{Reads, Statement},
    value::Row,
};

/// Why a statement did not come to its end.
pub(in crate::engine) enum Stopped {
    /// It did not begin: it does more than read, or its arguments are too many or too few.
    Refused(Error),
    /// SQLite failed.
    Failed(rusqlite::Error),
    /// Who took its rows did.
    Taken(Error),
}

impl Stopped {
    /// What went wrong.
    pub(in crate::engine) fn kind(&self) -> ErrorKind {
        match self {
            Self::Refused(error) | Self::Taken(error) => error.kind(),
            Self::Failed(error) => kind_of(error),
        }
    }

    /// The error, which names the statement; one of a row names what is wrong with that.
    pub(in crate::engine) fn into_error(self, statement: &Statement) -> Error {
        let error = match self {
            Self::Taken(error) => return error,
            Self::Refused(error) => error,
            Self::Failed(error) => from_rusqlite(error),
        };
        error.with_statement(statement.text.to_string())
    }
}

/// Runs a statement that only reads, and hands out each row, with the number of its columns, until `each` has enough.
pub(in crate::engine) fn each_row(
    narrator: Narrator<'_>,
    connection: &Connection,
    authorizer: &Authorizer,
    statement: &Statement,
    mut each: impl FnMut(&PresentRow<'_, '_>, usize) -> Result<bool>,
) -> Result<(), Stopped> {
    let telling = narrator.begin(&statement.text);
    let ended = each_row_told(
        &telling,
        connection,
        authorizer,
        statement,
        |row, columns| each(row, columns),
    );
    telling.end(ended.as_ref().err().map(Stopped::kind));
    ended
}

/// The same with a statement that is told of already.
pub(in crate::engine) fn each_row_told(
    telling: &Telling<'_>,
    connection: &Connection,
    authorizer: &Authorizer,
    statement: &Statement,
    mut each: impl FnMut(&PresentRow<'_, '_>, usize) -> Result<bool>,
) -> Result<(), Stopped> {
    let mut prepared = prepare(connection, authorizer, &statement.text)?;
    bind(&mut prepared, statement.args.iter()).map_err(Stopped::Refused)?;
    let columns = prepared.column_count();
    let places = OnceCell::new();
    let mut rows = prepared.raw_query();
    while let Some(row) = rows.next().map_err(Stopped::Failed)? {
        telling.row();
        let row = PresentRow {
            row,
            places: &places,
        };
        if !each(&row, columns).map_err(Stopped::Taken)? {
            break;
        }
    }
    Ok(())
}

/// Prepares a statement, and refuses it if it is not a single one that only reads.
fn prepare<'c>(
    connection: &'c Connection,
    authorizer: &Authorizer,
    text: &str,
) -> Result<CachedStatement<'c>, Stopped> {
    // SQLite takes it for the end of the text.
    if text.contains('\0') {
        return Err(refused(
            "a text of SQL with a NUL character in it does not run: bind values as arguments",
        ));
    }
    authorizer.take_denied();
    let prepared = match connection.prepare_cached(text) {
        Ok(prepared) => prepared,
        Err(rusqlite::Error::MultipleStatement) => {
            return Err(refused(
                "a query is one statement, and this text has several",
            ));
        }
        // Some pragmas are set when they are prepared, so they are stopped there.
        Err(error) => {
            return Err(match authorizer.take_denied() {
                Some(reason) => refused(reason),
                None => Stopped::Failed(error),
            });
        }
    };
    // BEGIN, COMMIT and the like count as statements that only read, but have no columns; a comment has none either.
    if !prepared.readonly() || prepared.column_count() == 0 {
        return Err(refused(
            "a query only reads: what writes, or begins and ends transactions, does not run as one",
        ));
    }
    Ok(prepared)
}

fn refused(what: &'static str) -> Stopped {
    Stopped::Refused(Error::new(ErrorKind::Refused, what))
}

/// Statements in a transaction that is open: they see one state of the database.
pub(in crate::engine) struct InTransaction<'a> {
    pub(in crate::engine) narrator: Narrator<'a>,
    pub(in crate::engine) connection: &'a Connection,
    pub(in crate::engine) authorizer: &'a Authorizer,
    /// By which they are stopped when nobody waits for them any more.
    pub(in crate::engine) run: Option<&'a Run>,
}

impl InTransaction<'_> {
    /// Makes sure that the next statement sees what the last one did.
    pub(in crate::engine) fn go_on(&self) -> Result<()> {
        if self.run.is_some_and(Run::is_stopped) {
            return Err(Error::new(
                ErrorKind::Interrupted,
                "nobody waits for the query any more",
            ));
        }
        // An I/O error ends the transaction. Who passes over it must not go on in another.
        if self.connection.is_autocommit() {
            return Err(Error::new(
                ErrorKind::TransactionEnded,
                "SQLite ended the transaction after an error: what is read next would be of another state of the database",
            ));
        }
        Ok(())
    }

    /// Runs a statement, and tells what stopped it.
    pub(in crate::engine) fn run(
        &self,
        statement: &Statement,
        each: &mut dyn FnMut(&dyn Row) -> Result<()>,
    ) -> Result<(), Stopped> {
        self.go_on().map_err(Stopped::Refused)?;
        each_row(
            self.narrator,
            self.connection,
            self.authorizer,
            statement,
            |row, _| each(row).map(|()| true),
        )
    }
}

impl Reads for InTransaction<'_> {
    fn rows(
        &mut self,
        statement: &Statement,
        each: &mut dyn FnMut(&dyn Row) -> Result<()>,
    ) -> Result<()> {
        self.run(statement, each)
            .map_err(|stopped| stopped.into_error(statement))
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use crate::{
        engine::{
            ffi::{Hooks, PlainConnection},
            hooks::Authorizer,
            narrator::Narrator,
            reads::InTransaction,
            slot::Label,
        },
        error::{Error, ErrorKind, Result},
        observe::Counters,
        sql::{Reads, Statement},
        value::Value,
    };

    use std::{sync::Arc, time::Duration};

    fn statement(text: &str) -> Statement {
        Statement {
            text: text.into(),
            args: Vec::new(),
        }
    }

    fn connection() -> (PlainConnection, Arc<Authorizer>) {
        let connection = Connection::open_in_memory().unwrap();
        connection
            .execute_batch("CREATE TABLE t (a); INSERT INTO t VALUES (1), (2); BEGIN")
            .unwrap();
        let authorizer = Arc::new(Authorizer::default());
        let hooks = Hooks {
            authorizer: Some(Arc::clone(&authorizer)),
            ..Hooks::default()
        };
        (PlainConnection::new(connection, hooks), authorizer)
    }

    fn numbers(reads: &mut dyn Reads, text: &str) -> Result<Vec<Value>> {
        let mut found = Vec::new();
        reads.rows(&statement(text), &mut |row| {
            found.push(row.value(0).to_value().unwrap());
            Ok(())
        })?;
        Ok(found)
    }

    #[test]
    fn what_does_more_than_read_one_thing_does_not_begin() {
        let (connection, authorizer) = connection();
        let counters = Counters::default();
        let mut reads = InTransaction {
            narrator: Narrator::new(&counters, Duration::MAX, Label::new("a test"), true),
            connection: &connection,
            authorizer: &authorizer,
            run: None,
        };
        // Kept prepared by the library, so that nobody is asked whether they may run.
        authorizer.ours(|| drop(connection.prepare_cached("COMMIT").unwrap()));
        for text in [
            "",
            "-- nothing",
            "DELETE FROM t RETURNING a",
            "WITH n AS (SELECT 1) INSERT INTO t SELECT * FROM n",
            "COMMIT",
            "BEGIN",
            "SAVEPOINT a",
            "ATTACH ':memory:' AS other",
            "PRAGMA recursive_triggers = ON",
            "EXPLAIN PRAGMA recursive_triggers = ON",
            "SELECT 1; PRAGMA recursive_triggers = ON",
            "SELECT 1; SELECT 2",
            "SELECT 1\0 this is not seen",
        ] {
            let error = numbers(&mut reads, text).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Refused, "{text}: {error}");
            assert_eq!(error.statement(), Some(text));
        }
        assert!(!connection.is_autocommit());
        let rows = [Value::Integer(1), Value::Integer(2)];
        assert_eq!(
            numbers(&mut reads, "SELECT a FROM t; -- all").unwrap(),
            rows
        );
        let set = numbers(&mut reads, "PRAGMA recursive_triggers").unwrap();
        assert_eq!(set, [Value::Integer(0)]);
    }

    #[test]
    fn an_error_of_a_row_ends_the_statement_and_is_returned_as_it_is() {
        let (connection, authorizer) = connection();
        let counters = Counters::default();
        let mut reads = InTransaction {
            narrator: Narrator::new(&counters, Duration::MAX, Label::new("a test"), true),
            connection: &connection,
            authorizer: &authorizer,
            run: None,
        };
        let mut seen = 0;
        let error = reads.rows(&statement("SELECT a FROM t"), &mut |_| {
            seen += 1;
            Err(Error::new(ErrorKind::Decode, "it does not fit"))
        });
        let error = error.unwrap_err();
        assert_eq!((seen, error.kind()), (1, ErrorKind::Decode));
        assert_eq!(error.to_string(), "it does not fit");
        assert_eq!(numbers(&mut reads, "SELECT a FROM t").unwrap().len(), 2);
    }

    #[test]
    fn nothing_runs_once_the_transaction_is_over() {
        let (connection, authorizer) = connection();
        let counters = Counters::default();
        let mut reads = InTransaction {
            narrator: Narrator::new(&counters, Duration::MAX, Label::new("a test"), true),
            connection: &connection,
            authorizer: &authorizer,
            run: None,
        };
        authorizer.ours(|| connection.execute_batch("ROLLBACK").unwrap());
        let error = numbers(&mut reads, "SELECT a FROM t").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TransactionEnded);
    }
}
