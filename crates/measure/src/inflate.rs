//! Owns decompression as the bytes come in, with a limit on what they may grow to.

use std::fmt;
use std::io::{self, Write};
use std::mem;

use brotli_decompressor::DecompressorWriter;
use flate2::write::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};

/// Most bytes that a compressed body may become.
const MOST: usize = 64 << 20;
/// Most bytes that one compressed byte may become, once [`ALWAYS`] are spent.
const RATIO: usize = 100;
/// Bytes that any body may become, however small it is compressed.
const ALWAYS: usize = 1 << 20;
/// The buffer of the brotli decoder.
const BUFFER: usize = 4096;

/// Why a body cannot be decompressed further.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It grows beyond the limit.
    Bomb,
    /// It is not what its encoding says.
    Broken,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Fault::Bomb => {
                "the compressed body grows to more than 64 MiB, or to more than 100 times its size"
            }
            Fault::Broken => "the body is not compressed as its Content-Encoding says",
        })
    }
}

/// Decompresses one body.
pub struct Inflater {
    coding: Coding,
    /// None until the first byte tells which of two formats `deflate` is.
    decoder: Option<Box<dyn Decoder>>,
    /// Compressed bytes so far.
    taken: usize,
}

/// The codings that are read here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Coding {
    Gzip,
    Deflate,
    Brotli,
}

/// A decoder that writes to a bounded buffer, and so stops at its limit.
trait Decoder: Write + Send {
    fn bounded(&mut self) -> &mut Bounded;
}

/// Makes a decoder of a library one of ours.
macro_rules! decoder {
    ($($type:ty),*) => {
        $(impl Decoder for $type {
            fn bounded(&mut self) -> &mut Bounded {
                self.get_mut()
            }
        })*
    };
}

decoder!(
    MultiGzDecoder<Bounded>,
    ZlibDecoder<Bounded>,
    DeflateDecoder<Bounded>,
    DecompressorWriter<Bounded>
);

impl Coding {
    fn decoder(self, first: u8) -> Box<dyn Decoder> {
        let bounded = Bounded::default();
        match self {
            Coding::Gzip => Box::new(MultiGzDecoder::new(bounded)),
            Coding::Brotli => Box::new(DecompressorWriter::new(bounded, BUFFER)),
            // zlib's first byte names its method, which is always 8.
            Coding::Deflate if first & 0x0F == 8 => Box::new(ZlibDecoder::new(bounded)),
            Coding::Deflate => Box::new(DeflateDecoder::new(bounded)),
        }
    }
}

impl fmt::Debug for Inflater {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Inflater({} bytes in)", self.taken)
    }
}

/// Takes what a decoder writes until there is too much of it.
#[derive(Default)]
struct Bounded {
    out: Vec<u8>,
    written: usize,
    most: usize,
    is_full: bool,
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.written + bytes.len() > self.most {
            self.is_full = true;
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.written += bytes.len();
        self.out.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Inflater {
    /// For a `Content-Encoding`; `None` for one that is not read here.
    pub fn of(encoding: &str) -> Option<Self> {
        let coding = match encoding.trim().to_ascii_lowercase().as_str() {
            "gzip" | "x-gzip" => Coding::Gzip,
            "deflate" => Coding::Deflate,
            "br" => Coding::Brotli,
            _ => return None,
        };
        Some(Inflater {
            coding,
            decoder: None,
            taken: 0,
        })
    }

    /// Decompresses the next piece: all that can be had of it.
    ///
    /// # Errors
    /// With what could still be had before the body turned out broken or too large.
    pub fn feed(&mut self, piece: &[u8]) -> Result<Vec<u8>, (Vec<u8>, Fault)> {
        let Some(first) = piece.first() else {
            return Ok(Vec::new());
        };
        self.taken = self.taken.saturating_add(piece.len());
        let most = self.taken.saturating_mul(RATIO).clamp(ALWAYS, MOST);
        let coding = self.coding;
        let decoder = self.decoder.get_or_insert_with(|| coding.decoder(*first));
        decoder.bounded().most = most;
        let done = decoder.write_all(piece).and_then(|()| decoder.flush());
        let bounded = decoder.bounded();
        let plain = mem::take(&mut bounded.out);
        match done {
            Ok(()) => Ok(plain),
            Err(_) if bounded.is_full => Err((plain, Fault::Bomb)),
            Err(_) => Err((plain, Fault::Broken)),
        }
    }
}

#[cfg(test)]
mod tests {
    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

    use super::*;

    const TEXT: &[u8] = b"data: {\"choices\":[]}\n\ndata: [DONE]\n\n";
    /// A stream of one word: the crate here only reads brotli.
    const BROTLI_HELLO: &[u8] = &[0x0b, 0x02, 0x80, b'h', b'e', b'l', b'l', b'o', 0x03];

    fn all(encoding: &str, packed: &[u8], piece: usize) -> Result<Vec<u8>, Fault> {
        let mut inflater = Inflater::of(encoding).expect("known");
        let mut plain = Vec::new();
        for piece in packed.chunks(piece) {
            plain.extend(inflater.feed(piece).map_err(|(_, fault)| fault)?);
        }
        Ok(plain)
    }

    fn packed(bytes: &[u8]) -> [(&'static str, Vec<u8>); 3] {
        let level = Compression::default();
        let mut gzip = GzEncoder::new(Vec::new(), level);
        let mut zlib = ZlibEncoder::new(Vec::new(), level);
        let mut deflate = DeflateEncoder::new(Vec::new(), level);
        for out in [&mut gzip as &mut dyn Write, &mut zlib, &mut deflate] {
            out.write_all(bytes).expect("memory");
        }
        [
            ("gzip", gzip.finish().expect("memory")),
            ("deflate", zlib.finish().expect("memory")),
            ("deflate", deflate.finish().expect("memory")),
        ]
    }

    #[test]
    fn every_coding_comes_out_the_same_however_it_is_cut() {
        for (encoding, packed) in packed(TEXT) {
            for piece in [1, 7, packed.len()] {
                assert_eq!(
                    all(encoding, &packed, piece),
                    Ok(TEXT.to_vec()),
                    "{encoding}"
                );
            }
        }
        for piece in [1, BROTLI_HELLO.len()] {
            assert_eq!(all("br", BROTLI_HELLO, piece), Ok(b"hello".to_vec()));
        }
        assert!(Inflater::of("zstd").is_none());
    }

    #[test]
    fn what_was_flushed_comes_out_at_once() {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
        let mut inflater = Inflater::of("gzip").expect("known");
        for word in [&b"one"[..], b"two", b"three"] {
            gzip.write_all(word).expect("memory");
            gzip.flush().expect("memory");
            let packed = mem::take(gzip.get_mut());
            assert_eq!(inflater.feed(&packed).expect("sound"), word);
        }
    }

    #[test]
    fn a_bomb_stops_at_its_limit_and_noise_is_broken() {
        let zeros = vec![0; 80 << 20];
        for (encoding, packed) in packed(&zeros) {
            assert_eq!(
                all(encoding, &packed, 16 << 10),
                Err(Fault::Bomb),
                "{encoding}"
            );
        }
        assert_eq!(all("gzip", b"no gzip at all, this", 64), Err(Fault::Broken));
        assert_eq!(all("br", &[0xff; 64], 64), Err(Fault::Broken));
    }
}
