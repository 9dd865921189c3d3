//! Typed work of a client, recorded as the SQL that does the same.

use anabranch::prelude::*;

use crate::{
    client::{Client, did},
    draw::{Chance, Draw},
    operation::{Cell, Operation, Place, Seen, is_constraint},
    tables::Item,
    unit::Entry,
};

pub(crate) const INSERT: &str = "INSERT INTO item (id, grp, val, tag) VALUES (?, ?, ?, ?)";
pub(crate) const FIND: &str = "SELECT id, grp, val, tag FROM item WHERE id = ?";
/// Of a value that the client has read before, and counts on.
pub(crate) const SET_VALUE: &str = "UPDATE item SET val = ? WHERE id = ?";
pub(crate) const VALUE: &str = "SELECT val FROM item WHERE id = ?";

impl Client<'_, '_> {
    pub(crate) async fn typed(
        &mut self,
        draw: Draw,
        entries: &mut Vec<Entry>,
    ) -> Result<(), Error> {
        let key = self.chance().key();
        match draw {
            Draw::TypedInsert => return self.typed_insert(entries).await,
            Draw::TypedQuery => return self.typed_query(key, entries).await,
            _ => {}
        }
        let mut ctx = self.place.context();
        let found = ctx.find::<Item>(key).await?;
        let rows = found.iter().map(|item| columns(&ctx[*item])).collect();
        did(
            entries,
            Operation::read(FIND, vec![key.into()]),
            Seen::Rows(rows),
        );
        let Some(item) = found else {
            return Ok(());
        };
        match draw {
            Draw::TypedUpdate => {
                ctx[item].val += 1;
                let args = vec![ctx[item].val.into(), key.into()];
                ctx.save_changes().await?;
                let update = Operation::write(SET_VALUE, args);
                did(entries, update, Seen::Changed(1));
            }
            Draw::TypedDelete => {
                ctx.remove(item);
                ctx.save_changes().await?;
                let delete = Operation::write("DELETE FROM item WHERE id = ?", vec![key.into()]);
                did(entries, delete, Seen::Changed(1));
            }
            _ => {}
        }
        Ok(())
    }

    async fn typed_insert(&mut self, entries: &mut Vec<Entry>) -> Result<(), Error> {
        let item = new_item(&mut self.chance());
        let mut args = columns(&item);
        let mut ctx = self.place.context();
        let item = ctx.add(item);
        match ctx.save_changes().await {
            Ok(_) => {
                args[0] = ctx[item].id.into();
                did(entries, Operation::write(INSERT, args), Seen::Changed(1));
                Ok(())
            }
            Err(error) if is_constraint(error.kind()) => {
                // Under no key: the tag is what was refused.
                args[0] = Cell::Null;
                let (table, column) = (error.table().unwrap(), error.column().unwrap());
                let said = format!("UNIQUE constraint failed: {table}.{column}");
                let refused = Seen::Refused(error.kind(), said);
                did(entries, Operation::write(INSERT, args), refused);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    async fn typed_query(&mut self, key: i64, entries: &mut Vec<Entry>) -> Result<(), Error> {
        let group = key % 5;
        let items = Item::query().filter(Item::GRP.eq(group));
        let sorted = items.clone().order_by([Item::ID.asc()]);
        let mut ctx = self.place.context();
        let rows = sorted.load(&mut ctx).await?;
        let rows = rows.into_iter().map(|item| columns(&ctx[item])).collect();
        drop(ctx);
        let all = "SELECT id, grp, val, tag FROM item WHERE grp = ? ORDER BY id";
        did(
            entries,
            Operation::read(all, vec![group.into()]),
            Seen::Rows(rows),
        );
        self.pace.next().await;
        let count = match &mut self.place {
            Place::Session(session) => items.count(&mut **session).await?,
            Place::Transaction(transaction) => items.count(&mut **transaction).await?,
        };
        let count = Cell::Integer(i64::try_from(count).unwrap());
        let counted = Operation::read(
            "SELECT count(*) FROM item WHERE grp = ?",
            vec![group.into()],
        );
        did(entries, counted, Seen::Rows(vec![vec![count]]));
        Ok(())
    }
}

/// An item as a save inserts it.
pub(crate) fn inserted(item: &Item) -> Operation {
    Operation::write(INSERT, columns(item))
}

pub(crate) fn new_item(chance: &mut Chance<'_>) -> Item {
    Item {
        id: 0,
        grp: chance.below(5),
        val: chance.below(100),
        tag: chance.tag(),
    }
}

pub(crate) fn columns(item: &Item) -> Vec<Cell> {
    vec![
        item.id.into(),
        item.grp.into(),
        item.val.into(),
        item.tag.clone().into(),
    ]
}
