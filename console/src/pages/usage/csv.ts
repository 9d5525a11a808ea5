import { type Dimension, groupLabel, groupValue, type UsageRow } from '../../usage/metrics';
import type { TimeRange } from '../../url/time-range';
import { uncached } from './columns';

const FIGURES: readonly [string, (row: UsageRow) => string | number | null][] = [
  ['cost_usd', ({ cost_usd }) => cost_usd],
  ['saved_usd', ({ saved_usd }) => saved_usd],
  ['calls', ({ calls }) => calls],
  ['errors', ({ errors }) => errors],
  ['unpriced_calls', ({ unpriced_calls }) => unpriced_calls],
  ['uncached_input_tokens', uncached],
  ['cached_input_tokens', ({ cached_tokens }) => cached_tokens],
  ['cache_write_tokens', ({ cache_write_tokens }) => cache_write_tokens],
  ['output_tokens', ({ completion_tokens }) => completion_tokens],
  ['p50_ms', ({ p50_ms }) => p50_ms],
  ['p95_ms', ({ p95_ms }) => p95_ms],
];

/** Saves the rows as a file of comma-separated values (RFC 4180), amounts with all their digits. */
export function saveCsv(
  rows: readonly UsageRow[],
  dimensions: readonly Dimension[],
  { from, to }: TimeRange,
): void {
  const header = [
    'from',
    'to',
    ...dimensions.flatMap((name) => (hasId(name) ? [name, `${name}_id`] : [name])),
    ...FIGURES.map(([name]) => name),
  ];
  const lines = rows.map((row) => [
    from.toISOString(),
    to.toISOString(),
    ...dimensions.flatMap((name) =>
      hasId(name) ? [groupLabel(row, name), groupValue(row, name) ?? ''] : [groupValue(row, name) ?? ''],
    ),
    ...FIGURES.map(([, of]) => of(row)),
  ]);
  const text = [header, ...lines].map((line) => line.map(cell).join(',')).join('\r\n');
  const address = URL.createObjectURL(new Blob([`${text}\r\n`], { type: 'text/csv;charset=utf-8' }));
  const link = document.createElement('a');
  link.href = address;
  link.download = `postern-usage-${from.toISOString().slice(0, 10)}-${dimensions.join('-')}.csv`;
  link.click();
  URL.revokeObjectURL(address);
}

function hasId(dimension: Dimension): boolean {
  return dimension === 'team' || dimension === 'key';
}

function cell(value: string | number | null): string {
  if (value === null) return '';
  if (typeof value === 'number') return String(value);
  // A spreadsheet would run a name that begins like this, also in full width, as a formula.
  const text = /^[=+@\t\r\uff1d\uff0b\uff0d\uff20-]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
