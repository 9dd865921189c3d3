//! Typed statements of a session that only read, each with what was seen of it.

use rusqlite::Connection;

use crate::{
    engine::{
        connection::PresentRow,
        narrator::Narrator,
        reads::{InTransaction, Stopped, each_row},
        recording::Query,
        seen::{End, Observer, failure},
        sessions::Instruments,
    },
    error::Result,
    sql::{Reads, Statement},
    value::Row,
};

/// See the module's page.
pub(super) struct RecordedReads<'a> {
    pub(super) narrator: Narrator<'a>,
    pub(super) connection: &'a Connection,
    pub(super) instruments: &'a Instruments,
    /// The table of an entity that is read by its key.
    pub(super) entity: Option<&'static str>,
    /// What ran so far.
    pub(super) queries: Vec<Query>,
}

impl Reads for RecordedReads<'_> {
    fn rows(
        &mut self,
        statement: &Statement,
        each: &mut dyn FnMut(&dyn Row) -> Result<()>,
    ) -> Result<()> {
        let authorizer = &*self.instruments.authorizer;
        InTransaction {
            narrator: self.narrator,
            connection: self.connection,
            authorizer,
            run: None,
        }
        .go_on()?;
        self.instruments.record();
        let mut observer = Observer::new();
        let ran = authorizer.theirs(|| {
            let each = |row: &PresentRow<'_, '_>, columns| {
                observer.row(row, columns);
                each(row).map(|()| true)
            };
            each_row(self.narrator, self.connection, authorizer, statement, each)
        });
        let end = match &ran {
            Ok(()) => End::Done,
            // It did nothing, here or anywhere, and is not run where the session is merged.
            Err(Stopped::Refused(_)) => {
                return ran.map_err(|stopped| stopped.into_error(statement));
            }
            // A row that does not fit was seen as well.
            Err(Stopped::Taken(_)) => End::Partly,
            Err(Stopped::Failed(error)) => failure(error).map_or(End::Partly, |(code, message)| {
                observer.message(message);
                End::Failed(code)
            }),
        };
        self.queries.push(Query {
            text: statement.text.clone(),
            args: statement.args.clone(),
            given: self.instruments.given(),
            reads_only: true,
            is_raw: false,
            seen: observer.end(end, None),
            entity: self.entity,
        });
        ran.map_err(|stopped| stopped.into_error(statement))
    }
}
