import fc from 'fast-check';
import { PlainCopy } from '../../../src/bodies/usage/plain-copy.js';
import { check } from '../../support/property.js';

const PART = 65_536;

/** Bytes that tell their own place, so that a shifted or doubled piece is seen. */
function bytes(length: number): Buffer {
  const all = Buffer.alloc(length);
  for (let i = 0; i < length; i++) all[i] = (i * 31 + (i >> 8) * 7 + (i >> 16)) & 0xff;
  return all;
}

function copyOf(body: Buffer, sizes: readonly number[]): PlainCopy {
  const copy = new PlainCopy();
  for (let at = 0, i = 0; at < body.length; i++) {
    const chunk = Buffer.from(body.subarray(at, at + sizes[i % sizes.length]!));
    copy.add(chunk);
    at += chunk.length;
    // The read buffer is somebody else's again.
    chunk.fill(0);
  }
  return copy;
}

describe('the copy of a response', () => {
  it('is nothing before the first byte', () => {
    const copy = new PlainCopy();
    copy.add(Buffer.alloc(0));
    expect([copy.length, copy.whole]).toEqual([0, true]);
    expect(copy.take()).toEqual({ head: Buffer.alloc(0), tail: Buffer.alloc(0), whole: true });
  });

  it('holds every byte up to 128 KiB, and the first and last 64 KiB of more', () => {
    check(
      fc.property(
        fc.oneof(
          fc.nat(4 * PART),
          fc.constantFrom(1, PART - 1, PART, PART + 1, 2 * PART, 2 * PART + 1, 3 * PART),
        ),
        fc.array(fc.oneof(fc.integer({ min: 1, max: 400 }), fc.integer({ min: 1, max: 3 * PART })), {
          minLength: 1,
          maxLength: 8,
        }),
        (length, sizes) => {
          const body = bytes(length);
          const copy = copyOf(body, sizes);
          const whole = length <= 2 * PART;
          expect([copy.length, copy.whole]).toEqual([length, whole]);
          const { head, tail, ...rest } = copy.take();
          expect(rest.whole).toBe(whole);
          expect(head.equals(whole ? body : body.subarray(0, PART))).toBe(true);
          expect(tail.equals(whole ? Buffer.alloc(0) : body.subarray(length - PART))).toBe(true);
        },
      ),
      { numRuns: 150 },
    );
  });

  it('releases its bytes when they are taken, and keeps none that come later', () => {
    const copy = copyOf(bytes(1_000), [100]);
    copy.take();
    copy.add(bytes(10));
    expect(copy.take().head).toHaveLength(0);
  });
});
