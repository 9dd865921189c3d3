//! Handing over event by event, and what becomes of one that cannot be dealt with.

use std::{
    fmt, mem,
    time::{Duration, Instant},
};

use tracing::Instrument as _;

use crate::{
    engine::pause,
    entity::Entity,
    error::{ApplicationError, Error, ErrorKind, Result},
    feed::{
        Feed,
        batch::Step,
        cursor::{acknowledge, asked},
        event::Event,
        parked,
    },
    observe::span,
    sql::Statement,
};

/// How often, and when, an event is tried again, and what becomes of it then: of [`Feed::each`](crate::feed::Feed::each).
///
/// ```
/// use anabranch::feed::{GiveUp, Retries};
/// use std::time::Duration;
///
/// let retries = Retries::new()
///     .attempts(8)
///     .backoff(Duration::from_millis(50), Duration::from_secs(60))
///     .then(GiveUp::Park);
/// # assert_ne!(retries, Retries::new());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct Retries {
    attempts: u32,
    first: Duration,
    longest: Duration,
    pub(super) then: GiveUp,
}

/// What becomes of an event after the last attempt.
///
/// ```
/// use anabranch::feed::GiveUp;
///
/// assert_eq!(GiveUp::default(), GiveUp::Stop);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum GiveUp {
    /// The feed stops, and the error is returned; the event comes again when it goes on.
    #[default]
    Stop,
    /// It is put aside, with the text of the error, and the feed goes on: [`Feed::parked`](crate::feed::Feed::parked).
    Park,
    /// It is left out, and the feed goes on; an event of level ERROR tells of it.
    Skip,
}

/// An error by which the application puts an event aside at once, whatever [`Retries`] say: there is no use in trying again. So
/// others can be tried for as long as it takes, such as while a server is away.
///
/// ```
/// # use anabranch::prelude::*;
/// # #[derive(Debug, Entity)]
/// # struct Order { #[entity(id)] id: i64, address: String, #[entity(commit_seq, index)] seq: CommitSeq }
/// # async fn send(_: &str) -> std::io::Result<()> { Ok(()) }
/// # async fn run(db: Database) -> anabranch::error::Result<()> {
/// use anabranch::feed::{Park, Retries};
///
/// let mut feed = db.feed::<Order>("mailer");
/// feed.each(Retries::new().attempts(u32::MAX), async |event| {
///     let Some(order) = event.row() else { return Ok(()) };
///     if !order.address.contains('@') {
///         return Err(Park::because("no such address").into());
///     }
///     send(&order.address).await?;
///     Ok(())
/// })
/// .await
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Park(String);

impl Park {
    /// With a reason, which [`Feed::parked`] tells.
    pub fn because(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}

impl fmt::Display for Park {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Park {}

impl Retries {
    /// The defaults, which each method tells.
    pub const fn new() -> Self {
        Self {
            attempts: 5,
            first: Duration::from_millis(100),
            longest: Duration::from_secs(30),
            then: GiveUp::Stop,
        }
    }

    /// How often an event is tried altogether; once at least. Default: 5.
    pub const fn attempts(mut self, attempts: u32) -> Self {
        self.attempts = if attempts == 0 { 1 } else { attempts };
        self
    }

    /// How long the first attempt is waited after; twice as long after each further one, up to the longest. Default: 100
    /// milliseconds, 30 seconds.
    pub const fn backoff(mut self, first: Duration, longest: Duration) -> Self {
        self.first = first;
        self.longest = longest;
        self
    }

    /// What becomes of the event then. Default: [`GiveUp::Stop`].
    pub const fn then(mut self, give_up: GiveUp) -> Self {
        self.then = give_up;
        self
    }

