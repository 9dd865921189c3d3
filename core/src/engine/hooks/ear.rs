//! What hears of writes to a file: the recorder of the tests, and without the feature `recording` nobody.

#[cfg(feature = "recording")]
pub(in crate::engine) use self::hearing::Ear;

/// Hears nothing, and costs nothing.
#[cfg(not(feature = "recording"))]
#[derive(Debug)]
pub(in crate::engine) struct Ear;

#[cfg(not(feature = "recording"))]
impl Ear {
    pub(in crate::engine) const fn none() -> Self {
        Self
    }

    pub(in crate::engine) const fn of_database(_path: &str) -> Self {
        Self
    }

    pub(in crate::engine) const fn of_log(_path: &str) -> Self {
        Self
    }

    pub(in crate::engine) const fn listens(&self) -> bool {
        false
    }

    pub(in crate::engine) const fn written(&self, _bytes: &[u8], _offset: i64) {}

    pub(in crate::engine) const fn truncated(&self, _size: i64) {}

    pub(in crate::engine) const fn syncs(&self) -> usize {
        0
    }

    pub(in crate::engine) const fn synced(&self, _covers: usize) {}
}

#[cfg(feature = "recording")]
mod hearing {
    use std::{path::Path, sync::Arc};

    use crate::recording::{Event, File, Tape};

    /// Hears of what is done to one open file, if its database is recorded.
    #[derive(Debug)]
    pub(in crate::engine) struct Ear(Option<(File, Arc<Tape>)>);

    impl Ear {
        /// That of any other file.
        pub(in crate::engine) const fn none() -> Self {
            Self(None)
        }

        /// That of a database, by its full path.
        pub(in crate::engine) fn of_database(path: &str) -> Self {
            Self::of(File::Database, path)
        }

        /// That of a log, by its full path.
        pub(in crate::engine) fn of_log(path: &str) -> Self {
            match path.strip_suffix("-wal") {
                Some(database) => Self::of(File::Log, database),
                None => Self::none(),
            }
        }

        fn of(file: File, database: &str) -> Self {
            Self(Tape::of(Path::new(database)).map(|tape| (file, tape)))
        }

        /// Whether anybody listens.
        pub(in crate::engine) const fn listens(&self) -> bool {
            self.0.is_some()
        }

        /// Bytes were written.
        pub(in crate::engine) fn written(&self, bytes: &[u8], offset: i64) {
            self.hear(|| Event::Write {
                offset: offset.unsigned_abs(),
                bytes: bytes.to_vec(),
            });
        }

        /// The file was cut.
        pub(in crate::engine) fn truncated(&self, size: i64) {
            self.hear(|| Event::Truncate {
                size: size.unsigned_abs(),
            });
        }

        /// A sync begins: what it will cover.
        pub(in crate::engine) fn syncs(&self) -> usize {
            self.0.as_ref().map_or(0, |(_, tape)| tape.position())
        }

        /// It has ended.
        pub(in crate::engine) fn synced(&self, covers: usize) {
            self.hear(|| Event::Sync { covers });
        }

        fn hear(&self, event: impl FnOnce() -> Event) {
            if let Some((file, tape)) = &self.0 {
                tape.add(*file, event());
            }
        }
    }
}
