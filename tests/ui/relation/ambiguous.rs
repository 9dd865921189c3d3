//! Relations to entities that refer back by two fields, without the name of one.

use anabranch::entity::Entity;

#[derive(Entity)]
#[entity(has_many(matches: Match), has_many(friends: Team, through = Friendship))]
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
    #[entity(references = crate::Team)]
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
