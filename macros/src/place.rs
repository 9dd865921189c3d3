//! The places where attributes stand, and which are known at each.

use crate::names::nearest;

/// Where an attribute stands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Struct,
    Field,
    Embedded,
    EmbeddedField,
    EmbeddedEnum,
    /// A variant with data.
    EmbeddedVariant,
    /// A field of such a variant.
    VariantField,
    Newtype,
    Enum,
    Variant,
    /// In the parentheses of `index(...)` on a struct.
    Index,
    /// In the parentheses of `index(...)` on a field.
    FieldIndex,
    /// In the parentheses of `foreign_key(...)`.
    ForeignKey,
    /// In the parentheses of `has_many(...)`, after the other entity.
    HasMany,
    /// In those of `has_one(...)`.
    HasOne,
    Projection,
    ProjectionField,
    /// A struct that is read from a row of raw SQL.
    Row,
    RowField,
    /// A struct that is stored as JSON.
    Json,
}

/// What a field of an entity takes.
const FIELD: &[&str] = &[
    "id",
    "autoincrement",
    "column",
    "json",
    "embed",
    "prefix",
    "skip",
    "scale",
    "padded",
    "version",
    "commit_seq",
    "created_at",
    "updated_at",
    "unique",
    "index",
    "collate",
    "check",
    "default",
    "generated",
    "stored",
    "references",
    "on_delete",
    "on_update",
    "relation",
];

/// What a field of an embedded struct takes.
const EMBEDDED_FIELD: &[&str] = &[
    "column",
    "json",
    "scale",
    "padded",
    "embed",
    "prefix",
    "skip",
    "unique",
    "index",
    "collate",
    "default",
    "references",
    "on_delete",
    "on_update",
];

/// What a field of a variant takes.
const VARIANT_FIELD: &[&str] = &[
    "column",
    "json",
    "scale",
    "padded",
    "embed",
    "prefix",
    "skip",
    "unique",
    "index",
    "collate",
    "references",
    "on_delete",
    "on_update",
];

impl Place {
    /// The attributes that are known here.
    const fn known(self) -> &'static [&'static str] {
        match self {
            Self::Struct => &[
                "table",
                "strict",
                "without_rowid",
                "tombstones",
                "rename_all",
                "check",
                "index",
                "foreign_key",
                "has_many",
                "has_one",
                "filter",
                "crate",
            ],
            Self::Field => FIELD,
            Self::Embedded => &["rename_all", "crate"],
            Self::EmbeddedField => EMBEDDED_FIELD,
            Self::EmbeddedEnum => &["tag", "rename_all", "check", "crate"],
            Self::EmbeddedVariant => &["rename"],
            Self::VariantField => VARIANT_FIELD,
            Self::Newtype => &["key", "json", "scale", "padded", "crate"],
            Self::Enum => &["integer", "rename_all", "check", "crate"],
            Self::Variant => &["rename"],
            Self::Index => &["columns", "on", "name", "unique", "where"],
            Self::FieldIndex => &["name", "unique", "where"],
            Self::ForeignKey => &[
                "columns",
                "references",
                "on_delete",
                "on_update",
                "relation",
            ],
            Self::HasMany => &["by", "through", "to"],
            Self::HasOne => &["by"],
            Self::Projection => &["entity", "crate"],
            Self::ProjectionField => &["from", "nested", "json", "scale", "padded"],
            Self::Row => &["rename_all", "crate"],
            Self::Json => &["crate"],
            Self::RowField => &[
                "column", "json", "scale", "padded", "embed", "prefix", "skip",
            ],
        }
    }

    /// Whether an attribute is known here.
    pub(crate) fn takes(self, name: &str) -> bool {
        self.known().contains(&name)
    }

    /// The attribute whose parentheses these are.
    pub(crate) const fn attribute(self) -> &'static str {
        match self {
            Self::Projection | Self::ProjectionField => "projection",
            Self::Row | Self::RowField => "row",
            _ => "entity",
        }
    }

    /// Whether an attribute may be given here more than once.
    pub(crate) fn may_repeat(self, name: &str) -> bool {
        let repeated = [
            "check",
            "index",
            "foreign_key",
            "has_many",
            "has_one",
            "filter",
        ];
        self == Self::Struct && repeated.contains(&name)
    }

    const fn as_str(self) -> &'static str {
        match self {
            Self::Struct => "an entity",
            Self::Field => "a field of an entity",
            Self::Embedded => "an embedded struct",
            Self::EmbeddedField => "a field of an embedded struct",
            Self::EmbeddedEnum => "an enum with data",
            Self::EmbeddedVariant => "a variant with data",
            Self::VariantField => "a field of a variant",
            Self::Newtype => "a newtype",
            Self::Enum => "an enum without data",
            Self::Variant => "a variant",
            Self::Index | Self::FieldIndex => "an index",
            Self::ForeignKey => "a foreign key",
            Self::HasMany => "a relation to many",
            Self::HasOne => "a relation to one",
            Self::Projection => "a projection",
            Self::ProjectionField => "a field of a projection",
            Self::Row => "a struct of a row",
            Self::Json => "a struct of JSON",
            Self::RowField => "a field of a row",
        }
    }

    /// The places that an attribute may have been meant for that was put here.
    const fn others(self) -> &'static [Self] {
        match self {
            Self::Struct => &[Self::Field],
            Self::Field | Self::Index | Self::FieldIndex | Self::ForeignKey | Self::HasMany => {
                &[Self::Struct]
            }
            Self::HasOne => &[Self::HasMany, Self::Struct],
            Self::Projection => &[Self::ProjectionField],
            Self::ProjectionField => &[Self::Projection],
            Self::Row => &[Self::RowField],
            Self::Json => &[],
            Self::RowField => &[Self::Row],
            Self::Embedded => &[Self::EmbeddedField, Self::Struct],
            Self::EmbeddedField => &[Self::Field, Self::Struct],
            Self::EmbeddedEnum => &[Self::EmbeddedVariant, Self::VariantField, Self::Enum],
            Self::EmbeddedVariant => &[Self::VariantField, Self::EmbeddedEnum],
            Self::VariantField => &[Self::EmbeddedField, Self::Field],
            Self::Newtype => &[Self::Enum, Self::Field],
            Self::Variant => &[Self::Enum],
            Self::Enum => &[Self::Variant, Self::EmbeddedEnum],
        }
    }

    /// Why an attribute is not known here, and what may have been meant.
    pub(crate) fn unknown(self, name: &str) -> String {
        let known = self.known();
        let mut others = self.others().iter();
        if let Some(other) = others.find(|other| other.takes(name)) {
            return format!(
                "`{name}` belongs on {}, not on {}",
                other.as_str(),
                self.as_str()
            );
        }
        if let Some(near) = nearest(name, known) {
            return format!("unknown attribute `{name}`: did you mean `{near}`?");
        }
        format!(
            "unknown attribute `{name}`: {} takes {}",
            self.as_str(),
            known
                .iter()
                .map(|known| format!("`{known}`"))
                .collect::<Vec<_>>()
                .join(", ")
        )
    }
}
