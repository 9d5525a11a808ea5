import { deflateRawSync, constants, createDeflateRaw } from 'node:zlib';
import fc from 'fast-check';
import { ConnectionUsage } from '../../src/proxy/websocket/connection-usage.js';
import { closeFrame, FrameReader, type FrameHead } from '../../src/proxy/websocket/frame-reader.js';
import { NO_USAGE } from '../../src/bodies/usage/token-usage.js';
import { check } from '../support/property.js';
import { responseCompleted, responseDone } from './ws-provider.js';

interface Frame {
  fin: boolean;
  compressed: boolean;
  opcode: number;
  masked: boolean;
  payload: Buffer;
}

function encode({ fin, compressed, opcode, masked, payload }: Frame): Buffer {
  const { length } = payload;
  const long = length > 65_535 ? 8 : length > 125 ? 2 : 0;
  const header = Buffer.alloc(2 + long + (masked ? 4 : 0), 0x5a);
  header[0] = (fin ? 0x80 : 0) | (compressed ? 0x40 : 0) | opcode;
  header[1] = (masked ? 0x80 : 0) | (long === 8 ? 127 : long === 2 ? 126 : length);
  if (long === 2) header.writeUInt16BE(length, 2);
  if (long === 8) header.writeBigUInt64BE(BigInt(length), 2);
  return Buffer.concat([header, payload]);
}

interface Read extends FrameHead {
  payload: Buffer;
}

/** Reads these chunks. @returns the frames that are complete, and the reader */
function read(chunks: readonly Buffer[]): { frames: Read[]; reader: FrameReader } {
  const frames: Read[] = [];
  let head: FrameHead | null = null;
  let parts: Buffer[] = [];
  const reader = new FrameReader({
    onFrame: (next) => (head = next),
    onPayload: (part) => parts.push(part),
    onFrameEnd: () => {
      frames.push({ ...head!, payload: Buffer.concat(parts) });
      parts = [];
    },
  });
  for (const chunk of chunks) reader.push(chunk);
  return { frames, reader };
}

function cut(bytes: Buffer, at: readonly number[]): Buffer[] {
  const places = [...new Set(at.map((place) => place % (bytes.length + 1)))].sort((a, b) => a - b);
  return [0, ...places].map((from, i) => bytes.subarray(from, places[i] ?? bytes.length));
}

const size = fc.oneof(fc.nat(300), fc.constantFrom(0, 125, 126, 127, 65_535, 65_536, 70_000));
const frame: fc.Arbitrary<Frame> = fc
  .record({
    fin: fc.boolean(),
    compressed: fc.boolean(),
    opcode: fc.constantFrom(0, 1, 2, 8, 9, 10),
    masked: fc.boolean(),
    size,
  })
  .map(({ size, ...rest }) => {
    const isControl = rest.opcode >= 8;
    const payload = Buffer.alloc(isControl ? Math.min(size, 125) : size, size % 251);
    return { ...rest, fin: rest.fin || isControl, payload };
  });

describe('the frames of one direction', () => {
  it('are the same however their bytes are cut', () => {
    check(
      fc.property(
        fc.array(frame, { maxLength: 6 }),
        fc.array(fc.nat(200_000), { maxLength: 20 }),
        (sent, at) => {
          const bytes = Buffer.concat(sent.map(encode));
          const { frames, reader } = read(cut(bytes, at));
          expect(frames).toEqual(
            sent.map(({ fin, compressed, opcode, masked, payload }) => ({
              fin,
              compressed,
              opcode,
              payload: masked ? Buffer.alloc(0) : payload,
            })),
          );
          expect([reader.isBetweenFrames, reader.isBroken]).toEqual([true, false]);
        },
      ),
      { numRuns: 300 },
    );
  });

  it('end where the last chunk says so', () => {
    const one = encode({
      fin: true,
      compressed: false,
      opcode: 1,
      masked: false,
      payload: Buffer.from('hello'),
    });
    for (let length = 0; length <= one.length; length++) {
      const { reader } = read([one, Buffer.concat([one, one.subarray(0, length)])]);
      expect(reader.lastEnd).toBe(length === one.length ? 2 * one.length : one.length);
      expect(reader.isBetweenFrames).toBe(length % one.length === 0);
    }
  });

  it('of any bytes at all end no process', () => {
    check(
      fc.property(fc.array(fc.uint8Array({ maxLength: 100 }), { maxLength: 10 }), (chunks) => {
        const usage = new ConnectionUsage(false);
        const reader = new FrameReader(usage);
        for (const chunk of chunks) reader.push(Buffer.from(chunk));
        expect(usage.total.promptTokens).toBeNull();
      }),
      { numRuns: 5_000 },
    );
  });

  it.each([
    ['a control frame that is too long', [0x89, 126, 0, 126]],
    ['a control frame without FIN', [0x09, 0]],
    ['RSV2', [0xa1, 0]],
    ['RSV3', [0x91, 0]],
    ['a length beyond 2^53', [0x81, 127, 0xff, 0, 0, 0, 0, 0, 0, 0]],
  ])('are broken by %s', (_, bytes) => {
    const { reader } = read([Buffer.from(bytes)]);
    expect([reader.isBroken, reader.isBetweenFrames]).toEqual([true, false]);
  });

  it('may have a close frame of ours between them', () => {
    const { frames } = read([closeFrame(1008, 'spent', false)]);
    expect(frames).toEqual([
      { fin: true, compressed: false, opcode: 8, payload: Buffer.from('\x03\xf0spent', 'latin1') },
    ]);
    expect(closeFrame(1001, '', true).equals(Buffer.from([0x88, 0x82, 0, 0, 0, 0, 0x03, 0xe9]))).toBe(true);
  });
});

