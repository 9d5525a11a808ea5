import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { GATEWAY_ERROR_CODES, GatewayError } from '../../src/errors/gateway-error.js';
import { marked } from '../support/never.js';
import { check } from '../support/property.js';

const test = join(__dirname, '..');
const { tierOf } = (await import(join(test, '../scripts/tiers.mjs'))) as {
  tierOf: (path: string) => string | undefined;
};
const FOLDERS = ['wire', 'limits', 'auth', 'request-log', 'idempotency', 'pricing', 'usage'];

// Second tries would hide a wrong sum, a right that nobody gave, a changed byte or a wrong row.
it('marks at least one test with never() in each file of the folders that make such promises', () => {
  const files = FOLDERS.flatMap((folder) =>
    readdirSync(join(test, folder), { recursive: true, encoding: 'utf8' })
      .filter((path) => tierOf(path) !== undefined)
      .map((path) => join(folder, path)),
  );
  const marks = (text: string) =>
    /from '(?:\.\.\/)+support\/never\.js'/.test(text) && /^\s*never(\.each)?[(<]/m.test(text);
  expect(files.filter((path) => !marks(readFileSync(join(test, path), 'utf8')))).toEqual([]);
  expect(files.length).toBeGreaterThan(100);
});

describe('a test that is marked', () => {
  /** Has its file no second try after this failure? */
  const isFinal = async (body: () => unknown) => {
    const error: unknown = await marked(body)().catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(Error);
    return (error as Error).stack!.includes('\nThis must never happen.\n');
  };
  const body = (code: string) => `{"error":{"message":"m","type":"api_error","param":null,"code":"${code}"}}`;

  it.each<[string, () => unknown]>([
    ['a wrong sum', () => expect('1.50').toBe('1.51')],
    ['a wrong status', () => expect([200, null]).toEqual([403, 'model_not_allowed'])],
    ['a 503 that was expected and did not come', () => expect([200]).toEqual([503])],
    [
      'a changed byte beside a 503 that was expected',
      () => expect({ status: 503, body: 'a' }).toEqual({ status: 503, body: 'b' }),
    ],
    ['a number in which 503 occurs', () => expect(['0.503', 1503]).toEqual([])],
    ['a row too many', () => expect([1, 2]).toHaveLength(1)],
    ['a promise that is fulfilled', () => expect(Promise.resolve(1)).rejects.toThrow()],
    ['an error with another message', () => expect(Promise.reject(new Error('409'))).rejects.toThrow('400')],
    ['a property of fast-check', () => check(fc.property(fc.nat(), (n) => void expect(n).toBeLessThan(5)))],
  ])('is final where it finds %s', async (_, failing) => {
    expect(await isFinal(failing)).toBe(true);
  });

  it.each<[string, () => unknown]>([
    [
      'another error',
      () => {
        throw new Error('not within 1000 times');
      },
    ],
    ['a 503', () => expect(503).toBe(200)],
    ['a 503 among others', () => expect([200, { status: 503 }]).toEqual([200, { status: 200 }])],
    ['a 503 in a set', () => expect(new Set([200, 503])).toEqual(new Set([200]))],
    ['the status line of a 503', () => expect('HTTP/1.1 503 Service Unavailable').toBe('HTTP/1.1 200 OK')],
    [
      'a 503 in a rejection',
      () =>
        expect(Promise.reject(new Error(`POST /keys: 503 ${body('database_unavailable')}`))).rejects.toThrow(
          '400',
        ),
    ],
    [
      'an error that the gateway answers with a 503',
      () => {
        class LimitsUnavailableError extends Error {}
        expect(new LimitsUnavailableError()).toBeInstanceOf(RangeError);
      },
    ],
    [
      'a promise that is fulfilled with a 503',
      () => expect(Promise.resolve({ status: 503 })).rejects.toThrow(),
    ],
    [
      'a 503 in a property of fast-check',
      () => check(fc.property(fc.nat(), () => void expect([503, 'overloaded']).toEqual([200, null]))),
    ],
  ])('leaves a second try where it finds %s', async (_, failing) => {
    expect(await isFinal(failing)).toBe(false);
  });

  it.each(GATEWAY_ERROR_CODES.map((code) => [code, new GatewayError(code).getStatus()] as const))(
    'takes %s for the status %i that it has, in a body too',
    async (code, status) => {
      for (const failing of [
        () => expect(code).toBe(null),
        () => expect(body(code)).toBe('expected'),
        () => expect(body(code)).toContain('expected'),
        () => expect([body(code)]).toEqual(['expected']),
        () => expect(body(code)).toEqual(body('none')),
      ])
        expect(await isFinal(failing)).toBe(status !== 503);
    },
  );
});
