import { styleText } from 'node:util';
import { cliCommand, shellQuoted } from '../platform/cli-command.js';
import type { Page } from '../database/page.js';
import { type Cell, type Column, Layout, table, text } from './table.js';

export interface OutputOptions {
  json?: boolean;
  /** Prints the result only: no hints and no notes. */
  quiet: boolean;
  colour: boolean;
  /** Prints every column of a table in full. */
  wide?: boolean;
  /** The arguments of this run. */
  args: readonly string[];
}

export interface PageOptions<T> {
  /** What is listed, in the plural. */
  noun: string;
  columns: readonly Column<T>[];
  total?: readonly Cell[];
  /** False if a page is complete although there is more, such as the ten largest. */
  continues?: boolean;
}

/** What a command prints. */
export class Output {
  constructor(private readonly options: OutputOptions) {}

  get isQuiet(): boolean {
    return this.options.quiet;
  }

  get isJson(): boolean {
    return this.options.json === true;
  }

  get printsNotes(): boolean {
    return !this.isJson && !this.isQuiet;
  }

  /** Prints one JSON document. */
  json(value: unknown): void {
    console.log(jsonText(value, 2));
  }

  /** Prints `value` with --json, else the lines that `lines` returns. */
  result(value: unknown, lines: () => string): void {
    if (this.isJson) this.json(value);
    else console.log(lines());
  }

  /** Prints what helps but is not the result. */
  note(line: string): void {
    if (this.printsNotes) console.log(line);
  }

  /** Prints how far long work is, to standard error. */
  progress(line: string): void {
    if (!this.isQuiet) console.error(line);
  }

  /** Prints a page: as the admin API returns it with --json, else as a table. */
  page<T>(page: Page<T>, { noun, columns, total, continues = true }: PageOptions<T>): void {
    if (this.isJson) {
      this.json(page);
      return;
    }
    if (page.data.length === 0) {
      this.note(`No ${noun} found.`);
      return;
    }
    const { text, hidden } = table(columns, page.data, { ...this.layoutOptions, ...(total && { total }) });
    console.log(text);
    const notes: string[] = [];
    if (hidden.length > 0)
      notes.push(`Not shown because the terminal is too narrow: ${hidden.join(', ')}. See all with --wide.`);
    if (page.next_cursor !== null && continues) notes.push(`More results: ${this.again(page.next_cursor)}`);
    if (notes.length > 0) this.note(`\n${notes.join('\n')}`);
  }

  /** A table that is printed line by line. */
  layout<T>(columns: readonly Column<T>[]): Layout<T> {
    return new Layout(columns, [], this.layoutOptions);
  }

  /** One line for each field of an object. */
  fields(fields: readonly (readonly [name: string, value: Cell, style?: Style])[]): string {
    const width = Math.max(...fields.map(([name]) => name.length));
    return fields
      .map(([name, value, style]) => `${name.padEnd(width)}  ${this.styled(text(value), style)}`)
      .join('\n');
  }

  styled(text: string, style: Style | undefined): string {
    return this.options.colour && style !== undefined
      ? styleText(style, text, { validateStream: false })
      : text;
  }

  private get layoutOptions(): { width: number; colour: boolean } {
    const width = process.stdout.isTTY && !this.options.wide ? (process.stdout.columns ?? 80) : Infinity;
    return { width, colour: this.options.colour };
  }

  /** The command of this run for the next page. */
  private again(cursor: string): string {
    const { args } = this.options;
    const kept = args.filter(
      (arg, i) => !arg.startsWith('--cursor=') && arg !== '--cursor' && args[i - 1] !== '--cursor',
    );
    return cliCommand([...kept, '--cursor', cursor].map(shellQuoted).join(' '));
  }
}

/** Characters that control a terminal or hide text, and that JSON.stringify leaves as they are. */
export const UNSAFE = /[\x7f-\x9f\p{Cf}\p{Zl}\p{Zp}]/gu;

/** JSON with these characters escaped: a client chose some of the text, and it may be printed on a terminal. */
export function jsonText(value: unknown, indent?: number): string {
  const escaped = (char: string) =>
    char
      .split('')
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join('');
  return JSON.stringify(value, null, indent).replace(UNSAFE, escaped);
}

export type Style = Parameters<typeof styleText>[0];

/**
 * Writes to standard output and waits until the text is flushed, so that a slow reader does not fill memory.
 *
 * @returns false when standard output is closed
 */
export function write(text: string): Promise<boolean> {
  if (text === '') return Promise.resolve(!process.stdout.destroyed);
  return new Promise((taken) => process.stdout.write(text, (error) => taken(!error)));
}

/** Colour of a status of a key, team or provider. */
export function statusStyle(status: string): Style | undefined {
  if (status === 'active' || status === 'enabled') return 'green';
  return status === 'disabled' ? 'yellow' : 'red';
}
