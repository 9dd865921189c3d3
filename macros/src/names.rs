//! Names made from names: snake case, constants, and the nearest to a misspelt one.

/// `OrderLine` is `order_line`, `HTTPServer` is `http_server`.
pub(crate) fn snake_case(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    let mut snake = String::with_capacity(name.len() + 4);
    for (index, &letter) in letters.iter().enumerate() {
        if letter.is_uppercase() && index > 0 {
            let before = letters[index - 1];
            let starts_word = letters
                .get(index + 1)
                .is_some_and(|after| after.is_lowercase());
            if before != '_' && (!before.is_uppercase() || starts_word) {
                snake.push('_');
            }
        }
        snake.extend(letter.to_lowercase());
    }
    snake
}

/// `placed_at` is `PLACED_AT`, and so is `placedAt`.
pub(crate) fn constant_case(name: &str) -> String {
    snake_case(name).to_uppercase()
}

/// How all names of a struct or an enum are written in the database.
#[derive(Clone, Copy)]
pub(crate) enum Case {
    Lower,
    Upper,
    Pascal,
    Camel,
    Snake,
    ScreamingSnake,
    Kebab,
    ScreamingKebab,
}

impl Case {
    /// As serde names them.
    pub(crate) const ALL: [(&'static str, Self); 8] = [
        ("lowercase", Self::Lower),
        ("UPPERCASE", Self::Upper),
        ("PascalCase", Self::Pascal),
        ("camelCase", Self::Camel),
        ("snake_case", Self::Snake),
        ("SCREAMING_SNAKE_CASE", Self::ScreamingSnake),
        ("kebab-case", Self::Kebab),
        ("SCREAMING-KEBAB-CASE", Self::ScreamingKebab),
    ];

    /// The name of a field in this case, as serde has it.
    pub(crate) fn of_field(self, name: &str) -> String {
        match self {
            Self::Lower => name.to_owned(),
            Self::Upper => name.to_uppercase(),
            _ => self.of_variant(name),
        }
    }

    /// The name of a variant in this case, as serde has it.
    pub(crate) fn of_variant(self, name: &str) -> String {
        let snake = snake_case(name);
        let capitalized = || -> String { snake.split('_').map(capitalize).collect() };
        match self {
            Self::Lower => snake.replace('_', ""),
            Self::Upper => snake.replace('_', "").to_uppercase(),
            Self::Pascal => capitalized(),
            Self::Camel => {
                let name = capitalized();
                let mut letters = name.chars();
                let first = letters.next().map(char::to_lowercase);
                first.into_iter().flatten().chain(letters).collect()
            }
            Self::Snake => snake,
            Self::ScreamingSnake => snake.to_uppercase(),
            Self::Kebab => snake.replace('_', "-"),
            Self::ScreamingKebab => snake.replace('_', "-").to_uppercase(),
        }
    }
}

fn capitalize(word: &str) -> String {
    let mut letters = word.chars();
    let first = letters.next().map(char::to_uppercase);
    first.into_iter().flatten().chain(letters).collect()
}

/// The candidate that was probably meant: at most a third of the letters differ.
pub(crate) fn nearest<'a>(name: &str, candidates: &[&'a str]) -> Option<&'a str> {
    candidates
        .iter()
        .map(|candidate| (distance(name, candidate), *candidate))
        .filter(|(distance, candidate)| *distance <= candidate.len().div_ceil(3))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// How many letters to insert, remove or replace to get from one name to the other.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (line, letter) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = line + 1;
        for (at, other) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *other);
            diagonal = row[at + 1];
            row[at + 1] = replaced.min(row[at] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::{Case, constant_case, nearest, snake_case};

    #[test]
    fn names_are_written_in_every_case() {
        let fields = Case::ALL.map(|(_, case)| case.of_field("placed_at"));
        let first = ["placed_at", "PLACED_AT"];
        assert_eq!(fields[..2], first);
        let variants = Case::ALL.map(|(_, case)| case.of_variant("PlacedAt"));
        assert_eq!(fields[2..], variants[2..]);
        assert_eq!(
            variants,
            [
                "placedat",
                "PLACEDAT",
                "PlacedAt",
                "placedAt",
                "placed_at",
                "PLACED_AT",
                "placed-at",
                "PLACED-AT"
            ]
        );
        assert_eq!(Case::Snake.of_variant("InTransit"), "in_transit");
    }

    #[test]
    fn words_are_separated_in_snake_case() {
        let cases = [
            ("Order", "order"),
            ("OrderLine", "order_line"),
            ("HTTPServer", "http_server"),
            ("Order2Line", "order2_line"),
            ("Already_Snake", "already_snake"),
            ("A", "a"),
        ];
        for (name, snake) in cases {
            assert_eq!(snake_case(name), snake);
        }
    }

    #[test]
    fn constants_are_in_capitals() {
        assert_eq!(constant_case("placed_at"), "PLACED_AT");
        assert_eq!(constant_case("placedAt"), "PLACED_AT");
        assert_eq!(constant_case("_hidden"), "_HIDDEN");
        assert_eq!(constant_case("self_"), "SELF_");
    }

    #[test]
    fn only_near_names_are_suggested() {
        let known = ["id", "column", "json", "unique", "references"];
        assert_eq!(nearest("colum", &known), Some("column"));
        assert_eq!(nearest("reference", &known), Some("references"));
        assert_eq!(nearest("idd", &known), Some("id"));
        assert_eq!(nearest("autoincrement", &known), None);
    }
}
