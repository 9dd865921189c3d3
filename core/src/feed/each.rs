//! Handing over event by event, and what becomes of one that cannot be dealt with.

use std::{
    mem,
    time::{Duration, Instant},
};

use tracing::{Instrument as _, Span};

use crate::{
    engine::pause,
    entity::Entity,
    error::{ApplicationError, Error, ErrorKind, Result},
    feed::{Feed, event::Event, parked},
    observe::span,
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
    /// says. It returns when the feed stops: with an error, and all commits before that of the event acknowledged.
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
    /// [`next_batch`](Self::next_batch) and [`Batch::ack`].
    ///
    /// # Cancel safety
    ///
    /// Dropped meanwhile, the events that were not acknowledged come again.
    pub async fn each(
        &mut self,
        retries: Retries,
        mut handle: impl AsyncFnMut(&Event<E>) -> std::result::Result<(), ApplicationError>,
    ) -> Result<()> {
        loop {
            let mut batch = self.next_batch().await?;
            let mut parking = Vec::new();
            let mut acknowledged = Instant::now();
            for at in 0..batch.len() {
                if batch.begins_commit(at) && acknowledged.elapsed() >= self.ack_every {
                    batch.ack_before(at, mem::take(&mut parking)).await?;
                    acknowledged = Instant::now();
                }
                let event = &batch.events[at];
                let Err(error) = self.deal(retries, event, &mut handle).await else {
                    continue;
                };
                match retries.then {
                    GiveUp::Stop => {
                        let stopped = self.stopped_at(event, error);
                        // If that fails, they come again.
                        drop(batch.ack_before(at, Vec::new()).await);
                        return Err(stopped);
                    }
                    GiveUp::Park => {
                        parking.push(parked::park(&self.name, event, &error.to_string()));
                    }
                    GiveUp::Skip => {
                        tracing::error!(
                            feed = &*self.name,
                            seq = event.seq,
                            "an event was left out"
                        );
                    }
                }
            }
            batch.ack_after(parking).await?;
        }
    }

    /// The last error, if no attempt went well.
    async fn deal(
        &self,
        retries: Retries,
        event: &Event<E>,
        handle: &mut impl AsyncFnMut(&Event<E>) -> std::result::Result<(), ApplicationError>,
    ) -> std::result::Result<(), ApplicationError> {
        let span = span::event(
            self.engine.namespace(),
            E::TABLE.name,
            &self.name,
            event.seq,
        );
        let dealt = attempts(retries, event, handle, &span);
        let dealt = dealt.instrument(span.clone()).await;
        if dealt.is_err() {
            span::set_error(&span, ErrorKind::Application);
        }
        dealt
    }

    fn stopped_at(&self, event: &Event<E>, error: ApplicationError) -> Error {
        let message = format!(
            "the feed {} stopped at an event that could not be dealt with",
            self.name
        );
        Error::new(ErrorKind::Application, message)
            .with_table(E::TABLE.name)
            .with_key(event.key_values())
            .with_source(error)
    }
}

async fn attempts<E: Entity>(
    retries: Retries,
    event: &Event<E>,
    handle: &mut impl AsyncFnMut(&Event<E>) -> std::result::Result<(), ApplicationError>,
    span: &Span,
) -> std::result::Result<(), ApplicationError> {
    let mut failed = 0;
    loop {
        span.record("anabranch.attempt", failed + 1);
        let Err(error) = handle(event).await else {
            return Ok(());
        };
        failed += 1;
        match retries.pause_after(failed) {
            Some(time) => pause(time).await,
            None => return Err(error),
        }
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
