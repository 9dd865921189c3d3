//! The slot's protocol under shuttle: many interleavings of owners that push, poll and give up, of turns that hold
//! the lease across yields, and of the writer's thread.
//!
//! Each run checks what the module's page promises: one lease at a time; entries served in the order in which they
//! came; a unit applied once if its owner was told so, and never once it was withdrawn; everybody comes to an end,
//! and the slot is left free and empty. Shuttle fails a run in which somebody waits for ever, so every run also
//! looks for lost wake-ups.
//!
//! Time stands still under shuttle: a pause is over at once, patience is none or without end, and a tick of the
//! thread comes whenever the scheduler likes ([`World::ticks`]).

use std::{
    future::poll_fn,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    task::{Context, Poll},
    time::Duration,
};

use shuttle::{
    future::block_on,
    rand::{Rng, thread_rng},
    thread,
};

use crate::engine::slot::{End, Label, Lease, Running, Slot, Thread, Ticket, Turned, Unserved};

const LONG: Duration = Duration::from_secs(1_000_000);
const RUNS: usize = 3000;
/// How many places of the scheduler's choice a PCT run changes priorities at.
const DEPTH: usize = 4;

type Unit = usize;
type Answer = usize;

/// What one run does.
#[derive(Debug, Clone, Copy)]
struct Plan {
    units: usize,
    turns: usize,
    /// Whether there is a writer's thread.
    thread: bool,
    /// Whether all units run on it.
    threaded: bool,
    /// Whether owners may be dropped, or left without polls for a while.
    drops: bool,
    /// Whether another process may be in the way.
    busy: bool,
    /// Whether the slot is closed on the way.
    closes: bool,
}

/// The slot, and the book that is kept on it. The book's atomics are the standard library's: they add no
/// interleavings.
struct World {
    slot: Arc<Slot<Unit, Answer>>,
    plan: Plan,
    leases: AtomicUsize,
    applied: Vec<AtomicUsize>,
    /// The tickets of what was applied, and of turns that came, in order.
    served: Mutex<Vec<u64>>,
    /// Those of them that are turns.
    turns: Mutex<Vec<u64>>,
    at_work: AtomicUsize,
}

/// A lease whose holder is counted.
struct Counted<'a> {
    world: &'a World,
    lease: Option<Lease<Unit, Answer>>,
}

impl<'a> Counted<'a> {
    fn new(world: &'a World, lease: Lease<Unit, Answer>) -> Self {
        assert_eq!(world.leases.fetch_add(1, SeqCst), 0, "two leases at once");
        Self {
            world,
            lease: Some(lease),
        }
    }

    fn lease(&self) -> &Lease<Unit, Answer> {
        self.lease.as_ref().expect("held until let go of")
    }

    fn release(mut self) -> Lease<Unit, Answer> {
        self.world.leases.fetch_sub(1, SeqCst);
        self.lease.take().expect("held until let go of")
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        if self.lease.is_some() {
            self.world.leases.fetch_sub(1, SeqCst);
        }
    }
}

/// What became of an owner.
#[derive(Debug)]
enum Fate {
    Applied,
    /// Given up while it was queued.
    Withdrawn,
    /// Given up too late: whoever led had it already, and the ticket will say how that went.
    Left(Arc<Ticket<Unit, Answer>>),
    Ended,
}

impl World {
    fn new(plan: Plan) -> Arc<Self> {
        let patience = if plan.thread && chance(2) {
            Duration::ZERO
        } else {
            LONG
        };
        let workers = plan.units + plan.turns + usize::from(plan.closes);
        Self::of(plan, patience, workers)
    }

    fn of(plan: Plan, patience: Duration, workers: usize) -> Arc<Self> {
        let mut slot = Slot::new(plan.threaded, LONG);
        slot.patience = patience;
        Arc::new(Self {
            slot: Arc::new(slot),
            plan,
            leases: AtomicUsize::new(0),
            applied: (0..plan.units).map(|_| AtomicUsize::new(0)).collect(),
            served: Mutex::default(),
            turns: Mutex::default(),
            at_work: AtomicUsize::new(workers),
        })
    }

    fn serve(&self, ticket: u64) {
        self.served.lock().unwrap().push(ticket);
    }

    /// What a leader does: as the writer, but with nothing to write.
    fn lead(&self, lease: Lease<Unit, Answer>) {
        let held = Counted::new(self, lease);
        for _ in 0..2 {
            let taken = held.lease().take_units(at_most(2));
            if taken.is_empty() {
                return;
            }
            thread::yield_now();
            if self.plan.busy && chance(4) {
                let late = held.release().put_back(taken, Duration::ZERO, LONG);
                assert!(late.is_empty());
                return;
            }
            taken.into_iter().for_each(|running| self.apply(running));
            if self.plan.busy && chance(8) {
                held.release().pause(Duration::ZERO);
                return;
            }
        }
    }

