//! What the library tells of itself: spans, events and instruments, and that no value is in them.
//!
//! A binary of its own, since subscriber and recorder are those of the whole process: the threads of the library tell as well.
#![allow(
    clippy::unwrap_used,
    clippy::too_many_lines,
    clippy::float_cmp,
    clippy::cast_precision_loss,
    reason = "what does not work here must fail the test, which does many things and looks at all in the end"
)]

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
