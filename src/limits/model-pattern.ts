/**
 * Compares a name with a pattern in which `*` stands for any characters, also none. Case counts. In the worst case it takes
 * as many steps as the product of both lengths, where a regular expression could take exponentially many.
 */
export function matchesPattern(pattern: string, name: string): boolean {
  let at = 0;
  let inPattern = 0;
  /** The last star, and where the part after it is tried. */
  let star = -1;
  let tried = 0;
  while (at < name.length) {
    if (pattern[inPattern] === '*') {
      star = inPattern++;
      tried = at;
    } else if (pattern[inPattern] === name[at]) {
      inPattern++;
      at++;
    } else if (star !== -1) {
      inPattern = star + 1;
      at = ++tried;
    } else {
      return false;
    }
  }
  while (pattern[inPattern] === '*') inPattern++;
  return inPattern === pattern.length;
}