    fn apply(&self, running: Running<Unit, Answer>) {
        let unit = *running.unit().expect("not answered yet");
        self.applied[unit].fetch_add(1, SeqCst);
        self.serve(running.ticket.number);
        thread::yield_now();
        running.answer(unit);
    }

    /// An owner's whole life.
    fn own(&self, unit: Unit) -> Fate {
        let Ok(ticket) = self.slot.push(unit, self.plan.thread && chance(4)) else {
            return Fate::Ended;
        };
        let mut polls = self.polls();
        loop {
            let polled = poll_fn(|context| {
                polls.until(context, |context| self.slot.poll_unit(&ticket, context))
            });
            match block_on(polled) {
                Some(Turned::Lead(lease)) => self.lead(lease),
                Some(Turned::Answered(answer)) => return fate(unit, &answer),
                None => break,
            }
        }
        match self.slot.withdraw(&ticket) {
            Some(withdrawn) => {
                assert_eq!(withdrawn, unit);
                Fate::Withdrawn
            }
            None => match ticket.try_answer() {
                Some(answer) => fate(unit, &answer),
                None => Fate::Left(ticket),
            },
        }
    }

    /// Somebody who wants the slot for himself; returns the lease, if the wait was not given up.
    fn turn(&self) -> Option<Counted<'_>> {
        let ticket = self.slot.request_turn(Label::new("a turn")).ok()?;
        // As the engine does it: given up however the wait ends.
        let queued = Queued {
            slot: &self.slot,
            ticket: &ticket,
        };
        let mut polls = self.polls();
        let polled = poll_fn(|context| {
            polls.until(context, |context| self.slot.poll_turn(&ticket, context))
        });
        let lease = block_on(polled)?.ok()?;
        let held = Counted::new(self, lease);
        self.turns.lock().unwrap().push(ticket.number);
        self.serve(ticket.number);
        drop(queued);
        Some(held)
    }

    fn take_turn(&self) {
        let Some(held) = self.turn() else { return };
        for _ in 0..thread_rng().gen_range(0..3) {
            thread::yield_now();
        }
        if self.plan.busy && chance(4) {
            held.release().pause(Duration::ZERO);
        }
    }

    fn close(&self) {
        if let Some(held) = self.turn() {
            self.slot.end(End::Closed);
            thread::yield_now();
            drop(held);
        }
    }

    fn polls(&self) -> Polls {
        Polls {
            left: (self.plan.drops && chance(2)).then(|| thread_rng().gen_range(0..4)),
            spurious: chance(2),
        }
    }

    fn done(&self) {
        self.at_work.fetch_sub(1, SeqCst);
    }

    /// The thread's ticks, which shuttle's `wait_timeout` leaves out: a wake-up at any moment, but only where the
    /// real wait has a timeout. So a thread that sleeps without one is woken by nobody who should not.
    fn ticks(&self) {
        loop {
            let state = self.slot.lock();
            // Units that were put back after their owners had gone are run all the same.
            if self.at_work.load(SeqCst) == 0 && state.queue.is_empty() && state.is_free() {
                return;
            }
            if state.thread == Thread::Awake {
                self.slot.bell.notify_one();
            }
            drop(state);
            thread::yield_now();
        }
    }

    fn check(&self, fates: Vec<Fate>) {
        for (unit, was) in fates.into_iter().enumerate() {
            let became = match was {
                Fate::Left(ticket) => fate(unit, &ticket.try_answer().expect("an answer")),
                fate => fate,
            };
            let applied = self.applied[unit].load(SeqCst);
            let expected = usize::from(matches!(became, Fate::Applied));
            assert_eq!(applied, expected, "unit {unit} with the fate {became:?}");
        }
        let mut served = self.served.lock().unwrap();
        // Where the thread has no patience, turns are overtaken: only units keep their order then.
        if self.slot.patience.is_zero() {
            let turns = self.turns.lock().unwrap();
            served.retain(|ticket| !turns.contains(ticket));
        }
        assert!(
            served.is_sorted_by(|one, next| one < next),
            "not first in, first out: {served:?}"
        );
        let state = self.slot.lock();
        assert!(state.holder.is_none(), "held by nobody who lives");
        assert!(state.queue.is_empty(), "left behind in the queue");
        assert_eq!(self.leases.load(SeqCst), 0);
    }
}

/// Gives the place up when dropped, or when the wait is over.
struct Queued<'a> {
    slot: &'a Arc<Slot<Unit, Answer>>,
    ticket: &'a Arc<Ticket<Unit, Answer>>,
}

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        self.slot.withdraw(self.ticket);
    }
}

/// How somebody polls: until it has enough, with wake-ups of its own in between or without.
struct Polls {
    left: Option<u32>,
    spurious: bool,
}

