import fc from 'fast-check';
import { readRequestTarget } from '../../src/proxy/http/request-target.js';
import { GatewayError } from '../../src/errors/gateway-error.js';
import { check } from '../support/property.js';

/** Pieces out of which paths escape, and harmless ones between them. */
const piece = fc.constantFrom(
  ...[
    '/',
    '//',
    '\\',
    '.',
    '..',
    ';',
    '?',
    '#',
    '@',
    ':',
    '%',
    '%2',
    '%2e',
    '%2E',
    '%2f',
    '%2F',
    '%5c',
    '%3b',
    '%3f',
  ],
  ...[
    '%25',
    '%252e',
    '%252f',
    '%255c',
    '%253b',
    '%00',
    '%09',
    '%0a',
    '%2500',
    '%25252e',
    '%c0%ae',
    'v1',
    'p',
    'default',
  ],
  ...[
    'admin',
    'models',
    'a',
    'x%2Fy',
    '\t',
    '\0',
    '\x7f',
    '\xe9',
    ' ',
    '...',
    '..a',
    'access_token',
    '=',
    '&',
    '[',
  ],
);
const start = fc.constantFrom('/v1/', '/p/default/', '/p/', '/', '', '//', '/v1', 'http://h/');
const target = fc.oneof(
  fc.tuple(start, fc.array(piece, { maxLength: 12 })).map(([head, pieces]) => head + pieces.join('')),
  fc.string({ unit: 'binary', maxLength: 40 }).map((text) => `/v1/${text}`),
);

function read(raw: string) {
  try {
    return readRequestTarget(raw);
  } catch (error) {
    if (error instanceof GatewayError) return error.code;
    throw error;
  }
}

/** An oracle of its own make: decodes by Buffer, walks the segments as a file system would, answers where it ended. */
function walk(path: string, rounds: number): { parts: string[]; escaped: boolean } {
  let bytes = Buffer.from(path, 'latin1');
  for (let round = 0; round < rounds; round++) {
    const out: number[] = [];
    for (let i = 0; i < bytes.length; i++) {
      const hex = bytes.toString('latin1', i + 1, i + 3);
      if (bytes[i] === 0x25 && hex.length === 2 && /^[0-9a-f]{2}$/i.test(hex)) {
        out.push(Number.parseInt(hex, 16));
        i += 2;
      } else out.push(bytes[i]!);
    }
    bytes = Buffer.from(out);
  }
  const parts: string[] = [];
  let escaped = false;
  // What URL parsers drop and where C strings end.
  const text = bytes
    .toString('latin1')
    .split('\0')[0]!
    .replace(/[\t\r\n]/g, '');
  for (const segment of text.split(/[/\\]/).slice(1)) {
    const name = segment.replace(/;.*$/s, '');
    if (name === '..') escaped = parts.pop() === undefined || escaped;
    else if (name !== '.') parts.push(name);
  }
  return { parts, escaped };
}

const RUNS = { numRuns: 5_000 };

it('never lets a path leave its folder, however often it is decoded by the next hop', () => {
  check(
    fc.property(target, (raw) => {
      const result = read(raw);
      if (result === null || typeof result === 'string') return;
      for (const rounds of [0, 1, 2]) {
        const walked = walk(result.path, rounds);
        expect(walked.escaped).toBe(false);
        expect(walked.parts[0]).toBe(result.provider === null ? 'v1' : 'p');
        if (result.provider !== null) expect(walked.parts[1]).toBe(result.provider);
        // Nothing was taken back on the way: as many parts as the path has segments.
        expect(walked.parts).toHaveLength(
          walk(result.path.replaceAll('.', '_').replace(/%(25)*2e/gi, '_'), rounds).parts.length,
        );
      }
    }),
    RUNS,
  );
});

it('passes on what was sent, byte for byte, or nothing', () => {
  check(
    fc.property(target, (raw) => {
      const result = read(raw);
      if (result === null || typeof result === 'string') return;
      const { provider, path, endpoint, upstreamPath } = result;
      expect((provider === null ? '' : `/p/${provider}`) + upstreamPath).toBe(raw);
      expect(path).toBe(raw.split('?')[0]);
      expect(upstreamPath.split('?')[0]).toBe(endpoint);
      expect(upstreamPath).toMatch(/^\/(?!\/)[\x21-\x7e]*$/);
      expect(upstreamPath).not.toMatch(/[#\\]/);
    }),
    RUNS,
  );
});

it('rejects with a documented code, or finds no route, and never throws anything else', () => {
  const codes = ['invalid_path', 'credential_in_query', 'not_found', 'provider_not_found'];
  check(
    fc.property(fc.oneof(target, fc.string({ unit: 'binary' })), (raw) => {
      const result = read(raw);
      if (typeof result === 'string') expect(codes).toContain(result);
    }),
    RUNS,
  );
});

it('accepts every path of plain segments', () => {
  const segment = fc.stringMatching(/^[A-Za-z0-9_~:@!$&'()*+,=-][A-Za-z0-9._~:@!$&'()*+,=;-]{0,20}$/);
  check(
    fc.property(fc.array(segment, { minLength: 1, maxLength: 6 }), (segments) => {
      const raw = `/v1/${segments.join('/')}`;
      expect(read(raw)).toEqual({ provider: null, path: raw, endpoint: raw, upstreamPath: raw });
    }),
  );
});