    /// How long to wait after so many failed attempts; nothing if that was the last one.
    pub(super) fn pause_after(&self, failed: u32) -> Option<Duration> {
        let doubled = self.first.saturating_mul(2_u32.saturating_pow(failed - 1));
        (failed < self.attempts).then(|| doubled.min(self.longest))
    }
}

impl Default for Retries {
    fn default() -> Self {
        Self::new()
    }
}

/// # Event by event
impl<E: Entity> Feed<E> {
    /// Hands each event to `handle`, batch after batch. It acknowledges a batch when all of its events are dealt with, and
    /// [every second](Self::ack_every) meanwhile those commits that are done. An event that fails is tried again, as `retries`
    /// says; [`Park`] puts it aside at once. Errors of the database that pass by themselves, such as `Busy`, are waited out with the
    /// same pauses and the same number of attempts one after the other. It returns when the feed stops: with an error, and all
    /// commits before that of the event acknowledged. Where another consumer of the name was faster it goes on behind that one.
    ///
    /// `handle` is called anew for each event, as that of [`concurrent`](crate::database::Database::concurrent): it borrows what it
    /// captures, and changes what is behind a lock or atomic.
    ///
    /// ```
    /// # use anabranch::prelude::*;
    /// # #[derive(Debug, Entity)]
    /// # struct Order { #[entity(id)] id: i64, #[entity(commit_seq, index)] seq: CommitSeq }
    /// # async fn mail(_: &Order) -> std::io::Result<()> { Err(std::io::Error::other("no such address")) }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<Order>().await?;
    /// # let mut ctx = db.context();
    /// # ctx.add(Order { id: 0, seq: CommitSeq(0) });
    /// # ctx.save_changes().await?;
    /// use anabranch::feed::{GiveUp, Retries};
    ///
    /// let mut feed = db.feed::<Order>("mailer");
    /// let retries = Retries::new().attempts(1).then(GiveUp::Park);
    /// let mailing = feed.each(retries, async |event| {
    ///     if let Some(order) = event.row() {
    ///         mail(order).await?;
    ///     }
    ///     Ok(())
    /// });
    /// // Until the application ends.
    /// # let watch = db.feed::<Order>("mailer");
    /// # let parked = async { loop {
    /// #     let parked = watch.parked(10).await.unwrap_or_default();
    /// #     if !parked.is_empty() { break parked; }
    /// #     tokio::task::yield_now().await;
    /// # } };
    /// tokio::select! {
    ///     stopped = mailing => stopped?,
    /// #   parked = parked => assert_eq!(parked[0].reason, "no such address"),
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// What `handle` said last of an event, as the source of an error of kind
    /// [`Application`](crate::error::ErrorKind::Application), where `retries` says to stop; those of
    /// [`next_batch`](Self::next_batch) and [`Batch::ack`](crate::feed::Batch::ack).
    ///
    /// # Cancel safety
    ///
    /// Dropped meanwhile, the events that were not acknowledged come again.
    pub async fn each(
        &mut self,
        retries: Retries,
        handle: impl AsyncFnOnce(&Event<E>) -> std::result::Result<(), ApplicationError> + Clone,
    ) -> Result<()> {
        'batches: loop {
            let mut batch = self.wait_for(None, Some(retries)).await?;
            let mut parking = Vec::new();
            let mut acknowledged = Instant::now();
            for at in 0..batch.len() {
                if batch.begins_commit(at)
                    && acknowledged.elapsed() >= self.ack_every
                    && let Some(step) = batch.step_before(at)
                {
                    if (self.settle(retries, &step, mem::take(&mut parking)).await)? {
                        continue 'batches;
                    }
                    batch.step.from = step.to;
                    acknowledged = Instant::now();
                }
                let event = &batch.events[at];
                let Err(error) = self.deal(retries, event, &handle).await else {
                    continue;
                };
                let then = if error.is::<Park>() {
                    GiveUp::Park
                } else {
                    retries.then
                };
                match then {
                    GiveUp::Stop => {
                        let stopped = self.stopped_at(event, error);
                        if let Some(step) = batch.step_before(at) {
                            // What was put aside of this commit comes again with it.
                            let done = |(seq, parked)| (seq <= step.to.seq).then_some(parked);
                            let parked = parking.into_iter().filter_map(done).collect();
                            // If that fails, they come again.
                            drop(acknowledge(&step, asked(&self.engine, self.at), parked).await);
                        }
                        return Err(stopped);
                    }
                    GiveUp::Park => {
                        let parked = parked::park(&batch.step, event, &error.to_string());
                        parking.push((event.seq, parked));
                        tracing::warn!(
                            db.namespace = self.engine.namespace(),
                            anabranch.feed.name = &*self.name,
                            anabranch.commit_seq = event.seq,
                            "an event was put aside"
                        );
                    }
                    GiveUp::Skip => {
                        self.told.skipped();
                        tracing::error!(
                            db.namespace = self.engine.namespace(),
                            anabranch.feed.name = &*self.name,
                            anabranch.commit_seq = event.seq,
                            "an event was left out"
                        );
                    }
                }
            }
            self.settle(retries, &batch.step, parking).await?;
        }
    }

