import { styleText } from 'node:util';
import stringWidth from 'string-width';

export type Cell = string | number | boolean | null;
type Style = Parameters<typeof styleText>[0];

/** One column of a table. */
export interface Column<T> {
  head: string;
  cell: (row: T) => Cell;
  /** Colour of a cell, on a terminal. */
  style?: (row: T) => Style | undefined;
  align?: 'right';
  /** Columns that do not fit are left out in this order, the lowest first. Without it the column always stays. */
  drop?: number;
  /** A column that does not fit may be cut down to this width. */
  min?: number;
  /** Width of a table that is printed line by line, before its cells are known. */
  width?: number;
}

export interface TableOptions {
  /** Width of the terminal; Infinity for a file or a pipe. */
  width: number;
  colour: boolean;
  /** A last row, set off from the others. */
  total?: readonly Cell[];
}

const GAP = '  ';

/** A table, and the columns that were left out because they did not fit. */
export function table<T>(
  columns: readonly Column<T>[],
  rows: readonly T[],
  options: TableOptions,
): { text: string; hidden: string[] } {
  const layout = new Layout(columns, rows, options);
  const lines = [layout.head(), ...rows.map((row) => layout.line(row))];
  if (options.total !== undefined) lines.push(layout.total(options.total));
  return { text: lines.join('\n'), hidden: layout.hidden };
}

/** The columns of a table and their widths. */
export class Layout<T> {
  readonly hidden: string[];
  private readonly shown: readonly Column<T>[];
  private readonly widths: readonly number[];

  constructor(
    private readonly columns: readonly Column<T>[],
    rows: readonly T[],
    private readonly options: TableOptions,
  ) {
    const wanted = new Map(
      columns.map((column, i) => [column, widthOf(column, rows, options.total?.[i])] as const),
    );
    let shown = columns;
    const least = () =>
      sum(shown.map((column) => Math.min(wanted.get(column)!, column.min ?? Infinity))) +
      GAP.length * (shown.length - 1);
    while (least() > options.width) {
      const [next] = shown.filter(({ drop }) => drop !== undefined).sort((a, b) => a.drop! - b.drop!);
      if (next === undefined) break;
      shown = shown.filter((column) => column !== next);
    }
    this.shown = shown;
    this.hidden = columns.filter((column) => !shown.includes(column)).map(({ head }) => head);
    this.widths = shrink(shown, wanted, options.width);
  }

  head(): string {
    return this.print(
      this.shown.map(({ head }) => head),
      () => 'bold',
    );
  }

  line(row: T): string {
    return this.print(
      this.shown.map(({ cell }) => text(cell(row))),
      (column) => column.style?.(row),
    );
  }

  total(cells: readonly Cell[]): string {
    const shown = this.shown.map((column) => text(cells[this.columns.indexOf(column)]!));
    return this.print(shown, () => 'bold');
  }

  private print(cells: readonly string[], styleOf: (column: Column<T>) => Style | undefined): string {
    const padded = cells.map((cell, i) => {
      const column = this.shown[i]!;
      // A pipe gets everything, and half a number would be another number.
      const isCut = this.options.width !== Infinity && column.min !== undefined;
      const cut = isCut ? truncate(cell, this.widths[i]!) : cell;
      const space = ' '.repeat(Math.max(0, this.widths[i]! - stringWidth(cut)));
      const style = this.options.colour ? styleOf(column) : undefined;
      const styled =
        style === undefined || cut === '' ? cut : styleText(style, cut, { validateStream: false });
      const isLast = i === cells.length - 1;
      return column.align === 'right' ? space + styled : styled + (isLast ? '' : space);
    });
    return padded.join(GAP).trimEnd();
  }
}

function widthOf<T>(column: Column<T>, rows: readonly T[], total: Cell | undefined): number {
  const cells = [
    column.head,
    ...rows.map((row) => text(column.cell(row))),
    ...(total === undefined ? [] : [text(total)]),
  ];
  return Math.max(column.width ?? 0, ...cells.map((cell) => stringWidth(cell)));
}

/** Takes width from the widest column that may be cut, until all fit. */
function shrink<T>(
  columns: readonly Column<T>[],
  wanted: ReadonlyMap<Column<T>, number>,
  available: number,
): number[] {
  const widths = columns.map((column) => wanted.get(column)!);
  for (let over = sum(widths) + GAP.length * (widths.length - 1) - available; over > 0; over--) {
    const cuttable = columns.map(({ min }, i) => (min !== undefined && widths[i]! > min ? widths[i]! : 0));
    const widest = Math.max(...cuttable);
    if (widest === 0) break;
    widths[cuttable.indexOf(widest)]!--;
  }
  return widths;
}

/** Cells may come from clients, so control characters are replaced: they could steer a terminal. */
export function text(cell: Cell): string {
  if (cell === null) return '-';
  if (typeof cell === 'number') return count(cell);
  if (typeof cell === 'boolean') return cell ? 'yes' : 'no';
  return cell.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '?');
}

/** A number with separators between thousands, and at most three decimals. */
export function count(value: number): string {
  return value.toLocaleString('en-US', { maximumFractionDigits: 3 });
}

function truncate(cell: string, width: number): string {
  if (stringWidth(cell) <= width) return cell;
  let cut = '';
  for (const { segment } of new Intl.Segmenter().segment(cell)) {
    if (stringWidth(cut + segment) >= width) break;
    cut += segment;
  }
  return `${cut}…`;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

/** An exact amount with as many decimals as tell it from 0, at least two. */
export function money(usd: string): string {
  const [whole, decimals = ''] = usd.split('.');
  const places = Number(whole) === 0 ? decimals.search(/[1-9]/) + 3 : 2;
  return `${count(Number(whole))}.${decimals.slice(0, Math.max(2, places)).padEnd(2, '0')}`;
}
