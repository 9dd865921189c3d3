//! Enums with data that cannot be told apart, or have too much.

use anabranch::entity::EntityEmbed;

#[derive(EntityEmbed)]
enum NoData {
    One,
    Two,
}

#[derive(EntityEmbed)]
enum Nothing {}

#[derive(EntityEmbed)]
#[entity(integer, tag = "two words")]
enum Payment {
    Card(String, i64),
    #[entity(column = "iban")]
    Transfer {
        #[entity(default = "''", check = "iban <> ''", id)]
        iban: String,
    },
    #[entity(rename = "Card")]
    Other,
}

#[derive(EntityEmbed)]
enum Clashing {
    Kind(i64),
    Card {
        number: i64,
    },
    CardNumber(i64),
    Cheque {
        #[entity(column = "KIND")]
        number: i64,
    },
}

#[derive(EntityEmbed)]
enum Generic<T> {
    One(T),
}

fn main() {}
