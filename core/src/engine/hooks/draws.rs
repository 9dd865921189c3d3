//! What SQL functions gave that no replay would find again: random numbers, and keys.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// Stands behind the functions of a connection whose answers differ from call to call. A session's answers are kept, and
/// given again when its statements are replayed.
#[derive(Debug, Default)]
pub(in crate::engine) struct Draws {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
enum State {
    /// Every call draws anew.
    #[default]
    Free,
    /// The same, and it is kept.
    Recording(Vec<Draw>),
    /// Calls are given what is here, in order.
    Replaying(VecDeque<Draw>),
}

/// One answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::engine) enum Draw {
    /// Of `random()`.
    Number(i64),
    /// Of `randomblob(n)`.
    Bytes(Vec<u8>),
    /// Of `next_id(table)`.
    Key(i64),
}

impl Draws {
    /// Keeps the answers from now on.
    pub(in crate::engine) fn record(&self) {
        *self.lock() = State::Recording(Vec::new());
    }

    /// What was kept since; answers are not kept any more.
    pub(in crate::engine) fn take(&self) -> Vec<Draw> {
        match std::mem::take(&mut *self.lock()) {
            State::Recording(drawn) => drawn,
            _ => Vec::new(),
        }
    }

    /// Gives these answers from now on.
    pub(in crate::engine) fn replay(&self, drawn: &[Draw]) {
        *self.lock() = State::Replaying(drawn.to_vec().into());
    }

    /// Draws anew, and keeps nothing.
    pub(in crate::engine) fn free(&self) {
        *self.lock() = State::Free;
    }

    /// An answer. In a replay that asks for another than was recorded it is a new one: what comes of it is compared.
    pub(in crate::engine) fn draw<E>(
        &self,
        fits: impl Fn(&Draw) -> bool,
        anew: impl FnOnce() -> Result<Draw, E>,
    ) -> Result<Draw, E> {
        if let State::Replaying(drawn) = &mut *self.lock()
            && drawn.front().is_some_and(&fits)
            && let Some(draw) = drawn.pop_front()
        {
            return Ok(draw);
        }
        // Not under the lock: a key is read with SQLite, which may call back.
        let draw = anew()?;
        if let State::Recording(drawn) = &mut *self.lock() {
            drawn.push(draw.clone());
        }
        Ok(draw)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use crate::engine::hooks::draws::{Draw, Draws};

    fn number(draws: &Draws, anew: i64) -> Draw {
        let is_number = |draw: &Draw| matches!(draw, Draw::Number(_));
        draws
            .draw(is_number, || Ok::<_, ()>(Draw::Number(anew)))
            .unwrap()
    }

    #[test]
    fn a_replay_is_given_what_was_recorded_and_then_new_answers() {
        let draws = Draws::default();
        draws.record();
        assert_eq!(number(&draws, 1), Draw::Number(1));
        assert_eq!(number(&draws, 2), Draw::Number(2));
        let drawn = draws.take();
        assert_eq!(drawn.len(), 2);
        draws.replay(&drawn);
        assert_eq!(number(&draws, 8), Draw::Number(1));
        assert_eq!(number(&draws, 8), Draw::Number(2));
        assert_eq!(number(&draws, 8), Draw::Number(8));
        draws.free();
        assert_eq!(number(&draws, 9), Draw::Number(9));
        assert!(draws.take().is_empty());
    }

    #[test]
    fn an_answer_of_another_function_is_not_given() {
        let draws = Draws::default();
        draws.replay(&[Draw::Key(5)]);
        assert_eq!(number(&draws, 8), Draw::Number(8));
    }
}
