//! Owns the scrubbing of secrets: no text from a server is kept before it has gone through here.

/// Shortest secret that is looked for: shorter ones would blot out ordinary words.
const SHORTEST: usize = 6;
/// What stands in a secret's place.
const MARK: &str = "[key]";

/// Replaces secrets in texts. Neither prints nor serialises what it looks for.
#[derive(Clone, Default)]
pub struct Scrub {
    needles: Vec<String>,
}

impl std::fmt::Debug for Scrub {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Scrub({} forms)", self.needles.len())
    }
}

impl Scrub {
    /// Looks for each of `forms`: a secret as it is and in every encoding it may come back in.
    pub fn new(forms: impl IntoIterator<Item = String>) -> Self {
        let mut needles: Vec<String> = forms
            .into_iter()
            .filter(|form| form.len() >= SHORTEST)
            .collect();
        // Longest first, so that no form leaves the rest of a longer one behind.
        needles.sort_by_key(|form| std::cmp::Reverse(form.len()));
        needles.dedup();
        Scrub { needles }
    }

    /// The text with every secret replaced.
    pub fn apply(&self, text: &str) -> String {
        self.needles
            .iter()
            .fold(text.to_owned(), |text, needle| text.replace(needle, MARK))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_goes_and_short_ones_are_not_looked_for() {
        let scrub = Scrub::new([
            "sk-secret-1".to_owned(),
            "sk-secret-1-long".to_owned(),
            "abc".to_owned(),
        ]);
        assert_eq!(
            scrub.apply("bad key sk-secret-1-long or sk-secret-1, abc"),
            "bad key [key] or [key], abc"
        );
        assert_eq!(format!("{scrub:?}"), "Scrub(2 forms)");
    }
}
