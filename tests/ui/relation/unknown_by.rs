//! The field by which the other entity refers back is not there, or misspelt.

use anabranch::entity::Entity;

#[derive(Entity)]
#[entity(has_many(at_home: Match, by = home), has_many(friends: Team, through = Friendship, by = one_id, to = othr_id))]
struct Team {
    #[entity(id)]
    id: i64,
}

#[derive(Entity)]
struct Match {
    #[entity(id)]
    id: i64,
    #[entity(references = Team)]
    home_id: i64,
    #[entity(references = Team)]
    guest_id: i64,
}

#[derive(Entity)]
struct Friendship {
    #[entity(id, references = Team)]
    one_id: i64,
    #[entity(id, references = Team)]
    other_id: i64,
}

fn main() {}
