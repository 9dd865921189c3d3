//! Many to many without a join entity in the application's hands.

use chrono::DateTime;

use crate::{
    context::{Context, Tracked},
    entity::{DefaultValue, Entity, TableDef, decode, encode_column},
    error::{Error, ErrorKind, Result},
    query::{Invalid, Relation, Step},
    value::{ColumnType as _, KeyOrigin, Value},
};

impl Context<'_> {
    /// Relates two entities through a join entity, which is added with their keys in it, temporary ones too: the next
    /// save inserts it. What it has beside references is NULL, or what the library gives: a key, a version, a time, the Rust expression of a `default`. If one
    /// is tracked between the two already, it is that one.
    ///
    /// ```
    /// use anabranch::prelude::*;
    ///
    /// #[derive(Debug, Entity)]
    /// #[entity(has_many(tags: Tag, through = PostTag))]
    /// struct Post {
    ///     #[entity(id)]
    ///     id: i64,
    /// }
    ///
    /// #[derive(Debug, Entity)]
    /// struct Tag {
    ///     #[entity(id)]
    ///     id: i64,
    ///     name: String,
    /// }
    ///
    /// #[derive(Debug, Entity)]
    /// struct PostTag {
    ///     #[entity(id, references = Post, on_delete = Cascade)]
    ///     post_id: i64,
    ///     #[entity(id, references = Tag, on_delete = Cascade, index)]
    ///     tag_id: i64,
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anabranch::error::Result<()> {
    /// # let db = Database::temporary().await?;
    /// # db.create_tables::<(Post, Tag, PostTag)>().await?;
    /// let mut ctx = db.context();
    /// let post = ctx.add(Post { id: 0 });
    /// let tag = ctx.add(Tag { id: 0, name: "rust".into() });
    /// ctx.link(post, Post::TAGS, tag)?;
    /// assert_eq!(ctx.save_changes().await?.inserted, 3);
    /// assert_eq!(ctx.related(post, Post::TAGS)?, [tag]);
    /// ctx.unlink(post, Post::TAGS, tag)?;
    /// assert_eq!(ctx.save_changes().await?.deleted, 1);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// Kind `Model` if the join entity needs more than the two keys: add one yourself; `NotFound` if a handle is stale.
    pub fn link<E: Entity, T: Entity, J: Entity>(
        &mut self,
        from: Tracked<E>,
        relation: Relation<E, Vec<T>, J>,
        to: Tracked<T>,
    ) -> Result<Tracked<J>> {
        if let Some(linked) = self.links(from, relation, to)?.first() {
            return Ok(*linked);
        }
        let link = self.join_columns(from, relation, to)?;
        let table = J::TABLE;
        let row: Vec<_> = (0..table.columns.len())
            .map(|column| {
                let linked = link.iter().find(|(position, _)| *position == column);
                linked.map_or_else(|| unset(table, column), |(_, value)| value.clone())
            })
            .collect();
        let join = decode::<J, _>(&row[..]).map_err(|error| {
            let column = error.column().unwrap_or_default().to_owned();
            Error::new(
                ErrorKind::Model,
                "a link has no value for this column of the join entity: add the entity instead",
            )
            .with_table(table.name)
            .with_column(column)
        })?;
        Ok(self.add(join))
    }

    /// Removes the join entities between two entities, which are tracked here: the relation has to be
    /// [loaded](Context::load_related) before, or the link made here. How many there were.
    ///
    /// # Errors
    ///
    /// Kind `NotFound` if there is none tracked here, or a handle is stale.
    pub fn unlink<E: Entity, T: Entity, J: Entity>(
        &mut self,
        from: Tracked<E>,
        relation: Relation<E, Vec<T>, J>,
        to: Tracked<T>,
    ) -> Result<usize> {
        let linked = self.links(from, relation, to)?;
        let count = linked.len();
        if count == 0 {
            return Err(Error::new(
                ErrorKind::NotFound,
                "no link between the two is tracked here: load the relation first, with `load_related` or `with`",
            )
            .with_table(J::TABLE.name));
        }
        for handle in linked {
            self.remove(handle);
        }
        Ok(count)
    }

    /// The join entities between two entities, as far as they are tracked here.
    fn links<E: Entity, T: Entity, J: Entity>(
        &self,
        from: Tracked<E>,
        relation: Relation<E, Vec<T>, J>,
        to: Tracked<T>,
    ) -> Result<Vec<Tracked<J>>> {
        let [first, second] = steps(relation)?;
        let joins: Vec<Tracked<J>> = self.next(&[from], &first)?.into_iter().flatten().collect();
        let beyond = self.next::<J, T>(&joins, &second)?;
        let leads = |(join, beyond): (Tracked<J>, Vec<_>)| beyond.contains(&to).then_some(join);
        Ok(joins.into_iter().zip(beyond).filter_map(leads).collect())
    }

    /// What stands in the join entity's columns: their positions, and the keys.
    fn join_columns<E: Entity, T: Entity, J: Entity>(
        &self,
        from: Tracked<E>,
        relation: Relation<E, Vec<T>, J>,
        to: Tracked<T>,
    ) -> Result<Vec<(usize, Value)>> {
        let [first, second] = steps(relation)?;
        let mut columns = Vec::new();
        let keys = self.key_values(from, &first.from_columns)?;
        columns.extend(first.to_columns.iter().copied().zip(keys));
        let keys = self.key_values(to, &second.to_columns)?;
        columns.extend(second.from_columns.iter().copied().zip(keys));
        Ok(columns)
    }

    fn key_values<E: Entity>(&self, handle: Tracked<E>, columns: &[usize]) -> Result<Vec<Value>> {
        let Some(entity) = self.get(handle) else {
            return Err(
                Error::new(ErrorKind::NotFound, "the handle is not of a tracked entity")
                    .with_table(E::TABLE.name),
            );
        };
        let values = columns.iter().map(|column| encode_column(entity, *column));
        values.collect()
    }
}

fn steps<E: Entity, T: Entity, J: Entity>(relation: Relation<E, Vec<T>, J>) -> Result<[Step; 2]> {
    Ok(<[Step; 2]>::try_from(relation.steps()?)
        .map_err(|_| Invalid::Refused("a relation through a join entity has two steps"))?)
}

/// What a new row has where nothing is said: NULL, or what is replaced when it is added or saved.
fn unset(table: &'static TableDef, column: usize) -> Value {
    let is_number = table.writer_key() == Some(column)
        || table.version == Some(column)
        || table.commit_seq == Some(column);
    let is_time = table.created_at == Some(column) || table.updated_at == Some(column);
    if is_number {
        Value::Integer(0)
    } else if table.is_key(column) && table.key_origin == KeyOrigin::Context {
        Value::Blob(vec![0; 16])
    } else if is_time && !table.columns[column].nullable {
        DateTime::UNIX_EPOCH.encode().unwrap_or_default()
    } else if let Some(DefaultValue::Value(default)) = table.columns[column].default {
        default().unwrap_or_default()
    } else {
        Value::Null
    }
}
