//! Owns answers cut into writes at every kind of place.

/// An answer in pieces, and which of its bytes are the body's.
#[derive(Debug, Default)]
pub(super) struct Script {
    pub(super) pieces: Vec<Vec<u8>>,
    /// Positions of the body's bytes in all bytes of the answer, and the piece of each.
    pub(super) body: Vec<(usize, usize)>,
    length: usize,
}

impl Script {
    /// A chunked answer, cut where its chunks say.
    pub(super) fn of(chunks: &[Chunk]) -> Self {
        let mut script = Script {
            pieces: vec![Vec::new()],
            ..Script::default()
        };
        script.put(
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
            false,
        );
        for chunk in chunks {
            script.put(&format!("{:x}", chunk.data.len()), false);
            script.cut(chunk.cut_in_size);
            script.put("\r\n", false);
            let (first, second) = chunk.data.split_at(chunk.cut_in_data.unwrap_or(0));
            script.put(first, true);
            script.cut(chunk.cut_in_data.is_some());
            script.put(second, true);
            script.cut(chunk.cut_before_crlf);
            script.put("\r", false);
            script.cut(chunk.cut_in_crlf);
            script.put("\n", false);
            script.cut(chunk.cut_after);
        }
        script.put("0\r\n\r\n", false);
        script
    }

    fn put(&mut self, text: &str, body: bool) {
        let piece = self.pieces.len() - 1;
        self.pieces[piece].extend_from_slice(text.as_bytes());
        if body {
            let places = self.length..self.length + text.len();
            self.body.extend(places.map(|place| (place, piece)));
        }
        self.length += text.len();
    }

    fn cut(&mut self, here: bool) {
        if here {
            self.pieces.push(Vec::new());
        }
    }
}

/// One chunk, and where the server pauses in it.
#[derive(Debug, Clone, Default)]
pub(super) struct Chunk {
    pub(super) data: String,
    pub(super) cut_in_size: bool,
    pub(super) cut_in_data: Option<usize>,
    pub(super) cut_before_crlf: bool,
    pub(super) cut_in_crlf: bool,
    pub(super) cut_after: bool,
}

/// Chunks of all sorts: whole ones in a write of their own, several in one write, split ones, ones
/// whose line end comes late, and ones larger than a read or a TLS record.
pub(super) fn all_sorts() -> Vec<Chunk> {
    // A fixed sequence without pattern (Lehmer's generator), so that every run is the same.
    let mut state = 20_260_101_u64;
    let mut dice = move |sides: u64| {
        state = state * 48_271 % 0x7fff_ffff;
        state % sides
    };
    let chunk = |number: usize| {
        let size = if number % 50 == 7 {
            40_000
        } else {
            1 + dice(120) as usize
        };
        Chunk {
            data: "abcdefghijklmnopqrstuvwxyz"
                .chars()
                .cycle()
                .skip(number % 26)
                .take(size)
                .collect(),
            cut_in_size: dice(10) == 0,
            cut_in_data: (dice(3) == 0).then(|| dice(size as u64) as usize),
            cut_before_crlf: dice(8) == 0,
            cut_in_crlf: dice(8) == 0,
            cut_after: dice(2) == 0,
        }
    };
    (0..400).map(chunk).collect()
}
