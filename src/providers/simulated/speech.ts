/**
 * Simulated speech: 16-bit mono at 24 kHz, a frame of 20 ms for each byte of the text. The first sample of a frame holds
 * the byte; the others are a tone, so that it can be heard.
 */
const RATE = 24_000;
const FRAME_SAMPLES = 480;
const FRAME_BYTES = FRAME_SAMPLES * 2;
/** Room for a byte in the upper bits of a sample. */
const SHIFT = 7;
const HEADER_BYTES = 44;
const AMPLITUDE = 6_000;
const PIECE_FRAMES = 50;

interface Speech {
  contentType: string;
  bytes: number;
  pieces: Generator<{ bytes: Buffer }>;
}

/** Speaks the body of a speech request. A string describes the problem. */
export function speak(body: Buffer | string): Speech | string {
  const { input, response_format: format } = JSON.parse(body.toString()) as Record<string, unknown>;
  if (typeof input !== 'string') return 'input must be a string';
  const isWave = format === 'wav';
  const text = Buffer.from(input);
  const length = text.length * FRAME_BYTES;
  return {
    contentType: isWave ? 'audio/wav' : 'audio/pcm',
    bytes: length + (isWave ? HEADER_BYTES : 0),
    pieces: frames(text, isWave ? waveHeader(length) : undefined),
  };
}

function* frames(text: Buffer, header: Buffer | undefined): Generator<{ bytes: Buffer }> {
  if (header !== undefined) yield { bytes: header };
  for (let at = 0; at < text.length; at += PIECE_FRAMES) {
    yield {
      bytes: Buffer.concat([...text.subarray(at, at + PIECE_FRAMES)].map((byte) => (FRAMES[byte] ??= frame(byte)))),
    };
  }
}

/** By byte, made on first use. */
const FRAMES: (Buffer | undefined)[] = [];

function frame(byte: number): Buffer {
  const bytes = Buffer.alloc(FRAME_BYTES);
  const pitch = 200 + byte * 4;
  bytes.writeInt16LE(byte << SHIFT, 0);
  for (let at = 1; at < FRAME_SAMPLES; at += 1) {
    bytes.writeInt16LE(Math.round(AMPLITUDE * Math.sin((2 * Math.PI * pitch * at) / RATE)), at * 2);
  }
  return bytes;
}

function waveHeader(length: number): Buffer {
  const header = Buffer.alloc(HEADER_BYTES);
  header.write('RIFF', 0, 'latin1');
  header.writeUInt32LE(Math.min(length + HEADER_BYTES - 8, 0xffffffff), 4);
  header.write('WAVEfmt ', 8, 'latin1');
  header.writeUInt32LE(16, 16);
  header.writeUInt16LE(1, 20);
  header.writeUInt16LE(1, 22);
  header.writeUInt32LE(RATE, 24);
  header.writeUInt32LE(RATE * 2, 28);
  header.writeUInt16LE(2, 32);
  header.writeUInt16LE(16, 34);
  header.write('data', 36, 'latin1');
  header.writeUInt32LE(Math.min(length, 0xffffffff), 40);
  return header;
}

/** Writes down the audio in the form of a transcription request. A string describes the problem. */
export function hear(form: Buffer): Record<string, unknown> | string {
  const file = form.indexOf('name="file"');
  const start = form.indexOf('\r\n\r\n', file) + 4;
  const end = form.lastIndexOf('\r\n--');
  if (file === -1 || end < start) return 'the form must have a file';
  const audio = form.subarray(start, end);
  const samples = audio.toString('latin1', 0, 4) === 'RIFF' ? audio.subarray(HEADER_BYTES) : audio;
  const bytes = Buffer.alloc(Math.floor(samples.length / FRAME_BYTES));
  for (let at = 0; at < bytes.length; at += 1) bytes[at] = samples.readInt16LE(at * FRAME_BYTES) >> SHIFT;
  return {
    text: bytes.toString('utf8'),
    language: 'en',
    duration: samples.length / (RATE * 2),
    segments: [],
    words: [],
  };
}
