//! The same text for all that differ only in the case of letters.

use unicase::UniCase;
use unicode_normalization::UnicodeNormalization as _;

/// The function in SQL, on connections of this library.
pub(crate) const FOLD: &str = "anabranch_fold";

/// The function that gives an integer back if it is within a range, and fails if not; on connections that write.
pub(crate) const WITHIN: &str = "anabranch_within";

/// The text with Unicode's full case folding, each accent with its letter.
pub(crate) fn folded(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    let composed: String = text.nfc().collect();
    UniCase::unicode(composed).to_folded_case().nfc().collect()
}

#[cfg(test)]
mod tests {
    use crate::sql::folded;

    #[test]
    fn letters_of_all_scripts_are_alike_in_either_case() {
        for (one, other) in [
            ("ÄRGER", "ärger"),
            ("STRASSE", "straße"),
            ("ΣΊΣΥΦΟΣ", "σίσυφος"),
            ("Ж", "ж"),
            ("e\u{301}", "É"),
            ("Tea", "TEA"),
        ] {
            assert_eq!(folded(one), folded(other), "{one} and {other}");
        }
        assert_ne!(folded("a"), folded("ä"));
    }
}
