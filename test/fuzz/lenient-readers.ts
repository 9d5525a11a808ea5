import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { createInterface, type Interface } from 'node:readline';

/** Members of the outermost object, in their order. Values that are no strings are null. */
export type ReadMembers = readonly (readonly [name: string, value: string | null])[];

/** Refused: the text is no object to this reader. */
const REFUSED = new Error();

/**
 * Reads JSON as an old fastjson does: the two bytes after `\x` and the four after `\u` are taken for digits unchecked, so
 * that a quote among them does not end the string; after any other backslash, the next character stands for itself. Strings
 * may have single quotes, and a comment may follow.
 *
 * @returns null if it refuses the text
 */
export function readAsFastjson(text: string): ReadMembers | null {
  let at = 0;
  const members = (isOutermost: boolean): [string, string | null][] =>
    list('}', () => {
      space();
      if (!isQuote()) throw REFUSED;
      const name = string();
      space();
      if (text[at++] !== ':') throw REFUSED;
      const value = any();
      return isOutermost ? [name, value] : ['', null];
    });
  const space = () => {
    while (at < text.length && ' \t\r\n'.includes(text[at]!)) at++;
  };
  const isQuote = () => text[at] === '"' || text[at] === "'";
  const string = (): string => {
    let read = '';
    const quote = text[at];
    for (at++; text[at] !== quote;) {
      if (at >= text.length) throw REFUSED;
      if (text[at] !== '\\') read += text[at++];
      else {
        const digits = { x: 2, u: 4 }[text[at + 1]!];
        const next = text.slice(at + 2, at + 2 + (digits ?? 0));
        if (digits === undefined) read += SHORT[text[at + 1]!] ?? text[at + 1];
        else read += /^[\da-f]+$/i.test(next) ? String.fromCharCode(parseInt(next, 16)) : '?';
        at += 2 + (digits ?? 0);
      }
    }
    at++;
    return read;
  };
  const list = <T>(end: string, one: () => T): T[] => {
    const all: T[] = [];
    at++;
    space();
    if (text[at] === end) return (at++, all);
    for (;;) {
      all.push(one());
      space();
      const next = text[at++];
      if (next === end) return all;
      if (next !== ',') throw REFUSED;
    }
  };
  const any = (): string | null => {
    space();
    if (isQuote()) return string();
    if (text[at] === '{') members(false);
    else if (text[at] === '[') list(']', any);
    else {
      const scalar = /[-+.\w]+/y;
      scalar.lastIndex = at;
      if (!scalar.test(text)) throw REFUSED;
      at = scalar.lastIndex;
    }
    return null;
  };
  try {
    space();
    if (text[at] !== '{') return null;
    const all = members(true);
    space();
    return at < text.length && !text.startsWith('//', at) ? null : all;
  } catch (error) {
    if (error === REFUSED) return null;
    throw error;
  }
}

const SHORT: Record<string, string> = { n: '\n', t: '\t', b: '\b', f: '\f', r: '\r' };

const PYTHON = `
import base64, json, sys
for line in sys.stdin:
    try:
        read = json.loads(base64.b64decode(line).decode(), strict=False, object_pairs_hook=tuple)
        isObject = isinstance(read, tuple)
        read = [[name, value if isinstance(value, str) else None] for name, value in read] if isObject else None
    except (ValueError, RecursionError):
        read = None
    print(json.dumps(read), flush=True)
`;

/** Python's own reader of JSON, which here accepts control characters in strings. */
export class PythonReader {
  static readonly exists = spawnSync('python3', ['-c', '']).status === 0;

  private readonly child: ChildProcess = spawn('python3', ['-c', PYTHON], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  private readonly lines: Interface = createInterface({ input: this.child.stdout! });
  private readonly answers = this.lines[Symbol.asyncIterator]();

  /** What it reads from each of these texts; null for one that it refuses. */
  async read(texts: readonly string[]): Promise<(ReadMembers | null)[]> {
    for (const text of texts) this.child.stdin!.write(`${Buffer.from(text).toString('base64')}\n`);
    const read: (ReadMembers | null)[] = [];
    for (let i = 0; i < texts.length; i++) {
      const line = await this.answers.next();
      if (line.done) throw new Error('Python has ended');
      read.push(JSON.parse(line.value) as ReadMembers | null);
    }
    return read;
  }

  async stop(): Promise<void> {
    this.child.stdin!.end();
    await once(this.child, 'close');
  }
}
