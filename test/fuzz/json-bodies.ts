import type { Random } from './random.js';

const SHORT_ESCAPES = ['\\"', '\\\\', '\\n', '\\/', '\\t', '\\b', '\\u0041', '\\u00e9', '\\ud83d\\ude00'];
const BAD_ESCAPES = [
  '\\x',
  '\\x4',
  '\\x41',
  '\\xa\\',
  '\\u',
  '\\u1',
  '\\u12',
  '\\u123',
  '\\u{',
  '\\q',
  "\\'",
];
const CHAIN = ['\\x', '\\x', '\\u', '\\\\', '\\n', '\\"', '\\u00', 'a', 'b1', '\\x41', '\\u0041'];
const RAW = ['\t', '\n', '\r', '\u0001', 'z'];
const SCALARS = ['1', '-0', '0', '1.5e3', '12345678', '1e+9', '-', '01', '1.', 'tru', 'null', 'true', 'NaN'];
const DAMAGE = [
  '"',
  '\\',
  '{',
  '}',
  '[',
  ']',
  ',',
  ':',
  '\\"',
  '\\x',
  '\\u',
  '0',
  'e',
  ' ',
  '\u0000',
  '',
  "'",
];
const SPACES = ['', '', ' ', '\n'];

/** Names that the readers are compared by. */
export const COMPARED = ['model', 'models', 'prompt', 'user'] as const;

/** A request body that is JSON, or nearly: strings that end where parsers do not agree, names that fold, damage. */
export function jsonBody(random: Random): string {
  if (random.below(3) === 0) return hidden(random);
  let text = object(random, 0, random.below(2) === 0);
  if (random.below(3) > 0) return text;
  for (let i = random.below(3); i > 0; i--) {
    const at = random.below(text.length + 1);
    const by = random.below(6) === 0 ? '","model":"dear' : random.pick(DAMAGE);
    text = text.slice(0, at) + by + text.slice(at + random.below(2));
  }
  return text;
}

/**
 * A body whose model is `cheap` to a reader for whom a chain of escapes ends before a quote, and `dear` to one that takes the
 * quote for a part of an escape, or an escaped quote for the end of the text.
 */
function hidden(random: Random): string {
  const escapes = Array.from({ length: 1 + random.below(12) }, () => random.pick(CHAIN)).join('');
  const start = random.pick(['', 'text ', 'x'.repeat(random.below(60))]);
  const dear = `,'model':'dear','d':`;
  const [end, rest] = random.pick([
    ['"', `,"${dear}":",'f':'`],
    ['\\"', `${dear}'`],
  ]);
  return `{"a":"${start}${escapes}${end}${rest}","model":"cheap","e":"'}//"}`;
}

/** The sizes of the chunks in which a body comes. */
export function chunkSizes(random: Random): number[] {
  const most = random.pick([1, 5, 40, 65_536]);
  return Array.from({ length: 5 }, () => 1 + random.below(most));
}

function object(random: Random, depth: number, isBad: boolean): string {
  const members = Array.from({ length: random.below(5) }, () => {
    const space = () => random.pick(SPACES);
    return `${space()}"${name(random, isBad)}"${space()}:${space()}${value(random, depth, isBad)}`;
  });
  return `{${members.join(',')}}`;
}

function name(random: Random, isBad: boolean): string {
  if (random.below(3) === 0) return text(random, isBad && random.below(3) === 0);
  return random.pick([
    ...COMPARED,
    ...['model', 'Model', 'mod\\u0065l', 'modelſ', 'a', 'b', 'n'.repeat(random.below(200))],
  ]);
}

function value(random: Random, depth: number, isBad: boolean): string {
  const kind = random.below(depth > 3 ? 5 : 8);
  if (kind < 3) return `"${text(random, isBad)}"`;
  if (kind === 3) return random.pick(SCALARS);
  if (kind === 4) return random.pick(['"cheap"', '"dear"']);
  if (kind === 5) return object(random, depth + 1, isBad);
  return `[${Array.from({ length: random.below(4) }, () => value(random, depth + 1, isBad)).join(',')}]`;
}

function text(random: Random, isBad: boolean): string {
  let all = '';
  for (let i = random.below(6); i > 0; i--) {
    const kind = random.below(isBad ? 10 : 8);
    if (kind < 3) {
      const quote = random.below(12) === 0 ? '"' : '\\"';
      const plain = ['a', 'hello world ', 'é', '":"', '","model":"dear', 'model', '}', '{"', ','];
      all += random.pick([...plain, 'x'.repeat(random.below(60))]).replaceAll('"', quote);
    } else if (kind < 7) all += random.pick(SHORT_ESCAPES);
    else all += random.pick(kind === 7 ? RAW : BAD_ESCAPES);
  }
  return all;
}
