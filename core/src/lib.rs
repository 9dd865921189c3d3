//! A unit of work for SQLite: plain structs, and one queued writer that commits for everybody.
//!
//! [`Database`](database::Database) is one file. A [`Context`](context::Context) tracks entities and saves what changed.
//! A [`Query`](query::Query) reads. A [`Transaction`](engine::Transaction) does several things at once, raw sqlx queries
//! among them; a [`Session`](engine::Session) does so beside others. Most applications import the [`prelude`].
//!
//! ```
//! use anabranch::prelude::*;
//!
//! #[derive(Debug, Entity)]
//! #[entity(table = "accounts")]
//! struct Account {
//!     #[entity(id)]
//!     id: i64, // 0 until the writer gives one
//!     owner: String,
//!     balance: i64,
//!     #[entity(version)]
//!     version: i64, // checked and counted up by every save
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> anabranch::error::Result<()> {
//! let db = Database::temporary().await?;
//! db.create_tables::<Account>().await?;
//!
//! let mut ctx = db.context();
//! let ada = ctx.add(Account { id: 0, owner: "Ada".into(), balance: 10, version: 0 });
//! ctx.save_changes().await?; // in a commit shared with whoever saves at the same time
//! ctx[ada].balance += 5; // plain access to the struct
//! ctx.save_changes().await?; // updates that one column, if nobody changed the row meanwhile
//!
//! let rich = Account::query().filter(Account::BALANCE.ge(15)).all(&db).await?;
//! assert_eq!(rich[0].owner, "Ada");
//! # Ok(()) }
//! ```
//!
//! # Where to go
//!
//! The guide, `docs/guide` in the repository, leads from the first steps to every attribute, each kind of error and
//! the edges; its blocks are compiled and run. Here is what each thing promises:
//!
//! | to | see |
//! |---|---|
//! | declare an entity | [`derive(Entity)`](macro@entity::Entity), and [`value`] for the types of fields |
//! | track, change and save | [`context`]: states, a save step by step, conflicts, cancellation |
//! | read | [`query`] |
//! | read several times on one state | [`Database::read`](database::Database::read), [`ReadSnapshot`](engine::ReadSnapshot) |
//! | open, and run transactions | [`Database`](database::Database), [`DatabaseBuilder`](database::DatabaseBuilder) |
//! | write many rows, from files too | [`bulk`] |
//! | run raw SQL | [`Transaction`](engine::Transaction), which sqlx's queries take as `&mut *tx` |
//! | write side by side | [`Database::concurrent`](database::Database::concurrent), [`Session`](engine::Session), [`Isolation`](engine::Isolation) |
//! | see what it does | [`observe`], and the guide's page on spans, events and instruments |
//! | know what to do about an error | [`ErrorKind`](error::ErrorKind) |
//! | choose where statements run | [`Execution`](engine::Execution) |
//!
//! After any error a context can be saved again. Futures may be dropped at any await; each says under *Cancel safety* what
//! that means.
//!
//! # Features
//!
//! None is on unless asked for. Most let fields have the types of another crate; [`value`] lists all types.
//!
//! | feature | what it adds |
//! |---|---|
//! | `axum` | imports of the bodies of requests: `bulk::ImportBody`, and the answer |
//! | `bigdecimal` | `BigDecimal`, on a field with `#[entity(scale = 2)]` |
//! | `csv` | imports of CSV files: `bulk::Csv` |
//! | `jiff` | `Timestamp`, `SignedDuration`, `civil::Date`, `civil::Time`, `civil::DateTime` |
//! | `metrics` | instruments of the crate `metrics`: [`Instrument`](observe::Instrument) lists them |
//! | `recording` | nothing: for the library's own crash tests, and may change at any time |
//! | `rust_decimal` | `Decimal`, on a field with `#[entity(scale = 2)]` |
//! | `time` | `UtcDateTime`, `OffsetDateTime`, `PrimitiveDateTime`, `Date`, `Time`, `Duration` |

pub mod bulk;
pub mod context;
pub mod database;
pub mod engine;
pub mod entity;
pub mod error;
pub mod feed;
mod flush;
pub mod observe;
pub mod prelude;
pub mod query;
#[cfg(feature = "recording")]
#[doc(hidden)]
pub mod recording;
pub mod schema;
pub mod sql;
mod tracker;
pub mod value;
