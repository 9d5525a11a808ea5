/** Aligns columns. Cells may come from clients, so control characters are replaced: they could steer a terminal. */
export function table(
  head: readonly string[] | null,
  rows: readonly (readonly Cell[])[],
  leastWidths: readonly number[] = [],
): string {
  const lines = [...(head === null ? [] : [head]), ...rows.map((row) => row.map(text))];
  const widths = lines[0]!.map((_, column) =>
    Math.max(leastWidths[column] ?? 0, ...lines.map((line) => line[column]!.length)),
  );
  return lines
    .map((line) =>
      line
        .map((cell, column) => cell.padEnd(widths[column]!))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

export type Cell = string | number | boolean | null;

function text(cell: Cell): string {
  return cell === null ? '-' : String(cell).replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '?');
}

/** An ISO 8601 time without its fraction. */
export function shortTime(iso: string | null): string | null {
  return iso && iso.replace(/\.\d+Z$/, 'Z');
}
