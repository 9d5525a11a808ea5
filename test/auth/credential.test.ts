import { ownCredentials, readCredential } from '../../src/auth/credential.js';
import { GatewayError } from '../../src/errors/gateway-error.js';
import { never } from '../support/never.js';

const KEY_HEADERS = ['x-api-key', 'api-key', 'x-goog-api-key'];

function rejection(raw: string[]): unknown {
  try {
    return readCredential(raw);
  } catch (error) {
    return error instanceof GatewayError ? error.code : error;
  }
}

describe('the credential of a request', () => {
  it.each(['Bearer', 'bearer', 'BEARER', 'bEaReR'])('is the token after %s', (scheme) => {
    expect(readCredential(['Host', 'a', 'Authorization', `${scheme} token-1`])).toBe('token-1');
  });

  never.each([
    'Bearer',
    'Bearer ',
    'Bearer  two-spaces',
    'Bearer a b',
    'Bearer\ttab',
    'Basic dXNlcjpwYXNz',
    'token',
    '',
    ' Bearer token',
    'Bearer token ',
  ])('is none when Authorization is %j', (value) => {
    expect(readCredential(['authorization', value])).toBeNull();
  });

  never.each(KEY_HEADERS)('is none when Authorization is malformed, even with a good %s', (name) => {
    expect(readCredential([name, 'good', 'authorization', 'Basic abc'])).toBeNull();
    expect(readCredential([name, 'good', 'authorization', ''])).toBeNull();
  });

  it.each(KEY_HEADERS)('is taken from %s when there is no Authorization', (name) => {
    expect(readCredential([name, 'token-2'])).toBe('token-2');
    expect(readCredential([name.toUpperCase(), 'token-2'])).toBe('token-2');
  });

  never.each(KEY_HEADERS)('is what Authorization says, whatever %s says', (name) => {
    expect(readCredential([name, 'other', 'authorization', 'Bearer mine'])).toBe('mine');
  });

  it('may stand in two key headers when it is the same', () => {
    expect(readCredential(['x-api-key', 'same', 'api-key', 'same'])).toBe('same');
    expect(rejection(['x-api-key', 'one', 'api-key', 'two'])).toBe('invalid_request');
  });

  never.each(['authorization', ...KEY_HEADERS])(
    'is rejected when %s comes twice, even with one value',
    (name) => {
      expect(rejection([name, 'Bearer a', name.toUpperCase(), 'Bearer a'])).toBe('invalid_request');
    },
  );

  never('is x-gateway-key alone where that is present', () => {
    const others = ['authorization', 'Bearer mine', 'x-api-key', 'a', 'x-api-key', 'b', 'api-key', 'c'];
    expect(readCredential([...others, 'X-Gateway-Key', 'ours'])).toBe('ours');
    expect(readCredential(['x-gateway-key', 'ours', ...others])).toBe('ours');
    expect(readCredential(['x-gateway-key', '', ...others])).toBeNull();
    expect(rejection(['x-gateway-key', 'ours', 'X-GATEWAY-KEY', 'ours'])).toBe('invalid_request');
  });

  it('is the key in a subprotocol of a WebSocket where no header has one', () => {
    const list = ['sec-websocket-protocol', 'realtime, openai-insecure-api-key.mine, other'];
    expect(readCredential(list)).toBe('mine');
    expect(readCredential([...list, 'authorization', 'Bearer header'])).toBe('header');
    expect(readCredential([...list, 'api-key', 'header'])).toBe('header');
    expect(readCredential([...list, 'sec-websocket-protocol', 'openai-insecure-api-key.other'])).toBeNull();
    expect(readCredential(['sec-websocket-protocol', 'realtime'])).toBeNull();
    const own = ['Authorization', 'Bearer token-of-mine', 'x-api-key', 'short', ...list.slice(0, 1)];
    expect(ownCredentials([...own, 'a, openai-insecure-api-key.sk-of-mine'])).toEqual([
      'Bearer token-of-mine',
      'token-of-mine',
      'sk-of-mine',
    ]);
  });

  it('is none without any such header, or with an empty one', () => {
    expect(readCredential([])).toBeNull();
    expect(readCredential(['x-api-key', ''])).toBeNull();
    expect(
      readCredential(['Accept', 'Bearer x', 'Cookie', 'access_token=x', 'Proxy-Authorization', 'Bearer x']),
    ).toBeNull();
  });
});
