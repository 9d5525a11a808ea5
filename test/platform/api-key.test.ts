import { generateKey, shownPrefix } from '../../src/keys/key-secret.js';
import {
  API_KEY_LENGTH,
  containsKeyFormat,
  hasKeyFormat,
  isShownPrefix,
  SHOWN_LENGTH,
} from '../../src/platform/api-key.js';

describe('the format of a gateway key', () => {
  const key = generateKey();

  it('matches a generated key', () => {
    expect(key).toHaveLength(API_KEY_LENGTH);
    expect(hasKeyFormat(key)).toBe(true);
    expect(containsKeyFormat(`/v1/files/${key}/content`)).toBe(true);
    expect(shownPrefix(key)).toHaveLength(SHOWN_LENGTH);
    expect(isShownPrefix(shownPrefix(key))).toBe(true);
  });

  it.each([`x${key}`, `${key}0`, key.slice(1), key.slice(0, -1), key.replace('_', '-'), ''])(
    'does not match %j',
    (text) => expect(hasKeyFormat(text)).toBe(false),
  );

  it('does not find a key where characters are missing', () => {
    expect(containsKeyFormat(key.slice(0, -1))).toBe(false);
    expect(containsKeyFormat(`${key.slice(0, 20)} ${key.slice(20)}`)).toBe(false);
    expect(isShownPrefix(key.slice(0, SHOWN_LENGTH + 1))).toBe(false);
  });
});
