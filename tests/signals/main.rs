//! What the library tells of itself: spans, events and instruments, and that no value is in them.
//!
//! A binary of its own, since subscriber and recorder are those of the whole process: the threads of the library tell as well.

mod capture;
mod instruments;
mod page;
mod secret;
mod spans;

use anabranch::prelude::*;

/// A save by somebody else, in the middle of something.
async fn between<E: Entity>(db: &Database, entity: E) {
    let db = db.clone();
    let save = async move {
        let mut ctx = db.context();
        ctx.add(entity);
        ctx.save_changes().await.unwrap();
    };
    tokio::spawn(save).await.unwrap();
}
