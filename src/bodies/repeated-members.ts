const [QUOTE, COLON, BACKSLASH] = [0x22, 0x3a, 0x5c];

/**
 * True if an object in a JSON body, at any depth, has two members of the same name: parsers take one or the other. Names
 * that differ in their case count, because Go's parser ignores it.
 *
 * @param body valid JSON
 * @param value what JSON.parse reads from it
 */
export function hasRepeatedMembers(body: Buffer, value: unknown): boolean {
  let members = 0;
  const left: unknown[] = [value];
  while (left.length > 0) {
    const one = left.pop();
    if (typeof one !== 'object' || one === null) continue;
    for (const inner of Object.values(one)) left.push(inner);
    if (Array.isArray(one)) continue;
    const names = Object.keys(one);
    members += names.length;
    if (new Set(names.map((name) => name.toLowerCase().toUpperCase())).size < names.length) return true;
  }
  // JSON.parse keeps one of those with exactly the same name.
  return members < colonsOf(body);
}

/** Colons outside of strings: one for each member. */
function colonsOf(body: Buffer): number {
  let count = 0;
  let at = 0;
  while (at < body.length) {
    const quote = body.indexOf(QUOTE, at);
    const end = quote === -1 ? body.length : quote;
    for (; at < end; at++) if (body[at] === COLON) count++;
    if (quote !== -1) at = afterString(body, quote + 1);
  }
  return count;
}

function afterString(body: Buffer, start: number): number {
  for (let at = start; ;) {
    const quote = body.indexOf(QUOTE, at);
    let slash = quote;
    while (body[slash - 1] === BACKSLASH) slash--;
    at = quote + 1;
    if ((quote - slash) % 2 === 0) return at;
  }
}
