import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { SecretBox, SecretBoxError } from '../../src/platform/secret-box.js';
import { check } from '../support/property.js';

const key = randomBytes(32);
const box = new SecretBox(key);
const bytes = () => fc.uint8Array({ maxLength: 300 }).map((array) => Buffer.from(array));
const context = () => fc.string({ unit: 'grapheme', maxLength: 60 });

/** The problem with which it does not open; anything but a SecretBoxError fails the test. */
function faultOf(open: () => Buffer): string {
  try {
    open();
  } catch (error) {
    expect(error).toBeInstanceOf(SecretBoxError);
    return (error as SecretBoxError).problem;
  }
  throw new Error('it opened');
}

describe('the secret box', () => {
  it('opens what it sealed, in its place', () => {
    check(
      fc.property(bytes(), context(), (plaintext, place) => {
        expect(box.open(box.seal(plaintext, place), place)).toEqual(plaintext);
      }),
    );
  });

  it('shows nothing of what it holds, and never the same twice', () => {
    const plaintext = Buffer.from('sk-secret-secret-secret');
    const [one, other] = [box.seal(plaintext, 'a'), box.seal(plaintext, 'a')];
    expect(one.includes('secret')).toBe(false);
    expect(one.equals(other)).toBe(false);
    expect(one.subarray(5, 17).equals(other.subarray(5, 17))).toBe(false);
  });

  it('seals each of a thousand values with a nonce of its own', () => {
    const nonces = Array.from({ length: 1_000 }, () => box.seal(key, 'a').toString('hex', 5, 17));
    expect(new Set(nonces).size).toBe(1_000);
  });

  it('does not open with any bit changed', () => {
    const sealed = box.seal(Buffer.from('a secret'), 'place');
    for (let bit = 0; bit < sealed.length * 8; bit++) {
      const changed = Buffer.from(sealed);
      changed[bit >> 3]! ^= 1 << (bit & 7);
      // The bytes 1 to 4 name the key: another name is an unknown one.
      expect(faultOf(() => box.open(changed, 'place'))).toBe(
        bit >> 3 >= 1 && bit >> 3 <= 4 ? 'unknown_key' : 'damaged',
      );
    }
  });

  it('does not open in another place', () => {
    check(
      fc.property(bytes(), context(), context(), (plaintext, place, other) => {
        fc.pre(place !== other);
        expect(faultOf(() => box.open(box.seal(plaintext, place), other))).toBe('damaged');
      }),
    );
  });

  it('does not open cut short, made longer, or made up', () => {
    const sealed = box.seal(Buffer.from('a secret of some length'), 'place');
    for (let length = 0; length < sealed.length; length++) {
      faultOf(() => box.open(sealed.subarray(0, length), 'place'));
    }
    check(
      fc.property(bytes(), bytes(), (tail, anything) => {
        if (tail.length > 0) faultOf(() => box.open(Buffer.concat([sealed, tail]), 'place'));
        faultOf(() => box.open(anything, 'place'));
        faultOf(() => box.open(Buffer.concat([sealed.subarray(0, 5), anything]), 'place'));
      }),
    );
  });

  it('opens what the previous master key sealed, and seals with the current one', () => {
    const next = new SecretBox(randomBytes(32), key);
    const old = box.seal(Buffer.from('kept'), 'place');
    expect(next.open(old, 'place').toString()).toBe('kept');
    expect([next.isCurrent(old), box.isCurrent(old)]).toEqual([false, true]);
    const renewed = next.seal(next.open(old, 'place'), 'place');
    expect(next.isCurrent(renewed)).toBe(true);
    expect(faultOf(() => box.open(renewed, 'place'))).toBe('unknown_key');
  });

  it('says of a wrong master key that it is the wrong one', () => {
    const sealed = box.seal(Buffer.from('lost'), 'place');
    expect(faultOf(() => new SecretBox(randomBytes(32)).open(sealed, 'place'))).toBe('unknown_key');
    expect(faultOf(() => new SecretBox(randomBytes(32), randomBytes(32)).open(sealed, 'place'))).toBe(
      'unknown_key',
    );
  });

  it('identifies a key by its ID after a restart, too', () => {
    const sealed = box.seal(Buffer.from('still there'), 'place');
    expect(new SecretBox(Buffer.from(key)).open(sealed, 'place').toString()).toBe('still there');
  });
});