/** As a sender with permessage-deflate compresses a message (RFC 7692 7.2.1). */
async function deflate(stream: ReturnType<typeof createDeflateRaw>, text: string): Promise<Buffer> {
  const parts: Buffer[] = [];
  const collect = (part: Buffer) => parts.push(part);
  stream.on('data', collect);
  stream.write(text);
  await new Promise<void>((resolve) => stream.flush(constants.Z_SYNC_FLUSH, resolve));
  stream.off('data', collect);
  return Buffer.concat(parts).subarray(0, -4);
}

const message = (payload: Buffer, compressed: boolean): Frame => ({
  fin: true,
  opcode: 1,
  masked: false,
  payload,
  compressed,
});

/** The usage of messages that are cut into frames, and frames into chunks. */
async function usageOf(messages: readonly Frame[], seed: number, compresses: boolean) {
  const usage = new ConnectionUsage(compresses);
  const reader = new FrameReader(usage);
  const ping = encode({ fin: true, compressed: false, opcode: 9, masked: false, payload: Buffer.from('p') });
  const frames = messages.flatMap((one, i) => {
    const half = one.payload.length >> ((seed + i) % 3);
    const first = { ...one, fin: false, payload: one.payload.subarray(0, half) };
    const second = { ...one, compressed: false, opcode: 0, payload: one.payload.subarray(half) };
    return [encode(first), ping, encode(second)];
  });
  const bytes = Buffer.concat(frames);
  for (let at = 0; at < bytes.length; at += 1 + seed) reader.push(bytes.subarray(at, at + 1 + seed));
  await usage.settled();
  usage.close();
  return usage.total;
}

describe('the usage on a WebSocket', () => {
  const TEXTS = [
    JSON.stringify({ type: 'response.output_text.delta', delta: 'usage' }),
    responseCompleted(10, 4, 'gpt-5.6', 'a text that comes again'),
    responseDone(5, 1),
    responseCompleted(20, 8, 'gpt-5.6', 'a text that comes again'),
  ];
  const SUM = {
    model: 'gpt-5.6',
    promptTokens: 35,
    completionTokens: 13,
    cachedTokens: 4,
    reasoningTokens: 2,
  };

  it.each([1, 2, 7, 100, 5_000])('is the sum of its responses, in chunks of %d bytes', async (seed) => {
    const plain = TEXTS.map((text) => message(Buffer.from(text), false));
    expect(await usageOf(plain, seed, false)).toMatchObject(SUM);
    const stream = createDeflateRaw();
    const deflated: Frame[] = [];
    for (const text of TEXTS) deflated.push(message(await deflate(stream, text), true));
    stream.close();
    // Later messages refer to earlier ones.
    expect(deflated[3]!.payload.length).toBeLessThan(deflated[1]!.payload.length / 2);
    expect(await usageOf(deflated, seed, true)).toMatchObject(SUM);
  });

  it('is read from messages that end their own compressed stream', async () => {
    const alone = TEXTS.map((text) => message(deflateRawSync(text), true));
    expect(await usageOf(alone, 100, true)).toMatchObject(SUM);
  });

  it.each([
    ['garbage', message(Buffer.from('no deflate stream at all'), true), true],
    ['compressed although nobody agreed to it', message(deflateRawSync(TEXTS[1]!), true), false],
    ['a bomb', message(deflateRawSync(Buffer.alloc(40 * 1024 * 1024)), true), true],
  ])('is not known once a message is %s', async (_, bad, compresses) => {
    const messages = [message(Buffer.from(TEXTS[1]!), false), bad, message(Buffer.from(TEXTS[1]!), false)];
    expect(await usageOf(messages, 60_000, compresses)).toEqual({ ...NO_USAGE, model: 'gpt-5.6' });
  });
});