impl Polls {
    /// `None`: dropped. That is decided before a poll, so that it may hit a grant that was not looked at yet.
    fn until<T>(
        &mut self,
        context: &mut Context<'_>,
        poll: impl FnOnce(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<Option<T>> {
        if self.left == Some(0) {
            return Poll::Ready(None);
        }
        let polled = poll(context);
        if polled.is_pending() {
            self.left = self.left.map(|left| left - 1);
            if self.spurious && self.left.is_some() {
                context.waker().wake_by_ref();
            }
        }
        polled.map(Some)
    }
}

fn fate(unit: Unit, answer: &Result<Answer, Unserved>) -> Fate {
    match answer {
        Ok(answer) => {
            assert_eq!(*answer, unit, "somebody else's answer");
            Fate::Applied
        }
        Err(Unserved::Ended(_)) => Fate::Ended,
        Err(Unserved::TimedOut { .. }) => panic!("nothing times out here"),
    }
}

fn at_most(most: usize) -> impl FnMut(&Unit) -> bool {
    let mut taken = 0;
    move |_| {
        taken += 1;
        taken <= most
    }
}

fn chance(one_in: u32) -> bool {
    thread_rng().gen_range(0..one_in) == 0
}

/// One run.
fn run(plan: Plan) {
    let world = World::new(plan);
    let spawn = |work: fn(&World)| {
        let world = Arc::clone(&world);
        thread::spawn(move || work(&world))
    };
    let writer = plan.thread.then(|| {
        spawn(|world| {
            while let Some(task) = world.slot.next_on_thread() {
                world.lead(task.lease);
            }
        })
    });
    let ticks = plan.thread.then(|| spawn(World::ticks));
    let mut others: Vec<_> = (0..plan.turns)
        .map(|_| {
            spawn(|world| {
                world.take_turn();
                world.done();
            })
        })
        .collect();
    if plan.closes {
        others.push(spawn(|world| {
            world.close();
            world.done();
        }));
    }
    let owners: Vec<_> = (0..plan.units)
        .map(|unit| {
            let world = Arc::clone(&world);
            thread::spawn(move || {
                let fate = world.own(unit);
                world.done();
                fate
            })
        })
        .collect();
    let fates: Vec<_> = owners
        .into_iter()
        .map(|owner| owner.join().unwrap())
        .collect();
    others.into_iter().for_each(|other| other.join().unwrap());
    if let (Some(writer), Some(ticks)) = (writer, ticks) {
        ticks.join().unwrap();
        world.slot.end(End::Closed);
        writer.join().unwrap();
    }
    world.check(fates);
}

fn explore(plan: Plan) {
    shuttle::check_random(move || run(plan), RUNS);
    shuttle::check_pct(move || run(plan), RUNS, DEPTH);
}

const CALM: Plan = Plan {
    units: 3,
    turns: 1,
    thread: false,
    threaded: false,
    drops: false,
    busy: false,
    closes: false,
};

#[test]
fn owners_and_turns_need_no_thread() {
    explore(CALM);
}

#[test]
fn a_dropped_owner_passes_its_grant_on() {
    explore(Plan {
        drops: true,
        turns: 2,
        ..CALM
    });
}

#[test]
fn the_thread_takes_part() {
    explore(Plan {
        thread: true,
        drops: true,
        ..CALM
    });
}

#[test]
fn all_units_run_on_the_thread() {
    explore(Plan {
        thread: true,
        threaded: true,
        drops: true,
        ..CALM
    });
}

#[test]
fn units_that_were_put_back_are_applied_or_withdrawn() {
    explore(Plan {
        thread: true,
        drops: true,
        busy: true,
        ..CALM
    });
}

#[test]
fn closing_answers_everybody() {
    explore(Plan {
        thread: true,
        drops: true,
        busy: true,
        closes: true,
        ..CALM
    });
}

/// An owner that was granted the lead and is not polled any more, while others wait for it ("futurelock").
#[test]
fn an_owner_that_sleeps_on_its_grant_is_overruled() {
    let run = || {
        let world = World::of(
            Plan {
                thread: true,
                units: 2,
                ..CALM
            },
            Duration::ZERO,
            1,
        );
        let thread = |work: fn(&World)| {
            let world = Arc::clone(&world);
            thread::spawn(move || work(&world))
        };
        let held = world.turn().expect("nobody else is there");
        let asleep = world.slot.push(0, false).unwrap();
        let nobody = &mut Context::from_waker(std::task::Waker::noop());
        assert!(world.slot.poll_unit(&asleep, nobody).is_pending());
        let writer = thread(|world| {
            while let Some(task) = world.slot.next_on_thread() {
                world.lead(task.lease);
            }
        });
        let ticks = thread(World::ticks);
        let turn = thread(World::take_turn);
        let owner = thread(|world| assert!(matches!(world.own(1), Fate::Applied)));
        drop(held);
        turn.join().unwrap();
        owner.join().unwrap();
        assert!(matches!(
            fate(0, &asleep.try_answer().unwrap()),
            Fate::Applied
        ));
        world.done();
        ticks.join().unwrap();
        world.slot.end(End::Closed);
        writer.join().unwrap();
        world.check(vec![Fate::Applied, Fate::Applied]);
    };
    shuttle::check_random(run, RUNS);
    shuttle::check_pct(run, RUNS, DEPTH);
}
