/** Value of the first header of this lower-case name in a flat raw array, or undefined. */
export function firstHeader(raw: readonly string[], lowerName: string): string | undefined {
  for (let i = 0; i < raw.length; i += 2) {
    if (raw[i]!.length === lowerName.length && raw[i]!.toLowerCase() === lowerName) return raw[i + 1];
  }
  return undefined;
}
