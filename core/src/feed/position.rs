//! Where a consumer stands in the order of commits.

use std::{fmt, str::FromStr};

use uuid::Uuid;

use crate::{
    error::{Error, ErrorKind, Result},
    query::Cursor,
};

/// A place in the order of the commits of one file: what an application keeps that stores its position elsewhere. Its text
/// form is one word.
///
/// ```
/// use anabranch::feed::Position;
///
/// let position: Position = "4f7e2a86-6d3a-4f0e-9a55-0f6f8d1c2b3a/118".parse().unwrap();
/// assert_eq!(position.seq, 118);
/// assert_eq!(position.to_string().parse(), Ok(position));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Position {
    /// Which life of the file it is: a backup that is restored has another.
    pub epoch: Uuid,
    /// The number of the last commit that was taken.
    pub seq: i64,
}

/// A text that is no [`Position`].
///
/// ```
/// use anabranch::feed::{NotAPosition, Position};
///
/// assert_eq!("118".parse::<Position>(), Err(NotAPosition));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotAPosition;

impl fmt::Display for NotAPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a position of a feed: it is a UUID, a slash, and a number")
    }
}

impl std::error::Error for NotAPosition {}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.epoch, self.seq)
    }
}

impl FromStr for Position {
    type Err = NotAPosition;

    fn from_str(text: &str) -> std::result::Result<Self, NotAPosition> {
        let (epoch, seq) = text.split_once('/').ok_or(NotAPosition)?;
        match (epoch.parse(), seq.parse()) {
            (Ok(epoch), Ok(seq)) => Ok(Self { epoch, seq }),
            _ => Err(NotAPosition),
        }
    }
}

/// The same, to the row.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Place {
    /// All commits up to this one are done.
    pub(super) seq: i64,
    /// What of the rest is done.
    pub(super) inside: Option<Inside>,
}

/// How far a consumer is where it takes less than a commit, or more.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Inside {
    /// In all rows, by their keys: those that were not changed after `Place::seq` are being taken.
    Scan(Option<Cursor>),
    /// In the deletions of this commit.
    Deleted(i64, Option<Cursor>),
    /// In the rows of this commit, of which all deletions are done.
    Rows(i64, Option<Cursor>),
}

impl Place {
    pub(super) const fn after(seq: i64) -> Self {
        Self { seq, inside: None }
    }

    /// Whether not all rows of the start are done.
    pub(super) const fn is_in_snapshot(&self) -> bool {
        matches!(self.inside, Some(Inside::Scan(_)))
    }

    /// In a commit that is not done.
    pub(super) const fn within(seq: i64, inside: Inside) -> Self {
        Self {
            seq: seq - 1,
            inside: Some(inside),
        }
    }

    /// As the table of cursors has it.
    pub(super) fn inside_text(&self) -> Option<String> {
        let (what, seq, cursor) = match self.inside.as_ref()? {
            Inside::Scan(cursor) => ("scan", 0, cursor),
            Inside::Deleted(seq, cursor) => ("deleted", *seq, cursor),
            Inside::Rows(seq, cursor) => ("rows", *seq, cursor),
        };
        let cursor = cursor.as_ref().map_or_else(String::new, Cursor::to_string);
        Some(format!("{what} {seq} {cursor}"))
    }

    pub(super) fn parse(seq: i64, inside: Option<&str>) -> Result<Self> {
        let Some(text) = inside else {
            return Ok(Self::after(seq));
        };
        let inside = Inside::parse(text).ok_or_else(|| {
            Error::new(
                ErrorKind::Decode,
                "the place of the cursor within a commit cannot be read: rewind it",
            )
            .with_table("anabranch_cursors")
        })?;
        Ok(Self {
            seq,
            inside: Some(inside),
        })
    }
}

impl Inside {
    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(' ');
        let (what, seq, cursor) = (parts.next()?, parts.next()?.parse().ok()?, parts.next()?);
        let cursor = match cursor {
            "" => None,
            cursor => Some(cursor.parse().ok()?),
        };
        match what {
            "scan" => Some(Self::Scan(cursor)),
            "deleted" => Some(Self::Deleted(seq, cursor)),
            "rows" => Some(Self::Rows(seq, cursor)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        error::ErrorKind,
        feed::position::{Inside, NotAPosition, Place, Position},
        query::Cursor,
        value::Value,
    };

    #[test]
    fn a_place_within_a_commit_is_kept_as_text() {
        let key = Cursor::of_key(vec![Value::Text("a b".into()), Value::Integer(-1)]);
        for inside in [
            None,
            Some(Inside::Scan(None)),
            Some(Inside::Scan(Some(key.clone()))),
            Some(Inside::Deleted(7, None)),
            Some(Inside::Deleted(7, Some(key.clone()))),
            Some(Inside::Rows(7, Some(key))),
        ] {
            let place = Place { seq: 6, inside };
            let text = place.inside_text();
            assert_eq!(Place::parse(6, text.as_deref()).unwrap(), place);
        }
    }

    #[test]
    fn a_text_that_is_no_place_is_refused() {
        for text in ["", "scan", "rows x ", "rows 1 !", "more 1 "] {
            let error = Place::parse(6, Some(text)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Decode, "{text}");
        }
        for text in ["", "1", "x/1", "4f7e2a86-6d3a-4f0e-9a55-0f6f8d1c2b3a/x"] {
            assert_eq!(text.parse::<Position>(), Err(NotAPosition), "{text}");
        }
    }
}
