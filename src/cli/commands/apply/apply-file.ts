import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { type Document, isMap, isScalar, isSeq, LineCounter, type Node, parseDocument, visit } from 'yaml';
import { gatherEnv, processEnv } from '../../../config/env-source.js';
import type { ErrorDetail } from '../../../errors/service-error.js';
import { CliError } from '../../cli-error.js';
import { readText } from '../../prompt.js';

/** Values that the file must not contain: it names a variable or a file that does. */
const SECRETS = [
  { list: 'providers', member: 'secret', mayBeText: false },
  { list: 'webhooks', member: 'url', mayBeText: true },
  { list: 'policies', member: 'url', mayBeText: true },
  { list: 'policies', member: 'secret', mayBeText: false },
  { list: 'sinks', member: 'url', mayBeText: true },
  { list: 'sinks', member: 'secret', mayBeText: false },
] as const;
const REFERENCE = 'must be { env: NAME }, { file: PATH } or { stored: true }';
/** In place of a secret that cannot be read, so that the rest can be checked. */
const UNREAD = 'unread';

/** The configuration as the API takes it, with the errors of its secrets. */
export interface Read {
  document: Record<string, unknown>;
  errors: ErrorDetail[];
}

/** A file for `postern apply`, which knows where each value is. */
export class ApplyFile {
  private constructor(
    private readonly name: string,
    private readonly parsed: Document,
    private readonly lines: LineCounter,
  ) {}

  /** @param name of the file, or `-` for standard input @throws CliError with every syntax error */
  static async read(name: string): Promise<ApplyFile> {
    let text: string;
    try {
      text = name === '-' ? await readText('The file') : readFileSync(name, 'utf8');
    } catch (error) {
      if (error instanceof CliError) throw error;
      const { code } = error as NodeJS.ErrnoException;
      throw new CliError(
        `${resolve(name)} cannot be read (${code ?? 'error'}); check its path and permissions`,
      );
    }
    const lines = new LineCounter();
    const parsed = parseDocument(text, { lineCounter: lines, prettyErrors: false });
    const file = new ApplyFile(name === '-' ? 'standard input' : name, parsed, lines);
    const errors = [...parsed.errors, ...parsed.warnings];
    if (errors.length > 0) {
      // The parser's messages may quote the file, of which only the first line is about the error.
      throw errorsOf(errors.map(({ pos, message }) => `${file.place(pos[0])}: ${message.split('\n')[0]}`));
    }
    if (!isMap(parsed.contents)) {
      throw new CliError(
        `${file.place(0)}: must be a mapping of installation, groups, teams, providers, routes, prices, keys, trusts, webhooks, policies and sinks`,
      );
    }
    return file;
  }

  /** The content, with its secrets in place. @throws CliError if its aliases stand for too much, or for themselves */
  contents(): Read {
    const document = this.expanded();
    const errors: ErrorDetail[] = [];
    for (const { list, member, mayBeText } of SECRETS) {
      const items: unknown = document[list];
      if (!Array.isArray(items)) continue;
      const objects = items as (Record<string, unknown> | null)[];
      for (const [i, item] of objects.entries()) {
        const value = item?.[member] ?? null;
        if (value === null || (mayBeText && typeof value === 'string') || isStored(value)) continue;
        const found = this.secret(value);
        if ('problem' in found) errors.push({ field: `${list}.${i}.${member}`, message: found.problem });
        // A copy: by an alias, this object may be in the list more than once.
        objects[i] = { ...item, [member]: 'problem' in found ? UNREAD : found.secret };
      }
    }
    return { document, errors };
  }

  /** All errors in one, in the order of the file. @param details with fields such as `keys.0.team` */
  failure(details: readonly ErrorDetail[]): CliError {
    const found = details.map(({ field, message }) => ({ at: this.find(field), field, message }));
    found.sort((a, b) => a.at - b.at);
    return errorsOf(
      found.map(
        ({ at, field, message }) =>
          `${this.place(at)}: ${field.replace(/\.(\d+)(?=\.|$)/g, '[$1]')}: ${message}`,
      ),
    );
  }

  private expanded(): Record<string, unknown> {
    visit(this.parsed, {
      Alias: (_, alias, path) => {
        const target = alias.resolve(this.parsed);
        if (target === undefined || !path.includes(target)) return;
        const what = `the alias *${alias.source} stands for what contains it`;
        throw new CliError(`${this.place(alias.range?.[0] ?? 0)}: ${what}; write out what it is for`);
      },
    });
    try {
      return this.parsed.toJS() as Record<string, unknown>;
    } catch (error) {
      // A few lines of aliases of aliases stand for billions of objects.
      if (!(error instanceof ReferenceError)) throw error;
      throw new CliError(`${this.place(0)}: has too many aliases; write out what they stand for`);
    }
  }

  private secret(reference: unknown): { secret: string } | { problem: string } {
    if (typeof reference === 'string')
      return { problem: `must not be in the file, which is no place for secrets; ${REFERENCE}` };
    const entries = Object.entries(reference as object) as [string, unknown][];
    const [kind, value] = entries[0] ?? [];
    if (entries.length !== 1 || typeof value !== 'string' || value === '') return { problem: REFERENCE };
    if (kind === 'env') return variable(value);
    if (kind !== 'file') return { problem: REFERENCE };
    const path = resolve(this.name === 'standard input' ? '.' : dirname(this.name), value);
    try {
      // One trailing newline is the editor's, not the secret's.
      const secret = readFileSync(path, 'utf8').replace(/\r?\n$/, '');
      return secret === '' ? { problem: 'the file is empty; write the secret into it' } : { secret };
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      return { problem: `the file cannot be read (${code ?? 'error'}); check its path and permissions` };
    }
  }

  /** Where a field is, or else the closest object around it. A name may have dots, so that it is compared as a whole. */
  private find(field: string): number {
    let node = this.parsed.contents;
    let at = node?.range?.[0] ?? 0;
    for (let rest = field; rest !== '';) {
      if (isMap(node)) {
        const pair = node.items.find(
          ({ key }) => isScalar(key) && `${rest}.`.startsWith(`${String(key.value)}.`),
        );
        if (pair === undefined) return at;
        at = (pair.key as Node).range?.[0] ?? at;
        rest = rest.slice(String((pair.key as { value?: unknown }).value).length + 1);
        node = pair.value as Node | null;
      } else if (isSeq(node)) {
        const [index = ''] = rest.split('.');
        node = (node.items[Number(index)] as Node | undefined) ?? null;
        at = node?.range?.[0] ?? at;
        rest = rest.slice(index.length + 1);
      } else {
        return at;
      }
    }
    return at;
  }

  private place(offset: number): string {
    const { line, col } = this.lines.linePos(offset);
    return `${this.name}:${line}:${col}`;
  }
}

/** What stays as it is stored: the gateway checks it. */
function isStored(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'stored' in value;
}

function variable(name: string): { secret: string } | { problem: string } {
  const errors: string[] = [];
  const raw = gatherEnv({ names: [name], secrets: [] }, processEnv(), resolve('.env'), errors);
  if (errors[0] !== undefined) return { problem: errors[0] };
  const secret = raw[name];
  return secret === undefined
    ? { problem: `the environment variable ${name} is not set; set it, or correct its name` }
    : { secret };
}

function errorsOf(lines: readonly string[]): CliError {
  return new CliError(lines.join('\nerror: '));
}
