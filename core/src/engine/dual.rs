//! Opening connections that sqlx drives too: that of exclusive transactions, and those of sessions.

use std::{sync::Arc, time::Duration};

use sqlx::{ConnectOptions, sqlite::SqliteConnectOptions};

use crate::{
    engine::{
        connection::{STATEMENTS, per_connection, read_back, set},
        core::Core,
        ffi::{Hooks, MixedConnection, strict_strings},
        functions,
        hooks::{Authorizer, Draws, Watch},
        sqlite_error::{from_code, from_rusqlite},
    },
    error::{Error, ErrorKind, Result},
};

/// What is particular about a connection.
pub(in crate::engine) struct Particulars<'a> {
    pub(in crate::engine) vfs: &'a str,
    pub(in crate::engine) hooks: Hooks,
    pub(in crate::engine) authorizer: &'a Authorizer,
    pub(in crate::engine) watch: &'a Arc<Watch>,
    pub(in crate::engine) draws: &'a Arc<Draws>,
    /// Pragmas that only it has.
    pub(in crate::engine) pragmas: &'a [(&'static str, &'static str)],
}

/// Opens a connection to the file.
pub(in crate::engine) async fn connect(
    core: &Core,
    particulars: Particulars<'_>,
) -> Result<MixedConnection> {
    let mut options = SqliteConnectOptions::new()
        .filename(&core.location.path)
        .create_if_missing(false)
        .vfs(particulars.vfs.to_owned())
        .foreign_keys(true)
        .busy_timeout(Duration::ZERO)
        .statement_cache_capacity(128)
        .thread_name(|number| format!("anabranch-sqlx-{number}"))
        .disable_statement_logging();
    let pragmas = per_connection(&core.options);
    for (name, value) in &pragmas {
        options = options.pragma(*name, value.clone());
    }
    let connected = MixedConnection::connect(&options, particulars.hooks).await;
    // It found whatever is at the path by now: a connection from the start knows whether that is our file.
    core.allocator.with_head(|head| core.look(head))?;
    let mut connection = connected.map_err(Error::from)?;
    let view = connection
        .view()
        .ok_or_else(|| from_code(libsqlite3_sys::SQLITE_ERROR, "the connection is not idle"))?;
    particulars.authorizer.ours(|| {
        view.set_prepared_statement_cache_capacity(STATEMENTS);
        // Read back, which sqlx does not do. Set again, `wal_autocheckpoint` would take our hook away.
        for (name, value) in &pragmas {
            read_back(view, name, value)?;
        }
        for (name, value) in particulars.pragmas {
            set(view, name, value)?;
        }
        if !strict_strings(view) {
            return Err(Error::new(
                ErrorKind::Options,
                "SQLite did not switch off double-quoted texts",
            ));
        }
        functions::register(view, particulars.draws, &core.allocator, particulars.watch)
            .map_err(from_rusqlite)
    })?;
    Ok(connection)
}
