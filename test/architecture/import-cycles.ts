/** Every cycle of imports, as a path from a file back to itself. @param imports the files that each file imports */
export function cyclesOf(imports: ReadonlyMap<string, readonly string[]>): string[] {
  const found: string[] = [];
  const finished = new Set<string>();
  const visit = (file: string, path: string[]): void => {
    const seenAt = path.indexOf(file);
    if (seenAt !== -1) found.push([...path.slice(seenAt), file].join(' -> '));
    if (seenAt !== -1 || finished.has(file)) return;
    for (const next of imports.get(file) ?? []) visit(next, [...path, file]);
    finished.add(file);
  };
  for (const file of imports.keys()) visit(file, []);
  return found;
}
