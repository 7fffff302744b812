/** The duration of audio by its bytes, for prices per second and their bounds. */

/** Seconds; undefined for formats whose duration is not read. */
export function audioSeconds(bytes: Buffer, mediaType: string): number | undefined {
  if (mediaType === 'audio/wav') return waveSeconds(bytes);
  if (mediaType === 'audio/mpeg') return mp3Seconds(bytes);
  if (mediaType === 'audio/flac') return flacSeconds(bytes);
  return undefined;
}

/** PCM, floats, A-law, µ-law and extensible; the bytes of others do not tell their duration. */
const WAVE_CODES: ReadonlySet<number> = new Set([1, 3, 6, 7, 0xfffe]);

/**
 * The length in a header may be false or unknown, and decoders read further chunks. So all bytes count, at the rate of
 * their samples.
 */
function waveSeconds(bytes: Buffer): number | undefined {
  let rate = 0;
  for (let at = 12; at + 8 <= bytes.length; ) {
    const name = bytes.toString('latin1', at, at + 4);
    const length = bytes.readUInt32LE(at + 4);
    if (name === 'fmt ' && at + 24 <= bytes.length) rate = waveRate(bytes, at + 8);
    if (name === 'data') return rate === 0 ? undefined : (bytes.length - at - 8) / rate;
    at += 8 + length + (length % 2);
  }
  return undefined;
}

/** Bytes per second; 0 if that is not known. */
function waveRate(bytes: Buffer, at: number): number {
  if (!WAVE_CODES.has(bytes.readUInt16LE(at))) return 0;
  const [channels, samples, bits] = [
    bytes.readUInt16LE(at + 2),
    bytes.readUInt32LE(at + 4),
    bytes.readUInt16LE(at + 14),
  ];
  return channels * samples * Math.ceil(bits / 8);
}

const BIT_RATES_1 = [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320];
const BIT_RATES_2 = [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160];
const SAMPLE_RATES = [44_100, 48_000, 32_000];

/** The sum of all frames of layer III. */
function mp3Seconds(bytes: Buffer): number | undefined {
  let at = tagLength(bytes);
  let seconds = 0;
  while (at + 4 <= bytes.length) {
    const frame = mp3Frame(bytes, at);
    if (frame === undefined) at += 1;
    else {
      seconds += frame.seconds;
      at += frame.length;
    }
  }
  return seconds === 0 ? undefined : seconds;
}

function mp3Frame(bytes: Buffer, at: number): { seconds: number; length: number } | undefined {
  const [second, third] = [bytes[at + 1]!, bytes[at + 2]!];
  if (bytes[at] !== 0xff || (second & 0xe6) !== 0xe2) return undefined;
  const version = (second >> 3) & 3;
  const isFirst = version === 3;
  const bitRate = (isFirst ? BIT_RATES_1 : BIT_RATES_2)[third >> 4] ?? 0;
  const base = SAMPLE_RATES[(third >> 2) & 3];
  if (version === 1 || bitRate === 0 || base === undefined) return undefined;
  const rate = isFirst ? base : version === 2 ? base / 2 : base / 4;
  const samples = isFirst ? 1152 : 576;
  return { seconds: samples / rate, length: Math.floor((samples * bitRate * 125) / rate) + ((third >> 1) & 1) };
}

/** Of an ID3v2 tag at the beginning. */
function tagLength(bytes: Buffer): number {
  if (bytes.toString('latin1', 0, 3) !== 'ID3' || bytes.length < 10) return 0;
  return 10 + (((bytes[6]! & 127) << 21) | ((bytes[7]! & 127) << 14) | ((bytes[8]! & 127) << 7) | (bytes[9]! & 127));
}

/**
 * STREAMINFO: 20 bits of sample rate, 3 of channels, 5 of sample size, then 36 bits with the number of samples. At least what
 * the bytes would hold without compression, whatever it states.
 */
function flacSeconds(bytes: Buffer): number | undefined {
  if (bytes.length < 42) return undefined;
  const rate = bytes.readUIntBE(18, 3) >> 4;
  const samples = (bytes[21]! & 15) * 2 ** 32 + bytes.readUInt32BE(22);
  if (rate === 0 || samples === 0) return undefined;
  const channels = ((bytes[20]! >> 1) & 7) + 1;
  const bits = (((bytes[20]! & 1) << 4) | (bytes[21]! >> 4)) + 1;
  return Math.max(samples, bytes.length / (channels * Math.ceil(bits / 8))) / rate;
}
