/** One round of percent-decoding byte by byte (latin-1): unlike decodeURIComponent it never throws. */
export function percentDecode(text: string): string {
  return text.replace(/%([0-9A-Fa-f]{2})/g, (_, hex: string) => String.fromCharCode(parseInt(hex, 16)));
}

/**
 * True if a query has a parameter of this name, in any case, as sent or after one or two rounds of percent-decoding.
 *
 * @param query without its `?`
 * @param name lower-case
 */
export function hasParameter(query: string, name: string): boolean {
  const decoded = decodeTwice(query);
  if (!decoded.toLowerCase().includes(name)) return false;
  for (const pair of query.split(/[&;]/)) {
    // `name[]` and `name[0]` are arrays to many query parsers.
    const found = decodeTwice(pair.split('=', 1)[0]!).split('[', 1)[0]!.replaceAll('+', ' ');
    if (found.trim().toLowerCase() === name) return true;
  }
  return false;
}

function decodeTwice(text: string): string {
  return text.includes('%') ? percentDecode(percentDecode(text)) : text;
}
