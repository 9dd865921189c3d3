//! When a client takes its next step: when it is told to, or after a while.

use std::{
    cell::{Cell, RefCell},
    future::{Future, poll_fn},
    pin::Pin,
    rc::Rc,
    task::Poll,
};

use anabranch_tests::random::Random;

/// What a client waits for before each statement.
#[derive(Debug)]
pub(crate) enum Pace {
    /// Some turns of the runtime.
    Free(RefCell<Random>),
    /// The stepper.
    Told(Rc<Gate>),
}

/// Lets a client through, one statement at a time.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    open: Cell<bool>,
    waiting: Cell<bool>,
    /// The client holds the writer: nobody else may be waited for.
    exclusive: Cell<bool>,
}

impl Pace {
    pub(crate) async fn next(&self) {
        match self {
            Self::Free(random) => {
                let turns = random.borrow_mut().below(4);
                for _ in 0..turns {
                    tokio::task::yield_now().await;
                }
            }
            Self::Told(gate) => gate.pass().await,
        }
    }

    /// Tells the stepper whether the client holds the writer.
    pub(crate) fn holds(&self, exclusive: bool) {
        if let Self::Told(gate) = self {
            gate.exclusive.set(exclusive);
        }
    }
}

impl Gate {
    async fn pass(&self) {
        poll_fn(|_| {
            let open = self.open.replace(false);
            self.waiting.set(!open);
            if open { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    pub(crate) fn is_exclusive(&self) -> bool {
        self.exclusive.get()
    }
}

/// A client that is told when to go on.
pub(crate) struct Stepped<'a> {
    pub(crate) gate: Rc<Gate>,
    pub(crate) future: Pin<Box<dyn Future<Output = ()> + 'a>>,
    pub(crate) done: bool,
}

/// Lets these clients take one step each, beside each other.
pub(crate) async fn step(clients: &mut [&mut Stepped<'_>]) {
    for client in &mut *clients {
        client.gate.open.set(true);
        client.gate.waiting.set(false);
    }
    poll_fn(|context| {
        let mut pending = false;
        for client in &mut *clients {
            if !client.done && !client.gate.waiting.get() {
                client.done = client.future.as_mut().poll(context).is_ready();
            }
            pending |= !client.done && !client.gate.waiting.get();
        }
        if !pending {
            return Poll::Ready(());
        }
        // Others may wait for who holds the writer.
        for client in &mut *clients {
            let gate = &client.gate;
            if !client.done && gate.waiting.get() && gate.exclusive.get() {
                gate.open.set(true);
                gate.waiting.set(false);
                context.waker().wake_by_ref();
            }
        }
        Poll::Pending
    })
    .await;
}
