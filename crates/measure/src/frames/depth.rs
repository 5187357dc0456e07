//! Owns the counting of JSON's brackets outside of its strings, byte by byte.

/// Where in a JSON text the bytes so far have led.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Depth {
    open: u32,
    in_string: bool,
    escaped: bool,
}

impl Depth {
    /// Takes the next byte.
    pub fn step(&mut self, byte: u8) {
        if self.in_string {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.in_string = false,
                _ => {}
            }
            return;
        }
        match byte {
            b'"' => self.in_string = true,
            b'{' | b'[' => self.open = self.open.saturating_add(1),
            b'}' | b']' => self.open = self.open.saturating_sub(1),
            _ => {}
        }
    }

    /// Whether every bracket and string is closed.
    pub fn is_outside(&self) -> bool {
        self.open == 0 && !self.in_string
    }
}

/// How deep the brackets of a JSON text lie inside each other.
pub fn nesting(text: &[u8]) -> u32 {
    let mut depth = Depth::default();
    text.iter()
        .map(|byte| {
            depth.step(*byte);
            depth.open
        })
        .max()
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_in_strings_do_not_count() {
        assert_eq!(nesting(br#"{"a":"[[{{\"[","b":[1]}"#), 2);
        assert_eq!(nesting(b"]]]"), 0);
        assert_eq!(nesting("[".repeat(100_000).as_bytes()), 100_000);
    }
}