    /// Acknowledges what is done; whether another consumer of the name was faster, behind which this one goes on.
    async fn settle(
        &self,
        retries: Retries,
        step: &Step,
        parking: Vec<(i64, Statement)>,
    ) -> Result<bool> {
        let parked: Vec<_> = parking.into_iter().map(|(_, parked)| parked).collect();
        let mut failed = 0;
        loop {
            match acknowledge(step, asked(&self.engine, self.at), parked.clone()).await {
                Ok(()) => return Ok(false),
                Err(error) if error.kind() == ErrorKind::CursorMoved => return Ok(true),
                Err(error) => self.endure(retries, &mut failed, error).await?,
            }
        }
    }

    /// Waits as it does for an event; the error, if it does not pass by itself or was waited for often enough.
    pub(super) async fn endure(
        &self,
        retries: Retries,
        failed: &mut u32,
        error: Error,
    ) -> Result<()> {
        *failed = failed.saturating_add(1);
        match retries.pause_after(*failed) {
            Some(time) if error.is_retryable() => {
                tracing::warn!(
                    db.namespace = self.engine.namespace(),
                    anabranch.feed.name = &*self.name,
                    error = %error.in_log(),
                    "a feed waits for the database"
                );
                pause(time).await;
                Ok(())
            }
            _ => Err(error),
        }
    }

    /// The last error, if no attempt went well.
    async fn deal(
        &self,
        retries: Retries,
        event: &Event<E>,
        handle: &(impl AsyncFnOnce(&Event<E>) -> std::result::Result<(), ApplicationError> + Clone),
    ) -> std::result::Result<(), ApplicationError> {
        let namespace = self.engine.namespace();
        let span = span::event(namespace, E::TABLE.name, &self.name, event.seq);
        let (attempts, last) = self
            .attempts(retries, event, handle)
            .instrument(span.clone())
            .await;
        span.record("anabranch.attempt", attempts);
        if last.is_err() {
            span::set_error(&span, ErrorKind::Application);
        }
        last
    }

    /// How many there were, and what came of the last one.
    async fn attempts(
        &self,
        retries: Retries,
        event: &Event<E>,
        handle: &(impl AsyncFnOnce(&Event<E>) -> std::result::Result<(), ApplicationError> + Clone),
    ) -> (u32, std::result::Result<(), ApplicationError>) {
        let mut attempt = 0_u32;
        loop {
            attempt = attempt.saturating_add(1);
            let Err(error) = handle.clone()(event).await else {
                return (attempt, Ok(()));
            };
            match retries.pause_after(attempt) {
                Some(time) if !error.is::<Park>() => {
                    self.told.retried();
                    tracing::warn!(
                        db.namespace = self.engine.namespace(),
                        anabranch.feed.name = &*self.name,
                        anabranch.commit_seq = event.seq,
                        anabranch.attempt = attempt,
                        "an event failed and is tried again"
                    );
                    pause(time).await;
                }
                _ => return (attempt, Err(error)),
            }
        }
    }

    fn stopped_at(&self, event: &Event<E>, error: ApplicationError) -> Error {
        let message = format!(
            "the feed {} stopped at a change of commit {} that could not be dealt with",
            self.name, event.seq
        );
        Error::new(ErrorKind::Application, message)
            .with_table(E::TABLE.name)
            .with_key(event.key_values())
            .with_source(error)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::feed::Retries;

    #[test]
    fn pauses_double_up_to_the_longest_and_end() {
        let millis = Duration::from_millis;
        let retries = Retries::new().attempts(5).backoff(millis(10), millis(35));
        let pauses: Vec<_> = (1..=5).map(|failed| retries.pause_after(failed)).collect();
        let expected = [10, 20, 35, 35].map(|pause| Some(millis(pause)));
        assert_eq!(pauses[..4], expected);
        assert_eq!(pauses[4], None);
        assert_eq!(Retries::new().attempts(0).pause_after(1), None);
        assert_eq!(
            Retries::new().attempts(u32::MAX).pause_after(1 << 30),
            Some(Duration::from_secs(30))
        );
    }
}
