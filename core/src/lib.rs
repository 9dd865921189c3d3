//! A unit of work for SQLite: plain structs, and one queued writer that commits for everybody.
//!
//! [`Database`](database::Database) is one file. A [`Context`](context::Context) tracks entities and saves what changed.
//! A [`Query`](query::Query) reads. A [`Transaction`](engine::Transaction) does several things at once, raw sqlx queries
//! among them. Most applications import the [`prelude`].
//!
//! # Entities
//!
//! A plain struct is read, inserted and updated as it is. [`derive(Entity)`](macro@entity::Entity) lists the attributes.
//!
//! ```
//! use anabranch::prelude::*;
//! use chrono::{DateTime, Utc};
//!
//! #[derive(Debug, Clone, PartialEq, Entity)]
//! #[entity(table = "customers")]
//! struct Customer {
//!     #[entity(id)]
//!     id: i64, // 0 until the writer gives one
//!     name: String,
//! }
//!
//! #[derive(Debug, Clone, PartialEq, Entity)]
//! #[entity(table = "orders")]
//! struct Order {
//!     #[entity(id)]
//!     id: i64,
//!     #[entity(references = Customer, on_delete = Cascade, index)]
//!     customer_id: i64,
//!     #[entity(column = "item_name")]
//!     item: String,
//!     status: Status,
//!     placed_at: DateTime<Utc>,
//!     #[entity(version)]
//!     version: i64, // checked and counted up by every save
//! }
//!
//! #[derive(Debug, Clone, Copy, PartialEq, EntityEnum)]
//! enum Status {
//!     New,
//!     Paid,
//!     Shipped,
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> anabranch::error::Result<()> {
//! let db = Database::temporary().await?;
//! db.create_tables::<(Customer, Order)>().await?;
//! # Ok(()) }
//! ```
//!
//! # Contexts
//!
//! A context is for one piece of work. It hands out handles; indexing with one is plain access to the struct.
//!
//! ```
//! # use anabranch::prelude::*;
//! # #[derive(Debug, Entity)]
//! # struct Customer { #[entity(id)] id: i64, name: String }
//! # #[derive(Debug, Entity)]
//! # #[entity(table = "orders")]
//! # struct Order {
//! #     #[entity(id)] id: i64,
//! #     #[entity(references = Customer)] customer_id: i64,
//! #     item: String,
//! #     #[entity(version)] version: i64,
//! # }
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> anabranch::error::Result<()> {
//! # let db = Database::temporary().await?;
//! # db.create_tables::<(Customer, Order)>().await?;
//! let mut ctx = db.context();
//! let ada = ctx.add(Customer { id: 0, name: "Ada".into() });
//! // `ctx[ada].id` is temporary until the save, which replaces it here and in every reference to it.
//! let tea = ctx.add(Order { id: 0, customer_id: ctx[ada].id, item: "tea".into(), version: 0 });
//! let saved = ctx.save_changes().await?; // one transaction, customers before orders
//! assert_eq!(saved.inserted, 2);
//! assert_eq!(ctx[tea].customer_id, ctx[ada].id);
//!
//! ctx[tea].item = "green tea".into();
//! ctx.save_changes().await?; // updates that one column, if nobody changed the row meanwhile
//!
//! let mut other = db.context();
//! let same = other.find::<Order>(ctx[tea].id).await?.expect("it was saved");
//! other[same].item = "coffee".into();
//! other.save_changes().await?;
//!
//! ctx[tea].item = "black tea".into();
//! let error = ctx.save_changes().await.unwrap_err();
//! assert!(error.is_conflict());
//! let lost = &error.conflicts()[0]; // the original, the current and the database's values
//! let theirs: Order = lost.database_as()?.expect("it is still there");
//! assert_eq!(theirs.item, "coffee");
//! // Saving again would meet the same conflict: say whose values are taken. There is `store_wins`, and `merge`, too.
//! ctx.client_wins(&error)?;
//! ctx.save_changes().await?;
//! # Ok(()) }
//! ```
//!
//! # Queries
//!
//! Conditions are typed by column, and always true or false: NULL differs from every value.
//!
//! ```
//! # use anabranch::prelude::*;
//! # #[derive(Debug, Entity)]
//! # struct Customer { #[entity(id)] id: i64, name: String, country: Option<String> }
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> anabranch::error::Result<()> {
//! # let db = Database::temporary().await?;
//! # db.create_tables::<Customer>().await?;
//! # let mut ctx = db.context();
//! let found = Customer::query()
//!     .filter(Customer::NAME.starts_with("A").and(Customer::COUNTRY.ne("NL")))
//!     .order_by(Customer::NAME.asc())
//!     .limit(50)
//!     .all(&db)
//!     .await?;
//! # assert!(found.is_empty());
//! let tracked = Customer::query().filter(Customer::ID.is_in([1, 2, 3])).load(&mut ctx).await?;
//! # assert!(tracked.is_empty());
//! let one = Customer::find(&db, 7).await?;
//! # assert!(one.is_none());
//! # Ok(()) }
//! ```
//!
//! # Transactions
//!
//! [`Database::write`](database::Database::write) runs a closure with the writer to itself;
//! [`Database::begin`](database::Database::begin) is the same as a guard. Inside, `tx.context()` is a unit of work of the
//! transaction, typed queries run on `&mut *tx`, and so does anything that sqlx can say.
//!
//! ```
//! # use anabranch::prelude::*;
//! # #[derive(Debug, Entity)]
//! # struct Account { #[entity(id)] id: i64, balance: i64 }
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> anabranch::error::Result<()> {
//! # let db = Database::temporary().await?;
//! # db.create_tables::<Account>().await?;
//! let total: i64 = db
//!     .write(async |tx| {
//!         let mut ctx = tx.context();
//!         ctx.add(Account { id: 0, balance: 10 });
//!         ctx.save_changes().await?;
//!         sqlx::query("UPDATE account SET balance = balance * 2").execute(&mut *tx).await?;
//!         Ok(sqlx::query_scalar("SELECT sum(balance) FROM account").fetch_one(&mut *tx).await?)
//!     })
//!     .await?;
//! assert_eq!(total, 20);
//! # Ok(()) }
//! ```
//!
//! A context borrows its transaction: `ctx.transaction()` gives it back for raw queries in between. An error of your own
//! is wrapped to pass through, and comes out as it went in:
//!
//! ```
//! # use anabranch::prelude::*;
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> anabranch::error::Result<()> {
//! # let db = Database::temporary().await?;
//! let error = db
//!     .write(async |_tx| {
//!         let parsed: i64 = "twelve".parse().map_err(Error::application)?;
//!         Ok(parsed)
//!     })
//!     .await
//!     .unwrap_err();
//! let parse: std::num::ParseIntError = error.into_application()?;
//! # drop(parse);
//! # Ok(()) }
//! ```
//!
//! # Errors
//!
//! There is one [`Error`](error::Error), and its [`kind`](error::Error::kind) is what an application matches on:
//! [`ErrorKind`](error::ErrorKind) says for each when it is met and what to do. After any error a context can be saved
//! again. Futures may be dropped at any await; each says under *Cancel safety* what that means.
//!
//! # Features
//!
//! None is on unless asked for. Each lets fields have the types of another crate; [`value`] lists all types.
//!
//! | feature | types |
//! |---|---|
//! | `bigdecimal` | `BigDecimal`, on a field with `#[entity(scale = 2)]` |
//! | `jiff` | `Timestamp`, `SignedDuration`, `civil::Date`, `civil::Time`, `civil::DateTime` |
//! | `rust_decimal` | `Decimal`, on a field with `#[entity(scale = 2)]` |
//! | `time` | `UtcDateTime`, `OffsetDateTime`, `PrimitiveDateTime`, `Date`, `Time`, `Duration` |
//!
//! # Where statements run
//!
//! What is short runs on the task that asks: a read by key takes some microseconds, less than a switch of threads. It
//! runs under a budget, and moves to a thread when it exceeds it. Entities with bytes or JSON are read on threads always. Saves that wait at the same time are applied together
//! by whichever task finds the writer free. On a current-thread runtime this means that a save of somebody else may run
//! during a poll of yours; [`Execution::Threaded`](engine::Execution::Threaded) moves everything off the runtime's threads.

pub mod context;
pub mod database;
pub mod engine;
pub mod entity;
pub mod error;
mod flush;
pub mod observe;
pub mod prelude;
pub mod query;
pub mod schema;
pub mod sql;
mod tracker;
pub mod value;
