//! Two variants stored as one text.

use anabranch::entity::EntityEnum;

#[derive(EntityEnum)]
enum Status {
    New,
    #[entity(rename = "New")]
    Fresh,
    #[entity(renam = "old")]
    Old,
}

fn main() {}
