/** A Markdown table as Oxfmt lays it out. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const cells = [head, ...rows].map((row) => row.map((cell) => cell.replaceAll('|', '\\|')));
  const widths = head.map((_, i) => Math.max(3, ...cells.map((row) => row[i]!.length)));
  const line = (row: readonly string[]) => `| ${row.map((cell, i) => cell.padEnd(widths[i]!)).join(' | ')} |`;
  const [first, ...others] = cells.map(line);
  return [first, `| ${widths.map((width) => '-'.repeat(width)).join(' | ')} |`, ...others].join('\n');
}

export const code = (text: string): string => `\`${text}\``;

/** Text with each name of a setting as code. */
export function withSettingsAsCode(text: string): string {
  return text.replace(/(?<![`\w])[A-Z]+(?:_[A-Z]+)+(?:=\w+)?(?![`\w])/g, code);
}

/** The text between two markers of a page, which a test writes and compares. */
export function replaceGenerated(page: string, name: string, text: string): string {
  const begin = `<!-- generated: ${name} -->\n`;
  const end = '\n<!-- end of generated text -->';
  const from = page.indexOf(begin);
  const to = page.indexOf(end, from);
  if (from === -1 || to === -1) throw new Error(`The page has no part "${name}" between markers.`);
  return `${page.slice(0, from + begin.length)}\n${text}\n${page.slice(to)}`;
}
