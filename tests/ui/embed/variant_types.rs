//! Data of variants that no column can hold.

use anabranch::entity::EntityEmbed;

struct Plain;

#[derive(EntityEmbed)]
enum Payment {
    Card {
        number: u64,
    },
    Voucher(Plain),
    Cheque(#[entity(embed)] Plain),
}

fn main() {}
