//! Owns what each frame of a client does.

use super::frame::{self, Code, Frame, flag, kind, setting};
use super::heads::{self, Fields, LIST_LIMIT};
use super::{BARREN_LIMIT, Block, Http2, Stream};
use crate::sim::http::BODY_LIMIT;

/// Bytes of bodies after which a client is given new room for as many.
const REFILL: u32 = 1024 * 1024;

impl Http2 {
    /// Does what a frame says.
    pub(super) fn frame(&mut self, frame: &Frame<'_>) -> Result<(), Code> {
        let is_data = frame.kind == kind::DATA && !frame.payload.is_empty();
        self.barren += u32::from(!is_data);
        if self.barren > BARREN_LIMIT {
            return Err(Code::EnhanceYourCalm);
        }
        if !self.greeted && (frame.kind != kind::SETTINGS || frame.has(flag::ACK)) {
            return Err(Code::Protocol);
        }
        self.greeted = true;
        if self.block.is_some() != (frame.kind == kind::CONTINUATION) {
            return Err(Code::Protocol);
        }
        let of_stream = match frame.kind {
            kind::SETTINGS | kind::PING | kind::GOAWAY => Some(false),
            kind::DATA | kind::HEADERS | kind::PRIORITY | kind::RST_STREAM | kind::CONTINUATION => {
                Some(true)
            }
            _ => None,
        };
        if of_stream.is_some_and(|of_stream| of_stream != (frame.stream != 0)) {
            return Err(Code::Protocol);
        }
        match frame.kind {
            kind::DATA => self.data(frame),
            kind::HEADERS => self.headers(frame),
            kind::CONTINUATION => self.continuation(frame),
            kind::RST_STREAM => self.reset(frame),
            kind::SETTINGS => self.settings(frame),
            kind::PING => self.ping(frame),
            kind::WINDOW_UPDATE => self.window_update(frame),
            kind::PRIORITY if frame.payload.len() != 5 => Err(Code::FrameSize),
            kind::GOAWAY if frame.payload.len() < 8 => Err(Code::FrameSize),
            kind::PUSH_PROMISE => Err(Code::Protocol),
            // A client that goes away says so and closes; what is unknown means nothing.
            _ => Ok(()),
        }
    }

    fn data(&mut self, frame: &Frame<'_>) -> Result<(), Code> {
        self.opened(frame.stream)?;
        // A frame is 16 KiB at most. Padding counts too.
        let length = frame.payload.len() as u32;
        self.room -= i64::from(length);
        self.owed += length;
        if self.room < 0 {
            return Err(Code::FlowControl);
        }
        let content = frame.content()?;
        let ends = frame.has(flag::END_STREAM);
        match &mut self.stream {
            Some(stream) if stream.id == frame.stream && stream.whole => {
                return Err(Code::StreamClosed);
            }
            Some(stream) if stream.id == frame.stream => {
                stream.body.extend_from_slice(content);
                if stream.body.len() > BODY_LIMIT {
                    return Err(Code::EnhanceYourCalm);
                }
                if ends {
                    self.completed();
                }
            }
            // Of a stream that was refused or is over: the client could not know yet.
            _ => {}
        }
        self.refill();
        Ok(())
    }

    /// Gives back the room that bodies took.
    fn refill(&mut self) {
        let receiving = self.stream.as_ref().filter(|stream| !stream.whole);
        let receiving = receiving.map(|stream| stream.id);
        if self.owed < REFILL && receiving.is_some() {
            return;
        }
        let owed = std::mem::take(&mut self.owed);
        for stream in [Some(0), receiving].into_iter().flatten() {
            if owed > 0 {
                frame::window(self.controls.end(), stream, owed);
            }
        }
        self.room += i64::from(owed);
    }

    /// The request is whole, unless its body is not what its head states.
    fn completed(&mut self) {
        let Some(stream) = &mut self.stream else {
            return;
        };
        stream.whole = true;
        let id = stream.id;
        if stream
            .length
            .is_some_and(|length| length != stream.body.len())
        {
            self.fail(id, Code::Protocol);
        }
    }

    fn headers(&mut self, frame: &Frame<'_>) -> Result<(), Code> {
        if frame.stream.is_multiple_of(2) {
            return Err(Code::Protocol);
        }
        self.block = Some(Block {
            stream: frame.stream,
            ends_stream: frame.has(flag::END_STREAM),
            bytes: Vec::new(),
        });
        self.fragment(frame)
    }

    fn continuation(&mut self, frame: &Frame<'_>) -> Result<(), Code> {
        let goes_on = |block: &Block| block.stream == frame.stream;
        if !self.block.as_ref().is_some_and(goes_on) {
            return Err(Code::Protocol);
        }
        self.fragment(frame)
    }

