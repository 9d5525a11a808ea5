/** The members of a draft that differ from what was stored: only these are sent, so that the audit log shows what was meant. */
export function changesOf<Stored extends object>(stored: Stored, draft: Partial<Stored>): Partial<Stored> {
  const changed = Object.entries(draft).filter(
    ([name, value]) => JSON.stringify(value) !== JSON.stringify((stored as Record<string, unknown>)[name]),
  );
  return Object.fromEntries(changed) as Partial<Stored>;
}
