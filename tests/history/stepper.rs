//! One task that lets several clients go on, statement by statement, in an order that the seed gives.

use std::rc::Rc;

use anabranch_tests::random::Random;

use crate::{
    pace::{Gate, Pace, Stepped, step},
    remains::Remains,
    shape::{Shape, Task},
    world::World,
};

/// The most clients that are in the middle of a unit.
const BESIDE: usize = 5;

/// Runs a workload of so many units.
pub(crate) async fn run(shape: &'static Shape, seed: u64, units: u64) -> Remains {
    let mut random = Random::new(seed);
    let world = World::new(shape).await;
    let mut clients: Vec<Stepped<'_>> = Vec::new();
    let mut begun = 0;
    while begun < units || !clients.is_empty() {
        if let Some(holder) = clients.iter_mut().find(|one| one.gate.is_exclusive()) {
            // Whoever wants to write would wait for it.
            step(&mut [holder]).await;
        } else if begun < units && clients.len() < BESIDE && random.once_in(4) {
            begun += 1;
            let task = shape.task(&mut random);
            clients.push(client(&world, task, random.branch()));
        } else if !clients.is_empty() {
            advance(&mut clients, &mut random).await;
        }
        clients.retain(|one| !one.done);
    }
    drop(clients);
    world.end_of_history().await
}

fn client<'w>(world: &'w World, task: Task, mut random: Random) -> Stepped<'w> {
    let gate = Rc::new(Gate::default());
    let pace = Pace::Told(Rc::clone(&gate));
    Stepped {
        gate,
        future: Box::pin(async move { world.perform(task, &mut random, &pace).await }),
        done: false,
    }
}

/// One of them mostly, sometimes all at once: then those that commit do it in one group.
async fn advance(clients: &mut [Stepped<'_>], random: &mut Random) {
    if random.once_in(6) {
        return step(&mut clients.iter_mut().collect::<Vec<_>>()).await;
    }
    let which = random.below(clients.len() as u64);
    step(&mut [&mut clients[usize::try_from(which).unwrap()]]).await;
}