    /// Adds a part to the header block, and reads the block once it is whole.
    fn fragment(&mut self, frame: &Frame<'_>) -> Result<(), Code> {
        let part = match frame.kind {
            kind::HEADERS => frame.content()?,
            _ => frame.payload,
        };
        let Some(mut block) = self.block.take() else {
            return Err(Code::Protocol);
        };
        block.bytes.extend_from_slice(part);
        if block.bytes.len() > LIST_LIMIT {
            return Err(Code::EnhanceYourCalm);
        }
        if !frame.has(flag::END_HEADERS) {
            self.block = Some(block);
            return Ok(());
        }
        // Even that of a refused stream: what it adds to the table counts for the next.
        let fields = self.blocks.read(&block.bytes)?;
        self.head(&block, &fields)
    }

    fn head(&mut self, block: &Block, fields: &Fields) -> Result<(), Code> {
        if block.stream <= self.newest {
            return self.trailers(block);
        }
        self.newest = block.stream;
        if self.stream.is_some() {
            self.fail(block.stream, Code::RefusedStream);
            return Ok(());
        }
        let Some((request, length)) = heads::request(fields, block.stream) else {
            self.fail(block.stream, Code::Protocol);
            return Ok(());
        };
        self.taken_on = block.stream;
        self.stream = Some(Stream {
            id: block.stream,
            request: Some(request),
            length,
            body: Vec::new(),
            whole: false,
            cancelled: false,
            window: self.stream_window,
        });
        if block.ends_stream {
            self.completed();
        }
        Ok(())
    }

    /// Fields behind a body end it, and say nothing here.
    fn trailers(&mut self, block: &Block) -> Result<(), Code> {
        let receiving = |stream: &Stream| stream.id == block.stream && !stream.whole;
        match (&self.stream, block.ends_stream) {
            (Some(stream), true) if receiving(stream) => {
                self.completed();
                self.refill();
                Ok(())
            }
            (Some(stream), false) if receiving(stream) => Err(Code::Protocol),
            _ => Err(Code::StreamClosed),
        }
    }

    fn reset(&mut self, frame: &Frame<'_>) -> Result<(), Code> {
        self.opened(frame.stream)?;
        frame.number()?;
        self.lose(frame.stream);
        Ok(())
    }

    fn settings(&mut self, frame: &Frame<'_>) -> Result<(), Code> {
        if frame.has(flag::ACK) {
            return match frame.payload {
                [] => Ok(()),
                _ => Err(Code::FrameSize),
            };
        }
        for (name, value) in frame.settings()? {
            match name {
                setting::INITIAL_WINDOW_SIZE => self.first_window(i64::from(value))?,
                setting::MAX_FRAME_SIZE => {
                    let legal = (frame::MOST..1 << 24).contains(&(value as usize));
                    self.most = legal.then_some(value as usize).ok_or(Code::Protocol)?;
                }
                setting::ENABLE_PUSH if value > 1 => return Err(Code::Protocol),
                // The others limit what this server never does: long heads, tables, pushes.
                _ => {}
            }
        }
        frame::put(self.controls.end(), kind::SETTINGS, flag::ACK, 0, &[]);
        Ok(())
    }

    /// Streams begin with another window, and one that is open has as much more, or less.
    fn first_window(&mut self, window: i64) -> Result<(), Code> {
        let by = window - self.stream_window;
        self.stream_window = Self::widened(0, window).ok_or(Code::FlowControl)?;
        if let Some(stream) = &mut self.stream {
            stream.window = Self::widened(stream.window, by).ok_or(Code::FlowControl)?;
        }
        Ok(())
    }

    fn ping(&mut self, frame: &Frame<'_>) -> Result<(), Code> {
        if frame.payload.len() != 8 {
            return Err(Code::FrameSize);
        }
        if !frame.has(flag::ACK) {
            frame::put(self.controls.end(), kind::PING, flag::ACK, 0, frame.payload);
        }
        Ok(())
    }

    fn window_update(&mut self, frame: &Frame<'_>) -> Result<(), Code> {
        let by = i64::from(frame.number()?);
        if frame.stream == 0 {
            let widened = (by > 0).then(|| Self::widened(self.window, by));
            self.window = widened.ok_or(Code::Protocol)?.ok_or(Code::FlowControl)?;
            return Ok(());
        }
        self.opened(frame.stream)?;
        let Some(stream) = self.stream.as_mut().filter(|s| s.id == frame.stream) else {
            return Ok(());
        };
        match (by, Self::widened(stream.window, by)) {
            (0, _) => self.fail(frame.stream, Code::Protocol),
            (_, None) => self.fail(frame.stream, Code::FlowControl),
            (_, Some(window)) => stream.window = window,
        }
        Ok(())
    }

    /// Whether the client opened a stream; it may not speak of others.
    fn opened(&self, stream: u32) -> Result<(), Code> {
        let opened = stream <= self.newest && !stream.is_multiple_of(2);
        opened.then_some(()).ok_or(Code::Protocol)
    }

    /// Ends a stream by a fault of its own.
    fn fail(&mut self, stream: u32, code: Code) {
        frame::reset(self.controls.end(), stream, code);
        self.lose(stream);
    }

    /// A stream is over before its answer is.
    fn lose(&mut self, id: u32) {
        let lost = self.stream.as_mut().filter(|stream| stream.id == id);
        match lost {
            Some(stream) if stream.request.is_none() => stream.cancelled = true,
            Some(_) => self.stream = None,
            None => {}
        }
    }
}
