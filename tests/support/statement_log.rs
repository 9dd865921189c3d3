//! A database that notes which queries were run on it: how many statements something takes, and which.

use std::sync::{Arc, Mutex};

use anabranch::{
    database::Database,
    error::Result,
    sql::{Executor, Read, ReadTogether, Reads, Rows, Statement},
    value::Row,
};

/// A database and its log; queries run on `&logged`.
#[derive(Debug)]
pub struct Logged {
    db: Database,
    texts: Arc<Mutex<Vec<String>>>,
}

impl Logged {
    /// Notes what is run through it from now on.
    #[must_use]
    pub fn new(db: &Database) -> Self {
        Self {
            db: db.clone(),
            texts: Arc::default(),
        }
    }

    /// The texts of the statements since this was asked, in their order. Work that was started anew is noted once.
    #[must_use]
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.texts.lock().unwrap())
    }

    fn note(&self, statement: &Statement) {
        self.texts.lock().unwrap().push(statement.to_string());
    }
}

impl<'c> Executor<'c> for &'c Logged {
    async fn read<T: Send + 'static>(self, read: Read<T>) -> Result<Vec<T>> {
        self.note(&read.statement);
        Executor::read(&self.db, read).await
    }

    async fn read_together<T: Send + 'static>(self, reads: ReadTogether<T>) -> Result<T> {
        let texts = Arc::clone(&self.texts);
        let before = texts.lock().unwrap().len();
        let ReadTogether { cost, work } = reads;
        let work = Box::new(move |reads: &mut dyn Reads| {
            texts.lock().unwrap().truncate(before);
            work(&mut LoggedReads {
                reads,
                texts: &texts,
            })
        });
        self.db.read_together(ReadTogether { cost, work }).await
    }

    fn stream<T: Send + 'static>(self, read: Read<T>) -> Rows<'c, T> {
        self.note(&read.statement);
        self.db.stream(read)
    }
}

struct LoggedReads<'a> {
    reads: &'a mut dyn Reads,
    texts: &'a Mutex<Vec<String>>,
}

impl Reads for LoggedReads<'_> {
    fn rows(
        &mut self,
        statement: &Statement,
        each: &mut dyn FnMut(&dyn Row) -> Result<()>,
    ) -> Result<()> {
        self.texts.lock().unwrap().push(statement.to_string());
        self.reads.rows(statement, each)
    }
}
