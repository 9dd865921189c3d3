//! Entities of the tables `teams`, `matches`, `people`, `profiles`, `passports`, `friendships`,
//! `categories`, `posts`, `tags`, `post_tags`, `rooms`, `meetings`, `doors`, `likes`, `keys`,
//! `boards` and `passages`.
//!
//! Made by `anabranch entities --from relations.db`.

use anabranch::prelude::*;

/// A row of `teams`.
#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(table = "teams", strict = false)]
#[entity(has_many(home_matches: Match, by = home_id))]
#[entity(has_many(away_matches: Match, by = away_id))]
#[entity(has_many(people: Person))]
pub struct Team {
    #[entity(id)]
    pub id: i64,
    pub name: String,
}

/// A row of `matches`.
#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(table = "matches", strict = false)]
pub struct Match {
    #[entity(id)]
    pub id: i64,
    #[entity(references = Team)]
    pub home_id: i64,
    #[entity(references = Team, relation = away_team)]
    pub away_id: i64,
    #[entity(references = Person, relation = person)]
    pub referee: Option<i64>,
    pub away: Option<String>,
}

/// A row of `people`.
#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(table = "people", strict = false)]
#[entity(has_many(matches: Match))]
#[entity(has_many(boss_people: Person))]
#[entity(has_one(profile: Profile))]
#[entity(has_one(passport: Passport))]
#[entity(has_many(person_friendships: Friendship, by = person_id))]
#[entity(has_many(friend_friendships: Friendship, by = friend_id))]
#[entity(has_many(posts: Post))]
#[entity(has_many(meetings: Meeting))]
#[entity(has_many(likes: Like))]
#[entity(has_many(keys: Key))]
#[entity(has_many(friends: Person, through = Friendship, by = person_id, to = friend_id))]
#[entity(has_many(people: Person, through = Friendship, by = friend_id, to = person_id))]
#[entity(has_many(posts_through_like: Post, through = Like))]
#[entity(has_many(rooms: Room, through = Key))]
pub struct Person {
    #[entity(id)]
    pub id: i64,
    #[entity(references = Person, relation = boss_person)]
    pub boss: Option<i64>,
    #[entity(references = Team, on_delete = SetNull)]
    pub team_id: Option<i64>,
}

/// A row of `profiles`.
#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(table = "profiles", strict = false)]
#[entity(has_many(meetings: Meeting))]
pub struct Profile {
    #[entity(id, references = Person, on_delete = Cascade)]
    pub person_id: i64,
    pub bio: Option<String>,
}

/// A row of `passports`.
#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(table = "passports", strict = false)]
pub struct Passport {
    #[entity(id)]
    pub id: i64,
    #[entity(unique, references = Person)]
    pub person_id: i64,
}

/// A row of `friendships`.
#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(table = "friendships", strict = false)]
pub struct Friendship {
    #[entity(id, references = Person)]
    pub person_id: i64,
    #[entity(id, references = Person)]
    pub friend_id: i64,
}

/// A row of `categories`.
#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(table = "categories", strict = false)]
#[entity(has_many(children: Category))]
#[entity(has_many(posts: Post))]
pub struct Category {
    #[entity(id)]
    pub id: i64,
    #[entity(references = Category)]
    pub parent_id: Option<i64>,
}

/// A row of `posts`.
#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(table = "posts", strict = false)]
#[entity(has_many(post_tags: PostTag))]
#[entity(has_many(likes: Like))]
#[entity(has_many(tags_through_post_tag: Tag, through = PostTag))]
#[entity(has_many(people: Person, through = Like))]
pub struct Post {
    #[entity(id)]
    pub id: i64,
    pub tags: Option<String>,
    #[entity(references = Person, relation = person)]
    pub author: i64,
    #[entity(references = Category)]
    pub category_id: Option<i64>,
}

/// A row of `tags`.
#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(table = "tags", strict = false)]
#[entity(has_many(post_tags: PostTag))]
#[entity(has_many(posts: Post, through = PostTag))]
pub struct Tag {
    #[entity(id)]
    pub name: String,
}

/// A row of `post_tags`.
#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(table = "post_tags", strict = false)]
pub struct PostTag {
    #[entity(id, references = Post, on_delete = Cascade)]
    pub post_id: i64,
    #[entity(id, references = Tag, relation = tag_row)]
    pub tag: String,
    pub since: Option<String>,
}

/// A row of `rooms`.
#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(table = "rooms", strict = false, without_rowid)]
#[entity(has_many(meetings: Meeting))]
#[entity(has_many(from_room_doors: Door, by = from_room))]
#[entity(has_many(to_room_doors: Door, by = to_room))]
#[entity(has_many(keys: Key))]
#[entity(has_one(board: Board))]
#[entity(has_many(from_passages: Passage, by = from_building))]
#[entity(has_many(to_passages: Passage, by = to_building))]
#[entity(has_many(people: Person, through = Key))]
pub struct Room {
    #[entity(id)]
    pub building: String,
    #[entity(id)]
    pub number: i64,
}

/// A row of `meetings`.
#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(table = "meetings", strict = false)]
#[entity(foreign_key(columns(person_id), references = Profile, relation = profile))]
#[entity(foreign_key(columns(building, room), references = Room, relation = building_room))]
pub struct Meeting {
    #[entity(id)]
    pub id: i64,
    pub building: Option<String>,
    pub room: Option<i64>,
    #[entity(references = Person)]
    pub person_id: Option<i64>,
}

/// A row of `doors`.
#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(table = "doors", strict = false)]
#[entity(foreign_key(
    columns(building, from_room),
    references = Room,
    relation = from_room_row
))]
#[entity(foreign_key(columns(building, to_room), references = Room, relation = to_room_row))]
pub struct Door {
    #[entity(id)]
    pub building: String,
    #[entity(id)]
    pub from_room: i64,
    #[entity(id)]
    pub to_room: i64,
}

/// A row of `likes`.
#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(table = "likes", strict = false)]
#[entity(index(columns(fan_id, post), unique))]
pub struct Like {
    #[entity(id)]
    pub id: i64,
    #[entity(references = Post, relation = post_row)]
    pub post: i64,
    #[entity(references = Person)]
    pub fan_id: i64,
}

/// A row of `keys`.
#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(table = "keys", strict = false)]
#[entity(foreign_key(columns(building, room), references = Room, relation = building_room))]
pub struct Key {
    #[entity(id, references = Person, on_delete = Cascade)]
    pub person_id: i64,
    #[entity(id)]
    pub room: i64,
    #[entity(id)]
    pub building: String,
}

/// A row of `boards`.
#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(table = "boards", strict = false)]
#[entity(foreign_key(columns(building, room), references = Room, relation = building_room))]
pub struct Board {
    #[entity(id)]
    pub building: String,
    #[entity(id)]
    pub room: i64,
    pub colour: Option<String>,
}

/// A row of `passages`.
#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(table = "passages", strict = false)]
#[entity(foreign_key(
    columns(from_building, from_number),
    references = Room,
    relation = from
))]
#[entity(foreign_key(columns(to_building, to_number), references = Room, relation = to))]
pub struct Passage {
    #[entity(id)]
    pub id: i64,
    pub from_building: String,
    pub from_number: i64,
    pub to_building: Option<String>,
    pub to_number: Option<i64>,
}
