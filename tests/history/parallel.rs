//! Threads with a runtime each, and several clients on each of them.

use std::cell::RefCell;

use anabranch_tests::random::Random;
use futures_util::future::join_all;

use crate::{
    pace::Pace,
    remains::Remains,
    shape::{Shape, Task},
    world::World,
};

const THREADS: u64 = 2;
const CLIENTS: u64 = 3;

/// Runs a workload of so many units.
pub(crate) async fn run(shape: &'static Shape, seed: u64, units: u64) -> Remains {
    let mut random = Random::new(seed);
    let world = World::new(shape).await;
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            let (world, mut random) = (&world, random.branch());
            scope.spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build();
                let clients = (0..CLIENTS)
                    .map(|_| client(world, random.branch(), units / (THREADS * CLIENTS)));
                runtime
                    .unwrap()
                    .block_on(join_all(clients.collect::<Vec<_>>()));
            });
        }
    });
    world.end_of_history().await
}

async fn client(world: &World, mut random: Random, units: u64) {
    let pace = Pace::Free(RefCell::new(random.branch()));
    for _ in 0..units {
        let mut task = world.shape.task(&mut random);
        if task == Task::Checkpoint && !random.once_in(3) {
            task = Task::Session;
        }
        world.perform(task, &mut random, &pace).await;
    }
}
