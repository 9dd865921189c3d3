//! Attributes that an enum does not have, or with values.

use anabranch::entity::EntityEnum;

#[derive(EntityEnum)]
#[entity(check = "status <> ''", tag = "kind")]
enum Status {
    #[entity(check)]
    New,
    #[entity(renamed = "done")]
    Done,
}

fn main() {}
