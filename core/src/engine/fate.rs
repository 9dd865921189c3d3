//! What becomes of a transaction, for those who wrote into it and let go of it before its end.

use tokio::sync::watch;

/// What became of what was written in a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The transaction is open.
    Open,
    /// Its COMMIT is under way: others may see the rows already.
    Committing,
    /// It was committed, with this commit number if it touched a stamped table.
    Committed(Option<i64>),
    /// It was rolled back, or is about to be by whoever holds the writer.
    RolledBack,
    /// COMMIT did not tell.
    Unknown,
}

/// Sees what becomes of a transaction, or of the savepoint in which it was asked for.
#[derive(Debug)]
pub(crate) struct Witness(watch::Receiver<Fate>);

impl Witness {
    /// What there is to see at the moment.
    pub(crate) fn fate(&self) -> Fate {
        *self.0.borrow()
    }

    /// The same, once a COMMIT that is under way has ended. For the end of the transaction it does not wait.
    pub(crate) async fn settled(&mut self) -> Fate {
        // An error would say that nobody is left to tell, and whoever leaves tells.
        drop(self.0.wait_for(|fate| *fate != Fate::Committing).await);
        self.fate()
    }
}

/// Those who are to be told what becomes of a transaction. Dropped, it tells them that it was rolled back.
#[derive(Debug, Default)]
pub(in crate::engine) struct Fates(Vec<watch::Sender<Fate>>);

impl Fates {
    pub(in crate::engine) fn witness(&mut self) -> Witness {
        let (teller, witness) = watch::channel(Fate::Open);
        self.0.push(teller);
        Witness(witness)
    }

    /// How many there are: what a savepoint is undone to.
    pub(in crate::engine) fn mark(&self) -> usize {
        self.0.len()
    }

    /// What was written since then is undone.
    pub(in crate::engine) fn undone_since(&mut self, mark: usize) {
        for teller in self.0.drain(mark..) {
            teller.send_replace(Fate::RolledBack);
        }
    }

    pub(in crate::engine) fn committing(&self) {
        for teller in &self.0 {
            teller.send_replace(Fate::Committing);
        }
    }

    pub(in crate::engine) fn ended(&mut self, fate: Fate) {
        for teller in self.0.drain(..) {
            teller.send_replace(fate);
        }
    }
}

impl Drop for Fates {
    fn drop(&mut self) {
        self.ended(Fate::RolledBack);
    }
}
