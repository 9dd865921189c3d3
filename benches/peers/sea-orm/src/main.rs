//! sea-orm 2.0 on sqlx-sqlite: entities, active models, `insert_many`.

use peerkit::{AsyncPeer, BUSY_TIMEOUT, Config, Entity, NewOrder, NewWide, POOL, Res, pause};
use sea_orm::entity::prelude::*;
use sea_orm::sqlx::sqlite::{SqliteJournalMode, SqliteSynchronous};
use sea_orm::{
    ActiveValue::NotSet, ConnectOptions, Database, DatabaseConnection, DatabaseTransaction,
    FromQueryResult, IntoActiveModel, Set, SqliteTransactionMode, Statement, TransactionOptions,
    TransactionTrait,
};

mod order {
    use sea_orm::entity::prelude::*;

    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "orders")]
    pub struct Model {
        #[sea_orm(primary_key)]
        pub id: i64,
        pub writer: i64,
        pub item: String,
        pub quantity: i64,
        pub price: f64,
        pub placed_at: DateTime,
    }

    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

mod wide {
    use sea_orm::entity::prelude::*;

    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "wide")]
    pub struct Model {
        #[sea_orm(primary_key)]
        pub id: i64,
        pub i1: i64,
        pub i2: i64,
        pub i3: i64,
        pub i4: i64,
        pub i5: i64,
        pub i6: i64,
        pub i7: i64,
        pub r1: f64,
        pub r2: f64,
        pub r3: f64,
        pub r4: f64,
        pub r5: f64,
        pub t1: String,
        pub t2: String,
        pub t3: String,
        pub t4: String,
        pub t5: String,
        pub t6: String,
        pub placed_at: DateTime,
    }

    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

impl Entity for order::Model {
    fn key(&self) -> i64 {
        self.id
    }
    fn quantity(&self) -> i64 {
        self.quantity
    }
}

fn active(o: NewOrder) -> order::ActiveModel {
    order::ActiveModel {
        id: NotSet,
        writer: Set(o.writer),
        item: Set(o.item),
        quantity: Set(o.quantity),
        price: Set(o.price),
        placed_at: Set(o.placed_at),
    }
}

fn active_wide(w: NewWide) -> wide::ActiveModel {
    let [i1, i2, i3, i4, i5, i6, i7] = w.i.map(Set);
    let [r1, r2, r3, r4, r5] = w.r.map(Set);
    let [t1, t2, t3, t4, t5, t6] = w.t.map(Set);
    wide::ActiveModel {
        id: NotSet,
        i1,
        i2,
        i3,
        i4,
        i5,
        i6,
        i7,
        r1,
        r2,
        r3,
        r4,
        r5,
        t1,
        t2,
        t3,
        t4,
        t5,
        t6,
        placed_at: Set(w.placed_at),
    }
}

#[derive(Clone)]
struct Peer {
    db: DatabaseConnection,
    batch: Option<usize>,
    tokio_timer: bool,
}

impl Peer {
    async fn begin(&self) -> Result<DatabaseTransaction, DbErr> {
        self.db
            .begin_with_options(TransactionOptions {
                sqlite_transaction_mode: Some(SqliteTransactionMode::Immediate),
                ..Default::default()
            })
            .await
    }
}

#[derive(FromQueryResult)]
struct Counted {
    rows: i64,
    total: i64,
}

impl AsyncPeer for Peer {
    type Row = order::Model;

    async fn open(config: &Config) -> Res<Self> {
        let synchronous: SqliteSynchronous = config.sync.as_sql().parse()?;
        let mut options = ConnectOptions::new(format!("sqlite://{}?mode=rwc", config.db_str()));
        options
            .max_connections(POOL as u32)
            .min_connections(POOL as u32)
            .test_before_acquire(false)
            .sqlx_logging(false)
            .record_stmt_in_spans(false)
            .map_sqlx_sqlite_opts(move |sqlite| {
                sqlite
                    .journal_mode(SqliteJournalMode::Wal)
                    .synchronous(synchronous)
                    .busy_timeout(BUSY_TIMEOUT)
            });
        let db = Database::connect(options).await?;
        let exists = db
            .query_one_raw(Statement::from_string(
                db.get_database_backend(),
                "SELECT 1 AS one FROM sqlite_schema WHERE name = 'orders'",
            ))
            .await?;
        if exists.is_none() {
            db.execute_unprepared(peerkit::ORDERS_DDL).await?;
            db.execute_unprepared(peerkit::WIDE_DDL).await?;
        }
        Ok(Self {
            db,
            batch: config.batch,
            tokio_timer: config.tokio_timer,
        })
    }

    async fn save(&self, order: NewOrder) -> Res<i64> {
        Ok(active(order).insert(&self.db).await?.id)
    }

    async fn bulk(&self, rows: Vec<NewOrder>) -> Res<()> {
        let batch = self.batch.unwrap_or(BATCH);
        let tx = self.begin().await?;
        let mut rows = rows.into_iter().peekable();
        while rows.peek().is_some() {
            let chunk = rows.by_ref().take(batch).map(active);
            order::Entity::insert_many(chunk)
                .exec_without_returning(&tx)
                .await?;
        }
        tx.commit().await?;
        Ok(())
    }

    async fn bulk_wide(&self, rows: Vec<NewWide>) -> Res<()> {
        let batch = self.batch.unwrap_or(BATCH_WIDE);
        let tx = self.begin().await?;
        let mut rows = rows.into_iter().peekable();
        while rows.peek().is_some() {
            let chunk = rows.by_ref().take(batch).map(active_wide);
            wide::Entity::insert_many(chunk)
                .exec_without_returning(&tx)
                .await?;
        }
        tx.commit().await?;
        Ok(())
    }

    async fn tx_work(&self, order: NewOrder, wait_us: u64) -> Res<u64> {
        let tx = self.begin().await?;
        active(order).insert(&tx).await?;
        pause(wait_us, self.tokio_timer).await;
        tx.commit().await?;
        Ok(0)
    }

    async fn get(&self, id: i64) -> Res<order::Model> {
        order::Entity::find_by_id(id)
            .one(&self.db)
            .await?
            .ok_or_else(|| "no such order".into())
    }

    async fn scan(&self) -> Res<Vec<order::Model>> {
        Ok(order::Entity::find().all(&self.db).await?)
    }

    async fn rmw(&self, id: i64) -> Res<u64> {
        let tx = self.begin().await?;
        let order = order::Entity::find_by_id(id)
            .one(&tx)
            .await?
            .ok_or("no such order")?;
        let quantity = order.quantity + 1;
        let mut order = order.into_active_model();
        order.quantity = Set(quantity);
        order.update(&tx).await?;
        tx.commit().await?;
        Ok(0)
    }

    async fn count(&self, table: &'static str) -> Res<(i64, i64)> {
        let column = if table == "orders" { "quantity" } else { "i1" };
        let sql = format!(
            "SELECT count(*) AS \"rows\", coalesce(sum({column}), 0) AS total FROM {table}"
        );
        let counted =
            Counted::find_by_statement(Statement::from_string(self.db.get_database_backend(), sql))
                .one(&self.db)
                .await?
                .ok_or("no count")?;
        Ok((counted.rows, counted.total))
    }

    async fn close(self) -> Res<()> {
        self.db.close().await?;
        Ok(())
    }
}

/// Rows per statement; the best of those tried (see README.md).
const BATCH: usize = 1000;
const BATCH_WIDE: usize = 100;

fn main() {
    peerkit::run_async::<Peer>(|_| None);
}
