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
    use super::{constant_case, nearest, snake_case};

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
