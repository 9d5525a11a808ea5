import fc from 'fast-check';
import { digestKey, isWellFormedKey, generateKey, shownPrefix } from '../../src/keys/key-secret.js';
import { containsKeyFormat, SHOWN_LENGTH } from '../../src/platform/api-key.js';
import { check } from '../support/property.js';

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

describe('a gateway key', () => {
  it('has the documented format and passes its own check, every time', () => {
    for (let i = 0; i < 2_000; i++) {
      const key = generateKey();
      expect(key).toMatch(/^ptn_[0-9A-Za-z]{38}$/);
      expect(isWellFormedKey(key)).toBe(true);
    }
  });

  it('is never generated twice and uses every letter about equally often', () => {
    const keys = new Set<string>();
    const counts = new Map<string, number>();
    for (let i = 0; i < 5_000; i++) {
      const key = generateKey();
      keys.add(key);
      for (const letter of key.slice(4, 36)) counts.set(letter, (counts.get(letter) ?? 0) + 1);
    }
    expect(keys.size).toBe(5_000);
    // 160,000 letters over 62: 2,581 each, standard deviation 50. Modulo bias would be 25 %.
    for (const letter of ALPHABET) {
      expect(counts.get(letter)).toBeGreaterThan(2_581 - 400);
      expect(counts.get(letter)).toBeLessThan(2_581 + 400);
    }
  });

  it('fails its check when any one letter is another', () => {
    check(
      fc.property(fc.integer({ min: 4, max: 41 }), fc.integer({ min: 1, max: 61 }), (at, shift) => {
        const key = generateKey();
        const letter = ALPHABET[(ALPHABET.indexOf(key[at]!) + shift) % 62]!;
        expect(isWellFormedKey(key.slice(0, at) + letter + key.slice(at + 1))).toBe(false);
      }),
    );
  });

  it('fails its check when two neighbours change places', () => {
    check(
      fc.property(fc.integer({ min: 4, max: 40 }), (at) => {
        const key = generateKey();
        fc.pre(key[at] !== key[at + 1]);
        expect(isWellFormedKey(key.slice(0, at) + key[at + 1]! + key[at]! + key.slice(at + 2))).toBe(false);
      }),
    );
  });

  it('is not recognised in anything else', () => {
    check(fc.property(fc.string({ unit: 'binary' }), (text) => !isWellFormedKey(text)));
    const key = generateKey();
    for (const near of [
      '',
      `${key} `,
      ` ${key}`,
      `${key}\n`,
      key.slice(1),
      key.slice(0, -1),
      key.toUpperCase(),
    ]) {
      expect(isWellFormedKey(near)).toBe(false);
    }
  });

  it('is found anywhere in a text, whether or not its checksum is right', () => {
    check(
      fc.property(fc.string(), fc.string(), (before, after) => {
        const key = generateKey();
        expect(containsKeyFormat(before + key + after)).toBe(true);
        expect(containsKeyFormat(`${before}ptn_${'a'.repeat(38)}${after}`)).toBe(true);
      }),
    );
    expect(containsKeyFormat(`ptn_${'a'.repeat(37)}`)).toBe(false);
    expect(containsKeyFormat('the prefix ptn_ alone')).toBe(false);
  });

  it('is identified by twelve characters and looked up by 32 bytes that do not hold it', () => {
    const key = generateKey();
    expect(shownPrefix(key)).toBe(key.slice(0, 12));
    expect(SHOWN_LENGTH).toBe(12);
    expect(digestKey(key)).toHaveLength(64);
    expect(digestKey(key)).toEqual(digestKey(key));
    expect(digestKey(key)).not.toEqual(digestKey(generateKey()));
  });

  it('is digested with plain SHA-256, so that rows of today open tomorrow', () => {
    expect(digestKey('abc')).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
  });
});
